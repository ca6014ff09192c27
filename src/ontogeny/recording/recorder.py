"""Checkpoints written from a live training loop, which they do not change."""

from __future__ import annotations

import logging
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from torch import nn

from .._version import __version__
from ..errors import ArgumentError
from ..trajectory.findings import some
from ..trajectory.schedule import Every, Schedule
from ..trajectory.selection import check_step
from ..trajectory.weights.building import check_dtype
from ..trajectory.weights.saving import unwrap
from .branches import branched, repeated, replaced
from .folder import RecordingFolder, class_name
from .processes import is_first_process

if TYPE_CHECKING:
    from ..inputs import Inputs
    from ..observables import Observable
    from .observer import Observer

logger = logging.getLogger("ontogeny.trajectory")


class Recorder:
    """Writes checkpoints of a model while it trains, in any loop, and observes it there if asked.

    Call it after every optimiser step, and once with step 0 before the first::

        record = Recorder("runs/tiny", total=1000)
        record(0, model)
        for step in range(1, 1001):
            ...  # one optimiser step
            record(step, model)
        record.finish(1000, model)

    With ``observe=[Loss()], inputs=inputs`` it also measures the model, as `Observer` says. It
    draws no random number and leaves mode and gradients alone, so training is bit for bit the same
    with and without it. A checkpoint is written under a temporary name and renamed, so it is whole
    or not there. One that cannot be written, as on a full disk, is said when that happens and at
    the end; the training goes on. Where a run is resumed at an earlier step that is on disk, what
    was written after it is replaced as it is passed again, and ``recorder.json`` names the steps
    that are not. Of processes that torchrun or accelerate started only rank 0
    writes.

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
        check_dtype(dtype)
        if tokenizer is not None and not hasattr(tokenizer, "save_pretrained"):
            raise ArgumentError(
                "tokenizer must have save_pretrained, as transformers' tokenizers do; "
                f"got {type(tokenizer).__name__}."
            )
        self.folder = Path(folder).expanduser().resolve()
        self.schedule = Schedule.coerce(every, total)
        self._tokenizer = tokenizer
        self._overwrite = overwrite
        self._begun = False
        self._steps: set[int] = set()
        self._failed: list[int] = []
        self._last = -1
        # On disk, and not passed again since the run went back.
        self._ahead: set[int] = set()
        self._is_proven = False  # whether the run went back to weights that are on disk
        self._on_disk = RecordingFolder(self.folder, dtype)
        self._on_disk.check()
        self.observer = self._make_observer(observe, inputs, log, budget)

    def _make_observer(
        self, observe: Any, inputs: Any, log: Any, budget: float
    ) -> Observer | None:
        if observe is None:
            if inputs is not None or log is not None:
                raise ArgumentError(
                    "inputs= and log= go with observe=[...], which is missing."
                )
            return None
        # With observables and studies, which a loop need not have.
        from .observer import Observer

        every = self.schedule.every
        total = self.schedule.total
        return Observer(
            observe,
            inputs,
            self.folder,
            every=every,
            total=total,
            log=log,
            budget=budget,
        )

    @property
    def steps(self) -> list[int]:
        """Steps that are on disk, increasing."""
        return sorted(self._steps)

    def __call__(self, step: int, model: nn.Module) -> bool:
        """Write a checkpoint and observe if that is due; return whether one was written.

        Raises
        ------
        ArgumentError
            If the folder holds another run, or the model cannot be saved from this process.
        """
        step = check_step("step", step)
        if not is_first_process():
            return False
        written = self._record_step(
            step, self._ready(step, model), self.schedule.due(step)
        )
        if self.observer is not None:
            self.observer(step, model)
        return written

    def write(self, step: int, model: nn.Module) -> bool:
        """Write a step unless that is done, due or not; return whether it was written."""
        step = check_step("step", step)
        if not is_first_process():
            return False
        return self._record_step(step, self._ready(step, model), True)

    def finish(self, step: int, model: nn.Module | None) -> bool:
        """Write and observe the last step unless that is done; return whether one was written.

        The end of the run is noted, so that who watches the folder need not wait for more. None
        stands for a model that is no longer that of the last step.
        """
        step = check_step("step", step)
        if not is_first_process():
            return False
        written = model is not None and self.write(step, model)
        if step not in self._steps:
            logger.warning("%s lacks the last step, %d.", self.folder, step)
        if self._failed:
            failed = some([f"{step:,}" for step in self._failed])
            logger.warning(
                "%s lacks steps that could not be written: %s.", self.folder, failed
            )
        try:
            self._on_disk.put(finished=step)
        except OSError as error:
            logger.warning(
                "%s does not say that the run has ended: %s", self.folder, error
            )
        if self.observer is not None:
            self.observer.finish(step, model)
        return written

    def _ready(self, step: int, model: nn.Module) -> nn.Module:
        model = unwrap(model)
        if not self._begun:
            self._begin(step, model)
        elif step < self._last:
            self._go_back(step, model)
        self._last = step
        return model

    def _record_step(self, step: int, model: nn.Module, due: bool) -> bool:
        """Write a step if it is due; one that is there from before is replaced if it differs."""
        try:
            if step in self._ahead:
                return self._pass_again(step, model, due)
            return due and step not in self._steps and self._save(step, model)
        except (OSError, SafetensorError) as error:
            # A full disk, a file system that went away.
            if not self._steps:
                raise  # nothing is trained yet
            self._fail(step, error)
            return False

    def _save(self, step: int, model: nn.Module) -> bool:
        self._on_disk.save(step, model)
        self._steps.add(step)
        return True

    def _go_back(self, step: int, model: nn.Module) -> None:
        """Note that the run goes on from an earlier step: what was written after it is left."""
        self._ahead = {there for there in self._steps if there > step}
        if not self._ahead:
            return
        try:
            self._is_proven = step in self._steps and self._on_disk.holds(step, model)
            branches = self._on_disk.noted("branches", [])
            self._on_disk.put(branches=branched(branches, step, self._ahead))
        except (OSError, SafetensorError) as error:
            self._is_proven = False
            logger.warning(
                "%s does not say that the run went back: %s", self.folder, error
            )

    def _pass_again(self, step: int, model: nn.Module, due: bool) -> bool:
        """Compare the model with what is on disk from before the run went back; return if written.

        Where both are the same, the run repeats itself, and what follows on disk is its own.
        """
        self._ahead.discard(step)
        branches = self._on_disk.noted("branches", [])
        if self._on_disk.holds(step, model):
            self._on_disk.put(branches=repeated(branches, step))
            return False
        if not due:
            return False
        if not self._is_proven:
            logger.warning(
                "%s keeps its earlier checkpoint at step %d, which differs from this model.",
                self.folder,
                step,
            )
            return False
        self._on_disk.replace(step, model)
        self._on_disk.put(branches=replaced(branches, step))
        logger.warning("step %d is replaced: the run was resumed before it.", step)
        return True

    def _fail(self, step: int, error: Exception) -> None:
        """Say that a checkpoint was not written; a training of days is not ended by that."""
        self._failed.append(step)
        logger.warning(
            "step %d was not recorded, the training goes on: %s", step, error
        )

    def _begin(self, step: int, model: nn.Module) -> None:
        """Make the folder ready: new, cleared, or the same run continued."""
        there = self._on_disk
        there.ready(self._overwrite)
        if self._overwrite and self.observer is not None:
            self.observer.path.unlink(missing_ok=True)
        before = there.note
        if before is not None:
            there.check_same_run(step, model)
        elif step > 0:
            logger.warning(
                "recording begins at step %d; step 0 was not recorded.", step
            )
        there.sweep()
        self._steps = set(there.steps)
        there.write_note(self._record(before, step, model))
        self._go_back(step, model)
        if self._tokenizer is not None:
            there.save_tokenizer(self._tokenizer)
        self._begun = True

    def _record(
        self, before: dict[str, Any] | None, step: int, model: nn.Module
    ) -> dict[str, Any]:
        schedules = list(before["schedules"]) if before else []
        now = self.schedule.to_record()
        if not schedules:
            schedules = [{"from": 0, **now}]
        elif {key: schedules[-1][key] for key in now} != now:
            # A run that goes back first passes steps that the schedule before it had planned.
            begin = max([step, *(there + 1 for there in self._steps)])
            earlier = [entry for entry in schedules if entry["from"] < begin]
            schedules = [*earlier, {"from": begin, **now}]
        return {
            "format": 1,
            "class": class_name(model),
            "schedules": schedules,
            "digests": dict(before.get("digests", {})) if before else {},
            "branches": list(before.get("branches", [])) if before else [],
            "planned": self.schedule.planned(self.schedule.total)
            if self.schedule.total
            else None,
            "versions": {
                "ontogeny": __version__,
                "torch": str(torch.__version__),
                "python": platform.python_version(),
            },
        }
