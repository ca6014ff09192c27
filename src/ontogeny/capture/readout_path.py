"""What stands between a site of the stream and the vocabulary map, along skip connections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from torch import nn

from ..errors import ArgumentError
from .families import Family, family_of
from .layers import match_layers
from .logits import head_path

# Short names of the sites that write into the stream, or are the stream.
WRITERS = ("attn", "mlp", "o", "resid_pre", "resid_mid", "resid")


@dataclass(frozen=True)
class VocabularyPath:
    """What a direction passes on its way to the vocabulary map.

    Parameters
    ----------
    norms
        Paths of norms, in order.
    head
        Paths of a masked model's head, its dense layer and its norm; None if there is no head.
    """

    norms: tuple[str, ...]
    head: tuple[str, str, str] | None

    @property
    def sites(self) -> tuple[str, ...]:
        """Paths of the modules whose inputs tell the scales."""
        return (
            self.norms if self.head is None else (*self.norms, ".".join(self.head[:2]))
        )


def path_to_vocabulary(model: nn.Module, layer: str | None) -> VocabularyPath | str:
    """Return what stands between a site and the vocabulary map, or why there is no such path.

    Raises
    ------
    ArgumentError
        If `layer` matches several sites.
    LayerMatchError
        If it matches none.

    Examples
    --------
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> model = GPT2LMHeadModel(GPT2Config(vocab_size=9, n_embd=4, n_head=2, n_layer=2))
    >>> path_to_vocabulary(model, "transformer.h.0.attn").norms
    ('transformer.ln_f',)
    """
    name = type(model).__name__
    family = family_of(model)
    if head_path(model) is None:
        return f"{name} has no linear map to a vocabulary"
    if family is None:
        return f"{name} is of no family whose norms are known"
    if layer is None:
        between: tuple[str, ...] | None = ()
    else:
        labels = match_layers(model, layer)
        if len(labels) > 1:
            raise ArgumentError(
                f"layer must be one site; {layer!r} matches {len(labels)}."
            )
        between = _norms_between(model, family, labels[0])
    if between is None:
        return (
            f"{layer} does not write into the residual stream; blocks, and what their attention "
            "and MLP give, do"
        )
    last = (
        () if family.final_norm is None else match_layers(model, family.final_norm)[-1:]
    )
    head = None
    if family.head is not None:
        module, dense, norm = family.head
        head = (match_layers(model, module)[-1], dense, norm)
    return VocabularyPath((*between, *last), head)


def _norms_between(
    model: nn.Module, family: Family, label: str
) -> tuple[str, ...] | None:
    """Return the norms from a site to the end of the last block; None if it is no such site."""
    place = _place(model, family, label)
    if place is None:
        return None
    name, index = place
    blocks = match_layers(model, "resid")
    if name == "resid":
        name = "resid_pre"
        index = index + 1
    if not family.joined_by or index == len(blocks):
        return ()
    norms = tuple(f"{b}.{n}" for b, n in product(blocks[index:], family.joined_by))
    first, second = norms[:2]
    if family.stream == "normed":  # only what a layer gives is normed, not the stream
        return {"attn": (first,), "o": (first,), "mlp": (second,)}.get(name, ())
    return norms[1:] if name in ("mlp", "resid_mid") else norms


def _place(model: nn.Module, family: Family, label: str) -> tuple[str, int] | None:
    """Return which short name a site goes by, and in which block; None if none that writes."""
    for name in WRITERS:
        if name in family.in_block:
            labels: Sequence[str] = match_layers(model, name)
            if label in labels:
                return name, labels.index(label)
    return None
