"""The life of each concept, read off its strength and readability over the checkpoints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

HALF = 0.5  # of its peak: a concept is there
QUARTER = 0.25  # it is not there yet
SECOND = 0.1  # below `readable`, which a concept must reach at a second checkpoint
SAME = 0.5  # mean whitened cosine above which a younger concept has grown out of an older one
INSIDE = 0.8  # whitened cosine above which a concept is nothing but an older one as yet
GROWS = 0.8  # of its later strength: what one that is born inside another has before
STAYS = 3  # checkpoints in a row at which one that was born must be readable
SETTLED = 0.25  # of its peak, by which a settled strength still moves

KINDS = ("no concept", "from the start", "born", "grows", "fires on more tokens")


@dataclass(frozen=True, eq=False)
class Lives:
    """The lives of r latents over S checkpoints; checkpoints are indexes, -1 means none.

    Attributes
    ----------
    kind
        (r,) text:

        - ``"no concept"``: not readable from the activations of two checkpoints
        - ``"from the start"``: at half of its peak at the first checkpoint
        - ``"born"``: later, and below a quarter of its peak at a checkpoint before
        - ``"grows"``: later, but never below a quarter
        - ``"fires on more tokens"``: it looks born, but writes what an older concept writes, on
          other tokens
    start
        (r,) first checkpoint at half of its peak.
    gone
        (r,) first checkpoint from which on it stays below a quarter of its peak.
    settled
        (r,) first checkpoint from which on its strength stays within a quarter of the peak around
        its last value; -1 where that is the last checkpoint, or it is gone.
    steady
        (r,) whether it is there at every checkpoint.
    confirmed
        (r,) whether it stays readable: at three checkpoints in a row, from its start or the one
        after on, or at all of the last two. A single checkpoint proves no birth, so one at the last
        checkpoint is never confirmed.
    grown_out_of
        (r,) the older concept that it shares its decoders with.
    inside
        (r,) the older concept inside of which it was born: it fires where that one fires, and
        wrote nothing of its own before.
    own_share
        (S, r) part of its strength that is its own: 1, but for concepts born inside another.
    """

    kind: np.ndarray
    start: np.ndarray
    gone: np.ndarray
    settled: np.ndarray
    steady: np.ndarray
    confirmed: np.ndarray
    grown_out_of: np.ndarray
    inside: np.ndarray
    own_share: np.ndarray

    @property
    def is_concept(self) -> np.ndarray:
        """(r,) whether a latent is a concept."""
        return np.asarray(self.kind != "no concept")

    @property
    def born(self) -> np.ndarray:
        """(r,) checkpoint at which it was born, -1 for others and for births not confirmed."""
        return np.where((self.kind == "born") & self.confirmed, self.start, -1)


def lives(
    strength: np.ndarray,
    readable: np.ndarray,
    whitened: np.ndarray,
    threshold: float = 0.6,
) -> Lives:
    """Return the lives of latents.

    Parameters
    ----------
    strength, readable
        (S, r), as `Presence` has them.
    whitened
        (S, r, r) inner products of decoders where activations are white.
    threshold
        Readability that a concept must reach at its best checkpoint; at a second one it must
        reach 0.1 less.
    """
    S, r = strength.shape
    concept = is_concept(readable, threshold)
    cosine = _cosines(whitened)
    start = first_half(strength)
    alive = strength >= HALF * strength.max(axis=0)
    is_readable = readable.max(axis=0) >= threshold - SECOND
    born = was_low(strength, start)
    share = np.ones((S, r))
    inside = np.full(r, -1)
    for j in np.flatnonzero(concept & ~born).tolist():
        older = np.flatnonzero(is_readable & (cosine[0, j] > INSIDE))
        for i in older[older != j].tolist():
            part = _own_part(j, i, strength, cosine, whitened, alive)
            if part is not None:
                share[:, j] = part
                inside[j] = i
                start[j] = first_half(strength[:, [j]] * part[:, None])[0]
                born[j] = True
    grown = np.full(r, -1)
    for j in np.flatnonzero(concept & born & (inside < 0)).tolist():
        grown[j] = _grown_out_of(j, start, is_readable, alive, cosine)
    kind = np.select(
        [~concept, grown >= 0, born, start == 0],
        ["no concept", "fires on more tokens", "born", "from the start"],
        "grows",
    )
    effective = strength * share
    gone = _gone(effective)
    return Lives(
        kind=kind,
        start=start,
        gone=gone,
        settled=_settled(effective, gone),
        steady=concept & (effective >= HALF * effective.max(axis=0)).all(axis=0),
        confirmed=confirmed(readable >= threshold - SECOND, start),
        grown_out_of=grown,
        inside=inside,
        own_share=share,
    )


def is_concept(readable: np.ndarray, threshold: float) -> np.ndarray:
    """Return (r,) whether latents are readable (S, r) at a checkpoint, and at another one."""
    enough = (readable >= threshold - SECOND).sum(axis=0) >= min(2, len(readable))
    return np.asarray((readable.max(axis=0) >= threshold) & enough)


def first_half(strength: np.ndarray) -> np.ndarray:
    """Return the first checkpoint (..., r) at half of the peak of strengths (..., S, r)."""
    return np.asarray(
        (strength >= HALF * strength.max(axis=-2, keepdims=True)).argmax(axis=-2)
    )


def was_low(strength: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return (..., r) whether a checkpoint before `start` had less than a quarter of the peak."""
    low = strength < QUARTER * strength.max(axis=-2, keepdims=True)
    before = np.arange(strength.shape[-2])[:, None] < start[..., None, :]
    return np.asarray((low & before).any(axis=-2))


