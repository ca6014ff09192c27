"""Steps of a run that was resumed before them: by the recorder's note, or the Trainer's logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from ..checkpoint import Checkpoint
from ..findings import Finding, join_steps
from ..record import read_record
from ..weights.states import TRAINER_STATE, trainer_state
from .digests import remedy

_Log: TypeAlias = Mapping[tuple[int, str], str]
_TIMES = ("_runtime", "_per_second")  # what differs between two runs that are the same


def branches(
    folder: Path | None, checkpoints: Sequence[Checkpoint]
) -> Iterator[Finding]:
    """Yield the steps that a run left behind when it went on from an earlier one.

    Parameters
    ----------
    folder
        The run's folder, with the recorder's note if there is one.
    checkpoints
        Those of the trajectory, increasing.
    """
    record = (None if folder is None else read_record(folder)) or {}
    for branch in record.get("branches", ()):
        abandoned = {int(step) for step in branch["abandoned"]}
        left = [c for c in checkpoints if c.step in abandoned]
        yield from _left(
            checkpoints, left, int(branch["resumed"]), "by the recorder's note"
        )
    yield from _of_the_trainer(checkpoints)


def _left(
    checkpoints: Sequence[Checkpoint], left: Sequence[Checkpoint], resumed: int, by: str
) -> Iterator[Finding]:
    if not left:
        return
    steps = tuple(c.step for c in left)
    verb = "belongs" if len(steps) == 1 else "belong"
    kept = [c for c in checkpoints if c.step not in steps]
    text = (
        f"{join_steps(steps)} {verb} to a run that was resumed at {{step}} {resumed}, {by}: what "
        f"was trained after it went another way{remedy([kept, list(left)]) if kept else ''}"
    )
    yield Finding("branch", "certain", steps, text)


def _of_the_trainer(checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Yield steps whose history differs from that of the checkpoint that was written last.

    The Trainer keeps in each checkpoint what it had logged until then. A run that is resumed logs
    the steps after it anew.
    """
    logs = {
        c: log
        for c in checkpoints
        if c.path and c.source is None and (log := _log(c.path))
    }
    if len(logs) < 2:
        return
    trunk = logs[max(logs, key=_written)]
    by_fork: dict[int, list[Checkpoint]] = {}
    for checkpoint, log in logs.items():
        if (fork := _fork(log, trunk)) is not None and fork < checkpoint.step:
            by_fork.setdefault(_resumed(checkpoints, fork), []).append(checkpoint)
    for resumed, left in by_fork.items():
        yield from _left(checkpoints, left, resumed, f"by the logs in {TRAINER_STATE}")


def _written(checkpoint: Checkpoint) -> tuple[float, int]:
    """Return when the Trainer wrote its state, and the step where a copy has lost the time."""
    assert checkpoint.path is not None
    try:
        return (checkpoint.path / TRAINER_STATE).stat().st_mtime, checkpoint.step
    except OSError:  # deleted meanwhile
        return 0.0, checkpoint.step


def _log(folder: Path) -> _Log:
    """Return what was logged, by step and name; without how long it took."""
    history = trainer_state(folder).get("log_history")
    log: dict[tuple[int, str], str] = {}
    for entry in history if isinstance(history, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("step"), int):
            for name, value in entry.items():
                if not str(name).endswith(_TIMES):
                    log[entry["step"], str(name)] = repr(value)  # NaN is alike as well
    return log


def _fork(log: _Log, trunk: _Log) -> int | None:
    """Return the last step until which two histories are one, None if they do not part.

    One may lack what the other has, as an evaluation after the save.
    """
    common = log.keys() & trunk.keys()
    diverged = min(
        (step for step, name in common if log[step, name] != trunk[step, name]),
        default=0,
    )
    if not diverged:
        return None
    return max((step for step, _ in common if step < diverged), default=0)


def _resumed(checkpoints: Sequence[Checkpoint], fork: int) -> int:
    """Return the last checkpoint until the step at which histories part, where runs can resume."""
    return max((c.step for c in checkpoints if c.step <= fork), default=fork)
