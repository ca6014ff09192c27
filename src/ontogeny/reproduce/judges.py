"""Verdicts on ranks, accuracy and attention of runs of the marker task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from ..observables.readout_attention import settling_step
from ..semantics import first_crossing, learning_order
from .verdicts import Verdict

__all__ = [
    "Found",
    "architecture",
    "attention_and_rank",
    "equal_loss",
    "forgetting",
    "low_ranks",
    "sizes",
    "stated",
    "told",
]

Found = Mapping[str, Mapping[str, Sequence[xr.Dataset]]]
"""What was taken of each seed, by node and label of the run."""

_LEVEL = 0.05
_SEEDS = 5  # below this many no correlation over seeds is tested
_MORE = 0.5  # dimensions by which a rank counts as higher
_FORGOTTEN = 0.1  # of the accuracy, since the best of many evaluations lies a few points too high
_TOGETHER = 1.5  # times that differ by less than this factor coincide


# ---- ranks --------------------------------------------------------------------------------------


def low_ranks(found: Found) -> list[Verdict]:
    """Judge Figure 1: ranks 3 to 5, early, V and O lower, beside walks and shuffled increments."""
    runs = _only(found["weight-rank"])
    kinds = [str(kind).removesuffix("_proj").upper() for kind in runs[0].kind.values]
    rank = np.mean([run.variance_rank for run in runs], axis=0)
    drift = np.mean([run.net_drift_ratio for run in runs], axis=0)
    vo, qk = ([i for i, kind in enumerate(kinds) if kind in pair] for pair in ("VO", "QK"))
    below = 100 * float(np.mean([run.below_chance for run in runs]))
    highest, early, late = np.mean([_fall(run) for run in runs], axis=0)
    return [
        Verdict(
            "Q, K, V and O have ranks of 3 to 5",
            told((rank.round() >= 3).all() and (rank.round() <= 5).all(), rank),
            _named(kinds, rank),
            f"random walk of the same steps {_span(runs, 'walk')}; shuffled increments "
            f"{_span(runs, 'shuffled')}",
        ),
        Verdict(
            "the weights' paths are confined: lower than the same increments in random order",
            told(below > 100 * _LEVEL, below),
            f"{below:.0f} % of the matrices lie below (p < .05)",
            "5 % by chance",
        ),
        Verdict(
            "V and O have lower ranks than Q and K",
            told(rank[vo].max() < rank[qk].min(), rank),
            _named(kinds, rank),
            f"net drift, which lowers a rank: {_named(kinds, drift)} (random walk 1)",
        ),
        Verdict(
            "the rank collapses within the first 30 % of training",
            told(highest > early + _MORE and late < early + _MORE, highest, early, late),
            f"run so far, mean of the matrices: {early:.1f} at 30 % after {highest:.1f} at most, "
            f"{late:.1f} in the end",
            "the rank of a growing random walk only rises; half a dimension counts",
        ),
    ]


def _fall(run: xr.Dataset) -> tuple[float, float, float]:
    """Return the rank of the run so far: the highest up to 30 % of training, then, in the end."""
    growing = run.growing.mean("kind")
    steps = growing.steps_so_far
    third = 0.3 * float(steps[-1])
    then = float(growing.interp(steps_so_far=third))
    before = growing.where(steps <= third, drop=True)
    return max([then, *before.values.tolist()]), then, float(growing[-1])


def sizes(found: Found) -> list[Verdict]:
    """Judge how the rank goes with m, and accuracy on m that was never trained on."""
    ranks = {label: _rank(runs) for label, runs in found["weight-rank"].items()}
    by_m = {label: value for label, value in ranks.items() if label.startswith("m up to")}
    nulls = {label: _span(found["weight-rank"][label], "shuffled") for label in ranks}
    values = list(by_m.values())
    most = list(by_m)[-1]
    accuracy = _mean(found["readout-accuracy"][most], "accuracy")
    majority = _mean(found["readout-accuracy"][most], "majority")
    trained = int(most.rsplit(" ", 1)[-1])
    others = [value for label, value in ranks.items() if label not in by_m]
    unseen = [s for s in accuracy.set.values if int(str(s).removeprefix("m=")) > trained]
    return [
        Verdict(
            "the dimension is stable over m",
            told(max(values) - min(values) < 1, values) if len(values) > 1 else None,
            ", ".join(f"{label} {value:.1f}" for label, value in by_m.items()),
            "shuffled increments " + ", ".join(nulls[label] for label in by_m),
        ),
        Verdict(
            "the dimension grows with modulus and depth",
            told(all(v > ranks[most] + _MORE for v in others), others, ranks[most])
            if others
            else None,
            ", ".join(f"{label} {v:.1f}" for label, v in ranks.items() if label not in by_m)
            + f"; {most} {ranks[most]:.1f}",
            "half a dimension counts as more; shuffled increments "
            + ", ".join(nulls[label] for label in ranks if label not in by_m),
        ),
        Verdict(
            "training on small m generalises to larger m",
            told(
                (accuracy.sel(set=unseen) > majority.sel(set=unseen) + 0.1).all(),
                accuracy.sel(set=unseen),
            )
            if unseen
            else None,
            f"trained on m up to {trained}: "
            + ", ".join(f"{s} {float(accuracy.sel(set=s)):.2f}" for s in unseen),
            "most frequent label " + ", ".join(f"{float(majority.sel(set=s)):.2f}" for s in unseen),
        ),
    ]


# ---- attention ----------------------------------------------------------------------------------


def attention_and_rank(found: Found) -> list[Verdict]:
    """Judge Figure 2: how entropy falls, and when, beside when the rank stops moving.

    Entropy has fallen at the step where 90 % of the way to its lowest value is done; the rank of
    the run so far has settled at the first step from which on it stays within 10 % of its last.
    The largest m counts, and the last layer.
    """
    attention, ranks = _only(found["readout-attention"]), _only(found["weight-rank"])
    accuracy = _only(found["readout-accuracy"])
    entropy = [run.entropy.isel(set=-1).dropna("step") for run in attention]
    fell = np.array([settling_step(e.step.values, e.values) for e in entropy])
    settled = np.array([_settled(run.growing.mean("kind")) for run in ranks])
    shuffled = np.array([_settled(_shuffled(run)) for run in ranks])
    solved = [_solved(run) for run in accuracy]
    low, first, last = (np.array([f(e.values) for e in entropy]) for f in (min, _first, _last))
    back = (last - low) / np.maximum(first - low, 1e-12)
    fallen = bool((low < 0.5 * first).all())
    name = str(attention[0].set.values[-1])
    return [
        Verdict(
            "entropy drops sharply",
            told(fallen, low, first),
            f"{name}: {_listed(first)} at first, lowest {_listed(low)} nats",
            f"equal attention {float(attention[0].uniform.isel(set=-1).max()):.2f}",
        ),
        Verdict(
            "entropy drops smoothly, without rising again",
            told((back < 0.1).all(), back) if fallen else None,  # else there is nothing to regain
            f"{name}: in the end {_listed(last)}, "
            f"{', '.join(f'{100 * b:.0f} %' for b in back)} of the fall is taken back",
            f"task solved (.95) at step {_steps(solved)}",
        ),
        _of_timing(fell, settled, shuffled),
    ]


def _of_timing(fell: np.ndarray, settled: np.ndarray, shuffled: np.ndarray) -> Verdict:
    """Judge whether entropy's fall and the rank's settling go together, over seeds or in time."""
    measured = f"entropy has fallen at step {_steps(fell)}, rank settles at {_steps(settled)}"
    beside = f"rank of the same increments in random order settles at {_steps(shuffled)}"
    together = bool((_apart(fell, settled) <= _TOGETHER).all())
    # A rank so far settles late whatever happens: where that of increments in random order does so
    # at the same time, coinciding shows nothing.
    always = bool((_apart(fell, shuffled) <= _TOGETHER).all())
    coincide = None if together and always else together
    if len(fell) < _SEEDS:
        beside += f"; {len(fell)} seeds are too few for a correlation over seeds"
        holds = coincide if np.isfinite(settled).all() else None
        return Verdict("entropy's fall goes with the rank's stabilisation", holds, measured, beside)
    order = learning_order(-fell, settled)
    correlated = bool(order.p_value <= _LEVEL and order.spearman > 0)
    return Verdict(
        "entropy's fall goes with the rank's stabilisation",
        True if correlated else coincide,
        f"{measured}; rank correlation over seeds {order.spearman:.2f}",
        f"{beside}; random pairings p = {order.p_value:.2g}",
    )


def _apart(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return how many times later the later of two steps is."""
    return np.asarray(np.maximum(some, others) / np.maximum(np.minimum(some, others), 1))


