"""The rotation of a layer's activations onto the reference step's, one for all observables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from ..distances.features import FeatureRotation, feature_rotation
from ..needs.derived import Reference
from .readings import Reading


@dataclass(frozen=True)
class Rotations:
    """The rotations of one layer at one step.

    At wide layers each costs more than most fits, so they are shared by all observables of a
    checkpoint.
    """

    reading: Reading
    need: Reference
    layer: str
    here: torch.Tensor
    there: torch.Tensor

    @property
    def best(self) -> FeatureRotation | None:
        """The one that brings the activations nearest to the reference's; None is the identity."""
        if self.reading.step == self.reading.reference_step:
            return None
        return self._shared("best", lambda: self.here)

    def out_of_order(self, seed: int) -> FeatureRotation:
        """Return the best one for tokens in a random order, where nothing is shared."""
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(self.here), generator=generator).to(self.here.device)
        return self._shared(f"out of order {seed}", lambda: self.here[order])

    def _shared(self, which: str, rows: Callable[[], torch.Tensor]) -> FeatureRotation:
        rotation: FeatureRotation = self.reading.shared(
            self.need, (self.layer, which), lambda: feature_rotation(rows(), self.there)
        )
        return rotation
