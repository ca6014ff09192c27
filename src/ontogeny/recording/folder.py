"""The folder of a recording: its checkpoints, the note about its run, and its tokenizer."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..errors import ArgumentError
from ..trajectory.record import RECORD, read_record
from ..trajectory.tokenizers import file_digests
from ..trajectory.weights.digests import combine, tensor_digests
from ..trajectory.weights.folders import find_weights, step_folders
from ..trajectory.weights.saving import save_checkpoint
from ..whole_files import sweep, temporary, write_json


@dataclass(frozen=True)
class RecordingFolder:
    """Where one run is recorded; a checkpoint is there whole or not at all.

    Parameters
    ----------
    path
        Of the folder.
    dtype
        Floating-point dtype of what is stored; None is the model's.
    """

    path: Path
    dtype: torch.dtype | None

    def check(self) -> None:
        """Refuse a file, and a folder of checkpoints that no Recorder wrote."""
        if self.path.exists() and not self.path.is_dir():
            raise ArgumentError(f"folder must be a folder; {self.path} is a file.")
        if self.path.is_dir() and self.note is None and self.steps:
            raise ArgumentError(
                f"{self.path} holds checkpoints that no Recorder wrote; give the Recorder a "
                "folder of its own."
            )

    @property
    def steps(self) -> dict[int, Path]:
        """The checkpoints that are there, by step."""
        return step_folders(self.path)

    @property
    def note(self) -> dict[str, Any] | None:
        """What is noted about the run, or None before anything is."""
        return read_record(self.path)

    def noted(self, key: str, default: Any) -> Any:
        """Return one entry of the note."""
        return (self.note or {}).get(key, default)

    def write_note(self, note: Mapping[str, Any]) -> None:
        """Write the note anew."""
        write_json(self.path / RECORD, note)

    def put(self, **entries: Any) -> None:
        """Put entries into the note."""
        self.write_note({**(self.note or {}), **entries})

    def ready(self, overwrite: bool) -> None:
        """Make the folder, empty of an earlier recording if that is to be written over."""
        self.path.mkdir(parents=True, exist_ok=True)
        if overwrite:
            for path in self.steps.values():
                shutil.rmtree(path)
            for name in (RECORD, *file_digests(self.path)):
                (self.path / name).unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what a process that was killed has left half written."""
        sweep(self.path)

    def check_same_run(self, step: int, model: nn.Module) -> None:
        """Refuse a model of another class, or with other weights than the step that is there."""
        remedy = "give another folder, or overwrite=True to delete it"
        recorded = self.noted("class", "")
        if recorded != class_name(model):
            raise ArgumentError(
                f"{self.path} holds a recording of {recorded}, this model is "
                f"{class_name(model)}; {remedy}."
            )
        if step in self.steps and not self.holds(step, model):
            raise ArgumentError(
                f"{self.path} holds another run: its step {step} has other weights than this "
                f"model; {remedy}."
            )

    def holds(self, step: int, model: nn.Module) -> bool:
        """Return whether the checkpoint of a step holds the weights that `model` has now."""
        digests = tensor_digests(find_weights(self.steps[step]))
        # Names and layout on disk can differ from ours.
        trial = temporary(self.path / "trial")
        try:
            save_checkpoint(trial, model, self.dtype)
            return tensor_digests(find_weights(trial)) == digests
        finally:
            shutil.rmtree(trial, ignore_errors=True)

    def save(self, step: int, model: nn.Module) -> None:
        """Write a checkpoint, and note its digest: an audit finds steps that are exchanged later."""
        place = self._place(step)
        save_checkpoint(place, model, self.dtype)
        digest = combine(tensor_digests(find_weights(place)))
        self.put(digests={**self.noted("digests", {}), str(step): digest})

    def replace(self, step: int, model: nn.Module) -> None:
        """Write a step in the place of another one, which stays if that fails."""
        place = self.steps[step]
        aside = temporary(self.path / "replaced")
        digests = self.noted("digests", {})
        self.put(
            digests={key: value for key, value in digests.items() if key != str(step)}
        )
        place.rename(aside)
        try:
            self.save(step, model)
        except BaseException:
            if not self._place(step).exists():
                aside.rename(place)
            raise
        shutil.rmtree(aside, ignore_errors=True)

    def save_tokenizer(self, tokenizer: Any) -> None:
        """Save the tokenizer of the run; one that is there must be the same."""
        before = file_digests(self.path)
        if not before:
            tokenizer.save_pretrained(self.path)
            return
        trial = temporary(self.path / "tokenizer")
        try:
            tokenizer.save_pretrained(trial)
            same = file_digests(trial) == before
        finally:
            shutil.rmtree(trial, ignore_errors=True)
        if not same:
            raise ArgumentError(
                f"{self.path} holds another tokenizer; a run keeps one from its first step on."
            )

    def _place(self, step: int) -> Path:
        return self.path / f"checkpoint-{step}"


def class_name(model: nn.Module) -> str:
    """Return the class of a model, as the note names it."""
    return type(model).__qualname__
