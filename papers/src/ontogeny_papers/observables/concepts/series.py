"""What observables share that read the dictionaries of a `Concepts` node over all steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ontogeny.errors import ArgumentError
from ontogeny.needs import Need, Series
from ontogeny.observables import Observable, SeriesReading
from ontogeny.observables.arguments import check_node
from ontogeny.observables.catalogued import SECONDS


@dataclass(frozen=True)
class ConceptSeries(Observable):
    """An observable of the dictionaries of the node `of`; its node is called ``of-suffix``."""

    of: str

    suffix: ClassVar[str] = ""
    requires = "a node of concepts"
    price = SECONDS

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        check_node("of", self.of)

    @property
    def name(self) -> str:
        """The label, or the name of the concepts with what the kind adds to it."""
        return getattr(self, "label", None) or f"{self.of}-{self.suffix}"

    @property
    def depends_on(self) -> tuple[str, ...]:  # type: ignore[override]
        """The concepts' node, which holds the refits."""
        return (self.of,)

    def check_nodes(self, observables: Mapping[str, Observable]) -> None:
        """Refuse a node that stores no dictionaries."""
        if getattr(observables[self.of], "keep_dictionaries", "") == "none":
            raise ArgumentError(
                f"{self.name} reads the dictionaries of {self.of}, which does not store them; give "
                f"that keep_dictionaries='float32' or 'float16'."
            )

    def needs(self) -> Sequence[Need]:
        """Return the dictionaries of all steps."""
        return [Series(self.of, ("dictionary",))]


def finished_dictionaries(
    reading: SeriesReading,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Return finished steps (T,), features (m,), dictionaries (T, m, r) in float64, and an index.

    The index is that of the reference step, or of the finished step nearest to it.

    Raises
    ------
    ArgumentError
        If fewer than two steps are finished.
    """
    data = reading.data.dropna("feature", how="all", subset=["dictionary"])
    steps = data.step.values
    if len(steps) < 2:
        raise ArgumentError(f"needs at least two finished steps; got {len(steps)}.")
    W = data.dictionary.transpose("step", "feature", "concept").values.astype(
        np.float64
    )
    return (
        steps,
        data.feature.values,
        W,
        int(np.argmin(np.abs(steps - reading.reference_step))),
    )
