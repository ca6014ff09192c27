"""The `Recorder` that also observes, as a callback of transformers' Trainer."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import Trainer

from ..inputs import Inputs
from ..observables import Observable
from ..trajectory.recorder.callback import RecorderCallback as CheckpointCallback
from ..trajectory.recorder.schedule import Every
from .loggers import to_trainer
from .recorder import Recorder


class RecorderCallback(CheckpointCallback):
    """Records and observes while a transformers ``Trainer`` trains, without changing the training.

    Step 0 is written before the first step, the last one after the last. The arguments are those
    of `Recorder`; `total` and `tokenizer` come from the Trainer if they are not given, and numbers
    go to the Trainer's own loggers (``report_to``) if `log` is not given.

    Examples
    --------
    >>> from transformers import TrainerCallback
    >>> callback = RecorderCallback("runs/tiny")
    >>> isinstance(callback, TrainerCallback)
    True
    """

    _recorder: Recorder

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
        self._observing = {"observe": observe, "inputs": inputs, "log": log, "budget": budget}
        self._log = log  # of this training; a callback may be used by several Trainers
        super().__init__(folder, every, total, tokenizer, overwrite, dtype)

    def _make(self, *arguments: Any) -> Recorder:
        return Recorder(*arguments, **self._observing | {"log": self._log})

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write and observe step 0, or check that a resumed run is the one in the folder."""
        if self._observing["observe"] is not None and self._observing["log"] is None:
            trainer = _calling_trainer()
            self._log = () if trainer is None else to_trainer(trainer)
        super().on_train_begin(args, state, control, **kwargs)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write a checkpoint and observe if that is due, and observe the last step."""
        super().on_step_end(args, state, control, **kwargs)
        observer = self._recorder.observer
        if observer is not None and control.should_training_stop and state.is_world_process_zero:
            observer.observe(state.global_step, kwargs["model"])  # before the loggers are closed


def _calling_trainer() -> Trainer | None:
    """Return the Trainer that calls this callback: it gives callbacks everything but itself."""
    frame = inspect.currentframe()
    while frame is not None:
        if isinstance(found := frame.f_locals.get("self"), Trainer):
            return found
        frame = frame.f_back
    return None
