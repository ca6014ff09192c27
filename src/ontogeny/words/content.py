"""What a merged result says, read from its attributes once and checked as it is read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
import xarray as xr

from ..claims import Claim, Kind
from ..errors import ArgumentError
from ..figures import Curves
from ..problems.table import Problems, problems_of
from ..trees import MergedResult, as_tree
from .abilities import has_abilities
from .catalogue.page import HELD_OUT, LOSS
from .catalogue.sentences import DAMAGES
from .formats import mid_sentence, plain_text
from .labels import LayerGroups, layer_groups, short_names, slug
from .levels import Levels
from .nodes import Node, as_mapping, attribute, layer_paths, read_nodes
from .page_claims import claims_of_result
from .rows import Row, layers_of_rows, rows_called
from .subjects import Names
from .voice import OF_STEPS, Voice


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
    left_out
        Why observables that one may expect are not in it, by kind.
    spoken
        The same for sentences: aligned by tokens, the axis counts these, but claims of runs steps.
    """

    title: str
    created: str
    version: str
    steps: tuple[int, ...]
    model: Mapping[str, Any]
    inputs: Sequence[Mapping[str, Any]]
    settings: Mapping[str, Any]
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
    seeds: bool = False
    notes: Sequence[str] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)
    levels: Levels = field(default_factory=Levels)
    reference_step: int | None = None
    claims: Sequence[Claim] = ()
    spoken: Voice = OF_STEPS

    @cached_property
    def names(self) -> Names:
        """How quantities and layers are called in sentences."""
        titles: dict[tuple[str, str], str] = {}
        nulls: dict[tuple[str, str, str], str] = {}
        several: set[tuple[str, str]] = set()
        for node in self.nodes:
            for name, variable in node.dataset.data_vars.items():
                title = plain_text(variable.attrs.get("long_name") or node.title)
                titles[node.path, str(name)] = mid_sentence(title)
                if variable.attrs.get("several"):
                    several.add((node.path, str(name)))
                stated = attribute(variable.attrs, "nulls", {}, f"variable {name!r}")
                nulls |= {(node.path, str(name), n): text for n, text in stated.items()}
        for key, names in self._quantities().items():
            if len(names) == 1:
                titles[key] = names.pop()
        if self.held_out and self.track_node is not None:
            titles[self.track_node.path, LOSS] = HELD_OUT
        of_rows = layers_of_rows(self._rows_with_nodes(), self.claims)
        blocks = as_mapping(self.model).get("blocks") or 0
        layers = {row.layer: row.short_layer for row in self.rows if row.layer}
        paths = [path for path in layer_paths(self.nodes) if path not in layers]
        layers |= dict(zip(paths, short_names(paths), strict=True))
        return Names(
            titles=titles,
            layers=layers,
            totals={key: len(layers) for key, layers in of_rows.items()},
            called={key: rows_called(of, blocks) for key, of in of_rows.items()},
            runs=max(len(self.runs), 1),
            nulls=nulls,
            first_step=self.steps[0],
            several=several,
        )

    def _quantities(self) -> dict[tuple[str, str], set[str]]:
        """Return what rows of each variable are called, a distance with to what it is one."""
        found: dict[tuple[str, str], set[str]] = {}
        for path, row in self._rows_with_nodes():
            name = mid_sentence(row.quantity)
            if not row.own_value and row.measure not in ("", row.units):
                name = f"{name} ({row.measure})"
            found.setdefault((path, row.variable), set()).add(name)
        return found

    def _rows_with_nodes(self) -> Iterator[tuple[str, Row]]:
        for node in self.nodes:
            for row in node.rows:
                yield node.path, row

    @property
    def held_out(self) -> bool:
        """Whether training texts were measured beside the first texts, which are held out then."""
        known = (Kind.MEMORISED, Kind.GENERALISES)
        return not self.runs and any(claim.kind in known for claim in self.claims)

    @property
    def track_node(self) -> Node | None:
        """The node of the loss."""
        return next((node for node in self.nodes if node.role == "track"), None)

    def is_loss(self, claim: Claim) -> bool:
        """Return whether a claim is on the loss."""
        node = self.track_node
        return node is not None and claim.subject.node == node.path

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

    def arguments_of(self, node: str) -> Mapping[str, Any]:
        """Return the arguments of the observable that gave a node, as far as they are known."""
        return as_mapping(_observables(self.settings).get(node) or {})

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of every observable that was asked for or gave a node, as far as it is known."""
        paths = [node.path for node in self.nodes]
        asked = [*_observables(self.settings), *paths]
        return {p: str(self.arguments_of(p).get("kind", "")) for p in asked}

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
        return list(chain.from_iterable(node.rows for node in self.nodes))

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
    inputs = [as_mapping(texts) for texts in stated("inputs", [])]
    attrs = tree.attrs
    voice = Voice.of(plain_text(attrs.get("clock") or ""), inputs)
    settings = as_mapping(stated("settings", {}))
    nodes = read_nodes(tree, voice, _observables(settings))
    runs = [plain_text(as_mapping(run).get("name", "")) for run in stated("runs", [])]
    return Content(
        title=plain_text(attrs.get("title") or "Untitled study"),
        created=plain_text(attrs.get("created", "")),
        version=plain_text(attrs.get("version", "")),
        steps=_all_steps(attrs, nodes),
        model=as_mapping(stated("model", {})),
        inputs=inputs,
        settings=settings,
        provenance=stated("provenance", {}),
        audited="findings" in attrs,
        findings=list(map(_finding, voice.filled(stated("findings", [])))),
        controls=[
            plain_text(as_mapping(run).get("name", ""))
            for run in stated("controls", [])
        ],
        boundaries=_boundaries(attrs, nodes),
        nodes=nodes,
        groups=layer_groups(layer_paths(nodes)),
        track=_track(nodes),
        voice=voice,
        chosen=as_mapping(stated("trajectory", {})).get("chosen", ()),
        based=as_mapping(stated("trajectory", {})).get("base") is True,
        runs=runs,
        runs_controlled=_controlled(tree, runs),
        seeds=bool(attrs.get("seeds", False)),
        notes=list(map(plain_text, stated("notes", []))),
        left_out={
            plain_text(kind): plain_text(why)
            for kind, why in as_mapping(stated("left_out", {})).items()
        },
        problems=problems_of(tree),
        levels=Levels.of(tree),
        reference_step=attrs.get("reference_step"),
        claims=claims_of_result(tree),
        spoken=Voice.of("", inputs) if attrs.get("align") == "tokens" else voice,
    )


def _observables(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    return as_mapping(settings.get("observables") or {})


def _controlled(tree: xr.DataTree, runs: Sequence[str]) -> list[bool]:
    """Return whether each run of a comparison was studied with control runs."""
    if (
        not runs
        or "runs" not in tree.children
        or "controls" not in tree["runs"].data_vars
    ):
        return [False] * len(runs)
    return [bool(count) for count in tree["runs"].to_dataset()["controls"].values]


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
    data = as_mapping(stated)
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
