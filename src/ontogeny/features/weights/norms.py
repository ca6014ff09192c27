"""Norms and ranks of weight matrices, at each step on its own: cheap enough for a live model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import xarray as xr
from torch import Tensor

from ... import geometry
from ...errors import NonFiniteError
from ...figures import Section
from ...needs import Need
from ...observables import Observable, Reading, by_layer
from ...observables.matrices import Matrices
from ...quantities import Quantity


@dataclass(frozen=True)
class WeightNorms(Observable):
    """Frobenius norm and stable rank of each weight matrix, at each step.

    The stable rank is the squared Frobenius norm over the squared spectral norm: between 1 and the
    rank, and not changed by scaling. Both say how matrices grow and flatten; neither says that
    anything was learned.

    Parameters
    ----------
    blocks
        Which matrices: globs over names, or short names such as ``"mlp"`` and ``"q"``.

    Examples
    --------
    >>> WeightNorms("mlp").needs()
    [Matrices(blocks='mlp')]
    """

    blocks: str | tuple[str, ...] = "**.weight"

    kind = "weight-norms"
    question = "How large is each weight matrix, and over how many directions?"
    requires = "weights alone"
    price = "one decomposition for each matrix and step"
    role = "motion"
    quantities = (
        Quantity("norm", "Frobenius norm", units="weight units"),
        Quantity("stable_rank", "stable rank", units="directions"),
    )
    section = Section(
        title="Weight norms",
        definition="How large each weight matrix is, and over how many directions its size is "
        "spread.",
        symbol="‖W‖_F,  ‖W‖²_F / ‖W‖²₂",
        care="A matrix that is scaled has another norm and the same stable rank. Where a norm "
        "follows the matrix, scaling changes nothing that the model does.",
        source="Rudelson and Vershynin 2007",
    )

    def needs(self) -> Sequence[Need]:
        """Return the matrices."""
        return [Matrices(self.blocks)]

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return norm and stable rank of every matrix."""
        return by_layer(reading[self.needs()[0]], lambda _, W: _measures(W))


def _measures(W: Tensor) -> dict[str, float]:
    """Return norm and stable rank, from the moments of the smaller side in double precision."""
    # Which has no double precision.
    W = W.detach().cpu() if W.device.type == "mps" else W.detach()
    W = W.double()
    if not bool(torch.isfinite(W).all()):
        raise NonFiniteError("the weights hold NaN or infinity")
    moment = W @ W.T if W.shape[0] < W.shape[1] else W.T @ W
    energy = torch.linalg.eigvalsh(moment).clamp(min=0)
    rank = geometry.stable_rank(spectrum=energy.sqrt().cpu().numpy())
    return {"norm": float(energy.sum().sqrt()), "stable_rank": rank}
