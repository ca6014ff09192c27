"""Adapters that MLX writes: files with a number beside one file of settings, merged here.

MLX keeps ``lora_a`` (in, r) and ``lora_b`` (r, out) of a matrix W (out, in), and the model has
W + scale (lora_a lora_b)ᵀ, as ``mlx_lm.fuse`` writes it. Names are those of transformers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from ...errors import CheckpointError
from ..weights.files import TensorReader, WeightFiles, state_tensors
from ..weights.inert import few, plain
from ..weights.states import json_table
from .settings import SETTINGS, AdapterSettings

_FILE = re.compile(r"(?:\d+_)?adapters\.safetensors")
_HALVES = {".lora_a": ".lora_A.weight", ".lora_b": ".lora_B.weight"}
_FUSE = "merge it: mlx_lm.fuse --model BASE --adapter-path FOLDER"


@dataclass(frozen=True)
class MlxSettings(AdapterSettings):
    """What the settings beside an adapter of MLX say, and which file its tensors are in."""

    file: Path

    @property
    def base(self) -> str:
        """Return the folder or repository of the base; empty where none is named."""
        return str(self.table.get("model") or "")

    @property
    def revision(self) -> str:
        """Return the branch of the base: MLX notes none."""
        return "main"

    @property
    def scale(self) -> float:
        """Return what the product of both halves is multiplied by."""
        return float(self.table["lora_parameters"]["scale"])

    def class_name(self, config: Any) -> None:
        """Return None: the base's own class is tuned."""

    def place(self) -> WeightFiles:
        """Return where the adapter's tensors are."""
        return WeightFiles((self.file,), reader=_read)


def mlx_adapter(path: Path) -> bool:
    """Return whether a file is an adapter of MLX: by its name, and by the settings beside it."""
    return bool(_FILE.fullmatch(path.name)) and _is_mlx(
        json_table(path.parent / SETTINGS)
    )


def mlx_settings(path: Path) -> MlxSettings | None:
    """Return the settings of an adapter of MLX, a file or a folder; None of any other.

    Raises
    ------
    CheckpointError
        If it changes its base in another way than LoRA does.
    """
    file = path if path.is_file() else path / "adapters.safetensors"
    table = json_table(file.parent / SETTINGS)
    if not _is_mlx(table) or not file.is_file():
        return None
    kind = table.get("fine_tune_type", "lora")
    parameters = table.get("lora_parameters")
    scale = parameters.get("scale") if isinstance(parameters, dict) else None
    if kind != "lora" or not isinstance(scale, int | float):
        raise CheckpointError(
            f"{file} is an adapter of MLX of the kind {plain(kind)}, of which LoRA with a scale "
            f"alone is read; {_FUSE}."
        )
    return MlxSettings(file.parent, table, file)


def _is_mlx(table: Mapping[str, Any]) -> bool:
    return "peft_type" not in table and "lora_parameters" in table


def _read(paths: tuple[Path, ...]) -> TensorReader:
    """Return a reader over both halves of each matrix, called and laid as peft has them."""
    (path,) = paths
    try:
        stored = load_file(path)
    except Exception as error:  # whatever safetensors raises of a damaged file
        raise CheckpointError(f"{path} cannot be read: {error}") from None
    halves = {}
    for name, tensor in stored.items():
        end = next(filter(name.endswith, _HALVES), None)
        if end is not None and tensor.ndim == 2:
            halves[name.removesuffix(end) + _HALVES[end]] = tensor.T
    if not halves or len(halves) < len(stored):
        others = [name for name in stored if not name.endswith(tuple(_HALVES))]
        raise CheckpointError(
            f"{path} holds more than the halves of LoRA ({few(others)}); {_FUSE}."
        )
    return TensorReader(halves)


class MlxMerged:
    """An adapter of MLX on its base, as `Merged` gives one of peft.

    Attributes
    ----------
    changed
        Names of the tensors that are other ones than the base's.

    Raises
    ------
    CheckpointError
        If it does not belong to the base.
    """

    def __init__(self, label: str, settings: MlxSettings, base: nn.Module) -> None:
        self._base = state_tensors(base)
        self._scale = settings.scale
        with settings.files().open() as reader:
            halves = {name: reader.get(name) for name in reader.names()}
        (first, second) = _HALVES.values()
        places = {n.rpartition(".lora_")[0] for n in halves}
        self._halves: dict[str, tuple[Tensor, Tensor]] = {}
        for place in sorted(places):
            name = f"{place}.weight"
            A = halves.get(f"{place}{first}")
            B = halves.get(f"{place}{second}")
            there = self._base.get(name)
            if A is None or B is None or there is None:
                raise CheckpointError(_foreign(label, name))
            if tuple(there.shape) != (B.shape[0], A.shape[1]):
                raise CheckpointError(_foreign(label, name))
            self._halves[name] = (A, B)
        self.changed = set(self._halves)

    def tensor(self, name: str) -> Tensor:
        """Return a changed tensor, in the precision of the base."""
        A, B = self._halves[name]
        before = self.before(name)
        return (before.float() + self._scale * (B.float() @ A.float())).to(before.dtype)

    def before(self, name: str) -> Tensor:
        """Return a tensor as the base has it."""
        return self._base[name].detach()

    def shapes(self) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
        """Return shape and dtype of all changed tensors."""
        return {
            n: (tuple(t.shape), t.dtype)
            for n, t in self._base.items()
            if n in self.changed
        }


def _foreign(label: str, name: str) -> str:
    return (
        f"{label} does not belong to its base: {name} is missing in one of them, or has another "
        "shape. Is it the right base? Say which with --base (base= in Python)."
    )
