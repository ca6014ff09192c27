"""A small EuroBERT trained on a text, one run a seed, as the report studies a large one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ontogeny.training.loop import Progress
from ontogeny.training.run import RunSettings, record


@dataclass(frozen=True)
class MaskedRun:
    """One setting of masked language modelling with the EuroBERT architecture.

    Parameters
    ----------
    settings
        `ontogeny.training.RunSettings`.
    checkpoints
        Evenly spaced checkpoints after step 0, as the report's 48; a few early ones, at steps that
        double, are recorded besides.

    Examples
    --------
    >>> MaskedRun(RunSettings(steps=100), checkpoints=5).steps()
    [0, 1, 2, 4, 8, 16, 20, 40, 60, 80, 100]
    """

    settings: RunSettings = field(default_factory=RunSettings)
    checkpoints: int = 48

    def steps(self) -> list[int]:
        """Return the steps at which checkpoints are recorded."""
        last = self.settings.steps
        even = [round(last * i / self.checkpoints) for i in range(self.checkpoints + 1)]
        doubling = [2**k for k in range(last.bit_length()) if 2**k < even[1]]
        return sorted({*even, *doubling})

    def record(
        self,
        folder: Path,
        seeds: Sequence[int],
        texts: Sequence[str],
        progress: Progress | None = None,
    ) -> list[Path]:
        """Train once for each seed, unless it is there; return the folders of the trajectories."""
        folders = [folder / f"seed-{seed}" for seed in seeds]
        for seed, place in zip(seeds, folders, strict=True):
            if place.is_dir():
                continue
            partial = place.with_name(f".{place.name}.partial")
            shutil.rmtree(partial, ignore_errors=True)
            record(
                partial,
                texts,
                self.settings,
                seed,
                progress=progress,
                every=self.steps(),
            )
            partial.rename(place)
        return folders


def recorded_texts(folder: Path) -> list[str] | None:
    """Return the texts that a recorded run was not trained on; None where it kept none."""
    path = folder / "heldout.jsonl"
    if not path.is_file():
        return None
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
