"""Sections 5.2 and 5.3 of the report: whether concepts converge because parameters do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from ontogeny.observables import Observable

from ...observables.concepts.lipschitz import Lipschitz
from ..formats import short
from ..verdicts import Found, Runs, Verdict, decided, each, if_finite
from .concept_recipe import ConceptRecipe, sizes
from .extractors import AS_RETURNED, TITLES, concepts, only_runs

_TITLES = {key: TITLES[key] for key in ("convex-nmf", "ica")}
_EVERY = _TITLES | {key: TITLES[key] for key in ("svd", "pca")}
"""With extractors whose stability section 5.3 discusses, of which no ratio is judged."""
_CONSTANT = 2.0
"""Largest over smallest ratio that counts as constant."""
_MATCHED = {"distance": "procrustes", "alignment": "matched"}


def judge(results: Found) -> Sequence[Verdict]:
    """Judge the ratios along the run, and what size alone explains."""
    one = only_runs(results)
    nodes = {title: one[f"concepts-{key}-lipschitz"] for key, title in _TITLES.items()}
    first = next(iter(nodes.values()))
    return [
        *(_constant(title, runs, AS_RETURNED) for title, runs in nodes.items()),
        *(_constant(title, runs, _MATCHED) for title, runs in nodes.items()),
        _parameters(first),
        *(
            _size_alone(
                title,
                one[f"concepts-{key}-lipschitz"],
                # That SVD and PCA are Lipschitz is all that section 5.3 says of them.
                of_paper=key in _TITLES,
            )
            for key, title in _EVERY.items()
        ),
    ]


def _constant(title: str, nodes: Runs, select: dict[str, str]) -> Verdict:
    name = "concepts_per_activations"
    return _steady(
        f"{title}: concept distance per activation distance stays the same "
        f"({select['distance'].capitalize()}, {select['alignment']})",
        [node[name].sel(select) for node in nodes],
        [
            node[f"{name}_control"].sel(select) if f"{name}_control" in node else None
            for node in nodes
        ],
    )


def _parameters(nodes: Runs) -> Verdict:
    name = "activations_per_parameters"
    return _steady(
        "activation distance per parameter distance stays the same",
        [node[name] for node in nodes],
        [node.get(f"{name}_control") for node in nodes],
    )


def _steady(
    claim: str, ratios: Sequence[xr.DataArray], turned: Sequence[xr.DataArray | None]
) -> Verdict:
    """Judge whether a ratio is constant over the steps before the reference, and not in controls.

    Any finite series is bounded, so that a bound alone says nothing. The report claims a bound, and
    says that it does not imply the same behaviour.
    """
    times, first, last = (
        np.array([f(ratio) for ratio in ratios]) for f in (_times, _first, _last)
    )
    controls = np.array([np.nan if one is None else _times(one) for one in turned])
    steady = bool((times <= _CONSTANT).all()) if np.isfinite(times).all() else None
    if steady is False and (times <= _CONSTANT).any():
        steady = None
    return Verdict(
        claim,
        steady,
        f"largest over smallest, median of the layers, {short(times)}; from {short(first)} at the "
        f"first to {short(last)} at the last checkpoint before the reference",
        f"turned runs, read at few checkpoints, {short(controls)} times; within {_CONSTANT:g} "
        "counts as constant; every finite run has a bound",
        alike=if_finite((controls <= _CONSTANT).any(), controls),
        of_paper=False,
    )


def _read(ratio: xr.DataArray) -> xr.DataArray:
    """Return a ratio before the reference step, where both distances are rounding errors."""
    before = ratio.isel(step=slice(None, -1))
    return before.where(before > 0).dropna("step", how="all")


def _times(ratio: xr.DataArray) -> float:
    values = _read(ratio)
    return float((values.max("step") / values.min("step")).median())


def _first(ratio: xr.DataArray) -> float:
    return float(_read(ratio).isel(step=0).median())


def _last(ratio: xr.DataArray) -> float:
    return float(_read(ratio).isel(step=-1).median())


def _size_alone(title: str, nodes: Runs, *, of_paper: bool) -> Verdict:
    """Judge whether differences of the same size, out of order, move the concepts as far."""
    times = each(nodes, _times_permuted)
    about = (times >= 0.8) & (times <= 1.25)
    rho = each(
        nodes, lambda node: node.spearman.mean() if "spearman" in node else np.nan
    )
    return Verdict(
        f"{title}: how far the activations are explains how far the concepts are",
        decided(about.all(), not about.any(), times),
        f"the run's differences from the last checkpoint move the concepts {short(times)} times as "
        "far as the same differences permuted over tokens",
        f"0.8 to 1.25 times counts as alike; rank correlation of the two distances {short(rho)}, "
        "as two decays have it; about the maps, in runs that learn nothing as well",
        of_paper=of_paper,
    )


def _times_permuted(node: xr.Dataset) -> float:
    if "permuted_relative" not in node:
        return np.nan
    permuted = node.permuted_relative.where(node.permuted_relative > 0)
    return float((node.here_relative / permuted).median())


def _observables(n_concepts: int, max_tokens: int) -> tuple[Observable, ...]:
    of = {key: concepts(key, n_concepts, max_tokens) for key in _EVERY}
    return (
        *of.values(),
        *(
            Lipschitz(e.name, key, n_concepts, max_tokens=max_tokens)
            for key, e in of.items()
        ),
    )


RECIPES = (
    ConceptRecipe(
        "concepts-lipschitz",
        "From parameters to activations to concepts",
        "concepts converge because activations do, and these because parameters do: their "
        "distances stay within Lipschitz constants.",
        "Bernas 2025, sec. 5.2 and 5.3, Definitions 35 to 37, Property 1",
        *sizes(_observables),
        "a model in which the bound of the report could be computed: it has no closed form.",
        judge=judge,
    ),
)
