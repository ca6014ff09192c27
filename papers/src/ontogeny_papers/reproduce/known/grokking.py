"""Grokking of modular addition: held-out accuracy, frequencies, ranks (Nanda et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from ontogeny.features.concepts.vocabulary import VocabularyConcepts
from ontogeny.observables import Observable

from ...observables.commutators import Commutators
from ...observables.frequencies import EmbeddingFrequencies
from ...observables.readout.accuracy import ReadoutAccuracy
from ...observables.weight_rank import WeightRank
from ..evidence import Found, each, joined, last_of, listed, short, spread, unanimous
from ..ranks import below_random_order, span, whole_ranks
from ..training import OptimizerSettings
from ..verdicts import Verdict
from .formation import Formation
from .known_recipe import KnownRecipe, KnownSize
from .modular_run import ModularRun
from .waves import Waves, all_frequencies

_DECAY, _NONE = "weight decay", "no weight decay"
_LATER = 5.0
"""How many times as many steps count as long after."""
_LEARNED, _UNLEARNED = 0.9, 0.5
_BEFORE = 0.1
"""Share of the change in frequencies that counts as begun, and accuracy that counts as none."""

_LATENTS = 10
"""Of the joint dictionary: two for each of five frequencies, as in the paper's models."""


def judge(results: Found) -> Sequence[Verdict]:
    """Judge when the held-out pairs are answered, and what the embedding does meanwhile."""
    accuracy = results["readout-accuracy"]
    trained = Formation.of(accuracy[_DECAY], "trained · accuracy")
    held_out = Formation.of(accuracy[_DECAY], "held out · accuracy")
    without = last_of(accuracy[_NONE], "accuracy")
    nodes = results["embedding-frequencies"][_DECAY]
    frequencies = Formation.of(nodes, "· frequencies")
    permuted = each(nodes, lambda run: run.frequencies_permuted_low.isel(step=-1).min())
    together = frequencies.coincides(held_out)
    learned = held_out.last > _LEARNED
    later = held_out.step / trained.step
    begun = _begun(accuracy[_DECAY], nodes)
    return [
        Verdict(
            "held-out pairs are answered long after the training pairs",
            unanimous(learned & held_out.beyond & (later >= _LATER), held_out.last),
            f"accuracy in the end {short(held_out.last)}; half-change steps {held_out.steps}, of "
            f"the training pairs {trained.steps}",
            f"{held_out.controls}; {_LATER:g} times as many steps count as long after",
        ),
        Verdict(
            "without weight decay the held-out pairs are not learned in as many steps",
            unanimous(without[:, 1] < _UNLEARNED, without) if learned.all() else None,
            f"accuracy on held-out pairs {short(without[:, 1])}, on training pairs "
            f"{short(without[:, 0])}",
            f"with weight decay {short(held_out.last)}; below {_UNLEARNED:g} counts as not learned",
        ),
        Verdict(
            "the embedding comes down to a few frequencies",
            unanimous((frequencies.last < permuted / 2) & frequencies.beyond, frequencies.last),
            f"participation ratio of the frequencies {frequencies.change}",
            f"{frequencies.controls}; tokens in random order at least {short(permuted)}, half of "
            "that counts as few",
        ),
        Verdict(
            "it does so when the held-out pairs are learned",
            together.holds if learned.all() else None,
            f"half-change steps (95 % intervals): {together.measured}",
            "intervals of these lengths at random steps overlap in every seed with probability "
            f"{together.chance:.2g}",
        ),
        Verdict(
            "it begins while the held-out accuracy is still low",
            unanimous(begun > _BEFORE, begun) if learned.all() else None,
            f"share of its change before the held-out accuracy is above {_BEFORE:g} for good: "
            f"{joined(begun)}",
            f"more than {_BEFORE:g} counts; turned runs have no such change (above)",
        ),
        _of_concepts(results, held_out),
        *_of_updates(results, trained, held_out),
    ]


def _begun(accuracy: Sequence[xr.Dataset], frequencies: Sequence[xr.Dataset]) -> np.ndarray:
    """Return the share of the change in frequencies done while held-out accuracy is low."""
    shares = []
    for right, node in zip(accuracy, frequencies, strict=True):
        low = np.flatnonzero(right.accuracy.sel(set="held out").values <= _BEFORE)
        count = node.frequencies.isel(layer=0).values
        last = low[-1] if len(low) else 0
        shares.append((count[last] - count[0]) / (count[-1] - count[0]))
    return np.array(shares)