def _settled(rank: xr.DataArray) -> float:
    """Return the first step from which on a rank stays within 10 % of its last value."""
    away = np.abs(rank.values - rank.values[-1]) > 0.1 * rank.values[-1]
    there = int(np.flatnonzero(away)[-1]) + 1 if away.any() else 0
    return float(rank.steps_so_far.values[there])


def _shuffled(run: xr.Dataset) -> xr.DataArray:
    return ((run.growing_shuffled_from + run.growing_shuffled_to) / 2).mean("kind")


def _solved(run: xr.Dataset) -> float:
    one = run.accuracy.isel(set=-1)
    return float(first_crossing(one.step, one.transpose("step"), 0.95))


# ---- comparisons --------------------------------------------------------------------------------


def equal_loss(found: Found) -> list[Verdict]:
    """Judge whether multiplication needs more dimensions: at the same step, and at the same loss.

    For each seed the run with the lower last loss is looked at where it first has the other's
    last loss; its rank is that of the run so far, of the nearest window.
    """
    ranks = found["weight-rank"]
    labels = list(ranks)
    pairs = [_at_equal_loss(found, labels, seed) for seed in range(len(ranks[labels[0]]))]
    losses = {label: float(_loss(found, label).isel(step=-1).mean()) for label in labels}
    steps = np.array([pair[2] for pair in pairs])
    mine, other = np.array([pair[:2] for pair in pairs]).T
    whole = {label: _rank(ranks[label]) for label in labels}
    add, multiply = labels
    nulls = ", ".join(f"{label} {_span(ranks[label], 'shuffled')}" for label in labels)
    return [
        Verdict(
            "multiplication needs more dimensions than addition, at the same step",
            told(whole[multiply] > whole[add] + _MORE, list(whole.values())),
            f"rank {whole[multiply]:.1f} against {whole[add]:.1f}; last losses "
            f"{losses[multiply]:.3f} and {losses[add]:.3f}",
            f"shuffled increments: {nulls}",
        ),
        Verdict(
            "multiplication needs more dimensions than addition, at the same loss",
            told(mine.mean() > other.mean() + _MORE, mine, other),
            f"rank of the run so far: multiplication {_listed(mine)}, addition {_listed(other)}",
            f"the run that is ahead, at step {_steps(steps)}; half a dimension counts as more",
        ),
        *_solves(found),
    ]


