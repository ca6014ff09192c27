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
_FILE_SUFFIXES = (".pt", ".pth", ".ckpt", ".safetensors")
_STEP_IN_NAME = (re.compile(r"(?:step|iter)\D?(\d+)"), re.compile(r"(\d+)(?=\D*$)"))
_NOT_WEIGHTS = re.compile(r"(?:optim|scheduler|rng_state|scaler|training_args).*")


def step_folders(folder: Path) -> dict[int, Path]:
    """Return the checkpoints by increasing step, whole or not: folders, else weight files.

    Raises
    ------
    CheckpointError
        If two stand for the same step.
    """
    found: dict[int, Path] = {}
    for step, path in _folders(folder) or _files(folder):
        if step in found:
            raise CheckpointError(
                f"{found[step]} and {path.name} both stand for step {step}; keep one of them."
            )
        found[step] = path
    return dict(sorted(found.items()))


def _folders(folder: Path) -> list[tuple[int, Path]]:
    paths = ((_STEP.fullmatch(path.name), path) for path in sorted(folder.iterdir()))
    return [(int(match[1]), path) for match, path in paths if match and path.is_dir()]


def _files(folder: Path) -> list[tuple[int, Path]]:
    """Return weight files whose names hold a step: ``ckpt_500.pt``, ``epoch=1-step=500.ckpt``."""
    numbered = ((_step_of(path.stem), path) for path in _weight_files(folder))
    return [(step, path) for step, path in numbered if step is not None]


def _step_of(name: str) -> int | None:
    """Return the step that a file's name holds: after "step" or "iter", else the last number."""
    found = next((m for pattern in _STEP_IN_NAME if (m := pattern.search(name))), None)
    return None if found is None or "-of-" in name else int(found[1])


def _weight_files(folder: Path) -> list[Path]:
    """Return the files that own training loops may have written weights to."""
    return [
        path
        for path in sorted(folder.iterdir())
        if path.suffix in _FILE_SUFFIXES
        and path.is_file()
        and not _NOT_WEIGHTS.match(path.name)
        and not path.name.startswith(TEMPORARY)
    ]


def find_weights(path: Path) -> WeightFiles:
    """Return the weight files of a checkpoint: safetensors if there are any, else pickled ones.

    Parameters
    ----------
    path
        A folder, in which a single file of an own training loop may have any name, or a file.

    Raises
    ------
    CheckpointError
        If there are none, or a shard that the index names is not there.
    """
    if path.is_file():
        return WeightFiles((path,), path.suffix != ".safetensors")
    for name, pickled in ((SAFE, False), (PICKLED, True)):
        if (path / name).is_file():
            return WeightFiles((path / name,), pickled)
        index = path / f"{name}.index.json"
        if index.is_file():
            return WeightFiles(_shards(index), pickled)
    others = _weight_files(path) if path.is_dir() else []
    if len(others) == 1 and "-of-" not in others[0].name:
        return find_weights(others[0])
    raise CheckpointError(
        f"{path} holds no weights; looked for {SAFE}, {SAFE}.index.json, {PICKLED}, "
        f"{PICKLED}.index.json and a single {', '.join(_FILE_SUFFIXES)} file."
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
