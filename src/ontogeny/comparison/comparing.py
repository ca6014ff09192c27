"""Several studied runs as one result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ..claims import to_dataset
from ..errors import ArgumentError, StoreError
from ..figures import Curves, Section, attach
from ..figures.base import extend
from ..study import Progress, Study, StudyResult
from ..study.cells.merge import provenance
from ..study.folder.layout import comparison_path, settings_path
from ..study.progress import chosen_progress
from ..study.results.result_files import write_result
from ..trajectory.findings import Finding
from ..trees import MergedResult, as_tree
from ..whole_files import write_json
from ..words.levels import Levels
from ..words.voice import STEPS, Voice
from .claims import claims_of_runs
from .clock import Clock, LossClock, make_clock
from .concepts.matches import found_by_runs
from .concepts.node import NODE
from .concepts.same_tokens import comparable
from .concepts.shared import concepts_of_runs
from .concepts.views import studies_of
from .differences import check_differences, kernel_differences
from .figures import figures_of_runs
from .nodes import node_of_runs
from .one_run import runs_that_are_one
from .overview import runs_node
from .sources import Run, levels_of, open_runs


def compare(
    runs: Mapping[str, Any],
    *,
    align: str = "step",
    allow: Sequence[str] = (),
    tokens_per_step: float | Mapping[str, float] | None = None,
    title: str | None = None,
    concepts: bool | Mapping[str, Study] = False,
    seeds: bool = False,
    progress: Progress | bool | None = None,
) -> StudyResult:
    """Return several studied runs as one result, along ``run``.

    Every node that all runs have holds their curves side by side, each with its own noise, its own
    controls and its own verdicts: nothing is measured or judged again. The report, the figures and
    the export take the result as they take that of a study.

    Parameters
    ----------
    runs
        By the name of the run: the folder of a study, what `open_study` returns, or the result of
        `Study.run`. Two at least.
    align
        ``"step"``: equal steps stand together; a step that a run lacks is a gap, never filled.
        ``"tokens"``: the same by the tokens that were seen, of which the labels of ``step`` then
        are. ``"loss"``: curves over the loss that the run itself had reached (dimension
        ``loss_level``, from high to low), each at the first time that the loss fell so far.
    allow
        What may differ between runs, of ``"inputs"``, ``"tokenizers"``, ``"arguments"`` (of
        observables), ``"settings"`` (dtype, reference) and ``"checkpoints"`` (the same run twice).
        It is then said on the page. Models may differ in size: layers are compared by name, by
        order where they are equally many, else at the same relative depth.
    tokens_per_step
        Tokens of a training step, one number or one for each run by name, where checkpoints do not
        tell what they have seen.
    title
        Heading of the page.
    concepts
        Whether one joint dictionary is fitted over all runs: which concepts they share, and when
        each run got them (node ``shared-concepts``). Without it, the node holds the learned
        concepts of all runs that are the same, where they read the same tokens. For a dictionary
        checkpoints are read once more, so runs must be folders of studies on the same texts that
        hold joint or learned concepts. Study files lie beside
        them as ``FOLDER.toml``; where they do not, give the studies by the names of the runs. What
        was read is kept in the folders until it is fitted: a comparison that was stopped goes on.
    seeds
        Whether the runs are seeds of one recipe: then the first picture draws their mean. Of
        recipes that differ a mean says nothing, so each run has its own line and name.
    progress
        Receives what is read for it, as `Study.run` takes it.

    Returns
    -------
    ontogeny.study.StudyResult
        The nodes of the studies, and ``runs``. A variable ``x`` lies over ``run`` and its own
        dimensions, with ``x_mean``, ``x_sd``, ``x_mean_low`` and ``x_mean_high`` (mean ∓ SD) of
        what is drawn. Over (row, run) stand ``changed``, ``beyond``, ``learned``, ``half_step``
        with ``half_step_low`` and ``half_step_high``, and over (row, run, step) ``progress``.
        Attributes hold the ``runs``, the ``align``, and as ``problems`` what differs.

    Raises
    ------
    ArgumentError
        If runs differ in what is not allowed, share no node, or cannot be aligned.
    StoreError
        If a folder holds no result.

    Examples
    --------
    >>> def run(half):
    ...     steps = np.array([0, 10, 20, 40])
    ...     loss = xr.Dataset(
    ...         {"loss": ("step", 4 + 4 * half / (half + steps))}, {"step": steps}
    ...     )
    ...     return xr.DataTree.from_dict({"loss": loss.assign_attrs(role="track")})
    >>> both = compare({"fast": run(5), "slow": run(20)})
    >>> both["loss"].loss.sel(run="slow").values.round(1).tolist()
    [8.0, 6.7, 6.0, 5.3]
    >>> both["loss"].loss_mean.values.round(1).tolist()
    [8.0, 6.0, 5.4, 4.9]
    """
    studies = studies_of(runs, concepts) if concepts else {}
    opened = open_runs(runs)
    marks = check_differences(opened, allow)
    voice = _voice_of(opened)
    clock = make_clock(align, opened, tokens_per_step, voice)
    nodes, notes = _nodes(opened, clock)
    notes += kernel_differences(opened)
    ones = [
        replace(f, message=voice.fill(f.message)) for f in runs_that_are_one(opened)
    ]
    notes += [f"{finding.message}." for finding in ones]
    if not nodes:
        listed = "; ".join(f"{', '.join(run.nodes)} in {run.name!r}" for run in opened)
        reason = f" {' '.join(notes)}" if notes else ""
        raise ArgumentError(f"the runs share no node: {listed}.{reason}")
    differences = list(dict.fromkeys([*marks, *notes]))
    overview = runs_node(opened, nodes, clock, differences)
    front: dict[str, xr.Dataset] = {}
    if studies:
        front[NODE] = concepts_of_runs(studies, chosen_progress(progress))
    elif (name := comparable(opened)) is not None:
        shared = found_by_runs(opened, name)
        front |= {} if shared is None else {NODE: shared}
    problems: list[str] = []
    for run in opened:
        problems += [f"{run.name}: {text}" for text in run.attribute("problems", [])]
    claims = to_dataset(claims_of_runs(opened, nodes, front.get(NODE)))
    every = {**front, "runs": overview, **nodes}
    filled = {name: voice.filled_node(node) for name, node in every.items()}
    tree = xr.DataTree.from_dict({"/": claims, **filled})
    tree.attrs = _attributes(opened, clock, align, title, ones) | {
        "seeds": seeds,
        "nodes": json.dumps(list(every)),
        "notes": json.dumps(voice.filled(differences)),
        "problems": json.dumps([*voice.filled(differences), *problems]),
        **provenance(),
    }
    return StudyResult(tree)


def _voice_of(runs: Sequence[Run]) -> Voice:
    """Return what all runs count, steps where they count different things, and what a token is."""
    clock, *more = {run.clock for run in runs}
    return Voice.of(STEPS if more else clock, _inputs(runs))


def write_comparison(tree: MergedResult, folder: str | Path) -> Path:
    """Write a comparison into a folder, from which `ontogeny.open_study` opens it again.

    Parameters
    ----------
    tree
        As `compare` returns it.
    folder
        A new folder, an empty one, or that of an earlier comparison, which is replaced.

    Returns
    -------
    pathlib.Path
        The result, ``result.zarr``.

    Raises
    ------
    ArgumentError
        If `tree` is no comparison.
    StoreError
        If the folder holds a study, or other files.
    """
    compared = as_tree(tree)
    if "runs" not in compared.attrs:
        raise ArgumentError("tree must be what compare returns.")
    path = Path(folder)
    if settings_path(path).exists():
        raise StoreError(
            f"{path} is the folder of a study; write the comparison to another one."
        )
    others = path.is_dir() and any(p.name[0] != "." for p in path.iterdir())
    if others and not comparison_path(path).exists():
        raise StoreError(
            f"{path} holds files that are no comparison; give a new folder."
        )
    path.mkdir(parents=True, exist_ok=True)
    write_json(comparison_path(path), {"format": "ontogeny-comparison-1"})
    return write_result(path, compared)


def _nodes(
    runs: Sequence[Run], clock: Clock
) -> tuple[dict[str, xr.Dataset], list[str]]:
    """Return the nodes that all runs have, and in words what was left out or matched."""
    nodes: dict[str, xr.Dataset] = {}
    notes: dict[str, None] = {}
    for name in dict.fromkeys(chain.from_iterable(run.nodes for run in runs)):
        having = [run for run in runs if name in run.nodes]
        if len(having) < len(runs):
            names = ", ".join(repr(run.name) for run in having)
            notes[f"{name!r} is left out: only {names} of the runs measured it."] = None
            continue
        if any(run.nodes[name].attrs.get("role") == "claims" for run in runs):
            continue
        joint = node_of_runs(name, runs, clock)
        if isinstance(joint, str):
            notes[joint] = None
            continue
        data, figures, words = joint
        notes |= {words: None} if words else {}
        nodes[name] = _attached(name, data, figures, runs, clock)
    return nodes, list(notes)


def _attached(
    name: str,
    data: xr.Dataset,
    figures: Sequence[Any],
    runs: Sequence[Run],
    clock: Clock,
) -> xr.Dataset:
    """Return a node with its section, figures and sentences."""
    attrs = runs[0].nodes[name].attrs
    role = str(attrs.get("role", "development"))
    words = json.loads(attrs.get("section") or "{}")
    section = Section(**{"title": name, "definition": "", **words})
    if "marked" in data:
        controlled = [int(run.controlled) for run in runs]
        data["marked"].attrs.update(long_name=marked_words(runs), controlled=controlled)
    stays = isinstance(clock, LossClock) and clock.node == name
    dimension = "step" if stays else clock.dimension
    run_figures = figures_of_runs(data, figures, clock, dimension)
    data = attach(data, section, run_figures, (), role)
    if stays:
        data = extend(data, [_steps_at_loss()])
    return data


def marked_words(runs: Sequence[Run]) -> str:
    """Return what a filled mark means."""
    controlled = [run.controlled for run in runs]
    beyond = "changed beyond controls, or learned"
    if all(controlled):
        return beyond
    return (
        f"{beyond} (changed, where no control was run)"
        if any(controlled)
        else "changed"
    )


def _steps_at_loss() -> Any:
    return Curves(
        "step-at-loss",
        "When each run first had a loss",
        value="step_at_loss",
        x="loss_level",
        series=None,
        runs="run",
        caption="Between checkpoints it is taken as straight.",
    )


def _attributes(
    runs: Sequence[Run],
    clock: Clock,
    align: str,
    title: str | None,
    ones: Sequence[Finding],
) -> dict[str, Any]:
    """Return what the result says of itself, from what the runs say, and which `ones` are one."""
    models = [str(run.attribute("model", {}).get("class", "")) for run in runs]
    kinds = ", ".join(dict.fromkeys(filter(None, models)))
    name = f"{len(runs)} runs" + (f" of {kinds}" if kinds else "")
    placed = np.concatenate([_placed(run.steps, run, clock) for run in runs])
    steps = {round(float(step)) for step in placed}
    controls: list[tuple[str, Any]] = []
    for run in runs:
        controls += [(run.name, control) for control in run.attribute("controls", [])]
    records = {
        "steps": sorted(steps),
        "runs": [_of(run) for run in runs],
        "settings": {"align": align, **runs[0].attribute("settings", {})},
        "inputs": _inputs(runs),
        "controls": [{**control, "run": of_run} for of_run, control in controls],
        "model": {"class": name, **_blocks(runs)},
    }
    if ones or all("findings" in run.tree.attrs for run in runs):
        of_all = [{**asdict(finding), "steps": []} for finding in ones]
        records["findings"] = [*of_all, *_findings(runs, clock)]
    return {
        "title": title or name,
        "align": align,
        "clock": clock.axis.clock,
        **{key: json.dumps(record) for key, record in records.items()},
        **next(iter(levels_of(runs)), Levels()).attributes(),
    }


def _blocks(runs: Sequence[Run]) -> dict[str, Any]:
    """Return how many blocks the models have, where that is one number."""
    counts = {run.attribute("model", {}).get("blocks") for run in runs}
    return {"blocks": counts.pop()} if len(counts) == 1 and None not in counts else {}


def _placed(steps: np.ndarray, run: Run, clock: Clock) -> np.ndarray:
    """Return steps of a run on the axis of the page's steps, which by loss are the run's own."""
    return steps if isinstance(clock, LossClock) else clock.at(steps, run)


def _of(run: Run) -> dict[str, Any]:
    """Return what is known of one run."""
    attrs = run.tree.attrs
    reference = (
        {"reference_step": int(attrs["reference_step"])}
        if "reference_step" in attrs
        else {}
    )
    records = ("model", "trajectory", "settings", "inputs", "controls", "provenance")
    return {
        "name": run.name,
        **{
            name: attrs[name]
            for name in ("title", "created", "version")
            if name in attrs
        },
        **reference,
        "steps": run.steps.tolist(),
        **{name: run.attribute(name, None) for name in records if name in attrs},
    }


def _inputs(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the sets of texts, those that differ under the names of their runs."""
    sets: dict[str, dict[str, Any]] = {}
    for run in runs:
        for texts in run.attribute("inputs", []):
            name = str(texts.get("name", ""))
            if name not in sets:
                sets[name] = texts
            elif sets[name].get("fingerprint") != texts.get("fingerprint"):
                sets[f"{name} ({run.name})"] = {**texts, "name": f"{name} ({run.name})"}
    return list(sets.values())


def _findings(runs: Sequence[Run], clock: Clock) -> list[dict[str, Any]]:
    """Return what the audits found, each with its run."""
    findings = []
    for run in runs:
        for finding in run.attribute("findings", []):
            steps = np.asarray(finding.get("steps") or [], dtype=float)
            places = [
                round(float(s)) for s in _placed(steps, run, clock) if np.isfinite(s)
            ]
            message = f"{run.name}: {finding.get('message')}"
            findings.append({**finding, "steps": places, "message": message})
    return findings
