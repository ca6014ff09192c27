"""Concept fits: what makes them, and what is read of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import xarray as xr

from .. import concepts
from ..errors import ArgumentError, check_choice, check_whole
from .catalogued import FIT
from .of_activations import OfActivations

SIDES = ("reference", "here")
PRECISIONS = ("float32", "float16", "none")  # how dictionaries may be stored
_LARGE = ("dictionary", "refit_dictionary", "code_coordinates")
_TITLES = {
    "svd": "SVD",
    "pca": "PCA",
    "ica": "ICA",
    "nmf": "NMF",
    "sae": "Sparse autoencoder",
}


class FromExtractor(OfActivations):
    """An observable that fits an extractor to activations; its subclasses have these fields."""

    extractor: str
    n_concepts: int
    options: Mapping[str, Any]

    price = FIT

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        # One without options is not made: scikit-learn is not loaded where all cells are there.
        if self.extractor in tuple(_TITLES) and self.options == {}:
            check_whole("n_concepts", self.n_concepts)
            return
        check_choice("extractor", self.extractor, concepts.names())
        self._estimator()

    def _estimator(self, seed: int | None = None) -> Any:
        """Return an unfitted extractor, seeded by ``random_state`` unless another seed is given."""
        for name in ("n_concepts", "random_state", "name"):
            if name in self.options:
                argument = "extractor" if name == "name" else name
                raise ArgumentError(
                    f"options must not hold {name!r}; give {argument}= itself."
                )
        seed = self.random_state if seed is None else seed
        return concepts.make(self.extractor, self.n_concepts, seed, **self.options)


def extractor_title(extractor: str) -> str:
    """Return an extractor's name as headings write it.

    Examples
    --------
    >>> extractor_title("ica"), extractor_title("sparse-pca")
    ('ICA', 'Sparse pca')
    """
    return _TITLES.get(extractor, extractor.replace("-", " ").capitalize())


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

    Codes (n, r) of all steps would be large; in a basis of the joint column space
    they are (2 r, r), and every norm of ``U X - U_ref Y`` stays what it is.

    Examples
    --------
    >>> U_ref, U = torch.ones(5, 1), 3 * torch.ones(5, 1)
    >>> turned = code_coordinates(U_ref, U)
    >>> (
    ...     turned.sizes["coordinate"],
    ...     abs(float((turned[1] - turned[0]).sum()) ** 2 - 20) < 1e-4,
    ... )
    (2, True)
    """
    r = U.shape[1]
    both = torch.cat([U_ref.double(), U.double()], dim=1)
    triangle = torch.linalg.qr(both, mode="r")[1].cpu().numpy()
    table = np.zeros((2, 2 * r, r), dtype=np.float32)
    table[0, : len(triangle)] = triangle[:, :r]
    table[1, : len(triangle)] = triangle[:, r:]
    return xr.DataArray(
        table, dims=("side", "coordinate", "concept"), coords={"side": list(SIDES)}
    )


def as_kept(fit: Mapping[str, Any], precision: str) -> dict[str, Any]:
    """Return what is stored of a layer with its dictionaries in another precision, or without.

    Raises
    ------
    ArgumentError
        If a number is too large for float16.

    Examples
    --------
    >>> fit = {"norm": 1.0, "dictionary": dictionary_array(torch.eye(2))}
    >>> list(as_kept(fit, "none")), str(as_kept(fit, "float16")["dictionary"].dtype)
    (['norm'], 'float16')
    """
    if precision == "none":
        return {name: value for name, value in fit.items() if name not in _LARGE}
    arrays = dict(fit)
    for name in (key for key in _LARGE if key in fit):
        largest = float(abs(fit[name]).max())
        if largest > float(np.finfo(precision).max):
            raise ArgumentError(
                f"{name} holds {largest:.3g}, which is too large for keep_dictionaries="
                f"{precision!r}; take 'float32'."
            )
        arrays[name] = fit[name].astype(precision)
    return arrays


def layer_state(state: xr.Dataset | None, path: str) -> xr.Dataset:
    """Return a layer of the state; refuse one that is missing or whose reference fit failed."""
    if state is None:
        raise ArgumentError(
            "observe() needs the state that prepare() returns; got None."
        )
    layer = state.sel(layer=path)
    if str(layer.status.item()) != "done":
        raise ArgumentError(f"its reference step {layer.status.item()}")
    return layer
