"""Concepts as the page tells of them, and which of them have a life line on the first screen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr

from .concept_arrays import ConceptArrays
from .content import Node
from .formats import plural
from .labels import truncate

FEW, MORE = 10, 30
"""Life lines that the first screen shows, at first and on demand; static pictures show the few."""

SHEET = 24
"""Concepts of a contact sheet."""

SHADES = "Darker: closer to its peak; hatched: cannot be read from that checkpoint alone."
MARKS = "Dot: birth; bar: the checkpoints between which it lies."


@dataclass(frozen=True)
class Concept:
    """One concept: where it stands in the node's arrays, and its life in training steps.

    ``name`` is empty where it got none; ``given`` is the name that a person gave it, which goes
    before. Steps are NaN where there is no such step. ``kind`` is empty where lives are not known.
    """

    place: tuple[int, int]
    layer: str
    short_layer: str
    name: str
    given: str
    kind: str
    born: float
    after: float
    before: float
    settled: float
    gone: float
    readable_from: float
    peak: float
    sharpness: float

    @property
    def number(self) -> int:
        """Its number in the dictionary of its layer."""
        return self.place[1]

    @property
    def title(self) -> str:
        """Its name, else its number."""
        return self.given or self.name or f"C{self.number}"

    @property
    def depth(self) -> str:
        """The layer as short as it can be: its number where it has one."""
        return self.short_layer.removeprefix("layer ")


@dataclass(frozen=True)
class Concepts:
    """All concepts of a node, the sharpest first, and what names were measured against.

    ``named`` is None where the result holds no names, ``unnamed`` says why no concept of any layer
    could get one, and ``named_controls`` holds for each control run how many got one, of how many.
    ``born_controls`` holds how many concepts were born in each, and ``control_steps`` at how many
    steps they were read at most.
    """

    node: Node
    arrays: ConceptArrays
    every: tuple[Concept, ...]
    latents: int
    named: int | None
    unnamed: str
    named_controls: tuple[tuple[int, int | None], ...]
    born_controls: tuple[int, ...]
    control_steps: int
    readable: float

    @property
    def data(self) -> xr.Dataset:
        """The node's dataset."""
        return self.node.dataset

    @cached_property
    def with_name(self) -> tuple[Concept, ...]:
        """Concepts with a name."""
        return tuple(each for each in self.every if each.name)

    @cached_property
    def born(self) -> tuple[Concept, ...]:
        """Concepts whose birth is known."""
        return tuple(each for each in self.every if math.isfinite(each.born))

    @cached_property
    def candidates(self) -> tuple[Concept, ...]:
        """Concepts that may have a life line: those with a name, or all where none has one."""
        return tuple(each for each in self.every if each.given or each.name) or self.every

    @cached_property
    def lines(self) -> tuple[Concept, ...]:
        """The concepts whose life lines are shown at first, by birth."""
        return self.choice(FEW)

    def choice(self, count: int) -> tuple[Concept, ...]:
        """Return at most `count` concepts, births spread over the run, by birth.

        Births come first. Where there are more of them than places, they are cut by their order
        into as many parts, and the sharpest of each part is chosen. Other places are for the
        sharpest of the rest.
        """
        born = sorted((c for c in self.candidates if math.isfinite(c.born)), key=lambda c: c.born)
        rest = [c for c in self.candidates if not math.isfinite(c.born)]
        rank = {each.place: i for i, each in enumerate(self.candidates)}
        parts = [part for part in np.array_split(np.arange(len(born)), count) if len(part)]
        first = [min((born[i] for i in part), key=lambda c: rank[c.place]) for part in parts]
        return tuple(sorted([*first, *rest[: count - len(first)]], key=moment))


def moment(concept: Concept) -> float:
    """Concepts stand by birth, those that are there from the start first."""
    if concept.kind == "from the start":
        return -math.inf
    return concept.born if math.isfinite(concept.born) else math.inf


