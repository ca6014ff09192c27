"""How the directions that training takes are turned: between layers, and between runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache

import numpy as np
import xarray as xr

from ontogeny import capture
from ontogeny.errors import ArgumentError, check_whole
from ontogeny.figures import Figure, Heatmap, Section, attach
from ontogeny.needs import Need, Weights
from ontogeny.observables import BlockReading, Observable, PresetEntry
from ontogeny.trajectory import Trajectory
from ontogeny.trees import Nodes
from ontogeny.words.names import named

from ..dynamics.false_discovery import false_discovery
from ..geometry.snapshots import SnapshotGram
from ..geometry.subspaces import (
    principal_angles,
    principal_basis,
    principal_coefficients,
    random_subspace_angles,
    subspace_overlap,
)

_LARGEST = 2**25  # numbers of one basis


@dataclass(frozen=True)
class Orientation(Observable):
    """Overlap of the principal directions of every two weight matrices of the same size.

    The overlap is the mean squared cosine of the principal angles between the top `k` principal
    components of the two paths, as vectors of all entries; beside it what random subspaces give.
    `orientation_across_runs` compares the same matrix between seeds.

    Parameters
    ----------
    blocks
        Glob or globs over parameter names, or short names; matrices only.
    k
        Principal components of each path.
    n_draws
        Pairs of random subspaces, for p-values.
    random_state
        Their seed.

    Examples
    --------
    >>> Orientation("**.q_proj.weight").over_blocks
    True
    """

    blocks: str | tuple[str, ...] = ("q", "k", "v", "o")
    k: int = 3
    n_draws: int = 2000
    random_state: int = 0

    kind = "orientation"
    minima = {"k": 1, "n_draws": 1}
    question = "Do matrices of the same size share their principal directions?"
    requires = "weights alone"
    price = "one decomposition for each matrix and step"
    fewest_steps = 2
    obstacles = ("no_matrices",)
    presets = (PresetEntry(("weights", "everything"), {"blocks": "$blocks"}, 180),)
    role = "motion"
    section = Section(
        title="Orientation of weight trajectories",
        definition="Whether the directions that two weight matrices take in training lie in the "
        "same part of their space.",
        symbol="‖QᵀR‖²_F / min(r, s) = mean cos²θᵢ",
        null="Uniformly random subspaces of the same dimensions: s/m on average; p-values from "
        "draws of their angles.",
        care="Entries are compared by their position. Between seeds the position of a hidden unit "
        "means nothing, so chance is to be expected whether or not the solutions are the same up "
        "to a turn. Layers of one run share the coordinates of the residual stream, so some "
        "overlap is no surprise.",
        source="Xu 2026, sec. 4.1",
    )
    variables = {
        "size": ("entries of the matrix", "entries"),
        "directions": ("directions kept", "directions"),
        "overlap": ("mean squared cosine of the principal angles", "1"),
        "ratio": ("overlap over that of random subspaces", "1"),
        "chance": ("overlap of random subspaces on average", "1"),
        "p_value": ("p-value against random subspaces", "1"),
        "p_corrected": ("p-value against random subspaces, corrected", "1"),
    }

    def needs(self) -> Sequence[Need]:
        """Return the weight blocks."""
        return [Weights(self.blocks)]

    def observe(self, reading: BlockReading, state: xr.Dataset | None) -> xr.Dataset:
        """Return the basis of one block's path."""
        gram = SnapshotGram(len(reading.steps))
        for chunk in reading.chunks():
            gram.add(chunk)
        if gram.dimension * self.k > _LARGEST:
            raise ArgumentError(
                f"{reading.name} has {gram.dimension} entries; {self.k} directions of at most "
                f"{_LARGEST // self.k} can be kept. Choose smaller blocks."
            )
        weights = principal_coefficients(gram.gram, self.k)
        parts = [(chunk - chunk[:1]).T @ weights for chunk in reading.chunks()]
        basis = np.linalg.qr(np.concatenate(parts))[0].T.astype(np.float32)
        return xr.Dataset(
            {
                "basis": (("component", "coordinate"), basis),
                "size": gram.dimension,
                "directions": len(basis),
            },
            coords={
                "component": np.arange(len(basis)),
                "coordinate": np.arange(gram.dimension),
            },
        )

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Compare every two blocks of the same size; the bases themselves stay in the cells."""
        sizes = np.nan_to_num(data["size"].values).astype(int)
        directions = np.nan_to_num(data.directions.values).astype(int)
        tables = data.basis.transpose("block", "component", "coordinate").values
        bases = [t[:d, :s].T for t, d, s in zip(tables, directions, sizes, strict=True)]
        compared = compared_bases(bases, overlap_null(self.n_draws, self.random_state))
        data = data.drop_vars(["basis", "component", "coordinate"])
        data = data.assign(
            {name: (("block", "block_"), table) for name, table in compared.items()}
        )
        return data.assign_coords(block_=data.block.values)

    def figures(self, data: xr.Dataset, nodes: Nodes) -> Sequence[Figure]:
        """Return the overlaps as a map."""
        return [overlap_map("block", "block_")]

    def words(self, data: xr.Dataset, nodes: Nodes) -> Sequence[str]:
        """Return how many pairs overlap more than random subspaces do."""
        return overlap_statements(data, "pairs of matrices of the same size")


Null = Callable[[int, int, int], np.ndarray]


def overlap_null(n_draws: int, random_state: int) -> Null:
    """Return a function that draws overlaps of random subspaces, once for each three sizes."""

    @cache
    def drawn(r: int, s: int, dimension: int) -> np.ndarray:
        angles = random_subspace_angles(r, s, dimension, n_draws, random_state)
        return np.mean(np.cos(angles) ** 2, axis=1)

    return drawn


def compared_bases(bases: Sequence[np.ndarray], null: Null) -> dict[str, np.ndarray]:
    """Return overlap, chance, ratio and p-values of every two bases (entries, directions).

    NaN on the diagonal, and for bases of other sizes or too many directions.
    """
    names = ("overlap", "chance", "p_value")
    tables = {name: np.full((len(bases), len(bases)), np.nan) for name in names}
    for i, j in itertools.combinations(range(len(bases)), 2):
        (entries, r) = bases[i].shape
        (others, s) = bases[j].shape
        r, s = sorted((r, s))
        if not r or entries != others or entries < r + s:
            continue
        overlap = subspace_overlap(bases[i], bases[j])
        chance = null(r, s, entries)
        p_value = (1 + np.sum(chance >= overlap)) / (1 + len(chance))
        for name, value in zip(names, (overlap, s / entries, p_value), strict=True):
            tables[name][i, j] = tables[name][j, i] = value
    tables["ratio"] = tables["overlap"] / tables["chance"]
    tables["p_corrected"] = corrected_pairs(tables["p_value"])
    return tables


def corrected_pairs(p_values: np.ndarray) -> np.ndarray:
    """Return Benjamini and Hochberg's p-values; the last two dimensions hold every pair twice."""
    corrected = false_discovery(np.where(_pairs(p_values), p_values, np.nan))
    return np.fmax(corrected, np.swapaxes(corrected, -1, -2))


