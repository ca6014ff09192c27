"""Folders that hold checkpoints, and the weight files in one of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ...errors import CheckpointError
from .files import WeightFiles
from .pickled import stored_step

SAFE = "model.safetensors"
PICKLED = "pytorch_model.bin"
TEMPORARY = ".tmp-"
"""What names begin with while a folder or file is being written."""

_STEP = re.compile(r"(?:checkpoint|step)[-_]?(\d+)")
_SAFE_SUFFIX = ".safetensors"
_FILE_SUFFIXES = (".pt", ".pth", ".ckpt", _SAFE_SUFFIX)
_STEP_IN_NAME = (re.compile(r"(?:step|iter)\D?(\d+)"), re.compile(r"(\d+)(?=\D*$)"))
_NOT_WEIGHTS = re.compile(r"(?:optim|scheduler|rng_state|scaler|training_args).*")


def step_folders(folder: Path) -> dict[int, Path]:
    """Return the checkpoints by increasing step, whole or not: folders, else weight files.

    The step of a file stands in its name; where none does, the files themselves are asked.

    Raises
    ------
    CheckpointError
        If two stand for the same step, or a file that is asked cannot be read.
    """
    paths: dict[int, Path] = {}
    for step, path in _folders(folder) or _files(folder) or _telling_files(folder):
        if step in paths:
            raise CheckpointError(
                f"{paths[step]} and {path.name} both stand for step {step}; keep one of them."
            )
        paths[step] = path
    return dict(sorted(paths.items()))


def _folders(folder: Path) -> list[tuple[int, Path]]:
    paths = ((_STEP.fullmatch(path.name), path) for path in sorted(folder.iterdir()))
    return [(int(match[1]), path) for match, path in paths if match and path.is_dir()]


def _files(folder: Path) -> list[tuple[int, Path]]:
    """Return weight files whose names hold a step: ``ckpt_500.pt``, ``epoch=1-step=500.ckpt``."""
    numbered = ((_step_of(path.stem), path) for path in _weight_files(folder))
    return [(step, path) for step, path in numbered if step is not None]


def _telling_files(folder: Path) -> list[tuple[int, Path]]:
    """Return pickled weight files that hold their step, as nanoGPT's ``ckpt.pt`` does."""
    pickled = (path for path in _weight_files(folder) if path.suffix != _SAFE_SUFFIX)
    numbered = ((stored_step(path), path) for path in pickled)
    return [(step, path) for step, path in numbered if step is not None]


def step_of_file(path: Path) -> int:
    """Return the step of one weight file: the one that it holds, that of its name, else 0.

    Raises
    ------
    CheckpointError
        If it is no weight file, or cannot be read.
    """
    if path.suffix not in _FILE_SUFFIXES:
        raise CheckpointError(
            f"{path} is no weight file; these end in {', '.join(_FILE_SUFFIXES)}."
        )
    held = None if path.suffix == _SAFE_SUFFIX else stored_step(path)
    # transformers' own names have no step, and model.safetensors lies in checkpoint-80, too.
    step = _step_of(path.stem) if held is None else held
    return step_of_folder(path.parent) if step is None else step


def step_of_folder(folder: Path) -> int:
    """Return the step that a folder of one model is named after, else 0: it has no time axis."""
    match = _STEP.fullmatch(folder.name)
    return int(match[1]) if match else 0


def _step_of(name: str) -> int | None:
    """Return the step that a file's name holds: after "step" or "iter", else the last number."""
    match = next((m for pattern in _STEP_IN_NAME if (m := pattern.search(name))), None)
    return None if match is None or "-of-" in name else int(match[1])


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
        return WeightFiles((path,), path.suffix != _SAFE_SUFFIX)
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


def weight_map(index: Path) -> dict[str, str]:
    """Return ``{tensor: name of the file that holds it}`` of the index of a sharded checkpoint.

    Raises
    ------
    CheckpointError
        If it is gone or no index, or names a file outside its folder.
    """
    try:
        files = dict(json.loads(index.read_text(encoding="utf-8"))["weight_map"])
        names = sorted(set(files.values()))
    except FileNotFoundError:
        raise CheckpointError(f"{index} is gone.") from None
    except (ValueError, KeyError, AttributeError, TypeError):
        raise CheckpointError(f"{index} is not an index of weight files.") from None
    outside = [name for name in names if Path(name).name != name]
    if outside:
        raise CheckpointError(f"{index} names files outside its folder: {outside}.")
    return files


def _shards(index: Path) -> tuple[Path, ...]:
    names = sorted(set(weight_map(index).values()))
    missing = [name for name in names if not (index.parent / name).is_file()]
    if missing:
        raise CheckpointError(f"{index.parent} lacks {len(missing)} of its shards: {missing}.")
    return tuple(index.parent / name for name in names)
