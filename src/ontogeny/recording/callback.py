"""The `Recorder` as a callback of transformers' Trainer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import TrainerCallback

from ..errors import ArgumentError
from ..trajectory.schedule import Every
from .loggers import to_history
from .recorder import Recorder

if TYPE_CHECKING:
    from ..inputs import Inputs
    from ..observables import Observable


class RecorderCallback(TrainerCallback):
    """Records and observes while a transformers ``Trainer`` trains, without changing the training.

    Step 0 is written before the first step, the last one after the last. The arguments are those
    of `Recorder`; `total` and `tokenizer` come from the Trainer if they are not given. If `log` is
    not given, observed numbers stand in the Trainer's history (``trainer.state.log_history``). A
    callback is not told which Trainer calls it, so its loggers (``report_to``) are named::

        trainer.add_callback(RecorderCallback(..., log=to_trainer(trainer)))

    Examples
    --------
    >>> callback = RecorderCallback("runs/tiny")
    >>> isinstance(callback, TrainerCallback)
    True
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
        if isinstance(every, Iterable) and not isinstance(every, str):
            every = tuple(every)  # it is read twice
        self._arguments = (folder, every, total, tokenizer, overwrite, dtype)
        self._observing = {
            "observe": observe,
            "inputs": inputs,
            "log": log,
            "budget": budget,
        }
        # Made anew when a training begins; made here as well so that a bad argument shows at once.
        self._recorder = Recorder(*self._arguments, **self._observing)

    def on_train_begin(
        self, args: Any, state: Any, control: Any, **kwargs: Any
    ) -> None:
        """Write and observe step 0, or check that a resumed run is the one in the folder."""
        folder, every, total, tokenizer, overwrite, dtype = self._arguments
        if args.output_dir and Path(args.output_dir).resolve() == self._recorder.folder:
            raise ArgumentError(
                f"{folder} is the Trainer's output_dir, where it writes and deletes checkpoints of "
                "its own; give the callback another folder."
            )
        processing = kwargs.get("processing_class")
        if tokenizer is None and hasattr(processing, "save_pretrained"):
            tokenizer = processing
        total = total or state.max_steps or None
        observing = self._observing | {"log": self._log(args, state)}
        self._recorder = Recorder(
            folder, every, total, tokenizer, overwrite, dtype, **observing
        )
        self._recorder(state.global_step, kwargs["model"])

    def _log(self, args: Any, state: Any) -> Any:
        """Return where numbers go in this training: a callback may be used by several Trainers."""
        if self._observing["observe"] is None or self._observing["log"] is not None:
            return self._observing["log"]
        if args.report_to and state.is_world_process_zero:
            # With the observables, which are imported by now.
            from ..study.speaking import say

            say(
                "observed numbers go to the Trainer's history, and not to report_to="
                f"{args.report_to!r}: for that, trainer.add_callback(RecorderCallback(..., "
                "log=ontogeny.recording.to_trainer(trainer)))"
            )
        return to_history(state)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write a checkpoint and observe if that is due, and observe the last step."""
        self._recorder(state.global_step, kwargs["model"])
        if control.should_training_stop and args.load_best_model_at_end:
            self._recorder.write(state.global_step, kwargs["model"])
        observer = self._recorder.observer
        if (
            observer is not None
            and control.should_training_stop
            and state.is_world_process_zero
        ):
            # Before the loggers are closed.
            observer.observe(state.global_step, kwargs["model"])

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write the last checkpoint, unless the Trainer has put its best one in the place of it."""
        is_best = (
            args.load_best_model_at_end and state.best_model_checkpoint is not None
        )
        self._recorder.finish(state.global_step, None if is_best else kwargs["model"])
