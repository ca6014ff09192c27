"""Verdicts on variance ranks of runs of the marker task: Figure 1, and how ranks scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import xarray as xr

from ontogeny.claims import Reason

from .comparison_judges import (
    MORE,
    below_random_order,
    by_kind,
    growing_null,
    mean_within,
    null_middle,
    span,
    whole_ranks,
)
from .formats import named, p_value, spread
from .marker_recipe import set_name
from .training import MarkerRun
from .verdicts import (
    LEVEL,
    Found,
    Runs,
    RunsOf,
    Verdict,
    each,
    exceeds,
    if_finite,
    last_of,
    unanimous,
)

_SOLVED = 0.9  # accuracy of every m that is trained


# ---- Figure 1 -----------------------------------------------------------------------------------


def low_ranks(results: Found) -> list[Verdict]:
    """Judge Figure 1: ranks 3 to 5, early, V and O lower, beside walks and shuffled directions.

    Where random walks with the same steps have ranks of 3 to 5, such ranks show nothing.
    """
    (runs,) = results["weight-rank"].values()
    means = [by_kind(run) for run in runs]
    kinds = [str(kind).removesuffix("_proj").upper() for kind in means[0].block.values]
    rank = each(means, lambda run: run.variance_rank)
    drift = each(means, lambda run: run.net_drift_ratio)
    vo, qk = (
        [i for i, kind in enumerate(kinds) if kind in pair] for pair in ("VO", "QK")
    )
    walk, shuffled = (
        each(means, partial(null_middle, null=null)) for null in ("walk", "shuffled")
    )
    apart, by_order = (
        x[:, qk].mean(axis=1) - x[:, vo].mean(axis=1) for x in (rank, shuffled)
    )
    single = np.concatenate([run.variance_rank.values for run in runs])
    within = unanimous(_three_to_five(rank).all(axis=1), rank)
    return [
        Verdict(
            "Q, K, V and O have ranks of 3 to 5",
            within,
            f"{named(kinds, rank)}; of single matrices {int(_three_to_five(single).sum())} of "
            f"{len(single)}",
            f"random walk of the same steps {span(runs, 'walk')}; directions in random order "
            f"{span(runs, 'shuffled')}; rounded ranks of every kind and seed count",
            alike=bool(_three_to_five(walk).all()),
        ),
        _confined(runs),
        Verdict(
            "V and O have lower ranks than Q and K",
            exceeds(apart, by_order, MORE),
            f"lower by {spread(apart)} dimensions; {named(kinds, rank)}",
            f"directions in random order {spread(by_order)}; half a dimension more counts; net "
            f"drift, which lowers a rank: {named(kinds, drift)} (random walk 1)",
        ),
        _collapse(runs),
        *(mean_within(runs, "all matrices", *ends) for ends in _RANGES),
    ]


_RANGES = ((3, 4, "abstract"), (2, 3, "heading of Fig. 1"))


def _three_to_five(ranks: np.ndarray) -> np.ndarray:
    return np.asarray((ranks >= 2.5) & (ranks < 5.5))


def _confined(runs: Runs) -> Verdict:
    """Judge whether paths have lower ranks than their own directions in random order."""
    count, tested, p = below_random_order(runs)
    majority = count > tested / 2
    return Verdict(
        "the weights' paths are confined: lower than the same directions in random order",
        majority
        if majority or p > LEVEL
        else None,  # more than chance, but not the paths as such
        f"{count} of {tested} matrices have a lower rank than that (p < .05 each)",
        f"5 % by chance; as many or more {p_value(p)}, taking matrices as independent",
        reason=Reason.SMALL,
    )


def _collapse(runs: Runs) -> Verdict:
    """Judge whether the rank falls early, unless random paths of the same steps do so too."""
    measured = [_fall(run.growing_rank_by_kind) for run in runs]
    nulls = {
        "random walks of the same steps": [
            _fall(growing_null(run, "walk")) for run in runs
        ],
        "directions in random order": [
            _fall(growing_null(run, "shuffled")) for run in runs
        ],
    }
    falls = unanimous([_collapses(*fall) for fall in measured], *measured)
    always = any(_collapses(*np.mean(null, axis=0)) for null in nulls.values())
    return Verdict(
        "the rank collapses within the first 30 % of training",
        falls,
        f"run so far, mean of the matrices: {_falling(measured)}",
        "; ".join(f"{name}: {_falling(null)}" for name, null in nulls.items())
        + "; half a dimension counts",
        alike=always,
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


def sizes(results: Found, scales: Sequence[Mapping[str, MarkerRun]]) -> list[Verdict]:
    """Judge how the rank goes with m, modulus and depth, and accuracy on m never trained on.

    `scales` say what the runs of each label are, in each size of the recipe; the first run has the
    modulus and the depth with which the others are compared.
    """
    runs = results["weight-rank"]
    settings = next(scale for scale in scales if runs.keys() <= scale.keys())
    accuracy = results["readout-accuracy"]
    moduli = {label: settings[label].task.modulus for label in runs}
    depths = {label: settings[label].layers for label in runs}
    first = next(iter(runs))
    by_m = {
        label: max(settings[label].task.counts)
        for label in runs
        if (moduli[label], depths[label]) == (moduli[first], depths[first])
    }
    largest = max(by_m, key=by_m.__getitem__)
    trained = [set_name(m) for m in settings[largest].task.counts]
    solved = {label: _trained(accuracy[label], trained) for label in runs}
    unseen = _unseen(accuracy, by_m, trained)
    return [
        _stable(runs, list(by_m)),
        _grows("modulus", "C = {}", moduli, runs, largest, solved),
        _grows("depth", "{} layers", depths, runs, largest, solved),
        *([] if unseen is None else [unseen]),
    ]


def _stable(runs: RunsOf, by_m: Sequence[str]) -> Verdict:
    ranks = {label: whole_ranks(runs[label]) for label in by_m}
    means = [rank.mean() for rank in ranks.values()]
    few = "" if len(means) > 2 else "; fewer than three m show no trend"
    return Verdict(
        "the dimension is stable over m",
        None if few else if_finite(max(means) - min(means) < 1, means),
        _by_label(ranks),
        f"means that differ by less than one dimension count as stable; directions in random "
        f"order {_nulls(runs, {label: label for label in by_m})}{few}",
        reason=Reason.NOTHING_SCORED,
    )


def _nulls(runs: RunsOf, names: Mapping[str, str]) -> str:
    return ", ".join(
        f"{name}: {span(runs[label], 'shuffled')}" for label, name in names.items()
    )


def _by_label(ranks: Mapping[str, np.ndarray]) -> str:
    return ", ".join(f"{label}: {spread(rank)}" for label, rank in ranks.items())


def _trained(runs: Runs, trained: Sequence[str]) -> float:
    """Return the last accuracy of the m that are trained, the lowest of them, mean over seeds."""
    sets = [s for s in runs[0].set.values if s in trained]
    return float(
        each(runs, lambda run: run.accuracy.sel(set=sets).isel(step=-1).min()).mean()
    )


def _grows(
    what: str,
    name: str,
    numbers: Mapping[str, int],
    runs: RunsOf,
    base: str,
    solved: Mapping[str, float],
) -> Verdict:
    """Judge whether larger tasks or models have higher ranks than smaller ones.

    A rank grows while a run learns, so runs that have not solved their task are not compared.

    Parameters
    ----------
    what
        What grows.
    name
        What a run of a number is called.
    numbers
        The number of every run, by label; those of the number of `base` are not compared with it.
    runs
        Ranks of the seeds of every run, by label.
    base
        Label of the run that the others are compared with.
    solved
        Lowest accuracy of an m that is trained, of every run.
    """
    signs = {
        label: 1 if number > numbers[base] else -1
        for label, number in numbers.items()
        if number != numbers[base]
    }
    called = {label: name.format(numbers[label]) for label in (*signs, base)}
    ranks = {label: whole_ranks(runs[label]) for label in (*signs, base)}
    higher = [
        exceeds(s * ranks[label], s * ranks[base], MORE) for label, s in signs.items()
    ]
    finished = all(solved[label] >= _SOLVED for label in ranks)
    holds = (
        None if not higher or None in higher else unanimous([bool(h) for h in higher])
    )
    right = ", ".join(f"{name} {solved[label]:.2f}" for label, name in called.items())
    rest = [name for label, name in called.items() if solved[label] < _SOLVED]
    unfinished = f"; {' and '.join(rest)}: the task is not learned ({_SOLVED}), so nothing is said"
    return Verdict(
        f"the dimension grows with the {what}",
        holds if finished else None,
        _by_label({called[label]: rank for label, rank in ranks.items()}),
        f"a mean difference above half a dimension, in the same direction in every seed, counts; "
        f"directions in random order {_nulls(runs, called)}; accuracy on the hardest m that was "
        f"trained: {right}{unfinished if rest else ''}",
        reason=Reason.CASES_DIFFER if finished else Reason.NOT_REACHED,
        of_paper=False,
    )


def _unseen(
    accuracy: RunsOf, by_m: Mapping[str, int], trained: Sequence[str]
) -> Verdict | None:
    """Judge accuracy on every m above those of the largest mixture; None where none was tested."""
    *smaller, largest = sorted(by_m, key=by_m.__getitem__)
    runs = accuracy[largest]
    sets = [s for s in runs[0].set.values if s not in trained]
    if not sets:
        return None
    several = [run.sel(set=sets) for run in runs]
    right, majority = (
        last_of(several, name) for name in ("accuracy", "accuracy_majority")
    )
    following = {label: set_name(by_m[label] + 1) for label in smaller}
    fewer = "".join(
        f"; trained on {label}, {name}: {spread(_last(accuracy[label], name), 2)}"
        for label, name in following.items()
    )
    return Verdict(
        f"mixed training on {largest} generalises to larger m",
        unanimous((right > majority + 0.1).all(axis=1), right),
        f"{named(sets, right, 2)}{fewer}",
        f"most frequent label {named(sets, majority, 2)}; a tenth more in every seed and m counts",
    )


def _last(runs: Runs, name: str) -> np.ndarray:
    return each(runs, lambda run: run.accuracy.sel(set=name).isel(step=-1))
