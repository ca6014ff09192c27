"""What a merged result says, read from its attributes once and checked as it is read."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import xarray as xr

from ..claims import Claim, Kind
from ..errors import ArgumentError
from ..figures import Curves, Figure
from ..problems import Problems
from ..problems.table import problems_of
from ..trees import MergedResult, as_tree
from .abilities import has_abilities
from .catalogue import DAMAGES
from .formats import plain_text, sentence_start
from .labels import LayerGroups, layer_groups, short_names, slug
from .levels import Levels
from .page_claims import claims_of_result
from .phrases import Names, title_within
from .rows import Row, bands_of, read_rows
from .run_rows import read_run_rows
from .voice import OF_STEPS, Voice

LAYER_DIMENSIONS = ("layer", "block")
_PLACES = {"runs": -2, "claims": -1, "track": 0, "motion": 2}
NOTES = ("definition", "symbol", "null", "care", "source")
_PARSED: Mapping[str, Any] = {
    "section": {},
    "figures": [],
    "statements": [],
    "boundaries": [],
}


@dataclass(frozen=True)
class Node:
    """One observable: its words, its data, and its figures, each with what is wrong with it."""

    id: str
    path: str
    title: str
    section: Mapping[str, str]
    figures: Sequence[tuple[Figure, str]]
    statements: Sequence[str]
    role: str
    dataset: xr.Dataset
    rows: Sequence[Row]

    def place_of(self, figure: str) -> str:
        """Return the name on the page of a figure, given its id; else that of the section."""
        taken: list[str] = []
        for each, problem in self.figures:
            taken.append(slug(each.id, taken))
            if each.id == figure and not problem:
                return f"{self.id.removeprefix('section-')}/{taken[-1]}"
        return self.id


@dataclass(frozen=True)
class Finding:
    """One finding of the audit."""

    kind: str
    certainty: str
    steps: tuple[int, ...]
    message: str


@dataclass(frozen=True)
class Track:
    """The loss curve: under the chart and in the step slider."""

    title: str
    units: str
    steps: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class RegimeMark:
    """A boundary between regimes of the whole run, in steps; its interval is NaN if unknown."""

    step: float
    low: float = math.nan
    high: float = math.nan
    label: str = "regime boundary"


@dataclass(frozen=True)
class Content:
    """Everything that the page draws.

    Attributes
    ----------
    chosen
        Which checkpoints were taken, by what, and what was left out.
    based
        Whether the first checkpoint is a base that the others were adapted from.
    voice
        What checkpoints count, and what a token of the first texts is.
    spoken
        The same for sentences: aligned by tokens, the axis counts these, but claims of runs steps.
    """

    title: str
    created: str
    version: str
    steps: tuple[int, ...]
    model: Mapping[str, Any]
    inputs: Sequence[Mapping[str, Any]]
    settings: Any
    provenance: Any
    audited: bool
    findings: Sequence[Finding]
    controls: Sequence[str]
    boundaries: Sequence[RegimeMark]
    nodes: Sequence[Node]
    groups: LayerGroups
    track: Track | None
    voice: Voice = OF_STEPS
    chosen: Sequence[str] = ()
    based: bool = False
    runs: Sequence[str] = ()
    runs_controlled: Sequence[bool] = ()
    notes: Sequence[str] = ()
    problems: Problems = field(default_factory=Problems)
    levels: Levels = field(default_factory=Levels)
    reference_step: int | None = None
    claims: Sequence[Claim] = ()
    spoken: Voice = OF_STEPS

    @cached_property
    def names(self) -> Names:
        """How quantities and layers are called in sentences."""
        titles: dict[tuple[str, str], str] = {}
        for node in self.nodes:
            for name, variable in node.dataset.data_vars.items():
                title = plain_text(variable.attrs.get("long_name") or node.title)
                titles[node.path, str(name)] = title_within(title)
        for key, names in self._quantities().items():
            if len(names) == 1:
                titles[key] = names.pop()
        totals = Counter((path, row.variable) for path, row in self._rows_with_nodes())
        differing = {c.subject.key for c in self.claims if c.kind is Kind.DIFFERS}
        totals |= Counter((node, quantity) for node, quantity, *_ in differing)
        layers = {row.layer: row.short_layer for row in self.rows if row.layer}
        paths = [path for path in _layer_paths(self.nodes) if path not in layers]
        layers |= dict(zip(paths, short_names(paths), strict=True))
        return Names(titles, layers, totals, max(len(self.runs), 1))

    def _quantities(self) -> dict[tuple[str, str], set[str]]:
        """Return what rows of each variable are called, a distance with to what it is one."""
        found: dict[tuple[str, str], set[str]] = {}
        for path, row in self._rows_with_nodes():
            name = title_within(row.quantity)
            if not row.own_value and row.measure:
                name = f"{name} ({row.measure})"
            found.setdefault((path, row.variable), set()).add(name)
        return found

    def _rows_with_nodes(self) -> Iterator[tuple[str, Row]]:
        for node in self.nodes:
            for row in node.rows:
                yield node.path, row

    @property
    def track_node(self) -> Node | None:
        """The node of the loss."""
        return next((node for node in self.nodes if node.role == "track"), None)

    def link(self, claim: Claim) -> str:
        """Return the place of the page that shows a claim: its figure, its section or the audit."""
        by_path = {node.path: node for node in self.nodes}
        node = by_path.get(claim.subject.node)
        if node is None:
            return (
                "#audit" if claim.kind is Kind.DAMAGED and self.audited else "#verdict"
            )
        if has_abilities(node.dataset):
            return "#abilities"
        return f"#{node.place_of(claim.figure.removeprefix(f'{node.path}/'))}"

    @property
    def unit(self) -> str:
        """What one place of the step axis is called, such as a step, an epoch or a token."""
        return self.voice.unit

    @property
    def one_model(self) -> bool:
        """Whether there is one checkpoint, and so no time axis."""
        return len(self.steps) == 1 and not self.runs

    @property
    def doubted(self) -> str:
        """How a heading ends where the first or last checkpoint is proved to be no such step."""
        ends = {*self.steps[:1], *self.steps[-1:]}
        certain = [
            f for f in self.findings if f.kind in DAMAGES and f.certainty == "certain"
        ]
        doubts = [f for f in certain if ends & {*f.steps}]
        return f"; {doubts[0].message}" if doubts else ""

    @property
    def rows(self) -> list[Row]:
        """The chart's rows of all nodes."""
        return [row for node in self.nodes for row in node.rows]

    @property
    def row_ids(self) -> list[str]:
        """A stable name of each row for links, in the order of `rows`."""
        names: list[str] = []
        for row in self.rows:
            names.append(slug(row.name, names))
        return [f"chart/{name}" for name in names]


