"""Verdicts on attention and ranks of runs of the marker task: Figure 2, what falls when."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ontogeny.features.wordspace.order import first_crossing

from ..observables.readout.attention import settling_step
from ..semantics.learned_order import learning_order
from .comparison_judges import growing_null
from .verdicts import LEVEL, Found, Verdict, each, if_finite, listed, spread, unanimous

_SEEDS = 5  # below this many no correlation over seeds is tested
_TOGETHER = 1.5  # times that differ by less than this factor coincide
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
    first, low, last = np.array(
        [[e.values[0], e.values.min(), e.values[-1]] for e in entropy]
    ).T
    back = (last - low) / np.maximum(first - low, 1e-12)
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
        Verdict(
            "entropy drops smoothly",
            unanimous(back < 0.1, back)
            if fallen
            else None,  # else there is nothing to regain
            f"{name}: {spread(last, 2)} nats in the end, {spread(100 * back, 0)} % of the fall is "
            "taken back",
            f"no null; less than a tenth taken back counts as smooth; task solved (.95) at step "
            f"{solved}",
        ),
        _of_timing(fell, settled, shuffled),
    ]


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
