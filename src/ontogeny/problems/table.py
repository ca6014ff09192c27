"""All problems of a result, as a small table and as one sentence."""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import xarray as xr

from ..markup import html_table, text_table
from ..trees import MergedResult, as_tree
from .problem import Problem, Standing, of_node, standing_of

HEADS = ("node", "step", "layer", "why")
_WIDEST = 100  # characters of a reason in a line of text
_NAMED = 3  # observables that the sentence names
_SHOWN = 20  # rows of the table in text


@dataclass(frozen=True, repr=False)
class Problems(Sequence[Problem]):
    """What failed in a study: a sequence of `Problem`; ``print`` it.

    Parameters
    ----------
    rows
        Those of the run that is studied, then those of control runs.
    standings
        How much of each observable was computed, by its name.
    notes
        What to know of cells that did not fail: which were computed in another environment.
    """

    rows: tuple[Problem, ...] = ()
    standings: Mapping[str, Standing] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.rows)

    @property
    def cells(self) -> int:
        """Cells of the run that is studied."""
        return sum(standing.cells for standing in self.standings.values())

    @property
    def failed(self) -> int:
        """How many of them are missing, or failed in at least one layer."""
        return sum(standing.failed for standing in self.standings.values())

    @property
    def lost(self) -> list[str]:
        """Observables of which nothing was computed."""
        return [name for name, standing in self.standings.items() if standing.lost]

    @property
    def observables(self) -> list[str]:
        """Observables of the run that is studied in which something failed."""
        return list(dict.fromkeys(row.node for row in self.rows if not row.run))

    @property
    def sentence(self) -> str:
        """What failed in one line; empty where nothing did.

        Examples
        --------
        >>> import xarray as xr
        >>> data = xr.Dataset(
        ...     {"status": ("step", ["failed: no", "done"])}, {"step": [0, 8]}
        ... )
        >>> problems_of(xr.DataTree.from_dict({"loss": data})).sentence
        '1 of 2 cells failed: loss (1): no'
        """
        if not self.rows:
            return ""
        of_run = [row for row in self.rows if not row.run]
        groups: dict[str, list[Problem]] = {}
        for row in of_run or self.rows:
            groups.setdefault(row.where, []).append(row)
        parts = [
            f"{where}{self._count(part)}: {_main_reason(part)}"
            for where, part in groups.items()
        ]
        more = len(parts) - _NAMED
        if more > 0:
            of = "of control runs"
            if of_run:
                of = "observable" if more == 1 else "observables"
            parts[_NAMED:] = [f"and {more} more {of}"]
        if of_run and self._runs:
            parts.append(self._controls_failed)
        return f"{self._head()}: {'; '.join(parts)}"

    def _head(self) -> str:
        if self.failed:
            return f"{self.failed:,} of {self.cells:,} cells failed"
        if self.observables:
            return (
                f"{len(self.observables)} of {len(self.standings)} observables failed"
            )
        return self._controls_failed

    @property
    def _runs(self) -> int:
        return len({row.run for row in self.rows if row.run})

    @property
    def _controls_failed(self) -> str:
        runs = "control run" if self._runs == 1 else "control runs"
        return f"{self._runs} {runs} failed in part"

    def _count(self, rows: Sequence[Problem]) -> str:
        number = 0 if rows[0].run else self.standings[rows[0].node].failed
        return f" ({number:,})" if number else ""

    def __repr__(self) -> str:
        if not self.rows:
            return "\n".join([self.standing, *self.notes])
        lines = text_table(HEADS, *map(_cells, self.rows[:_SHOWN]))
        if len(self.rows) > _SHOWN:
            lines.append(f"and {len(self.rows) - _SHOWN} more")
        return "\n".join([self.standing, *self.notes, *lines])

    @property
    def standing(self) -> str:
        """How much failed, in one line."""
        if not self.rows:
            return f"no problems in {self.cells:,} cells"
        lost = len(self.lost)
        if not lost:
            return self._head()
        has = "has" if lost == 1 else "have"
        return f"{self._head()}; {lost} of {len(self.standings)} observables {has} no result"

    def _repr_html_(self) -> str:
        text = "".join(
            f"<p>{html.escape(line)}</p>" for line in (self.standing, *self.notes)
        )
        if not self.rows:
            return text
        lines = [_cells(row, whole=True) for row in self.rows]
        return f"{text}{html_table(HEADS, lines)}"


