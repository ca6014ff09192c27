"""Bundles of TensorFlow, ``ckpt_5.index`` beside ``ckpt_5.data-00000-of-00001``, read without it.

The index is a table of LevelDB that nothing compresses: names, each with a `BundleEntryProto` that
says where its numbers lie. Names have dots for TensorFlow's slashes; what an optimiser keeps, counts
and texts are left out. Bundles of GPT-2 as OpenAI and gpt-2-simple write them, with an
``hparams.json``, have transformers' names and are built by it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ....errors import CheckpointError
from ..parts import Part, PartsReader

SUFFIX = ".index"
_HPARAMS = "hparams.json"
_MAGIC = bytes.fromhex("57fb808b247547db")
_FOOTER = 48
_DTYPES: dict[int, np.dtype[Any]] = {
    1: np.dtype("<f4"),
    2: np.dtype("<f8"),
    14: np.dtype("<u2"),  # bfloat16
    19: np.dtype("<f2"),
}
_BFLOAT16 = 14
_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"
_SLOTS = re.compile(
    r"(?:^|/)\.OPTIMIZER_SLOT/|^(?:.*/)?optimizer/(?!_trainable_variables/)"
    r"|^(?:save_counter|global_step|_CHECKPOINTABLE_OBJECT_GRAPH)"
    r"|/(?:Adam|Adam_1|Adagrad|Momentum|RMSProp|RMSProp_1|adam_[mv]|ExponentialMovingAverage)$"
    r"|^(?:beta[12]_power)$"
)
# Of OpenAI's GPT-2, under what transformers calls them.
_GPT2 = (
    (re.compile(r"^model\.(wte|wpe)$"), r"transformer.\1.weight"),
    (re.compile(r"^model\.h(\d+)\."), r"transformer.h.\1."),
    (re.compile(r"^model\."), "transformer."),
    (re.compile(r"\.(?:w|g)$"), ".weight"),
    (re.compile(r"\.b$"), ".bias"),
)


def read(files: tuple[Path, ...]) -> PartsReader:
    """Return the floating-point tensors of a bundle.

    Raises
    ------
    CheckpointError
        If a file is damaged, gone, or of a later form of the format.
    """
    index = files[0]
    is_gpt2 = (index.parent / _HPARAMS).is_file()
    shards = len(list(index.parent.glob(f"{index.stem}.data-?????-of-?????")))
    parts = {}
    for name, entry in _tensors(index).items():
        place = index.with_name(
            f"{index.stem}.data-{entry.shard:05d}-of-{max(shards, 1):05d}"
        )
        entry.check(place)
        shape = entry.shape
        if is_gpt2:
            name, shape = _of_gpt2(name, shape)
        dtype = torch.bfloat16 if entry.kind == _BFLOAT16 else _torch(entry.kind)
        parts[name] = Part(shape, dtype, partial(entry.tensor, place, shape))
    if not parts:
        raise CheckpointError(f"{index} holds no floating-point tensors.")
    return PartsReader(parts)


def _tensors(index: Path) -> dict[str, _Entry]:
    """Return where the weights of a bundle lie, by their names with dots."""
    found = {}
    try:
        for key, value in _entries(index.read_bytes()):
            name = key.decode("utf-8", "replace")
            entry = _Entry.of(value)
            if name and entry.kind in _DTYPES and not _SLOTS.search(name):
                found[name.removesuffix(_VALUE).replace("/", ".")] = entry.checked()
    except OSError as error:
        raise CheckpointError(f"{index} is gone: {error.strerror}.") from None
    except (IndexError, ValueError, TypeError) as error:  # damaged bytes
        why = error if str(error).startswith("it ") else "it is cut off or damaged"
        raise CheckpointError(f"{index} is no readable bundle: {why}.") from None
    return found


def _torch(kind: int) -> torch.dtype:
    return torch.from_numpy(np.empty(0, _DTYPES[kind])).dtype


def _of_gpt2(name: str, shape: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """Return transformers' name and shape; OpenAI's matrices are convolutions of width 1."""
    for pattern, to in _GPT2:
        name = pattern.sub(to, name)
    return name, shape[1:] if len(shape) == 3 and shape[0] == 1 else shape


@dataclass(frozen=True)
class _Entry:
    """Where a tensor lies: a `BundleEntryProto`."""

    kind: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int

    @staticmethod
    def of(value: bytes) -> _Entry:
        fields = dict(_fields(value))
        dimensions = [v for key, v in _fields(fields.get(2, b"")) if key == 2]
        shape = tuple(dict(_fields(d)).get(1, 0) for d in dimensions)
        numbers = [fields.get(key, 0) for key in (1, 3, 4, 5)]
        return _Entry(numbers[0], shape, *numbers[1:])

    def checked(self) -> _Entry:
        """Return it; refuse a shape that is not that of its bytes."""
        if math.prod(self.shape) * _DTYPES[self.kind].itemsize != self.size:
            raise ValueError("it holds a shape that is not that of its bytes")
        return self

    def check(self, place: Path) -> None:
        """Refuse a file of data that is gone or cut off."""
        held = place.stat().st_size if place.is_file() else None
        if held is None or held < self.offset + self.size:
            why = "is gone" if held is None else "is cut off: its save was interrupted"
            raise CheckpointError(f"{place} {why}.")

    def tensor(self, place: Path, shape: tuple[int, ...]) -> Tensor:
        """Return the numbers, memory-mapped."""
        kind = _DTYPES[self.kind]
        count = self.size // kind.itemsize
        values = np.memmap(place, kind, "c", self.offset, (count,))
        tensor = torch.from_numpy(np.asarray(values))
        if self.kind == _BFLOAT16:
            tensor = tensor.view(torch.bfloat16)
        return tensor.reshape(shape)


def _entries(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Give the entries of a table."""
    if len(content) < _FOOTER or content[-8:] != _MAGIC:
        raise ValueError("it has no footer of a table")
    at = len(content) - _FOOTER
    for _ in range(2):  # of the meta index, which is not needed
        _, at = _varint(content, at)
    for _, handle in _block(content, *_handle(content, at)):
        yield from _block(content, *_handle(handle, 0))


