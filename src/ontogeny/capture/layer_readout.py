"""What a direction of the residual stream writes to the vocabulary.

The direct effect of a direction d, added to the stream, on the logits: d passes the norms that
stand between its layer and the vocabulary map along the skip connections, and then that map. What
later layers make of d is not in it. Each norm's scale is held fixed ("frozen norms": Elhage et al.,
*A mathematical framework for transformer circuits*, 2021; the logit lens), so that the map from d
to the logits is linear. Biases are left out: they do not depend on d.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from torch import Tensor, nn

from ..errors import ArgumentError, check_whole
from ..inputs import Inputs
from .activation import ActivationCollector
from .collect import feed
from .forward import check_fits, check_weights_there, device_of
from .logits import head_path
from .norms import NormPart, head_part, norm_part
from .readout_path import VocabularyPath, path_to_vocabulary
from .vocabulary_map import Part, Readout

MAX_TEXTS = 8  # that the scales of norms are averaged over
MAX_TOKENS = 512  # of these texts

Site = TypeVar("Site", str, str | None)


def readout(
    model: nn.Module,
    layer: str | None = None,
    *,
    inputs: Any = None,
    vocabulary: int | None = None,
    max_texts: int = MAX_TEXTS,
) -> Readout | None:
    """Return the map from a direction to logits, or None if there is none.

    `why_no_readout` tells the reason for None.

    Parameters
    ----------
    model
        A language model of a family that `ontogeny.capture` knows.
    layer
        Label of the site that the direction is added at: a block, or what its attention or its MLP
        gives. None means the stream after the last block. Where norms follow only the last block,
        all layers have the same map. In BERT and in OLMo 2 and Gemma 2 they do not.
    inputs
        Texts, `Inputs` or what they are made of. The scales of the norms are then means over their
        tokens: the mean of one over the norm. Needed by models whose head holds a nonlinear
        function (BERT, RoBERTa, ModernBERT): its mean slope over the tokens is taken.
    vocabulary
        How many tokens the tokenizer knows; rows of the vocabulary map beyond it are left out.
    max_texts
        How many of them are run, evenly spaced; of their tokens 512 are taken.

    Raises
    ------
    ArgumentError
        If a number is out of range.
    LayerMatchError
        If there is no such layer.

    Notes
    -----
    Logits are those of the vocabulary map itself: before Gemma 2's soft cap, and before any scale
    that a class of your own gives them. With more than one norm on the way, the product of their
    mean scales is taken.

    Examples
    --------
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> model = GPT2LMHeadModel(GPT2Config(vocab_size=9, n_embd=4, n_head=2, n_layer=2))
    >>> readout(model, "transformer.h.1.mlp").written(np.eye(4)[:2]).shape
    (2, 9)
    >>> readout(model, "transformer.h.1.mlp.c_fc") is None
    True
    """
    if why_no_readout(model, layer, measured=inputs is not None):
        return None
    made = readouts(
        model, [layer], inputs=inputs, vocabulary=vocabulary, max_texts=max_texts
    )
    return made[layer]


def readouts(
    model: nn.Module,
    layers: Sequence[Site],
    *,
    inputs: Any = None,
    vocabulary: int | None = None,
    max_texts: int = MAX_TEXTS,
) -> dict[Site, Readout]:
    """Return the maps of several layers, which share the vocabulary map and one forward pass.

    Arguments are those of `readout`.

    Raises
    ------
    ArgumentError
        If a layer has no readout: the message tells why.
    LayerMatchError
        If there is no such layer.

    Examples
    --------
    >>> from transformers import GPT2Config, GPT2LMHeadModel
    >>> model = GPT2LMHeadModel(GPT2Config(vocab_size=9, n_embd=4, n_head=2, n_layer=2))
    >>> made = readouts(model, ["transformer.h.0", "transformer.h.1"])
    >>> [len(readout.parts) for readout in made.values()]
    [1, 1]
    """
    check_whole("max_texts", max_texts)
    check_weights_there(model)
    if vocabulary is not None:
        check_whole("vocabulary", vocabulary)
    paths: dict[Site, VocabularyPath] = {}
    for layer in layers:
        path = path_to_vocabulary(model, layer)
        why = why_no_readout(model, layer, measured=inputs is not None)
        if isinstance(path, str) or why:
            raise ArgumentError(f"{layer or 'the stream'} has no readout: {why}.")
        paths[layer] = path
    states: dict[str, Tensor] | None = None
    if inputs is not None:
        names = chain.from_iterable(path.sites for path in paths.values())
        sites = [f"{name}#in" for name in dict.fromkeys(names)]
        states = _states(model, Inputs.coerce(inputs), sites, max_texts)
    weight = model.get_submodule(head_path(model) or "").get_parameter("weight")
    # A copy: the skeleton that holds the weights is given those of another checkpoint later.
    unembedding = weight.detach()[:vocabulary].float().clone()
    return {
        layer: Readout(unembedding, _parts(model, path, states), inputs is not None)
        for layer, path in paths.items()
    }


def _states(
    model: nn.Module, inputs: Inputs, sites: Sequence[str], max_texts: int
) -> dict[str, Tensor]:
    """Return what sites see of some texts, each run alone: then positions need no care."""
    places = np.unique(
        np.linspace(0, len(inputs) - 1, min(max_texts, len(inputs))).astype(int)
    )
    some = inputs.subset(places)
    check_fits(model, some)
    sample = some.sample("all", MAX_TOKENS, random_state=0)
    collector = ActivationCollector(sites, some, sample, device_of(model))
    feed(model, some.batches(1), [collector])
    return collector.result()


def _parts(
    model: nn.Module, path: VocabularyPath, states: Mapping[str, Tensor] | None
) -> tuple[Part, ...]:
    parts: list[Part] = [_norm(model, name, states) for name in path.norms]
    if path.head is not None:
        assert states is not None  # readouts has looked
        name, dense, norm = path.head
        parts += head_part(
            model.get_submodule(name), dense, norm, states[f"{name}.{dense}#in"]
        )
    return tuple(parts)


def why_no_readout(
    model: nn.Module, layer: str | None = None, *, measured: bool = True
) -> str:
    """Return why `readout` is None for a layer, or an empty string where it is not.

    Parameters
    ----------
    model, layer
        As in `readout`.
    measured
        Whether texts are given.

    Examples
    --------
    >>> why_no_readout(nn.Linear(2, 2))
    'Linear has no linear map to a vocabulary'
    """
    path = path_to_vocabulary(model, layer)
    if isinstance(path, str):
        return path
    if path.head is not None and not measured:
        return (
            f"{type(model).__name__} has a nonlinear function before its vocabulary map, so what a "
            "direction writes depends on the text; give inputs"
        )
    for name in path.norms:
        if norm_part(model.get_submodule(name), device_of(model)) is None:
            return f"{name} is neither a LayerNorm nor an RMSNorm"
    return ""


def _norm(model: nn.Module, name: str, states: Mapping[str, Tensor] | None) -> NormPart:
    norm = model.get_submodule(name)
    part = norm_part(norm, device_of(model))
    assert part is not None  # readouts has looked
    return part if states is None else part.scaled_as(norm, states[f"{name}#in"])
