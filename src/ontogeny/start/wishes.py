"""What a user asks for when a study is proposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Wishes:
    """What was asked for, as the command takes it."""

    source: str
    preset: str = "standard"
    texts: Sequence[str] = ()
    steps: str = ""
    sets: Sequence[str] = ()
    model: str = ""
    tokenizer: str = ""
    max_length: int | None = None
    score: str = ""
    answer_after: str = ""
    token_labels: Sequence[str] = ()
    step_from: str = ""
    only: Sequence[str] = ()
    exclude: Sequence[str] = ()
    key: str = ""
    base: str = ""
    abilities: Sequence[str] = ()
    train_texts: Sequence[str] = ()
    base_texts: Sequence[str] = ()
    floor: str = ""
    prompts: Sequence[str] = ()

    @property
    def choice(self) -> dict[str, Any]:
        """What was said of a folder's files, as `Trajectory.from_folder` takes it."""
        names = ("step_from", "only", "exclude", "key", "base")
        return {name: getattr(self, name) for name in names if getattr(self, name)}

    def options(self) -> list[str]:
        """Return what was asked for as options of the command, always in the same order.

        Examples
        --------
        >>> Wishes("runs/mine", "quick", steps="8").options()
        ['--preset', 'quick', '--steps', '8']
        """
        options = {
            "--preset": [self.preset],
            "--texts": self.texts,
            "--steps": [self.steps],
            "--set": self.sets,
            "--model": [self.model],
            "--tokenizer": [self.tokenizer],
            "--max-length": [str(self.max_length or "")],
            "--score": [self.score],
            "--answer-after": [self.answer_after],
            "--token-labels": self.token_labels,
            "--step-from": [self.step_from],
            "--only": self.only,
            "--exclude": self.exclude,
            "--key": [self.key],
            "--base": [self.base],
            "--abilities": self.abilities,
            "--train-texts": self.train_texts,
            "--base-texts": self.base_texts,
            "--floor": [self.floor],
            "--prompts": self.prompts,
        }
        parts: list[str] = []
        for name, values in options.items():
            for value in filter(None, values):
                parts += [name, value]
        return parts
