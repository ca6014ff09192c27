"""The step from which on the right answer is the first one."""

from __future__ import annotations

import numpy as np


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
    steps, first = np.asarray(steps, dtype=np.float64)[is_complete], leads[is_complete] > 0
    if not len(steps):
        nothing = np.full(leads.shape[1:], np.nan)
        return nothing, nothing.copy()
    trailing = np.logical_and.accumulate(first[::-1], axis=0).sum(axis=0)
    begin = len(steps) - trailing
    padded = np.append(steps, np.nan)
    return padded[begin], np.where(trailing > 0, steps[np.maximum(begin - 1, 0)], np.nan)
