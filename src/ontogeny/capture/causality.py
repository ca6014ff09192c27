"""Whether what a model says of a token depends on the tokens that follow it."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

import numpy as np
from torch import Tensor, nn

from ..errors import ArgumentError
from ..inputs import Inputs
from .forward import quiet, run
from .logits import logits_of

# Largest change, relative to the norm, that rounding explains: both passes have one shape.
ROUNDING = 1e-5

_HALF_ROUNDING = 1e-3
_TOKENS = 16  # of SmolLM2-135M two passes of 64 took 1.3 s, again in every process
_causal: WeakSet[nn.Module] = WeakSet()  # whether it holds is the class's matter, not the weights'


def changed_after(ids: np.ndarray) -> tuple[np.ndarray, int]:
    """Return token ids (n, L) whose second halves differ everywhere, and where those begin.

    Examples
    --------
    >>> changes, half = changed_after(np.array([[5, 6, 7, 0]]))
    >>> changes.tolist(), half
    ([[5, 6, 6, 1]], 2)
    """
    half = (ids.shape[1] + 1) // 2
    after = ids[:, half:]
    other = ids.copy()
    other[:, half:] = np.where(after > 0, after - 1, 1)  # another id of the vocabulary everywhere
    return other, half


def check_causal(model: nn.Module, inputs: Inputs) -> None:
    """Check that a model predicts the next token from those before it alone.

    The first tokens of the longest text are read twice, with another second half the second time.
    What is predicted in the first half must be the same. A module is checked once.

    Raises
    ------
    ArgumentError
        If a prediction changes with the tokens that follow.

    Examples
    --------
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))
    >>> check_causal(model, Inputs.from_tokens([[1, 2, 3], [4, 5]]))
    """
    longest = int(inputs.lengths.argmax())
    ids = inputs.ids[longest][inputs.mask[longest]][None, :_TOKENS]
    if model in _causal or ids.shape[1] < 2:
        return
    other, half = changed_after(ids)
    with quiet(model):
        first, second = (_logits(model, tokens) for tokens in (ids, other))
    if first is None or second is None:
        return  # whoever reads the logits says what is wrong with them
    apart = relative_change(first[:, :half], second[:, :half])
    if not np.isfinite(apart):
        return  # the same: such weights say nothing of the module
    if apart > (ROUNDING if first.element_size() >= 4 else _HALF_ROUNDING):
        raise ArgumentError(
            f"{type(model).__name__} is not causal: what it predicts in the first {half} tokens of "
            f"a text changes by {apart:.1%} with the tokens that follow, so it sees what it "
            "predicts. Load it as a decoder (is_decoder=True in its configuration), or give "
            "objective='masked'."
        )
    _causal.add(model)


def relative_change(first: Tensor, second: Tensor) -> float:
    """Return the norm of the difference, relative to that of the first, which may be NaN.

    Examples
    --------
    >>> import torch
    >>> relative_change(torch.tensor([3.0, 4.0]), torch.tensor([3.0, 9.0]))
    1.0
    """
    first, second = (tensor.detach().cpu().double() for tensor in (first, second))
    size = max(float(first.norm()), float(np.finfo(np.float32).tiny))
    return float((first - second).norm()) / size


def _logits(model: nn.Module, ids: np.ndarray) -> Tensor | None:
    inputs = Inputs.from_tokens(ids, mask=np.ones(ids.shape, dtype=bool))
    logits: Any = logits_of(run(model, inputs.batches(1)[0]))
    tokens = isinstance(logits, Tensor) and logits.ndim == 3 and logits.shape[1] == ids.shape[1]
    return logits if tokens else None
