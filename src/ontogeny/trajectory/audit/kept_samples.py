"""A few weights of a run that stand in its result, by which two runs that are one are found."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..checkpoint import Checkpoint
from ..selection import spread
from .weight_values import sample_of

_STEPS = 8
_VALUES = 512  # of a checkpoint
_FEWEST = 32  # that have moved


def kept_samples(checkpoints: Sequence[Checkpoint]) -> dict[str, Any]:
    """Return evenly spaced weights of at most eight checkpoints, JSON-ready; empty without any.

    Parameters
    ----------
    checkpoints
        Those of a run. What is not on this machine is passed over.
    """
    here = {c.step: c for c in checkpoints if c.is_downloaded}
    values: dict[str, str] = {}
    layouts: set[str] = set()
    for step in spread(sorted(here), _STEPS, "linear") if here else ():
        sample = sample_of(here[step].weights)
        taken = sample.values[:: max(1, len(sample.values) // _VALUES)].astype("<f4")
        layouts.add(
            hashlib.blake2b(repr(sample.layout).encode(), digest_size=8).hexdigest()
        )
        # Without slashes: what is shared holds no path, and the usual letters looked like one.
        values[str(step)] = base64.urlsafe_b64encode(taken.tobytes()).decode()
    return {"layout": layouts.pop(), "values": values} if len(layouts) == 1 else {}


@dataclass(frozen=True)
class Alike:
    """How updates of two runs correlate, from the first step that both have to the last one."""

    first: int
    last: int
    correlation: float


def updates_alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> Alike | None:
    """Return how the updates of two runs correlate, None where that cannot be told.

    Parameters
    ----------
    one, other
        As `kept_samples` gives them.

    Examples
    --------
    >>> def kept(*values):
    ...     steps = {
    ...         str(step): base64.urlsafe_b64encode(v.astype("<f4")).decode()
    ...         for step, v in values
    ...     }
    ...     return {"layout": "", "values": steps}
    >>> w = np.random.default_rng(0).normal(size=(3, 100))
    >>> one = kept((0, w[0]), (9, w[1]))
    >>> round(updates_alike(one, one).correlation, 3)
    1.0
    >>> abs(updates_alike(one, kept((0, w[0]), (9, w[0] + w[2]))).correlation) < 0.9
    True
    """
    if not one or not other or one.get("layout") != other.get("layout"):
        return None
    common = sorted(map(int, one["values"].keys() & other["values"].keys()))
    if len(common) < 2:
        return None
    first = common[0]
    last = common[-1]
    updates = np.stack([_values(of, last) - _values(of, first) for of in (one, other)])
    moved = updates.any(axis=0)
    if not np.isfinite(updates).all() or moved.sum() < _FEWEST:
        return None
    spreads = updates[:, moved].std(axis=1)
    if not spreads.all():
        return None
    return Alike(first, last, float(np.corrcoef(updates[:, moved])[0, 1]))


def _values(of: Mapping[str, Any], step: int) -> np.ndarray:
    return np.frombuffer(
        base64.urlsafe_b64decode(of["values"][str(step)]), "<f4"
    ).astype(np.float64)
