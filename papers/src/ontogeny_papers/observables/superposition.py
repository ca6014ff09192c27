"""How many features a small space holds, and how they share its dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from torch import Tensor

from ontogeny.errors import check_number
from ontogeny.figures import Heatmap, Section
from ontogeny.needs import Need
from ontogeny.observables import Observable, Reading, by_layer
from ontogeny.observables.matrices import Matrices
from ontogeny.quantities import Measured, Quantity

from ..geometry.features import feature_dimensionality


@dataclass(frozen=True)
class FeatureGeometry(Observable):
    """How many features a weight matrix represents, and which share of a dimension each has.

    Features are the columns of a matrix (hidden units, features), as in a linear map from features
    to hidden units. More of them than hidden units are in superposition (Elhage et al. 2022).

    Parameters
    ----------
    blocks
        Globs over parameter names.
    least
        Norm from which on a column counts as represented.
    n_draws
        Random directions with the same norms, the null.
    random_state
        Seed of the directions.

    Examples
    --------
    >>> FeatureGeometry("**.weight").name
    'feature-geometry'
    """

    blocks: str | tuple[str, ...] = "**.weight"
    least: float = 0.5
    n_draws: int = 20
    random_state: int = 0

    kind = "feature-geometry"
    minima = {"n_draws": 1}
    question = "How many features does a matrix hold, and do they share dimensions?"
    requires = "weights alone"
    price = "products of columns at each step"
    quantities = (
        Quantity(
            "represented",
            "number of features represented",
            units="features",
            symbol="#{i: ‖w_i‖ ≥ c}",
            rows="{layer} · features",
            noise="exact",
            minimum=0.0,
        ),
        Quantity(
            "dimensionality",
            "dimensions per represented feature",
            units="dimensions",
            symbol="mean ‖w_i‖² / Σ_j (ŵ_i · w_j)²",
            noise="exact",
            nulls={"random": "random directions of the same norms"},
            caption="1: a direction for each; 1/2: opposite pairs; 2/5: a pentagon.",
        ),
    )
    compared = ("feature_norm", "feature_dimensionality")
    variables = {
        "feature_norm": ("norm of each feature", "weight units"),
        "feature_dimensionality": ("dimensions of each feature", "dimensions"),
    }
    section = Section(
        title="Features in superposition",
        definition="Columns of a matrix with a norm of at least {least} are features that it "
        "represents. Each has a share of a dimension for itself.",
        null="Columns of the same norms in random directions.",
        care="The number follows from norms alone, which a control run shares with the run. What "
        "training arranges is the dimensionality. It is 0 where nothing is represented.",
        source="Elhage et al. 2022, Toy models of superposition",
    )
    charts = (
        Heatmap(
            "norms",
            "Norm of every feature",
            value="feature_norm",
            y="feature",
            facet="layer",
        ),
    )

    def check(self) -> None:
        """Refuse numbers out of range."""
        check_number("least", self.least, above=True)

    def needs(self) -> Sequence[Need]:
        """Return the matrices."""
        return [Matrices(self.blocks)]

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return the number of features, their dimensionality and its null."""
        data = by_layer(reading[self.needs()[0]], lambda _, W: self._measured(W))
        return data.assign_coords(feature=np.arange(data.sizes.get("feature", 0)))

    def _measured(self, W: Tensor) -> dict[str, Any]:
        columns = W.detach().cpu().double().numpy()
        norms = np.linalg.norm(columns, axis=0)
        there = norms >= self.least
        rng = np.random.default_rng(self.random_state)
        random = rng.standard_normal((self.n_draws, *columns.shape))
        random *= norms / np.linalg.norm(random, axis=1, keepdims=True)
        shares = [_mean(feature_dimensionality(draw), there) for draw in random]
        dimensions = feature_dimensionality(columns)
        return {
            "represented": Measured(float(there.sum())),
            "dimensionality": Measured(
                _mean(dimensions, there), nulls={"random": ("draw", np.array(shares))}
            ),
            "feature_norm": ("feature", norms),
            "feature_dimensionality": ("feature", dimensions),
        }


def _mean(values: np.ndarray, there: np.ndarray) -> float:
    return float(values[there].mean()) if there.any() else 0.0
