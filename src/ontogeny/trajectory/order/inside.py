"""The step that a checkpoint holds itself: beside its weights, or in the Trainer's state."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...errors import CheckpointError
from ..weights.files import safe_metadata
from ..weights.folders import PICKLED, SAFE, weight_files
from ..weights.formats import SUFFIX_READERS
from ..weights.pickled import STEP_KEYS, held_numbers
from ..weights.states import TRAINER_STATE, trainer_state
from .names import count

_EPOCH_KEYS = ("epoch", "current_epoch")
_TOKEN_KEYS = ("tokens", "n_tokens", "tokens_seen")
_UNITS = {
    **dict.fromkeys(STEP_KEYS, "step"),
    **dict.fromkeys(_TOKEN_KEYS, "tokens"),
    **dict.fromkeys(_EPOCH_KEYS, "epoch"),
}


@dataclass(frozen=True)
class Held:
    """A step that a checkpoint holds.

    Attributes
    ----------
    value
        The number.
    unit
        ``"step"``, ``"epoch"`` or ``"tokens"``.
    key
        Where it stands, such as ``"global_step"``.
    """

    value: int
    unit: str
    key: str


def held_step(path: Path, key: str | None = None) -> Held | None:
    """Return the step in a checkpoint's file or folder; None where none is, or none can be read.

    Looked at are the Trainer's state, what was pickled beside the weights, and the notes in the
    header of a safetensors file: steps first, then tokens and epochs. A `key` is looked for alone.
    """
    numbers, where = _numbers(path)
    for name in _UNITS if key is None else (key,):
        if name in numbers:
            return Held(numbers[name], _UNITS.get(name, "step"), where or name)
    return None


def _numbers(path: Path) -> tuple[dict[str, int], str]:
    """Return the whole numbers that a checkpoint holds, and the name of a file that they are in."""
    if path.is_dir():
        state = trainer_state(path)
        if state:
            return {
                k: v for k, v in state.items() if type(v) is int and v >= 0
            }, TRAINER_STATE
        if (path / SAFE).is_file():
            return _noted(path / SAFE), ""
        files = [file for file in weight_files(path) if file.name != PICKLED]
        return _numbers(files[0]) if len(files) == 1 else ({}, "")
    if path.suffix == ".safetensors":
        return _noted(path), ""
    if path.suffix in SUFFIX_READERS:
        return {}, ""
    try:
        return held_numbers(path), ""
    except CheckpointError:  # said when its weights are read
        return {}, ""


def _noted(path: Path) -> dict[str, int]:
    try:
        notes = safe_metadata(path)
    except CheckpointError:
        return {}
    counts = {key: count(text) for key, text in notes.items()}
    return {key: value for key, value in counts.items() if value is not None}