def read_content(result: MergedResult) -> Content:
    """Read a merged result.

    Raises
    ------
    ArgumentError
        If `result` is no result, holds no node with steps, or an attribute is not JSON.
    """
    tree = as_tree(result)
    stated = partial(attribute, tree.attrs, owner="the root")
    inputs = [_mapping(texts) for texts in stated("inputs", [])]
    attrs = tree.attrs
    voice = Voice.of(plain_text(attrs.get("clock") or ""), inputs)
    nodes = _read_nodes(tree, voice)
    runs = [plain_text(_mapping(run).get("name", "")) for run in stated("runs", [])]
    return Content(
        title=plain_text(attrs.get("title") or "Untitled study"),
        created=plain_text(attrs.get("created", "")),
        version=plain_text(attrs.get("version", "")),
        steps=_all_steps(attrs, nodes),
        model=_mapping(stated("model", {})),
        inputs=inputs,
        settings=stated("settings", {}),
        provenance=stated("provenance", {}),
        audited="findings" in attrs,
        findings=list(map(_finding, voice.filled(stated("findings", [])))),
        controls=[
            plain_text(_mapping(run).get("name", "")) for run in stated("controls", [])
        ],
        boundaries=_boundaries(attrs, nodes),
        nodes=nodes,
        groups=layer_groups(_layer_paths(nodes)),
        track=_track(nodes),
        voice=voice,
        chosen=_mapping(stated("trajectory", {})).get("chosen", ()),
        based=_mapping(stated("trajectory", {})).get("base") is True,
        runs=runs,
        runs_controlled=_controlled(tree, runs),
        notes=list(map(plain_text, stated("notes", []))),
        problems=problems_of(tree),
        levels=Levels.of(tree),
        reference_step=attrs.get("reference_step"),
        claims=claims_of_result(tree),
        spoken=Voice.of("", inputs) if attrs.get("align") == "tokens" else voice,
    )