def _pairs(p_values: np.ndarray) -> np.ndarray:
    """Return where each pair that was compared stands, once."""
    return np.isfinite(p_values) & np.triu(np.ones(p_values.shape[-2:], dtype=bool), 1)


def overlap_statements(data: xr.Dataset, what: str) -> list[str]:
    """Return in how many of the pairs that could be compared the directions overlap."""
    p_values = data.p_corrected.values
    mask = _pairs(p_values)
    if not mask.any():
        return []
    count = int((p_values[mask] < 0.05).sum())
    ratio = data.ratio.values[mask]
    return [
        (
            f"In {count} of {int(mask.sum())} {what} the principal directions overlap more than "
            "random subspaces do (false discovery rate 5 %). Noise that prefers the same "
            "coordinates is enough for that."
        ),
        f"Their median overlap is {np.median(ratio):.2f} of what chance gives on average.",
    ]


def overlap_map(y: str, x: str, facet: str | None = None) -> Heatmap:
    """Return the overlaps of all pairs as cells."""
    return Heatmap(
        "overlap",
        "Overlap of principal directions, relative to chance",
        value="ratio",
        x=x,
        y=y,
        facet=facet,
        caption="1: as random subspaces of the same dimensions overlap on average.",
    )


def orientation_across_runs(
    runs: Mapping[str, Trajectory],
    blocks: str | Sequence[str] = ("q", "k", "v", "o"),
    k: int = 3,
    n_draws: int = 2000,
    random_state: int = 0,
) -> xr.Dataset:
    """Compare the principal directions of the same weight matrix between runs (seeds).

    Parameters
    ----------
    runs
        Trajectories by name, at least two, of models of the same shapes.
    blocks, k, n_draws, random_state
        As in `Orientation`.

    Returns
    -------
    xarray.Dataset
        ``overlap``, ``chance`` (its expectation s/m for random subspaces), ``ratio``, ``p_value``
        with dims ``(block, run, run_)``, NaN on the diagonal; ``p_corrected`` (false discovery rate
        over all pairs); ``angle(block, run, run_, component)``, the principal angles in radians.
        With a figure and sentences, as in a study's result.

    Raises
    ------
    ArgumentError
        If there are fewer than two runs, one of them has a single step, or the shapes of a block
        differ.
    LayerMatchError
        If a pattern matches no weight matrix.

    Examples
    --------
    >>> from torch import nn
    >>> def run():
    ...     return Trajectory.from_models({step: nn.Linear(8, 8) for step in (0, 1, 2)})
    >>> overlaps = orientation_across_runs(
    ...     {"seed 0": run(), "seed 1": run()}, "weight", k=1
    ... )
    >>> dict(overlaps.overlap.sizes)
    {'block': 1, 'run': 2, 'run_': 2}
    """
    if len(runs) < 2:
        raise ArgumentError(
            f"runs must hold at least two trajectories; got {len(runs)}."
        )
    k = check_whole("k", k)
    n_draws = check_whole("n_draws", n_draws)
    short = [name for name, run in runs.items() if len(run) < 2]
    if short:
        raise ArgumentError(f"a path needs at least 2 steps; {', '.join(short)} has 1.")
    names = list(runs)
    with runs[names[0]][int(runs[names[0]].steps[0])].open() as reader:
        matched = capture.match_blocks(reader, blocks)
    null = overlap_null(n_draws, random_state)
    compared = []
    angles = []
    for block in matched:
        bases = [principal_basis(_path(run, block), k) for run in runs.values()]
        if len({len(basis) for basis in bases}) > 1:
            sizes = ", ".join(
                f"{n}: {len(basis)}" for n, basis in zip(names, bases, strict=True)
            )
            raise ArgumentError(
                f"{block} has another number of entries in other runs: {sizes}."
            )
        compared.append(compared_bases(bases, null))
        angles.append(_angles(bases, k))
    tables = {
        name: np.stack([basis[name] for basis in compared]) for name in compared[0]
    }
    tables["p_corrected"] = corrected_pairs(tables["p_value"])
    dims = ("block", "run", "run_")
    data = xr.Dataset(
        {name: (dims, table) for name, table in tables.items()}
        | {"angle": ((*dims, "component"), np.stack(angles))},
        coords={"block": matched, "run": names, "run_": names},
    )
    data = named(data, {**Orientation.variables, "angle": ("principal angle", "rad")})
    sentences = overlap_statements(data, "pairs of runs and matrices")
    figure = overlap_map("run", "run_", facet="block")
    return attach(data, Orientation.section, [figure], sentences, Orientation.role)


def _angles(bases: Sequence[np.ndarray], k: int) -> np.ndarray:
    """Return the principal angles of every two bases, NaN beyond the directions that they have."""
    angles = np.full((len(bases), len(bases), k), np.nan)
    for i, j in itertools.permutations(range(len(bases)), 2):
        if bases[i].shape[1] and bases[j].shape[1]:
            between = principal_angles(bases[i], bases[j])
            angles[i, j, : len(between)] = between
    return angles


def _path(run: Trajectory, name: str) -> np.ndarray:
    """Return a block over all steps of a run, (T, entries)."""
    with ExitStack() as stack:
        readers = [stack.enter_context(checkpoint.open()) for checkpoint in run]
        configuration = run[int(run.steps[0])].configuration()
        block = capture.weight_block(readers[0], name, configuration)
        return np.stack(
            [
                block.rows(r, 0, block.shape[0]).float().numpy().reshape(-1)
                for r in readers
            ]
        )
