"""Concepts beyond the token that several runs found: the same where their codes are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ...control_kinds import judging
from ...figures import Section
from ..layers import match_layers, with_layers
from ..sources import Run
from .fitting import START, LayerConcepts
from .node import node_of

FROM_START = "from the start"
# Correlation of codes from which on they are the same in two runs. Seeds have other mixtures: of 70
# components of a small LLaMA three seeds share 7 at .5 and 1 at .7, control runs 1 and 0.
SAME = 0.5
DRAWS = 20  # of signs, for what is shared by chance

SECTION = Section(
    "Concepts that runs share",
    "Components that each run has beyond the {word}. Two runs share one if its codes at the same "
    f"{{word}}s correlate by {SAME:g} or more, and no other of either run is nearer.",
    symbol=f"|corr(uₐ, u_b)| ≥ {SAME:g}",
    null="Control runs of all runs, matched in the same way: the most that one of each share. Codes "
    "with other signs in each run: what is then shared is chance. The order of births is judged by "
    "births dealt anew within each run.",
    care="What a run lacks it may have in other mixtures. Codes are compared by 256 sums of each, "
    "which give a correlation of 0.5 with a standard error of 0.05.",
    source="Universal neurons over seeds (Gurnee et al. 2024), here of components",
)


def found_by_runs(runs: Sequence[Run], name: str) -> xr.Dataset | None:
    """Return the node of what runs share of the concepts in their node `name`.

    None where their layers cannot be matched.
    """
    nodes = [run.nodes[name] for run in runs]
    match = match_layers([list(map(str, node["layer"].values)) for node in nodes])
    if match is None:
        return None
    nodes = [with_layers(node, match, i) for i, node in enumerate(nodes)]
    names = [run.name for run in runs]
    of_layers = {}
    named = []
    for layer in match.labels:
        parts = [_Found.of(node.sel(layer=layer)) for node in nodes]
        one = _shared(dict(zip(names, parts, strict=True)))
        controls = [_shared(dict(enumerate(some))) for some in _sets_of_controls(parts)]
        by_chance = _by_chance([part.sketch for part in parts])
        of_layers[layer] = (
            replace(one.concepts, chance=by_chance),
            [each.concepts for each in controls],
        )
        named.append(
            (one.named, max((each.named for each in controls), default=np.nan))
        )
    counts = np.array(named, dtype=np.float64).T
    more = {
        "named_in_all": ("layer", counts[0]),
        "named_in_all_control": ("layer", counts[1]),
    }
    return node_of(of_layers, names, match.words, SECTION, more)


@dataclass(frozen=True, eq=False)
class _Found:
    """The components of one layer of a run, or of a control run of it.

    Attributes
    ----------
    sketch
        (c, s) of the codes.
    birth, low, high
        (c,) steps; -1 of a component that is there from the start, NaN of others without a birth.
    phi
        (c,) how well the shown name tells its strong places; 0 without a name.
    label
        (c,) the name, or the most typical words.
    steps, life
        (T,) and (T, c) strength as a share of the peak.
    controls
        The same of each control run that judges.
    """

    sketch: np.ndarray
    birth: np.ndarray
    low: np.ndarray
    high: np.ndarray
    phi: np.ndarray
    label: list[str]
    steps: np.ndarray
    life: np.ndarray
    controls: tuple[_Found, ...] = ()

    @classmethod
    def of(cls, node: xr.Dataset) -> _Found:
        """Return what a node of one layer holds of the run and its controls."""
        one = node.isel(concept=np.isfinite(node.code_sketch.values).all(axis=-1))
        birth = _of_each(one, "concept_born")
        if "concept_kind" in one:
            birth = np.where(one.concept_kind.values == FROM_START, START, birth)
        steps, life = _life(one)
        return cls(
            one.code_sketch.values,
            birth,
            _of_each(one, "concept_born_after"),
            _of_each(one, "concept_born_before"),
            _of_each(one, "named_phi"),
            [_label(one.isel(concept=i)) for i in range(one.sizes["concept"])],
            steps,
            life,
            tuple(_controls(node)),
        )


def _controls(node: xr.Dataset) -> Iterator[_Found]:
    """Give the components of each control run that judges."""
    if "code_sketch_control" not in node:
        return
    judged = judging(node)
    for run in range(judged.sizes["run"]):
        one = judged.isel(run=run)
        sketch = one.code_sketch_control.values
        one = one.isel(control_concept=np.isfinite(sketch).all(axis=-1))
        count = one.sizes["control_concept"]
        none = np.full(count, np.nan)
        yield _Found(
            one.code_sketch_control.values,
            _of_each(one, "concept_born_control", "control_concept"),
            none,
            none,
            _of_each(one, "named_phi_control", "control_concept"),
            [""] * count,
            np.empty(0),
            np.empty((0, count)),
        )


def _life(one: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return steps (T,) and shares of the peaks (T, c); no step of a model without a history."""
    if "life" not in one:
        return np.empty(0), np.empty((0, one.sizes["concept"]))
    life = one.life.dropna("step", how="all").transpose("step", "concept")
    return life.step.values, life.values


