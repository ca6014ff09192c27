"""A recipe: runs of the marker task over seeds, studied, averaged, drawn on one page."""

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
from ..study import Progress, Study
from ..study.progress import Silent
from ..summary import over_seeds
from ..trajectory import Trajectory
from .evidence import Found
from .pages import check_own, publish
from .tasks import MarkerTask
from .training import MarkerRun, record_marker_runs
from .verdicts import Verdict, verdict_view
from .views import VIEWS


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
class MarkerRecipe:
    """The reproduction of one figure or claim on the marker task.

    Parameters
    ----------
    name
        As the command knows it: ``"execution-figure-1"``.
    title
        Heading of the page.
    claim
        What the paper says, in one sentence.
    source
        Where it says so.
    full, quick
        Sizes.
    judge
        From what was taken of each seed to the verdicts that stand first on the page; None: none.
    limits
        What the quick setting cannot show.
    """

    name: str
    title: str
    claim: str
    source: str
    full: Scale
    quick: Scale
    judge: Callable[[Found], Sequence[Verdict]] | None = None
    limits: str = ""

    def run(
        self,
        folder: str | Path,
        *,
        quick: bool = False,
        text: str | Path | None = None,
        progress: Progress | None = None,
        training: Callable[[int, int, float], None] | None = None,
    ) -> Path:
        """Train, study and draw in `folder`; return the path of the page.

        `progress` hears of the studies, ``training(step, steps, loss)`` of the updates.

        ``folder/runs`` holds the trajectories, which other recipes in the same folder share;
        ``folder/NAME`` (``NAME-quick``) the studies of single seeds, ``result.zarr`` with mean and
        SD over seeds, and ``report.html``. Called again, it goes on where it was.

        Raises
        ------
        ArgumentError
            If the folder holds something else, or a `text` is given: the marker task has none.
        """
        if text is not None:
            raise ArgumentError(f"{self.name} reads no text; leave it out. Got {str(text)!r}.")
        scale, progress = self.quick if quick else self.full, progress or Silent()
        root = Path(folder)
        place = root / (f"{self.name}-quick" if quick else self.name)
        check_own(place)
        found: dict[str, dict[str, list[xr.Dataset]]] = {}
        tree: xr.DataTree | None = None
        for label, run in scale.runs.items():
            progress.note(f"training {label}: {len(scale.seeds)} seeds of {run.steps} steps")
            for seed, trajectory in zip(
                scale.seeds, self._trajectories(root, label, run, scale, training), strict=True
            ):
                tree = self._study(place, label, seed, run, trajectory, scale, progress)
                for observable in scale.observables:
                    data = _whole(tree, observable.name)
                    taken = VIEWS[observable.name].take(data).load()
                    found.setdefault(observable.name, {}).setdefault(label, []).append(taken)
        assert tree is not None
        return self._write(place, found, tree, scale)

    def _trajectories(
        self,
        root: Path,
        label: str,
        run: MarkerRun,
        scale: Scale,
        training: Callable[[int, int, float], None] | None,
    ) -> list[Path]:
        digest = hashlib.blake2b(
            json.dumps([asdict(run), scale.every], sort_keys=True).encode(), digest_size=4
        ).hexdigest()
        return record_marker_runs(
            root / "runs" / f"{_file_name(label)}-{digest}",
            run,
            seeds=scale.seeds,
            every=scale.every,
            progress=training,
        )

    def _study(
        self,
        place: Path,
        label: str,
        seed: int,
        run: MarkerRun,
        folder: Path,
        scale: Scale,
        progress: Progress,
    ) -> xr.DataTree:
        trajectory = Trajectory.from_folder(folder)
        if scale.checkpoints is not None:
            trajectory = trajectory.select(count=scale.checkpoints, spacing="linear")
        counts = scale.markers or run.task.counts
        study = Study(
            trajectory,
            _inputs(run.task, counts, scale.texts),
            [_for_task(observable, run.task, counts) for observable in scale.observables],
            title=f"{self.title}: {label}, seed {seed}",
            batch_size=64,
        )
        return study.run(place / "studies" / f"{_file_name(label)}-seed-{seed}", None, progress)

    def _write(
        self,
        place: Path,
        found: Found,
        tree: xr.DataTree,
        scale: Scale,
    ) -> Path:
        limits = self.limits if scale is self.quick else ""
        verdicts = (
            {}
            if self.judge is None
            else {"verdict": verdict_view(self.judge(found), self.claim, self.source, limits)}
        )
        nodes = {
            name: VIEWS[name].draw(over_seeds(runs), self.claim, self.source)
            for name, runs in found.items()
        }
        settings = {label: asdict(run) for label, run in scale.runs.items()}
        attributes = {
            **tree.attrs,
            "title": self.title,
            "settings": json.dumps({"runs": settings, "seeds": list(scale.seeds)}),
        }
        return publish(place, self.name, {**verdicts, **nodes}, attributes)


def _whole(tree: xr.DataTree, node: str) -> xr.Dataset:
    """Return a node of one seed's result, or say why a reproduction cannot use it."""
    problems = json.loads(tree.attrs["problems"])
    if problems:
        raise ArgumentError(
            f"the study of one seed has problems, so no mean over seeds is taken: {problems[0]}"
        )
    return tree[node].to_dataset()


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
