"""Figures 1 to 5 of the report: how concepts approach those of the last checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ontogeny.observables import Observable

from ...observables.curves.learning import LearningDynamics
from ...observables.curves.regimes import Regimes
from ..verdicts import Found, Verdict
from . import approach
from .concept_recipe import ConceptRecipe, sizes
from .extractors import (
    AS_RETURNED,
    EVEN,
    TITLES,
    concepts,
    noise_of,
    only_runs,
    shape_of,
)

LIMITS = (
    "25 evenly spaced checkpoints miss changes of noise up to about threefold, and the learning "
    "rate falls to zero; the report has 48 checkpoints of a model a thousand times as large."
)
_ALIGNED = "aligned"
_BESIDE = ("ica", "sparse-pca")
"""What the report compares convex NMF with."""


def judge(extractor: str, results: Found) -> Sequence[Verdict]:
    """Judge the curves of one extractor."""
    one = only_runs(results)
    name = f"concepts-{extractor}"
    nodes = one[name]
    verdicts = [
        approach.falls(nodes),
        approach.further(nodes),
        approach.two_regimes(nodes, one[f"{name}-regimes"], "as returned"),
        approach.two_regimes(
            nodes, one[f"{name}-regimes-{_ALIGNED}"], "rotation removed"
        ),
        # The report says so of its first regime alone, which is not found here; see Figure 16.
        approach.exponential(one[f"{name}-fits"]),
        approach.converges(one[f"{name}-learning-dynamics"]),
    ]
    title = TITLES[extractor]
    return [replace(each, claim=f"{title}: {each.claim}") for each in verdicts]


def judge_beside(extractor: str, results: Found) -> Sequence[Verdict]:
    """Judge the curves of one extractor, and whether they are smoother than those of others."""
    one = only_runs(results)
    every = {key: TITLES[key] for key in (extractor, *_BESIDE)}
    nodes = {title: one[f"concepts-{key}"] for key, title in every.items()}
    regimes = {title: one[f"concepts-{key}-regimes"] for key, title in every.items()}
    return [
        *judge(extractor, results),
        approach.smoother(every[extractor], nodes, regimes),
    ]


def observables(
    extractor: str, n_concepts: int, max_tokens: int
) -> tuple[Observable, ...]:
    """Return the concepts of an extractor with what is read of their curves."""
    of = concepts(extractor, n_concepts, max_tokens)
    return (
        of,
        noise_of(of.name),
        Regimes(of.name, first=EVEN, label=f"{of.name}-regimes-{_ALIGNED}"),
        shape_of(of.name),
        LearningDynamics(of.name, select=AS_RETURNED),
    )


def _beside(n_concepts: int, max_tokens: int) -> tuple[Observable, ...]:
    others = [concepts(extractor, n_concepts, max_tokens) for extractor in _BESIDE]
    return (*others, *(noise_of(other.name) for other in others))


_CLAIM = (
    "the distances of the {title} concepts to those of the last checkpoint fall smoothly, nearly "
    "exponentially, then turn noisy"
)
_WIKIPEDIA = " (on Wikipedia; any text can be given)"
_REVIEWS = " (on film reviews; any text can be given)"


def _recipe(number: int, extractor: str, text: str, more: str = "") -> ConceptRecipe:
    title = TITLES[extractor]
    beside = extractor == "convex-nmf"
    return ConceptRecipe(
        f"concepts-figure-{number}",
        f"{title[:1].upper()}{title[1:]} concepts on their way to the last checkpoint",
        f"{_CLAIM.format(title=title)}{more}{text}.",
        f"Bernas 2025, sec. 5.1, Algorithm 2 and Fig. {number}; Definitions 10 to 12",
        *sizes(
            lambda n, m: (
                *observables(extractor, n, m),
                *(_beside(n, m) if beside else ()),
            )
        ),
        LIMITS,
        judge=partial(judge_beside if beside else judge, extractor),
    )


RECIPES = (
    _recipe(
        1, "convex-nmf", _REVIEWS, "; late, they are smoother than with ICA or PCA"
    ),
    _recipe(2, "ica", _REVIEWS),
    _recipe(3, "sparse-pca", _REVIEWS),
    _recipe(4, "dictionary", _WIKIPEDIA),
    _recipe(5, "kmeans", _WIKIPEDIA),
)
