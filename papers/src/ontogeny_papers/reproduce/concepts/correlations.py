"""Figures 14 and 15 of the report: correlations, and weighted ones at two sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
import xarray as xr
from scipy.stats import spearmanr

from ontogeny.observables import Observable

from ...observables.curves.regimes import Regimes
from ..formats import short
from ..verdicts import Found, Runs, RunsOf, Verdict, decided, each, exceeds, reduced
from . import approach
from .agreement import agreement, in_common, of_other_seeds
from .concept_recipe import ConceptRecipe, sizes, two_sizes
from .extractors import EVEN, TITLES, concepts, noise_of, only_runs

_RETURNED = "as returned"
_WEIGHTED = Regimes(
    "concepts-ica",
    "correlation_to_reference",
    select={"correlation": "weighted", "alignment": _RETURNED},
    first=EVEN,
    label="concepts-ica-regimes-weighted",
)


def _rank(x: np.ndarray, y: np.ndarray) -> float:
    return float(spearmanr(x, y).statistic)


# ---- Figure 14 ----------------------------------------------------------------------------------

_THREE = {key: TITLES[key] for key in ("ica", "convex-nmf", "dictionary")}
_PAIRS = {"columnwise": _RETURNED, "optimal": "matched"}
"""Each correlation beside the Frobenius distance of the same concepts in the same order."""


def with_curves(results: Found) -> Found:
    """Return nodes with the curves that are judged alone, without the eight other distances."""
    return reduced(results, _curves)


def _curves(run: xr.Dataset) -> xr.Dataset:
    if "correlation_to_reference" not in run:
        return run
    read = ("relative_distance", "correlation_to_reference", "internal_correlation")
    kept = run[[name for name in run.data_vars if str(name).startswith(read)]]
    return kept.sel(distance=["frobenius"], alignment=[*_PAIRS.values()])


def three_kinds(results: Found) -> Sequence[Verdict]:
    """Judge column-wise, internal and optimal correlations of three extractors."""
    one = only_runs(results)
    verdicts = [
        _like_distances(title, one[f"concepts-{key}"], correlation, alignment)
        for key, title in _THREE.items()
        for correlation, alignment in _PAIRS.items()
    ]
    internal = {title: one[f"concepts-{key}"] for key, title in _THREE.items()}
    return [*verdicts, _internal(internal)]


def _like_distances(
    title: str, nodes: Runs, correlation: str, alignment: str
) -> Verdict:
    """Judge whether 1 − r goes with the distance, more than with that of another seed."""
    correlations = [
        1
        - _before_last(node, "correlation_to_reference", correlation=correlation).sel(
            alignment=alignment
        )
        for node in nodes
    ]
    distances = [
        _before_last(node, "relative_distance", distance="frobenius").sel(
            alignment=alignment
        )
        for node in nodes
    ]
    rho = agreement(correlations, distances, _rank)
    holds, alike, beside = in_common(
        rho, of_other_seeds(correlations, distances, _rank)
    )
    first, last = (_end(nodes, correlation, place) for place in (0, -1))
    turned = _end(nodes, correlation, -1, "_control")
    return Verdict(
        f"{title}: 1 − r, {correlation}, behaves like the distance",
        holds,
        f"rank correlation with the Frobenius distance {short(rho)} over the checkpoints; r from "
        f"{short(first)} to {short(last)} at the last checkpoint before the reference",
        f"{beside}; r at that end in turned runs, read at few checkpoints, {short(turned)}; of "
        f"refits {null_words(nodes, correlation, 'refit')}, by chance "
        f"{null_words(nodes, correlation, 'chance')}",
        alike=alike,
    )


def _before_last(node: xr.Dataset, name: str, **labels: str) -> xr.DataArray:
    """Return curves (step, layer, ...) without the reference step, whose values are given."""
    values = node[name].sel(labels).reset_coords(drop=True)
    return values.sel(step=values.step != node.attrs["reference_step"])


def _end(nodes: Runs, correlation: str, place: int, of: str = "") -> np.ndarray:
    """Return r at the first or last step before the reference, mean over layers, of each seed."""
    name = f"correlation_to_reference{of}"

    def one(node: xr.Dataset) -> float:
        if name not in node:
            return np.nan
        curves = _before_last(node, name, correlation=correlation).sel(
            alignment=_RETURNED
        )
        return float(curves.dropna("step", how="all").isel(step=place).mean())

    return each(nodes, one)


def null_words(nodes: Runs, correlation: str, null: str) -> str:
    """Return r of refits or by chance, mean ± SD over the seeds, or ``"unknown"``."""
    name = f"correlation_to_reference_{null}"
    finite = [
        node[name].sel(correlation=correlation, alignment=_RETURNED)
        for node in nodes
        if name in node
    ]
    return short(each(finite, lambda values: values.mean())) if finite else "unknown"


def _internal(nodes: RunsOf) -> Verdict:
    """Judge, beyond the report, whether concepts of a step come to overlap."""
    change = {}
    turned = {}
    for title, runs in nodes.items():
        change[title] = each(runs, lambda node: _rise(node, "internal_correlation"))
        turned[title] = each(
            runs, lambda node: _rise(node, "internal_correlation_control")
        )
    rises = [exceeds(change[title], turned[title], 0.1) for title in nodes]
    return Verdict(
        "concepts come to overlap: their internal correlation rises",
        decided(all(rises), all(rise is False for rise in rises)),
        "change: "
        + ", ".join(f"{title} {short(values)}" for title, values in change.items()),
        "turned runs: "
        + ", ".join(f"{title} {short(values)}" for title, values in turned.items())
        + "; a mean of a tenth more, in the same direction in every seed, counts",
        of_paper=False,
    )


def _rise(node: xr.Dataset, name: str) -> float:
    if name not in node:
        return np.nan
    ends = node[name].dropna("step", how="all").isel(step=[0, -1])
    return float((ends.isel(step=1) - ends.isel(step=0)).mean())


# ---- Figure 15 ----------------------------------------------------------------------------------

_WEIGHED = {key: TITLES[key] for key in ("convex-nmf", "kmeans", "ica")}


def weighted(results: Found) -> Sequence[Verdict]:
    """Judge weighted correlations of three extractors, at each size."""
    verdicts = []
    for label in results["concepts-ica"]:
        of = {name: runs[label] for name, runs in results.items()}
        verdicts += [
            _like_distances(
                f"{label}, {title}", of[f"concepts-{key}"], "weighted", "matched"
            )
            for key, title in _WEIGHED.items()
        ]
        verdicts.append(_separates(label, of))
    return verdicts


def _separates(label: str, of: RunsOf) -> Verdict:
    """Judge whether the weighted correlation shows a boundary where the distance shows less."""
    here = of[_WEIGHTED.name]
    there = of["concepts-ica-regimes"]
    nodes = of["concepts-ica"]
    verdict = approach.two_regimes(nodes, here, _RETURNED)
    ratios = [each(runs, lambda node: node.joint_noise_ratio) for runs in (here, there)]
    clearer = np.isnan(ratios[1]) | (ratios[0] > ratios[1])
    return Verdict(
        f"{label}: the weighted correlation of ICA separates the two regimes more clearly",
        verdict.holds if clearer.all() else None,
        verdict.measured,
        "Frobenius distance, as returned: "
        + "; ".join(map(approach.regime_words, there)),
    )


# ---- recipes ------------------------------------------------------------------------------------


def _fits(
    keys: Iterable[str], n_concepts: int, max_tokens: int
) -> tuple[Observable, ...]:
    return tuple(concepts(key, n_concepts, max_tokens) for key in keys)


def _weighed(n_concepts: int, max_tokens: int) -> tuple[Observable, ...]:
    return (
        *_fits(_WEIGHED, n_concepts, max_tokens),
        noise_of("concepts-ica"),
        _WEIGHTED,
    )


RECIPES = (
    ConceptRecipe(
        "concepts-figure-14",
        "Correlations with the concepts of the last checkpoint",
        "one minus the column-wise, internal and optimal correlations of ICA, convex NMF and "
        "dictionary learning concepts behaves like the distances.",
        "Bernas 2025, Annex F.2, Fig. 14; Definitions 49 to 51",
        *sizes(partial(_fits, _THREE)),
        "what is shared beyond two decays, with 31 checkpoints.",
        judge=three_kinds,
        reduced=with_curves,
    ),
    ConceptRecipe(
        "concepts-figure-15",
        "Weighted correlations at two sizes",
        "weighted correlations of convex NMF, k-means and ICA behave like the distances at two "
        "sizes, and that of ICA distinguishes the two regimes more clearly.",
        "Bernas 2025, Annex F.2, Fig. 15; Definition 52",
        *two_sizes(_weighed),
        "two models of the report's sizes; the larger here is the usual small one.",
        judge=weighted,
        reduced=with_curves,
    ),
)
