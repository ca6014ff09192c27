"""Grokking of modular addition: held-out accuracy, frequencies, ranks (Nanda et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from ontogeny.claims import Reason
from ontogeny.concepts.joint.codes import sparse
from ontogeny.features.concepts.vocabulary import VocabularyConcepts
from ontogeny.observables import Observable

from ...geometry.fourier import row_frequencies
from ...observables.commutators import Commutators
from ...observables.frequencies import EmbeddingFrequencies
from ...observables.readout.accuracy import ReadoutAccuracy
from ...observables.weight_rank import WeightRank
from ..comparison_judges import below_random_order, span, whole_ranks
from ..formats import joined, listed, short, spread
from ..training import OptimizerSettings
from ..verdicts import Found, Runs, Verdict, each, last_of, unanimous
from .formation import Formation
from .known_recipe import KnownRecipe, KnownSize
from .modular_run import ModularRun

_DRAWS = 1000
_UNUSUAL = 0.95
_READABLE = VocabularyConcepts().readable


def wave_shares(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest share of each code's variance at one frequency, and that frequency.

    Codes are cut at zero, so that a wave has about .84 and not 1.

    Parameters
    ----------
    codes
        Codes of the numbers 0 to n − 1 (n, r); none is constant.

    Returns
    -------
    shares, frequencies : numpy.ndarray
        (r,) each; frequencies in cycles over all numbers.

    Examples
    --------
    >>> wave = np.cos(2 * np.pi * 3 * np.arange(29) / 29)
    >>> shares, frequencies = wave_shares(np.maximum(wave, 0)[:, None])
    >>> shares.round(2), frequencies
    (array([0.84]), array([3]))
    """
    power = np.stack([row_frequencies(code[:, None]) for code in codes.T])
    return power.max(axis=1), 1 + power.argmax(axis=1)


@dataclass(frozen=True)
class Waves:
    """How far the latents of one run's embedding are waves, and what chance gives.

    Those that can be read from a checkpoint count. Another seed need not find them again: the
    phase of a wave is arbitrary.

    Parameters
    ----------
    shares, frequencies
        Of each latent, as `wave_shares`.
    random
        Shares of random directions of the same embedding, (draws,).
    permuted
        Median share of the latents with the numbers in random order.
    readable_from
        First step at which half of as many as ever are can be read; NaN if none ever is.
    """

    shares: np.ndarray
    frequencies: np.ndarray
    random: np.ndarray
    permuted: float
    readable_from: float

    @classmethod
    def of(cls, concepts: xr.Dataset, power: np.ndarray, numbers: int) -> Waves:
        """Return those of a ``vocabulary-concepts`` node that keeps codes.

        Parameters
        ----------
        concepts
            The node of one run.
        power
            Share of the embedding's variance at each frequency, at the last step.
        numbers
            How many tokens are numbers, from id 0 on.
        """
        one = concepts.isel(block=0)
        codes = (
            one.codes.sel(token=np.arange(numbers)).transpose("token", "concept").values
        )
        readable = one.readability.transpose("step", "concept").values >= _READABLE
        mask = readable.any(axis=0) & (codes.std(axis=0) > 0)
        rng = np.random.default_rng(0)
        shares, frequencies = (
            wave_shares(codes[:, mask]) if mask.any() else (np.zeros(0),) * 2
        )
        permuted = (
            wave_shares(rng.permutation(codes[:, mask]))[0] if mask.any() else np.nan
        )
        there = readable.sum(axis=1)
        enough = np.flatnonzero(there >= max(there.max() / 2, 1))
        return cls(
            shares,
            frequencies,
            wave_shares(random_directions(power, numbers, _DRAWS, rng))[0],
            float(np.median(permuted)),
            float(one.step[enough[0]]) if len(enough) else np.nan,
        )

    @property
    def share(self) -> float:
        """Median share of the latents; NaN where there are none."""
        return float(np.median(self.shares)) if len(self.shares) else np.nan

    @property
    def beyond_chance(self) -> bool:
        """Whether the median exceeds 95 % of medians of as many random directions."""
        if not len(self.shares):
            return False
        rng = np.random.default_rng(1)
        samples = rng.choice(self.random, size=(_DRAWS, len(self.shares)))
        return bool(self.share > np.quantile(np.median(samples, axis=1), _UNUSUAL))


