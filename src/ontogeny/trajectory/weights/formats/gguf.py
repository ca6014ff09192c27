"""GGUF files, which transformers reads and turns into float32."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

import torch

from ....errors import CheckpointError
from ....machine import free_memory
from ..announced import announce
from ..files import TensorReader, state_tensors
from ..inert import plain
from ..transformers_models import quiet

SUFFIX = ".gguf"
# What helps where transformers cannot read what is asked of a file.
_HELPS = {
    "AutoModelForCausalLM": "pip install gguf accelerate, or give the model before its conversion",
    "AutoTokenizer": "name another one with --tokenizer, in Python tokenizer=; for token "
    "ids, tokenizer=False",
}
_converted: dict[tuple[Path, tuple[int, int]], dict[str, torch.Tensor]] = {}
_alone = Lock()  # a checkpoint may be read ahead while another is used


@dataclass(frozen=True)
class GGUFModel:
    """Builds the model that a GGUF file describes, with fresh weights."""

    path: Path

    def __call__(self) -> Any:
        """Return the module."""
        return _transformers(self.path, "AutoModelForCausalLM", weights=False)

    def tokenizer(self) -> Any:
        """Return the tokenizer of the file.

        Raises
        ------
        CheckpointError
            If transformers cannot read it.
        """
        return _tokenizer(self.path, _stamp(self.path))


def read(files: tuple[Path, ...]) -> TensorReader:
    """Return the tensors by transformers' names, in float32.

    Raises
    ------
    CheckpointError
        If transformers cannot read the file.
    """
    return TensorReader(_tensors(files[0], _stamp(files[0])))


def _stamp(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


def _tensors(path: Path, stamp: tuple[int, int]) -> dict[str, torch.Tensor]:
    """Return converted tensors, and hold those of several files in a quarter of the memory.

    A study of a run with its controls reads each file a dozen times.
    """
    text = f"weights such as {path} are read as float32, also where they are quantised."
    announce("gguf", text)
    with _alone:
        tensors = _converted.pop((path, stamp), None)
        if tensors is None:
            tensors = state_tensors(
                _transformers(path, "AutoModelForCausalLM", weights=True)
            )
        _converted[path, stamp] = tensors  # the last one that was read comes last
        while len(_converted) > 1 and not _are_few():
            del _converted[next(iter(_converted))]
        return tensors


def _are_few() -> bool:
    """Return whether what is held takes a quarter of the memory or less."""
    held = chain.from_iterable(tensors.values() for tensors in _converted.values())
    size = sum(tensor.nbytes for tensor in held)
    return 4 * size <= size + (free_memory() or 0)


@lru_cache(maxsize=4)
def _tokenizer(path: Path, stamp: tuple[int, int]) -> Any:
    return _transformers(path, "AutoTokenizer", weights=True)


def _transformers(path: Path, kind: str, weights: bool) -> Any:
    import transformers
    from transformers import modeling_gguf_pytorch_utils as converter

    # Its bar is tqdm's, which transformers' switch for progress bars does not reach.
    converter.tqdm = transformers.utils.logging.tqdm
    place: dict[str, Any] = {"gguf_file": path.name, "local_files_only": True}
    place["trust_remote_code"] = False
    try:
        with quiet(), torch.random.fork_rng(devices=[]):
            if weights:
                return getattr(transformers, kind).from_pretrained(path.parent, **place)
            config = transformers.AutoConfig.from_pretrained(path.parent, **place)
            return getattr(transformers, kind).from_config(config)
    except Exception as error:  # whatever transformers and gguf raise
        reason = plain(next(iter(str(error).splitlines()), type(error).__name__))
        raise CheckpointError(
            f"{path} cannot be read by transformers ({reason}); {_HELPS[kind]}."
        ) from error
