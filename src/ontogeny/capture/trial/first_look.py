"""What is looked at once of a model whose code is no library's, before its numbers are believed.

A few tokens are read, beside the same with another second half, several times. That shows whether
the model gives the same again, also after another text, on which side it adds tokens of its own,
and what it makes of the mask and the targets that it is given.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from torch import Tensor, nn

from ...errors import ArgumentError
from ...inputs import Inputs
from ...inputs.batches import Batch
from ..forward import (
    AFTER,
    BEFORE,
    UNKNOWN,
    first_tensor,
    is_added_to,
    is_without_targets,
    note_side,
    quiet,
    run,
    takes,
    without_targets,
)
from ..logits import logits_of
from ..outputs import apart
from ..sites import watched
from .steadiness import (
    other_ids,
    others_kept,
    seeded,
    unused_copy,
    why_across,
    why_random,
    why_remembering,
)

_KERNELS = 100.0  # by which attention with a mask rounds otherwise than without
_DRAWN = 512  # tokens of a model that draws random numbers
_TOKENS = 13  # of SmolLM2-135M two times 64 took 1.3 s, again in every process
_LIBRARIES = ("torch", "transformers", "ontogeny", "ontogeny_papers")
# What is wrong with a model. A second look would not see what it kept in the first.
_seen: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()


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
    return any(
        type(p).__module__.partition(".")[0] not in _LIBRARIES for p in model.modules()
    )


def pair_of(inputs: Inputs, tokens: int = _TOKENS) -> tuple[Batch, int]:
    """Return the first tokens of the longest text with the same, another second half, as a batch.

    And where the second half begins. The number of tokens is odd, so that a model that pads to a
    multiple of its window does so; but where all texts have one length it is that one, as some
    models take no other.
    """
    longest = int(inputs.lengths.argmax())
    ids = inputs.ids[longest][inputs.mask[longest]][None, :tokens]
    has_one_length = bool((inputs.lengths == ids.shape[1]).all())
    if not has_one_length and ids.shape[1] > 2 and ids.shape[1] % 2 == 0:
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
    # Another id of the vocabulary everywhere.
    other[:, half:] = np.where(after > 0, after - 1, 1)
    return other, half


def look_at(model: nn.Module, inputs: Inputs) -> None:
    """Look at a model once, where it is no library's; nothing is done where it cannot be run.

    Raises
    ------
    ArgumentError
        If it gives other numbers when the same tokens are read again, or by what it is given beside
        them.

    Examples
    --------
    >>> look_at(nn.Sequential(nn.Embedding(9, 4)), Inputs.from_tokens([[1, 2, 3]]))
    """
    if model not in _seen and len(inputs) and is_own(model):
        batch, half = pair_of(inputs)
        try:
            with quiet(model), others_kept():
                _seen[model] = _looked_at(model, inputs, batch, half)
        except Exception:  # whoever reads it says what is wrong with it
            return
    if wrong := _seen.get(model):
        raise ArgumentError(wrong)


def _looked_at(model: nn.Module, inputs: Inputs, batch: Batch, half: int) -> str:
    """Note how a model is to be run, and return what is wrong with it."""
    unused = unused_copy(model)
    sides = _Sides(batch, half)
    _choose_targets(model, batch)
    if unused is not None:
        without_targets(unused, is_without_targets(model))
    with watched(model, [path for path, _ in model.named_modules()], sides.take):
        first, drew = seeded(model, batch, 1)
    note_side(model, sides.side)
    if drew and (wrong := why_random(model, pair_of(inputs, _DRAWN)[0])):
        return wrong
    return (
        why_remembering(model, batch, first, unused, drew)
        or _why_given(model, batch, first)
        or why_across(model, batch)
    )


def _why_given(model: nn.Module, batch: Batch, first: Any) -> str:
    """Return what a model makes of its mask or its targets that it must not."""
    name = type(model).__name__
    takes_targets = takes(model, "targets") and not is_without_targets(model)
    if takes_targets and (
        change := apart(first, run(model, batch, targets=other_ids(batch)))
    ):
        return (
            f"{name} uses its targets for its logits: with other targets they differ by "
            f"{change:.2%}. Let it compute logits of every token from the token ids alone."
        )
    with suppress(Exception):  # it needs its mask
        bare = run(model, batch, mask=False)
        if change := apart(first, bare, kernels=_KERNELS):
            return (
                f"{name} gives other outputs with an attention_mask of ones than without: they "
                f"differ by {change:.2%}. Ones say that nothing is padding, and must change "
                "nothing; call a mask in which 1 means something else otherwise, and it is left "
                "out."
            )
    return ""


def _choose_targets(model: nn.Module, batch: Batch) -> None:
    """Find out whether a model that takes targets gives logits of every token without them.

    Then it is given none: with them it may do more than compute a loss.
    """
    without_targets(model, False)
    # Of one token, the last is every one.
    if not takes(model, "targets") or batch.ids.shape[1] < 2:
        return
    without_targets(model, True)
    fits = False
    with suppress(Exception):  # it needs them
        fits = _fits(run(model, batch), batch)
    without_targets(model, fits)


def _fits(output: Any, batch: Batch) -> bool:
    logits = logits_of(output)
    shape = batch.ids.shape
    whole = isinstance(logits, Tensor) and logits.ndim == 3
    return whole and (tuple(logits.shape[:2]) == shape or is_added_to(logits, shape))


class _Sides:
    """Finds out on which side of a text a model adds tokens of its own.

    The second halves of two texts differ from `half` on. In the first module that mixes no tokens,
    and in every module of a causal model, the first row that differs is that of the first token
    that does: at `half` if what is added comes after the text, by as many rows later if before it.
    """

    def __init__(self, batch: Batch, half: int) -> None:
        self._shape = batch.ids.shape
        self._half = half
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
        elif first not in (0, added):
            # These are mixed in both directions, which shows nothing.
            self._found.add(UNKNOWN)

    @property
    def side(self) -> str:
        """The side; `UNKNOWN` also where nothing is added to this text."""
        return self._found.pop() if len(self._found) == 1 else UNKNOWN
