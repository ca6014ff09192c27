"""Verdicts on variance ranks of runs of the marker task: Figure 1, and how ranks scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from .evidence import (
    LEVEL,
    Found,
    each,
    exceeds,
    if_finite,
    last_of,
    more_often,
    named,
    spread,
    unanimous,
)
from .ranks import MORE, below_random_order, by_kind, growing_null, span, whole_ranks
from .verdicts import Verdict

_SOLVED = 0.9  # accuracy of every m that is trained


# ---- Figure 1 -----------------------------------------------------------------------------------


def low_ranks(found: Found) -> list[Verdict]:
    """Judge Figure 1: ranks 3 to 5, early, V and O lower, beside walks and shuffled directions.

    Where random walks with the same steps have ranks of 3 to 5, such ranks show nothing.
    """
    (runs,) = found["weight-rank"].values()
    means = [by_kind(run) for run in runs]
    kinds = [str(kind).removesuffix("_proj").upper() for kind in means[0].block.values]
    rank = each(means, lambda run: run.variance_rank)
    drift = each(means, lambda run: run.net_drift_ratio)
    vo, qk = ([i for i, kind in enumerate(kinds) if kind in pair] for pair in ("VO", "QK"))
    walk = each(means, lambda run: (run.walk_low + run.walk_high) / 2).mean(axis=0)
    lower = rank[:, vo].max(axis=1) < rank[:, qk].min(axis=1)
    beyond, p = more_often(int(lower.sum()), len(lower), 1 / 6)
    mean = rank.mean(axis=0)
    return [
        Verdict(
            "Q, K, V and O have ranks of 3 to 5",
            None if _three_to_five(mean) and _three_to_five(walk) else _three_to_five(mean),
            named(kinds, rank),
            f"random walk of the same steps {span(runs, 'walk')}; directions in random order "
            f"{span(runs, 'shuffled')}; rounded ranks count",
        ),
        _confined(runs),
        Verdict(
            "V and O have lower ranks than Q and K",
            if_finite(beyond, rank),
            f"in {int(lower.sum())} of {len(lower)} seeds; {named(kinds, rank)}",
            f"by chance in one seed of six (p = {p:.2g}); net drift, which lowers a rank: "
            f"{named(kinds, drift)} (random walk 1)",
        ),
        _collapse(runs),
    ]


def _three_to_five(ranks: np.ndarray) -> bool | None:
    return if_finite(((ranks >= 2.5) & (ranks <= 5.5)).all(), ranks)


def _confined(runs: Sequence[xr.Dataset]) -> Verdict:
    """Judge whether paths have lower ranks than their own directions in random order."""
    count, tested, p = below_random_order(runs)
    majority = count > tested / 2
    return Verdict(
        "the weights' paths are confined: lower than the same directions in random order",
        majority if majority or p > LEVEL else None,  # more than chance, but not the paths as such
        f"{count} of {tested} matrices lie below (p < .05 each)",
        f"5 % by chance; as many or more p = {p:.2g}, taking matrices as independent",
    )


def _collapse(runs: Sequence[xr.Dataset]) -> Verdict:
    """Judge whether the rank falls early, unless random paths of the same steps do so too."""
    measured = [_fall(run.growing_rank_by_kind) for run in runs]
    nulls = {
        "random walks of the same steps": [_fall(growing_null(run, "walk")) for run in runs],
        "directions in random order": [_fall(growing_null(run, "shuffled")) for run in runs],
    }
    falls = unanimous([_collapses(*fall) for fall in measured], *measured)
    always = any(_collapses(*np.mean(null, axis=0)) for null in nulls.values())
    return Verdict(
        "the rank collapses within the first 30 % of training",
        None if falls and always else falls,
        f"run so far, mean of the matrices: {_falling(measured)}",
        "; ".join(f"{name}: {_falling(null)}" for name, null in nulls.items())
        + "; half a dimension counts",
    )


def _fall(growing: xr.DataArray) -> tuple[float, float, float]:
    """Return the rank of the run so far: the highest up to 30 % of training, then, in the end."""
    growing = growing.mean("kind")
    steps = growing.step_
    third = 0.3 * float(steps[-1])
    then = float(growing.interp(step_=third))
    before = growing.where(steps <= third, drop=True)
    return max([then, *before.values.tolist()]), then, float(growing[-1])


def _collapses(highest: float, then: float, last: float) -> bool:
    return bool(highest > then + MORE and last < then + MORE)


def _falling(falls: Sequence[tuple[float, float, float]]) -> str:
    highest, then, last = np.array(falls).T
    return f"{spread(then)} at 30 % after {spread(highest)} at most, {spread(last)} in the end"


# ---- m, modulus and depth -----------------------------------------------------------------------


def sizes(found: Found) -> list[Verdict]:
    """Judge how the rank goes with m, modulus and depth, and accuracy on m never trained on.

    Labels say what a run is: ``"m up to 2"``, ``"C = 16"``, ``"4 layers instead of 2"``.
    """
    runs, accuracy = found["weight-rank"], found["readout-accuracy"]
    by_m = [label for label in runs if label.startswith("m up to")]
    largest = by_m[-1]
    solved = {label: _trained(accuracy[label], largest) for label in runs}
    depths = {label: label.split(" layers instead of ") for label in runs if "layers" in label}
    signs = {label: 1 if int(n) > int(base) else -1 for label, (n, base) in depths.items()}
    unseen = _unseen(accuracy[largest], largest)
    return [
        _stable(runs, by_m),
        _grows("modulus", runs, largest, {x: 1 for x in runs if x.startswith("C = ")}, solved),
        _grows("depth", runs, largest, signs, solved),
        *([] if unseen is None else [unseen]),
    ]


def _stable(runs: Mapping[str, Sequence[xr.Dataset]], by_m: Sequence[str]) -> Verdict:
    ranks = {label: whole_ranks(runs[label]) for label in by_m}
    means = [rank.mean() for rank in ranks.values()]
    few = "" if len(means) > 2 else "; fewer than three m show no trend"
    return Verdict(
        "the dimension is stable over m",
        None if few else if_finite(max(means) - min(means) < 1, means),
        _by_label(ranks),
        f"one dimension counts; directions in random order "
        f"{', '.join(span(runs[label], 'shuffled') for label in by_m)}{few}",
    )


def _by_label(ranks: Mapping[str, np.ndarray]) -> str:
    return ", ".join(f"{label}: {spread(rank)}" for label, rank in ranks.items())


def _trained(runs: Sequence[xr.Dataset], largest: str) -> float:
    """Return the last accuracy of the m that are trained, the lowest of them, mean over seeds."""
    kept = [s for s in runs[0].set.values if _count(s) <= _count(largest)]
    return float(each(runs, lambda run: run.accuracy.sel(set=kept).isel(step=-1).min()).mean())


def _count(label: str) -> int:
    """Return m of ``"m=3"`` and ``"m up to 3"``."""
    return int(str(label).replace("=", " ").rsplit(" ", 1)[-1])


def _grows(
    what: str,
    runs: Mapping[str, Sequence[xr.Dataset]],
    base: str,
    signs: Mapping[str, int],
    solved: Mapping[str, float],
) -> Verdict:
    """Judge whether larger tasks or models have higher ranks, `signs` −1 for smaller ones.

    A rank grows while a run learns, so runs that have not solved their task are not compared.
    """
    ranks = {label: whole_ranks(runs[label]) for label in (*signs, base)}
    higher = [exceeds(s * ranks[label], s * ranks[base], MORE) for label, s in signs.items()]
    finished = all(solved[label] >= _SOLVED for label in ranks)
    holds = None if not higher or None in higher else unanimous([bool(h) for h in higher])
    right = ", ".join(f"{label}: {solved[label]:.2f}" for label in ranks)
    return Verdict(
        f"the dimension grows with the {what}",
        holds if finished else None,
        _by_label(ranks),
        f"half a dimension counts; directions in random order "
        f"{', '.join(span(runs[label], 'shuffled') for label in ranks)}; right on the hardest "
        f"trained m, {right}" + ("" if finished else " (an unfinished run has no rank to compare)"),
    )


def _unseen(runs: Sequence[xr.Dataset], largest: str) -> Verdict | None:
    """Judge accuracy on every m above those that were trained; None where none was tested."""
    sets = [s for s in runs[0].set.values if _count(s) > _count(largest)]
    if not sets:
        return None
    several = [run.sel(set=sets) for run in runs]
    right, majority = (last_of(several, name) for name in ("accuracy", "accuracy_majority"))
    return Verdict(
        "training on small m generalises to larger m",
        unanimous((right > majority + 0.1).all(axis=1), right),
        f"trained on {largest}; {named(sets, right, 2)}",
        f"most frequent label {named(sets, majority, 2)}; a tenth more in every seed counts",
    )