def choice_words(concepts: Concepts, count: int) -> str:
    """Say which concepts have a life line, and of how many."""
    shown, of = len(concepts.choice(count)), len(concepts.candidates)
    if shown == of:
        return best_words(concepts, count)
    best = _best(concepts)
    born = sum(math.isfinite(each.born) for each in concepts.candidates)
    how = f"the {born:,} born during the run, and the {best} of the others"
    if not born:
        how = f"the {best}; none was seen to be born during the run"
    elif born > shown:
        how = f"{shown} of their {born:,} births, the {best} of each stretch of the run"
    elif born == shown:
        how = "those that were born during the run"
    return f"{shown} of {_kind(concepts)}: {how}."


def best_words(concepts: Concepts, count: int) -> str:
    """Say which concepts are shown where they are the best `count`, and of how many."""
    of = len(concepts.candidates)
    if of <= count:
        return f"{'All' if of > 1 else 'The'} {_kind(concepts)}."
    return f"{count} of {_kind(concepts)}: the {_best(concepts)}."


def _kind(concepts: Concepts) -> str:
    """Say how many concepts there are to choose from, and of how many in all."""
    of, every = len(concepts.candidates), len(concepts.every)
    named = any(each.given or each.name for each in concepts.candidates)
    noun = "named concept" if named else "concept"
    kind = plural(of, noun) if of > 1 else f"only {noun}"
    beside = "" if of == every else f", of {every:,} in all"
    return f"{kind}{beside}{'' if named else '; none has a name'}"


def _best(concepts: Concepts) -> str:
    return "sharpest" if math.isfinite(concepts.candidates[0].sharpness) else "strongest"


def line_names(concepts: Sequence[Concept]) -> list[str]:
    """Return name and layer of concepts, with their number where several have the same of both."""
    names = [f"{truncate(each.title, 26)} · {each.depth}" for each in concepts]
    return [
        f"{name} · C{each.number}" if names.count(name) > 1 else name
        for name, each in zip(names, concepts, strict=True)
    ]
<<<<<<< HEAD


def asked_for(content: Content) -> bool:
    """Return whether the study has joint concepts, computed or not."""
    return KIND in _kinds(content).values() or any(n.path == KIND for n in content.nodes)


def _kinds(content: Content) -> dict[str, str]:
    settings = content.settings if isinstance(content.settings, Mapping) else {}
    observables = settings.get("observables")
    known = observables if isinstance(observables, Mapping) else {}
    return {str(k): str(v.get("kind", "")) for k, v in known.items() if isinstance(v, Mapping)}


def failure(content: Content) -> str:
    """Return why joint concepts are missing from a result, as far as it says so."""
    for node in content.nodes:
        ours = KIND in (node.path, _kinds(content).get(node.path))
        if ours and "status" in node.dataset:
            told = sorted({str(each) for each in node.dataset["status"].values.ravel()})
            return next((plain_text(text) for text in told if text != "done"), "")
    return ""


def read_concepts(content: Content) -> Concepts | None:
    """Return the concepts of the first node that holds lives, one with names before others."""
    nodes = [node for node in content.nodes if _holds_lives(node.dataset)]
    node = min(nodes, key=lambda n: "name" not in n.dataset, default=None)
    if node is None:
        return None
    data = node.dataset
    settings = content.settings if isinstance(content.settings, Mapping) else {}
    own = settings.get("observables", {}).get(node.path, {})
    readable = float(own.get("readable", _READABLE)) - _SECOND
    kinds = data["concept_kind"].transpose("layer", "concept").values
    layers = [plain_text(label) for label in data["layer"].values]
    shorts = short_names(layers)
    found = [
        _concept(node, content, (i, j), layers[i], shorts[i], readable)
        for i, j in np.argwhere((kinds != NO_CONCEPT) & (kinds != "")).tolist()
    ]
    found.sort(key=lambda c: (not (c.given or c.name), -_or(c.sharpness, 0.0), -_or(c.peak, 0.0)))
    return Concepts(
        node=node,
        every=tuple(found),
        latents=int(kinds.size),
        named=sum(bool(each.name) for each in found) if "name" in data else None,
        unnamed=_unnamed(data),
        named_controls=_named_controls(data),
        born_controls=tuple(int(n) for n in _over_layers(data, "n_born_control") if n == n),
        control_steps=_control_steps(data),
        readable=readable,
    )


