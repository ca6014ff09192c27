"""Verdicts on attention and ranks of runs of the marker task: Figure 2, what falls when."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from ontogeny.claims import Reason
from ontogeny.features.wordspace.order import first_crossing

from ..observables.readout.attention import settling_step
from ..semantics.learned_order import learning_order
from .comparison_judges import growing_null
from .formats import listed, named, spread
from .verdicts import (
    LEVEL,
    Found,
    Verdict,
    decided,
    each,
    if_finite,
    unanimous,
    why_open,
)

_SEEDS = 5  # below this many no correlation over seeds is tested
_TOGETHER = 1.5  # times that differ by less than this factor coincide
_DRAWS = 999
_UNIFORM = 0.9  # of the entropy of equal weights
_EARLY = 0.2  # of training, within which a sharp fall is half done


def attention_and_rank(results: Found) -> list[Verdict]:
    """Judge Figure 2: how entropy falls, and when, beside when the rank stops moving.

    Entropy has fallen at the step where 90 % of the way to its lowest value is done; the rank of
    the run so far has settled at the first step from which on it stays within 10 % of its last.
    The largest m counts, and the mean over the layers, as in the paper's figure.
    """
    (attention,), (ranks,) = (
        results[n].values() for n in ("readout-attention", "weight-rank")
    )
    (accuracy,) = results["readout-accuracy"].values()
    entropy = [
        run.layer_entropy.isel(set=-1).mean("layer").dropna("step") for run in attention
    ]
    fell, half = (
        np.array([settling_step(e.step.values, e.values, share) for e in entropy])
        for share in (0.9, 0.5)
    )
    settled = each(ranks, lambda run: _settled(run.growing_rank_by_kind.mean("kind")))
    shuffled = each(
        ranks, lambda run: _settled(growing_null(run, "shuffled").mean("kind"))
    )
    first, low = np.array([[e.values[0], e.values.min()] for e in entropy]).T
    steps = float(entropy[0].step[-1])
    solved = listed(each(accuracy, _solved))
    fallen = unanimous((low < 0.5 * first) & (half <= _EARLY * steps), low, first)
    name = str(attention[0].set.values[-1])
    uniform = float(attention[0].layer_entropy_uniform.isel(set=-1).max())
    return [
        Verdict(
            "entropy drops sharply",
            fallen,
            f"{name}: {spread(first, 2)} nats at first, lowest {spread(low, 2)}; half of the fall "
            f"is done at step {listed(half)} of {steps:,.0f}",
            f"equal attention {uniform:.2f}; to less than half, and half of the fall within a "
            "fifth of training, counts as sharp",
        ),
        _smooth(entropy, name, fallen, solved),
        _of_timing(fell, settled, shuffled),
        _of_every_m(attention),
        _uniform_at_first(name, first, uniform),
    ]


def _uniform_at_first(name: str, first: np.ndarray, uniform: float) -> Verdict:
    """Judge whether attention begins near the entropy of equal weights, which is the highest."""
    share = first / uniform
    return Verdict(
        "attention is nearly uniform at first",
        unanimous(share >= _UNIFORM, share),
        f"{name}: entropy {spread(share, 2)} of that of equal weights before training",
        f"equal weights 1, one position 0; {_UNIFORM} or more of every seed counts; small initial "
        "weights alone give it",
    )


def _of_every_m(attention: Sequence[xr.Dataset]) -> Verdict:
    """Judge whether entropy falls to less than half for every m; one alone can refute it only."""
    names = attention[0].set.values
    entropy = each(
        attention, lambda run: run.layer_entropy.mean("layer").transpose("set", "step")
    )
    left = np.nanmin(entropy, axis=-1) / entropy[..., 0]
    fell = unanimous((left < 0.5).all(axis=1), left)
    alone = len(names) == 1
    untested = alone and fell is True  # one that does not fall refutes it
    return Verdict(
        "entropy falls for every m",
        None if untested else fell,
        f"lowest over first: {named(names, left, 2)}",
        "1 if it never fell; less than half of every m and seed counts"
        + ("; no other m is stored" if alone else ""),
        reason=Reason.NOTHING_SCORED if untested else Reason.CASES_DIFFER,
    )


def _smooth(
    entropy: Sequence[xr.DataArray], name: str, fallen: bool | None, solved: str
) -> Verdict:
    """Judge whether less of the fall is taken back than with its own steps in random order."""
    back = np.array([_taken_back(curve.values) for curve in entropy])
    null = np.array([_in_random_order(curve.values) for curve in entropy])
    p = (1 + (null <= back[:, None]).sum(axis=1)) / (1 + null.shape[1])
    rough = (null < back[:, None]).mean(axis=1) > 0.5
    last = np.array([curve.values[-1] for curve in entropy])
    return Verdict(
        "entropy drops smoothly",
        decided(((p <= LEVEL) | (back == 0)).all(), rough.all(), back)
        if fallen
        else None,
        f"{name}: {spread(last, 2)} nats in the end; at most {spread(100 * back, 0)} % of the fall "
        "is taken back on the way",
        f"the same steps in random order take back {spread(100 * np.median(null, axis=1), 0)} %, as "
        f"little with p = {', '.join(f'{each:.2g}' for each in p)}; task solved (.95) at step "
        f"{solved}",
        # Of a curve that did not fall there is nothing to take back.
        reason=why_open(p <= LEVEL, Reason.WITHIN_CHANCE) if fallen else Reason.NO_GAIN,
    )


def _taken_back(values: np.ndarray) -> float:
    """Return the largest rise above the lowest value so far, as a share of the whole fall.

    Examples
    --------
    >>> _taken_back(np.array([3.0, 1.0, 1.5, 1.2]))
    0.25
    """
    rise = (values - np.minimum.accumulate(values)).max()
    return float(rise / max(values[0] - values.min(), 1e-12))


def _in_random_order(values: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(0)
    steps = np.diff(values)
    curves = [
        np.cumsum(np.r_[values[0], rng.permutation(steps)]) for _ in range(_DRAWS)
    ]
    return np.array([_taken_back(curve) for curve in curves])


def _of_timing(fell: np.ndarray, settled: np.ndarray, shuffled: np.ndarray) -> Verdict:
    """Judge whether entropy's fall and the rank's settling go together, over seeds or in time."""
    claim = "entropy's fall goes with the rank's stabilisation"
    measured = (
        f"entropy has fallen at step {listed(fell)}, rank settles at {listed(settled)}"
    )
    beside = (
        f"rank with the same directions in random order settles at {listed(shuffled)}"
    )
    together = unanimous(_apart(fell, settled) <= _TOGETHER, fell, settled)
    # A rank so far settles late whatever happens: where that of directions in random order does so
    # at the same time, coinciding shows nothing.
    always = bool((_apart(fell, shuffled) <= _TOGETHER).all())
    if len(fell) < _SEEDS:
        beside += f"; {len(fell)} seeds are too few for a correlation over seeds"
        return Verdict(claim, together, measured, beside, alike=always)
    order = learning_order(-fell, settled)
    correlated = bool(order.p_value <= LEVEL and order.spearman > 0)
    return Verdict(
        claim,
        if_finite(True, order.spearman) if correlated else together,
        f"{measured}; rank correlation over seeds {order.spearman:.2f}",
        f"{beside}; random pairings p = {order.p_value:.2g}",
        alike=always and not correlated,
    )


def _apart(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return how many times later the later of two steps is."""
    return np.asarray(
        np.maximum(some, others) / np.maximum(np.minimum(some, others), 1)
    )


def _settled(rank: xr.DataArray) -> float:
    """Return the first step from which on a rank stays within 10 % of its last value."""
    away = np.abs(rank.values - rank.values[-1]) > 0.1 * rank.values[-1]
    there = int(np.flatnonzero(away)[-1]) + 1 if away.any() else 0
    return float(rank.step_.values[there])


def _solved(run: xr.Dataset) -> float:
    one = run.accuracy.isel(set=-1)
    return float(first_crossing(one.step, one.transpose("step"), 0.95))
