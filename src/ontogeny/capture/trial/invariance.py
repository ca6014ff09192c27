"""Whether a model gives a text the same activations whatever it is batched with."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import ArgumentError, BatchInvarianceError, NonFiniteError, StudyWarning
from ...inputs import Inputs
from ...inputs.sampling import TokenSample
from ..activation import ActivationCollector
from ..collect import feed
from ..forward import beginning, check_fits, first_tensor, quiet, run, takes
from ..layers import match_layers
from ..sites import watched
from .first_look import look_at, pair_of

_FEW = 3  # texts that are all read
_SHORT = 13  # tokens of the longest text by which a bare call is checked
# Why texts are read one by one.
_alone: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()
_WIDE = 1 << 16  # columns of a row: more are a vocabulary
_VALUES = 1 << 24  # that are compared at once in float64
_TOLERANCES = {torch.bfloat16: 5e-2, torch.float16: 1e-2}
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Invariance:
    """How far a text in a padded batch is from the same text alone, and how to read the model.

    Parameters
    ----------
    difference
        Largest relative difference of activations over texts and layers.
    tolerance
        What was allowed.
    positions
        For `ReadingSettings`: ``"model"``, ``"mask"`` or ``"right"``.
    padding_side
        The side on which texts are then padded.
    layer
        Where the difference is largest; ``""`` is the model's output.
    """

    difference: float
    tolerance: float
    positions: str
    padding_side: str
    layer: str


def check_batch_invariance(
    model: nn.Module,
    inputs: Any,
    layers: str | Sequence[str] | None = None,
    tolerance: float | None = None,
) -> Invariance:
    """Check that padding does not leak into a model's results.

    The shortest and the longest text, or all of up to three, are read one by one and in one padded
    batch. Per text and layer the difference is ``|a_batch - a_alone| / |a_alone|`` over its
    unpadded tokens. Tried in this order: the inputs as they are; position ids counted from the
    mask, where the model takes them; padding on the right, where it was on the left.

    Parameters
    ----------
    model, inputs
        As for `activations`.
    layers
        Which modules to compare; None compares the model's output, or the last module that gives
        one row per token where the model answers once per text.
    tolerance
        Largest difference allowed. None: 1e-4, but 1e-2 for a float16 and 5e-2 for a bfloat16
        model. Rounding alone gave up to 2e-6 in float32, 2e-3 in float16 and 2e-2 in bfloat16
        (random models of 12 layers), padding that leaks 2e-2 and more.

    Raises
    ------
    ArgumentError
        If the model gives other numbers when the same text is read again.
    BatchInvarianceError
        If no way of reading keeps the difference within the tolerance.

    Examples
    --------
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 4))
    >>> difference = check_batch_invariance(
    ...     model, {"input_ids": [[1, 2, 3], [4, 5]]}, "1"
    ... )
    >>> difference.positions, difference.difference < 1e-6
    ('model', True)
    """
    inputs = Inputs.coerce(inputs)
    check_fits(model, inputs)
    look_at(model, inputs)
    paths = [_output(model, inputs)] if layers is None else match_layers(model, layers)
    if tolerance is None:
        dtype = next(
            (p.dtype for p in model.parameters() if p.is_floating_point()),
            torch.float32,
        )
        tolerance = _TOLERANCES.get(dtype, _TOLERANCE)
    # The shortest is padded most; with two more texts this took 2 s of SmolLM2-135M's planning.
    ends = np.argsort(inputs.lengths, kind="stable")[[0, -1]]
    probe = inputs if len(inputs) <= _FEW else inputs.subset(np.unique(ends))
    alone = [
        _read(model, probe.subset([text]), paths, False) for text in range(len(probe))
    ]
    best = Invariance(np.inf, tolerance, "model", inputs.padding_side, paths[0])
    for positions, laid in _ways(model, probe):
        difference, layer = _difference(model, laid, paths, positions == "mask", alone)
        result = Invariance(difference, tolerance, positions, laid.padding_side, layer)
        if difference <= tolerance:
            return result
        best = min(best, result, key=lambda way: way.difference)
    where = f"layer {best.layer!r}" if best.layer else "the output"
    raise BatchInvarianceError(
        f"{type(model).__name__} gives a text other activations in a padded batch than alone: "
        f"they differ by {best.difference:.2g} in {where}, relative to their norm, and "
        f"{best.tolerance:.2g} is allowed. Does it use its attention mask?"
    )


def shortened(inputs: Inputs, tokens: int) -> Inputs:
    """Return the beginnings of up to three texts: a shorter one, the longest, and another.

    Their lengths are to each other as those of the texts, and the longest has so many `tokens`.

    Examples
    --------
    >>> texts = Inputs.from_tokens([[1] * 8, [2] * 4, [3] * 6, [4] * 2])
    >>> shortened(texts, 4).lengths.tolist()
    [1, 4, 2]
    """
    order = np.argsort(inputs.lengths, kind="stable")
    chosen = list(dict.fromkeys([order[0], order[-1], order[len(order) // 3]]))
    share = min(1.0, tokens / int(inputs.lengths[order[-1]]))
    rows = [inputs.ids[i][inputs.mask[i]] for i in chosen]
    cut = [row[: max(1, int(len(row) * share))].tolist() for row in rows]
    return Inputs.from_tokens(cut, pad_token_id=inputs.pad_token_id).padded(
        inputs.padding_side
    )


def why_alone(
    model: nn.Module, inputs: Inputs, layers: str | Sequence[str] | None = None
) -> str:
    """Return why a model must read texts one by one, empty where batches do not matter.

    The beginnings of a few texts are read, once for a model: alone, and in one batch.

    Examples
    --------
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 4))
    >>> why_alone(model, Inputs.from_tokens([[1, 2, 3], [4, 5]]))
    ''
    """
    if model not in _alone:
        try:
            check_batch_invariance(
                model, shortened(inputs.padded("right"), _SHORT), layers
            )
            _alone[model] = ""
        except BatchInvarianceError as error:
            _alone[model] = str(error).removesuffix(" Does it use its attention mask?")
        except Exception:  # whoever reads it says what is wrong with it
            return ""
    return _alone[model]


def say_alone(why: str) -> None:
    """Warn that texts are read one by one."""
    warnings.warn(f"texts are read one by one: {why}", StudyWarning, stacklevel=3)


def _output(model: nn.Module, inputs: Inputs) -> str:
    """Return ``""``, the model itself, or the last module that gives a narrow row per token.

    That is one before a large vocabulary: of 262,000 tokens, two texts of 512 took 3 GB.
    """
    text = beginning(inputs)
    failure = None
    wide = True
    try:
        wide = _read(model, text, [""], False)[""].shape[1] > _WIDE
    except ArgumentError as error:
        failure = error
    last = _last_narrow(model, text) if wide else ""
    if failure is not None and not last:
        raise failure
    return last


def _last_narrow(model: nn.Module, text: Inputs) -> str:
    """Return which module runs last of those that give a narrow row for each token of each text.

    Rotary embeddings give rows of positions, the same ones for all texts.
    """
    batch = pair_of(text)[0]
    last = ""

    def take(path: str, output: Any) -> None:
        nonlocal last
        tensor = first_tensor(output)
        fits = isinstance(tensor, Tensor) and tensor.ndim == 3
        if (
            fits
            and tuple(tensor.shape[:2]) == batch.ids.shape
            and tensor.shape[2] <= _WIDE
        ):
            last = path

    paths = [path for path, _ in model.named_modules() if path]
    with quiet(model), watched(model, paths, take):
        run(model, batch)
    return last


def _ways(model: nn.Module, inputs: Inputs) -> list[tuple[str, Inputs]]:
    ways = [("model", inputs)]
    if takes(model, "position_ids"):
        ways.append(("mask", inputs))
    if inputs.padding_side == "left":
        ways.append(("right", inputs.padded("right")))
    return ways


def _difference(
    model: nn.Module,
    inputs: Inputs,
    paths: list[str],
    position_ids: bool,
    alone: list[dict[str, Tensor]],
) -> tuple[float, str]:
    try:
        together = _read(model, inputs, paths, position_ids)
    except NonFiniteError:
        return np.inf, paths[0]
    worst = 0.0
    where = paths[0]
    stops = np.cumsum(inputs.lengths).tolist()
    for text, (start, stop) in enumerate(zip([0, *stops], stops, strict=False)):
        for path in paths:
            single = alone[text][path]
            batched = together[path][start:stop]
            # Of a large vocabulary, few.
            rows = max(1, _VALUES // max(1, single[:1].numel()))
            parts = list(zip(single.split(rows), batched.split(rows), strict=True))
            error = math.hypot(
                *(float((b.double() - s.double()).norm()) for s, b in parts)
            )
            scale = math.hypot(*(float(s.double().norm()) for s, _ in parts))
            relative = error / scale if scale else float(error > 0)
            if relative > worst:
                worst = relative
                where = path
    return worst, where


def _read(
    model: nn.Module, inputs: Inputs, paths: list[str], position_ids: bool
) -> dict[str, Tensor]:
    """Return the activations of every unpadded token, in one batch."""
    text, column = np.nonzero(inputs.mask)
    sample = TokenSample(text, column - inputs.mask.argmax(axis=1)[text])
    collector = ActivationCollector(paths, inputs, sample, "cpu")
    feed(model, inputs.batches(len(inputs)), [collector], position_ids=position_ids)
    return collector.result()
