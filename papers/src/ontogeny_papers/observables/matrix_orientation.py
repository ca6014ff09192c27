"""How the directions that training takes are turned: between layers, and between runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
import xarray as xr

from ontogeny.errors import ArgumentError
from ontogeny.figures import Figure, Heatmap, Section
from ontogeny.multiple_tests import false_discovery
from ontogeny.needs import Need, Weights
from ontogeny.observables.base import BlockReading, Observable
from ontogeny.observables.catalogued import PresetEntry, Presets
from ontogeny.words.names import Names

from ..geometry.snapshots import SnapshotGram
from ..geometry.subspaces import principal_coefficients, random_subspace_angles, subspace_overlap

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

    kind: ClassVar[str] = "orientation"
    minima: ClassVar[Mapping[str, int]] = {"k": 1, "n_draws": 1}
    question: ClassVar[str] = "Do matrices of the same size share their principal directions?"
    requires: ClassVar[str] = "weights alone"
    price: ClassVar[str] = "one decomposition for each matrix and step"
    fewest_steps: ClassVar[int] = 2
    obstacles: ClassVar[tuple[str, ...]] = ("no_matrices",)
    presets: ClassVar[Presets] = (
        PresetEntry(("weights", "everything"), {"blocks": "$blocks"}, 180),
    )
    role: ClassVar[str] = "motion"
    section: ClassVar[Section] = Section(
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
    variables: ClassVar[Names] = {
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
            coords={"component": np.arange(len(basis)), "coordinate": np.arange(gram.dimension)},
        )

    def derive(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Compare every two blocks of the same size; the bases themselves stay in the cells."""
        sizes = np.nan_to_num(data["size"].values).astype(int)
        directions = np.nan_to_num(data.directions.values).astype(int)
        tables = data.basis.transpose("block", "component", "coordinate").values
        bases = [t[:d, :s].T for t, d, s in zip(tables, directions, sizes, strict=True)]
        compared = compared_bases(bases, overlap_null(self.n_draws, self.random_state))
        data = data.drop_vars(["basis", "component", "coordinate"])
        data = data.assign({name: (("block", "block_"), table) for name, table in compared.items()})
        return data.assign_coords(block_=data.block.values)

    def figures(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> Sequence[Figure]:
        """Return the overlaps as a map."""
        return [overlap_map("block", "block_")]

    def words(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> Sequence[str]:
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
        (entries, r), (others, s) = bases[i].shape, bases[j].shape
        r, s = sorted((r, s))
        if not r or entries != others or entries < r + s:
            continue
        overlap, chance = subspace_overlap(bases[i], bases[j]), null(r, s, entries)
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
    count, ratio = int((p_values[mask] < 0.05).sum()), data.ratio.values[mask]
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
