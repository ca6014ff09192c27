"""Figure 16 of the report: exponentials fitted to decays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ontogeny.features.activations.decay import ActivationDecay
from ontogeny.observables import Observable

from ...observables.curves.fits import Fits
from ..formats import short
from ..verdicts import Found, Verdict, each
from . import approach
from .concept_recipe import ConceptRecipe, sizes
from .extractors import EVEN, concepts, only_runs, shape_of
from .signals import SIGNALS

_NEAR_ONE = 0.9


def judge(results: Found) -> Sequence[Verdict]:
    """Judge how well exponentials fit, and whether other shapes fit as well."""
    one = only_runs(results)
    fits = {"activation decay": one["activation-decay-fits"]}
    fits |= {
        f"{title} distance": one[f"concepts-{key}-fits"]
        for key, title in SIGNALS.items()
    }
    r2 = {
        what: each(nodes, lambda node: node.r2.mean()) for what, nodes in fits.items()
    }
    others = {what: approach.best_other(nodes) for what, nodes in fits.items()}
    near, beside = (np.column_stack(list(table.values())) for table in (r2, others))
    if not np.isfinite(near).all():
        holds = None
    elif (near > _NEAR_ONE).all():
        holds = None if (beside > _NEAR_ONE).all() else True
    else:
        holds = False if (near <= _NEAR_ONE).any(axis=1).all() else None
    return [
        Verdict(
            "exponentials fit with R² near 1 over the whole run",
            holds,
            ", ".join(f"{what} {short(values)}" for what, values in r2.items()),
            "the best of power law, stretched exponential and straight line: "
            + ", ".join(f"{what} {short(values)}" for what, values in others.items())
            + f"; {_NEAR_ONE:g} counts as near 1",
            of_paper=False,
        ),
        *(
            approach.exponential(nodes, approach.WHOLE.format(what))
            for what, nodes in fits.items()
        ),
    ]


def _observables(n_concepts: int, max_tokens: int) -> tuple[Observable, ...]:
    of = [concepts(key, n_concepts, max_tokens) for key in SIGNALS]
    return (
        ActivationDecay(max_tokens=max_tokens),
        *of,
        Fits("activation-decay", "distance", first=EVEN, offset=False),
        *(shape_of(extractor.name) for extractor in of),
    )


RECIPES = (
    ConceptRecipe(
        "concepts-figure-16",
        "Exponentials fitted to the decays",
        "activation decay and the distances of ICA, sparse PCA and dictionary learning concepts "
        "converge linearly in their first regime, and exponentials are fitted to them.",
        "Bernas 2025, Annex F.3, Fig. 16",
        *sizes(_observables),
        "25 checkpoints rarely distinguish an exponential from a stretched one.",
        judge=judge,
    ),
)
