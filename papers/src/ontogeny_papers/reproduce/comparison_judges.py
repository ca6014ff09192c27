"""Verdicts where runs are compared: MLPs, multiplication, a curriculum, the stated training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from ontogeny.claims import Reason

from .formats import listed, named, p_value, spread
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
    more_often,
    unanimous,
)

MORE = 0.5
"""Dimensions by which a rank counts as higher."""


def by_kind(node: xr.Dataset) -> xr.Dataset:
    """Return the numbers of weight matrices as means over those of one kind.

    Examples
    --------
    >>> blocks = ["layers.0.q_proj.weight", "layers.1.q_proj.weight"]
    >>> node = xr.Dataset({"variance_rank": ("block", [3.0, 5.0])}, {"block": blocks})
    >>> by_kind(node).variance_rank.to_series().to_dict()
    {'q_proj': 4.0}
    """
    kinds = [str(block).rsplit(".", 2)[-2] for block in node.block.values]
    blockwise = [
        name for name, values in node.data_vars.items() if "block" in values.dims
    ]
    numbers = node[[name for name in blockwise if node[name].dtype.kind in "fiub"]]
    return numbers.astype(float).assign_coords(block=kinds).groupby("block").mean()


def below_random_order(runs: Runs) -> tuple[int, int, float]:
    """Return how many matrices have a lower rank than in random order, of how many, and p.

    The p-value is that of as many by chance (binomial; matrices of a run are not independent, so
    it is too small rather than too large).
    """
    p_lower = np.concatenate([run.p_lower.values for run in runs])
    count = int((p_lower < LEVEL).sum())
    tested = int(np.isfinite(p_lower).sum())
    return count, tested, more_often(count, tested, LEVEL)[1]


def growing_null(run: xr.Dataset, null: str) -> xr.DataArray:
    """Return the middle of a null's ranks of the run so far."""
    low, high = (run[f"growing_{null}_{end}_by_kind"] for end in ("low", "high"))
    return (low + high) / 2


def null_middle(run: xr.Dataset, null: str) -> xr.DataArray:
    """Return the middle of a null's ranks of the whole run, of every matrix or kind."""
    return (run[f"{null}_low"] + run[f"{null}_high"]) / 2


def whole_ranks(runs: Runs) -> np.ndarray:
    """Return the rank of each seed's whole run, mean over its matrices."""
    return each(runs, lambda run: run.variance_rank.mean())


def mean_within(runs: Runs, what: str, low: int, high: int, where: str) -> Verdict:
    """Judge whether the mean rank of a run's matrices, rounded, is in a range that the paper has.

    Parameters
    ----------
    runs
        Ranks of each seed.
    what
        What has the rank.
    low, high
        First and last rank of the range.
    where
        Where the paper has it.
    """
    rank, by_order = whole_ranks(runs), _of_random_order(runs)
    inside, shuffled = ((x >= low - 0.5) & (x < high + 0.5) for x in (rank, by_order))
    return Verdict(
        f"{what} have a mean rank of {low} to {high} ({where})",
        unanimous(inside, rank),
        spread(rank),
        f"directions in random order {spread(by_order)}; rounded ranks of every seed count",
        alike=bool(shuffled.all()),
    )


def span(runs: Runs, null: str) -> str:
    """Return ``"1.7 to 3.0"``, where 95 % of a null's ranks lie, mean over matrices and seeds."""
    low, high = (
        np.mean([run[f"{null}_{end}"].mean() for run in runs])
        for end in ("low", "high")
    )
    return f"{low:.1f} to {high:.1f}"


_FORGOTTEN = 0.1  # of the accuracy, since the best of many evaluations lies a few points too high
_WORSE = 0.02  # of the accuracy
_LEARNED = 0.9  # accuracy of every m
_APART = "a mean difference above half a dimension, in the same direction in every seed, counts as more"


_LOW = "where the lower rank is that of random order, nothing is shown"


def _as_random_order(runs: Runs) -> bool | None:
    """Return whether runs have the rank of their own directions in random order."""
    by_order = each(runs, lambda run: run["shuffled_low"].mean()).mean()
    return if_finite(whole_ranks(runs).mean() >= by_order, by_order)


# ---- multiplication -----------------------------------------------------------------------------


