"""Directions of the weights' paths between seeds and layers (Xu 2026, sec. 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ..observables.orientation import orientation_across_runs
from .evidence import LEVEL, Found, each, more_often, spread, unanimous
from .marker_recipe import MarkerRecipe
from .ranks import MORE, by_kind
from .recipe import Findings, Materials
from .verdicts import Verdict

_APART = 0.5  # mean squared cosine below which two subspaces count as turned against each other


@dataclass(frozen=True)
class OrientationRecipe(MarkerRecipe):
    """The marker task over seeds, whose paths are compared with each other too."""

    def measured(self, size: Any, materials: Materials) -> Findings:
        """Train and study every seed, and compare the directions of each matrix between them."""
        findings = super().measured(size, materials)
        ((label, run),) = size.runs.items()
        folder = self.runs_folder(label, run, size, materials)
        recorded = self.record(run, folder, size, materials)  # by now all are there
        paths = {
            f"seed {seed}": self.opened(run, path)
            for seed, path in zip(size.seeds, recorded, strict=True)
        }
        between = orientation_across_runs(paths)
        nodes = {**findings.nodes, "orientation-between-seeds": between}
        numbers = (*findings.numbers, between)
        verdicts = layers_and_ranks(*numbers)
        return Findings(verdicts, nodes, findings.attributes, numbers)


def layers_and_ranks(results: Found, between: xr.Dataset | None = None) -> list[Verdict]:
    """Judge dimension and directions over seeds and layers; `between` seeds where it is given."""
    (ranks,) = results["weight-rank"].values()
    (directions,) = results["orientation"].values()
    varies = [] if between is None else [_varies(between)]
    return [*varies, _same_dimension(ranks), _shared(directions)]


def _varies(between: xr.Dataset) -> Verdict:
    """Judge whether a matrix takes other directions in other seeds.

    Hidden units have no order, so that chance is to be expected of equal solutions too: this cannot
    tell a turned solution from another one.
    """
    first, second = np.triu_indices(between.sizes["run"], 1)
    overlap = between.overlap.values[:, first, second]
    p_values = between.p_value.values[:, first, second].ravel()
    count, tested = int((p_values < LEVEL).sum()), int(np.isfinite(p_values).sum())
    return Verdict(
        "the orientation of the subspace varies between seeds",
        unanimous(overlap < _APART, overlap),
        f"mean squared cosine of the principal angles {overlap.mean():.2g}, at most "
        f"{overlap.max():.2g}, over {tested} pairs of seeds and matrices",
        f"random subspaces {float(between.chance.mean()):.2g}; above them {count} of {tested} at "
        f"p < {LEVEL:g} (as many by chance: p = {more_often(count, tested, LEVEL)[1]:.2g}); hidden "
        "units have no order, so equal solutions would give chance too",
    )


def _same_dimension(runs: Sequence[xr.Dataset]) -> Verdict:
    """Judge whether kinds of matrices have the same rank in every seed and layer."""
    ranks = np.stack([by_kind(run).variance_rank.values for run in runs])
    between = float((ranks.max(axis=0) - ranks.min(axis=0)).max())
    layers = each(runs, _between_layers)
    return Verdict(
        "the dimension is the same over seeds and layers",
        unanimous([between < 2 * MORE, bool((layers < 2 * MORE).all())], between, layers),
        f"ranks of a kind of matrix differ by at most {between:.2f} between seeds, and by "
        f"{spread(layers)} between layers of a seed",
        f"less than {2 * MORE:g} counts as the same; ranks of walks of the same steps would agree "
        "as well",
    )


def _between_layers(run: xr.Dataset) -> float:
    """Return the largest difference of ranks of one kind between the layers of a run."""
    kinds = [str(block).rsplit(".", 2)[-2] for block in run.block.values]
    grouped = run.variance_rank.astype(float).assign_coords(block=kinds).groupby("block")
    return float((grouped.max() - grouped.min()).max())


def _shared(runs: Sequence[xr.Dataset]) -> Verdict:
    """Judge whether matrices of one run share directions more than random subspaces do."""
    pairs = [run.p_value.values[np.triu_indices(run.sizes["block"], 1)] for run in runs]
    counts = np.array([int((p < LEVEL).sum()) for p in pairs])
    tested = np.array([int(np.isfinite(p).sum()) for p in pairs])
    shared = [more_often(c, t, LEVEL)[1] <= LEVEL for c, t in zip(counts, tested, strict=True)]
    return Verdict(
        "(not claimed) matrices of one run share directions more than random subspaces do",
        unanimous(shared),
        f"{', '.join(f'{c} of {t}' for c, t in zip(counts, tested, strict=True))} pairs of "
        f"matrices at p < {LEVEL:g}, seed by seed",
        f"{LEVEL:.0%} by chance; layers share the coordinates of the residual stream, and noise "
        "that prefers some of them is enough",
    )
