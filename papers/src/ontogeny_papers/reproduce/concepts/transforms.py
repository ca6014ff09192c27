"""Figure 12: the linear map from the last step's concepts to those of every step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from scipy.stats import spearmanr

from ontogeny import dynamics
from ontogeny.claims import Reason

from ...observables.concepts.transforms import TransformDynamics
from ..formats import short, spread
from ..verdicts import Found, Verdict, if_finite, unanimous
from .concept_recipe import ConceptRecipe, sizes
from .extractors import concepts
from .paths import the_runs

_PLANTED = "planted pairs"
_PAIRS = 20
_SINGULAR = 1e12  # condition from which few digits of an inverse are right
_LATE = 0.75  # of the training, from where on velocities count as late


def judge(results: Found) -> Sequence[Verdict]:
    """Judge Figure 12: what T carries, its cumulative change and its late velocity."""
    runs = the_runs(results, "concepts-ica-transforms")
    return [
        _carries(runs),
        _invertible(runs),
        _printed_inverse(the_runs(results, _PLANTED)),
        _spikes(runs),
        _cumulative(runs),
        _velocity(runs),
    ]


def _carries(runs: Sequence[xr.Dataset]) -> Verdict:
    """Judge whether the map of the dictionaries carries the codes better than no map does."""
    errors = {
        str(name): np.array(
            [_median(run.codes_error.sel(mapping=name)) for run in runs]
        )
        for name in runs[0].mapping.values
    }
    linear = errors["linear map"]
    plain = errors["matched only"]
    return Verdict(
        "an invertible map carries concepts and codes of the last step to those of others",
        unanimous(linear < 0.9 * plain, linear, plain),
        f"error of the codes, relative, median over layers and steps: {short(linear)}",
        f"no map, concepts matched: {short(plain)}; nearest rotation: "
        f"{short(errors['rotation'])}; a tenth less counts",
        of_paper=False,  # which finds such maps, and does not say that they carry the codes well
    )


def _invertible(runs: Sequence[xr.Dataset]) -> Verdict:
    """State that every map has an inverse, as nearly every matrix has."""
    condition = np.array([float(run.condition.max(skipna=False)) for run in runs])
    return Verdict(
        "an invertible transform is found at every step and layer",
        unanimous(condition < _SINGULAR, condition),
        f"largest condition number of all steps and layers: {short(condition)}",
        f"below {_SINGULAR:.0e} counts; matrices of random numbers are invertible as well, so that "
        "this tells of no concepts",
        alike=True,
    )


def with_planted(results: Found) -> Found:
    """Return nodes with what both inverses leave of the codes of pairs that are planted."""
    return {**results, _PLANTED: {_PLANTED: [_planted()]}}


def _planted() -> xr.Dataset:
    """Return the share of the codes that T⁻¹ and T⁻ᵀ leave, of pairs of Definition 54."""
    rng = np.random.default_rng(0)
    left: dict[str, list[float]] = {"inverse": [], "transposed_inverse": []}
    for _ in range(_PAIRS):
        U = rng.standard_normal((60, 8))
        W = rng.standard_normal((32, 8))
        R = np.eye(8) + 0.3 * rng.standard_normal((8, 8)) / np.sqrt(8)
        U_t = U @ R
        W_t = W @ np.linalg.inv(R).T
        T = np.asarray(dynamics.transform(W_t, U_t, W, U).matrix)
        back = np.linalg.inv(T)
        for name, matrix in zip(left, (back, back.T), strict=True):
            apart = np.linalg.norm(U_t - U @ matrix) / np.linalg.norm(U_t)
            left[name].append(float(apart))
    return xr.Dataset({name: ("pair", values) for name, values in left.items()})


def _printed_inverse(planted: Sequence[xr.Dataset]) -> Verdict:
    """Judge the report's T⁻¹ on pairs that are equivalent by construction."""
    (pairs,) = planted
    printed, right = pairs.inverse.values, pairs.transposed_inverse.values
    return Verdict(
        "the codes of equivalent pairs go by the inverse of the transform, T⁻¹",
        bool(printed.max() < 1e-6),
        f"on {len(printed)} planted pairs of Definition 54 it leaves {short(printed)} of the codes",
        f"T⁻ᵀ leaves {right.max():.0e} at most, as W = W_T T implies; used here",
    )


