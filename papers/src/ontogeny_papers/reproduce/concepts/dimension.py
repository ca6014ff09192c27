"""Table 3: the intrinsic dimension of concepts, and whether it falls between regimes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import xarray as xr

from ontogeny import geometry
from ontogeny.claims import Reason
from ontogeny.features.concepts.dictionaries import Concepts
from ontogeny.observables import Observable

from ...observables.concepts.dimension import IntrinsicDimension
from ..formats import short
from ..verdicts import LEVEL, Found, Verdict, if_finite, more_often, unanimous
from .concept_recipe import ConceptRecipe, sizes
from .paths import the_runs

_TITLES = {
    "ica": "ICA",
    "svd": "SVD",
    "kmeans": "k-means",
    "dictionary": "dictionary learning",
}
_AVERAGES = {
    "aligned": "matched first",
    "unaligned": "as returned",
    "report-code": "as the report's code averages",
}
_QUICK = ("ica", "svd", "kmeans")  # dictionary learning takes as long as all of these
# Times as many concepts as elsewhere: two neighbours of a few points say nothing.
_MORE = 3


def judge(results: Found) -> Sequence[Verdict]:
    """Judge Table 3 on the checkpoints' own dimensions, which do not depend on their agreement."""
    extractors = [name for name in _TITLES if f"{_label(name)}-dimension" in results]
    return [
        *(
            _falls(the_runs(results, f"{_label(name)}-dimension"), name)
            for name in extractors
        ),
        _averages_agree(results, extractors),
        _lowers(results, extractors),
        _of_spectrum(the_runs(results, _label("svd"))),
    ]


def _label(extractor: str) -> str:
    return f"concepts-{extractor}-table-3"


def _falls(runs: Sequence[xr.Dataset], extractor: str) -> Verdict:
    """Judge whether the mean dimension of the checkpoints is lower in the later half.

    No dictionaries of control runs are kept, so that a fall would not be shown to be learned.
    """
    early, late = (
        np.array([float(run[f"checkpoint_{when}"].mean()) for run in runs])
        for when in ("early", "late")
    )
    change = np.concatenate([run.checkpoint_change.values for run in runs])
    p = np.concatenate([run.p_change.values for run in runs])
    mask = np.isfinite(p)
    lower = int(((p < LEVEL) & (change < 0) & mask).sum())
    enough, chance = (
        more_often(lower, int(mask.sum()), LEVEL / 2) if mask.any() else (False, 1.0)
    )
    null = np.concatenate(
        [np.atleast_1d(run.step_dimension_null.mean("draw")) for run in runs]
    )
    holds: bool | None = None
    if mask.any() and (late >= early).all():
        holds = False
    falling = int((late < early).sum())
    steps = np.mean(
        [
            run.step_dimension.median("layer", skipna=False).values[[0, -1]]
            for run in runs
        ],
        axis=0,
    )
    ends = (
        f"from {steps[0]:.0f} at the first to {steps[1]:.0f} at the last step (seeds' mean of the "
        "layers' median)"
    )
    bend = (
        f"checkpoint by checkpoint {short(early)} and {short(late)}, {ends}; lower in {lower} of "
        f"{int(mask.sum())} layers and seeds (p < {LEVEL} each), on average in {falling} of "
        f"{len(runs)} seeds"
        if mask.any()
        else f"{ends}; undefined: the concepts of a checkpoint are orthogonal"
    )
    reason = Reason.NO_CONTROLS if enough else Reason.WITHIN_CHANCE
    if not mask.any():
        reason = Reason.NOTHING_SCORED
    return Verdict(
        f"{_TITLES[extractor]}: the dimension falls from the first half of the steps to the second",
        holds,
        bend,
        f"isotropic points {np.nanmean(null):.0f}; as many layers by chance p = {chance:.2g}, "
        f"as many seeds p = {more_often(falling, len(runs), 0.5)[1]:.2g}; a fall within the "
        "first quarter of the steps hardly changes the mean of either half, and would be missed"
        + (
            "; no control run's dictionaries are kept, so a fall is not shown to be learned"
            if enough
            else ""
        ),
        reason=reason,
        of_paper=extractor != "kmeans",  # of which the report has a rise
    )


def _averages_agree(results: Found, extractors: Sequence[str]) -> Verdict:
    """Judge whether it matters how the dictionaries of a regime are averaged."""
    signs: list[bool | None] = []
    words = []
    for name in extractors:
        runs = the_runs(results, f"{_label(name)}-dimension")
        parts = []
        for how, title in _AVERAGES.items():
            early, late = (
                np.array(
                    [
                        float(
                            run[f"{when}_mean"].sel(average=how, estimator="regression")
                        )
                        for run in runs
                    ]
                )
                for when in ("early", "late")
            )
            if name != "kmeans":  # where the report has a rise
                signs += (
                    (late < early).tolist()
                    if np.isfinite([early, late]).all()
                    else [None]
                )
            parts.append(f"{title} {np.mean(early):.1f} to {np.mean(late):.1f}")
        words.append(f"{_TITLES[name]}: {', '.join(parts)}")
    return Verdict(
        "the dimension of averaged dictionaries is lower in the second regime",
        None if None in signs or any(signs) else False,
        "; ".join(words),
        "means over the seeds, of which each average and extractor but k-means must fall or none; "
        "it depends on how much the checkpoints of a regime agree, whatever their own dimension is",
    )


