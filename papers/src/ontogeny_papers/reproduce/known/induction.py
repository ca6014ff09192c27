"""Induction heads and the fall of the in-context-learning score (Olsson et al. 2022)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from ontogeny.features.circuits.heads import AttentionHeads
from ontogeny.features.circuits.in_context import InContextLearning
from ontogeny.features.circuits.sequences import random_sequences
from ontogeny.inputs import Inputs

from ..formats import short
from ..training import OptimizerSettings
from ..verdicts import Found, Verdict, each, exceeds, unanimous
from .formation import Formation
from .known_recipe import KnownRecipe, KnownSize
from .next_token_run import NextTokenRun

_TRAINING = 0x696E6475
_TESTING = 0x74657374


@dataclass(frozen=True)
class InductionRun(NextTokenRun):
    """One training on random tokens that are repeated, with a period that differs by batch.

    The period is drawn between a third and a half of the length. With a fixed one a head could
    find the earlier copy by its distance, without looking for the token.

    Parameters
    ----------
    vocab_size, length
        Token ids, at least as many as `length`; tokens of a sequence.
    layers, width, heads
        Sizes of the `NextTokenForCausalLM`, which has no MLPs.
    steps, batch_size
        Updates, and sequences of each.
    optimizer
        `OptimizerSettings`.
    texts
        Sequences of each kind that are studied.

    Examples
    --------
    >>> InductionRun(length=12).batches(0)(0).shape
    torch.Size([64, 12])
    """

    vocab_size: int = 32
    length: int = 24
    layers: int = 2
    width: int = 64
    heads: int = 2
    steps: int = 500
    batch_size: int = 64
    optimizer: OptimizerSettings = field(
        default_factory=lambda: OptimizerSettings(
            learning_rate=2e-3, schedule="constant"
        )
    )
    texts: int = 128

    def batches(self, seed: int) -> Callable[[int], Tensor]:
        """Return a function of the update, counted from 0, that returns its sequences."""

        def batch(step: int) -> Tensor:
            rng = np.random.default_rng([_TRAINING, seed, step])
            period = int(rng.integers(self.length // 3, self.length // 2 + 1))
            once = rng.integers(self.vocab_size, size=(self.batch_size, period))
            times = -(-self.length // period)
            return torch.from_numpy(np.tile(once, (1, times))[:, : self.length].copy())

        return batch

    def inputs(self) -> dict[str, Inputs]:
        """Return ``repeated`` sequences of half the length, and ``unrepeated`` ones."""
        tokens = np.arange(self.vocab_size)
        pair = random_sequences(tokens, self.texts, self.length // 2, _TESTING)
        return {
            name: Inputs.from_tokens(ids, vocab_size=self.vocab_size)
            for name, ids in zip(("repeated", "unrepeated"), pair, strict=True)
        }


_FORMED = 0.3
"""Share of attention that a head must give; equal attention gives 0.06 to 12 tokens."""
_LESS = 0.5  # nats
_TWO = "two layers"
_ONE = "one layer"


def judge(results: Found) -> Sequence[Verdict]:
    """Judge what forms, where, and whether it forms when the in-context-learning score falls."""
    heads = results["attention-heads"]
    score = results["in-context-learning"]
    induction = Formation.of(heads[_TWO], "induction head")
    previous = Formation.of(heads[_TWO], "previous-token head", "layers.0.self_attn")
    learning = Formation.of(score[_TWO], "in-context learning")
    alone = Formation.of(heads[_ONE], "induction head")
    alone_learning = Formation.of(score[_ONE], "in-context learning")
    together = induction.coincides(learning)
    unrepeated = each(
        heads[_TWO],
        lambda run: run.strongest_score_unrepeated.isel(step=-1).max("layer"),
    )[:, -1]
    short_context = each(score[_TWO], lambda run: run.score_short.isel(step=-1))
    other = each(
        results["in-context-unrepeated"][_TWO], lambda run: run.score.isel(step=-1)
    )
    return [
        Verdict(
            "an induction head forms in the second of two layers",
            unanimous((induction.last > _FORMED) & induction.beyond, induction.last),
            f"induction score {induction.change}",
            f"{induction.controls}; sequences without repetition {short(unrepeated)}; "
            f"{_FORMED:g} counts as formed",
        ),
        Verdict(
            "it forms at the step at which the in-context-learning score falls",
            together.holds
            if learning.beyond.all() and induction.beyond.all()
            else None,
            f"half-change steps (95 % intervals): {together.measured}",
            f"score {learning.change} nats; {learning.controls}; intervals of these lengths at "
            f"random steps overlap in every seed with probability {together.chance:.2g}",
        ),
        Verdict(
            "a previous-token head forms in the first layer, no later",
            previous.precedes(induction) if previous.beyond.all() else None,
            f"{previous.steps}; score {previous.change}",
            previous.controls,
        ),
        Verdict(
            "one layer of attention forms no induction head",
            unanimous(alone.last < _FORMED, alone.last),
            f"induction score {alone.change}",
            f"second of two layers {short(induction.last)}; {_FORMED:g} counts as formed",
        ),
        Verdict(
            "one layer of attention learns less from the context",
            exceeds(alone_learning.last, learning.last, _LESS),
            f"in-context-learning score {alone_learning.change} nats",
            f"two layers {short(learning.last)}; half a nat counts; one layer can look back by "
            "distance",
        ),
        Verdict(
            "the score falls on sequences without repetition too",
            unanimous(other < learning.last / 2),
            f"{short(other)} nats in the end",
            f"repeated sequences {short(learning.last)}; their late tokens with as little context "
            f"as early ones {short(short_context)}",
            of_paper=False,
        ),
    ]


def _runs(run: InductionRun) -> dict[str, InductionRun]:
    return {_TWO: run, _ONE: replace(run, layers=1)}


def _observables(run: InductionRun) -> tuple[AttentionHeads | InContextLearning, ...]:
    places = {"early": 3, "late": run.length, "window": run.length // 3}
    return (
        AttentionHeads(on="repeated"),
        InContextLearning(on="repeated", **places),  # type: ignore[arg-type]
        InContextLearning(on="unrepeated", label="in-context-unrepeated", **places),  # type: ignore[arg-type]
    )


_QUICK = InductionRun()
_FULL = replace(_QUICK, width=128, heads=4, steps=1000)
RECIPE = KnownRecipe(
    "known-induction-heads",
    "Induction heads and in-context learning",
    "induction heads form in a narrow window of training, and in it the in-context-learning score "
    "falls; a model of one layer has neither.",
    "Olsson et al. 2022, In-context learning and induction heads, arguments 1 and 2",
    KnownSize(_runs(_FULL), (0, 1, 2, 3, 4), 20, _observables(_FULL)),
    KnownSize(_runs(_QUICK), (0, 1), 20, _observables(_QUICK)),
    "sequences of 24 tokens that repeat, in place of text: how early and late tokens of real text "
    "differ is another matter.",
    judge=judge,
)
"""The case as a recipe."""
