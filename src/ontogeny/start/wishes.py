"""What a user asks for when a study is proposed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
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
    budget: str = ""

    @property
    def choice(self) -> dict[str, Any]:
        """What was said of a folder's files, as `Trajectory.from_folder` takes it."""
        names = ("step_from", "only", "exclude", "key", "base")
        return {name: getattr(self, name) for name in names if getattr(self, name)}

    def values_set(self, key: str) -> list[str]:
        """Return the texts that `sets` give a key.

        Examples
        --------
        >>> Wishes("run", sets=['options.device="cuda"']).values_set("options.device")
        ['cuda']
        """
        pairs = (assignment.partition("=") for assignment in self.sets)
        return [
            text.strip().strip("\"'") for name, _, text in pairs if name.strip() == key
        ]

    def options(self) -> list[str]:
        """Return what was asked for as options of the command, always in the same order.

        Examples
        --------
        >>> Wishes("runs/mine", "quick", steps="8").options()
        ['--preset', 'quick', '--steps', '8']
        """
        parts: list[str] = []
        for field in fields(self)[1:]:  # the source is the command's argument
            name = {"sets": "set"}.get(field.name, field.name).replace("_", "-")
            value = getattr(self, field.name)
            values = value if isinstance(value, list | tuple) else [value]
            for one in filter(None, values):
                parts += [f"--{name}", str(one)]
        return parts
