"""The first section of a comparison: what the runs or single models are, and the rows of nodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import xarray as xr

from ..figures import Section, attach
from ..figures.tables import Column, Table
from ..observables.registry import kinds
from ..summary.noise import mean_stderr
from ..words.content import Content, read_content
from ..words.formats import mid_sentence, plural, sentence_start
from ..words.landmarks import read_loss
from ..words.levels import VERDICTS
from ..words.loss import loss_heading, of_one_model
from ..words.one_model import alike
from ..words.runs import Group, agreement_sentence, control_words, groups_of, line, sentences
from ..words.sections import best_sentences
from .clock import Clock, LossClock
from .figures import marks
from .sources import Run, levels_of

# Rows that the first section shows; above, layers are thinned evenly within each quantity.
MOST_ROWS = 60


def details(
    runs: Sequence[Run], nodes: Mapping[str, xr.Dataset], differences: Sequence[str]
) -> list[str]:
    """Return what holds of all runs together, and their differences in words."""
    of_kinds = dict.fromkeys(cls.words_of_runs for cls in kinds().values())
    trees = {run.name: run.tree for run in runs}
    able = [sentence for words in of_kinds for sentence in words(trees)]
    if single := single_models(runs):
        return [*able, *single["details"], *differences]
    rows = _rows(nodes)
    order = [] if rows is None else agreement_sentence(rows, "rows")
    without = control_words({run.name: run.controlled for run in runs})
    return [*able, *order, *filter(None, [without]), *differences]


def runs_node(
    runs: Sequence[Run], nodes: Mapping[str, xr.Dataset], clock: Clock, words: Sequence[str]
) -> xr.Dataset:
    """Return the node ``runs``: a table of the runs, the chart of all rows, and `words`."""
    data = _table_of(runs, nodes, clock)
    columns = [Column(str(name)) for name in data.data_vars]
    figures: list[Any] = [Table("table", "The runs", columns=columns, rows="run")]
    rows = _rows(nodes)
    if rows is not None:
        thinned = _thinned(rows)
        data = data.merge(thinned.assign_coords(row=_unique(thinned)))
        if isinstance(clock, LossClock):
            chart = marks(data)
            if thinned.sizes["row"] < rows.sizes["row"]:
                more = f"Of more than {MOST_ROWS} rows some layers are shown here;"
                caption = f"{chart.caption} {more} the sections show all."
                chart = dataclasses.replace(chart, caption=caption)
            figures.insert(0, chart)
    section = Section(
        "Runs",
        "Every run was studied by itself and keeps its own noise, controls and verdicts; p-values "
        f"are corrected over the page of each run{_levels_words(runs)}.",
        care=_alignment(clock),
    )
    data = attach(data, section, figures, words, role="runs")
    return data.assign_attrs(mark=f"what {len(runs)} runs show together")


def _levels_words(runs: Sequence[Run]) -> str:
    """Say by which levels rows were judged, where all runs state the same."""
    if len(stated := levels_of(runs)) != 1:
        return ""
    levels = stated.pop()
    return f", at α = {levels.change:g}, and at {levels.control:g} against control runs"


def headline(
    runs: Sequence[Run], nodes: Mapping[str, xr.Dataset], clock: Clock, words: Sequence[str]
) -> dict[str, Any]:
    """Return what the first screen says: ``heading``, ``lead``, the details, and counts of rows."""
    judged = [node for node in nodes.values() if node.attrs.get("role") != "motion"]
    groups = [group for node in judged for group in groups_of(node)]
    tracks = [group for group in groups if group.node.attrs.get("role") == "track"]
    first = next(iter(tracks + groups), None)
    lead = " ".join(sentences(first, clock.say)) if first else ""
    if single := single_models(runs):
        return {**single, "details": list(words), **dict.fromkeys((*VERDICTS, "judged"), 0)}
    return {
        "heading": _shared_landmarks(runs) or _heading(groups, [run.controlled for run in runs]),
        "lead": lead or "The runs have no rows that were judged; the figures show their curves.",
        "details": list(words),
        **{name: sum(int(g.rows[name].all("run").sum()) for g in groups) for name in VERDICTS},
        "judged": sum(g.rows.sizes["row"] for g in groups),
    }


def _shared_landmarks(runs: Sequence[Run]) -> str:
    """Return what each run's own page has for a heading, where its loss fell and all say the same.

    It is the order of what the loss gained by: frequencies, the token before, what else stands
    around. Runs that say different things have no heading together.
    """
    headings = set()
    for run in runs:
        content = read_content(run.tree)
        loss = read_loss(content)
        if loss is None or loss.outcome != "fell" or not loss.uses_context:
            return ""
        headings.add(loss_heading(loss, content.steps, halves=False))
    if len(headings) > 1:
        return ""
    words = headings.pop()
    if words.startswith("It "):
        return f"Each of {len(runs)} runs {words.removeprefix('It ')}"
    return f"In each of {len(runs)} runs {mid_sentence(words)}"


def _heading(groups: Sequence[Group], controlled: Sequence[bool]) -> str:
    """Count what all runs learned; without a control nothing can be called learned."""
    total = len(controlled)
    if not groups:
        return f"{total} runs side by side"
    everywhere = [g for g in groups if (g.counts("learned") > 0).all()]
    if len(everywhere) == 1:
        return sentence_start(line(everywhere[0]))
    if everywhere:
        where = f"in {total} of {total} runs"
        return f"{len(everywhere)} of {len(groups)} quantities were learned {where}"
    somewhere = max(groups, key=lambda g: np.count_nonzero(g.counts("learned")))
    if somewhere.counts("learned").any():
        return sentence_start(line(somewhere))
    if any(controlled):
        return _nothing_learned(groups, controlled)
    if len(groups) == 1:
        return f"{sentence_start(line(groups[0]))}; no control was run"
    changed = sum(bool((g.counts("changed") > 0).all()) for g in groups)
    verb = "changed" if changed else "is shown to have changed"
    what = f"{changed or 'None'} of {len(groups)} quantities {verb}"
    return f"{what} in {f'all {total}' if total > 2 else 'both'} runs; no control was run"


def _nothing_learned(groups: Sequence[Group], controlled: Sequence[bool]) -> str:
    """Say that runs with controls learned nothing, or why that cannot be told."""
    able = [g.rows.get("can_learn", g.rows.learned) for g in groups]
    if not any(rows.any() for rows in able):
        return "Learning was not measured in these runs"
    compared = [
        (rows & g.rows.judgeable).isel(run=np.flatnonzero(controlled))
        for rows, g in zip(able, groups, strict=True)
    ]
    if not any(rows.any() for rows in compared):
        return "Learning could not be judged in these runs"
    worse = all(
        bool((g.rows.get("not_improved", xr.zeros_like(rows)) | ~rows).all())
        for g, rows in zip(groups, able, strict=True)
    )
    what = "Nothing here was learned" if worse else "Nothing is shown to be learned"
    if all(controlled):
        return f"{what} in any of {len(controlled)} runs"
    count = sum(controlled)
    which = "the one run" if count == 1 else f"any of {count} runs"
    return f"{what} in {which} with controls"


def _table_of(runs: Sequence[Run], nodes: Mapping[str, xr.Dataset], clock: Clock) -> xr.Dataset:
    """Return what is known of each run as variables over ``run``."""
    models = [run.attribute("model", {}) for run in runs]
    controls = [len(run.attribute("controls", [])) or int(run.controlled) for run in runs]
    parts: dict[str, tuple[Any, str]] = {
        "model": (np.array([str(m.get("class", "")) for m in models], dtype=object), ""),
        "parameters": ([float(m.get("parameters", np.nan)) for m in models], "1"),
        "checkpoints": ([len(run.steps) for run in runs], "1"),
        "first_step": ([int(run.steps[0]) for run in runs], ""),
        "last_step": ([int(run.steps[-1]) for run in runs], ""),
        "controls": (controls, "1"),
    }
    table = {
        name: ("run", values, {"long_name": name.replace("_", " "), "units": units})
        for name, (values, units) in parts.items()
    }
    return xr.Dataset(table, {"run": np.array([run.name for run in runs], dtype=object)})


def _rows(nodes: Mapping[str, xr.Dataset]) -> xr.Dataset | None:
    """Return the rows of all nodes but those of weight change."""
    pieces = []
    for name, node in nodes.items():
        if node.sizes.get("row", 0) and node.attrs.get("role") != "motion":
            numbers = [
                n for n, v in node.data_vars.items() if {"row"} <= {*v.dims} <= {"row", "run"}
            ]
            of_node = np.full(node.sizes["row"], name, dtype=object)
            piece = node[numbers].assign(row_node=("row", of_node))
            pieces.append(piece.drop_attrs(deep=False))
    if not pieces:
        return None
    shared = sorted(set.intersection(*(set(map(str, piece.data_vars)) for piece in pieces)))
    pieces = [piece[shared] for piece in pieces]
    return xr.concat(pieces, "row", coords="minimal", compat="override", combine_attrs="override")


def _thinned(rows: xr.Dataset) -> xr.Dataset:
    """Return at most about `MOST_ROWS` rows, evenly over each quantity of a node, two at least."""
    share = min(MOST_ROWS / rows.sizes["row"], 1.0)
    quantities: dict[tuple[str, str], list[int]] = {}
    for place, quantity in enumerate(zip(rows.row_node.values, rows.row_name.values, strict=True)):
        quantities.setdefault(quantity, []).append(place)
    places: list[int] = []
    for members in quantities.values():
        count = min(max(int(len(members) * share), 2), len(members))
        even = np.unique(np.linspace(0, len(members) - 1, count).round().astype(int))
        places += [members[i] for i in even]
    return rows.isel(row=sorted(places))


def _unique(rows: xr.Dataset) -> np.ndarray:
    """Return labels of rows; those that several nodes share with the name of the node."""
    labels = [str(label) for label in rows.row.values]
    names = [
        f"{label} ({node})" if labels.count(label) > 1 else label
        for label, node in zip(labels, map(str, rows.row_node.values), strict=True)
    ]
    return np.array(names, dtype=object)


def _alignment(clock: Clock) -> str:
    """Say what stands at one place of the axis."""
    if isinstance(clock, LossClock):
        return (
            "Curves are drawn over the loss that the run itself had reached, from the first time "
            "that it fell so far; between two checkpoints they are taken as straight."
        )
    what = "the same number of training tokens" if clock.words != Clock.words else "the same step"
    return f"Runs are compared at {what}. Where a run has no checkpoint there is a gap."


def single_models(runs: Sequence[Run]) -> dict[str, Any] | None:
    """Return heading, lead and details of models of one checkpoint each, None of other runs."""
    if any(len(run.steps) != 1 for run in runs):
        return None
    contents = {run.name: read_content(run.tree) for run in runs}
    losses = {n: of_one_model(loss) for n in contents if (loss := read_loss(contents[n]))}
    lead = " ".join(f"{name}: {loss.lead} {loss.text}".strip() for name, loss in losses.items())
    return {
        "heading": _better(runs) or f"{plural(len(runs), 'model')} side by side",
        "lead": lead or "Their loss was not measured; the sections show what was.",
        "details": _facts(contents),
    }


def _facts(contents: Mapping[str, Content]) -> list[str]:
    """Return the sentence that each model has of each section but the loss, sections together."""
    facts: dict[str, list[str]] = {}
    for name, content in contents.items():
        for title, text in best_sentences(content).items():
            facts.setdefault(title, []).append(f"{title}, {name}: {text}")
    return list(chain.from_iterable(facts.values()))


def _better(runs: Sequence[Run]) -> str:
    """Say which of the models predicts best, and whether surely better than the second best.

    The difference is that of each text, so that texts that are hard for both count little. Models
    of different tokens have no losses per token that could be held against each other.
    """
    nodes = {run.name: run.nodes["loss"].isel(step=0) for run in runs if "loss" in run.nodes}
    of_text = {name: node.get("loss_of_text") for name, node in nodes.items()}
    if len(nodes) < len(runs) or any(values is None for values in of_text.values()):
        return ""
    (first, one), (second, two) = sorted(nodes.items(), key=lambda pair: float(pair[1].loss))[:2]
    if not np.array_equal(one.loss_weights, two.loss_weights):
        return ""
    change = float(two.loss - one.loss)
    error = float(
        mean_stderr((two.loss_of_text - one.loss_of_text).values, one.loss_weights.values)
    )
    write = alike([float(two.loss)])
    ends = f"{write(float(one.loss))} nats against {write(float(two.loss))}"
    half = f"by {write(change)} ± {write(1.96 * error)}"
    if change > 1.96 * error:
        return f"{first} predicts these texts better than {second}: {ends}, {half}"
    return f"{first} and {second} are not shown to differ in their loss: {ends}, {half}"
