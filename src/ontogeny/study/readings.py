"""The concrete readings that observables are given (see `ontogeny.observables.Reading`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from ..capture import WeightBlock
from ..errors import ArgumentError, suggestion
from ..needs import Need, Reference, Series
from ..observables import Observable
from ..store import read_cell
from ..trajectory import Trajectory
from .digests import whole_digest
from .layout import cell_path

if TYPE_CHECKING:
    from .tasks import Job

__all__ = [
    "ReadBlock",
    "ReadSeries",
    "ReadStep",
    "RunView",
    "restore_reference",
    "store_reference",
    "vocabulary_size",
]

_CHUNK_BYTES = 1 << 26  # of float64 for all steps together


class ReadStep:
    """One checkpoint, with the values of the needs that its observable declared."""

    def __init__(
        self, job: Job, observable: Observable, step: int, values: Mapping[Need, Any]
    ) -> None:
        self.step = step
        self.reference_step = job.settings.reference_step
        self._job = job
        self._observable = observable
        self._values = values

    @property
    def noise(self) -> bool:
        """Whether noise floors are to be measured at this step."""
        if not self._observable.uses_noise:
            raise ArgumentError(f"{self._observable.name} must set uses_noise to read noise.")
        return self.step in self._job.settings.noise_steps

    def __getitem__(self, need: Need) -> Any:
        self._check_declared(need)
        if isinstance(need, Reference):
            from .work import load_reference

            return load_reference(self._job, need)
        return self._values[need]

    def units(self, need: Need) -> np.ndarray:
        """Return the index of the text that each row of a need's value belongs to."""
        self._check_declared(need)
        read = need.at_step
        return read.units(self._job.inputs[read.on or next(iter(self._job.inputs))])

    def _check_declared(self, need: Need) -> None:
        if need not in self._observable.needs():
            declared = ", ".join(map(repr, self._observable.needs()))
            raise ArgumentError(
                f"{self._observable.name} asked for {need!r}, which its needs() does not declare; "
                f"it declares {declared}."
            )


class RunView:
    """The study as `prepare` sees it; it notes what was looked at, for the state's fingerprint."""

    def __init__(
        self,
        job: Job,
        trajectory: Trajectory,
        observable: Observable,
        cache: Mapping[int, Mapping[Need, Any]],
    ) -> None:
        self.reference_step = job.settings.reference_step
        self._job, self._trajectory, self._observable = job, trajectory, observable
        self._cache = cache
        self._read: set[int] = set()
        self._saw_steps = False

    @property
    def steps(self) -> np.ndarray:
        """All steps of the study."""
        self._saw_steps = True
        return self._trajectory.steps

    def reading(self, step: int) -> ReadStep:
        """Read one checkpoint for the observable's needs."""
        from .work import own_needs, read_needs

        self._read.add(int(step))
        own = own_needs(self._observable)
        values = self._cache.get(step)
        if values is None or any(need not in values for need in own):
            values = read_needs(self._job, self._trajectory, step, own)
        return ReadStep(self._job, self._observable, step, values)

    def components(self) -> dict[str, Any]:
        """Return what the state depends on beside the reference step, for its fingerprint."""
        others = sorted(self._read - {self.reference_step})
        components: dict[str, Any] = {}
        if others:
            components["other_weights"] = {
                str(step): whole_digest(self._trajectory[step]) for step in others
            }
        if self._saw_steps:
            components["steps"] = [int(s) for s in self._trajectory.steps]
        return components


class ReadBlock:
    """One weight matrix over all steps, read in chunks from memory-mapped files."""

    def __init__(self, trajectory: Trajectory, block: WeightBlock, reference_step: int) -> None:
        self.name = block.name
        self.steps = trajectory.steps
        self.reference_step = reference_step
        self._trajectory, self._block = trajectory, block
        self.shape, self.masked_rows = tuple(block.shape), block.masked_rows

    def chunks(self) -> Iterator[np.ndarray]:
        """Iterate over ``(steps, coordinates)`` float64 arrays that hold the matrix once."""
        per_row = int(np.prod(self.shape[1:])) * 8 * len(self.steps)
        rows = max(1, _CHUNK_BYTES // max(per_row, 1))
        with ExitStack() as stack:
            readers = [stack.enter_context(checkpoint.open()) for checkpoint in self._trajectory]
            for start in range(0, self.shape[0], rows):
                stop = min(start + rows, self.shape[0])
                yield np.stack(
                    [self._block.rows(r, start, stop).double().numpy().ravel() for r in readers]
                )


def vocabulary_size(trajectory: Trajectory) -> int | None:
    """Return the number of tokens that the run's tokenizer knows, where it has one."""
    tokenizer = trajectory.tokenizer()
    return None if tokenizer is None else len(tokenizer)


class ReadSeries:
    """One layer of another observable's cells along ``step``; failed cells are left out."""

    def __init__(self, job: Job, source: Series, steps: Sequence[int], layer: str) -> None:
        self.layer = layer
        self.reference_step = job.settings.reference_step
        pieces = []
        for step in steps:
            cell = read_cell(cell_path(job.folder, source.node, step), verify=False)
            if cell.status != "done":
                continue
            data = self._of_layer(cell.data, source.node)
            if "status" not in data or str(data.status.item()) == "done":
                pieces.append(_variables(data, source).expand_dims(step=[step]))
        if not pieces:
            raise ArgumentError(f"{source.node} has no finished cell of {layer}")
        self.data: xr.Dataset = xr.concat(pieces, dim="step", join="outer", data_vars="all")

    def _of_layer(self, data: xr.Dataset, node: str) -> xr.Dataset:
        if "layer" not in data.dims or self.layer not in data.layer.values:
            raise ArgumentError(
                f"{node} has no layer {self.layer!r}; series are of observables of activations."
            )
        return data.sel(layer=self.layer, drop=True)


def _variables(data: xr.Dataset, source: Series) -> xr.Dataset:
    unknown = [name for name in source.variables if name not in data]
    if unknown:
        known = [str(name) for name in data.data_vars]
        raise ArgumentError(
            f"{source.node} has no variable {unknown[0]!r}; its cells hold {', '.join(known)}."
            f"{suggestion(unknown[0], known)}"
        )
    return data[list(source.variables)]


def store_reference(value: Any) -> xr.Dataset:
    """Return a need's value as a dataset; ``{path: (n, m) tensor}`` gets one variable a layer."""
    if isinstance(value, xr.Dataset):
        return value.assign_attrs(reference="dataset")
    layers = {
        path: ((f"token{i}", f"feature{i}"), tensor.cpu().numpy())
        for i, (path, tensor) in enumerate(value.items())
    }
    return xr.Dataset(layers, attrs={"reference": "layers"})


def restore_reference(data: xr.Dataset) -> Any:
    """Return the value that `store_reference` was given; tensors share the file's memory map."""
    if data.attrs["reference"] == "dataset":
        return data
    import torch

    return {str(path): torch.from_numpy(v.values) for path, v in data.data_vars.items()}
