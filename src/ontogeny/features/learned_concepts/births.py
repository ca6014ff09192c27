"""When components came to be: in several fits, each of them also without one checkpoint."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

READABLE = 0.6  # correlation with a read-out on other texts, from which on a component is there
UNREADABLE = 0.4  # below it a component cannot be read
# Of its peak: strength from which on it is there, below which it is not.
PRESENT = 0.5
ABSENT = 0.25
STILL = 0.5  # |cosine| of first and last decoder, below which a component has turned
NONE = -1

BORN = "born"
GROWS = "grows"
START = "from the start"
NEVER = "not readable"


class Curves(NamedTuple):
    """Components at S checkpoints in F fits: to all texts, to each half of them, and others.

    Attributes
    ----------
    readable
        (F, S, r) correlation with a read-out of the checkpoint, on texts that it does not know;
        0 where a fit has no such component.
    strength
        (F, S, r) root of the share of the checkpoint's variance that it writes.
    """

    readable: np.ndarray
    strength: np.ndarray


class Rise(NamedTuple):
    """Between which checkpoints components rise in one fit; indexes (..., r).

    Attributes
    ----------
    start
        First checkpoint at which a component is there; -1: at none.
    after
        Last checkpoint before `start` at which it is absent; -1: at none.
    born
        Whether it is absent at every checkpoint up to `after`, and there at the one after `start`.
    """

    start: np.ndarray
    after: np.ndarray
    born: np.ndarray


def rises(readable: np.ndarray, strength: np.ndarray) -> Rise:
    """Return between which checkpoints curves (..., S, r) rise.

    Examples
    --------
    >>> curve = np.array(
    ...     [[0.1, 0.1, 0.5], [0.1, 0.7, 0.1], [0.9, 0.2, 0.9], [0.9, 0.9, 0.9]]
    ... )
    >>> rise = rises(curve, curve)
    >>> rise.start.tolist(), rise.after.tolist(), rise.born.tolist()
    ([2, 1, 2], [1, 0, 1], [True, False, False])
    """
    there, absent = presence(readable, strength)
    count = there.shape[-2]
    place = np.arange(count)[:, None]
    start = np.where(there.any(axis=-2), there.argmax(axis=-2), NONE)
    before = absent & (place < start[..., None, :])
    after = np.where(before, place, NONE).max(axis=-2)
    # "Cannot be read at any checkpoint before its rise": one dip of what was readable is no birth.
    known_before = (~absent & (place <= after[..., None, :])).any(axis=-2)
    following = np.minimum(start + 1, count - 1)[..., None, :]
    stays = np.take_along_axis(there, following, axis=-2)[..., 0, :] & (
        start < count - 1
    )
    return Rise(start, after, (after >= 0) & ~known_before & stays)


def presence(
    readable: np.ndarray, strength: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return at which checkpoints (..., S, r) components are there, and at which absent."""
    share = strength / np.maximum(np.nanmax(strength, axis=-2, keepdims=True), 1e-30)
    there = (readable >= READABLE) & (share >= PRESENT)
    return there, (readable < UNREADABLE) & (share < ABSENT)


class Lives(NamedTuple):
    """The lives of r components; checkpoints are indexes, -1 means none.

    Attributes
    ----------
    kind
        (r,) ``"born"``: absent at every checkpoint before its rise, in the fit to all texts and to
        each half, and unreadable where the first checkpoint has only grown; ``"from the start"``:
        there at the first checkpoint; ``"grows"``: there later; ``"not readable"``.
    start
        (r,) first checkpoint at which it is there.
    after, before
        (r,) between which checkpoints the births of all refits lie: other fits, and each of them
        without one checkpoint.
    share
        (r,) share of these refits that say born, of those made when the component was there.
    gone
        (r,) first checkpoint from which on it is absent up to the last, at two or more, in the fit
        to all texts and to each half.
    births
        (refits, r) whether the fits to all texts and to both halves, without one checkpoint each,
        say born.
    """

    kind: np.ndarray
    start: np.ndarray
    after: np.ndarray
    before: np.ndarray
    share: np.ndarray
    gone: np.ndarray
    births: np.ndarray


def lives(
    curves: Curves, fitted: np.ndarray | None = None, grown: np.ndarray | None = None
) -> Lives:
    """Return the lives of components whose first three fits are to all texts and to both halves.

    Parameters
    ----------
    curves
        Of F fits.
    fitted
        (F,) place of the checkpoint that each fit was made at; None: all at the last. What was not
        there yet is not found by a fit, which says nothing of its birth.
    grown
        (F, r) readability where the first checkpoint has only grown. What is readable there is
        not born: larger weights sharpen attention, and every component of a model that only grows
        becomes readable during its run.
    """
    count = curves.readable.shape[1]
    whole = rises(*curves)
    refits = [(np.arange(count), whole)]
    for left_out in range(count if count > 3 else 0):
        kept = np.delete(np.arange(count), left_out)
        refits.append((kept, rises(curves.readable[:, kept], curves.strength[:, kept])))
    born = np.stack([rise.born for _, rise in refits])
    if grown is not None:
        born &= ~(grown >= UNREADABLE)
    after = np.stack([kept[rise.after] for kept, rise in refits])
    start = np.stack([kept[rise.start] for kept, rise in refits])
    is_born = born[0, :3].all(axis=0)
    there, absent = presence(*(values[:3] for values in curves))
    kind = np.select(
        [is_born, whole.start[0] == 0, whole.start[0] > 0], [BORN, START, GROWS], NEVER
    )
    # How many checkpoints at the end it is absent at, in each of these fits.
    silent = absent[:, ::-1].argmin(axis=1).min(axis=0)
    had = there.any(axis=1).all(axis=0) & (silent > 1)
    return Lives(
        kind=kind,
        start=whole.start[0],
        after=np.where(is_born, np.where(born, after, count).min(axis=(0, 1)), NONE),
        before=np.where(is_born, np.where(born, start, NONE).max(axis=(0, 1)), NONE),
        share=_share(born, whole.start[0], fitted),
        gone=np.where(had, count - silent, NONE),
        births=np.concatenate(born[:, :3]),
    )


def _share(
    born: np.ndarray, start: np.ndarray, fitted: np.ndarray | None
) -> np.ndarray:
    """Return the share (r,) of refits (refits, F, r) that say born, of fits made since `start`."""
    counted = np.ones(born.shape[1:], dtype=bool)
    if fitted is not None:
        counted = fitted[:, None] >= start
    times = len(born) * np.maximum(counted.sum(axis=0), 1)
    return np.asarray((born & counted).sum(axis=(0, 1)) / times)
