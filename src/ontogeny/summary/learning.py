"""How likely a row of performance would be if nothing had been learned, and what would decide it.

A quantity may bring a test of its own (``x_p_learned``), as the loss does by renamed words, which
needs no control run, and groups of examples by chance; where its first step was trained
(``x_trained_start``), nothing else judges it. Of any other, the change has two kinds of noise:
texts, and the luck of motion, which control runs show. Motion that learns nothing has luck of both
signs; what it harms on average says nothing for the run, so either the spread of the controls about
zero or that about their mean is asked, each at half the level. Where a quantity names a line that
it must beat, such as the share of the most frequent label, its last value must do so as well.
What was lost is asked of quantities that bring a test of it (``x_p_lost``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from ..control_kinds import judging, kind_of
from ..quantities import Quantity
from ..tails import normal_above, t_above, t_limit
from ..trees import found_in
from .controls import rows_of_quantities
from .noise import Z

# Kind of control runs that come in pairs, a motion and the same one backwards.
MIRRORED = "mirrored"

# More control runs are not advised: what they could not decide, more texts may.
MOST_CONTROLS = 20


def learned_p_values(
    data: xr.Dataset, rows: xr.Dataset, floors: np.ndarray
) -> np.ndarray:
    """Return for each row of performance how likely its gain is where nothing was learned (rows,).

    Parameters
    ----------
    data
        The node.
    rows
        Its rows, with those of the controls and ``p_control_change`` where there are any.
    floors
        (rows,) noise of the change from first to last, 1.96 standard errors.

    Returns
    -------
    numpy.ndarray
        Uncorrected and one-sided; NaN of what is no performance, and without a test of its own
        where fewer than two control runs of a kind show the luck of motion.
    """
    lead = rows["lead"].values
    p_of_quantity = own_tests(data, rows["row_quantity"].values, "learned")
    starts = [
        found_in(data, f"{name}_trained_start", 0.0)
        for name in rows["row_quantity"].values
    ]
    trained = np.array(
        [np.ndim(start) == 0 and float(start) > 0 for start in starts], dtype=bool
    )
    own_test = np.isfinite(p_of_quantity) | trained
    p_values = np.where(own_test, p_of_quantity, _by_luck(rows, floors))
    p_values = np.where(
        np.isnan(lead), p_values, np.maximum(p_values, normal_above(lead))
    )
    return np.where(rows["can_learn"].values, p_values, np.nan)


def lost_p_values(data: xr.Dataset, rows: xr.Dataset) -> np.ndarray:
    """Return for each row of performance how likely its loss is if nothing was forgotten (rows,).

    Uncorrected and one-sided; NaN where the quantity brings no such test (``x_p_lost``).
    """
    p_values = own_tests(data, rows["row_quantity"].values, "lost")
    return np.where(rows["can_learn"].values, p_values, np.nan)


def own_tests(data: xr.Dataset, names: np.ndarray, of: str) -> np.ndarray:
    """Return the p-value of the test that each row's quantity brings, one for all or for each.

    Parameters
    ----------
    data
        The node.
    names
        (rows,) the quantity of each row.
    of
        What it tests: ``"learned"``, ``"lost"`` or ``"changed"``.
    """
    p_values = np.full(len(names), np.nan)
    for name in set(names):
        of_rows = names == name
        p = found_in(data, f"{name}_p_{of}")
        if p is not None and "step" not in p.dims and p.size in (1, of_rows.sum()):
            p_values[of_rows] = p.values.ravel()
    return p_values


def lead_over_null(
    data: xr.Dataset, quantity: Quantity, at: Mapping[str, Any]
) -> float:
    """Return by how many standard errors the last value is better than the null that it must beat.

    NaN of a quantity that names none (`Quantity.beats`), or has none in the data.
    """
    name = quantity.name
    null = f"{quantity.name}_{quantity.beats}"
    end = f"{null}_{'high' if quantity.better == 'higher' else 'low'}"
    line = found_in(data, end, found_in(data, null))
    if not quantity.beats or line is None or f"{name}_stderr" not in data:
        return float("nan")
    place = {**quantity.at, **at}
    parts = [
        part.sel({dim: label for dim, label in place.items() if dim in part.dims})
        for part in (data[name], data[f"{name}_stderr"], line)
    ]
    if not set(parts[2].dims) <= {"step"}:
        return float("nan")
    value, error, line = (
        part.dropna("step")[-1] if part.dims else part for part in parts
    )
    sign = 1.0 if quantity.better == "higher" else -1.0
    return (
        sign * float(value - line) / float(error) if float(error) > 0 else float("nan")
    )


def _by_luck(rows: xr.Dataset, floors: np.ndarray) -> np.ndarray:
    if "run" not in rows.dims:
        return np.full(rows.sizes["row"], np.nan)
    gains = gains_of_controls(rows)
    gain = (rows["better_sign"] * (rows["last_value"] - rows["first_value"])).values
    texts = (floors / Z) ** 2
    kinds = np.array([kind_of(str(run)) for run in gains["run"].values])
    about_zero = np.full(len(gain), np.nan)
    for kind in dict.fromkeys(kinds):  # of several kinds the best luck counts
        of_kind = gains.isel(run=kinds == kind).values
        luck = luck_of_pairs(of_kind) if kind == MIRRORED else of_kind
        about_zero = np.fmax(about_zero, p_by_luck(gain, texts, luck))
    if (kinds == MIRRORED).all():  # their luck has mean zero, and nothing else is asked
        return about_zero
    half = rows["p_control_change"].values / 2
    about_mean = np.where(improved(rows), half, 1 - half)
    return np.where(
        np.isnan(half), np.nan, np.minimum(2 * np.fmin(about_zero, about_mean), 1.0)
    )


def p_by_luck(gain: np.ndarray, texts: np.ndarray, luck: np.ndarray) -> np.ndarray:
    """Return how likely gains (rows,) are, one-sided, by two kinds of noise of mean zero.

    Parameters
    ----------
    gain
        (rows,) positive is better.
    texts
        (rows,) variance of the gain over texts.
    luck
        (rows, runs) what motion alone gains, NaN where unknown; without any, p is NaN.
    """
    count = np.isfinite(luck).sum(1)
    squares = np.where(
        count > 0, np.nansum(luck**2, axis=1) / np.maximum(count, 1), np.nan
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        score = gain / np.sqrt(texts + squares)
        freedom = count * (texts + squares) ** 2 / squares**2  # Satterthwaite
        p_values: np.ndarray = t_above(
            score, np.where(np.isnan(freedom), np.inf, freedom)
        )
    return p_values


def luck_of_pairs(gains: np.ndarray) -> np.ndarray:
    """Return half the difference in each pair of a motion and its mirror image (rows, pairs).

    Their common part is harm: it is left out, so that unequal harm costs no power.
    """
    whole = gains[:, : gains.shape[1] // 2 * 2]
    return (whole[:, ::2] - whole[:, 1::2]) / 2


def p_lost_by_motion(
    rise: np.ndarray, texts: np.ndarray, gains: np.ndarray
) -> np.ndarray:
    """Return how likely rises (rows,) are, one-sided, by texts and by motion as far.

    Unlike a gain, a rise must exceed what motion harms on average: a mirrored run rises as well.

    Parameters
    ----------
    rise
        (rows,) positive is worse.
    texts
        (rows,) variance of the rise over texts.
    gains
        (rows, runs) what mirrored control runs gain, in pairs; NaN of fewer than two pairs, which
        do not show how harm differs.
    """
    luck = luck_of_pairs(gains)
    pairs = gains.shape[1] // 2
    if pairs < 2:
        return np.full(len(rise), np.nan)
    harm = -(gains[:, : 2 * pairs : 2] + gains[:, 1 : 2 * pairs : 2]) / 2
    of_luck = (luck**2).mean(1)
    of_harm = harm.var(1, ddof=1) * (1 + 1 / pairs)
    variance = texts + of_luck + of_harm
    with np.errstate(invalid="ignore", divide="ignore"):
        # Satterthwaite.
        freedom = variance**2 / (of_luck**2 / pairs + of_harm**2 / (pairs - 1))
        score = (rise - np.maximum(harm.mean(1), 0.0)) / np.sqrt(variance)
    p_values: np.ndarray = t_above(score, np.where(np.isnan(freedom), np.inf, freedom))
    return p_values


def gains_of_controls(rows: xr.Dataset) -> xr.DataArray:
    """Return by how much each control run improved, of kinds that learn nothing (row, run)."""
    nulls = judging(rows)
    gains = nulls["better_sign"] * (nulls["control_last"] - nulls["control_first"])
    return gains.transpose("row", "run")


def improved(rows: xr.Dataset) -> np.ndarray:
    """Return for each row whether it improved, and by more than every control run."""
    sign = rows["better_sign"]
    better = (sign * (rows["last_value"] - rows["first_value"]) > 0).values
    if "run" not in rows.dims:
        return better
    gains = gains_of_controls(rows)
    more = (sign * rows["run_change"].sel(run=gains["run"]) > gains) | gains.isnull()
    return better & more.all("run").values


def got_worse(rows: xr.Dataset) -> np.ndarray:
    """Return for each row whether its last value is worse than its first."""
    gain = rows["better_sign"] * (rows["last_value"] - rows["first_value"])
    worse: np.ndarray = (gain < 0).values
    return worse


def outside(rows: xr.Dataset) -> np.ndarray:
    """Return for each row whether its change lies outside those of all its control runs.

    Of performance on the better side of them.
    """
    if "run" not in rows.dims:
        return np.zeros(rows.sizes["row"], dtype=bool)
    nulls = judging(rows)
    apart = nulls["run_change"] - (nulls["control_last"] - nulls["control_first"])
    has_value = apart.notnull().any("run")
    above, below = (
        (side | apart.isnull()).all("run") for side in (apart > 0, apart < 0)
    )
    apart_from_all = (has_value & (above | below)).values
    return apart_from_all & (~rows["can_learn"].values | improved(rows))


def not_improved(rows: xr.Dataset, floors: np.ndarray) -> np.ndarray:
    """Return for each row of performance whether it surely did not improve over these texts.

    It got worse by more than its noise, or is the very same as at first.
    """
    gain = (rows["better_sign"] * (rows["last_value"] - rows["first_value"])).values
    return rows["can_learn"].values & ((gain < 0) & (-gain > floors) | (gain == 0))


def controls_needed(rows: xr.Dataset, level: np.ndarray) -> np.ndarray:
    """Return with how many control runs of the same spread each change would reach its level.

    Both are (rows,).

    NaN where it has none to go by, or more than `MOST_CONTROLS` would be needed. The spread is that
    of the test: of the row or of all rows of its quantity, whichever is larger. By the row's alone
    four controls "would decide" a row at p = 1, in which three happened to agree. Mirrored ones
    count in pairs, by their luck and the noise of texts, which no further pair makes less.
    """
    needed = np.full(rows.sizes["row"], np.nan)
    if "run" not in rows.dims:
        return needed
    if all(kind_of(str(run)) == MIRRORED for run in rows["run"].values):
        return _pairs_needed(rows, level)
    changes = (
        (rows["control_last"] - rows["control_first"]).transpose("row", "run").values
    )
    change = rows["run_change"].transpose("row", "run").values
    sides = np.where(rows["can_learn"].values, 1, 2)
    runs = [of_row[np.isfinite(of_row)] for of_row in changes]
    variance = np.array([run.var(ddof=1) if len(run) > 1 else np.nan for run in runs])
    for of_quantity in rows_of_quantities(rows):
        valid = of_quantity[np.isfinite(variance[of_quantity])]
        variance[valid] = np.maximum(
            variance[valid], variance[valid].mean() if len(valid) else 0
        )
    for i in np.flatnonzero(variance > 0):
        offset = abs(np.nanmean(change[i]) - runs[i].mean()) / np.sqrt(variance[i])
        counts = np.arange(len(runs[i]) + 1, MOST_CONTROLS + 1)
        p_values = 2 * t_above(offset / np.sqrt(1 + 1 / counts), counts - 1) * sides[i]
        enough = counts[p_values <= level[i]]
        needed[i] = enough[0] if len(enough) else np.nan
    return needed


def _pairs_needed(rows: xr.Dataset, level: np.ndarray) -> np.ndarray:
    """Return the same of mirrored control runs, twice as many as there are pairs.

    The score is that of the test, which may be the quantity's own, as at the best temperature.
    """
    needed = np.full(rows.sizes["row"], np.nan)
    luck = luck_of_pairs(gains_of_controls(rows).values)
    counts = np.arange(luck.shape[1] + 1, MOST_CONTROLS // 2 + 1)
    gains = (rows["better_sign"] * rows["run_change"]).transpose("row", "run").values
    p_values = rows["p_learned_uncorrected"].values
    floors = (
        rows["change_floor"].values
        if "change_floor" in rows
        else np.zeros(len(p_values))
    )
    texts = np.nan_to_num(floors / Z) ** 2
    for i in np.flatnonzero(
        np.isfinite(gains).any(1) & (np.nan_to_num(luck) != 0).any(1)
    ):
        squares = np.nanmean(luck[i] ** 2)
        per_pair = (1 + texts[i] / squares) ** 2  # freedom, as in `p_by_luck`
        score = np.nanmean(gains[i]) / np.sqrt(texts[i] + squares)
        if 0 < p_values[i] < 1:  # 1 is said where something else forbids it
            score = t_limit(p_values[i], luck.shape[1] * per_pair)
        enough = counts[t_above(score, counts * per_pair) <= level[i]]
        needed[i] = 2 * enough[0] if len(enough) else np.nan
    return needed
