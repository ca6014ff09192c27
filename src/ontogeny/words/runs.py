"""What several runs show together, in words: in how many it was learned, and when."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import xarray as xr
from scipy.stats import spearmanr

from ..dynamics.reasons import Reason
from ..trees import MergedResult, as_tree
from .formats import from_to, joined, mid_sentence, sentence_start, value_range
from .levels import VERDICTS
from .reasons import STATES_OF, UNJUDGED
from .row_words import STATES, UNCONTROLLED
from .shared_concepts import shared_sentences
from .states import State
from .voice import Voice

_WORDS = {
    "learned": STATES[State("learned")],
    "beyond": STATES[State("beyond")],
    "changed": "changed",
}
_ENDS = ("", "_low", "_high")
MIN_ROWS = 4  # fewer rows have no rank correlation worth a number
_NUMBER = re.compile(r"([−-]?\d(?:[\d.,]*\d)?)")
MANY = 6  # more runs are summed up instead of listed


@dataclass(frozen=True, eq=False)
class Group:
    """The rows of one quantity, over ``row`` and ``run``, and the node that holds it."""

    name: str
    rows: xr.Dataset
    node: xr.Dataset = field(default_factory=xr.Dataset)

    @property
    def quantity(self) -> str:
        """The variable that the rows follow."""
        return str(self.rows.row_quantity.values[0])

    @property
    def runs(self) -> list[str]:
        """Names of the runs."""
        return list(map(str, self.rows.run.values))

    @property
    def kind(self) -> str:
        """What the rows are: layers, or series of any kind."""
        layers = [str(layer) for layer in self.rows.row_layer.values if layer]
        return "layers" if len(set(layers)) == self.rows.sizes["row"] else "series"

    @property
    def controlled(self) -> bool:
        """Whether every run has control runs."""
        return "marked" in self.rows and all(self.rows.marked.attrs.get("controlled", [0]))

    def counts(self, verdict: str) -> np.ndarray:
        """Return for how many of its rows a verdict holds in each run (R,)."""
        return self.rows[verdict].transpose("row", "run").values.sum(axis=0)


def groups_of(data: xr.Dataset) -> list[Group]:
    """Return the rows of a node, those of one quantity together."""
    if "row_quantity" not in data:
        return []
    indices: dict[tuple[str, str], list[int]] = {}
    for i, quantity in enumerate(data.row_quantity.values):
        indices.setdefault((str(quantity), str(data.row_name.values[i])), []).append(i)
    rows = data[[n for n, v in data.data_vars.items() if "row" in v.dims and "step" not in v.dims]]
    return [Group(name, rows.isel(row=places), data) for (_, name), places in indices.items()]


def telling(groups: Sequence[Group], role: str = "") -> list[Group]:
    """Return those that sentences name: of abilities, which are many, those changed in some run.

    Of weights, whose `role` is motion, those that could be judged in some run.
    """
    some = [g for g in groups if "p_chance" not in g.node or bool(g.rows.changed.any())]
    return [g for g in some if role != "motion" or bool(g.rows.judgeable.any())]


def beside_each_other(of_runs: Mapping[str, Sequence[str]]) -> list[str]:
    """Return what each run says for itself, a line a run; nothing of more runs than can be read.

    What differs in its numbers alone is one line for all, with their numbers in the order of runs.

    Examples
    --------
    >>> beside_each_other({"a": ["2 of 9 moved.", "Far."], "b": ["None moved."], "c": []})
    ['In a: 2 of 9 moved. Far.', 'In b: none moved.']
    >>> beside_each_other({"a": ["2 of 9 moved."], "b": ["3 of 9 moved."]})
    ['In a and b: 2 and 3 of 9 moved.']
    """
    saying = {run: " ".join(texts) for run, texts in of_runs.items() if texts}
    if len(of_runs) > MANY or not saying:
        return []
    parts = [_NUMBER.split(text) for text in saying.values()]  # words and numbers in turns
    if len({tuple(part[::2]) for part in parts}) > 1:
        return [f"In {run}: {mid_sentence(text)}" for run, text in saying.items()]
    columns = [list(column) for column in zip(*parts, strict=True)]
    text = "".join(joined(column if len({*column}) > 1 else column[:1]) for column in columns)
    alike = len({*saying.values()}) == 1 < len(saying)
    return [f"In {'each of ' * alike}{joined(list(saying))}: {mid_sentence(text)}"]


def line(group: Group) -> str:
    """Return in how many runs a quantity was learned, or changed: ``loss: learned in 3 of 3 runs``.

    Examples
    --------
    >>> truth = {v: (("row", "run"), [[True, True, True]]) for v in VERDICTS}
    >>> rows = xr.Dataset(
    ...     {
    ...         **truth,
    ...         "judgeable": truth["changed"],
    ...         "present": truth["changed"],
    ...         "row_layer": ("row", [""]),
    ...     },
    ...     {"run": ["a", "b", "c"]},
    ... )
    >>> line(Group("loss", rows))
    'loss: learned in 3 of 3 runs'
    """
    total, count = group.rows.sizes["run"], group.rows.sizes["row"]
    words = _strongest(group) or f"no change is shown in any of {total} runs"
    unknown = group.counts("present") - group.counts("judgeable")
    if why := _not_judged(group):
        return f"{group.name}: {why}"
    if unknown.any():
        runs = list(itertools.compress(group.runs, unknown))
        words += f"; not all of it could be judged in {joined(runs)}"
    absent = count - group.counts("present")
    if (absent == count).any():
        runs = list(itertools.compress(group.runs, absent == count))
        words += f"; {joined(runs)} {'has' if len(runs) == 1 else 'have'} none"
    return f"{group.name}: {words}"


def _not_judged(group: Group) -> str:
    """Say why no row of a quantity could be judged in any run; empty where one could."""
    if group.counts("judgeable").any() or not group.counts("present").any():
        return ""
    found = [] if "reason" not in group.rows else group.rows["reason"].values.ravel().tolist()
    open_ones = dict.fromkeys(reason for reason in map(str, STATES_OF) if reason in found)
    whys = [UNJUDGED[STATES_OF[Reason(reason)]] for reason in open_ones]
    return f"not judged: {joined(whys, ' or ') or UNJUDGED['few']}"


def _strongest(group: Group) -> str:
    """Return the strongest verdict of a quantity; of one row also what holds in more runs."""
    total, single = group.rows.sizes["run"], group.rows.sizes["row"] == 1
    parts, most = [], 0
    shown = (group.counts("beyond") + group.counts("learned")).any()
    if group.controlled and group.counts("changed").any() and not shown:
        return f"not shown to have changed beyond motion in any of {total} runs"
    for verdict in VERDICTS:
        counts, words = group.counts(verdict), _WORDS[verdict]
        if single and counts.sum() > most:
            most = int(counts.sum())
            parts.append(f"{words} in {most} of {total} runs")
        elif not single and counts.any():
            return f"{words} in {_of_rows(counts, group)}"
    return ", ".join(parts)


def _of_rows(counts: np.ndarray, group: Group) -> str:
    """Return of how many rows something holds in each run."""
    count, total, kind = group.rows.sizes["row"], len(counts), group.kind
    if len(set(counts.tolist())) == 1:
        number = f"all {count}" if counts[0] == count else f"{counts[0]} of {count}"
        return f"{number} {kind} in {total} of {total} runs"
    if total > MANY:
        return f"{counts.min()} to {counts.max()} of {count} {kind} in {total} runs"
    return f"{joined([str(n) for n in counts])} of {count} {kind} ({joined(group.runs)})"


def sentences(group: Group, say: Callable[..., str]) -> list[str]:
    """Return what a section says of one quantity over the runs; `say` names places on the axis."""
    of_all = [f"{sentence_start(line(group))}.", *_values(group)]
    if group.rows.sizes["row"] == 1:
        return of_all + _half(group, say)
    of_all += agreement_sentence(group.rows, group.kind)
    return of_all + _order(group)


def _values(group: Group) -> list[str]:
    """Say in which direction the rows that changed went, and from what to what."""
    if not {"first_value", "last_value"} <= set(group.rows.data_vars):
        return []
    first, last, changed = (
        group.rows[n].transpose("row", "run").values
        for n in ("first_value", "last_value", "changed")
    )
    some = np.asarray(changed.any(axis=1))
    counted = some[:, None] & np.isfinite(first) & np.isfinite(last)
    if not counted.any():
        return []
    rises = (last > first)[counted]
    units = group.node.get(group.quantity, xr.DataArray()).attrs.get("units", "1")
    ends = from_to(first[counted].tolist(), last[counted].tolist(), units)
    reference, steps = group.node.attrs.get("reference_step"), group.node.get("step", [-1])
    if "own_value" in group.rows and not group.rows.own_value.all() and steps[-1] == reference:
        ends += " at the last checkpoint before the reference {checkpoint}"
    if not changed[counted].all():  # those of one run alone would say that it differs
        part = f"the {some.sum()} of {some.size} {group.kind} that changed in some"
        return [f"Over all runs {'it' if some.all() else part} went {ends}."]
    if rises.all() or not rises.any():
        return [f"It {'rose' if rises.all() else 'fell'} {ends}."]
    return [f"It rose in {rises.sum()} and fell in {(~rises).sum()} of {counted.size}, {ends}."]


def _half(group: Group, say: Callable[..., str]) -> list[str]:
    """Say when half of the change was done in each run."""
    name = "half_loss" if "half_loss" in group.rows else "half_step"
    half, low, high = (_where_changed(group.rows, f"{name}{end}")[0] for end in _ENDS)
    finite = np.flatnonzero(np.isfinite(half))
    if not len(finite):
        return []
    if len(finite) > MANY:
        ends = say([f(half[finite]) for f in (np.min, np.max)], " to ")
        middle = say([np.median(half[finite])])
        return [f"Half of the change was done by {ends}, at the median by {middle}."]
    runs = joined([group.runs[i] for i in finite])
    when = say(half[finite], intervals=[(low[i], high[i]) for i in finite])
    return [f"Half of the change was done by {when} ({runs})."]


def _where_changed(rows: xr.Dataset, name: str) -> np.ndarray:
    """Return a variable of the rows (row, run), NaN where a row did not change."""
    return rows[name].where(rows["changed"]).transpose("row", "run").values


def correlations(rows: xr.Dataset) -> list[tuple[int, float]]:
    """Return for each pair of runs its rows, and Spearman's correlation of half-change steps.

    Rows count that changed in both runs; a pair with fewer than `MIN_ROWS` of them has none.

    Examples
    --------
    >>> half = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 40.0], [4.0, 30.0]])
    >>> rows = xr.Dataset({"half_step": (("row", "run"), half)})
    >>> [(n, round(r, 2)) for n, r in correlations(rows.assign(changed=rows.half_step > 0))]
    [(4, 0.8)]
    """
    half = _where_changed(rows, "half_step")
    pairs = []
    for a, b in itertools.combinations(half.T, 2):
        both = np.isfinite(a) & np.isfinite(b)
        if both.sum() >= MIN_ROWS and np.ptp(a[both]) and np.ptp(b[both]):
            pairs.append((int(both.sum()), float(spearmanr(a[both], b[both]).statistic)))
    return pairs


def agreement_sentence(rows: xr.Dataset, what: str) -> list[str]:
    """Say how alike the order of rows is between runs, where that can be told, and of how many."""
    if not (pairs := correlations(rows)):
        return []
    counts, values = zip(*pairs, strict=True)
    total, count = rows.sizes["row"], rows.sizes["run"]
    of_all = np.isfinite(_where_changed(rows, "half_step")).all(axis=1).sum()
    where = "every run" if set(counts) == {of_all} else "both"
    rows_words = f"the {value_range(counts)} of {total} {what} that changed in {where}"
    spread = f" (mean of {len(pairs)} pairs of runs, {min(values):.2f} to {max(values):.2f})"
    pair = " between the two runs" if count == 2 else f" between two of {count} runs"
    mean = f"{np.mean(values):.2f}{spread if len(pairs) > 1 else pair}"
    return [f"Rank correlation of the half-change {{point}}s of {rows_words}: {mean}."]


def _order(group: Group) -> list[str]:
    """Say which layer came first, only where every run says so by intervals that are apart.

    A distance to a reference step is 0 there, and its order follows from the reference.
    """
    if group.kind != "layers" or _is_distance(group.node, group.quantity):
        return []
    low, high = (_where_changed(group.rows, f"half_step{end}") for end in _ENDS[1:])
    finite = np.flatnonzero(np.isfinite(low).all(axis=1) & np.isfinite(high).all(axis=1))
    pairs = [(i, j) for i in finite for j in finite if (high[i] < low[j]).all()]
    if not pairs:
        return []
    i, j = max(pairs, key=lambda pair: float(np.min(low[pair[1]] - high[pair[0]])))
    first, last = (
        str(group.rows.row.values[k]).replace(group.name, "").strip(" ·") for k in (i, j)
    )
    total = group.rows.sizes["run"]
    before = f"half of the change was done in {first} before it was in {last}"
    return [f"In {total} of {total} runs {before}."]


def _is_distance(data: xr.Dataset, quantity: str) -> bool:
    """Return whether a quantity is 0 at the reference step: then it is a distance to it."""
    reference = data.attrs.get("reference_step")
    if quantity not in data or "step" not in data[quantity].dims:
        return True  # unknown: no order is claimed
    if reference is None or reference not in data.step.values:
        return True
    values = data[quantity].sel(step=reference).values.astype(float)
    return bool((np.nan_to_num(np.abs(values)) < 1e-9).any())


def control_words(controlled: Mapping[str, bool]) -> str:
    """Say which runs have no control, if any."""
    without = [name for name, has_control in controlled.items() if not has_control]
    if not without:
        return ""
    if len(without) == len(controlled):
        return f"No control was run: {mid_sentence(UNCONTROLLED)}"
    return f"No control was run for {joined(without)}, where only change could be judged."


def summary_lines(tree: MergedResult) -> list[str]:
    """Return one line for each quantity of a comparison, and one on controls that are missing.

    Runs that are one run are said first.

    Parameters
    ----------
    tree
        As `compare` returns it.
    """
    compared = as_tree(tree)
    found = json.loads(compared.attrs.get("findings", "[]"))
    ones = [f"audit: {finding['message']}" for finding in found if finding["kind"] == "one-run"]
    if (compared["runs"].checkpoints == 1).all():  # single models have no course
        return [*ones, json.loads(compared.attrs["headline"])["heading"]]
    nodes = [child.to_dataset() for child in compared.subtree if child is not compared]
    sections = [node for node in nodes if node.attrs.get("role") != "runs"]
    groups = [group for node in sections for group in telling(groups_of(node))]
    lines = [line(group) for group in groups if not _not_judged(group)]
    whys = [why for why in map(_not_judged, groups) if why]
    for why in dict.fromkeys(whys):
        lines.append(f"{joined([g.name for g in groups if _not_judged(g) == why])}: {why}")
    if "shared-concepts" in compared.children:
        voice = Voice.of(compared.attrs.get("clock"))
        shared = shared_sentences(compared["shared-concepts"].to_dataset())
        lines = [*map(voice.fill, shared), *lines]
    runs = compared["runs"].to_dataset()
    controls = dict(zip(map(str, runs.run.values), runs.controls.values > 0, strict=True))
    return [*ones, *lines, *filter(None, [control_words(controls)])]
