"""Loss on fixed texts: the clock that every other curve is read against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ..figures import Curves, Section, attach
from ..needs import Losses, Need
from .attributes import Names
from .base import Observable
from .rows import development_rows, paired_floor, paired_stderr, statement

__all__ = ["Loss"]


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
    label
        Name of the node, where a study holds this kind twice.

    Examples
    --------
    >>> Loss().needs()[0].objective
    'auto'
    """

    on: str | None = None
    objective: str = "auto"
    mask_fraction: float = 0.15
    random_state: int = 0
    label: str | None = None

    kind: ClassVar[str] = "loss"
    variables: ClassVar[Names] = {
        "loss": ("loss on fixed texts", "nats per token"),
        "stderr": ("standard error of the loss over texts", "nats per token"),
        "loss_of_text": ("loss on each text", "nats per token"),
        "predicted_tokens": ("predicted tokens of the text", "tokens"),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs()

    def needs(self) -> Sequence[Need]:
        """Return the losses of every text."""
        return [Losses(self.on, self.objective, self.mask_fraction, self.random_state)]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return ``loss``, ``stderr`` and the loss of every text."""
        losses = reading[self.needs()[0]]
        per_text, weights = losses.loss.values.astype(np.float64), losses.tokens.values
        counted = weights > 0
        mean = float(np.average(per_text[counted], weights=weights[counted]))
        return xr.Dataset(
            {
                "loss": mean,
                "stderr": float(paired_stderr(per_text, weights)),
                "loss_of_text": ("text", per_text),
                "predicted_tokens": ("text", weights),
            }
        )

    def summarise(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Add the interval, the development row and the figure."""
        weights = data.predicted_tokens.max("step").values
        data = data.assign(
            loss_low=data.loss - 1.96 * data.stderr, loss_high=data.loss + 1.96 * data.stderr
        )
        floor = paired_floor(data.loss_of_text.transpose("step", "text").values, weights)
        data = data.assign(
            development_rows(
                ["loss"], [""], data.step.values, data.loss.values[None], floor=floor[None]
            )
        )
        section = Section(
            title="Loss on fixed texts",
            definition="Mean negative log-probability of the right token at the predicted "
            "positions; the same texts, and the same masked positions, at every step.",
            symbol="L(θₜ) = −mean log p(xᵢ | context; θₜ)",
            null="A change counts where it exceeds 1.96 standard errors of the paired "
            "difference over texts, and its order in time beats shuffled orders.",
            care="Measured on the study's texts only, so its level depends on them.",
        )
        figure = Curves(
            "loss",
            "Loss on fixed texts",
            value="loss",
            series=None,
            interval=("loss_low", "loss_high"),
            caption="Line: mean over predicted tokens. Shade: ±1.96 standard errors over texts.",
        )
        return attach(data, section, [figure], statement(data, "The loss"), role="track")
