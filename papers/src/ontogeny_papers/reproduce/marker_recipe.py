"""A recipe on the marker task: trained over seeds, every seed studied, averaged."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ontogeny.inputs import Inputs
from ontogeny.observables import Observable
from ontogeny.trajectory import Trajectory

from .recipe import Materials
from .trained_recipe import TrainedRecipe
from .training import MarkerRun, record_marker_runs


@dataclass(frozen=True)
class Scale:
    """How large a reproduction is.

    Parameters
    ----------
    runs
        What is trained, by the label of the comparison; one without a comparison.
    seeds
        Seeds of each.
    every
        Steps between recorded checkpoints.
    observables
        What is observed.
    checkpoints
        How many of the recorded checkpoints are studied, evenly spaced; None: all.
    markers
        Numbers m that are tested; None: those that are trained.
    texts
        Examples of each m: with 512, 95 % intervals of an accuracy are at most ± .044.
    """

    runs: Mapping[str, MarkerRun]
    seeds: tuple[int, ...]
    every: int
    observables: tuple[Observable, ...]
    checkpoints: int | None = None
    markers: tuple[int, ...] | None = None
    texts: int = 512


@dataclass(frozen=True)
class MarkerRecipe(TrainedRecipe):
    """The reproduction of one figure or claim on the marker task; sizes are of `Scale`."""

    def record(
        self, run: MarkerRun, folder: Path, size: Scale, materials: Materials
    ) -> list[Path]:
        """Train a run once for each seed; recipes in one folder share what is trained."""
        return record_marker_runs(
            folder, run, seeds=size.seeds, every=size.every, progress=materials.training
        )

    def inputs(
        self, run: MarkerRun, trajectory: Trajectory, size: Scale, materials: Materials
    ) -> dict[str, Inputs]:
        """Return one set for each number m that is tested, and one of all that are trained."""
        task = run.task
        sets = {
            set_name(m): task.inputs(size.texts, m, markers=m)
            for m in _tested(run, size)
        }
        return {**sets, "mixed": task.inputs(4 * size.texts, 0, markers=task.counts)}

    def adapted(
        self, observable: Observable, run: MarkerRun, size: Scale
    ) -> Observable:
        """Return an observable with the sets that it reads and the marker's tokens."""
        fields: dict[str, Any] = {}
        if observable.kind in ("readout-accuracy", "readout-attention"):
            fields["on"] = tuple(map(set_name, _tested(run, size)))
        elif observable.kind in ("commutators", "projection", "sae-probe"):
            fields["on"] = "mixed"
        if observable.kind == "sae-probe":
            fields["marker_ids"] = run.task.marker_ids
        return dataclasses.replace(observable, **fields)


def _tested(run: MarkerRun, size: Scale) -> tuple[int, ...]:
    return size.markers or run.task.counts


def set_name(m: int) -> str:
    """Return what the set of examples of one number of markers is called in results."""
    return f"m={m}"
