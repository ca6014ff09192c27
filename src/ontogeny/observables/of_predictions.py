"""What observables of a model's predictions share: the model to be asked, and the texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..needs import InputSet, Need, Predictor
from .base import Observable


class OfPredictions(Observable):
    """An observable of what a model predicts on an input set; its subclasses have these fields.

    They are no fields of this class, see `ontogeny.observables.of_activations.OfActivations`.
    `Predictor` refuses another objective than ``"auto"``, ``"causal"`` and ``"masked"``.
    """

    on: str | None
    objective: str

    requires = "texts, a vocabulary head"
    obstacles: ClassVar[tuple[str, ...]] = ("no_prediction",)

    def needs(self) -> Sequence[Need]:
        """Return the model to be asked, and the texts."""
        return [Predictor(self.on, self.objective), InputSet(self.on)]
