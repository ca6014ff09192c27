"""What every layer's stream would predict, read through the last norm and the vocabulary map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ...capture.collect import feed
from ...capture.forward import check_fits, first_tensor
from ...capture.layers import match_layers
from ...capture.logits import head_path
from ...capture.predicted import PredictionCollector
from ...capture.predictor import check_mask_token
from ...capture.readout_path import path_to_vocabulary
from ...errors import ArgumentError, NonFiniteError, check_choice, check_whole
from ...inputs import Inputs
from ...inputs.batches import Batch
from ...needs import Source
from ...needs.base import MASK_FRACTION, PassNeed

# Nats that rounding of half precision may put between lens and model.
_LARGEST_GAP = 0.01


@dataclass(frozen=True, eq=False)
class LensReading:
    """What the layers predict at e tokens.

    Parameters
    ----------
    unit
        (e,) the unit of each token's text.
    layers
        By layer, (3, e): loss in nats, divergence D(model's prediction ‖ layer's), and the loss of
        what the layer predicts at another, randomly chosen one of the tokens of the same batch.
    """

    unit: np.ndarray
    layers: dict[str, np.ndarray]


@dataclass(frozen=True)
class LayerPredictions(PassNeed):
    """What the stream predicts after every layer: a `LensReading`.

    Parameters
    ----------
    layers
        Sites of the stream, such as ``"resid"`` (after every block).
    on, objective
        As of `ontogeny.needs.Predictor`.
    max_tokens
        Tokens that are kept, drawn once with `random_state`; None keeps all.
    """

    layers: str | tuple[str, ...] = "resid"
    on: str | None = None
    objective: str = "auto"
    max_tokens: int | None = 1000
    random_state: int = 0

    def __post_init__(self) -> None:
        check_choice("objective", self.objective, ("auto", "causal", "masked"))
        if self.max_tokens is not None:
            check_whole("max_tokens", self.max_tokens, 2)

    def check(self, source: Source) -> None:
        """Refuse a model whose way from the stream to its logits is not known."""
        way_to_logits(source.model)
        if source.masked(self.objective):
            check_mask_token(source.inputs)

    def read(self, source: Source) -> LensReading:
        """Return the predictions of the layers."""
        inputs = source.inputs
        ids = None
        positions = None
        if source.masked(self.objective):
            ids, positions = inputs.corrupt(MASK_FRACTION, self.random_state)
        check_fits(source.model, inputs, ids)
        layers = match_layers(source.model, self.layers)
        collector = _LensCollector(
            source.model, inputs, positions, layers, self.max_tokens, self.random_state
        )
        feed(
            source.model,
            inputs.batches(source.settings.batch_size, ids),
            [collector],
            position_ids=source.settings.positions == "mask",
        )
        return collector.result()


def way_to_logits(model: nn.Module) -> Callable[[Tensor], Tensor]:
    """Return the function from the stream after the last block (e, m) to logits (e, V).

    Raises
    ------
    ArgumentError
        If the model's family or its vocabulary map is not known.

    Examples
    --------
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> model = GPT2LMHeadModel(GPT2Config(vocab_size=9, n_embd=4, n_head=2, n_layer=2))
    >>> way_to_logits(model)(torch.ones(3, 4)).shape
    torch.Size([3, 9])
    """
    path = path_to_vocabulary(model, None)
    if isinstance(path, str):
        raise ArgumentError(f"a logit lens cannot be read: {path}.")
    head = head_path(model)
    assert head is not None  # path_to_vocabulary has looked
    parts = [*path.norms] if path.head is None else [*path.norms, path.head[0]]
    # RoBERTa's head holds its map.
    if not parts or not head.startswith(f"{parts[-1]}."):
        parts.append(head)
    modules = [model.get_submodule(part) for part in parts]
    cap = getattr(getattr(model, "config", None), "final_logit_softcapping", None)

    def logits(stream: Tensor) -> Tensor:
        for module in modules:
            stream = module(stream)
        return stream if cap is None else cap * torch.tanh(stream / cap)

    return logits


class _LensCollector(PredictionCollector):
    """Takes the stream at predicting tokens, and reads it when the model's logits are there."""

    def __init__(
        self,
        model: nn.Module,
        inputs: Inputs,
        positions: np.ndarray | None,
        layers: Sequence[str],
        max_tokens: int | None,
        random_state: int,
    ) -> None:
        super().__init__(model, inputs, positions)
        self.paths = tuple(layers)
        self.positions = _some(self.positions, max_tokens, random_state)
        self._way = way_to_logits(model)
        self._inputs = inputs
        self._last = match_layers(model, "resid")[-1]
        self._rng = np.random.default_rng([random_state, 15])
        self._parts: dict[str, list[np.ndarray]] = {layer: [] for layer in layers}
        self._text: list[np.ndarray] = []

    def start(self, batch: Batch) -> set[str] | None:
        """Find the batch's tokens."""
        self._streams: dict[str, Tensor] = {}
        self._done = 0
        return super().start(batch)

    def take(self, path: str, output: object) -> None:
        """Keep the stream at the predicting tokens."""
        stream = first_tensor(output)
        row, column = (
            torch.from_numpy(part) for part in (self._row, self._column - self.shift)
        )
        self._streams[path] = stream[
            row.to(stream.device), column.to(stream.device)
        ].clone()

    def add(
        self, text: np.ndarray, column: np.ndarray, target: Tensor, log_p: Tensor
    ) -> None:
        """Read every layer at some of the tokens."""
        rows = slice(self._done, self._done + len(text))
        self._done += len(text)
        self._text.append(text)
        other = torch.from_numpy(self._rng.permutation(len(text))).to(log_p.device)
        p = log_p.exp()
        for layer, stream in self._streams.items():
            log_q = self._way(stream[rows]).float().log_softmax(-1)
            loss = -log_q.gather(1, target[:, None])[:, 0]
            apart = torch.where(p > 0, p * (log_p - log_q), torch.zeros_like(p)).sum(
                dim=1
            )
            elsewhere = -log_q[other].gather(1, target[:, None])[:, 0]
            values = torch.stack([loss, apart, elsewhere]).double().cpu().numpy()
            if not np.isfinite(values).all():
                raise NonFiniteError(f"what {layer!r} predicts is not finite.")
            if layer == self._last and values[1].mean() > _LARGEST_GAP:
                raise ArgumentError(
                    f"a logit lens cannot be read: what {self.name} does between its last block "
                    f"and its logits is not known ({values[1].mean():.2g} nats apart)."
                )
            self._parts[layer].append(values)

    def result(self) -> LensReading:
        """Return what all layers predict."""
        if not self._text:
            raise ArgumentError(
                "inputs hold no token that is predicted; use longer texts."
            )
        unit = self._inputs.groups[np.concatenate(self._text)]
        whole = {
            layer: np.concatenate(parts, axis=1) for layer, parts in self._parts.items()
        }
        return LensReading(unit, whole)


def _some(positions: np.ndarray, count: int | None, random_state: int) -> np.ndarray:
    """Return some of the positions, the same at every checkpoint."""
    places = np.argwhere(positions)
    if count is None or len(places) <= count:
        return positions
    rows = np.random.default_rng([random_state, 16]).choice(
        len(places), count, replace=False
    )
    is_chosen = np.zeros_like(positions)
    is_chosen[tuple(places[rows].T)] = True
    return is_chosen
