"""Which test decided that a series is not called changed."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

CHANCE = 0.05  # level of one row against any order of its steps, and against slow noise


class Reason(StrEnum):
    """The first test that a series failed, in the order in which they are asked.

    Of those in `OPEN` nothing can be said: no change is neither shown nor ruled out.
    """

    NONE = ""
    UNMEASURED = "noise not measured"
    FEW = "few checkpoints"
    MANY = "few checkpoints for so many rows"
    WITHIN = "within noise"
    ORDER = "order"
    REFERENCE = "memory of the reference"
    SHORT = "short memory"
    EXAMPLES = "examples that turned"
    SLOW = "slow noise"


OPEN = (Reason.UNMEASURED, Reason.FEW, Reason.MANY, Reason.REFERENCE, Reason.SLOW)


def reasons(
    *,
    noise_known: np.ndarray,
    tested: np.ndarray,
    reachable: np.ndarray,
    moved: np.ndarray,
    p_order: np.ndarray,
    shown: np.ndarray,
    only_memory: np.ndarray,
    p_slow: np.ndarray,
) -> np.ndarray:
    """Return for each series the `Reason` why it is not called changed, as text.

    Parameters
    ----------
    noise_known, tested, reachable, moved
        Whether the noise was measured, there are enough steps for a test, these can reach the level
        among so many series, and the change is larger than its noise.
    p_order, p_slow
        P-values against any order of the steps, and against slow noise; each counts by itself.
    shown
        Whether the corrected p-value reaches its level.
    only_memory
        Whether it does so without the memory of the reference alone.

    Examples
    --------
    >>> yes, no = np.array([True, True]), np.array([False, False])
    >>> reasons(
    ...     noise_known=yes,
    ...     tested=yes,
    ...     reachable=yes,
    ...     moved=yes,
    ...     p_order=np.array([0.001, 0.2]),
    ...     shown=yes,
    ...     only_memory=no,
    ...     p_slow=np.array([0.3, 0.3]),
    ... ).tolist()
    ['slow noise', 'order']
    """
    failed = {
        Reason.UNMEASURED: ~noise_known,
        Reason.FEW: ~tested,
        Reason.MANY: ~reachable,
        Reason.WITHIN: ~moved,
        Reason.ORDER: np.nan_to_num(p_order, nan=1.0) > CHANCE,
        Reason.REFERENCE: only_memory,
        Reason.SHORT: ~shown,
        Reason.SLOW: np.nan_to_num(p_slow, nan=1.0) > CHANCE,
    }
    found = np.select(
        list(failed.values()), [str(reason) for reason in failed], str(Reason.NONE)
    )
    return found.astype(object)