def _loss(found: Found, label: str) -> xr.DataArray:
    """Return the loss of each seed of a run, mean over the numbers of markers: (seed, step)."""
    runs = [run.loss.mean("set").dropna("step") for run in found["readout-accuracy"][label]]
    return xr.concat(runs, dim="seed")


def _at_equal_loss(found: Found, labels: Sequence[str], seed: int) -> tuple[float, float, float]:
    """Return the ranks of the second and the first run at equal loss, and the leader's step."""
    losses = {label: _loss(found, label).isel(seed=seed) for label in labels}
    leader, behind = sorted(labels, key=lambda label: float(losses[label][-1]))
    ahead = losses[leader]
    step = float(ahead.step[int(np.argmax(ahead.values <= float(losses[behind][-1])))])
    growing = {label: found["weight-rank"][label][seed].growing.mean("kind") for label in labels}
    rank = {
        leader: float(growing[leader].sel(steps_so_far=step, method="nearest")),
        behind: float(growing[behind][-1]),
    }
    return rank[labels[1]], rank[labels[0]], step


def _solves(found: Found) -> list[Verdict]:
    """Return for each run whether it solves the task, beside the most frequent label."""
    rows = []
    for label, runs in found["readout-accuracy"].items():
        accuracy, majority = _mean(runs, "accuracy"), _mean(runs, "majority")
        rows.append(
            Verdict(
                f"{label}: the task is learned",
                told((accuracy > majority + 0.1).all(), accuracy),
                _named(accuracy.set.values, accuracy.values, 2),
                f"most frequent label {_named(majority.set.values, majority.values, 2)}",
            )
        )
    return rows


def architecture(found: Found) -> list[Verdict]:
    """Judge whether MLPs raise the rank and generalise worse."""
    ranks = found["weight-rank"]
    without, with_mlp = ranks
    rank = {label: _rank(runs) for label, runs in ranks.items()}
    accuracy = {
        label: _mean(runs, "accuracy").isel(set=-1)
        for label, runs in found["readout-accuracy"].items()
    }
    name = str(accuracy[without].set.values)
    # Where a rank is that of the same increments in random order, nothing is there to disrupt.
    below = 100 * float(np.mean([run.below_chance.mean() for run in ranks[without]]))
    confined = below > 100 * _LEVEL
    return [
        Verdict(
            "MLPs disrupt the low rank of attention matrices",
            told(rank[with_mlp] > rank[without] + _MORE and confined, list(rank.values()), below),
            f"{with_mlp} {rank[with_mlp]:.1f}, {without} {rank[without]:.1f}",
            f"without MLP {below:.0f} % of the matrices lie below shuffled increments (chance 5 %)",
        ),
        Verdict(
            "MLPs generalise worse",
            told(accuracy[with_mlp] < accuracy[without] - 0.02, list(accuracy.values())),
            f"fresh examples of {name}: {with_mlp} {float(accuracy[with_mlp]):.2f}, {without} "
            f"{float(accuracy[without]):.2f}",
            "two points count as worse; all batches are fresh, so there is no other test set",
        ),
    ]


