"""The folders and files that may be checkpoints of a run."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from ...artefacts import known_as
from ...errors import CheckpointError
from ..weights.folders import FILE_SUFFIXES, NOT_WEIGHTS, holds_weights, weight_files
from ..weights.recognised import unreadable
from .choosing import Choice, Order, order_of
from .inside import Held, held_step
from .names import read_name
from .readings import shape, stem

LEFT_BEHIND = re.compile(r"(?:\.tmp-|tmp-checkpoint-).*|\..+\.tmp")
OWN_MODEL = "the folder's own model, without a step"
_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z")
_BARE = re.compile(r"(?:global[-_]?)?[A-Za-z]+[-_=]*\*/")
_OWN = re.compile(
    r"(?:(?:adapter_|pytorch_)?model)(?:-\d{5}-of-\d{5})?\.\w+|pytorch_model_fsdp_\d+/"
)


def ordered(
    folder: Path, choice: Choice | None = None
) -> tuple[dict[int, Path], Order]:
    """Return the checkpoints of a folder by increasing step, whole or not, and how they are read.

    Raises
    ------
    CheckpointError
        If their steps can be read in two ways, or two stand for one step.
    """
    paths = _candidates(folder)
    options = choice or Choice()

    def held(name: str) -> Held | None:
        return held_step(paths[name], options.step_key)

    try:
        order = order_of(list(paths), held, options)
    except CheckpointError as error:
        raise CheckpointError(f"{folder}: {error}") from None
    left_out = (
        (name, OWN_MODEL if _OWN.fullmatch(name) else why)
        for name, why in order.left_out
    )
    order = replace(order, left_out=tuple(left_out))
    return {step: paths[name] for step, name in order.names.items()}, order


def _candidates(folder: Path) -> dict[str, Path]:
    """Return files of weights, and folders that hold some or are named as checkpoints."""
    folders = {
        f"{path.name}/": path for path in sorted(folder.iterdir()) if _may_hold(path)
    }
    whole = {name: path for name, path in folders.items() if holds_weights(path)}
    files = {path.name: path for path in weight_files(folder)}
    forms = {shape(name) for name in whole | files}
    bare = {
        name: path
        for name, path in folders.items()
        if _BARE.fullmatch(shape(name))
        and read_name(stem(name)) is not None
        and (not whole | files or shape(name) in forms)
    }
    return dict(sorted((whole | bare).items())) | files


def holds_checkpoints(folder: Path) -> bool:
    """Return whether a folder holds weights, or folders with some, whatever their names."""
    below = filter(_may_hold, folder.iterdir())
    return bool(weight_files(folder)) or any(map(holds_weights, below))


def _may_hold(path: Path) -> bool:
    is_hidden = path.name.startswith(".") or LEFT_BEHIND.fullmatch(path.name)
    return path.is_dir() and not is_hidden and not NOT_WEIGHTS.match(path.name)


def step_of_folder(folder: Path) -> int:
    """Return the step that a folder of one model is named after, else 0."""
    match = re.fullmatch(r"(?:checkpoint|step)[-_]?(\d+)", folder.name)
    return int(match[1]) if match else 0


def step_of_file(path: Path, choice: Choice | None = None) -> int:
    """Return the step of one weight file: the one that it holds, that of its name, else 0.

    Raises
    ------
    CheckpointError
        If it is no weight file, or cannot be read.
    """
    if path.suffix in _ARCHIVES and not path.name.endswith((".pt.tar", ".pth.tar")):
        raise CheckpointError(
            f"{path} is an archive; unpack it, and name the folder in it."
        )
    if path.suffix not in (*FILE_SUFFIXES, *_ARCHIVES, ".bin"):
        if (reason := unreadable(path)) is not None:
            raise CheckpointError(f"{path} {reason}.")
        if own := known_as(path):
            raise CheckpointError(f"{path} is no checkpoint but {own}.")
        raise CheckpointError(
            f"{path} is no weight file; these end in {', '.join(FILE_SUFFIXES)}."
        )
    options = choice or Choice()
    number = held_step(path, options.step_key)
    order = order_of(
        [path.name], {} if number is None else {path.name: number}, options
    )
    if not order.names:  # one model, without a time axis
        return step_of_folder(path.parent)
    return next(iter(order.names))
