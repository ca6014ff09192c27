"""Intervals of means over texts, and the noise of their change since the first step."""

import numpy as np
from scipy.special import stdtrit

Z = 1.96


def of_units(values, weights, unit):
    """Return weighted means (..., u) and weights (u,) of units, in the order of their numbers."""
    units = np.unique(unit)
    total = np.array([weights[unit == number].sum() for number in units])
    sums = [(values * weights)[..., unit == number].sum(axis=-1) for number in units]
    return np.stack(sums, axis=-1) / np.maximum(total, 1), total


def mean_stderr(values, weights):
    """Return the standard error of the weighted mean over the last axis; weights of 0 are none."""
    values, weights = values[..., weights > 0], weights[weights > 0]
    mean = (values * weights).sum(axis=-1, keepdims=True) / weights.sum()
    spread = (((values - mean) * weights) ** 2).sum(axis=-1)
    return np.sqrt(spread * len(weights) / (len(weights) - 1)) / weights.sum()


def measured(name, dims, of_text, weights, value=None, minimum=-np.inf):
    """Return a quantity with all that follows from its values on units of texts.

    Parameters
    ----------
    name
        Of the quantity.
    dims
        Of its value, the first of which is the step.
    of_text
        (T, ..., u).
    weights
        (u,).
    value
        Where it is not the weighted mean.
    minimum
        At which the interval is cut.
    """
    value = (of_text * weights).sum(axis=-1) / weights.sum() if value is None else value
    reach = stdtrit((weights > 0).sum() - 1, 0.975)
    error = mean_stderr(of_text, weights)
    floor = reach * mean_stderr(of_text - of_text[0], weights)
    return {
        name: (dims, value),
        f"{name}_of_text": ((*dims, "text"), of_text),
        f"{name}_weights": (("step", "text"), np.tile(weights, (len(of_text), 1))),
        f"{name}_stderr": (dims, error),
        f"{name}_low": (dims, np.maximum(value - reach * error, minimum)),
        f"{name}_high": (dims, value + reach * error),
        f"{name}_floor": (dims, floor),
    }


def band(name, dims, draws):
    """Return the draws of a null over the last axis, with the range of few or 95 % of many."""
    few = draws.shape[-1] < 20
    ends = (
        (draws.min(-1), draws.max(-1))
        if few
        else np.quantile(draws, [0.025, 0.975], axis=-1)
    )
    return {f"{name}_low": (dims, ends[0]), f"{name}_high": (dims, ends[1])}
