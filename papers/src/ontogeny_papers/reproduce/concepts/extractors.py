"""The report's extractors, with equal arguments in every recipe so that recipes share the fits."""

from __future__ import annotations

from ontogeny.distances import names
from ontogeny.distances.correlations import CORRELATIONS
from ontogeny.features.concepts.dictionaries import Concepts

from ...observables.curves.fits import Fits
from ...observables.curves.regimes import Regimes
from ..verdicts import Found, Runs

CONVEX = "convex NMF (accelerated)"
"""The library's own solver, which all recipes fit that name no other; `solvers` has the others."""
TITLES = {
    "convex-nmf": CONVEX,
    "ica": "ICA",
    "sparse-pca": "sparse PCA",
    "dictionary": "dictionary learning",
    "kmeans": "k-means",
    "svd": "SVD",
    "pca": "PCA",
}
"""What each extractor is called, with its solver where there are several."""
NINE = names()
"""The report's nine distances; Schatten with p = 1.5 and entry-wise with p = 1, so that each
shows something of its own: with p = 2 both are the Frobenius distance."""
EVEN = 17
"""Before the second evenly spaced checkpoint of either size and after all those at doubling steps;
denser checkpoints have another noise for that alone."""
AS_RETURNED = {"distance": "frobenius", "alignment": "as returned"}
"""The curve that the report judges by eye: not matched, in the Frobenius distance."""


def concepts(extractor: str, n_concepts: int, max_tokens: int) -> Concepts:
    """Return the fits of an extractor, with all that the recipes read of them."""
    return Concepts(
        extractor,
        n_concepts,
        max_tokens=max_tokens,
        distances=NINE,
        correlations=tuple(CORRELATIONS),
    )


def noise_of(name: str) -> Regimes:
    """Return the regimes of the curve that the report judges by eye."""
    return Regimes(name, select=AS_RETURNED, first=EVEN)


def shape_of(name: str) -> Fits:
    """Return the shapes of the decay to 0 of that curve, in the dictionary's own units."""
    return Fits(
        name, "distance_to_reference", select=AS_RETURNED, first=EVEN, offset=False
    )


def only_runs(results: Found) -> dict[str, Runs]:
    """Return the nodes of each seed by node, of the one run that a recipe compares with none."""
    return {name: next(iter(runs.values())) for name, runs in results.items()}
