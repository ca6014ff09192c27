"""Loss on fixed texts: the clock that every other curve is read against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ...figures import Section
from ...needs import Losses, Need
from ...quantities import Measured, Quantity
from ..base import Observable, dataset


@dataclass(frozen=True)
class Loss(Observable):
    """Mean loss on the study's texts, in nats per predicted token.

    Parameters
    ----------
    on
        Input set; the first by default.
    objective
        ``"auto"``, ``"causal"`` or ``"masked"``.
    mask_fraction, random_state
        Which tokens are masked, the same at every step.

    Examples
    --------
    >>> Loss().needs()[0].objective
    'auto'
    """

    on: str | None = None
    objective: str = "auto"
    mask_fraction: float = 0.15
    random_state: int = 0

    kind: ClassVar[str] = "loss"
    version: ClassVar[int] = 2
    role: ClassVar[str] = "track"
    quantities: ClassVar[tuple[Quantity, ...]] = (
        Quantity(
            "loss",
            "loss on fixed texts",
            units="nats per token",
            rows="loss",
            subject="The loss",
            caption="Line: mean over predicted tokens.",
        ),
    )
    section: ClassVar[Section] = Section(
        title="Loss on fixed texts",
        definition="Mean negative log-probability of the right token at the predicted "
        "positions; the same texts, and the same masked positions, at every step.",
        symbol="L(θₜ) = −mean log p(xᵢ | context; θₜ)",
        null="A change counts where it exceeds 1.96 standard errors of the paired "
        "difference over texts, and its order in time beats shuffled orders.",
        care="Measured on the study's texts only, so its level depends on them.",
    )

    def needs(self) -> Sequence[Need]:
        """Return the losses of every text."""
        return [Losses(self.on, self.objective, self.mask_fraction, self.random_state)]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return the mean loss and that of every text, weighted by its predicted tokens."""
        losses = reading[self.needs()[0]]
        of_text, weights = losses.loss.values.astype(np.float64), losses.tokens.values
        counted = weights > 0
        mean = float(np.average(of_text[counted], weights=weights[counted]))
        of_text = np.where(counted, of_text, 0.0)
        units = reading.units(self.needs()[0])
        return dataset({"loss": Measured.over_texts(mean, of_text, weights, units)})
