"""A recipe on the marker task: trained over seeds, every seed studied, averaged."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from ..errors import ArgumentError
from ..inputs import Inputs
from ..observables import Observable
from ..study import Study, StudyResult
from ..trajectory import Trajectory
from .averages import average_node
from .evidence import Found
from .recipe import Findings, Materials, Recipe
from .tasks import MarkerTask
from .training import MarkerRun, record_marker_runs
from .verdicts import Verdict


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
class MarkerRecipe(Recipe):
    """The reproduction of one figure or claim on the marker task; sizes are of `Scale`.

    Parameters
    ----------
    judge
        From each seed's nodes to the verdicts that stand first on the page; None: none.
    """

    judge: Callable[[Found], Sequence[Verdict]] | None = None

    def measured(self, size: Scale, materials: Materials) -> Findings:
        """Train and study every seed of every run."""
        found: dict[str, dict[str, list[xr.Dataset]]] = {}
        attributes: Mapping[Any, Any] = {}
        for label, run in size.runs.items():
            materials.progress.note(
                f"training {label}: {len(size.seeds)} seeds of {run.steps} steps"
            )
            folders = _trained(label, run, size, materials)
            for seed, folder in zip(size.seeds, folders, strict=True):
                tree = self._study(label, seed, folder, size, materials)
                attributes = tree.attrs
                for observable in size.observables:
                    node = tree[observable.name].to_dataset().load()
                    found.setdefault(observable.name, {}).setdefault(label, []).append(node)
        nodes = {
            observable.name: average_node(
                observable, found[observable.name], self.claim, self.source
            )
            for observable in size.observables
        }
        return Findings([] if self.judge is None else self.judge(found), nodes, attributes)

    def _study(
        self, label: str, seed: int, folder: Path, size: Scale, materials: Materials
    ) -> StudyResult:
        """Return the study of one seed.

        Raises
        ------
        ArgumentError
            If it has problems.
        """
        trajectory = Trajectory.from_folder(folder)
        if size.checkpoints is not None:
            trajectory = trajectory.select(count=size.checkpoints, spacing="linear")
        task = size.runs[label].task
        counts = size.markers or task.counts
        study = Study(
            trajectory,
            _inputs(task, counts, size.texts),
            [_for_task(observable, task, counts) for observable in size.observables],
            title=f"{self.title}: {label}, seed {seed}",
            batch_size=64,
        )
        place = materials.folder / "studies" / f"{_file_name(label)}-seed-{seed}"
        tree = study.run(place, None, materials.progress)
        if problems := json.loads(tree.attrs["problems"]):
            raise ArgumentError(
                f"the study of one seed has problems, so no mean over seeds is taken: {problems[0]}"
            )
        return tree


def _trained(label: str, run: MarkerRun, size: Scale, materials: Materials) -> list[Path]:
    """Return the trajectories of a run, which recipes in one folder share."""
    settings = json.dumps([asdict(run), size.every], sort_keys=True)
    digest = hashlib.blake2b(settings.encode(), digest_size=4).hexdigest()
    return record_marker_runs(
        materials.folder.parent / "runs" / f"{_file_name(label)}-{digest}",
        run,
        seeds=size.seeds,
        every=size.every,
        progress=materials.training,
    )


def _inputs(task: MarkerTask, counts: tuple[int, ...], texts: int) -> dict[str, Inputs]:
    sets = {f"m={m}": task.inputs(texts, m, markers=m) for m in counts}
    return {**sets, "mixed": task.inputs(4 * texts, 0, markers=task.counts)}


def _for_task(observable: Observable, task: MarkerTask, counts: tuple[int, ...]) -> Observable:
    """Fill in what depends on the run: the sets to read, the marker's tokens."""
    fields: dict[str, Any] = {}
    if observable.kind in ("readout-accuracy", "readout-attention"):
        fields["on"] = tuple(f"m={m}" for m in counts)
    elif observable.kind in ("commutators", "projection", "sae-probe"):
        fields["on"] = "mixed"
    if observable.kind == "sae-probe":
        fields["marker_ids"] = task.marker_ids
    return dataclasses.replace(observable, **fields)


def _file_name(label: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in label).strip("-").lower()