def _lowers(results: Found, extractors: Sequence[str]) -> Verdict:
    """Judge whether averages of Algorithm 4 have lower dimensions than the checkpoints in them."""
    lower: list[bool] = []
    words = []
    for name in extractors:
        runs = the_runs(results, f"{_label(name)}-dimension")
        single, averaged = (
            np.array(
                [[number(run, when) for when in ("early", "late")] for run in runs]
            )
            for number in (_of_checkpoints, _of_average)
        )
        if np.isfinite([single, averaged]).all():
            lower += [bool(one.all()) for one in averaged < single]
            words.append(
                f"{_TITLES[name]}: {short(single[:, 0])} to {short(averaged[:, 0])} early, "
                f"{short(single[:, 1])} to {short(averaged[:, 1])} late"
            )
    return Verdict(
        "averaging over the checkpoints of a regime lowers the estimate",
        unanimous(lower) if lower else None,
        "; ".join(words) or "no extractor whose checkpoints have a dimension",
        "points in random directions average to such points, of the same dimension; checkpoints one "
        "by one, and their average as Algorithm 4 takes it, of every extractor and seed",
        reason=Reason.CASES_DIFFER if lower else Reason.NOTHING_SCORED,
    )


def _of_checkpoints(run: xr.Dataset, when: str) -> float:
    return float(run[f"checkpoint_{when}"].mean())


def _of_average(run: xr.Dataset, when: str) -> float:
    return float(run[f"{when}_mean"].sel(average="unaligned", estimator="regression"))


def with_spectra(results: Found) -> Found:
    """Return nodes with the dimension of each last SVD dictionary, and of directions as long."""
    rng = np.random.default_rng(0)
    nodes = results[_label("svd")].items()
    return {
        **results,
        _label("svd"): {
            label: [_with_spectrum(run, rng) for run in runs] for label, runs in nodes
        },
    }


def _with_spectrum(run: xr.Dataset, rng: np.random.Generator) -> xr.Dataset:
    values = []
    for layer in run.layer.values:
        one = run.sel(layer=layer).isel(step=-1)
        one = one.dropna("feature", how="all", subset=["dictionary"])
        W = one.dictionary.transpose("feature", "concept").values.astype(np.float64)
        U, sizes_, _ = np.linalg.svd(W, full_matrices=False)
        random = np.linalg.qr(rng.standard_normal(U.shape))[0]
        with warnings.catch_warnings():
            # It is the point.
            warnings.simplefilter("ignore", geometry.SpectrumOnlyWarning)
            a, b = (
                geometry.two_nn((Q * sizes_).T, n_draws=0).value for Q in (U, random)
            )
        values.append((a, abs(a - b) / a))
    own, apart = zip(*values, strict=True)
    return run.assign(spectrum=("layer", list(own)), apart=("layer", list(apart)))


def _of_spectrum(runs: Sequence[xr.Dataset]) -> Verdict:
    """Compare the dimension of an SVD dictionary with that of random directions as long."""
    own, apart = np.concatenate([[run.spectrum, run.apart] for run in runs], axis=1)
    return Verdict(
        "the dimension of one step's SVD concepts describes a manifold",
        if_finite(min(apart) > 0.01, apart),
        f"{np.median(own):.0f} at the last step (median of layers and seeds)",
        f"random directions of the same lengths give the same: relative difference at most "
        f"{max(apart):.0e}; it is a function of the singular values alone",
        of_paper=False,  # whose dictionaries are averages
    )


def _observables(n: int, m: int) -> tuple[Observable, ...]:
    names = _TITLES if n > 8 else _QUICK
    return tuple(
        observable
        for name in names
        for observable in (
            Concepts(name, _MORE * n, max_tokens=m, label=_label(name)),
            IntrinsicDimension(_label(name)),
        )
    )


RECIPES = (
    ConceptRecipe(
        "concepts-table-3",
        "Intrinsic dimension of concepts in two regimes",
        "the intrinsic dimension of averaged dictionaries falls from the first to the second "
        "regime, but for k-means.",
        "Bernas 2025, sec. 6.3, Algorithm 4, Table 3",
        *sizes(_observables),
        "a hundred concepts and dictionary learning; semi-NMF is left out in both settings, since "
        "its averaged dictionaries here are equally far apart, where the estimate is undefined.",
        judge=judge,
        reduced=with_spectra,
    ),
)
