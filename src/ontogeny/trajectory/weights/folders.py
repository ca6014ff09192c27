"""Folders that hold checkpoints, and the weight files in one of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ...errors import CheckpointError
from .files import WeightFiles

SAFE = "model.safetensors"
PICKLED = "pytorch_model.bin"
TEMPORARY = ".tmp-"
"""What names begin with while a folder or file is being written."""

_STEP = re.compile(r"(?:checkpoint|step)[-_]?(\d+)")


def step_folders(folder: Path) -> dict[int, Path]:
    """Return the checkpoint folders by increasing step, whole or not.

    Raises
    ------
    CheckpointError
        If two folders stand for the same step.
    """
    found: dict[int, Path] = {}
    for path in sorted(folder.iterdir()):
        match = _STEP.fullmatch(path.name)
        if match is None or not path.is_dir():
            continue
        step = int(match[1])
        if step in found:
            raise CheckpointError(
                f"{found[step]} and {path.name} both stand for step {step}; keep one of them."
            )
        found[step] = path
    return dict(sorted(found.items()))


def find_weights(folder: Path) -> WeightFiles:
    """Return the weight files of `folder`: safetensors if there are any, else pickled ones.

    Raises
    ------
    CheckpointError
        If there are none, or a shard that the index names is not there.
    """
    for name, pickled in ((SAFE, False), (PICKLED, True)):
        if (folder / name).is_file():
            return WeightFiles((folder / name,), pickled)
        index = folder / f"{name}.index.json"
        if index.is_file():
            return WeightFiles(_shards(index), pickled)
    raise CheckpointError(
        f"{folder} holds no weights; looked for {SAFE}, {SAFE}.index.json, {PICKLED} and "
        f"{PICKLED}.index.json."
    )


def _shards(index: Path) -> tuple[Path, ...]:
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except FileNotFoundError:
        raise CheckpointError(f"{index} is gone.") from None
    except (ValueError, KeyError, AttributeError, TypeError):
        raise CheckpointError(f"{index} is not an index of weight files.") from None
    outside = [name for name in names if Path(name).name != name]
    if outside:
        raise CheckpointError(f"{index} names files outside its folder: {outside}.")
    missing = [name for name in names if not (index.parent / name).is_file()]
    if missing:
        raise CheckpointError(f"{index.parent} lacks {len(missing)} of its shards: {missing}.")
    return tuple(index.parent / name for name in names)
