"""What is left of a task that was planned a while ago, where other processes work in the folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from .judging import judge, looked_at
from .layout import cell_path, reference_path, state_path
from .tasks import BlockTask, Job, SeriesTask, StateTask, StepTask, Task

__all__ = ["remaining"]

K = TypeVar("K")


def remaining(job: Job, task: Task) -> tuple[Task | None, int]:
    """Return the task without what is done by now, None if that is all of it; and how much it is.

    What failed elsewhere is left: it is tried here too, so that this process can say why.
    """
    if isinstance(task, SeriesTask):
        done = _stands(cell_path(job.folder, task.node, task.layer), task.fingerprint)
        return (None, 1) if done else (task, 0)
    if isinstance(task, StateTask):
        return _states(job, task)
    rest: StepTask | BlockTask
    if isinstance(task, StepTask):
        steps = {n: cell_path(job.folder, n, task.step) for n in task.cells}
        rest = replace(task, cells=_left(steps, task.cells))
    else:
        blocks = {(n, block): cell_path(job.folder, n, block) for n, block in task.cells}
        rest = replace(task, cells=_left(blocks, task.cells))
    return (rest if rest.cells else None), len(task.cells) - len(rest.cells)


def _states(job: Job, task: StateTask) -> tuple[StateTask | None, int]:
    paths = {n: state_path(job.folder, n) for n in task.states}
    wanted = {n: {**f, **looked_at(paths[n], task.trajectory)} for n, f in task.states.items()}
    states = {n: task.states[n] for n in _left(paths, wanted)}
    references = _left({n: reference_path(job.folder, n) for n in task.references}, task.references)
    found = len(task.states) + len(task.references) - len(states) - len(references)
    rest = replace(task, states=states, references=references)
    return (rest if states or references else None), found


def _left(
    paths: Mapping[K, Path], fingerprints: Mapping[K, Mapping[str, Any]]
) -> dict[K, Mapping[str, Any]]:
    return {key: f for key, f in fingerprints.items() if not _stands(paths[key], f)}


def _stands(path: Path, fingerprint: Mapping[str, Any]) -> bool:
    return judge(path, fingerprint)[0] == "done"
