"""What a pass has read for cells that come later: kept in files until it is their turn.

A state over several steps, as that of joint concepts, reads activations of every step before the
cells of these steps can be computed. The losses, activations and predictions that those cells take
from the same passes are read then too, so that no pass is run twice.
"""

from __future__ import annotations

import hashlib
import logging
import re
import shutil
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import xarray as xr

from ...capture.vocabulary_map import Readout, readouts_as_dataset, readouts_of_dataset
from ...errors import StoreError
from ...machine import is_gone, writer
from ...needs import Need, Readouts
from ...scratch import scratch_room
from ...store import Cell, read_cell, write_cell

log = logging.getLogger("ontogeny.study")
LIMIT = 1 << 32  # bytes of a run and its controls
_Read = Callable[[Sequence[Need], Sequence[Need]], dict[Need, Any]]


def shares_passes(need: Need) -> bool:
    """Return whether a need can take its part out of passes of others."""
    return type(need).pass_key is not Need.pass_key


def is_kept(need: Need) -> bool:
    """Return whether what was read of a need can lie in a file.

    Maps to the vocabulary can too: for them alone each control of SmolLM2 had its weights computed
    once more at every step, in 8 s.
    """
    return shares_passes(need) or isinstance(need, Readouts)


def as_dataset(value: Any) -> xr.Dataset:
    """Return a need's value as a dataset; ``{path: (n, m) tensor}`` gets one variable a layer."""
    if isinstance(value, xr.Dataset):
        return value.assign_attrs(reference="dataset")
    if any(isinstance(of_layer, Readout) for of_layer in value.values()):
        return readouts_as_dataset(value).assign_attrs(reference="readouts")
    layers = {
        path: ((f"token{i}", f"feature{i}"), tensor.cpu().numpy())
        for i, (path, tensor) in enumerate(value.items())
    }
    return xr.Dataset(layers, attrs={"reference": "layers"})


def of_dataset(data: xr.Dataset, device: str = "cpu") -> Any:
    """Return a need's value on `device`; tensors share the memory map of the file."""
    if data.attrs["reference"] == "dataset":
        return data
    if data.attrs["reference"] == "readouts":
        return readouts_of_dataset(data, device)
    return {
        str(p): torch.from_numpy(v.values).to(device) for p, v in data.data_vars.items()
    }


class Ahead:
    """Values of needs at the steps of one run, in temporary files.

    Parameters
    ----------
    token
        Of the run, which no other has.
    folder
        Of the run: those of controls are apart.
    device
        Where tensors are read to.
    """

    def __init__(self, token: str, folder: Path, device: str = "cpu") -> None:
        self._folder = of_run(token) / folder.name
        self._device = device

    def read(
        self, step: int, needs: Sequence[Need], later: Sequence[Need], read: _Read
    ) -> dict[Need, Any]:
        """Return the values of `needs`, from files where they are there.

        Otherwise ``read(missing, along)`` gives them; what it reads of `later`, needs of cells to
        come, is written.
        """
        there = {need: self._load(step, need) for need in needs if is_kept(need)}
        values = {need: value for need, value in there.items() if value is not None}
        missing = [need for need in needs if need not in values]
        along = [n for n in later if is_kept(n) and not self._path(step, n).exists()]
        if not any(map(shares_passes, missing)):
            along = []
        try:
            made = read(missing, along)
        except Exception as error:  # a later need must not cost these theirs
            if not along:
                raise
            log.debug("reading ahead failed: %s", error)
            made = read(missing, ())
            along = []
        for need in along:
            if need in made:
                self._write(step, need, made[need])
        return {need: made[need] if need in made else values[need] for need in needs}

    def _path(self, step: int, need: Need) -> Path:
        digest = hashlib.blake2b(repr(need).encode(), digest_size=8).hexdigest()
        return self._folder / f"{step}-{digest}.safetensors"

    def _load(self, step: int, need: Need) -> Any:
        try:
            data = read_cell(self._path(step, need)).data.copy(deep=True)
        except (OSError, StoreError):  # it was not kept
            return None
        value = of_dataset(data, self._device)
        if isinstance(value, xr.Dataset):
            del value.attrs["reference"]
        return value

    def drop(self, step: int) -> None:
        """Remove what is kept of a step."""
        for path in self._folder.glob(f"{step}-*"):
            path.unlink(missing_ok=True)

    def _write(self, step: int, need: Need, value: Any) -> None:
        try:
            data = as_dataset(value)
            files = self._folder.parent.rglob("*.safetensors")
            # Tasks of other runs remove theirs meanwhile.
            held = sum(path.stat().st_size for path in files if path.exists())
            if held + data.nbytes > LIMIT or data.nbytes > scratch_room() // 4:
                return
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_cell(self._path(step, need), Cell(data, "done", {}, {}))
        except Exception as error:  # it is read once more then
            log.debug("nothing is kept of %r: %s", need, error)


def file_of(ahead: Ahead, step: int, need: Need) -> Path:
    """Return the file of what is read of a need at a step."""
    return ahead._path(step, need)


def of_run(token: str) -> Path:
    """Return the folder of the temporary files of a run and its controls."""
    return Path(tempfile.gettempdir()) / f"ontogeny-{token}"


def new_token() -> str:
    """Return a token for a run of this process, which no other has."""
    return f"{writer()}-{uuid.uuid4().hex}"


def sweep_killed() -> None:
    """Remove the temporary files of runs whose process on this machine was killed."""
    for folder in Path(tempfile.gettempdir()).glob("ontogeny-*"):
        name = re.fullmatch(r"ontogeny-([0-9a-f]{8}-\d+)-[0-9a-f]{32}", folder.name)
        if name is not None and is_gone(name[1]):
            shutil.rmtree(folder, ignore_errors=True)


def forget(token: str) -> None:
    """Remove the temporary files of a run and its controls."""
    shutil.rmtree(of_run(token), ignore_errors=True)


class Lazily(dict[Need, Any]):
    """Values of needs that are read when one is asked for: those that share passes together."""

    def __init__(
        self,
        needs: Sequence[Need],
        read: Callable[[Sequence[Need]], Mapping[Need, Any]],
    ) -> None:
        super().__init__()
        self._needs = needs
        self._read = read

    def __missing__(self, need: Need) -> Any:
        together = [n for n in self._needs if shares_passes(n) or not n.runs_model]
        self.update(self._read(together if need in together else [need]))
        return self[need]