def _cosines(whitened: np.ndarray) -> np.ndarray:
    length = np.sqrt(np.maximum(np.einsum("sjj->sj", whitened), 1e-30))
    return np.asarray(whitened / (length[:, :, None] * length[:, None, :]))


def _own_part(
    j: int,
    i: int,
    strength: np.ndarray,
    cosine: np.ndarray,
    whitened: np.ndarray,
    alive: np.ndarray,
) -> np.ndarray | None:
    """Return the part (S,) of the strength of j that is its own, where j was born inside i.

    A concept that fires only where i fires takes over what i writes there, also before it exists.
    So its decoders equal those of i at first, and it grows where i does not.
    """
    like = cosine[:, j, i] > INSIDE
    until = len(like) if like.all() else int(np.argmin(like))
    if until in (0, len(like)) or not alive[:until, i].all():
        return None
    rise = [
        strength[:until, k].mean() / max(strength[until:, k].max(), 1e-30)
        for k in (j, i)
    ]
    if rise[0] > GROWS or rise[1] <= rise[0]:
        return None
    gram = whitened.astype(np.float64)
    # As long as j is nothing but i, j writes this multiple of what i writes; j's own part at any
    # checkpoint is the length of what its decoder has beyond that.
    factor = gram[:until, j, i].sum() / gram[:until, i, i].sum()
    residual = gram[:, j, j] - 2 * factor * gram[:, j, i] + factor**2 * gram[:, i, i]
    part = np.sqrt(np.clip(residual / np.maximum(gram[:, j, j], 1e-30), 0, 1))
    curve = (strength[:, j] * part)[:, None]
    return part if was_low(curve, first_half(curve))[0] else None


def _grown_out_of(
    j: int,
    start: np.ndarray,
    candidates: np.ndarray,
    alive: np.ndarray,
    cosine: np.ndarray,
) -> int:
    """Return the older latent whose decoders j shares, -1 for none.

    The older one may fade as the younger one takes over its tokens: a concept that comes to fire on
    more tokens is the same where the younger one is there.
    """
    older = np.flatnonzero(candidates & (start < start[j]))
    mean = cosine[alive[:, j]][:, j, older].mean(axis=0)
    return int(older[mean.argmax()]) if len(older) and mean.max() > SAME else -1


def confirmed(readable: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return (r,) whether latents stay readable (S, r) after their start."""
    S = len(readable)
    rows = np.arange(len(start))
    # How often in a row, from each checkpoint on.
    row = np.zeros((S + 2, len(start)), dtype=int)
    for t in reversed(range(S)):
        row[t] = np.where(readable[t], row[t + 1] + 1, 0)
    is_confirmed = np.zeros(len(start), dtype=bool)
    # At its very start a latent is still weak, so the row of readable checkpoints may begin one
    # later. The zero rows at the end let `start + 1` point beyond the last checkpoint.
    for first in (start, start + 1):
        is_confirmed |= row[first, rows] >= np.clip(S - first, 2, STAYS)
    return is_confirmed


def _gone(strength: np.ndarray) -> np.ndarray:
    """Return the checkpoint (r,) from which on latents stay below a quarter of their peak."""
    present = strength >= QUARTER * strength.max(axis=0)
    after = len(strength) - present[::-1].argmax(axis=0)
    return np.where(after < len(strength), after, -1)


def _settled(strength: np.ndarray, gone: np.ndarray) -> np.ndarray:
    """Return the checkpoint (r,) from which on latents stay near their last strength."""
    last = len(strength) - 1
    moves = np.abs(strength - strength[-1]) > SETTLED * strength.max(axis=0)
    first = np.where(moves.any(axis=0), len(strength) - moves[::-1].argmax(axis=0), 0)
    return np.where((gone >= 0) | (first >= last), -1, first)
