"""Formats of checkpoints beside transformers' own: each file reads one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..files import WeightFiles
from . import dcp, deepspeed, gguf, gguf_header, litgpt, tensor_bundle

_FINDERS: tuple[Callable[[Path], WeightFiles | None], ...] = (dcp.find, deepspeed.find)

# Readers of single files by what their names end in.
SUFFIX_READERS: Mapping[str, Callable[..., Any]] = {
    gguf.SUFFIX: gguf.read,
    tensor_bundle.SUFFIX: tensor_bundle.read,
}

# What says by the header of such a file that it is whole, where reading takes long.
SUFFIX_HEADERS: Mapping[str, Callable[[Path], bool]] = {
    gguf.SUFFIX: gguf_header.is_whole
}


def find_format(folder: Path) -> WeightFiles | None:
    """Return the files of a folder in one of these formats, or None."""
    return next(
        (files for find in _FINDERS if (files := find(folder)) is not None), None
    )


def own_template(files: WeightFiles) -> Callable[[], Any] | None:
    """Return what builds the model of these files, where they say it themselves; else None."""
    path = files.files[0]
    if path.suffix == gguf.SUFFIX:
        return gguf.GGUFModel(path)
    return tensor_bundle.template(path) or litgpt.template(path)
