"""How far activations still are from those of the reference checkpoint (row A9's signal)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from ..distances import align
from ..figures import Curves, Section, attach
from ..needs import Activations, Need, Reference
from .attributes import Names
from .base import Observable, by_layer
from .rows import MEASURABLE, development_rows, reference_index, statement

__all__ = ["ActivationDecay"]


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
    label
        Name of the node, where a study holds this kind twice.

    Examples
    --------
    >>> ActivationDecay("model.layers.*.mlp").name
    'activation-decay'
    """

    layers: str | tuple[str, ...]
    on: str | None = None
    tokens: str = "all"
    max_tokens: int | None = 5000
    random_state: int = 0
    label: str | None = None

    kind: ClassVar[str] = "activation-decay"
    variables: ClassVar[Names] = {
        "distance": ("distance of activations to the reference step", "activation units"),
        "relative": ("distance relative to the norms", "1"),
        "rotation_removed": ("distance after the best rotation, relative to the norms", "1"),
        "norm": ("norm of the activations", "activation units"),
        "stderr": ("standard error of the distance after rotation", "1"),
        "low": ("distance after rotation, lower end", "1"),
        "high": ("distance after rotation, upper end", "1"),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs()

    def needs(self) -> Sequence[Need]:
        """Return the activations here and at the reference step."""
        own = Activations(self.layers, self.on, self.tokens, self.max_tokens, self.random_state)
        return [own, Reference(own)]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return distances, absolute and relative to the norms, with standard errors."""
        own, reference = self.needs()
        there = reading[reference]
        return by_layer(reading[own], lambda path, here: _distances(here, there[path]))

    def summarise(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Add intervals, development rows and figures."""
        spread = 1.96 * data.stderr
        data = data.assign(
            low=(data.rotation_removed - spread).clip(min=0), high=data.rotation_removed + spread
        )
        values = data.rotation_removed.transpose("layer", "step").values
        floor = _floor(data.stderr.transpose("layer", "step").values)
        layers = [str(layer) for layer in data.layer.values]
        data = data.assign(
            development_rows(
                [f"{layer} · activations" for layer in layers],
                layers,
                data.step.values,
                values,
                floor=floor,
                reference_index=reference_index(data),
            )
        )
        data.distance.attrs.update(symbol="‖Aₜ − A_ref‖_F")
        return attach(data, _SECTION, _FIGURES, statement(data, "The activations of {layer}"))


def _distances(here: torch.Tensor, there: torch.Tensor) -> dict[str, Any]:
    A, B = here.double().cpu(), there.double().cpu()
    norm = float((A.square().sum() + B.square().sum()).sqrt())
    if norm == 0:
        raise ValueError("all activations are zero at this step and at the reference")
    residual = (align(B, A, under="rotation").aligned - B).square().sum(1)
    raw, left = float((A - B).square().sum().sqrt()), float(residual.sum().sqrt())
    spread = float(residual.std() * len(residual) ** 0.5 / (2 * left)) if left > 0 else 0.0
    return {
        "distance": raw,
        "relative": raw / norm,
        "rotation_removed": left / norm,
        "stderr": spread / norm,
        "norm": float(A.square().sum().sqrt()),
    }


def _floor(error: np.ndarray) -> np.ndarray:
    """Return the noise of a change since the first step, (layers, steps); 0 at gaps."""
    there = np.isfinite(error)
    first = np.take_along_axis(error, there.argmax(axis=1)[:, None], axis=1)
    floor = 1.96 * np.sqrt(error**2 + first**2) + MEASURABLE
    return np.where(there, floor, 0.0)


_SECTION = Section(
    title="Activation decay",
    definition="How far the activations of a layer still are from those of the reference step, "
    "on the same tokens.",
    symbol="sₜ = ‖Aₜ − A_ref‖_F",
    null="0 at the reference step by definition, which is left out of the verdict. Intervals: "
    "resampling tokens. A rotation of the whole feature space is no development; it is removed "
    "by the best orthogonal map.",
    care="Relative values divide by √(‖Aₜ‖² + ‖A_ref‖²): two unrelated sets of activations "
    "give about 1. With fewer tokens than features the best rotation fits too well.",
    source="Bernas 2025, sec. 5.4, Figs 6-7",
)
_FIGURES = [
    Curves(
        "rotation-removed",
        "Distance after the best rotation",
        value="rotation_removed",
        interval=("low", "high"),
        caption="Relative to the norms. What a change of basis cannot explain; shade: ±1.96 "
        "standard errors over tokens.",
    ),
    Curves(
        "distance",
        "Distance as it is",
        value="distance",
        relative="relative",
        relative_label="√(‖Aₜ‖² + ‖A_ref‖²)",
        caption="The signal of the report: rotation and growth of the activations included.",
    ),
]