def _handle(content: bytes, at: int) -> tuple[int, int]:
    offset, at = _varint(content, at)
    return offset, _varint(content, at)[0]


def _block(content: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Give the entries of a block; each key is told by how it differs from the one before."""
    if content[offset + size]:
        raise ValueError("it is compressed, which TensorFlow does not do")
    block = content[offset : offset + size]
    end = size - 4 - 4 * int.from_bytes(block[-4:], "little")
    at = 0
    key = b""
    while at < end:
        shared, at = _varint(block, at)
        rest, at = _varint(block, at)
        length, at = _varint(block, at)
        key = key[:shared] + block[at : at + rest]
        at += rest
        yield key, block[at : at + length]
        at += length


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Give the fields of a message of protocol buffers: number, and a number or bytes."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        value: int | bytes
        if kind == 0:
            value, at = _varint(message, at)
        elif kind in (1, 5):
            width = 8 if kind == 1 else 4
            value = int.from_bytes(message[at : at + width], "little")
            at += width
        elif kind == 2:
            length, at = _varint(message, at)
            value = message[at : at + length]
            at += length
        else:
            raise ValueError("it holds fields of another kind")
        yield tag >> 3, value


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
        shift += 7


@dataclass(frozen=True)
class GPT2Bundle:
    """Builds the GPT-2 of a folder with ``hparams.json``, with fresh weights.

    Attributes
    ----------
    folder
        Where the file lies.
    """

    folder: Path

    def __call__(self) -> Any:
        """Return the module."""
        from transformers import GPT2Config, GPT2LMHeadModel

        try:
            said = json.loads((self.folder / _HPARAMS).read_text(encoding="utf-8"))
            sizes = {
                ours: said[theirs]
                for ours, theirs in (
                    ("vocab_size", "n_vocab"),
                    ("n_positions", "n_ctx"),
                    ("n_embd", "n_embd"),
                    ("n_head", "n_head"),
                    ("n_layer", "n_layer"),
                )
            }
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{self.folder / _HPARAMS} does not say the sizes of a GPT-2: {error}."
            ) from None
        last = sizes["vocab_size"] - 1
        return GPT2LMHeadModel(
            GPT2Config(**sizes, bos_token_id=last, eos_token_id=last)
        )

    def tokenizer(self) -> Any:
        """Return the tokenizer that lies in the folder, or None."""
        names = ("encoder.json", "vocab.bpe")
        vocabulary, merges = (self.folder / name for name in names)
        if not (vocabulary.is_file() and merges.is_file()):
            return None
        from transformers import GPT2TokenizerFast

        return GPT2TokenizerFast(str(vocabulary), str(merges))


def template(path: Path) -> GPT2Bundle | None:
    """Return what builds the model of a bundle, or None if nothing says it."""
    is_gpt2 = path.suffix == SUFFIX and (path.parent / _HPARAMS).is_file()
    return GPT2Bundle(path.parent) if is_gpt2 else None
