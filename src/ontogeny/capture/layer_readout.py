"""What a direction of the residual stream writes to the vocabulary.

The direct effect of a direction d, added to the stream, on the logits: d passes the norms that
stand between its layer and the vocabulary map along the skip connections, and then that map. What
later layers make of d is not in it. Each norm's scale is held fixed ("frozen norms": Elhage et al.,
*A mathematical framework for transformer circuits*, 2021; the logit lens), so that the map from d
to the logits is linear. Biases are left out: they do not depend on d.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any, TypeAlias, TypeVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from ..arrays import to_numpy
from ..errors import ArgumentError, NonFiniteError, check_whole
from ..inputs import Inputs
from .activation import ActivationCollector
from .collect import feed
from .forward import check_fits, check_weights_there, device_of
from .logits import head_path
from .norms import DensePart, NormPart, head_part, norm_part
from .readout_path import VocabularyPath, path_to_vocabulary

MAX_TEXTS = 8  # that the scales of norms are averaged over
MAX_TOKENS = 512  # of these texts
QUANTILE = 0.95  # of random directions
_ROWS = 64  # directions at a time: their logits over a whole vocabulary are large

Site = TypeVar("Site", str, str | None)


# A linear map on directions, one a row.
Part: TypeAlias = NormPart | DensePart


@dataclass(frozen=True, eq=False)
class Readout:
    """The linear map from directions of the residual stream to logits.

    Parameters
    ----------
    unembedding
        The vocabulary map of shape (V, m), float32: one row a token.
    parts
        What a direction passes before it: norms with their scale held fixed, and the dense layer
        of a masked model's head.
    measured
        Whether the scales of the norms are means over tokens. If not they are 1, and logits are
        known up to one common factor: which tokens are written most does not depend on it.
    """

    unembedding: Tensor
    parts: tuple[Part, ...]
    measured: bool

    @property
    def width(self) -> int:
        """Features of the stream, and so of a direction."""
        return int(self.unembedding.shape[1])

    def written(self, directions: Any) -> np.ndarray:
        """Return the logits that directions of shape (r, m) add, (r, V) float32.

        Raises
        ------
        ArgumentError
            If the directions have another shape.
        NonFiniteError
            If a direction holds NaN or infinity.
        """
        rows = to_numpy(directions)
        if rows.ndim != 2 or rows.shape[1] != self.width:
            raise ArgumentError(
                f"directions must have the shape (r, {self.width}), the width of the stream; got "
                f"{rows.shape}."
            )
        if not np.isfinite(rows).all():
            raise NonFiniteError(
                "directions must be finite; they hold NaN or infinity."
            )
        with torch.no_grad():
            vectors = torch.as_tensor(
                rows, dtype=torch.float32, device=self.unembedding.device
            )
            for part in self.parts:
                vectors = part(vectors)
            return to_numpy(vectors @ self.unembedding.T)


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


def readouts_as_dataset(made: Mapping[str, Readout]) -> xr.Dataset:
    """Return the maps of layers, which share the vocabulary map, as arrays.

    Examples
    --------
    >>> made = {
    ...     "h.0": Readout(
    ...         torch.eye(4), (NormPart(torch.ones(4), torch.zeros(4), True),), True
    ...     )
    ... }
    >>> same = readouts_of_dataset(readouts_as_dataset(made), "cpu")["h.0"]
    >>> np.array_equal(same.written(np.eye(4)), made["h.0"].written(np.eye(4)))
    True
    """
    first = next(iter(made.values()))
    values: dict[str, Any] = {"unembedding": first.unembedding}
    for i, one in enumerate(made.values()):
        for j, part in enumerate(one.parts):
            values |= {f"{i}.{j}.{name}": value for name, value in vars(part).items()}
    parts = [[type(part).__name__ for part in one.parts] for one in made.values()]
    attrs = {"layers": list(made), "parts": parts, "measured": first.measured}
    arrays = {name: to_numpy(value) for name, value in values.items()}
    dims = {name: [f"{name}.{k}" for k in range(a.ndim)] for name, a in arrays.items()}
    return xr.Dataset(
        {name: (dims[name], a) for name, a in arrays.items()}, attrs=attrs
    )


def readouts_of_dataset(data: xr.Dataset, device: str) -> dict[str, Readout]:
    """Return the maps of layers that `readouts_as_dataset` has turned into arrays."""
    kinds = {kind.__name__: kind for kind in (NormPart, DensePart)}

    def value(name: str) -> Any:
        array = data[name].values
        return torch.from_numpy(array).to(device) if array.ndim else array.item()

    def part(place: str, kind: type) -> Any:
        return kind(
            **{field.name: value(f"{place}.{field.name}") for field in fields(kind)}
        )

    unembedding = value("unembedding")
    layers = zip(data.layers, data.parts, strict=True)
    return {
        path: Readout(
            unembedding,
            tuple(part(f"{i}.{j}", kinds[name]) for j, name in enumerate(names)),
            bool(data.measured),
        )
        for i, (path, names) in enumerate(layers)
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


def written(
    directions: Any,
    readout: Readout,
    n_tokens: int = 5,
    n_random: int = 100,
    random_state: int = 0,
) -> xr.Dataset:
    """Return the tokens whose logits directions raise and lower most, beside random directions.

    Parameters
    ----------
    directions
        Directions of the stream, (r, m).
    readout
        The map of their layer.
    n_tokens
        Tokens on either side.
    n_random
        Random directions: isotropic, each given the norm of the direction that it is compared to.
    random_state
        Seed of the random directions.

    Returns
    -------
    xarray.Dataset
        ``written_up_id(concept, rank)`` and ``written_up``, token ids and their logits, largest
        first; ``written_down_id`` and ``written_down``, smallest first;
        ``written_random(concept)``, the 95th percentile over random directions of their largest
        logit. A direction whose largest logit stays below it writes no token more than a random
        one would.

    Raises
    ------
    ArgumentError
        If a shape or a number is out of range.
    NonFiniteError
        If a direction holds NaN or infinity.

    Examples
    --------
    >>> words = Readout(torch.eye(4), (), True)
    >>> tokens = written([[0.0, 3.0, 0.0, -1.0]], words, n_tokens=1)
    >>> (
    ...     tokens.written_up_id.item(),
    ...     tokens.written_up.item(),
    ...     tokens.written_down_id.item(),
    ... )
    (1, 3.0, 3)
    """
    check_whole("n_tokens", n_tokens, 1, len(readout.unembedding))
    check_whole("n_random", n_random)
    rows = to_numpy(directions)
    rng = np.random.default_rng(random_state)
    noise = rng.standard_normal((n_random, readout.width))
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    largest = np.concatenate(
        [readout.written(batch).max(axis=1) for batch in _batches(noise)]
    )
    pieces = [_strongest(readout.written(batch), n_tokens) for batch in _batches(rows)]
    variables = {
        name: (("concept", "rank"), np.concatenate([piece[name] for piece in pieces]))
        for name in pieces[0]
    }
    limit = np.linalg.norm(rows, axis=1) * np.quantile(largest, QUANTILE)
    return xr.Dataset(
        {**variables, "written_random": ("concept", limit.astype(np.float32))}
    )


def _norm(model: nn.Module, name: str, states: Mapping[str, Tensor] | None) -> NormPart:
    norm = model.get_submodule(name)
    part = norm_part(norm, device_of(model))
    assert part is not None  # readouts has looked
    return part if states is None else part.scaled_as(norm, states[f"{name}#in"])


def _batches(rows: np.ndarray) -> list[np.ndarray]:
    return [rows[start : start + _ROWS] for start in range(0, max(len(rows), 1), _ROWS)]


def _strongest(logits: np.ndarray, n_tokens: int) -> dict[str, np.ndarray]:
    """Return ids and values of the largest and the smallest logits of each row; ties by id."""
    strongest = {}
    for name, signed in {"written_up": -logits, "written_down": logits}.items():
        ids = np.array([_smallest(row, n_tokens) for row in signed], dtype=np.int64)
        ids = ids.reshape(-1, n_tokens)  # also of no direction
        strongest[f"{name}_id"] = ids
        strongest[name] = np.take_along_axis(logits, ids, axis=1)
    return strongest


def _smallest(row: np.ndarray, n: int) -> np.ndarray:
    """Return where the n smallest numbers stand, without putting a whole vocabulary in order."""
    row = np.where(np.isnan(row), np.inf, row)
    candidates = np.flatnonzero(row <= np.partition(row, n - 1)[n - 1])
    return candidates[np.argsort(row[candidates], kind="stable")[:n]]
