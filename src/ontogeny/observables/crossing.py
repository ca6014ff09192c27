"""The step from which on a loss stays below a line, or the right answer is the first one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

_RESAMPLED = 1000
_KEPT = 1000  # texts at most whose draws are kept: 8 MB
_TAIL = 0.025
# Nats per token by which a loss is below a line at least: float32 gives no finer answer.
_ROUNDING = 1e-5


@dataclass(frozen=True)
class Crossing:
    """When a curve went below a line for good.

    Parameters
    ----------
    step
        First step from which on it is below the line; infinite if it is not below at the last one.
    low, high
        95 % interval over texts. It reaches down to the step before, as the crossing lies between
        two checkpoints, and is infinite above where more than 2.5 % of the resamples never cross.
    """

    step: float
    low: float
    high: float

    @property
    def certain(self) -> bool:
        """Whether it went below the line for good with any such choice of texts."""
        return bool(np.isfinite(self.step) and np.isfinite(self.high))


def crossing(
    steps: np.ndarray,
    losses: np.ndarray,
    line: np.ndarray,
    weights: np.ndarray,
    random_state: int = 0,
) -> Crossing:
    """Return when the mean over texts of `losses` went below that of `line` for good.

    Texts are resampled, with their losses at all steps and their share of the line together: what
    makes a text hard for both moves neither.

    Parameters
    ----------
    steps
        (T,) training steps, increasing.
    losses
        (T, n) the loss of every text, NaN at steps that are missing.
    line
        (n,) what the line costs on every text, or (T, n) where it moves.
    weights
        (n,) number of predicted tokens; texts of weight 0 do not count.
    random_state
        Seed of the resampling.

    Examples
    --------
    >>> half = crossing(
    ...     np.array([0, 10, 20]),
    ...     np.array([[3.0] * 9, [2.0] * 9, [1.0] * 9]),
    ...     np.full(9, 1.5),
    ...     np.ones(9),
    ... )
    >>> half.step, half.low, half.high
    (20.0, 10.0, 20.0)
    """
    counted = weights > 0
    is_finite = np.isfinite(losses[:, counted]).all(axis=1)
    steps = np.asarray(steps, dtype=float)[is_finite]
    above = (losses - line)[is_finite][:, counted] + _ROUNDING
    excess = above * weights[counted]
    if not len(steps) or not counted.any():
        return Crossing(np.nan, np.nan, np.nan)
    count = excess.shape[1]
    first = _first_below(drawn_texts(count, random_state) @ excess.T)
    after = np.append(steps, np.inf)
    before = np.append(steps[:1], steps)
    low = np.quantile(before[first], _TAIL, method="inverted_cdf")
    high = np.quantile(after[first], 1 - _TAIL, method="inverted_cdf")
    whole = _first_below(excess.sum(axis=1)[None])[0]
    return Crossing(float(after[whole]), float(low), float(high))


def drawn_texts(count: int, random_state: int = 0) -> np.ndarray:
    """Return (1000, count) how often each text is drawn when `count` are drawn of as many.

    They are the same at every call, and those of few texts are kept: every curve asks for them.

    Examples
    --------
    >>> drawn_texts(12).sum(axis=1)[:3]
    array([12., 12., 12.])
    """
    draw = _kept_draws if count <= _KEPT else _draws
    return draw(count, random_state)


def _draws(count: int, random_state: int) -> np.ndarray:
    rng = np.random.default_rng(random_state)
    times = rng.multinomial(count, np.full(count, 1 / count), size=_RESAMPLED)
    return times.astype(np.float64)


@lru_cache(maxsize=4)
def _kept_draws(count: int, random_state: int) -> np.ndarray:
    times = _draws(count, random_state)
    times.flags.writeable = False
    return times


def _first_below(sums: np.ndarray) -> np.ndarray:
    """Return for each row the first place from which on all sums are negative, or their number."""
    above = sums >= 0
    return np.where(
        above.any(axis=1), above.shape[1] - above[:, ::-1].argmax(axis=1), 0
    )


def leads_from(steps: np.ndarray, leads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return from which step on the right answers lead, and the step before that one.

    Parameters
    ----------
    steps
        (T,) training steps, increasing.
    leads
        (T, ...) 1 where the right answer is the first one, 0 where not, NaN at steps that are
        missing, which are left out.

    Returns
    -------
    step, before
        The first step from which on it leads at every later one, and the step before it: the lead
        begins between the two, and before any step where they are equal. NaN where it does not
        lead at the last step. Whether a lead at the last step alone would last cannot be told.

    Examples
    --------
    >>> leads_from(np.array([0, 10, 20]), np.array([[0, 1, 1], [1, 1, 0], [1, 1, 0]]))
    (array([10.,  0., nan]), array([ 0.,  0., nan]))
    """
    leads = np.asarray(leads, dtype=np.float64)
    is_complete = np.isfinite(leads).reshape(len(leads), -1).all(axis=1)
    steps = np.asarray(steps, dtype=np.float64)[is_complete]
    first = leads[is_complete] > 0
    if not len(steps):
        nothing = np.full(leads.shape[1:], np.nan)
        return nothing, nothing.copy()
    trailing = np.logical_and.accumulate(first[::-1], axis=0).sum(axis=0)
    begin = len(steps) - trailing
    padded = np.append(steps, np.nan)
    return padded[begin], np.where(
        trailing > 0, steps[np.maximum(begin - 1, 0)], np.nan
    )
