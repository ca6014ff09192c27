"""A `Recorder` that also observes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .. import trajectory
from ..errors import ArgumentError
from ..inputs import Inputs
from ..observables import Observable
from ..trajectory.recorder.schedule import Every
from .observer import Observer


class Recorder(trajectory.Recorder):
    """Writes checkpoints of a model while it trains, in any loop, and observes it there.

    Call it after every optimiser step, and once with step 0 before the first::

        record = Recorder("runs/tiny", total=1000, observe=[Loss()], inputs=inputs)
        record(0, model)
        for step in range(1, 1001):
            ...  # one optimiser step
            record(step, model)
        record.finish(1000, model)

    Training is bit for bit the same with and without it. Checkpoints are written as
    `ontogeny.trajectory.Recorder` says, and what is observed as `Observer` says.

    Parameters
    ----------
    folder
        Where ``checkpoint-<step>/`` folders and ``observed.jsonl`` go; made at the first call.
    every
        ``"log"`` (default: powers of two early, evenly spaced late), a number of steps, a
        list of steps, or a function of the step. Step 0 is always written.
    total
        Number of steps of the run; with ``"log"`` at most 32 checkpoints are spread over it.
    tokenizer
        Saved once, beside the checkpoints.
    overwrite
        Delete an earlier recording in the same folder at the first call.
    dtype
        Floating-point dtype to store; None stores the model's.
    observe, inputs
        Observables and the texts that they are measured on, at the steps that are written; see
        `Observer`. None observes nothing.
    log, budget
        Where the numbers go, and how much of the training's time they may take; see `Observer`.

    Raises
    ------
    ArgumentError
        If an argument is not as described, or the folder holds checkpoints that no Recorder wrote.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> record, model = Recorder(folder, every=10), nn.Linear(2, 2)
    >>> [step for step in range(25) if record(step, model)], record.finish(24, model)
    ([0, 10, 20], True)
    """

    def __init__(
        self,
        folder: str | Path,
        every: Every = "log",
        total: int | None = None,
        tokenizer: Any = None,
        overwrite: bool = False,
        dtype: torch.dtype | None = None,
        *,
        observe: Sequence[Observable] | None = None,
        inputs: Inputs | Mapping[str, Any] | None = None,
        log: Any = None,
        budget: float = 0.05,
    ) -> None:
        super().__init__(folder, every, total, tokenizer, overwrite, dtype)
        self.observer: Observer | None = None
        if observe is None and (inputs is not None or log is not None):
            raise ArgumentError("inputs= and log= go with observe=[...], which is missing.")
        if observe is not None:
            schedule = self.schedule
            self.observer = Observer(
                observe,
                inputs,  # type: ignore[arg-type]  # it refuses None
                self.folder,
                every=schedule.every,
                total=schedule.total,
                log=log,
                budget=budget,
            )

    def __call__(self, step: int, model: nn.Module) -> bool:
        """Write a checkpoint and observe if that is due; return whether one was written."""
        written = super().__call__(step, model)
        if self.observer is not None:
            self.observer(step, model)
        return written

    def finish(self, step: int, model: nn.Module) -> bool:
        """Write and observe the last step; return whether a checkpoint was written."""
        written = super().finish(step, model)
        if self.observer is not None:
            self.observer.finish(step, model)
        return written

    def _clear(self) -> None:
        super()._clear()
        if self.observer is not None:
            self.observer.path.unlink(missing_ok=True)
