"""Whether what a model predicts can be believed: logits, of what stands before the token alone."""

from __future__ import annotations

from weakref import WeakSet

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import ArgumentError
from ..inputs import Inputs
from .first_look import HALF_ROUNDING, ROUNDING, batch_of, is_own, look_at, pair_of, relative_change
from .forward import quiet, run, without_added
from .logits import logits_of

_SUM_TOLERANCE = 0.02  # a row of 50,000 bfloat16 probabilities misses 1 by less
# Whether it holds is the class's matter, not the weights'.
_causal: WeakSet[nn.Module] = WeakSet()
_logits: WeakSet[nn.Module] = WeakSet()


def check_causal(model: nn.Module, inputs: Inputs) -> None:
    """Check that a model predicts the next token from those before it alone.

    The first tokens of the longest text are read beside the same with another second half.
    What is predicted in the first half must be the same. A module is checked once.

    Raises
    ------
    ArgumentError
        If a prediction changes with the tokens that follow, or as `check_logits`.

    Examples
    --------
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))
    >>> check_causal(model, Inputs.from_tokens([[1, 2, 3], [4, 5]]))
    """
    look_at(model, inputs)
    if model in _causal or inputs.lengths.max(initial=0) < 2:
        return
    logits, half = _of_pair(model, inputs)
    if logits is None:
        return  # whoever reads them says what is wrong with them
    _refuse_probabilities(model, logits)
    apart = relative_change(*logits[:, :half])
    if not np.isfinite(apart):
        return  # the same: such weights say nothing of the module
    if apart > (ROUNDING if logits.element_size() >= 4 else HALF_ROUNDING):
        raise ArgumentError(
            f"{type(model).__name__} is not causal: what it predicts in the first {half} tokens of "
            f"a text changes by {apart:.1%} with the tokens that follow, so it sees what it "
            "predicts. Load it as a decoder (is_decoder=True in its configuration), or give "
            "objective='masked'."
        )
    _causal.add(model)


def check_logits(model: nn.Module, inputs: Inputs) -> None:
    """Check that a model returns logits, not probabilities. A module is checked once.

    Raises
    ------
    ArgumentError
        If its rows hold nothing negative and sum to 1, or are such numbers' negative logarithms;
        or as `look_at`.

    Examples
    --------
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9), nn.Softmax(-1))
    >>> check_logits(model, Inputs.from_tokens([[1, 2, 3], [4, 5]]))
    Traceback (most recent call last):
    ontogeny.errors.ArgumentError: Sequential returns probabilities: ...
    """
    look_at(model, inputs)
    if model in _logits or not len(inputs):
        return
    logits, _ = _of_pair(model, inputs)
    if logits is not None:
        _refuse_probabilities(model, logits)
        _logits.add(model)


def _refuse_probabilities(model: nn.Module, logits: Tensor) -> None:
    rows = logits.detach().flatten(0, -2).float()
    if rows.shape[-1] < 2 or bool((rows < 0).any()):
        return
    name = type(model).__name__
    if _sum_to_one(rows):
        raise ArgumentError(
            f"{name} returns probabilities: its rows hold nothing negative and sum to 1. Let it "
            "return logits, or the logarithms of the probabilities."
        )
    if _sum_to_one((-rows).exp()):
        raise ArgumentError(
            f"{name} returns negative log-probabilities. Let it return logits, or the logarithms "
            "of the probabilities themselves."
        )


def _sum_to_one(rows: Tensor) -> bool:
    return bool(((rows.sum(-1) - 1).abs() < _SUM_TOLERANCE).all())


def _of_pair(model: nn.Module, inputs: Inputs) -> tuple[Tensor | None, int]:
    """Return the logits of a text and of the same with another second half, which begins there.

    In a model of one's own each is read alone: one that mixes a batch, as statistics of it do,
    would change both alike.
    """
    batch, half = pair_of(inputs)
    batches = [batch_of(row[None]) for row in batch.ids] if is_own(model) else [batch]
    read = []
    with quiet(model):
        for one in batches:
            logits = without_added(logits_of(run(model, one)), one.ids.shape)
            if not isinstance(logits, Tensor) or tuple(logits.shape[:-1]) != one.ids.shape:
                return None, half
            read.append(logits)
    return torch.cat(read), half
