"""Claims of several runs: those of each run under its name, and what only several can show."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
import xarray as xr

from ..claims import Beside, Certainty, Claim, Kind, Reason, Subject, measurement
from ..claims.counts import sureness_of_counts
from ..observables.registry import kinds
from ..summary.noise import mean_stderr, reach
from ..trees import Nodes
from ..words.page_claims import claims_of_result
from .concepts.node import NODE
from .orders import claims_of_orders
from .overview import rows_of
from .sources import Run


def claims_of_runs(
    runs: Sequence[Run], nodes: Nodes, shared: xr.Dataset | None = None
) -> list[Claim]:
    """Return what the runs claim, each claim with its run, what matters most first.

    Parameters
    ----------
    runs
        Each claim of theirs joins those of others by its subject.
    nodes
        What all of them measured, over (run, ...).
    shared
        The node of the concepts that they share.
    """
    claims: list[Claim] = []
    for run in runs:
        for claim in claims_of_result(run.tree):
            subject = replace(claim.subject, run=run.name)
            claims.append(replace(claim, subject=subject))
    claims += _ahead(runs)
    of_kinds = dict.fromkeys(cls.claims_of_runs for cls in kinds().values())
    trees = {run.name: run.tree for run in runs}
    claims += chain.from_iterable(of_runs(trees) for of_runs in of_kinds)
    if (rows := rows_of(nodes)) is not None:
        claims += claims_of_orders(rows)
    if shared is not None:
        claims += _shared(shared)
    return sorted(claims, key=lambda claim: -claim.weight)


def _ahead(runs: Sequence[Run]) -> Iterator[Claim]:
    """Give which run ends with the lowest loss, and whether surely below the second lowest.

    The difference is that of each text, so that texts that are hard for both count little. Models
    of different tokens have no losses per token that could be held against each other.
    """
    ends = {run.name: _end(run) for run in runs}
    known = {name: end for name, end in ends.items() if end is not None}
    if len(known) < max(len(runs), 2):
        return
    (first, one), (second, two) = sorted(
        known.items(), key=lambda pair: float(pair[1].loss)
    )[:2]
    if not np.array_equal(one.loss_weights, two.loss_weights):
        return
    change = float(two.loss - one.loss)
    of_text = (two.loss_of_text - one.loss_of_text).values
    weights = one.loss_weights.values
    half = float(reach(np.count_nonzero(weights)) * mean_stderr(of_text, weights))
    is_sure = change > half
    reason = Reason.WITHIN_NOISE if math.isfinite(half) else Reason.FEW_TEXTS
    yield Claim(
        Kind.AHEAD,
        Subject("loss", "loss", label=first),
        Certainty.SURE if is_sure else Certainty.OPEN,
        None if is_sure else reason,
        value=change,
        low=change - half,
        high=change + half,
        first=float(two.loss),
        last=float(one.loss),
        units=str(one.loss.attrs.get("units", "nats")),
        beside=(Beside("reference", second, float(two.loss), float(one.loss)),),
        evidence=("loss/loss_of_text",),
    )


def _end(run: Run) -> xr.Dataset | None:
    """Return the loss of a run at its last measured step, with that of each text."""
    node = run.nodes.get("loss")
    if node is None or "loss_of_text" not in node or not node.loss.notnull().any():
        return None
    return (
        node[["loss", "loss_of_text", "loss_weights"]]
        .dropna("step", subset=["loss"])
        .isel(step=-1)
    )


def _shared(data: xr.Dataset) -> Iterator[Claim]:
    """Give for each layer how many concepts all runs share, and how many were born in all.

    And at which step of the first the second begins, where that was asked for.
    """
    if "began_at" in data:
        base, tuned = map(str, data["run"].values[:2])
        step = float(data.began_at)
        yield measurement(
            Subject(NODE, "began_at", label=tuned),
            step,
            since=step,
            beside=[Beside("reference", base)],
        )
    totals = (data.in_all + data.in_some + data.in_one).values
    wholes = {
        "in_all": [f"{total:,.0f} concepts" for total in totals],
        "born_in_all": [
            f"{count:,.0f} shared concepts" for count in data.in_all.values
        ],
    }
    for kind, name in ((Kind.SHARED, "in_all"), (Kind.BORN, "born_in_all")):
        counts = data[name].values.tolist()
        of_controls = data[f"{name}_control"].values.tolist()
        sureness = sureness_of_counts(counts, of_controls)
        for i, layer in enumerate(map(str, data.layer.values)):
            beside = Beside("control", "control runs", of_controls[i])
            yield Claim(
                kind,
                Subject(NODE, name, layer, label=wholes[name][i]),
                value=counts[i],
                beside=(beside,) if math.isfinite(beside.value) else (),
                evidence=(f"{NODE}/{name}", f"{NODE}/{name}_control"),
                **sureness[i],
            )
