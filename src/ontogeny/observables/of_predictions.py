"""What observables of a model's predictions share: the model to be asked, and the texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..needs import InputSet, Need, Predictor
from .base import Observable


@dataclass(frozen=True, kw_only=True)
class OfPredictions(Observable):
    """An observable of what a model predicts on an input set.

    `Predictor` refuses another objective than ``"auto"``, ``"causal"`` and ``"masked"``.
    """

    on: str | None = None
    objective: str = "auto"

    requires = "texts, a vocabulary head"
    obstacles: ClassVar[tuple[str, ...]] = ("no_prediction",)

    def needs(self) -> Sequence[Need]:
        """Return the model to be asked, and the texts."""
        return [Predictor(self.on, self.objective), InputSet(self.on)]
