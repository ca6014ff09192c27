"""How sure a count is beside the counts of control runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..multiple_tests import holm
from ..tails import binomial_above
from .vocabulary import Certainty, Reason

_LEVEL = 0.05


def sureness_of_counts(
    counts: Sequence[float], of_controls: Sequence[float]
) -> list[dict[str, Any]]:
    """Return how sure each count of one page is beside that of controls.

    More than one control run is no proof: the greater of two counts of the same process is the
    run's own every second time. So the excess is tested, corrected over all of the counts.

    Parameters
    ----------
    counts
        (N,) of the run.
    of_controls
        (N,) the greatest that a control run gives; NaN where there is none.

    Returns
    -------
    list of dict
        What a `Claim` takes: ``certainty``, where it is open ``reason``, and where controls
        exist ``p_value`` and ``corrected_over``.

    Examples
    --------
    >>> [each["certainty"].value for each in sureness_of_counts([12, 1, 3], [0, 0, 5])]
    ['sure', 'open', 'as controls']
    """
    p_values = holm(list(map(_p_of_more, counts, of_controls)))
    tests = sum(map(math.isfinite, p_values))
    return [
        {**_certainty(*each), "p_value": float(each[-1]), "corrected_over": tests}
        if math.isfinite(each[-1])
        else {"certainty": Certainty.NOT_TESTED, "reason": Reason.NO_CONTROLS}
        for each in zip(counts, of_controls, p_values, strict=True)
    ]


def _certainty(count: float, of_controls: float, p_value: float) -> dict[str, Any]:
    if p_value <= _LEVEL:
        return {"certainty": Certainty.SURE}
    if count <= of_controls:
        return {"certainty": Certainty.AS_CONTROLS}
    return {"certainty": Certainty.OPEN, "reason": Reason.WITHIN_CHANCE}


def _p_of_more(count: float, of_controls: float) -> float:
    """Return how likely a count is that much more than that of controls by chance.

    Were both as frequent, each of all would be one of the run's own with probability 1/2.
    """
    if not math.isfinite(of_controls):
        return math.nan
    return binomial_above(count - 1, count + of_controls, 0.5)
