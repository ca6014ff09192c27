"""The directions that training takes, compared between runs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

import numpy as np
import xarray as xr

from ontogeny import capture
from ontogeny.errors import ArgumentError, check_whole
from ontogeny.figures import attach
from ontogeny.trajectory import Trajectory
from ontogeny.words.names import named

from ..geometry.subspaces import principal_angles, principal_basis
from .matrix_orientation import (
    Orientation,
    compared_bases,
    corrected_pairs,
    overlap_map,
    overlap_null,
    overlap_statements,
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
    blocks, k, draws, random_state
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
    >>> overlaps = orientation_across_runs({"seed 0": run(), "seed 1": run()}, "weight", k=1)
    >>> dict(overlaps.overlap.sizes)
    {'block': 1, 'run': 2, 'run_': 2}
    """
    if len(runs) < 2:
        raise ArgumentError(f"runs must hold at least two trajectories; got {len(runs)}.")
    k, n_draws = check_whole("k", k), check_whole("n_draws", n_draws)
    short = [name for name, run in runs.items() if len(run) < 2]
    if short:
        raise ArgumentError(f"a path needs at least 2 steps; {', '.join(short)} has 1.")
    names = list(runs)
    with runs[names[0]][int(runs[names[0]].steps[0])].open() as reader:
        matched = capture.match_blocks(reader, blocks)
    null, compared, angles = overlap_null(n_draws, random_state), [], []
    for block in matched:
        bases = [principal_basis(_path(run, block), k) for run in runs.values()]
        if len({len(basis) for basis in bases}) > 1:
            sizes = ", ".join(f"{n}: {len(basis)}" for n, basis in zip(names, bases, strict=True))
            raise ArgumentError(f"{block} has another number of entries in other runs: {sizes}.")
        compared.append(compared_bases(bases, null))
        angles.append(_angles(bases, k))
    tables = {name: np.stack([basis[name] for basis in compared]) for name in compared[0]}
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
            [block.rows(r, 0, block.shape[0]).float().numpy().reshape(-1) for r in readers]
        )
