"""Reading a checkpoint's own model, one text at a time: nothing is padded, batched or cached."""

from dataclasses import dataclass

import numpy as np
import torch


@dataclass(frozen=True)
class Text:
    """Token ids, which of them are special, and the number of the first text that is the same."""

    ids: tuple
    special: tuple
    unit: int

    @property
    def ordinary(self):
        return [place for place, special in enumerate(self.special) if not special]

    @property
    def predicted(self):
        """Places of the ordinary tokens that another token stands before."""
        return [place for place in self.ordinary if place > 0]


def texts_of(sentences, tokenizer):
    """Return the texts as a tokenizer of transformers gives them."""
    first, texts = {}, []
    for number, sentence in enumerate(sentences):
        row = tokenizer(sentence, return_special_tokens_mask=True)
        ids = tuple(row["input_ids"])
        unit = first.setdefault(ids, number)
        texts.append(Text(ids, tuple(map(bool, row["special_tokens_mask"])), unit))
    return texts


@dataclass(frozen=True)
class Read:
    """What a model gives on one text, in float64.

    Attributes
    ----------
    log_p
        (n, V) of the token after each of the n.
    layers
        By label, (n, m) outputs of modules.
    maps
        By label, (heads, n, n) attention.
    """

    log_p: np.ndarray
    layers: dict
    maps: dict


class Reader:
    """A model whose modules are watched.

    Parameters
    ----------
    model
        The module; it is run in float64 where its weights are float32.
    before
        Rows that it gives before those of a text's own tokens.
    layers, maps
        Labels: paths of modules, and ``path@k`` for the k-th call of one that is shared.
    """

    def __init__(self, model, before=0, layers=(), maps=()):
        self.model, self.before, self.layers, self.maps = model, before, layers, maps
        if next(model.parameters()).dtype == torch.float32:
            model.double()

    def read(self, ids):
        """Return what it gives on one text."""
        calls = {}
        handles = [
            self.model.get_submodule(path).register_forward_hook(
                lambda _module, _args, output, path=path: calls.setdefault(
                    path, []
                ).append(output)
            )
            for path in {
                label.partition("@")[0] for label in (*self.layers, *self.maps)
            }
        ]
        with torch.no_grad():
            output = self.model(torch.tensor([ids]))
        for handle in handles:
            handle.remove()
        logits = self._own(
            output if isinstance(output, torch.Tensor) else output.logits, ids
        )
        outputs = {label: _call(calls, label) for label in (*self.layers, *self.maps)}
        return Read(
            logits.double().log_softmax(-1).numpy(),
            {
                label: self._own(_first(outputs[label]), ids).numpy()
                for label in self.layers
            },
            {label: _map_of(outputs[label]) for label in self.maps},
        )

    def _own(self, rows, ids):
        return rows[0, self.before : self.before + len(ids)].float().double()


def _call(calls, label):
    path, _, number = label.partition("@")
    return calls[path][int(number or 0)]


def _first(output):
    return output[0] if isinstance(output, tuple) else output


def _map_of(output):
    (weights,) = [
        part for part in output if isinstance(part, torch.Tensor) and part.ndim == 4
    ]
    return weights[0].double().numpy()
