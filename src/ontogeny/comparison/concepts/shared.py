"""The concepts of several runs as a cell: read once, fitted, and kept in the folder of the first."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import xarray as xr

from ... import activity
from ...errors import StoreError
from ...store import plain
from ...study import Progress, Study
from ...study.cells.cache import combine, read_verified
from ...study.cells.graph import Context, Outcome, StudyCell
from ...study.folder.code import READING, code_of
from ...study.planning.parts import RunPart
from ...study.progress import Silent
from ...study.running.run import left_of
from .fitting import Describing, of_layer
from .node import NODE, node_of
from .view_cells import FOLDER, compute, task_of
from .views import RunViews, began_at, matched_layers, price, views_of

_FIT = (f"{__name__}:_fitted", *READING)


def concepts_of_runs(
    studies: Mapping[str, tuple[Study, Path]], progress: Progress
) -> xr.Dataset:
    """Return the node of the concepts of several runs.

    Parameters
    ----------
    studies
        By the name of the run, its study and the folder that it ran into.
    progress
        Receives what is done.

    Raises
    ------
    ArgumentError
        If a study has no joint concepts, they are of other texts or tokens, or layers do not match.
    """
    cell, first, views = _asked(studies, progress)
    is_left = bool(left_of(first.job, task_of(first, cell)))
    if is_left:
        progress.note(price(views))
        compute(first, [cell], progress)
    result = read_verified(first.job.folder / cell.place)
    if result.status != "done":  # what was read stays, so that it is not read again
        raise StoreError(f"{cell.label}: {result.status}")
    if is_left:
        for of_run in views:
            of_run.forget()
    return result.data


def price_of_concepts(studies: Mapping[str, tuple[Study, Path]]) -> str:
    """Return in words what the concepts of several runs would read and keep."""
    cell, first, views = _asked(studies, Silent())
    if left_of(first.job, task_of(first, cell)):
        return price(views)
    return "concepts over all runs: nothing is to be read"


def _asked(
    studies: Mapping[str, tuple[Study, Path]], progress: Progress
) -> tuple[SharedCell, RunPart, list[RunViews]]:
    """Return the cell of several runs, the run that keeps it, and what it reads of all."""
    runs, controls = (list(views.values()) for views in views_of(studies))
    return SharedCell.of(runs, controls, progress), runs[0].part, [*runs, *controls]


@dataclass(frozen=True, eq=False)
class SharedCell(StudyCell):
    """The node of the concepts of several runs, a cell in the folder of the first.

    It depends on the weights that its views are of, which are gone when it is done.
    """

    fit: Callable[[], xr.Dataset] = field(kw_only=True)
    observed: ClassVar[bool] = False

    @classmethod
    def of(
        cls, runs: Sequence[RunViews], controls: Sequence[RunViews], progress: Progress
    ) -> SharedCell:
        """Return the cell of some runs, and of a control run of each."""
        everything = [*runs, *controls]
        # Joint concepts say how it is fitted.
        of_runs = {
            f"{r.name} {r.part.name}": [
                r.observable.arguments(),
                r.components(),
                r.digests,
            ]
            for r in everything
        }
        code = code_of(_FIT, [type(r.observable) for r in everything])
        components = plain({**code, "runs": of_runs})
        name = combine({"concepts": repr(components)})[:16]
        return cls(
            NODE,
            name,
            Path(FOLDER) / f"{name}.safetensors",
            "the concepts over all runs",
            components,
            fit=partial(_fitted, runs, controls, progress),
        )

    def compute(self, context: Context) -> Outcome:
        """Read all views, and fit layer by layer."""
        return Outcome(self.fit())


def _fitted(
    runs: Sequence[RunViews], controls: Sequence[RunViews], progress: Progress
) -> xr.Dataset:
    """Read all views, and fit layer by layer."""
    layers, words = matched_layers(runs)
    files = {}
    of_controls = {}
    for run in runs:
        progress.note(f"reading the concepts of {run.name}")
        files[run.name] = run.read(progress)
    for run in controls:
        of_controls[run.name] = run.read(progress)
    describing = Describing.of(runs[0])
    fitted = {}
    start = began_at(runs, files)
    # A run made nothing of the concepts of one that was trained from it.
    is_base_second = start is None and began_at(runs[::-1], files) is not None
    for label in layers:
        doing = f"fitting the concepts of {label} over {len(runs)} runs"
        progress.note(doing)
        activity.now(doing)
        beside = []
        if controls:
            beside = [of_layer(controls, of_controls, layers[label], None)]
        one = of_layer(runs, files, layers[label], describing, start)
        fitted[label] = (replace(one, change=None) if is_base_second else one, beside)
    names = [run.name for run in runs]
    node = node_of(fitted, names, f"{runs[0].note} {words}".strip())
    if start is None and not any(one.change is not None for one, _ in fitted.values()):
        return node
    return node.assign(began_at=math.nan if start is None else float(start))
