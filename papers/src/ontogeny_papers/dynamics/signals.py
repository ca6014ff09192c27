"""Two series over the same steps: how alike, and whether more than their trends explain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from ontogeny.arrays import numbers
from ontogeny.dynamics.series import RESOLUTION, checked_steps, checked_values
from ontogeny.errors import ArgumentError

from .mutual_information import mutual_information
from .shared_structure import FREE, structure_gains, structure_p
from .smoothing import rolling_mean
from .surrogates import random_factors
from .trends import (
    FEWEST_FOR_A_TREND,
    NEIGHBOURS,
    checked_table,
    detrend,
    neighbour_residuals,
)
from .warping import dtw

SLOW_SURROGATES = 99
HALF = NEIGHBOURS // 2
SCHEDULE = "jumps or a cycle in common, which a shared schedule would make, cannot be ruled out"
NAN = np.nan


@dataclass(frozen=True, eq=False)
class SignalComparison:
    """What `compare_signals` found: numbers for one pair, (K,) for K pairs.

    Parameters
    ----------
    pearson, spearman
        Correlations of the values, trends included. Two decays have high ones whatever they share.
    rolling_pearson
        Correlation of the rolling means (the report's Figure 6).
    fluctuation_pearson, fluctuation_spearman
        Correlations of what is left around the trends.
    pearson_p, spearman_p
        p-values of "the trends are all that the two have in common": how often surrogates, with
        the trend and the noise of y but without what it shares with x, have fluctuations that are
        as correlated, around the trends and around the neighbours' cubics, whichever is more
        often. NaN where a series has no noise distinguishable from its trend, and where both have
        jumps or a cycle in common: one schedule does that to unrelated quantities.
    structure_p
        p-value of "they have no jumps and no cycle in common", corrected for the four kinds that
        are tried. Up to 0.2 these cannot be ruled out, and the pair is not judged.
    dtw
        Dynamic time warping distance of the standardised values.
    dtw_surrogates
        Its mean over surrogates: what the trends alone give. NaN as the p-values.
    mutual_information
        In nats, of the values, shuffled baseline subtracted.
    mutual_information_surrogates
        Its mean over surrogates: what the trends alone give. NaN as the p-values.
    joint_pearson, joint_p
        Mean of `fluctuation_pearson` over the pairs, and its p-value; noise that pairs share at a
        step is counted once. NaN where all pairs together have jumps or a cycle in common.
    joint_structure_p
        As `structure_p`, of all pairs together; up to 0.2 they are not judged together.
    n
        Steps that both have.
    reason
        Why there is no p-value, else empty.
    """

    pearson: float | np.ndarray
    pearson_p: float | np.ndarray
    spearman: float | np.ndarray
    spearman_p: float | np.ndarray
    rolling_pearson: float | np.ndarray
    fluctuation_pearson: float | np.ndarray
    fluctuation_spearman: float | np.ndarray
    dtw: float | np.ndarray
    dtw_surrogates: float | np.ndarray
    mutual_information: float | np.ndarray
    mutual_information_surrogates: float | np.ndarray
    structure_p: float | np.ndarray
    joint_pearson: float
    joint_p: float
    joint_structure_p: float
    n: int | np.ndarray
    reason: str | np.ndarray


def compare_signals(
    x: ArrayLike,
    y: ArrayLike,
    steps: ArrayLike | None = None,
    *,
    half_window: int = 2,
    neighbours: int = 3,
    n_draws: int = 999,
    random_state: int = 0,
    reference_index: int | None = None,
) -> SignalComparison:
    """Compare two series over the same steps, or K pairs of them.

    Parameters
    ----------
    x, y
        Series (T,), or K pairs (T, K) such as layers; NaN where a checkpoint is missing.
    steps
        Training steps (T,), increasing, from 0; default: 0, 1, 2, ...
    half_window
        Neighbours on each side in the rolling means.
    neighbours
        Of the estimator of mutual information.
    n_draws
        Surrogates behind the p-values; the first 99 also give the means of DTW and mutual
        information.
    random_state
        Seed of the surrogates; all pairs see the same ones.
    reference_index
        Position of the reference checkpoint where values are distances to it; left out.

    Returns
    -------
    SignalComparison
        Numbers, or arrays (K,).

    Raises
    ------
    ArgumentError
        If shapes differ, a series is constant or has fewer than 10 steps, or a number is out of
        range.
    NonFiniteError
        If a value is infinite.

    Notes
    -----
    `detrend` splits trend and fluctuation, alike for both series. Surrogates of y are
    its trend plus its fluctuation times random factors with a memory of four steps, so that trend,
    local noise level and short memory stay. Block permutation of the values, or shuffling them,
    would call two independent decays related nearly always; phase randomisation takes the noise
    level as constant. Noise that two series share has no order over the checkpoints. A schedule
    has: pairs with jumps or a cycle in common, beyond what the same fluctuations in random orders
    give, are not judged. Rates are in the guides on dynamics and on nulls.

    Source: Bernas 2025, sec. 5.4, Figs 6 and 7.

    Examples
    --------
    >>> rng = np.random.default_rng(2)
    >>> steps = np.arange(50) * 1000
    >>> shared, a, b = 0.02 * rng.normal(size=(3, 50))
    >>> x, y, z = (
    ...     np.exp(-steps / 8000) + shared,
    ...     np.exp(-steps / 20_000) + 0.5 * shared,
    ...     a,
    ... )
    >>> comparison = compare_signals(x, y, steps)
    >>> comparison.pearson > 0.8, comparison.pearson_p < 0.01
    (True, True)
    >>> other = compare_signals(
    ...     x, np.exp(-steps / 20_000) + b, steps
    ... )  # as correlated, unrelated
    >>> other.pearson > 0.8, other.pearson_p > 0.05
    (True, True)
    """
    if np.shape(x) != np.shape(y) or not np.size(x):
        raise ArgumentError(
            f"x and y must both be (T,) or both (T, K); got shapes {np.shape(x)}, {np.shape(y)}."
        )
    times = checked_steps(np.arange(len(np.atleast_1d(x))) if steps is None else steps)
    first, second = (
        checked_table(name, table, times, reference_index)
        for name, table in (("x", x), ("y", y))
    )
    if n_draws < 19:
        raise ArgumentError(f"n_draws must be at least 19; got {n_draws}.")
    rng = np.random.default_rng(random_state)
    draws = _Draws(
        random_factors(n_draws, len(times), rng),
        np.argsort(rng.random((SLOW_SURROGATES, len(times))), axis=1),
    )
    compared = [
        _compare_pair(a, b, times, draws, half_window, neighbours)
        for a, b in zip(first.T, second.T, strict=True)
    ]
    rows = [fields for fields, _ in compared]
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    single = np.ndim(x) == 1
    values: dict[str, Any] = (
        {k: v[0].item() for k, v in columns.items()} if single else columns
    )
    values |= _joint([joint for _, joint in compared if joint is not None])
    return SignalComparison(**values)


@dataclass(frozen=True, eq=False)
class _Draws:
    """What all pairs are compared with: factors (n, T) and orders of the steps (m, T)."""

    factors: np.ndarray
    orders: np.ndarray


@dataclass(frozen=True, eq=False)
class _Tested:
    """Correlations around trends and around neighbours' cubics, and gains of shared structure.

    Each is (1 + draws, ...), the pair itself first.
    """

    trends: np.ndarray
    neighbours: np.ndarray
    structure: np.ndarray

    @property
    def p_value(self) -> float:
        return max(_rank(self.trends), _rank(self.neighbours))


def _joint(tested: list[_Tested]) -> dict[str, float]:
    if not tested:
        return {"joint_pearson": NAN, "joint_p": NAN, "joint_structure_p": NAN}
    every = _Tested(
        *(
            np.mean([getattr(row, name) for row in tested], axis=0)
            for name in ("trends", "neighbours", "structure")
        )
    )
    structure = structure_p(every.structure)
    return {
        "joint_pearson": float(every.trends[0]),
        "joint_p": every.p_value if structure > FREE else NAN,
        "joint_structure_p": structure,
    }


def standardise(values: ArrayLike) -> np.ndarray:
    """Return series (T, ...) with mean 0 and standard deviation 1 over their steps; NaN stays.

    Raises
    ------
    ArgumentError
        If a series is constant or has fewer than two values.
    NonFiniteError
        If a value is infinite.

    Examples
    --------
    >>> standardise([1.0, 3.0, np.nan])
    array([-1.,  1., nan])
    """
    return _standardised("values", values)


def _standardised(name: str, values: ArrayLike) -> np.ndarray:
    series = numbers(name, values)
    if series.ndim == 0:
        raise ArgumentError(
            f"{name} must have shape (steps, ...); got a single number."
        )
    series = np.moveaxis(checked_values(np.moveaxis(series, 0, -1), len(series)), -1, 0)
    there = ~np.isnan(series)
    count = there.sum(axis=0)
    filled = np.where(there, series, 0.0)
    mean = filled.sum(axis=0) / np.maximum(count, 1)
    spread = np.sqrt(
        (np.where(there, series - mean, 0.0) ** 2).sum(axis=0) / np.maximum(count, 1)
    )
    if not (spread > RESOLUTION * np.abs(filled).max(axis=0)).all():
        raise ArgumentError(f"{name} must not be constant over the steps.")
    return (series - mean) / spread


def _compare_pair(
    x: np.ndarray,
    y: np.ndarray,
    steps: np.ndarray,
    draws: _Draws,
    half_window: int,
    neighbours: int,
) -> tuple[dict[str, Any], _Tested | None]:
    """Compare one x with one y over the steps that both have.

    Returns the fields of `SignalComparison`, and the correlations that surrogates give; None where
    the pair cannot be tested.
    """
    there = ~(np.isnan(x) | np.isnan(y))
    if there.sum() < FEWEST_FOR_A_TREND:
        raise ArgumentError(
            f"x and y must share at least {FEWEST_FOR_A_TREND} steps; they share {there.sum()}."
        )
    x = _standardised("x", x[there])
    y = _standardised("y", y[there])
    detrended = detrend(steps[there], np.stack([x, y]))
    fx, fy = detrended.fluctuation
    smooth = rolling_mean(x, half_window), rolling_mean(y, half_window)
    compared: dict[str, Any] = {
        "pearson": float(_correlation(x, y)),
        "pearson_p": NAN,
        "spearman": float(_correlation(rankdata(x), rankdata(y))),
        "spearman_p": NAN,
        "rolling_pearson": float(_correlation(*smooth)),
        "fluctuation_pearson": float(_correlation(fx, fy)),
        "fluctuation_spearman": float(_correlation(rankdata(fx), rankdata(fy))),
        "dtw": float(dtw(x, y)),
        "dtw_surrogates": NAN,
        "mutual_information": float(mutual_information(x, y, neighbours)),
        "mutual_information_surrogates": NAN,
        "structure_p": NAN,
        "n": int(there.sum()),
        "reason": _untestable(detrended.noisy),
    }
    if compared["reason"]:
        return compared, None
    noise = fy * draws.factors[:, there]
    around = neighbour_residuals(steps[there]) @ np.stack([x, y]).T  # (T − 4, 2)
    loose = around[:, 1] * draws.factors[:, there][:, HALF:-HALF]
    orders = _orders_within(draws.orders, there)
    structure = structure_gains(
        steps[there], detrended.trend, detrended.fluctuation, orders
    )
    tested = _Tested(
        _correlation(fx, np.vstack([fy, noise])),
        _correlation(around[:, 0], np.vstack([around[:, 1], loose])),
        structure,
    )
    compared["structure_p"] = structure_p(structure)
    if compared["structure_p"] > FREE:
        compared["pearson_p"] = tested.p_value
        ranks = [
            _correlation(rankdata(a), rankdata(np.vstack([b, surrogates]), axis=1))
            for a, b, surrogates in ((fx, fy, noise), (*around.T, loose))
        ]
        compared["spearman_p"] = max(_rank(ranking) for ranking in ranks)
    else:
        compared["reason"] = SCHEDULE
    others = standardise((detrended.trend[1] + noise[:SLOW_SURROGATES]).T).T
    compared["dtw_surrogates"] = float(dtw(x, others).mean())
    # One shuffled baseline for all: it hardly depends on the surrogate.
    plain = mutual_information(x, np.vstack([y, others]), neighbours, n_shuffles=0)
    baseline = plain[0] - compared["mutual_information"]
    compared["mutual_information_surrogates"] = float(plain[1:].mean() - baseline)
    return compared, tested


def _untestable(noisy: np.ndarray) -> str:
    names = [
        name for name, visible in zip(("x", "y"), noisy, strict=True) if not visible
    ]
    return (
        f"no noise in {' and '.join(names)} distinguishable from the trend"
        if names
        else ""
    )


def _correlation(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return Pearson's correlation of x (T,) with y (..., T); 0 where one is constant."""
    a = x - x.mean()
    b = y - y.mean(axis=-1, keepdims=True)
    norms = np.linalg.norm(a) * np.linalg.norm(b, axis=-1)
    return np.asarray((b @ a) / np.where(norms > 0, norms, 1.0))


def _orders_within(orders: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Return orders (m, T) of all steps as orders of those that are there."""
    place = np.cumsum(there) - 1
    return np.asarray(place[orders[there[orders]].reshape(len(orders), -1)])


def _rank(correlations: np.ndarray) -> float:
    """Return the two-sided p-value of the first of correlations against the others."""
    size = np.abs(correlations)
    return float((size >= size[0] * (1 - 1e-9)).mean())
