"""The way that activations take through training, in a few random coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr

from ontogeny.errors import ArgumentError
from ontogeny.figures import Section
from ontogeny.observables.of_activations import OfActivations
from ontogeny.observables.variables import by_layer
from ontogeny.quantities import Quantity
from ontogeny.trees import Nodes


@dataclass(frozen=True)
class ActivationPath(OfActivations):
    """Coordinates of every layer's activations along random directions, the same at every step.

    Coordinate k is u_kᵀ A v_k / ‖A‖_F with standard normal u_k (n,) and v_k (m,): its size is
    about 1, and noise of a share s of the activations gives it noise of about s. A distance to a
    reference hardly shows such noise, since its length varies little where its direction does;
    these coordinates do. They are meant as series for the papers' `ontogeny.observables.Regimes`,
    with ``jointly="coordinate"``.

    Parameters
    ----------
    layers
        Glob or globs over module paths.
    coordinates
        Number of directions.
    on, tokens, max_tokens
        Which tokens; see `ontogeny.needs.Activations`.
    random_state
        Seed of the tokens and of the directions.

    Examples
    --------
    >>> ActivationPath("model.layers.*.mlp").name
    'activation-path'
    """

    layers: str | tuple[str, ...] = "mlp"
    coordinates: int = 16
    on: str | None = None
    tokens: str = "all"
    max_tokens: int | None = 5000
    random_state: int = 0

    kind = "activation-path"
    minima = {"coordinates": 1}
    question = (
        "On what path do a layer's activations move, along fixed random directions?"
    )
    quantities = (
        Quantity(
            "path",
            "coordinates of the activations",
            symbol="uᵀAₜv / ‖Aₜ‖",
            figure=False,
        ),
        Quantity(
            "change",
            "change since the checkpoint before",
            y_scale="log",
            caption="Root mean square over the coordinates.",
        ),
    )
    section = Section(
        title="Path of the activations",
        definition="Each layer's activations along a few random directions that are the same at "
        "every {checkpoint}, relative to their norm.",
        symbol="cₖ = uₖᵀ Aₜ vₖ / ‖Aₜ‖_F",
        null="Unrelated activations at two {checkpoint}s change the coordinates by about √2 = 1.4.",
        care="A rotation of the features moves them too. The change is estimated from the "
        "directions drawn: with 16 of them to about 18 % where activations change along many "
        "directions, to 33 % where along one. It grows with the spacing of the checkpoints.",
        source="W. B. Johnson, J. Lindenstrauss, Contemp. Math. 26, 1984 (random projections)",
    )

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return ``path(layer, coordinate)`` at this step."""
        return by_layer(
            reading[self.activations],
            lambda _, A: {"path": ("coordinate", self._coordinates(A))},
        )

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add the change since the checkpoint before."""
        moved = data.path.diff("step").reindex(step=data.step)
        return data.assign(change=(moved**2).mean("coordinate", skipna=False) ** 0.5)

    def _coordinates(self, A: torch.Tensor) -> np.ndarray:
        """Return the coordinates (K,) of activations (n, m)."""
        values = A.double().cpu().numpy()
        size = float(np.linalg.norm(values))
        if size == 0:
            raise ArgumentError("all activations are 0, which have no direction")
        rng = np.random.default_rng([self.random_state, 5])
        rows, columns = (
            rng.standard_normal((self.coordinates, k)) for k in values.shape
        )
        return np.asarray(((rows @ values) * columns).sum(axis=1) / size)
