"""Whether commutators avoid the directions that training takes, and gradients as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from ontogeny import geometry
from ontogeny.arrays import check_finite
from ontogeny.capture.blocks import WeightBlock
from ontogeny.errors import ArgumentError, CheckpointError, NonFiniteError
from ontogeny.figures import Section
from ontogeny.observables.matrices import parameter_blocks
from ontogeny.observables.readings import Run
from ontogeny.quantities import Quantity
from ontogeny.trajectory.weights.files import TensorReader
from ontogeny.trees import Nodes

from ..geometry.projection import BlockEnergies
from ..geometry.subspaces import principal_basis
from ..updates.commutators import Commutator
from ..updates.field import Vector, norm
from ..updates.pairs import FEWEST as FEWEST_PAIRS
from .commutators import Commutators, measures

VECTORS = ("commutator", "gradient", "difference of gradients")
BASES = ("run so far", "whole run")
SPACES = ("all parameters", "the blocks alone")
SETTINGS = tuple(
    f"basis of the {basis}, {space}" for basis in BASES for space in SPACES
)
REST = "other parameters"
_RESAMPLES = 1000
_LARGEST = 2**30  # numbers of all snapshots together: 4 GiB


def _share(name: str, title: str, **options: Any) -> Quantity:
    return Quantity(name, title, series="vector", facet="setting", **options)


@dataclass(frozen=True)
class Projection(Commutators):
    """Share of commutators and of plain gradients inside the trajectory's own directions.

    The subspace is the direct sum of the top `k` principal components of every block's snapshots:
    of the run so far, and of the whole run. ρ is the norm of the part inside over the whole norm,
    among all parameters and among the blocks alone, beside random subspaces: uniform ones in
    closed form, and ones of the same dimension in every block. Reports all that `Commutators` does.

    Parameters
    ----------
    blocks
        Glob or globs over parameter names, or short names; matrices only. All their snapshots are
        kept in the study folder. The default are the attention projections of known families.
    k
        Principal components of each block.
    loss, lr, pairs, batch_size, on, method, dtype, random_state, label
        As in `Commutators`.

    Examples
    --------
    >>> Projection(blocks="*.attn.*", k=3).name
    'projection'
    """

    blocks: str | tuple[str, ...] = ("q", "k", "v", "o")
    k: int = 3

    kind = "projection"
    minima = {**Commutators.minima, "k": 1}
    question = (
        "Which share of a gradient lies in the directions that the run moves along?"
    )
    requires = "texts, a vocabulary head"
    price = "gradients as commutators, and all steps of the matrices"
    quantities = (
        _share(
            "rho_median",
            "share of the norm inside the trajectory's directions",
            symbol="ρ = ‖P v‖ / ‖v‖",
            nulls={"random": "random subspaces"},
            caption="Median over pairs. Compare commutators with gradients before concluding "
            "anything.",
            shade="bootstrap over pairs",
        ),
        _share(
            "ratio",
            "share of the norm relative to random subspaces with the same dimension in every block",
            caption="1 is chance.",
        ),
        _share(
            "perpendicular",
            "share of the norm outside",
            symbol="√(1 − ρ²)",
            caption="√(1 − ρ²): close to 1 for nearly any vector in many dimensions.",
        ),
        *Commutators.quantities,
    )
    section = Section(
        title="Commutators and the trajectory's own directions",
        definition="How much of a commutator, of a gradient and of the difference of two gradients "
        "lies inside the top principal components of the weights' path, block by block.",
        symbol="ρ = ‖P v‖ / ‖v‖, outside √(1 − ρ²)",
        null="Band: uniformly random subspaces of the same dimension among the parameters that can "
        "move, 95 %. Ratio: to random subspaces with the same dimension in every block. Plain "
        "gradients are the control that matters: where they hold as little, nothing is special "
        "about commutators.",
        care="The basis of the run so far grows from few snapshots; the one of the whole run knows "
        "the future. Parameters without a gradient are not counted.",
        source="Xu 2026, sec. 3.3.2, Figs 4, 5",
    )
    variables = {
        **Commutators.variables,
        "rho": ("share of the norm inside", "1"),
        "matched": ("share inside block-matched random subspaces", "1"),
        "control": ("share inside uniform random subspaces", "1"),
        "inside": ("squared norm inside", "squared units of the vector"),
        "energy": ("squared norm", "squared units of the vector"),
        "dimension": ("dimension of the subspace", "directions"),
        "moving": ("entries with a gradient", "entries"),
    }

    @property
    def prepares_over_steps(self) -> bool:
        """Whether all steps are read for the directions: they are."""
        return True

    def prepare(self, run: Run) -> xr.Dataset:
        """Return the snapshots of every block over all steps, and their Gram matrices.

        Checkpoints that cannot be read or hold NaN are left out: their own cells say so.
        """
        snapshots: dict[int, dict[str, np.ndarray]] = {}
        unread: Exception = ArgumentError("there is no checkpoint to read.")
        for step in map(int, run.steps):
            try:
                snapshots[step] = self._snapshot(run.reading(step), len(run.steps))
            except (CheckpointError, NonFiniteError) as error:
                unread = error
        if not snapshots:
            raise unread
        data: dict[str, Any] = {}
        for i, name in enumerate(next(iter(snapshots.values()))):
            path = np.stack([blocks[name] for blocks in snapshots.values()])
            data[name] = (("step", f"coordinate{i}"), path)
            data[_gram(name)] = (("step", "step_"), geometry.gram(path))
        return xr.Dataset(data, coords={"step": list(snapshots)})

    def _snapshot(self, reading: Any, count: int) -> dict[str, np.ndarray]:
        """Return the values of every block at one checkpoint, one of `count` that are kept."""
        model = reading[self.needs()[0]].model
        parameters = dict(model.named_parameters())
        blocks = parameter_blocks(model, self.blocks)
        entries = sum(int(np.prod(block.shape)) for block in blocks.values())
        if entries * count > _LARGEST:
            raise ArgumentError(
                f"{count} snapshots of {len(blocks)} blocks with {entries} entries are more than "
                f"the {_LARGEST} numbers that are kept; choose fewer blocks= or steps."
            )
        snapshot = {}
        for name, block in blocks.items():
            values = block_values(block, parameters).float().cpu().numpy()
            check_finite(name, values)
            snapshot[name] = values.copy()
        return snapshot

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return what lies inside, with its controls, of every pair and kind of vector."""
        assert state is not None
        model = reading[self.needs()[0]].model
        blocks = parameter_blocks(model, self.blocks)
        end = int((state.step.values <= reading.step).sum())
        tally = _Tally(blocks, self._bases(state, list(blocks), end))
        pairs = []
        for pair in self.each_pair(reading):
            pairs.append(measures(pair))
            tally.add(pair)
        return self.stacked(reading, pairs).merge(tally.result())

    def _bases(
        self, state: xr.Dataset, blocks: Sequence[str], end: int
    ) -> dict[str, list[np.ndarray]]:
        bases: dict[str, list[np.ndarray]] = {name: [] for name in BASES}
        for block in blocks:
            path = state[block].values
            gram = state[_gram(block)].values
            for name, last in zip(BASES, (end, len(gram)), strict=True):
                basis = np.zeros((path.shape[1], 0))  # where nothing has moved yet
                if last >= 2:
                    basis = principal_basis(path, self.k, gram=gram, end=last)
                bases[name].append(basis)
        return bases

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add medians over pairs with intervals, and ratios to chance."""
        data = super().derive(data, nodes)
        low, median, high = _bootstrapped(data.rho, self.random_state)
        chance = data.matched.median("pair", skipna=False)
        return data.assign(
            rho_median=median,
            rho_median_low=low,
            rho_median_high=high,
            rho_median_random_low=data.control_low,
            rho_median_random_high=data.control_high,
            ratio=median / chance,
            perpendicular=(1 - median**2).clip(min=0) ** 0.5,
        )

    def words(self, data: xr.Dataset, nodes: Nodes) -> Sequence[str]:
        """Return what the directions hold, and the first and the last defect."""
        return [*_statements(data, self.k), *super().words(data, nodes)]


def _gram(block: str) -> str:
    return f"{block} gram"


class _Tally:
    """Squared norms by block of every vector of every pair, and which coordinates can move."""

    def __init__(
        self, blocks: Mapping[str, WeightBlock], bases: Mapping[str, list[np.ndarray]]
    ) -> None:
        self._blocks = blocks
        self._bases = bases
        self._inside: list[np.ndarray] = []  # of every pair (basis, vector, block)
        self._energy: list[np.ndarray] = []  # of every pair (vector, block)
        self._moves: dict[str, torch.Tensor] = {}

    def add(self, found: Commutator) -> None:
        """Take one pair."""
        first = found.gradient_a
        second = found.gradient_b
        for name in first:
            moves = (first[name] != 0) | (second[name] != 0)
            self._moves[name] = (
                self._moves[name] | moves if name in self._moves else moves
            )
        difference = {name: first[name] - second[name] for name in first}
        inside = []
        energy = []
        for vector in (found.delta, first, difference):
            pieces = [self._piece(block, vector) for block in self._blocks.values()]
            sizes = [float(piece @ piece) for piece in pieces]
            energy.append([*sizes, max(norm(vector) ** 2 - sum(sizes), 0.0)])
            inside.append(
                [[*_energies(pieces, self._bases[basis]), 0.0] for basis in BASES]
            )
        self._energy.append(np.array(energy))
        self._inside.append(np.swapaxes(np.array(inside), 0, 1))

    def _piece(self, block: WeightBlock, vector: Vector) -> np.ndarray:
        if block.tensor not in vector:  # frozen: it never moves
            return np.zeros(int(np.prod(block.shape)))
        return block_values(block, vector).double().cpu().numpy()

    def result(self) -> xr.Dataset:
        """Return energies and shares with their controls, along ``pair``."""
        inside = np.stack(self._inside, -1)
        energy = np.stack(self._energy, -1)
        sizes = self._sizes()
        ranks = np.array([[*(b.shape[1] for b in self._bases[n]), 0] for n in BASES])
        shape = (len(SETTINGS), len(VECTORS), inside.shape[-1])
        rho = np.full(shape, np.nan)
        matched = np.full(shape, np.nan)
        control = np.full((3, len(SETTINGS)), np.nan)
        for b in range(len(BASES)):
            if not ranks[b].any():  # nothing has moved yet: there is no such subspace
                continue
            for v in range(len(VECTORS)):
                whole = BlockEnergies(inside[b, v], energy[v], ranks[b], sizes)
                for s, part in enumerate((whole, whole.within), start=len(SPACES) * b):
                    rho[s, v] = part.rho
                    matched[s, v] = part.matched
                    chance = part.control
                    control[:, s] = chance.rms, chance.low, chance.high
        dims = ("setting", "vector", "pair")
        return xr.Dataset(
            {
                "rho": (dims, rho),
                "matched": (dims, matched),
                **{
                    f"control{end}": ("setting", values)
                    for end, values in zip(("", "_low", "_high"), control, strict=True)
                },
                "inside": (("basis", "vector", "part", "pair"), inside),
                "energy": (("vector", "part", "pair"), energy),
                "dimension": (("basis", "part"), ranks),
                "moving": ("part", sizes),
            },
            coords={
                "setting": list(SETTINGS),
                "vector": list(VECTORS),
                "basis": list(BASES),
                "part": [*self._blocks, REST],
            },
        )

    def _sizes(self) -> np.ndarray:
        """Return how many coordinates of each block, and of the rest, have a gradient at all."""
        whole = sum(int(moves.sum()) for moves in self._moves.values())
        sizes = [
            int(block_values(block, self._moves).sum())
            if block.tensor in self._moves
            else 0
            for block in self._blocks.values()
        ]
        return np.array([*sizes, whole - sum(sizes)])


def _energies(pieces: Sequence[np.ndarray], bases: Sequence[np.ndarray]) -> list[float]:
    """Return the squared norm of each piece inside the subspace of its block."""
    return [
        float(np.sum((piece @ basis) ** 2))
        for piece, basis in zip(pieces, bases, strict=True)
    ]


def _bootstrapped(values: xr.DataArray, random_state: int) -> list[xr.DataArray]:
    """Return 2.5 %, 50 % and 97.5 % points of the median over pairs."""
    draws = np.random.default_rng(random_state).integers(
        values.sizes["pair"], size=(_RESAMPLES, values.sizes["pair"])
    )
    picked = values.isel(pair=xr.DataArray(draws, dims=("draw", "pair")))
    medians = picked.median("pair", skipna=False).quantile(
        [0.025, 0.975], "draw", skipna=False
    )
    low, high = (medians.isel(quantile=i, drop=True) for i in (0, 1))
    return [low, values.median("pair", skipna=False), high]


def _statements(data: xr.Dataset, k: int) -> list[str]:
    setting = data.sel(setting=SETTINGS[0])
    there = np.flatnonzero(
        np.isfinite(setting.rho_median.sel(vector=VECTORS[0]).values)
    )
    if not len(there):
        return []
    last = setting.isel(step=int(there[-1]))
    shares = [float(last.rho_median.sel(vector=v)) for v in VECTORS]
    sentence = (
        f"At {{step}} {int(last.step):,} the {k} principal directions per block of the run so far "
        f"hold {shares[0]:.3f} of a commutator's norm and {shares[1]:.3f} of a plain "
        f"gradient's; random directions hold {float(last.control):.3f}."
    )
    first, second = (last.rho.sel(vector=v) for v in VECTORS[:2])
    if data.sizes["pair"] < FEWEST_PAIRS or not bool(
        ((first > 0) & (second > 0)).all()
    ):
        return [sentence]
    low, _, high = (float(np.exp(v)) for v in _bootstrapped(np.log(first / second), 0))
    verdict = "commutators lie in these directions as much as gradients do, within the interval"
    if high < 1 or low > 1:
        much = "less" if high < 1 else "more"
        verdict = f"commutators lie {much} in these directions than gradients do"
    return [
        sentence,
        f"Commutator over gradient: {low:.2f} to {high:.2f} (95 %): {verdict}.",
    ]


def block_values(block: WeightBlock, tensors: Mapping[str, Tensor]) -> Tensor:
    """Return the entries of `block` in `tensors`, as a vector.

    Examples
    --------
    >>> model = torch.nn.Linear(3, 2)
    >>> block = parameter_blocks(model, "weight")["weight"]
    >>> block_values(block, dict(model.named_parameters())).shape
    torch.Size([6])
    """
    return block.rows(TensorReader(tensors), 0, block.shape[0]).reshape(-1)