def _spikes(runs: Sequence[xr.Dataset]) -> Verdict:
    """Judge whether the error is large where T is nearly singular, beyond what falls anyway."""
    with_map = np.array([_rank_correlation(run, "linear map") for run in runs])
    without = np.array([_rank_correlation(run, "matched only") for run in runs])
    holds = unanimous(with_map > 0.5, with_map)
    return Verdict(
        "the error is largest where the transform is nearly singular",
        holds,
        f"rank correlation of the error with T's condition number over the steps, median over "
        f"layers: {spread(with_map, 2)}",
        f"the error without any map, which no inverse can raise: {spread(without, 2)}",
        alike=if_finite((with_map < without + 0.1).any(), without),
    )


def _rank_correlation(run: xr.Dataset, mapping: str) -> float:
    correlations = []
    for layer in run.layer.values:
        one = run.sel(layer=layer)
        error = one.codes_error.sel(mapping=mapping).values
        condition = one.condition.values
        mask = np.isfinite(error) & np.isfinite(condition)
        correlations.append(
            spearmanr(error[mask], condition[mask]).statistic
            if mask.sum() > 2
            else np.nan
        )
    return float(np.median(correlations))


def _cumulative(runs: Sequence[xr.Dataset]) -> Verdict:
    """State how the cumulative change goes; that a sum of lengths is smooth shows nothing."""
    done = [run.normalised.sel(matching="matched") for run in runs]
    half = np.array(
        [_median(path.interp(step=0.5 * float(path.step[-1]))) for path in done]
    )
    refits = np.array(
        [
            _median(run.normalised_refit_high.sel(matching="matched").isel(step=-1))
            if "normalised_refit_high" in run
            else np.nan
            for run in runs
        ]
    )
    return Verdict(
        "the cumulative change grows smoothly, so the noise of the second regime plays no part",
        None,
        f"{short(half)} of it lies in the first half of the steps",
        "a sum of lengths is smooth whatever is summed; as many steps of a refit's size add up to "
        f"{short(refits)} of it",
        reason=Reason.NO_CONTROLS,
    )


def _velocity(runs: Sequence[xr.Dataset]) -> Verdict:
    """Judge whether transforms move no more than refitting does, late and before.

    A falling learning rate stills a run that learns nothing as well: this can only be refuted.
    """
    late, before = (
        np.array([_within_refits(run, *part) for run in runs])
        for part in ((_LATE, 1.0), (0.0, _LATE))
    )
    still = bool((late > 0.9).all())
    return Verdict(
        "late in training the transform moves within the noise of refitting",
        None if (late > 0.5).any() else if_finite(False, late),
        f"in the last quarter of the steps in {_percent(late)} of the layers and steps",
        f"before in {_percent(before)}; nine tenths in every seed count, half or less does not"
        + (
            "; a falling learning rate does that in runs that learn nothing"
            if still
            else ""
        ),
        reason=Reason.NO_CONTROLS if still else Reason.CASES_DIFFER,
    )


def _within_refits(run: xr.Dataset, first: float, last: float) -> float:
    """Return in what share of layers and steps the velocity is at most that of some refit."""
    if "velocity_refit_high" not in run:
        return float("nan")
    one = run.sel(matching="matched")
    end = float(run.step[-1])
    one = one.sel(step=(one.step > first * end) & (one.step <= last * end))
    is_judged = one.velocity.notnull() & one.velocity_refit_high.notnull()
    return float((one.velocity <= one.velocity_refit_high).where(is_judged).mean())


def _median(values: xr.DataArray) -> float:
    return float(values.median())


def _percent(shares: np.ndarray) -> str:
    return f"{spread(100 * shares, 0)} %"


RECIPES = (
    ConceptRecipe(
        "concepts-figure-12",
        "Transforms of the concept space",
        "the concepts of a step are those of the last step under an invertible map, whose "
        "cumulative change is smooth although its velocity is noisy in the second regime.",
        "Bernas 2025, sec. 8.7.2, Def. 54, Fig. 12",
        *sizes(lambda n, m: (concepts("ica", n, m), TransformDynamics("concepts-ica"))),
        "a second regime of thousands of steps; two seeds and eight concepts.",
        judge=judge,
        reduced=with_planted,
    ),
)
