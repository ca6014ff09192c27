"""Unigrams, then bigrams, then context: what a language model reaches when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from ontogeny.claims import Reason
from ontogeny.features.circuits.agreement import NgramAgreement
from ontogeny.features.circuits.in_context import InContextLearning
from ontogeny.inputs import Inputs
from ontogeny.tasks import python_documentation, split_texts, train_tokenizer

from ..formats import joined, listed, short
from ..training import OptimizerSettings, spaced_steps
from ..verdicts import Found, Runs, Verdict, each, unanimous
from .formation import Formation
from .known_recipe import KnownRecipe, KnownSize
from .next_token_run import NextTokenRun

_TRAINING = 0x74657874
_ROW = 128  # tokens of the rows in which the training text is counted


@dataclass(frozen=True)
class TextRun(NextTokenRun):
    """One training of a causal transformer with MLPs on random crops of a text.

    Parameters
    ----------
    characters
        How much of Python's documentation is read, whole passages.
    vocab_size
        Largest number of tokens; few, so that the n-grams of the text are well known.
    length, batch_size, steps
        Tokens of a crop, crops of an update, updates.
    layers, width, heads
        Sizes of the `NextTokenForCausalLM`.
    optimizer
        `OptimizerSettings`.
    texts
        Held-out crops that are studied.

    Examples
    --------
    >>> TextRun(steps=10).steps
    10
    """

    characters: int = 300_000
    vocab_size: int = 320
    length: int = 32
    batch_size: int = 32
    steps: int = 800
    layers: int = 2
    width: int = 64
    heads: int = 4
    optimizer: OptimizerSettings = field(
        default_factory=lambda: OptimizerSettings(learning_rate=2e-3)
    )
    texts: int = 96
    longest = _ROW
    use_mlp = True

    def streams(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the tokens of the training text and of the text held out, one after the other."""
        return _streams(self.characters, self.vocab_size)

    def batches(self, seed: int) -> Callable[[int], Tensor]:
        """Return a function of the update, counted from 0, that returns its crops."""
        ids, _ = self.streams()
        places = np.arange(self.length)

        def batch(step: int) -> Tensor:
            rng = np.random.default_rng([_TRAINING, seed, step])
            begin = rng.integers(len(ids) - self.length, size=self.batch_size)
            return torch.from_numpy(ids[begin[:, None] + places])

        return batch

    def inputs(self) -> dict[str, Inputs]:
        """Return ``held out`` crops, and the training text in rows, as it is counted."""
        train, other = self.streams()
        crops = other[: len(other) // self.length * self.length].reshape(
            -1, self.length
        )
        every = np.linspace(0, len(crops) - 1, min(self.texts, len(crops))).astype(int)
        rows = train[: len(train) // _ROW * _ROW].reshape(-1, _ROW)
        sets = {"held out": crops[every], "train": rows}
        return {
            name: Inputs.from_tokens(ids, vocab_size=self.vocab_size)
            for name, ids in sets.items()
        }


@lru_cache(maxsize=2)
def _streams(characters: int, vocab_size: int) -> tuple[np.ndarray, np.ndarray]:
    texts = []
    total = 0
    for text in python_documentation():
        texts.append(text)
        total += len(text)
        if total >= characters:
            break
    parts = split_texts(texts, 0.1)
    # Whole passages are encoded and crops are cut from them: none is too long for the tokenizer.
    tokenizer = train_tokenizer(parts[0], vocab_size, max_length=characters)
    streams = [
        np.concatenate(
            [tokenizer(text, add_special_tokens=False).input_ids for text in part]
        )
        for part in parts
    ]
    return streams[0].astype(np.int64), streams[1].astype(np.int64)


_RUN = "language model"
_LEFT = 0.1
"""Nats by which the distance to n-grams must rise again to count as left."""


def judge(results: Found) -> list[Verdict]:
    """Judge in which order a model comes closest to n-grams, and when context helps."""
    nodes = results["ngram-agreement"][_RUN]
    score = results["in-context-learning"][_RUN]
    uni, bi, tri = (
        _Closest(nodes, name) for name in ("unigrams", "bigrams", "trigrams")
    )
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
            reason=Reason.CASES_DIFFER if context.beyond.any() else Reason.WITHIN_NOISE,
        ),
    ]


class _Closest:
    """When a run of every seed was closest to n-grams of one n, and how close."""

    def __init__(self, nodes: Runs, name: str) -> None:
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
        return ", ".join(
            f"{step:,.0f} ({low:,.0f}–{high:,.0f})" for step, low, high in parts
        )


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


_OBSERVABLES = (
    NgramAgreement(counted="train", on="held out"),
    InContextLearning(on="held out", early=3, late=32, window=8),
)
_QUICK = TextRun()
_FULL = replace(
    _QUICK, characters=2_000_000, steps=8000, width=128, layers=4, texts=256
)
RECIPE = KnownRecipe(
    "known-ngrams",
    "Unigrams, then bigrams, then context",
    "a language model first predicts what word frequencies do, then bigrams, and leaves each of "
    "them as it uses more context.",
    "Belrose et al. 2024, Neural networks learn statistics of increasing complexity; Chang and "
    "Bergen 2022",
    KnownSize(
        {_RUN: _FULL},
        (0, 1, 2, 3, 4),
        tuple(spaced_steps(_FULL.steps, 18)),
        _OBSERVABLES,
    ),
    KnownSize(
        {_RUN: _QUICK}, (0, 1), tuple(spaced_steps(_QUICK.steps, 18)), _OBSERVABLES
    ),
    "longer contexts than 32 tokens, and trigrams of more than 300,000 characters.",
    judge=judge,
)
"""The case as a recipe."""