def _of_each(one: xr.Dataset, name: str, dim: str = "concept") -> np.ndarray:
    """Return a number of each component, NaN where a node has none."""
    if name not in one:
        return np.full(one.sizes[dim], np.nan)
    return np.asarray(one[name].values, dtype=np.float64)


def _label(one: xr.Dataset) -> str:
    """Return the name of a component, or the words that are most typical of it."""
    if "name" not in one:
        return ""
    return str(one["name"].item()) or str(one["words"].item())


def _sets_of_controls(parts: Sequence[_Found]) -> Iterator[tuple[_Found, ...]]:
    """Give one control run of each run, the first of all, then the second."""
    yield from zip(*(part.controls for part in parts), strict=False)


@dataclass(frozen=True, eq=False)
class _Shared:
    """The components of one layer over runs, and how many of all runs have a name in one."""

    concepts: LayerConcepts
    named: float


def _shared(parts: Mapping[Any, _Found]) -> _Shared:
    """Return which components of several runs are the same."""
    of_runs = list(parts.values())
    members = same_concepts([part.sketch for part in of_runs])
    present = members >= 0

    def of_members(name: str) -> np.ndarray:
        rows = [getattr(part, name) for part in of_runs]
        return np.array([_taken(r, m) for r, m in zip(rows, members, strict=True)])

    phi = np.nan_to_num(of_members("phi"))
    life = {
        run: (part.steps, _taken(part.life.T, member).T)
        for (run, part), member in zip(parts.items(), members, strict=True)
        if len(part.steps)
    }
    concepts = LayerConcepts(
        present,
        of_members("birth"),
        of_members("low"),
        of_members("high"),
        life,
        _labels(of_runs, members, phi),
    )
    return _Shared(concepts, float((concepts.everywhere & (phi > 0).any(axis=0)).sum()))


def _taken(values: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Return the rows of the members, NaN where there is none."""
    taken = np.full((len(members), *values.shape[1:]), np.nan)
    taken[members >= 0] = values[members[members >= 0]]
    return taken


def _labels(parts: Sequence[_Found], members: np.ndarray, phi: np.ndarray) -> list[str]:
    """Return what each concept is called where its name is best."""
    best = np.where(members >= 0, phi, -1.0).argmax(axis=0)
    return [parts[run].label[members[run, i]] for i, run in enumerate(best)]


def same_concepts(sketches: Sequence[np.ndarray]) -> np.ndarray:
    """Return (runs, c) the number of each concept in every run, -1 where a run lacks it.

    Two components of two runs are the same if each is the other's nearest and the cosine of their
    sketches (c, s) is at least `SAME`; what is the same as the same is the same.

    Examples
    --------
    >>> one, other = np.eye(2, 256), np.eye(3, 256)[[2, 0, 1]]
    >>> same_concepts([one, -other]).tolist()
    [[0, 1, -1], [1, 2, 0]]
    """
    sizes = [len(sketch) for sketch in sketches]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    pairs = []
    for a, b in itertools.combinations(range(len(sketches)), 2):
        for i, j in _mutual(sketches[a], sketches[b]):
            pairs.append((offsets[a] + i, offsets[b] + j))
    total = int(offsets[-1])
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(edges.shape[1]), tuple(edges)), shape=(total, total))
    count, of_each = connected_components(graph, directed=False)
    members = np.full((len(sketches), count), -1)
    # The first of a run that a chain through other runs joins stands for it.
    for run in range(len(sketches) - 1, -1, -1):
        for i in range(sizes[run] - 1, -1, -1):
            members[run, of_each[offsets[run] + i]] = i
    return members


def _mutual(one: np.ndarray, other: np.ndarray) -> Iterator[tuple[int, int]]:
    """Give the pairs of rows that are each other's nearest and near enough."""
    if not len(one) or not len(other):
        return
    cosine = np.abs(one.astype(np.float64) @ other.astype(np.float64).T)
    nearest = cosine.argmax(axis=1)
    back = cosine.argmax(axis=0)
    for i, j in enumerate(nearest):
        if back[j] == i and cosine[i, j] >= SAME:
            yield i, int(j)


def _by_chance(sketches: Sequence[np.ndarray]) -> float:
    """Return how many concepts all runs share where the sums of each have other signs."""
    rng = np.random.default_rng(0)
    counts = []
    for _ in range(DRAWS):
        signed = [s * rng.choice([-1, 1], size=s.shape[1:]) for s in sketches]
        counts.append((same_concepts(signed) >= 0).all(axis=0).sum())
    return float(np.mean(counts))