def equal_loss(results: Found) -> list[Verdict]:
    """Judge whether multiplication needs more dimensions: at the same step, and at the same loss.

    For each seed the run with the lower last loss is read where it first has the other's last
    loss; its rank is that of the run so far, of the nearest window.
    """
    ranks = results["weight-rank"]
    add, multiply = labels = list(ranks)
    pairs = [_at_equal_loss(results, labels, seed) for seed in range(len(ranks[add]))]
    losses = {label: _loss(results, label).isel(step=-1).values for label in labels}
    steps = [step for *_, step in pairs]
    mine, other = np.array([pair[:2] for pair in pairs]).T
    whole = {label: whole_ranks(ranks[label]) for label in labels}
    nulls = ", ".join(f"{label} {span(ranks[label], 'shuffled')}" for label in labels)
    return [
        Verdict(
            "multiplication needs more dimensions than addition, at the same step",
            exceeds(whole[multiply], whole[add], MORE),
            f"multiplication has rank {spread(whole[multiply])}, addition {spread(whole[add])}; "
            f"their last losses are {spread(losses[multiply], 3)} and {spread(losses[add], 3)}",
            f"directions in random order: {nulls}; {_APART}; {_LOW}",
            alike=_as_random_order(ranks[add]),
        ),
        Verdict(
            "multiplication needs more dimensions than addition, at the same loss",
            exceeds(mine, other, MORE),
            f"rank of the run so far: multiplication {spread(mine)}, addition {spread(other)}",
            f"no null; the run with the lower last loss is read where it first reaches the other's "
            f"last loss, at step {listed(steps)}; {_APART}",
        ),
        mean_within(ranks[multiply], "matrices under multiplication", 4, 6, "sec. 4.6"),
        *_solves(results, claimed=()),
    ]


def _loss(results: Found, label: str) -> xr.DataArray:
    """Return the loss of each seed of a run, mean over the numbers of markers: (seed, step)."""
    runs = [
        run.loss.mean("set").dropna("step")
        for run in results["readout-accuracy"][label]
    ]
    return xr.concat(runs, dim="seed")


def _at_equal_loss(
    results: Found, labels: Sequence[str], seed: int
) -> tuple[float, float, float]:
    """Return the ranks of the second and the first run at equal loss, and the leader's step."""
    losses = {label: _loss(results, label).isel(seed=seed) for label in labels}
    leader, behind = sorted(labels, key=lambda label: float(losses[label][-1]))
    ahead = losses[leader]
    step = float(ahead.step[int(np.argmax(ahead.values <= float(losses[behind][-1])))])
    growing = {
        label: results["weight-rank"][label][seed].growing_rank_by_kind.mean("kind")
        for label in labels
    }
    rank = {
        leader: float(growing[leader].sel(step_=step, method="nearest")),
        behind: float(growing[behind][-1]),
    }
    return rank[labels[1]], rank[labels[0]], step


def _solves(results: Found, claimed: Sequence[str]) -> list[Verdict]:
    """Return for each run whether it solves the task, beside the most frequent label.

    Parameters
    ----------
    results
        What was measured.
    claimed
        Labels of the runs of which the paper says so.
    """
    rows = []
    for label, runs in results["readout-accuracy"].items():
        right, majority = (
            last_of(runs, name) for name in ("accuracy", "accuracy_majority")
        )
        solved = unanimous((right >= _LEARNED).all(axis=1), right)
        begun = bool((right > majority + 0.1).any())
        names = runs[0].set.values
        rows.append(
            Verdict(
                f"{label}: the task is learned",
                None if begun and not solved else solved,
                named(names, right, 2),
                f"most frequent label {named(names, majority, 2)}; an accuracy of {_LEARNED} for "
                "every m counts as learned",
                reason=Reason.NOT_REACHED,
                of_paper=label in claimed,
            )
        )
    return rows


# ---- MLPs ---------------------------------------------------------------------------------------


def architecture(results: Found) -> list[Verdict]:
    """Judge whether MLPs raise the rank and generalise worse."""
    ranks = results["weight-rank"]
    without, with_mlp = ranks
    rank = {label: whole_ranks(runs) for label, runs in ranks.items()}
    right = {
        label: each(runs, lambda run: run.accuracy.isel(set=-1).mean("step"))
        for label, runs in results["readout-accuracy"].items()
    }
    last = {
        label: last_of(runs, "accuracy")[:, -1]
        for label, runs in results["readout-accuracy"].items()
    }
    name = str(results["readout-accuracy"][without][0].set.values[-1])
    # Where a rank is that of the same directions in random order, nothing is there to disrupt.
    below = {label: below_random_order(runs) for label, runs in ranks.items()}
    nulls = ", ".join(
        f"{label} {span(runs, 'shuffled')} ({below[label][0]} of {below[label][1]} matrices are "
        f"lower, {p_value(below[label][2])})"
        for label, runs in ranks.items()
    )
    higher = exceeds(rank[with_mlp], rank[without], MORE)
    return [
        Verdict(
            "MLPs disrupt the low rank of attention matrices",
            higher,
            f"{with_mlp}: {spread(rank[with_mlp])}, {without}: {spread(rank[without])}",
            f"directions in random order: {nulls}; {_APART}; {_LOW}",
            alike=below[without][2] > LEVEL or _as_random_order(ranks[without]),
        ),
        Verdict(
            "MLPs generalise worse under the same training budget",
            exceeds(right[without], right[with_mlp], _WORSE),
            f"accuracy on fresh examples of {name}, mean over all checkpoints: {with_mlp} "
            f"{spread(right[with_mlp], 2)}, {without} {spread(right[without], 2)}; in the end "
            f"{spread(last[with_mlp], 2)} and {spread(last[without], 2)}",
            "no null; two points less count as worse; no training batch repeats, so that accuracy "
            "on fresh examples is the test",
        ),
    ]


