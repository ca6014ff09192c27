"""What is looked at once of a model whose code is no library's, before its numbers are believed.

A few tokens are read, beside the same with another second half, twice. That shows whether the model
gives the same again, on which side it adds tokens of its own, and whether it flattens its logits
where it is given targets.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from weakref import WeakSet

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import ArgumentError
from ..inputs import Inputs
from ..inputs.batches import Batch
from .forward import (
    AFTER,
    BEFORE,
    UNKNOWN,
    device_of,
    first_tensor,
    is_added_to,
    note_side,
    quiet,
    run,
    takes,
    without_targets,
)
from .logits import logits_of
from .sites import watched

# Largest change, relative to the norm, that rounding explains: both are rows of one pass.
ROUNDING, HALF_ROUNDING = 1e-5, 1e-3
_TOKENS = 13  # of SmolLM2-135M two times 64 took 1.3 s, again in every process
_LIBRARIES = ("torch", "transformers", "ontogeny", "ontogeny_papers")
_seen: WeakSet[nn.Module] = WeakSet()


def is_own(model: nn.Module) -> bool:
    """Return whether a class of no library takes part in a model.

    A model that is put together of torch's modules alone counts as well.

    Examples
    --------
    >>> is_own(nn.Sequential(nn.Linear(2, 2)))
    True
    >>> from transformers import GPT2Config, GPT2Model
    >>> is_own(GPT2Model(GPT2Config(vocab_size=9, n_embd=4, n_head=2, n_layer=1)))
    False
    """
    if type(model).__module__.partition(".")[0] not in _LIBRARIES[1:]:
        return True
    return any(type(p).__module__.partition(".")[0] not in _LIBRARIES for p in model.modules())


def pair_of(inputs: Inputs) -> tuple[Batch, int]:
    """Return the first tokens of the longest text with the same, another second half, as a batch.

    And where the second half begins. The number of tokens is odd, so that a model that pads to a
    multiple of its window does so.
    """
    longest = int(inputs.lengths.argmax())
    ids = inputs.ids[longest][inputs.mask[longest]][None, :_TOKENS]
    if ids.shape[1] > 2 and ids.shape[1] % 2 == 0:
        ids = ids[:, :-1]
    other, half = changed_after(ids)
    return batch_of(np.concatenate([ids, other])), half


def batch_of(ids: np.ndarray) -> Batch:
    """Return token ids (n, L) without padding as one batch."""
    inputs = Inputs.from_tokens(ids, mask=np.ones(ids.shape, dtype=bool))
    return inputs.batches(len(ids))[0]


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


def look_at(model: nn.Module, inputs: Inputs) -> None:
    """Look at a model once, where it is no library's; nothing is done where it cannot be run.

    Raises
    ------
    ArgumentError
        If it gives other numbers when the same tokens are read again.

    Examples
    --------
    >>> look_at(nn.Sequential(nn.Embedding(9, 4)), Inputs.from_tokens([[1, 2, 3]]))
    """
    if model in _seen or not len(inputs) or not is_own(model):
        return
    batch, half = pair_of(inputs)
    sides = _Sides(batch, half)
    paths = [path for path, _ in model.named_modules()]
    try:
        with quiet(model):
            _choose_targets(model, batch)
            with watched(model, paths, sides.take):
                first = _seeded(model, batch, 1)
            note_side(model, sides.side)
            apart = _apart(first, _seeded(model, batch, 2))
            again = _apart(first, _seeded(model, batch, 1)) if apart else 0.0
    except Exception:  # whoever reads it says what is wrong with it
        return
    if apart:
        raise ArgumentError(_changes(model, apart, random=not again))
    _seen.add(model)


def _changes(model: nn.Module, apart: float, random: bool) -> str:
    name = type(model).__name__
    if random:
        return (
            f"{name} is random in evaluation mode: the same text read twice gives outputs that "
            f"differ by {apart:.2%}. Is dropout on, as functional.dropout is by default? Give it "
            "training=self.training."
        )
    return (
        f"{name} keeps something between its calls: the same text read twice gives outputs that "
        f"differ by {apart:.2%}. Let its forward begin anew with every call."
    )


def _seeded(model: nn.Module, batch: Batch, seed: int) -> Any:
    torch.default_generator.manual_seed(seed)  # others are restored on the model's device alone
    if (device := device_of(model)).type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)
    return run(model, batch)


def _apart(first: Any, second: Any) -> float:
    """Return how far apart two outputs for the same text are, 0 where rounding explains it."""
    one, other = output_tensor(first), output_tensor(second)
    if one is None or other is None or one.shape != other.shape:
        return 0.0
    apart = relative_change(one, other)
    allowed = ROUNDING if one.element_size() >= 4 else HALF_ROUNDING
    return apart if np.isfinite(apart) and apart > allowed else 0.0


def output_tensor(output: Any) -> Tensor | None:
    """Return the logits of a model's output, or else what it gives first."""
    tensor = logits_of(output)
    tensor = first_tensor(output) if tensor is None else tensor
    return tensor if isinstance(tensor, Tensor) and tensor.is_floating_point() else None


def relative_change(first: Tensor, second: Tensor) -> float:
    """Return the norm of the difference, relative to that of the first, which may be NaN.

    Examples
    --------
    >>> relative_change(torch.tensor([3.0, 4.0]), torch.tensor([3.0, 9.0]))
    1.0
    """
    first, second = (tensor.detach().cpu().double() for tensor in (first, second))
    size = max(float(first.norm()), float(np.finfo(np.float32).tiny))
    return float((first - second).norm()) / size


def _choose_targets(model: nn.Module, batch: Batch) -> None:
    """Find out whether a model that takes targets gives logits of every token without them."""
    if not takes(model, "targets") or _fits(run(model, batch), batch):
        return
    without_targets(model, True)
    fits = False
    with suppress(TypeError):  # it needs them
        fits = _fits(run(model, batch), batch)
    without_targets(model, fits)


def _fits(output: Any, batch: Batch) -> bool:
    logits, shape = logits_of(output), batch.ids.shape
    whole = isinstance(logits, Tensor) and logits.ndim == 3
    return whole and (tuple(logits.shape[:2]) == shape or is_added_to(logits, shape))


class _Sides:
    """Finds out on which side of a text a model adds tokens of its own.

    The second halves of two texts differ from `half` on. In the first module that mixes no tokens,
    and in every module of a causal model, the first row that differs is that of the first token
    that does: at `half` if what is added comes after the text, by as many rows later if before it.
    """

    def __init__(self, batch: Batch, half: int) -> None:
        self._shape, self._half = batch.ids.shape, half
        self._found: set[str] = set()

    def take(self, _path: str, output: Any) -> None:
        """Note what one module's output shows."""
        tensor = first_tensor(output)
        if not is_added_to(tensor, self._shape):
            return
        added = tensor.shape[1] - self._shape[1]
        rows = (tensor[0] != tensor[1]).any(dim=-1).nonzero()
        first = int(rows[0]) if len(rows) else 0
        if first in (self._half, added + self._half):
            self._found.add(AFTER if first == self._half else BEFORE)
        elif first not in (0, added):  # these are mixed in both directions, which shows nothing
            self._found.add(UNKNOWN)

    @property
    def side(self) -> str:
        """The side; `UNKNOWN` also where nothing is added to this text."""
        return self._found.pop() if len(self._found) == 1 else UNKNOWN
