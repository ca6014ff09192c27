"""A recipe that trains over seeds, studies every seed by observables, and averages."""

from __future__ import annotations

import abc
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from ontogeny.errors import ArgumentError
from ontogeny.inputs import Inputs
from ontogeny.observables import Observable
from ontogeny.study import Study, StudyResult
from ontogeny.trajectory import Trajectory

from .averages import average_node
from .recipe import Findings, Materials, Recipe
from .verdicts import Found


@dataclass(frozen=True)
class TrainedRecipe(Recipe):
    """A recipe whose sizes name runs, seeds and observables; a subclass trains.

    A size has ``runs`` by the label of the comparison, ``seeds``, ``every`` (steps between recorded
    checkpoints), ``observables``, and ``checkpoints``: how many of the recorded ones are studied,
    evenly spaced, or None for all.

    Parameters
    ----------
    reduced
        From each seed's nodes to those that `judge` is given, with numbers in place of what is too
        large to be stored beside its sentences.
    controls
        Turned control runs in the study of each seed.
    """

    controls: int = 0
    reduced: Callable[[Found], Found] = lambda results: results

    @abc.abstractmethod
    def record(
        self, run: Any, folder: Path, size: Any, materials: Materials
    ) -> list[Path]:
        """Train a run once for each seed; return the folders of their trajectories."""

    @abc.abstractmethod
    def inputs(
        self, run: Any, trajectory: Trajectory, size: Any, materials: Materials
    ) -> dict[str, Inputs]:
        """Return the input sets of a run's study."""

    def runs_folder(
        self, label: str, run: Any, size: Any, materials: Materials
    ) -> Path:
        """Return where the seeds of a run are recorded, for all recipes of one output folder.

        A run that another recipe or comparison calls by another name is trained once.
        """
        runs = materials.folder.parent / "runs"
        name = folder_name(label, [asdict(run), size.every])
        same = sorted(runs.glob(f"*-{name.rpartition('-')[2]}"))
        return same[0] if same else runs / name

    def study_folder(
        self, label: str, seed: int, recorded: Path, materials: Materials
    ) -> Path:
        """Return where the study of one seed lies."""
        return materials.folder / "studies" / f"{_file_name(label)}-seed-{seed}"

    def control_settings(self, size: Any) -> dict[str, Any]:
        """Return how many control runs each study has, and other arguments on them."""
        return {"controls": self.controls}

    def opened(self, run: Any, folder: Path) -> Trajectory:
        """Return a recorded trajectory."""
        return Trajectory.from_folder(folder)

    def adapted(self, observable: Observable, run: Any, size: Any) -> Observable:
        """Return an observable with what depends on the run filled in."""
        return observable

    def measured(self, size: Any, materials: Materials) -> Findings:
        """Train and study every seed of every run."""
        results: dict[str, dict[str, list[xr.Dataset]]] = {}
        attributes: Mapping[Any, Any] = {}
        for label, run in size.runs.items():
            materials.progress.note(f"training {label}: {len(size.seeds)} seeds")
            folder = self.runs_folder(label, run, size, materials)
            folders = self.record(run, folder, size, materials)
            for seed, recorded in zip(size.seeds, folders, strict=True):
                tree = self._study(label, seed, recorded, size, materials)
                attributes = tree.attrs
                for observable in size.observables:
                    node = tree[observable.name].to_dataset().load()
                    results.setdefault(observable.name, {}).setdefault(
                        label, []
                    ).append(node)
        nodes = {
            observable.name: average_node(
                observable, results[observable.name], self.claim, self.source
            )
            for observable in size.observables
        }
        numbers = self.reduced(results)
        return Findings(nodes, (numbers,), attributes)

    def _study(
        self, label: str, seed: int, folder: Path, size: Any, materials: Materials
    ) -> StudyResult:
        """Return the study of one seed.

        Raises
        ------
        ArgumentError
            If it has problems.
        """
        run = size.runs[label]
        trajectory = self.opened(run, folder)
        if size.checkpoints is not None:
            trajectory = trajectory.select(count=size.checkpoints, spacing="linear")
        study = Study(
            trajectory,
            self.inputs(run, trajectory, size, materials),
            [self.adapted(observable, run, size) for observable in size.observables],
            title=f"{self.title}: {label}, seed {seed}",
            batch_size=64,
            **self.control_settings(size),
        )
        place = self.study_folder(label, seed, folder, materials)
        tree = study.run(place, None, materials.progress)
        if problems := json.loads(tree.attrs["problems"]):
            raise ArgumentError(
                f"the study of one seed has problems, so no mean over seeds is taken: {problems[0]}"
            )
        return tree


def folder_name(label: str, settings: Any) -> str:
    """Return the name of a run's folder, the same for recipes that train the same."""
    digest = hashlib.blake2b(
        json.dumps(settings, sort_keys=True).encode(), digest_size=4
    )
    return f"{_file_name(label)}-{digest.hexdigest()}"


def _file_name(label: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in label).strip("-").lower()
