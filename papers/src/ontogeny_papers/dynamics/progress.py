"""Approach, bound and quiet of a series (Definitions 11 and 12): what was observed of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ontogeny.dynamics.series import RESOLUTION, checked_series, checked_steps, floors
from ontogeny.errors import ArgumentError

FEWEST_QUIET = 3
NAN = np.nan


@dataclass(frozen=True)
class LearningProgress:
    """What `learning_progress` observed; nothing is said of steps beyond the last one.

    Parameters
    ----------
    progressed
        Definition 11, which calls it learning progress: from `since` to the last step all values
        lay below the first one by more than the noise. The distance to the last point of a random
        walk does that too.
    since
        The observed T; NaN without progress.
    bound
        Definition 12: the observed C, the largest change between neighbouring checkpoints. Any
        finite series has one: "stable" says nothing on finite data, its size does.
    bound_step
        The later step of that change.
    late_bound
        The largest change in the later half of the checkpoints.
    converged
        From `quiet_since` to the last step, over at least three changes, none exceeded the noise,
        and an earlier one did. Vanishing changes do not imply that the values converge.
    quiet_since
        NaN where the last changes exceed the noise, or too few are left.
    never_moved
        No change ever exceeded the noise: there is nothing that could have converged.
    last_step
        The last step observed.
    """

    progressed: bool
    since: float
    bound: float
    bound_step: float
    late_bound: float
    converged: bool
    quiet_since: float
    never_moved: bool
    last_step: float

    @property
    def sentences(self) -> tuple[str, str, str]:
        """Progress, stability and convergence in words."""
        until = f"up to step {self.last_step:,.0f}"
        if self.progressed:
            progress = (
                f"Below its first value from step {self.since:,.0f} {until}, as a walk's distance "
                "to its end would be."
            )
        else:
            progress = f"Not for good below its first value {until}."
        stable = (
            f"No change between neighbouring checkpoints exceeded {self.bound:.3g} "
            f"(step {self.bound_step:,.0f}) {until}; {self.late_bound:.3g} in the later half."
        )
        if self.never_moved:
            convergent = f"No change exceeded the noise {until}: nothing moved."
        elif self.converged:
            convergent = f"Changes stayed within the noise from step {self.quiet_since:,.0f} {until}."
        else:
            convergent = (
                "Changes still exceeded the noise near the end: no convergence was observed "
                f"{until}."
            )
        return progress, stable, convergent


def learning_progress(
    steps: ArrayLike,
    distance_to_reference: ArrayLike,
    noise: ArrayLike = 0.0,
    *,
    reference_index: int | None = None,
) -> LearningProgress:
    """Say which of Definitions 11 and 12 a series fulfilled, as far as it was observed.

    Parameters
    ----------
    steps
        Training steps (T,), increasing, from 0.
    distance_to_reference
        Series (T,) that falls where something is learned; negate one that rises. NaN where a
        checkpoint is missing.
    noise
        Noise of a *difference* of two values as refitting or resampling gives it (as the floor of
        `development`): a number or (T,).
    reference_index
        Position of the reference checkpoint, where the distance is 0 by construction; left out.

    Returns
    -------
    LearningProgress
        With the observed T and C.

    Raises
    ------
    ArgumentError
        If steps do not increase, shapes do not fit, or fewer than 3 values are left.
    NonFiniteError
        If a value is infinite or the noise not finite.

    Notes
    -----
    T and C of the definitions quantify over all later steps of an endless training; no finite
    series can prove or refute them, nor changes between the checkpoints.

    Source: Bernas 2025, Definitions 11 and 12, Remark 5.

    Examples
    --------
    >>> steps = np.arange(8) * 100
    >>> curve = learning_progress(
    ...     steps, [1.0, 1.02, 0.6, 0.3, 0.2, 0.2, 0.21, 0.2], noise=0.05
    ... )
    >>> (
    ...     curve.progressed,
    ...     curve.since,
    ...     round(curve.bound, 2),
    ...     curve.converged,
    ...     curve.quiet_since,
    ... )
    (True, 200.0, 0.42, True, 400.0)
    >>> curve.sentences[0]
    "Below its first value from step 200 up to step 700, as a walk's distance to its end would be."
    """
    times = checked_steps(steps)
    series = checked_series(
        "distance_to_reference", distance_to_reference, times, reference_index
    )
    there = ~np.isnan(series)
    if there.sum() < 3:
        raise ArgumentError(f"at least 3 values are needed; got {there.sum()}.")
    floor = floors(noise, None, series)[there]
    t = times[there]
    m = series[there]
    since = _first_for_good(m < m[0] - floor)
    changes = np.abs(np.diff(m))
    quiet = changes <= np.maximum(floor[1:], RESOLUTION * np.abs(m).max())
    start = _first_for_good(quiet)
    calm = start is not None and len(quiet) - start >= FEWEST_QUIET and not quiet.all()
    largest = int(np.argmax(changes))
    return LearningProgress(
        progressed=since is not None,
        since=NAN if since is None else float(t[since]),
        bound=float(changes[largest]),
        bound_step=float(t[largest + 1]),
        late_bound=float(changes[len(changes) // 2 :].max()),
        converged=bool(calm),
        quiet_since=float(t[start]) if calm and start is not None else NAN,
        never_moved=bool(quiet.all()),
        last_step=float(t[-1]),
    )


def _first_for_good(holds: np.ndarray) -> int | None:
    """Return the first position from which on something holds to the end, or None."""
    fails = np.flatnonzero(~holds)
    start = int(fails[-1]) + 1 if len(fails) else 0
    return start if start < len(holds) else None
