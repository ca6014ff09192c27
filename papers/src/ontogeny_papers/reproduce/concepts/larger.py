"""Figure 13 of the report: a larger member of the family."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import xarray as xr

from ontogeny.claims import Certainty, Reason

from ..formats import joined, short
from ..verdicts import (
    Found,
    Runs,
    RunsOf,
    Verdict,
    decided,
    each,
    if_finite,
    more_often,
)
from . import approach
from .concept_recipe import ConceptRecipe, two_sizes
from .dynamics import observables
from .signals import roughness

_NAME = "concepts-ica"
_FACTOR = 2.0


def judge(results: Found) -> Sequence[Verdict]:
    """Judge whether ICA concepts of two sizes behave alike, and which layers are irregular."""
    of = results[_NAME]
    regimes = results[f"{_NAME}-regimes"]
    alike = [_same_pace(of), _same_answers(results)] if len(of) > 1 else [_NO_SECOND]
    return [*alike, *(_middle(label, runs) for label, runs in regimes.items())]


_NO_SECOND = Verdict(
    "the larger model behaves like the smaller one",
    None,
    "only recorded runs were given, so that there is no second size",
    "no null",
    reason=Reason.NOTHING_SCORED,
)


def _same_pace(of: RunsOf) -> Verdict:
    """Judge whether half of the change is over at a similar share of training."""
    pace = {
        label: each(runs, lambda node: _half(node.half_step, node))
        for label, runs in of.items()
    }
    turned = {
        label: each(runs, lambda node: _half(node.control_half_step, node))
        for label, runs in of.items()
    }
    alike = _alike(pace)
    return Verdict(
        "half of the change is over at a similar share of training",
        alike,
        "; ".join(f"{label}: {joined(values)}" for label, values in pace.items())
        + " of training, one number a seed",
        "turned runs "
        + "; ".join(f"{label}: {short(values)}" for label, values in turned.items())
        + f"; a factor of {_FACTOR:g} counts as different",
        alike=if_finite(_alike(turned) is not False, *turned.values()),
    )


def _half(steps: xr.DataArray, node: xr.Dataset) -> float:
    return float(steps.mean()) / float(node.step.values[-1])


def _alike(shares: dict[str, np.ndarray]) -> bool | None:
    first, second = list(shares.values())[:2]
    apart = np.abs(np.log(np.asarray(first) / np.asarray(second)))
    if not np.isfinite(apart).all():
        return None
    close = apart < np.log(_FACTOR)
    return bool(close.all()) if close.all() or not close.any() else None


def _same_answers(results: Found) -> Verdict:
    """Judge whether the claims on Figure 2 get the same answers at both sizes."""
    answers = {}
    for label, nodes in results[_NAME].items():
        regimes, fits = (
            results[f"{_NAME}-{kind}"][label] for kind in ("regimes", "fits")
        )
        answers[label] = [
            approach.further(nodes),
            approach.two_regimes(nodes, regimes, "as returned"),
            approach.exponential(fits),
        ]
    pairs = list(zip(*answers.values(), strict=True))
    judged = [
        pair for pair in pairs if all(verdict.holds is not None for verdict in pair)
    ]
    same = [pair[0].holds == pair[1].holds for pair in judged]
    return Verdict(
        "the larger model behaves like the smaller one",
        decided(len(judged) == len(pairs) and all(same), False in same),
        "; ".join(
            f"{label}: fall further than turned runs: {_found(one)}, regimes: {_found(two)}, "
            f"exponential: {_found(three)}"
            for label, (one, two, three) in answers.items()
        ),
        "what is not shown at either size is no likeness",
        reason=Reason.NOTHING_SCORED,
    )


def _found(verdict: Verdict) -> str:
    sure = verdict.certainty is Certainty.SURE
    return (verdict.kind if sure else verdict.certainty).value


def _middle(label: str, regimes: Runs) -> Verdict:
    """Judge whether the most irregular layer is neither the first nor the last."""
    rough = [roughness(node) for node in regimes]
    places = np.array([np.argmax(one) for one in rough])
    count = sum(0 < p < len(one) - 1 for p, one in zip(places, rough, strict=True))
    depth = len(rough[0])
    chance = max(depth - 2, 0) / depth
    more, p = more_often(int(count), len(rough), chance) if chance else (False, np.nan)
    return Verdict(
        f"{label}: irregular layers are in the middle",
        decided(more, count == 0 and len(rough) > 4, *rough),
        f"the roughest of {depth} layers is neither the first nor the last in {count} of "
        f"{len(rough)} seeds (layers {', '.join(str(place) for place in places)}, the first is 0)",
        f"by chance in a share of {chance:.2g} (as many or more p = {p:.2g})"
        if chance
        else "a model of fewer than three layers has no middle",
        reason=Reason.WITHIN_CHANCE,
    )


RECIPES = (
    ConceptRecipe(
        "concepts-figure-13",
        "A larger member of the family",
        "the ICA concepts of a larger model behave like those of a smaller one, with irregular "
        "layers near the middle.",
        "Bernas 2025, Annex F.1, Fig. 13",
        *two_sizes(partial(observables, "ica")),
        "models of the report's sizes, 12 and 26 layers deep; and with three layers and two seeds "
        "where irregular layers are.",
        judge=judge,
    ),
)