def problems_of(result: MergedResult) -> Problems:
    """Return what failed in a merged result, in the order of its observables.

    Examples
    --------
    >>> import xarray as xr
    >>> good = xr.Dataset({"status": ("step", ["done", "done"])}, {"step": [0, 8]})
    >>> problems_of(xr.DataTree.from_dict({"loss": good}))
    no problems in 2 cells
    >>> bad = xr.Dataset(
    ...     {
    ...         "status": (
    ...             ("step", "layer"),
    ...             [["done", "failed: ValueError: no"], ["done", "done"]],
    ...         )
    ...     },
    ...     {"step": [0, 8], "layer": ["a", "b"]},
    ... )
    >>> problems_of(xr.DataTree.from_dict({"loss": good, "norm": bad}))
    1 of 4 cells failed
    node  step  layer  why
    norm  0     b      ValueError: no
    """
    tree = as_tree(result)
    names = _listed(tree.root.attrs.get("nodes"))
    nodes = {n.path.strip("/"): n for n in tree.root.subtree if n.path != "/"}
    order = dict.fromkeys([*(name for name in names if name in nodes), *nodes])
    data = {name: nodes[name].to_dataset() for name in order}
    data = {
        name: dataset
        for name, dataset in data.items()
        if dataset.data_vars or dataset.attrs
    }
    rows: list[Problem] = []
    for name, dataset in data.items():
        rows += of_node(name, dataset)
    rows += map(Problem.from_dict, _of_controls(tree.root.attrs.get("controls")))
    standings = {name: standing_of(dataset) for name, dataset in data.items()}
    return Problems(tuple(rows), standings, _notes(tree.root.attrs.get("provenance")))


def _notes(provenance: Any) -> tuple[str, ...]:
    """Return what a result says of where its cells were computed."""
    try:
        fields = json.loads(provenance or "{}")
        return tuple(map(str, fields.get("environments", ())))
    except (TypeError, ValueError, AttributeError):  # it may be anyone's
        return ()


def _of_controls(value: Any) -> Iterator[Mapping[str, Any]]:
    """Give what a result says of the problems of its control runs."""
    for control in _listed(value):
        if isinstance(control, Mapping):
            yield from control.get("problems", ())


def _listed(value: Any) -> list[Any]:
    """Return an attribute that holds a list, as JSON or plain; empty where it holds none."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    return list(value) if isinstance(value, list | tuple) else []


def _main_reason(rows: Sequence[Problem]) -> str:
    """Return the reason of most steps."""
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row.reason] += max(1, len(row.steps))
    return _short(counts.most_common(1)[0][0].rstrip("."), 2 * _WIDEST)


def _cells(row: Problem, *, whole: bool = False) -> tuple[str, str, str, str]:
    reason = row.reason if whole else _short(row.reason, _WIDEST)
    return row.where, steps_text(row.steps), _some(row.layers), reason


def steps_text(steps: Sequence[int]) -> str:
    """Return steps as a short text.

    Examples
    --------
    >>> steps_text([8]), steps_text([0, 8, 16]), steps_text([0, 1, 2, 4, 8])
    ('8', '0, 8, 16', '0 to 8 (5 steps)')
    """
    if len(steps) <= 3:
        return ", ".join(f"{step:,}" for step in steps)
    return f"{min(steps):,} to {max(steps):,} ({len(steps)} steps)"


def _some(layers: Sequence[str]) -> str:
    return (
        ", ".join(layers)
        if len(layers) <= 2
        else f"{layers[0]} and {len(layers) - 1} more"
    )


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1].rstrip()}…"


@xr.register_datatree_accessor("problems")
class ProblemsAccessor:
    """What failed in a result, on every `xarray.DataTree` as ``result.problems()``.

    Examples
    --------
    >>> data = xr.Dataset(
    ...     {"status": ("step", ["failed: no", "done"])}, {"step": [0, 8]}
    ... )
    >>> result = xr.DataTree.from_dict({"loss": data})
    >>> problems_of(result) == result.problems()
    True
    >>> result.problems()
    1 of 2 cells failed
    node  step  layer  why
    loss  0            no
    """

    def __init__(self, tree: xr.DataTree) -> None:
        self._tree = tree.root

    def __call__(self) -> Problems:
        """Return a table of what failed: node, steps, layers and the reason."""
        return problems_of(self._tree)

    def __repr__(self) -> str:
        return "result.problems() lists what failed"