def _of_concepts(results: Found, held_out: Formation) -> Verdict:
    """Return whether the joint dictionary of the embedding finds its frequencies one by one."""
    frequencies = results["embedding-frequencies"][_DECAY]
    numbers = 2 * frequencies[0].sizes["frequency"] + 1
    waves = [
        Waves.of(node, other.power.isel(layer=0, step=-1).values, numbers)
        for node, other in zip(results["vocabulary-concepts"][_DECAY], frequencies, strict=True)
    ]
    shares = np.array([one.share for one in waves])
    beyond = np.array([one.beyond_chance for one in waves])
    counts = np.array([len(one.shares) for one in waves])
    random = np.array([np.median(one.random) for one in waves])
    permuted = np.array([one.permuted for one in waves])
    return Verdict(
        "(not claimed) latents of the embedding's joint dictionary are one frequency each",
        unanimous(beyond),
        f"median share of a latent at one frequency {joined(shares)}, of "
        f"{joined(counts, 0)} readable latents; frequencies {all_frequencies(waves)}; half "
        f"of them readable from step {listed([one.readable_from for one in waves])}",
        f"random directions of the embedding {short(random)}, numbers in random order "
        f"{short(permuted)}, a wave cut at zero .84; "
        f"held-out pairs half learned at {held_out.steps}",
    )


def _of_updates(results: Found, trained: Formation, held_out: Formation) -> list[Verdict]:
    """Return what the variance rank and the commutators do, of which the paper says nothing."""
    ranks = results["weight-rank"]
    below, tested, p = below_random_order(ranks[_DECAY])
    defects = [
        run.defect_over_pairs.sel(statistic="median") for run in results["commutators"][_DECAY]
    ]
    peaks = np.array([float(defect.step[int(defect.argmax("step"))]) for defect in defects])
    between = (peaks >= trained.low) & (peaks <= held_out.high)
    ends = each(defects, lambda defect: defect.isel(step=[0, -1]))
    return [
        Verdict(
            "(not claimed) the weights move in fewer directions than in random order",
            bool(p <= 0.05),
            f"variance rank {spread(whole_ranks(ranks[_DECAY]))}; in {below} of {tested} matrices "
            f"lower (p = {p:.2g})",
            f"directions in random order {span(ranks[_DECAY], 'shuffled')}; without weight decay "
            f"{spread(whole_ranks(ranks[_NONE]))}",
        ),
        Verdict(
            "(not claimed) commutators are largest between learning and generalising",
            unanimous(between, peaks),
            f"largest normalised defect at step {listed(peaks)}",
            f"training pairs half learned at {trained.steps}, held-out ones at {held_out.steps}; "
            f"defect {short(ends[:, 0])} at first and {short(ends[:, 1])} in the end",
        ),
    ]


def _runs(run: ModularRun) -> dict[str, ModularRun]:
    plain = replace(run, optimizer=replace(run.optimizer, weight_decay=0.0))
    return {_DECAY: run, _NONE: plain}


def _observables(modulus: int, pairs: int) -> tuple[Observable, ...]:
    return (
        ReadoutAccuracy(("trained", "held out")),
        EmbeddingFrequencies(tokens=modulus),
        # Waves are no sparse codes, so all are kept; weight decay forgets the start by itself.
        VocabularyConcepts(
            n_concepts=_LATENTS, n_active=_LATENTS, start="kept", max_tokens=None, keep_codes=True
        ),
        WeightRank(("q", "k", "v", "o", "mlp"), n_draws=40),
        Commutators("classification", pairs=pairs, batch_size=64, on="trained"),
    )


_QUICK = ModularRun(steps=4000)
_FULL = replace(
    _QUICK,
    modulus=59,
    width=128,
    steps=12_000,
    optimizer=OptimizerSettings(learning_rate=1e-3, schedule="constant", weight_decay=1.0),
)
RECIPE = KnownRecipe(
    "known-grokking",
    "Grokking of modular addition",
    "with weight decay a transformer answers held-out pairs long after it knows the training "
    "pairs, and its embedding comes down to a few Fourier frequencies gradually.",
    "Nanda et al. 2023, Progress measures for grokking via mechanistic interpretability",
    KnownSize(_runs(_FULL), (0, 1, 2, 3, 4), 400, _observables(59, 9)),
    KnownSize(_runs(_QUICK), (0, 1), 100, _observables(29, 6)),
    "a prime of 29 in place of 113: its 29 rows are too few for a joint dictionary to find waves; "
    "the paper's own progress measures (restricted and excluded loss) are not taken.",
    judge=judge,
)
"""The case as a recipe."""