def random_directions(
    power: np.ndarray, numbers: int, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Return codes along random directions of an embedding with these frequencies, cut at zero.

    The rows of a plane for each frequency, seen along a random direction, are a wave of random
    phase whose squared size is exponential, with the mean `power`.

    Examples
    --------
    >>> one = random_directions(
    ...     np.array([0.0, 1.0, 0.0]), 7, 50, np.random.default_rng(0)
    ... )
    >>> np.unique(wave_shares(one)[1])
    array([2])
    """
    waves = rng.standard_normal((2, len(power), count)) * np.sqrt(power)[:, None]
    angle = (
        2 * np.pi * np.outer(np.arange(numbers), 1 + np.arange(len(power))) / numbers
    )
    return sparse(np.cos(angle) @ waves[0] + np.sin(angle) @ waves[1], count)


def all_frequencies(waves: Sequence[Waves]) -> str:
    """Return the frequencies of each run's latents: ``"5, 7, 8 and 2, 10"``."""
    return " and ".join(
        ", ".join(map(str, sorted(set(one.frequencies.astype(int).tolist())))) or "none"
        for one in waves
    )


_DECAY = "weight decay"
_NONE = "no weight decay"
_LATER = 5.0
"""How many times as many steps count as long after."""
_LEARNED = 0.9
_UNLEARNED = 0.5
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
    frequencies = Formation.of(nodes, "frequencies")
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
            unanimous(
                (frequencies.last < permuted / 2) & frequencies.beyond, frequencies.last
            ),
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


def _begun(accuracy: Runs, frequencies: Runs) -> np.ndarray:
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
        for node, other in zip(
            results["vocabulary-concepts"][_DECAY], frequencies, strict=True
        )
    ]
    shares = np.array([one.share for one in waves])
    beyond = np.array([one.beyond_chance for one in waves])
    counts = np.array([len(one.shares) for one in waves])
    random = np.array([np.median(one.random) for one in waves])
    permuted = np.array([one.permuted for one in waves])
    return Verdict(
        "latents of the embedding's joint dictionary are one frequency each",
        unanimous(beyond),
        f"median share of a latent at one frequency {joined(shares)}, of "
        f"{joined(counts, 0)} readable latents; frequencies {all_frequencies(waves)}; half "
        f"of them readable from step {listed([one.readable_from for one in waves])}",
        f"random directions of the embedding {short(random)}, numbers in random order "
        f"{short(permuted)}, a wave cut at zero .84; held-out pairs half learned at "
        f"{held_out.steps}",
        of_paper=False,
    )


def _of_updates(
    results: Found, trained: Formation, held_out: Formation
) -> list[Verdict]:
    """Return what the variance rank and the commutators do, of which the paper says nothing."""
    ranks = results["weight-rank"]
    below, tested, p = below_random_order(ranks[_DECAY])
    defects = [
        run.defect_over_pairs.sel(statistic="median")
        for run in results["commutators"][_DECAY]
    ]
    peaks = each(defects, lambda defect: defect.step[int(defect.argmax("step"))])
    between = (peaks >= trained.low) & (peaks <= held_out.high)
    ends = each(defects, lambda defect: defect.isel(step=[0, -1]))
    return [
        Verdict(
            "the weights move in fewer directions than in random order",
            bool(p <= 0.05) or None,
            f"variance rank {spread(whole_ranks(ranks[_DECAY]))}; in {below} of {tested} matrices "
            f"lower (p = {p:.2g})",
            f"directions in random order {span(ranks[_DECAY], 'shuffled')}; without weight decay "
            f"{spread(whole_ranks(ranks[_NONE]))}",
            reason=Reason.WITHIN_CHANCE,
            of_paper=False,
        ),
        Verdict(
            "commutators are largest between learning and generalising",
            unanimous(between, peaks),
            f"largest normalised defect at step {listed(peaks)}",
            f"training pairs half learned at {trained.steps}, held-out ones at {held_out.steps}; "
            f"defect {short(ends[:, 0])} at first and {short(ends[:, 1])} in the end",
            of_paper=False,
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
            n_concepts=_LATENTS,
            n_active=_LATENTS,
            start="kept",
            max_tokens=None,
            keep_codes=True,
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
    optimizer=OptimizerSettings(
        learning_rate=1e-3, schedule="constant", weight_decay=1.0
    ),
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
