"""Sections 5.1, 6.1 and Annex F.3: whether the first regime decays nearly exponentially."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from ontogeny.claims import Reason
from ontogeny.features.concepts.dictionaries import Concepts
from ontogeny.observables import Observable

from ...dynamics.fit_comparison import compare_fits
from ...observables.curves.regimes import Regimes
from ..verdicts import Found, Runs, Verdict
from . import approach
from .concept_recipe import ConceptRecipe, ConceptSize, sizes
from .extractors import AS_RETURNED, EVEN, TITLES, only_runs

_KEYS = ("convex-nmf", "ica", "sparse-pca", "dictionary", "kmeans")  # of Figures 1 to 5
_SHARE = 100 / 480  # of training, where the report sees its first regime end
_WINDOWS = {
    "printed": "up to the report's boundary, 100,000 of 480,000 steps",
    "found": "up to the boundary that is found",
}


def with_fits(results: Found) -> Found:
    """Return fits of the curves of each extractor, of both windows, in place of the concepts."""
    return {
        f"{key}-{window}": {
            label: [
                _fits(node, _end(node, regimes, window))
                for node, regimes in zip(
                    runs, results[f"{_label(key)}-regimes"][label], strict=True
                )
            ]
            for label, runs in results[_label(key)].items()
        }
        for key in _KEYS
        for window in _WINDOWS
    }


def _label(key: str) -> str:
    return f"concepts-{key}-first-regime"


def _end(node: xr.Dataset, regimes: xr.Dataset, window: str) -> float:
    if window == "printed":
        return _SHARE * float(node.step[-1])
    return float(regimes.joint_boundary)


def _fits(node: xr.Dataset, end: float) -> xr.Dataset:
    """Return which shape each layer's distance has up to a step; no layer where there is none."""
    curves = node.distance_to_reference.sel(AS_RETURNED).transpose("layer", "step")
    inside = curves.where((curves.step >= EVEN) & (curves.step <= end), drop=True)
    found = [compare_fits(inside.step.values, y, False) for y in inside.values]
    judged = [each for each in found if each.best]
    models = list(judged[0].fits) if judged else ["exponential", "power"]
    r2 = [[each.fits[model].r2 for model in models] for each in judged]
    table = np.array(r2, dtype=float).reshape(len(judged), len(models))
    return xr.Dataset(
        {
            "exponential": ("layer", [float(each.exponential) for each in judged]),
            "ruled_out": ("layer", [float(each.ruled_out) for each in judged]),
            "r2": ("layer", table[:, models.index("exponential")]),
            "r2_of": (("layer", "model"), table),
        },
        {"model": models},
    )


def judge(results: Found) -> Sequence[Verdict]:
    """Judge both windows of every extractor."""
    one = only_runs(results)
    return [
        _of_window(one[f"{key}-{window}"], TITLES[key], words)
        for key in _KEYS
        for window, words in _WINDOWS.items()
    ]


def _of_window(fits: Runs, title: str, words: str) -> Verdict:
    claim = f"{title}: the first regime decays nearly exponentially, {words}"
    judged = [node for node in fits if node.sizes["layer"]]
    if not judged:
        why = "no seed has a boundary with enough checkpoints before it"
        return Verdict(claim, None, why, "no null", reason=Reason.FEW_CHECKPOINTS)
    verdict = approach.exponential(judged, claim, of_paper=True)
    seeds = f"; {len(judged)} of {len(fits)} seeds have such a window"
    if len(judged) < len(fits):
        verdict = replace(verdict, holds=None, reason=Reason.FEW_CHECKPOINTS)
    return replace(verdict, beside=verdict.beside + seeds)


def _observables(n_concepts: int, max_tokens: int) -> tuple[Observable, ...]:
    max_tokens //= 2  # of twice as many checkpoints as elsewhere
    return tuple(
        observable
        for key in _KEYS
        for observable in (
            Concepts(
                key,
                n_concepts,
                max_tokens=max_tokens,
                distances=("frobenius",),
                label=_label(key),
            ),
            Regimes(_label(key), select=AS_RETURNED, first=EVEN),
        )
    )


def _dense(size: ConceptSize, checkpoints: int) -> ConceptSize:
    """Return a size whose first fifth has checkpoints enough to tell shapes apart."""
    runs = {
        label: replace(run, checkpoints=checkpoints) for label, run in size.runs.items()
    }
    return replace(size, runs=runs)


_FULL, _QUICK = sizes(_observables)
RECIPES = (
    ConceptRecipe(
        "concepts-first-regime",
        "The shape of the first regime",
        "the distances of the concepts to those of the last checkpoint decay nearly exponentially "
        "in the first regime, from step 0 to about 100,000 of 480,000.",
        "Bernas 2025, sec. 5.1 and 6.1, Annex F.3",
        _dense(_FULL, 96),
        _dense(_QUICK, 50),
        "the report's own model; a window of 9 checkpoints rarely distinguishes shapes.",
        judge=judge,
        reduced=with_fits,
        controls=0,
    ),
)