def _controlled(tree: xr.DataTree, runs: Sequence[str]) -> list[bool]:
    """Return whether each run of a comparison was studied with control runs."""
    if (
        not runs
        or "runs" not in tree.children
        or "controls" not in tree["runs"].data_vars
    ):
        return [False] * len(runs)
    return [bool(count) for count in tree["runs"].to_dataset()["controls"].values]


def attribute(attrs: Mapping[Any, Any], name: str, default: Any, owner: str) -> Any:
    """Return an attribute that holds JSON; what is already plain data is taken as it is."""
    value = attrs.get(name, default)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, str):
        return _plain(value)
    try:
        value = json.loads(value) if value else default
    except (json.JSONDecodeError, RecursionError) as error:
        raise ArgumentError(
            f"attribute {name!r} of {owner} must hold JSON; it starts with {value[:40]!r} "
            f"({getattr(error, 'msg', error)})."
        ) from None
    if default is not None and not isinstance(value, type(default)):
        raise ArgumentError(
            f"attribute {name!r} of {owner} must be a JSON {type(default).__name__}; "
            f"got {type(value).__name__}."
        )
    return _plain(value)


def _plain(value: Any) -> Any:
    """Return JSON data with all its texts plain; labels of a selection must stay as they are."""
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, Mapping):
        return {_plain(k): v if k == "select" else _plain(v) for k, v in value.items()}
    return (
        [_plain(item) for item in value] if isinstance(value, list | tuple) else value
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {"name": value}


def _read_nodes(tree: xr.DataTree, voice: Voice) -> list[Node]:
    nodes: list[Node] = []
    reference = tree.attrs.get("reference_step")
    for child in tree.subtree:
        if child is not tree and (child.data_vars or "failed" in child.attrs):
            taken = [node.id for node in nodes]
            data = voice.filled_node(child.to_dataset())
            path = plain_text(child.path.strip("/"))
            stated = partial(attribute, data.attrs, owner=f"node {path!r}")
            parsed = {key: stated(key, start) for key, start in _PARSED.items()}
            data.attrs.update(parsed)
            nodes.append(_read_node(path, data, taken, reference, voice))
    if not nodes:
        raise ArgumentError(
            "tree must hold at least one node with data; it holds none."
        )
    # A reopened store gives its nodes by alphabet: what a paper claims and the loss come first,
    # weight change last.
    titles = Counter(node.title for node in nodes)
    nodes = [_with_name(node) if titles[node.title] > 1 else node for node in nodes]
    return sorted(nodes, key=lambda node: _PLACES.get(node.role, 1))


def _with_name(node: Node) -> Node:
    """Return a node of a title that others have too with its own name in title and rows."""
    name = node.path.rpartition("/")[2]
    # That of its kind, without a label.
    if name.replace("-", " ") in node.title.lower():
        return node
    rows = [
        replace(
            row,
            label=row.label and f"{row.label} ({name})",
            quantity=f"{row.quantity} ({name})",
        )
        for row in node.rows
    ]
    return replace(node, title=f"{node.title} ({name})", rows=rows)


def _read_node(
    path: str,
    dataset: xr.Dataset,
    taken: Sequence[str],
    reference: int | None,
    voice: Voice,
) -> Node:
    section = dataset.attrs["section"]
    figures = dataset.attrs["figures"]
    # A node without a heading is called by its path: "concepts-ica" is "Concepts ica".
    words = path.rpartition("/")[2].replace("-", " ").replace("_", " ")
    title = section.get("title") or sentence_start(words)
    role = str(dataset.attrs.get("role", "development"))
    name = slug(f"section-{path}", taken)
    numbered = [_figure(number, data) for number, data in enumerate(figures, start=1)]
    return Node(
        id=name,
        path=path,
        title=title,
        section={note: section.get(note, "") for note in NOTES},
        figures=numbered,
        # Those on rows, which results of earlier versions hold, are made of claims.
        statements=dataset.attrs["statements"][
            int(dataset.attrs.get("sentences_on_rows", 0)) :
        ],
        role=role,
        dataset=dataset,
        rows=read_rows(
            dataset,
            title,
            name,
            role,
            bands_of(figure for figure, _ in numbered),
            reference,
            voice,
        )
        or read_run_rows(dataset, title, name, role, voice),
    )


def _figure(number: int, data: Mapping[str, Any]) -> tuple[Figure, str]:
    """Return a figure; one that cannot be read as a stand-in, with the reason."""
    data = {**data, "id": str(data.get("id") or number)}
    data["title"] = data.get("title") or data["id"]
    try:
        return Figure.from_dict(data), ""
    except ArgumentError as error:
        caption = str(data.get("caption", ""))
        return Figure(data["id"], data["title"], value="", caption=caption), plain_text(
            error
        )


def _all_steps(attrs: Mapping[Any, Any], nodes: Sequence[Node]) -> tuple[int, ...]:
    steps = {int(s) for s in attribute(attrs, "steps", [], "the root")}
    for node in nodes:
        steps.update(map(int, np.atleast_1d(node.dataset.coords.get("step", []))))
    if not steps:
        raise ArgumentError(
            "tree must hold training steps: a coordinate 'step' in some node."
        )
    return tuple(sorted(steps))


def _finding(stated: Any) -> Finding:
    data = _mapping(stated)
    return Finding(
        kind=data.get("kind", ""),
        certainty=data.get("certainty", ""),
        steps=tuple(int(s) for s in data.get("steps") or ()),
        message=data.get("message") or data.get("name", ""),
    )


def _boundaries(attrs: Mapping[Any, Any], nodes: Sequence[Node]) -> list[RegimeMark]:
    """Regime boundaries of the run: stated by the root or a node, or shown by a node of regimes."""
    items: list[Mapping[str, Any]] = []
    for source in [attrs, *(node.dataset.attrs for node in nodes)]:
        stated = attribute(source, "boundaries", [], "the root or a node")
        items += [x if isinstance(x, Mapping) else {"step": x} for x in stated]
    for node in nodes:
        if node.role == "regimes":
            items += _shown_boundaries(node)
    marks: dict[float, RegimeMark] = {}
    for item in items:
        ends = (item.get("step"), item.get("low"), item.get("high"))
        step, low, high = (
            float(e) if isinstance(e, int | float) else math.nan for e in ends
        )
        if math.isfinite(step):
            label = item.get("label") or RegimeMark.label
            marks.setdefault(step, RegimeMark(step, low, high, label))
    return [marks[step] for step in sorted(marks)]


def _shown_boundaries(node: Node) -> Iterator[Mapping[str, Any]]:
    """Give the boundaries that the curves of a node draw for all their lines."""
    for figure, _ in node.figures:
        for boundary in getattr(figure, "boundaries", ()):
            names = {"step": boundary.step, "low": boundary.low, "high": boundary.high}
            values = {
                end: node.dataset[n] for end, n in names.items() if n in node.dataset
            }
            numbers = {
                end: value.item() for end, value in values.items() if value.ndim == 0
            }
            yield {"label": boundary.label, **numbers}


def _layer_paths(nodes: Sequence[Node]) -> list[str]:
    """Return module paths in the order of the nodes, layers before weight blocks."""
    paths: list[str] = []
    for dim in LAYER_DIMENSIONS:
        for node in nodes:
            if dim in node.dataset.coords:
                paths += map(plain_text, np.atleast_1d(node.dataset[dim].values))
    paths += [row.layer for node in nodes for row in node.rows if row.layer]
    return list(dict.fromkeys(paths))


def _track(nodes: Sequence[Node]) -> Track | None:
    """Return the first variable over steps alone in a node of role ``track``, drawn ones first."""
    for node in [node for node in nodes if node.role == "track"]:
        data = node.dataset
        variables = [
            data[figure.value].sel(dict(figure.select))
            for figure, _ in node.figures
            if isinstance(figure, Curves) and figure.value in data
        ]
        rest = [
            v for v in data.data_vars.values() if np.issubdtype(v.dtype, np.floating)
        ]
        for variable in (*variables, *rest):
            number = np.issubdtype(variable.dtype, np.number)
            if (
                number
                and variable.dims == ("step",)
                and np.isfinite(variable.values).any()
            ):
                return Track(
                    title=plain_text(variable.attrs.get("long_name", variable.name)),
                    units=plain_text(variable.attrs.get("units", "")),
                    steps=data["step"].values.astype(int),
                    values=variable.values.astype(float),
                )
    return None
