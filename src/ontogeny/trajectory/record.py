"""What a `Recorder` notes about its run beside the checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import CheckpointError
from .schedule import Schedule

RECORD = "recorder.json"


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
        (
            record["class"],
            [(s["from"], s["every"], s["total"]) for s in record["schedules"]],
        )
        int(record.get("finished") or 0)
        {int(step): str(digest) for step, digest in record.get("digests", {}).items()}
        [
            (int(b["resumed"]), [int(s) for s in b["abandoned"]])
            for b in record.get("branches", [])
        ]
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        OverflowError,
    ):
        raise CheckpointError(
            f"{path} is not a recorder's note; delete or restore it."
        ) from None
    return record


def planned_steps(record: dict[str, Any] | None, last: int) -> tuple[int, ...] | None:
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
