"""Progress of commands: that of runs, of trainings and of downloads."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..machine import size_text
from ..study.progress import Progress, Silent, fitting_progress, time_left

if TYPE_CHECKING:
    from ..trajectory import Trajectory


def progress_for(quiet: bool = False) -> Progress:
    """Return the progress that fits standard error, or a silent one."""
    return Silent() if quiet else fitting_progress()


class TrainingLines:
    """Training progress through a study progress: one line about every tenth of the way."""

    def __init__(self, progress: Progress, tenths: int = 10) -> None:
        self._progress = progress
        self._tenths = tenths
        self._begin = time.monotonic()
        self._from = 0
        self._last = 0

    def __call__(self, step: int, steps: int, loss: float) -> None:
        """Report where the training stands."""
        if step < self._last or not self._last:  # another training, or one that goes on
            self._begin = time.monotonic()
            self._from = step
        self._last = step
        if step % max(1, steps // self._tenths) and step != steps:
            return
        remaining = time_left(
            self._begin, max(step - self._from, 1), steps - self._from
        )
        self._progress.note(
            f"training: step {step} of {steps}, loss {loss:.2f}, {remaining}"
        )


def download_shown(trajectory: Trajectory, progress: Progress) -> int:
    """Fetch a trajectory's Hub revisions, one line each; return how many are there then."""
    from ..trajectory import download
    from ..trajectory.downloading import missing_bytes

    sources = [checkpoint for checkpoint in trajectory if checkpoint.source is not None]
    progress.note(
        f"{size_text(missing_bytes(trajectory))} to fetch in {len(sources)} revisions"
    )
    begin = time.monotonic()
    done = 0
    for done, step in enumerate(download(trajectory), start=1):
        remaining = time_left(begin, done, len(sources))
        progress.note(f"[{done}/{len(sources)}] {trajectory[step].label}, {remaining}")
    return done
