"""Folders of checkpoints: which steps are there, which were planned, what was left behind.

Read are the layouts of our `Recorder` and of the Hugging Face Trainer (``checkpoint-500/``) and
folders named ``step500``, ``step-500`` or ``step_500``.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, CheckpointError
from .findings import Finding
from .schedule import Schedule
from .weights import WeightFiles, find_weights

__all__ = ["RECORD", "TEMPORARY", "Catalogue", "read_record", "scan", "step_folders"]

RECORD = "recorder.json"
TEMPORARY = ".tmp-"
_STEP = re.compile(r"(?:checkpoint|step)[-_]?(\d+)")
_LEFT_BEHIND = re.compile(r"(?:\.tmp-|tmp-checkpoint-).*")


@dataclass(frozen=True)
class Catalogue:
    """What is known of a folder beside its whole checkpoints.

    Attributes
    ----------
    steps
        All whole checkpoints, also those that a selection leaves out.
    planned
        Steps that the recorder's schedule called for or that it wrote, or None without a recorder.
    incomplete
        ``(step, why)`` of folders without readable weights.
    temporary
        Names of folders that an interrupted save left behind.
    gaps
        ``(step, why)`` of steps that were asked for and do not exist.
    noted
        Findings made when the checkpoints were chosen.
    """

    steps: tuple[int, ...]
    planned: tuple[int, ...] | None = None
    incomplete: tuple[tuple[int, str], ...] = ()
    temporary: tuple[str, ...] = ()
    gaps: tuple[tuple[int, str], ...] = ()
    noted: tuple[Finding, ...] = ()


def scan(folder: Path) -> tuple[Catalogue, dict[int, tuple[Path, WeightFiles]]]:
    """Return what `folder` holds: its catalogue, and path and weight files by step.

    Raises
    ------
    ArgumentError
        If `folder` is not a folder.
    CheckpointError
        If it holds no whole checkpoint, is itself a model, or has two folders for one step.
    """
    if not folder.is_dir():
        raise ArgumentError(f"{folder} is not a folder.")
    found, incomplete = {}, []
    for step, path in step_folders(folder).items():
        try:
            weights = find_weights(path)
            weights.check()
            found[step] = (path, weights)
        except CheckpointError as error:
            if path.is_dir():  # else deleted meanwhile, as the Trainer does with old checkpoints
                incomplete.append((step, str(error)))
    if not found:
        raise _nothing(folder, incomplete)
    temporary = sorted(p.name for p in folder.iterdir() if _LEFT_BEHIND.fullmatch(p.name))
    planned = _planned(read_record(folder), max(found))
    catalogue = Catalogue(tuple(found), planned, tuple(incomplete), tuple(temporary))
    return catalogue, found


def step_folders(folder: Path) -> dict[int, Path]:
    """Return the checkpoint folders by increasing step, whole or not.

    Raises
    ------
    CheckpointError
        If two folders stand for the same step.
    """
    found: dict[int, Path] = {}
    for path in sorted(folder.iterdir()):
        match = _STEP.fullmatch(path.name)
        if match is None or not path.is_dir():
            continue
        step = int(match[1])
        if step in found:
            raise CheckpointError(
                f"{found[step]} and {path.name} both stand for step {step}; keep one of them."
            )
        found[step] = path
    return dict(sorted(found.items()))


def _nothing(folder: Path, incomplete: list[tuple[int, str]]) -> CheckpointError:
    if incomplete:
        step, why = incomplete[0]
        return CheckpointError(
            f"{folder} holds {len(incomplete)} checkpoint folders but none is whole; "
            f"step {step}: {why}"
        )
    try:
        find_weights(folder)
    except CheckpointError:
        return CheckpointError(
            f"{folder} holds no checkpoints; looked for folders named checkpoint-500, step500, "
            "step-500 or step_500 with model.safetensors or pytorch_model.bin inside."
        )
    return CheckpointError(
        f"{folder} is one model, not a trajectory; give the folder that holds its checkpoints "
        "(checkpoint-500/, checkpoint-1000/, ...)."
    )


def read_record(folder: Path) -> dict[str, Any] | None:
    """Return what a `Recorder` noted about its run, or None if there is no note.

    Raises
    ------
    CheckpointError
        If the note is damaged.
    """
    path = folder / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        record["class"], [(s["from"], s["every"], s["total"]) for s in record["schedules"]]
        {int(step): str(digest) for step, digest in record.get("digests", {}).items()}
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CheckpointError(f"{path} is not a recorder's note; delete or restore it.") from None
    return record


def _planned(record: dict[str, Any] | None, last: int) -> tuple[int, ...] | None:
    """Return the steps planned up to `last`, and those that were written and noted.

    Each schedule holds from where it was begun.
    """
    if record is None:
        return None
    schedules = record["schedules"]
    ends = [*(s["from"] for s in schedules[1:]), last + 1]
    planned = {int(step) for step in record.get("digests", {}) if int(step) <= last}
    for entry, end in zip(schedules, ends, strict=True):
        schedule = Schedule.from_record(entry)
        steps = () if schedule is None else schedule.planned(last) or ()
        planned.update(step for step in steps if entry["from"] <= step < end)
    return tuple(sorted(planned))
