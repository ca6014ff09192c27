"""How far activations still are from those of the reference checkpoint (row A9's signal)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import xarray as xr

from ...distances import align
from ...figures import Section
from ...needs import Activations, Need, Reference
from ...quantities import Measured, Quantity
from ...summary import Names, Units
from ..base import Observable, by_layer


@dataclass(frozen=True)
class ActivationDecay(Observable):
    """Distance of every layer's activations to the reference step's, on the same tokens.

    ``distance`` is the signal of the report (sec. 5.4), the Frobenius norm of A_t - A_ref;
    ``rotation_removed`` is what remains after the best orthogonal map of the feature space, which
    a mere change of basis cannot move.

    Parameters
    ----------
    layers
        Glob or globs over module paths.
    on, tokens, max_tokens, random_state
        Which tokens; see `ontogeny.needs.Activations`.

    Examples
    --------
    >>> ActivationDecay("model.layers.*.mlp").name
    'activation-decay'
    """

    layers: str | tuple[str, ...] = "mlp"
    on: str | None = None
    tokens: str = "all"
    max_tokens: int | None = 5000
    random_state: int = 0

    kind: ClassVar[str] = "activation-decay"
    version: ClassVar[int] = 2
    quantities: ClassVar[tuple[Quantity, ...]] = (
        Quantity(
            "rotation_removed",
            "distance after the best rotation",
            rows="{layer} · activations",
            subject="The activations of {layer}",
            relative_to="reference",
            minimum=0.0,
            caption="Relative to the norms. What a change of basis cannot explain.",
        ),
        Quantity(
            "distance",
            "distance of activations to the reference step",
            units="activation units",
            symbol="‖Aₜ − A_ref‖_F",
            heading="distance as it is",
            share="relative",
            share_of="√(‖Aₜ‖² + ‖A_ref‖²)",
            caption="The signal of the report: rotation and growth of the activations included.",
        ),
    )
    section: ClassVar[Section] = Section(
        title="Activation decay",
        definition="How far the activations of a layer still are from those of the reference step, "
        "on the same tokens.",
        symbol="sₜ = ‖Aₜ − A_ref‖_F",
        null="0 at the reference step by definition, which is left out of the verdict. Intervals: "
        "resampling texts. A rotation of the whole feature space is no development; it is removed "
        "by the best orthogonal map.",
        care="Relative values divide by √(‖Aₜ‖² + ‖A_ref‖²): two unrelated sets of activations "
        "give about 1. With fewer tokens than features the best rotation fits too well.",
        source="Bernas 2025, sec. 5.4, Figs 6-7",
    )
    variables: ClassVar[Names] = {
        "relative": ("distance relative to the norms", "1"),
        "norm": ("norm of the activations", "activation units"),
    }

    def needs(self) -> Sequence[Need]:
        """Return the activations here and at the reference step."""
        own = Activations(self.layers, self.on, self.tokens, self.max_tokens, self.random_state)
        return [own, Reference(own)]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return distances, absolute and relative to the norms, with standard errors."""
        own, reference = self.needs()
        there, units = reading[reference], Units(reading.units(own))
        return by_layer(reading[own], lambda path, here: _distances(here, there[path], units))


def _distances(here: torch.Tensor, there: torch.Tensor, units: Units) -> dict[str, Any]:
    A, B = here.double().cpu(), there.double().cpu()
    norm = float((A.square().sum() + B.square().sum()).sqrt())
    if norm == 0:
        raise ValueError("all activations are zero at this step and at the reference")
    residual = (align(B, A, under="rotation").aligned - B).square().sum(1)
    left = float(residual.sum().sqrt())
    spread = units.sum_stderr(residual.numpy())
    if spread is not None:  # of a root, by its derivative
        spread = spread / (2 * left * norm) if left > 0 else 0.0
    raw = float((A - B).square().sum().sqrt())
    return {
        "rotation_removed": Measured(left / norm, stderr=spread),
        "distance": raw,
        "relative": raw / norm,
        "norm": float(A.square().sum().sqrt()),
    }
