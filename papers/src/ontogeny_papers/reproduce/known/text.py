"""Unigrams, then bigrams, then context: what a language model reaches when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from ontogeny.features.circuits.agreement import NgramAgreement
from ontogeny.features.circuits.in_context import InContextLearning

from ..evidence import Found, each, joined, listed, short, unanimous
from ..verdicts import Verdict
from .formation import Formation
from .known_recipe import KnownRecipe, KnownSize
from .text_run import TextRun

_RUN = "language model"
_LEFT = 0.1
"""Nats by which the distance to n-grams must rise again to count as left."""


def judge(results: Found) -> list[Verdict]:
    """Judge in which order a model comes closest to n-grams, and when context helps."""
    nodes = results["ngram-agreement"][_RUN]
    score = results["in-context-learning"][_RUN]
    uni, bi, tri = (_Closest(nodes, name) for name in ("unigrams", "bigrams", "trigrams"))
    context = Formation.of(score, "in-context learning")
    short_context = each(score, lambda run: run.score_short.isel(step=-1))
    return [
        _before(uni, bi),
        _before(bi, tri),
        *(_leaves(one) for one in (uni, bi)),
        Verdict(
            "context helps only after bigrams are reached",
            unanimous(context.low > bi.low, context.low)
            if np.isfinite(context.low).all() and context.beyond.all()
            else None,
            f"half-change step of the in-context-learning score {context.steps}; closest to "
            f"bigrams at {listed(bi.step)}; score {context.change} nats",
            f"{context.controls}; late tokens with as little context as early ones "
            f"{short(short_context)}",
        ),
    ]


class _Closest:
    """When a run of every seed was closest to n-grams of one n, and how close."""

    def __init__(self, nodes: Sequence[xr.Dataset], name: str) -> None:
        ones = [node.sel(ngram=name) for node in nodes]
        self.name = name
        self.step = each(ones, lambda one: one.closest_step)
        self.low = each(ones, lambda one: one.closest_step_low)
        self.high = each(ones, lambda one: one.closest_step_high)
        self.smallest = each(ones, lambda one: one.divergence.min())
        self.last = each(ones, lambda one: one.divergence.isel(step=-1))
        self.control = each(ones, lambda one: one.divergence_control.min())
        self.other = each(ones, lambda one: one.divergence_other.isel(step=-1))

    @property
    def steps(self) -> str:
        """Steps of the seeds with their intervals."""
        parts = zip(self.step, self.low, self.high, strict=True)
        return ", ".join(f"{step:,.0f} ({low:,.0f}–{high:,.0f})" for step, low, high in parts)


def _before(first: _Closest, second: _Closest) -> Verdict:
    return Verdict(
        f"the model is closest to {first.name} before {second.name}",
        unanimous(first.high < second.low, first.high, second.low),
        f"{first.name} at step {first.steps}, {second.name} at step {second.steps}",
        f"{joined(first.smallest)} and {joined(second.smallest)} nats apart there; turned runs "
        f"{joined(first.control)} and {joined(second.control)} at the least",
    )


def _leaves(one: _Closest) -> Verdict:
    return Verdict(
        f"it leaves {one.name} again",
        unanimous(one.last - one.smallest > _LEFT, one.last),
        f"{joined(one.smallest)} nats at the least, {joined(one.last)} in the end",
        f"{one.name} of other places {joined(one.other)} in the end; {_LEFT:g} nats count",
    )


def _steps(last: int) -> tuple[int, ...]:
    """Return steps that are evenly spaced in their logarithm."""
    spaced = np.unique(np.geomspace(1, last, 18).round().astype(int))
    return tuple(int(step) for step in (0, *spaced))


_OBSERVABLES = (
    NgramAgreement(counted="train", on="held out"),
    InContextLearning(on="held out", early=3, late=32, window=8),
)
_QUICK = TextRun()
_FULL = replace(_QUICK, characters=2_000_000, steps=8000, width=128, layers=4, texts=256)
RECIPE = KnownRecipe(
    "known-ngrams",
    "Unigrams, then bigrams, then context",
    "a language model first predicts what word frequencies do, then bigrams, and leaves each of "
    "them as it uses more context.",
    "Belrose et al. 2024, Neural networks learn statistics of increasing complexity; Chang and "
    "Bergen 2022",
    KnownSize({_RUN: _FULL}, (0, 1, 2, 3, 4), _steps(_FULL.steps), _OBSERVABLES),
    KnownSize({_RUN: _QUICK}, (0, 1), _steps(_QUICK.steps), _OBSERVABLES),
    "longer contexts than 32 tokens, and trigrams of more than 300,000 characters.",
    judge=judge,
)
"""The case as a recipe."""
