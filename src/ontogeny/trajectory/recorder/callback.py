"""The `Recorder` as a callback of transformers' Trainer."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback

from ...errors import ArgumentError
from .recorder import Recorder
from .schedule import Every


class RecorderCallback(TrainerCallback):
    """Records checkpoints while a transformers ``Trainer`` trains, without changing the training.

    Step 0 is written before the first step, the last one after the last. The arguments are those
    of `Recorder`; `total` and `tokenizer` come from the Trainer if they are not given.

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
    ) -> None:
        if isinstance(every, Iterable) and not isinstance(every, str):
            every = tuple(every)  # it is read twice
        self._arguments = (folder, every, total, tokenizer, overwrite, dtype)
        self._recorder = self._make(*self._arguments)  # so that a bad argument shows here and now

    def _make(self, *arguments: Any) -> Recorder:
        return Recorder(*arguments)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write step 0, or check that a resumed run is the one in the folder."""
        folder, every, total, tokenizer, overwrite, dtype = self._arguments
        if args.output_dir and Path(args.output_dir).resolve() == self._recorder.folder:
            raise ArgumentError(
                f"{folder} is the Trainer's output_dir, where it writes and deletes checkpoints of "
                "its own; give the callback another folder."
            )
        own = kwargs.get("processing_class")
        if tokenizer is None and hasattr(own, "save_pretrained"):
            tokenizer = own
        total = total or state.max_steps or None
        self._recorder = self._make(folder, every, total, tokenizer, overwrite, dtype)
        self._recorder(state.global_step, kwargs["model"])

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write a checkpoint if one is due."""
        self._recorder(state.global_step, kwargs["model"])

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write the last checkpoint."""
        self._recorder.finish(state.global_step, kwargs["model"])
