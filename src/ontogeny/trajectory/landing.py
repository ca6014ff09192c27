"""Checkpoints as they land in the folder of a run that is still training."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from .order.candidates import ordered
from .order.choosing import Choice
from .record import read_record
from .weights.states import trainer_state

# Name, size in bytes and time of modification (ns) of every file.
Signature: TypeAlias = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Look:
    """What a folder held at one moment.

    Parameters
    ----------
    landed
        The checkpoints that are written for certain: ``{step: signature}``, by increasing step.
    unsettled
        The steps that may still be written.
    ended
        Whether the training says that the last of `landed` was its last.
    """

    landed: dict[int, Signature]
    unsettled: tuple[int, ...] = ()
    ended: bool = False


@dataclass(eq=False)
class Landing:
    """Looks at a folder again and again, and tells which checkpoints are written for certain.

    A training has ended when a `Recorder` has noted so, or has written the last step that it was
    told of, or when the last checkpoint of the Hugging Face Trainer is that of its ``max_steps``.

    Those that a `Recorder` has noted are: it renames whole folders. Of others all files must have
    kept their names, sizes and times of modification for `settle` seconds, from one look to
    another. So nothing is concluded from the clocks of other machines.

    Parameters
    ----------
    folder
        Where the training writes.
    settle
        Seconds.
    now
        The clock, in seconds.
    choice
        What was said of the folder's files, as for `Trajectory.from_folder`.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "checkpoint-5").mkdir()
    >>> _ = (folder / "checkpoint-5" / "model.safetensors").write_bytes(b"...")
    >>> clock = iter([0.0, 1.0, 6.0])
    >>> landing = Landing(folder, settle=5, now=lambda: next(clock))
    >>> [list(landing.look().landed) for _ in range(3)]
    [[], [], [5]]
    """

    folder: Path
    settle: float = 5.0
    now: Callable[[], float] = time.monotonic
    choice: Choice | None = None

    def __post_init__(self) -> None:
        self._since: dict[int, tuple[Signature, float]] = {}

    def look(self) -> Look:
        """Return what is there now.

        Raises
        ------
        OSError
            If the folder cannot be listed.
        CheckpointError
            If the recorder's note is damaged, or two folders stand for one step.
        """
        now = self.now()
        since = {}
        paths, _ = ordered(self.folder, self.choice)
        for step, path in paths.items():
            if (signature := _signature(path)) is not None:
                before = self._since.get(step)
                same = before is not None and before[0] == signature
                since[step] = (
                    before if before is not None and same else (signature, now)
                )
        self._since = since
        noted = {
            int(step) for step in (read_record(self.folder) or {}).get("digests", {})
        }
        still = {
            step for step, (_, begun) in since.items() if now - begun >= self.settle
        }
        landed = {
            step: signature
            for step, (signature, _) in since.items()
            if step in noted | still
        }
        unsettled = tuple(step for step in since if step not in landed)
        ended = (
            bool(landed)
            and not unsettled
            and _has_ended(self.folder, paths, max(landed))
        )
        return Look(landed, unsettled, ended)


def _has_ended(folder: Path, paths: Mapping[int, Path], step: int) -> bool:
    """Return whether a training says that `step`, the last one in its folder, was its last."""
    record = read_record(folder)
    if record is not None:
        ends = (record.get("finished"), record["schedules"][-1]["total"])
        return any(end is not None and step >= end for end in ends)
    state = trainer_state(paths.get(step, folder))
    last = state.get("max_steps")
    reached = state.get("global_step")
    return isinstance(last, int) and isinstance(reached, int) and 0 < last <= reached


def _signature(path: Path) -> Signature | None:
    """Return the signature of a checkpoint's folder or file; None if it was just deleted."""
    try:
        files = (
            [path]
            if path.is_file()
            else sorted(p for p in path.rglob("*") if p.is_file())
        )
        stats = [(file, file.stat()) for file in files]
    except OSError:
        return None
    return tuple(
        (str(f.relative_to(path.parent)), s.st_size, s.st_mtime_ns) for f, s in stats
    )
