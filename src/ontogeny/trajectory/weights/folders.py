"""Folders that hold checkpoints, and the weight files in one of them."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

from ...errors import CheckpointError
from .files import WeightFiles
from .formats import SUFFIX_HEADERS, SUFFIX_READERS, find_format
from .recognised import unreadable

SAFE = "model.safetensors"
PICKLED = "pytorch_model.bin"

_STEP = re.compile(r"(?:checkpoint|step)[-_]?(\d+)")
_NUMBERED = re.compile(r"(.*)[-_]\d{5}-of-(\d{5})(\.\w+)")
_SAFE_SUFFIX = ".safetensors"
FILE_SUFFIXES = (".pt", ".pth", ".ckpt", _SAFE_SUFFIX, *SUFFIX_READERS)
# Names of what is saved beside weights. Models of OPT are called opt-125m and opt-1.3b.
NOT_WEIGHTS = re.compile(
    r"(?:opt(?:im|(?![-_]?(?:iml|(?:125|350)m|\d+(?:\.\d)?b))[-_.\d])"
    r"|scheduler|rng_|scaler|training_args|random_state|extra_state|(?:data|train(?:er)?)\.pt$).*"
)
_FSDP = "pytorch_model_fsdp.bin"  # of accelerate, gathered


def step_folders(folder: Path) -> dict[int, Path]:
    """Return the folders that are named as a `Recorder` or the Trainer names them, by their step.

    Raises
    ------
    CheckpointError
        If two stand for the same step.
    """
    names = [
        (p, m)
        for p in folder.iterdir()
        if (m := _STEP.fullmatch(p.name)) and p.is_dir()
    ]
    paths = sorted((int(match[1]), path) for path, match in names)
    for (step, one), (other_step, other) in itertools.pairwise(paths):
        if step == other_step:
            raise CheckpointError(
                f"{one} and {other.name} both stand for step {step}; keep one."
            )
    return dict(paths)


def weight_files(folder: Path) -> list[Path]:
    """Return the files that own training loops may have written weights to."""
    return [
        path
        for path in sorted(folder.iterdir())
        if path.name.endswith((*FILE_SUFFIXES, ".pt.tar", ".pth.tar"))
        and path.is_file()
        and not NOT_WEIGHTS.match(path.name)
    ]


def find_weights(path: Path, key: str | None = None) -> WeightFiles:
    """Return the weight files of a checkpoint: safetensors if there are any, else other ones.

    Parameters
    ----------
    path
        A folder, in which a single file of an own training loop may have any name, or a file.
    key
        Under which key of the files the weights stand; None: one of the usual keys.

    Raises
    ------
    CheckpointError
        If there are none, a shard that the index names is not there, or they are of a format that
        is recognised and cannot be read; the message says what helps.
    """
    return replace(_find(path), key=key)


def _at(path: Path) -> WeightFiles | None:
    """Return the weights that have their usual names in a folder."""
    for name, pickled in ((SAFE, False), (PICKLED, True), (_FSDP, True)):
        if (path / name).is_file():
            return WeightFiles((path / name,), pickled)
        index = path / f"{name}.index.json"
        if index.is_file():
            return WeightFiles(_shards(index), pickled)
    return find_format(path) if path.is_dir() else None


def _find(path: Path) -> WeightFiles:
    if path.is_file():
        reader = SUFFIX_READERS.get(path.suffix)
        pickled = reader is None and path.suffix != _SAFE_SUFFIX
        is_whole = SUFFIX_HEADERS.get(path.suffix)
        return WeightFiles((path,), pickled, reader, is_whole=is_whole)
    if (files := _at(path)) is not None:
        return files
    others = weight_files(path) if path.is_dir() else []
    if len(others) == 1 and "-of-" not in others[0].name:
        return _find(others[0])
    below = [p for p in path.iterdir() if p.is_dir()] if path.is_dir() else []
    inner = [p for p in below if _at(p) or _holds_one(p)]
    if len(inner) == 1 and not others:  # epoch_3/hf/, or consolidated/ of Mistral
        return _find(inner[0])
    if shards := _numbered(others):
        return WeightFiles(shards, shards[0].suffix != _SAFE_SUFFIX)
    if path.is_dir() and (reason := unreadable(path)) is not None:
        raise CheckpointError(f"{path} {reason}.")
    raise CheckpointError(
        f"{path} holds no weights; looked for {SAFE}, {SAFE}.index.json, {PICKLED}, "
        f"{PICKLED}.index.json, distributed checkpoints (.metadata, ZeRO) and a single "
        f"{', '.join(FILE_SUFFIXES)} file."
    )


def _holds_one(folder: Path) -> bool:
    """Return whether a folder holds one file of safetensors, which is no adapter."""
    suffixes = [path.suffix for path in weight_files(folder)]
    return suffixes == [_SAFE_SUFFIX] and not (folder / "adapter_config.json").is_file()


def holds_weights(path: Path) -> bool:
    """Return whether there is a weight file to read, whole or not."""
    try:
        find_weights(path)
    except CheckpointError:
        others = (f"{SAFE}.index.json", f"{PICKLED}.index.json", "adapter_config.json")
        return any((path / name).is_file() for name in others)
    return True


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
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise CheckpointError(f"{index} is not an index of weight files.") from None
    outside = [name for name in names if Path(name).name != name]
    if outside:
        raise CheckpointError(f"{index} names files outside its folder: {outside}.")
    return files


def _numbered(files: list[Path]) -> tuple[Path, ...]:
    """Return shards without an index, as torchtune writes them, if they are all of one model."""
    matches = [m for path in files if (m := _NUMBERED.fullmatch(path.name)) is not None]
    of = {(m[1], int(m[2]), m[3]) for m in matches}
    total = next(iter(of))[1] if len(of) == 1 else 0
    return tuple(files) if len(files) == len(matches) == total else ()


def _shards(index: Path) -> tuple[Path, ...]:
    names = sorted(set(weight_map(index).values()))
    missing = [name for name in names if not (index.parent / name).is_file()]
    if missing:
        raise CheckpointError(
            f"{index.parent} lacks {len(missing)} of its shards: {missing}."
        )
    return tuple(index.parent / name for name in names)