# ---- curriculum, stated training ----------------------------------------------------------------


def forgetting(results: Found) -> list[Verdict]:
    """Judge whether a curriculum forgets the smallest m, and mixed training does not."""
    runs = results["readout-accuracy"]
    ranks = results["weight-rank"]
    last = {label: last_of(seeds, "accuracy")[:, 0] for label, seeds in runs.items()}
    best = {
        label: each(seeds, lambda run: run.accuracy.isel(set=0).max())
        for label, seeds in runs.items()
    }
    mixed, curriculum = runs
    # What was never learned cannot be forgotten, and the best of many evaluations is partly luck.
    majority = float(last_of(runs[curriculum], "accuracy_majority")[:, 0].mean())
    learned = bool((best[curriculum] > majority + 0.2).all())
    lost = {label: best[label] - last[label] > _FORGOTTEN for label in runs}
    return [
        Verdict(
            "a curriculum forgets the smallest m, mixed training does not",
            unanimous(lost[curriculum] & ~lost[mixed], *last.values())
            if learned
            else None,
            f"in the end {spread(last[curriculum], 2)} after {spread(best[curriculum], 2)} at best",
            f"mixed {spread(last[mixed], 2)} after {spread(best[mixed], 2)}; most frequent label "
            f"{majority:.2f}, a tenth counts as forgotten",
        ),
        _rank_tells(ranks, runs),
    ]


def _rank_tells(ranks: RunsOf, accuracy: RunsOf) -> Verdict:
    """Judge whether the rank tells a curriculum from mixed training.

    The rank of a run that has not learned all of its task is that of an unfinished run. Ranks that
    differ half as much with the same directions in random order differ by their step lengths.
    """
    mixed, curriculum = ranks
    rank, by_order = (
        {label: number(seeds) for label, seeds in ranks.items()}
        for number in (whole_ranks, _of_random_order)
    )
    hardest = {
        label: last_of(seeds, "accuracy").min(axis=1)
        for label, seeds in accuracy.items()
    }
    gap, null = (
        float(abs(np.mean(x[mixed] - x[curriculum]))) for x in (rank, by_order)
    )
    learned = min(right.mean() for right in hardest.values()) >= _LEARNED
    higher = [
        exceeds(rank[a], rank[b], 1.0)
        for a, b in ((curriculum, mixed), (mixed, curriculum))
    ]
    return Verdict(
        "the rank distinguishes the two",
        None if None in higher or not learned else any(higher),
        f"curriculum {spread(rank[curriculum])}, mixed {spread(rank[mixed])}",
        f"directions in random order {span(ranks[curriculum], 'shuffled')} and "
        f"{span(ranks[mixed], 'shuffled')}; lowest accuracy of a trained m "
        f"{spread(hardest[curriculum], 2)} and {spread(hardest[mixed], 2)}; one dimension of runs "
        "that learned all of their task, and not half as much in random order, counts",
        alike=if_finite(null > 0.5 * gap, null),
        reason=Reason.CASES_DIFFER if learned else Reason.NOT_REACHED,
        of_paper=False,
    )


def _of_random_order(runs: Runs) -> np.ndarray:
    return each(runs, lambda run: null_middle(run, "shuffled").mean())


def stated(results: Found) -> list[Verdict]:
    """Judge whether the training that the paper states learns the task at all."""
    ranks: Mapping[str, np.ndarray] = {
        label: whole_ranks(runs) for label, runs in results["weight-rank"].items()
    }
    straight = Verdict(
        "the weights move along more than a line",
        if_finite(min(rank.mean() for rank in ranks.values()) > 1.5, *ranks.values()),
        ", ".join(f"{label}: rank {spread(rank)}" for label, rank in ranks.items()),
        "1 is a straight line; 1.5 of every run counts as more",
        of_paper=False,
    )
    return [*_solves(results, claimed=list(ranks)[:1]), straight]
