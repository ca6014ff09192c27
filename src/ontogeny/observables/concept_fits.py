"""What is read of a concept fit: dictionary, codes in few numbers, alignments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import xarray as xr

from .. import concepts, distances
from ..errors import ArgumentError

__all__ = [
    "SIDES",
    "code_coordinates",
    "dictionary_array",
    "layer_state",
    "make_extractor",
    "matched",
    "rotation",
]

SIDES = ("reference", "here")


def make_extractor(
    extractor: str, n_concepts: int, random_state: int, options: Mapping[str, Any]
) -> Any:
    """Return an unfitted extractor; `options` are its further arguments.

    Raises
    ------
    ArgumentError
        If an argument is not what it must be, or `options` holds one that has a place of its own.

    Examples
    --------
    >>> make_extractor("ica", 4, 0, {"fun": "exp"})
    ICA(fun='exp', n_concepts=4, random_state=0)
    """
    for name in ("n_concepts", "random_state", "name"):
        if name in options:
            own = "extractor" if name == "name" else name
            raise ArgumentError(f"options must not hold {name!r}; give {own}= itself.")
    return concepts.make(extractor, n_concepts, random_state, **options)


def rotation(A: torch.Tensor, A_ref: torch.Tensor) -> torch.Tensor:
    """Return the orthogonal Q (m, m) that brings A Q nearest to A_ref."""
    return distances.align(A_ref, A, under="rotation").transform


def matched(W: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
    """Return V with its concepts permuted and signed to lie nearest to those of W."""
    return distances.align(W, V, under="signed-permutation").aligned


def dictionary_array(W: torch.Tensor) -> xr.DataArray:
    """Return a dictionary (feature, concept) as it is stored.

    Features are numbered, so that layers of different widths can be stacked: the narrower ones end
    in NaN.
    """
    values = W.detach().cpu().numpy().astype(np.float32)
    return xr.DataArray(
        values, dims=("feature", "concept"), coords={"feature": np.arange(len(values))}
    )


def code_coordinates(U_ref: torch.Tensor, U: torch.Tensor) -> xr.DataArray:
    """Return the codes of two fits in one orthonormal basis of their columns.

    Codes (n, r) of all steps would be large (decision 11); in a basis of the joint column space
    they are (2 r, r), and every norm of ``U X - U_ref Y`` stays what it is.

    Examples
    --------
    >>> U_ref, U = torch.ones(5, 1), 3 * torch.ones(5, 1)
    >>> found = code_coordinates(U_ref, U)
    >>> found.sizes["coordinate"], abs(float((found[1] - found[0]).sum()) ** 2 - 20) < 1e-4
    (2, True)
    """
    r = U.shape[1]
    both = torch.cat([U_ref.double(), U.double()], dim=1)
    triangle = torch.linalg.qr(both, mode="r")[1].cpu().numpy()
    table = np.zeros((2, 2 * r, r), dtype=np.float32)
    table[0, : len(triangle)], table[1, : len(triangle)] = triangle[:, :r], triangle[:, r:]
    return xr.DataArray(table, dims=("side", "coordinate", "concept"), coords={"side": list(SIDES)})


def layer_state(state: xr.Dataset, path: str) -> xr.Dataset:
    """Return a layer of the state; refuse one whose reference fit failed."""
    layer = state.sel(layer=path)
    if str(layer.status.item()) != "done":
        raise ArgumentError(f"its reference step {layer.status.item()}")
    return layer
