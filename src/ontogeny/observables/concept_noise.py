"""What refitting and chance give: the floors under a concept curve (decision 12)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
import xarray as xr

from .. import dynamics
from ..distances import align
from .concept_fits import matched, rotation
from .rows import MEASURABLE

__all__ = ["MATCHINGS", "RESAMPLES", "SHARES", "Pair", "noise_floors", "refits"]

RESAMPLES = 3
MATCHINGS = ("as returned", "matched")
SHARES = ("rotation", "deformation", "outside")

Fit = Callable[[torch.Tensor, int], torch.Tensor]


class Pair(NamedTuple):
    """Activations, dictionary and codes at one step."""

    activations: torch.Tensor
    dictionary: torch.Tensor
    codes: torch.Tensor


Relative = Callable[[torch.Tensor, Pair, torch.Tensor], np.ndarray]


def refits(
    A: torch.Tensor, fit: Fit, random_state: int, *, seeded: bool
) -> dict[str, torch.Tensor]:
    """Return dictionaries of cold refits by name.

    Parameters
    ----------
    A
        Activations (n, m).
    fit
        ``fit(A, seed) -> W``, never from a warm start, which would understate the noise.
    random_state
        Seed of the study's own fit and of the resamples.
    seeded
        Whether the solver's answer depends on a seed, so that other seeds are tried.

    Returns
    -------
    dict
        ``"tokens 1"`` to ``"tokens 3"``: bootstrap resamples of the rows; ``"seed 1"`` to
        ``"seed 3"``: other seeds; ``"float64"`` (or ``"float32"``): solved in the other precision.
    """
    rng = np.random.default_rng([random_state, 1])
    found: dict[str, torch.Tensor] = {}
    for i in range(RESAMPLES):
        rows = torch.from_numpy(np.sort(rng.integers(0, len(A), len(A)))).to(A.device)
        found[f"tokens {i + 1}"] = fit(A[rows], random_state)
    if seeded:
        for i in range(1, RESAMPLES + 1):
            found[f"seed {i}"] = fit(A, random_state + i)
    other = torch.float32 if A.dtype == torch.float64 else torch.float64
    found[str(other).removeprefix("torch.")] = fit(A.to(other), random_state).to(A)
    return found


def noise_floors(
    here: Pair,
    reference: Pair,
    others: Mapping[str, torch.Tensor],
    relative: Relative,
    random_state: int,
) -> dict[str, xr.DataArray]:
    """Return distances of refits to this step's fit and to the reference, and those of chance.

    With them come the norms of the refitted dictionaries, which make the distances absolute, and
    what their transforms are: how far from the fit's, log-determinant and condition number (from
    the reference's dictionary), and how the change from the fit splits.

    ``relative(W, other, rotation)`` gives what W is compared by, (distance, alignment).
    """
    W, W_ref = here.dictionary, reference.dictionary
    turn = rotation(here.activations, reference.activations)
    identity = torch.eye(len(W), dtype=W.dtype, device=W.device)
    names = list(others)
    to_fit = np.stack([relative(V, here, identity) for V in others.values()])
    to_reference = np.stack([relative(V, reference, turn) for V in others.values()])
    moved = np.stack([_transform_distances(V, W, W_ref) for V in others.values()])
    maps = [_transform(V, W_ref) for V in others.values()]
    shares = np.array([_shares(V, W) for V in others.values()])
    chance = [_chance(here, reference, relative, random_state, draw) for draw in range(RESAMPLES)]
    dims = ("distance", "alignment")
    coords: dict[str, Any] = {"refit": names}
    return {
        "refit_distance": xr.DataArray(to_fit, dims=("refit", *dims), coords=coords),
        "refit_to_reference": xr.DataArray(to_reference, dims=("refit", *dims), coords=coords),
        "refit_norm": xr.DataArray(
            np.array([float(V.norm()) for V in others.values()]), dims="refit", coords=coords
        ),
        "refit_transform_distance": xr.DataArray(
            moved, dims=("refit", "matching"), coords={**coords, "matching": list(MATCHINGS)}
        ),
        "refit_log_det": xr.DataArray([t.log_det for t in maps], dims="refit", coords=coords),
        "refit_condition": xr.DataArray([t.condition for t in maps], dims="refit", coords=coords),
        "refit_share": xr.DataArray(
            shares, dims=("refit", "share_of"), coords={**coords, "share_of": list(SHARES)}
        ),
        "chance_distance": xr.DataArray(np.stack(chance), dims=("draw", *dims)),
    }


def _transform_distances(V: torch.Tensor, W: torch.Tensor, W_ref: torch.Tensor) -> list[float]:
    """Return how far the transforms of a refit and of the fit are apart, (matching,)."""
    pairs = [(V, W)]
    fitting = matched(W_ref, W)
    pairs.append((matched(fitting, V), fitting))
    apart = []
    for refit, fit in pairs:
        found = [align(X, W_ref, under="invertible").transform for X in (refit, fit)]
        apart.append(float((found[0].double() - found[1].double()).norm()))
    return apart


def _transform(V: torch.Tensor, W: torch.Tensor) -> dynamics.Transform:
    """Return the transform of W into V; codes take no part."""
    none = torch.eye(W.shape[1], dtype=torch.float64)
    return dynamics.transform(V.double().cpu(), none, W.double().cpu(), none)


def _shares(V: torch.Tensor, W: torch.Tensor) -> list[float]:
    """Return how the change from W to V, matched to it, splits; 0 where it is only rounding."""
    found = _transform(matched(W, V), W)
    if found.identity.dictionary <= MEASURABLE * found.dictionary_norm:
        return [0.0] * len(SHARES)
    return [found.shares[name] for name in SHARES]


def _chance(
    here: Pair, reference: Pair, relative: Relative, random_state: int, draw: int
) -> np.ndarray:
    """Return distances where nothing is shared: a random basis, or tokens out of order."""
    A, W = here.activations, here.dictionary
    generator = torch.Generator().manual_seed(1000 * random_state + draw)
    gauss = torch.randn(A.shape[1], A.shape[1], generator=generator, dtype=torch.float64)
    basis = torch.linalg.qr(gauss).Q.to(A)
    order = torch.randperm(len(A), generator=generator).to(A.device)
    random_basis = relative(basis @ W, reference, torch.eye(A.shape[1]).to(A))
    out_of_order = relative(W, reference, rotation(A[order], reference.activations))
    return np.concatenate([random_basis[:, :2], out_of_order[:, 2:]], axis=1)
