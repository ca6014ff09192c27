"""How far activations still are from those of the reference checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import xarray as xr

from ...distances.features import squared_distances
from ...figures import Section
from ...needs import Need
from ...needs.derived import Reference
from ...observables.catalogued import SOME_LAYERS, PresetEntry
from ...observables.of_activations import OfSampledActivations
from ...observables.rotations import Rotations
from ...observables.variables import by_layer
from ...quantities import Measured, Quantity
from ...units import Units


@dataclass(frozen=True)
class ActivationDecay(OfSampledActivations):
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

    kind = "activation-decay"
    question = "How far are a layer's activations from those of the last checkpoint?"
    presets = (
        PresetEntry(
            ("quick", "standard", "fine-tuning", "everything"), SOME_LAYERS, 130
        ),
    )
    quantities = (
        Quantity(
            "rotation_removed",
            "distance after the best rotation",
            rows="{layer} · activations",
            relative_to="reference",
            minimum=0.0,
            caption="Relative to the norms. What a change of basis cannot explain.",
        ),
        Quantity(
            "distance",
            "distance of activations to the reference {checkpoint}",
            units="activation units",
            symbol="‖Aₜ − A_ref‖_F",
            heading="distance as it is",
            share="relative",
            share_of="√(‖Aₜ‖² + ‖A_ref‖²)",
            caption="The signal of the report: rotation and growth of the activations included.",
        ),
    )
    section = Section(
        title="Activation decay",
        definition="How far the activations of a layer still are from those of the reference "
        "{checkpoint}, on the same tokens.",
        symbol="sₜ = ‖Aₜ − A_ref‖_F",
        null="0 at the reference {checkpoint} by definition, which is left out of the verdict. "
        "Intervals: resampling texts. A rotation of the whole feature space is no development; it "
        "is removed by the best orthogonal map.",
        care="Relative values divide by √(‖Aₜ‖² + ‖A_ref‖²): two unrelated sets of activations "
        "give about 1. With fewer tokens than features the best rotation fits too well.",
        source="Bernas 2025, sec. 5.4, Figs 6-7",
    )
    variables = {
        "relative": ("distance relative to the norms", "1"),
        "norm": ("norm of the activations", "activation units"),
    }

    def needs(self) -> Sequence[Need]:
        """Return the activations here and at the reference step."""
        return [self.activations, Reference(self.activations)]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return distances, absolute and relative to the norms, with standard errors."""
        activations = self.activations
        reference = Reference(self.activations)
        there = reading[reference]
        units = Units(reading.units(activations))

        def one(path: str, here: torch.Tensor) -> dict[str, Any]:
            rotations = Rotations(reading, reference, path, here, there[path].to(here))
            return _distances(rotations, units)

        return by_layer(reading[activations], one)


def _distances(rotations: Rotations, units: Units) -> dict[str, Any]:
    A = rotations.here
    B = rotations.there
    origin = torch.zeros_like(A[:1]).expand_as(A)
    squares, reference = (float(squared_distances(X, origin).sum()) for X in (A, B))
    norm = (squares + reference) ** 0.5
    if norm == 0:
        raise ValueError("all activations are zero at this step and at the reference")
    residual = squared_distances(A, B, rotations.best)
    distance = float(residual.sum()) ** 0.5
    spread = units.sum_stderr(residual.cpu().numpy())
    if spread is not None:  # of a root, by its derivative
        spread = spread / (2 * distance * norm) if distance > 0 else 0.0
    raw = float(squared_distances(A, B).sum()) ** 0.5
    return {
        "rotation_removed": Measured(distance / norm, stderr=spread),
        "distance": raw,
        "relative": raw / norm,
        "norm": squares**0.5,
    }