def _holds_lives(data: xr.Dataset) -> bool:
    dims = {"concept_kind": {"layer", "concept"}, "strength": {"step", "layer", "concept"}}
    dims["readability"] = dims["strength"]
    return all(name in data and set(data[name].dims) == wanted for name, wanted in dims.items())


def _or(value: float, other: float) -> float:
    return value if math.isfinite(value) else other


def _unnamed(data: xr.Dataset) -> str:
    """Return why no layer's concepts could get a name; empty where those of some layer could."""
    if "unnamed_because" not in data:
        return ""
    told = [plain_text(text) for text in data["unnamed_because"].values.ravel()]
    return told[0] if told and all(told) else ""


def _named_controls(data: xr.Dataset) -> tuple[tuple[int, int | None], ...]:
    """Return how many concepts of each control run got a name, over all layers, of how many."""
    named, of_ = (_over_layers(data, f"{name}_control") for name in ("named", "n_concepts"))
    totals = of_ if len(of_) == len(named) else [math.nan] * len(named)
    return tuple(
        (int(count), int(total) if math.isfinite(total) else None)
        for count, total in zip(named, totals, strict=True)
        if math.isfinite(count)
    )


def _control_steps(data: xr.Dataset) -> int:
    """Return at how many steps the control runs were read, at most."""
    if "explained_control" not in data or "run" not in data["explained_control"].dims:
        return 0
    known = data["explained_control"].notnull()
    return int(
        known.any([dim for dim in known.dims if dim not in ("step", "run")]).sum("step").max()
    )


def _over_layers(data: xr.Dataset, name: str) -> list[float]:
    """Return the sum over layers for each run, NaN where a layer is missing."""
    if name not in data or set(data[name].dims) != {"layer", "run"}:
        return []
    totals: list[float] = data[name].astype(float).sum("layer", skipna=False).values.tolist()
    return totals


def of(data: xr.Dataset, name: str, place: tuple[int, int]) -> Any:
    """Return what a variable holds of one concept; at the last step where it is over steps."""
    array = data[name].isel(layer=place[0])
    array = array.isel(concept=place[1]) if "concept" in array.dims else array
    return (array.isel(step=-1) if "step" in array.dims else array).values


def _number(data: xr.Dataset, name: str, place: tuple[int, int]) -> float:
    return float(of(data, name, place)) if name in data else math.nan


def _concept(
    node: Node, content: Content, place: tuple[int, int], layer: str, short: str, readable: float
) -> Concept:
    data = node.dataset
    course = data["readability"].isel(layer=place[0], concept=place[1]).values
    steps = data["step"].values[np.nan_to_num(course, nan=-1.0) >= readable]
    strength = data["strength"].isel(layer=place[0], concept=place[1]).values.astype(float)
    name = plain_text(of(data, "name", place)) if "name" in data else ""
    known = strength[np.isfinite(strength)]
    return Concept(
        place=place,
        address=f"concept={_safe(node.path)}/{_safe(layer)}/{place[1]}",
        layer=layer,
        short_layer=short,
        group=content.groups.of(layer),
        name="" if name == "nan" else name,
        given=plain_text(of(data, "name_given", place)) if "name_given" in data else "",
        kind=plain_text(of(data, "concept_kind", place)),
        born=_number(data, "concept_born", place),
        after=_number(data, "concept_born_after", place),
        before=_number(data, "concept_born_before", place),
        settled=_number(data, "concept_settled", place),
        gone=_number(data, "concept_gone", place),
        readable_from=float(steps[0]) if len(steps) else math.nan,
        peak=float(known.max()) if len(known) else math.nan,
        sharpness=_number(data, "concentration", place),
    )


def _safe(text: str) -> str:
    """Return a part of an address: what the address itself uses is replaced."""
    return re.sub(r"[^\w.\-]", "-", text)
=======
>>>>>>> atlas
