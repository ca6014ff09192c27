"""The result of a run: merged from its summaries, with what the whole study is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ...errors import ArgumentError
from ...inputs import Inputs
from ...needs import Need
from ...observables import Observable
from ...problems.problem import of_node
from ...store import read_header
from ...tasks.bundled import BUNDLED
from ...trajectory import Trajectory
from ...trajectory.audit.kept_samples import kept_samples
from ..cells.cache import DigestCache, read_verified
from ..cells.environment import PACKAGES, Environment, differences, usual
from ..cells.merge import merge, summary_data
from ..folder.layout import summary_path
from ..planning.parts import RunPart

# The kind of a finding that says that a model is read in another way than was asked for.
READ_OTHERWISE = "reading"


@dataclass(frozen=True)
class Stated:
    """What a study was given that no cell depends on.

    Attributes
    ----------
    title, reference, left_out
        As the study has them; a reference may be ``"last"``.
    """

    title: str
    reference: str | int
    left_out: Mapping[str, str]


def merged(
    folder: Path, parts: Sequence[RunPart], stated: Stated, problems: Sequence[str]
) -> xr.DataTree:
    """Return the result of a study whose summaries stand, and put it in its folder.

    Parameters
    ----------
    folder
        Of the study, as it was given.
    parts
        The run that is studied, and its control runs.
    stated
        What the study was given.
    problems
        What went wrong, one line each.
    """
    from .result_files import write_result  # which imports Zarr

    job = parts[0].job
    attributes = described(parts, stated)
    controls = [
        part.control.to_dict() | _failed_in_control(part)
        for part in parts
        if part.control is not None
    ]
    findings = parts[0].trajectory.audit()
    unread = set().union(*(f.steps for f in findings if f.kind == "unreadable"))
    samples = kept_samples([c for c in parts[0].trajectory if c.step not in unread])
    records = [
        *findings.to_records(),
        *(
            {
                "kind": READ_OTHERWISE,
                "certainty": "certain",
                "steps": [],
                "message": note,
            }
            for note in parts[0].graph.probe.fallback.notes
        ),
    ]
    attributes |= {
        "controls": json.dumps(controls),
        "findings": json.dumps(records),
        "samples": json.dumps(samples),
    }
    units = unit_counts(job.observables, job.inputs)
    tree = merge(job.folder, job.observables, attributes, units)
    failed = [
        f"{n}: {d.attrs['failed']}"
        for n, d in tree.children.items()
        if "failed" in d.attrs
    ]
    environments = _environments(parts[0])
    further = {
        "kernels": usual(environments),
        "libraries": usual(environments, ("ontogeny", *PACKAGES)),
        "environments": differences(environments),
    }
    provenance = json.loads(tree.attrs["provenance"])
    provenance |= {name: value for name, value in further.items() if value}
    tree.attrs["provenance"] = json.dumps(provenance)
    tree.attrs["problems"] = json.dumps([*problems, *failed])
    tree.encoding["source"] = str(write_result(folder, tree))  # as xarray notes it
    return tree


def _environments(part: RunPart) -> list[tuple[str, Environment]]:
    """Return for each cell its node, and where it was computed."""
    environments: list[tuple[str, Environment]] = []
    for observable in part.job.observables:
        header = read_header(summary_path(part.job.folder, observable.name))
        for environment, count in header["provenance"].get("environments", ()):
            environments += repeat((observable.name, environment), count)
    return environments


def described(parts: Sequence[RunPart], stated: Stated) -> dict[str, Any]:
    """Return what the root of the result says of the study, as far as no cell and weight is read.

    Parameters
    ----------
    parts, stated
        As in `merged`.
    """
    job = parts[0].job
    graph = parts[0].graph
    trajectory = parts[0].trajectory
    probe = graph.probe
    observables = job.observables
    unit = trajectory.unit
    settings = {
        **graph.settings.to_dict(),
        "reference": stated.reference,
        "batch_difference": probe.batch_difference,
        "observables": {o.name: {"kind": o.kind, **o.arguments()} for o in observables},
    }
    inputs = [_described_inputs(name, texts) for name, texts in job.inputs.items()]
    return {
        "title": stated.title,
        "nodes": json.dumps([o.name for o in observables]),
        "settings": json.dumps(settings),
        "steps": json.dumps([int(s) for s in trajectory.steps]),
        "reference_step": graph.settings.reference_step,
        "controls": json.dumps(
            [part.control.to_dict() for part in parts if part.control]
        ),
        "inputs": json.dumps(inputs),
        "trajectory": json.dumps(_source(trajectory, graph.digests)),
        "model": json.dumps(
            {
                "class": probe.model_class,
                "parameters": probe.parameters,
                "blocks": probe.depth,
            }
        ),
        **_clock(unit),
        **({"left_out": json.dumps(stated.left_out)} if stated.left_out else {}),
    }


def _described_inputs(name: str, inputs: Inputs) -> dict[str, Any]:
    """Return what the result says of an input set."""
    data: dict[str, Any] = {"name": name, "fingerprint": inputs.fingerprint}
    # The page says that texts were used that come with the package.
    if inputs.source in BUNDLED.values():
        data["source"] = inputs.source
    data |= inputs.source_of_tokens
    data["token_unit"] = inputs.token_unit
    data |= inputs.counts
    if inputs.form:
        data["form"] = inputs.form
    if inputs.score:
        data |= {"score": inputs.score, "scored": int(inputs.scored.sum())}
    if inputs.warnings:
        data["warnings"] = inputs.warnings
    return data


def _clock(unit: str) -> dict[str, str]:
    """Return what the axis of steps is called where they count something else."""
    if unit == "step":
        return {}
    return {"clock": "training tokens" if unit == "token" else f"training {unit}"}


def _failed_in_control(part: RunPart) -> dict[str, Any]:
    """Return what failed in a control run, as an entry of its description; empty if nothing."""
    problems = []
    for observable in part.job.observables:
        data = summary_data(
            read_verified(summary_path(part.job.folder, observable.name))
        )
        problems += [row.to_dict() for row in of_node(observable.name, data, part.name)]
    return {"problems": problems} if problems else {}


def _source(trajectory: Trajectory, digests: DigestCache) -> dict[str, Any]:
    """Return where the checkpoints come from, and a digest of the weights of each."""
    of_steps = {str(c.step): digests.whole(c) for c in trajectory}
    base = {"base": True} if trajectory.has_base else {}
    return {
        **trajectory.provenance(),
        **base,
        "chosen": trajectory.lines(),
        "digests": of_steps,
    }


def unit_counts(
    observables: Sequence[Observable], inputs: Mapping[str, Inputs]
) -> dict[str, int]:
    """Return the number of units behind each observable by its name: texts, or documents.

    Of several input sets it is the smallest number. An observable of another one's series has that
    one's number; one that reads no texts has none.

    Examples
    --------
    >>> from ontogeny.observables import make
    >>> texts = Inputs.from_tokens([[1, 2], [3, 4], [1, 2]])
    >>> unit_counts([make("loss"), make("weight-change")], {"text": texts})
    {'loss': 2}
    """
    by_name: dict[str, int] = {}
    for observable in observables:
        needs = [
            need.at_step for need in observable.needs() if need.at_step.reads_inputs
        ]
        counts = [_units_of(need, inputs) for need in needs]
        if counts:
            by_name[observable.name] = min(counts)
    for observable in observables:
        source = observable.source
        if source is not None and source.node in by_name:
            by_name[observable.name] = by_name[source.node]
    return by_name


def _units_of(need: Need, inputs: Mapping[str, Inputs]) -> int:
    read = inputs[need.on or next(iter(inputs))]
    try:
        return len(np.unique(need.units(read)))
    except ArgumentError:  # the model, or the set itself: all of its texts
        return read.counts["units"]