def forgetting(found: Found) -> list[Verdict]:
    """Judge whether a curriculum forgets the smallest m, and mixed training does not."""
    kept = {
        label: np.array([float(run.accuracy.isel(set=0, step=-1)) for run in runs])
        for label, runs in found["readout-accuracy"].items()
    }
    best = {
        label: np.array([float(run.accuracy.isel(set=0).max()) for run in runs])
        for label, runs in found["readout-accuracy"].items()
    }
    mixed, curriculum = kept
    # What was never learned cannot be forgotten, and the best of many looks back at luck.
    majority = _mean(found["readout-accuracy"][curriculum], "majority").isel(set=0)
    learned = bool((best[curriculum] > float(majority) + 0.2).all())
    rank = {label: _rank(runs) for label, runs in found["weight-rank"].items()}
    nulls = [_span(runs, "shuffled") for runs in found["weight-rank"].values()]
    return [
        Verdict(
            "a curriculum forgets the smallest m, mixed training does not",
            told(
                (kept[curriculum] < best[curriculum] - _FORGOTTEN).all()
                and (kept[mixed] > best[mixed] - _FORGOTTEN).all(),
                *kept.values(),
            )
            if learned
            else None,
            f"in the end {_listed(kept[curriculum])} after {_listed(best[curriculum])} at best",
            f"mixed {_listed(kept[mixed])} after {_listed(best[mixed])}; most frequent label "
            f"{float(majority):.2f}, a tenth counts as forgotten",
        ),
        Verdict(
            "the rank tells the two apart",
            told(abs(rank[curriculum] - rank[mixed]) > 1, list(rank.values())),
            f"curriculum {rank[curriculum]:.1f}, mixed {rank[mixed]:.1f}",
            f"shuffled increments {nulls[1]} and {nulls[0]}",
        ),
    ]


def stated(found: Found) -> list[Verdict]:
    """Judge whether the training that the paper states learns the task at all."""
    ranks = {label: _rank(runs) for label, runs in found["weight-rank"].items()}
    straight = Verdict(
        "(not claimed) the weights move along more than a line",
        told(min(ranks.values()) > 1.5, list(ranks.values())),
        ", ".join(f"{label}: rank {value:.1f}" for label, value in ranks.items()),
        "1 is a straight line",
    )
    return [*_solves(found), straight]


# ---- helpers ------------------------------------------------------------------------------------


def told(holds: Any, *numbers: ArrayLike) -> bool | None:
    """Return whether a claim holds, None where a number that it rests on is missing.

    Examples
    --------
    >>> told(3.0 > 2.0, 3.0), told(float("nan") > 2.0, float("nan"))
    (True, None)
    """
    known = all(np.isfinite(np.asarray(each, dtype=np.float64)).all() for each in numbers)
    return bool(holds) if known else None


def _only(runs: Mapping[str, Sequence[xr.Dataset]]) -> Sequence[xr.Dataset]:
    """Return the seeds of the one run that is not compared with another."""
    (seeds,) = runs.values()
    return seeds


def _rank(runs: Sequence[xr.Dataset]) -> float:
    """Return the mean rank of the whole run over matrices and seeds."""
    return float(np.mean([run.variance_rank.mean() for run in runs]))


def _mean(runs: Sequence[xr.Dataset], name: str) -> xr.DataArray:
    """Return the last value of each set, mean over seeds."""
    last = [r[name].isel(step=-1) if "step" in r[name].dims else r[name] for r in runs]
    return xr.concat(last, dim="seed", coords="minimal", compat="override").mean("seed")


def _span(runs: Sequence[xr.Dataset], null: str) -> str:
    low = np.mean([run[f"{null}_from"].mean() for run in runs])
    high = np.mean([run[f"{null}_to"].mean() for run in runs])
    return f"{low:.1f} to {high:.1f}"


def _first(values: np.ndarray) -> float:
    return float(values[0])


def _last(values: np.ndarray) -> float:
    return float(values[-1])


def _listed(values: np.ndarray) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def _steps(values: Sequence[float] | np.ndarray) -> str:
    return ", ".join(f"{v:,.0f}" if np.isfinite(v) else "never" for v in values)


def _named(names: Sequence[str] | np.ndarray, values: np.ndarray, digits: int = 1) -> str:
    pairs = zip(names, values, strict=True)
    return ", ".join(f"{name} {value:.{digits}f}" for name, value in pairs)
