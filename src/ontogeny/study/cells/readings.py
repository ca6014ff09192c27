"""What observables are given of a step, a weight block, a series; see `ontogeny.observables`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from torch import nn

from ...capture.blocks import WeightBlock
from ...errors import ArgumentError, StoreError, check_known
from ...inputs.pieces import pieces_of, pieces_of_texts
from ...inputs.tokenize import count_ids
from ...needs import Need, Series
from ...needs.derived import Reference
from ...observables import Observable
from ...store import Cell
from ...trajectory import Trajectory
from ...trajectory.audit.weight_values import is_initialisation
from ...trajectory.untrained import (
    norms_of,
    untrained_like,
    with_exchanged_values,
    with_norms,
)
from ...trajectory.weights.files import Reader
from ..folder.layout import HERE, cell_path, reference_path, state_path
from .ahead import Ahead, Lazily, of_dataset, shares_passes
from .cache import read_verified
from .dependencies import Shared
from .models import Job, own_needs, read_model, read_once, skeleton_of

_CHUNK_BYTES = 1 << 26  # of float64 for all steps together
# Steps of models among what is read ahead: newly initialised, or with exchanged values.
_UNTRAINED = -1
_EXCHANGED = -2
MADE = (_UNTRAINED, _EXCHANGED)


class ReadStep:
    """One checkpoint, with the values of the needs that its observable declared."""

    stands_in_because = ""

    def __init__(
        self,
        job: Job,
        observable: Observable,
        step: int,
        values: Mapping[Need, Any],
        read: Callable[[Path], Cell] | None = None,
        shared: Shared | None = None,
    ) -> None:
        self.step = step
        self._read = read or (lambda place: read_verified(job.folder / place))
        self.reference_step = job.settings.reference_step
        self._job = job
        self._observable = observable
        self._values = values
        self._shared = shared or Shared(limit=0)

    @property
    def noise(self) -> bool:
        """Whether noise floors are to be measured at this step."""
        if not self._observable.uses_noise:
            raise ArgumentError(
                f"{self._observable.name} must set uses_noise to read noise."
            )
        return self.step in self._job.settings.noise_steps

    def __getitem__(self, need: Need) -> Any:
        self._check_declared(need)
        if isinstance(need, Reference):
            return _reference(
                self._read(reference_path(HERE, need)), self.reference_step
            )
        return self._values[need]

    def units(self, need: Need) -> np.ndarray:
        """Return the index of the text that each row of a need's value belongs to."""
        self._check_declared(need)
        return need.at_step.units(self._job.inputs_of(need))

    def shared(self, need: Need, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what `make` gives, kept for other observables that declare the need."""
        self._check_declared(need)
        # What no other observable asks for would only take memory from what is shared.
        return (
            self._shared.get((need, key), make)
            if self._is_asked_twice(need)
            else make()
        )

    def _is_asked_twice(self, need: Need) -> bool:
        return (
            sum(need in observable.needs() for observable in self._job.observables) > 1
        )

    def _check_declared(self, need: Need) -> None:
        if need not in self._observable.needs():
            declared = ", ".join(map(repr, self._observable.needs()))
            raise ArgumentError(
                f"{self._observable.name} asked for {need!r}, which its needs() does not declare; "
                f"it declares {declared}."
            )


class RunView:
    """The study as `prepare` sees it; it notes which steps were read, for the fingerprint."""

    is_trial = False
    is_of_steps = False  # whether more was asked for than the reference step

    def __init__(
        self,
        job: Job,
        trajectory: Trajectory,
        observable: Observable,
        values: dict[Need, Any],
        later: Mapping[int, Sequence[Need]] | None = None,
        once: bool = False,
    ) -> None:
        self._once = once  # the values go with the first reading of the reference step
        self._later = later or {}
        self.reference_step = job.settings.reference_step
        self._job = job
        self._trajectory = trajectory
        self._observable = observable
        self._at_reference = values
        self._read: set[int] = set()
        self._saw_steps = False

    @property
    def steps(self) -> np.ndarray:
        """All steps of the study."""
        self._saw_steps = self.is_of_steps = True
        return self._trajectory.steps

    @property
    def first_steps(self) -> np.ndarray:
        """Steps that the study's folder was begun with, as far as they are there.

        What depends on them alone stays when new checkpoints come.
        """
        self.is_of_steps = True
        first = self._job.settings.first_steps or self._trajectory.steps
        there = np.asarray(self._trajectory.steps)
        return np.asarray(there[np.isin(there, first)])

    @property
    def is_control(self) -> bool:
        """Whether it is a control run made of the studied one, at fewer steps than that."""
        return self._trajectory.controlled is not None

    def reading(self, step: int) -> ReadStep:
        """Read one checkpoint for the observable's needs."""
        self._read.add(int(step))
        self.is_of_steps |= int(step) != self.reference_step
        needs = own_needs(self._observable)
        values: dict[Need, Any] = {}
        if step == self.reference_step:
            values.update(self._at_reference)
            if self._once:
                self._at_reference.clear()
        if any(need not in values for need in needs):
            later = self._later.get(int(step), ())
            values = Lazily(
                needs, partial(read_once, self._job, self._trajectory, step, later)
            )
        return ReadStep(self._job, self._observable, step, values)

    def untrained(self) -> ReadStep:
        """Read the run's model before training: at step 0, else newly initialised.

        A step 0 that the audit takes for no initialisation, as of a run that begins with a
        trained model, is none. Where no model can be initialised, one with the values of each
        parameter in random order stands for it, and ``stands_in_because`` of the reading says why.
        """
        self.is_of_steps = True
        if 0 in self._trajectory.steps and is_initialisation(self._trajectory[0]):
            return self.reading(0)
        needs = own_needs(self._observable)
        untrained = _Untrained(self._job, self._trajectory, self.reference_step)
        values = Lazily(needs, untrained.read)
        # With one of them it is known whether another model stands in.
        for need in sorted((n for n in needs if n.reads_model), key=shares_passes)[-1:]:
            values[need]
        step = ReadStep(self._job, self._observable, 0, values)
        step.stands_in_because = untrained.because
        return step

    def grown(self, step: int, like: int) -> ReadStep:
        """Read one checkpoint with the norm that each of its parameters has at another one."""
        self.is_of_steps = True
        self._read |= {int(step), int(like)}
        skeleton = skeleton_of(self._job, self._trajectory)
        norms = norms_of(skeleton.load(self._trajectory[like]))
        model = with_norms(skeleton.load(self._trajectory[step]), norms)
        values = read_model(self._job, model, own_needs(self._observable))
        return ReadStep(self._job, self._observable, step, values)

    def tokenizer(self) -> Any:
        """Return the run's tokenizer, or None if there is none."""
        return self._trajectory.tokenizer()

    def pieces(self, need: Need) -> list[str]:
        """Return how each token id is shown, by the tokenizer or else the texts of the need."""
        tokenizer = self.tokenizer()
        if tokenizer is not None:
            return list(_pieces(tokenizer))
        return pieces_of_texts(self._job.inputs_of(need))

    def observed_dependencies(self) -> dict[str, Any]:
        """Return what the state depends on beside the reference step, for its fingerprint."""
        others = sorted(self._read - {self.reference_step})
        dependencies: dict[str, Any] = {}
        if others:
            digest = self._job.digests.whole
            dependencies["other_weights"] = {
                str(s): digest(self._trajectory[s]) for s in others
            }
        if self._saw_steps:
            dependencies["steps"] = [int(s) for s in self._trajectory.steps]
        return dependencies


class _Untrained:
    """A run's model before training, which is built when something is read of it.

    Newly initialised it is the same for every control run: of SmolLM2 each pass took 25 s, and
    building it another 10.
    """

    def __init__(self, job: Job, trajectory: Trajectory, step: int) -> None:
        self.because = ""
        self._job = job
        self._trajectory = trajectory
        self._step = step

    def read(self, needs: Sequence[Need]) -> dict[Need, Any]:
        """Return the values of needs, from files where they are there."""
        ahead = self._ahead(_UNTRAINED)
        return ahead.read(_UNTRAINED, needs, (), lambda missing, _: self._made(missing))

    def _made(self, needs: Sequence[Need]) -> dict[Need, Any]:
        model = (
            self._built() if any(need.reads_model for need in needs) else nn.Identity()
        )
        step = _EXCHANGED if self.because else _UNTRAINED
        read = partial(read_model, self._job, model)
        return self._ahead(step).read(
            step, needs, needs, lambda missing, _: read(missing)
        )

    def _ahead(self, step: int) -> Ahead:
        job = self._job
        # Where another model stands in, its values are those of this run.
        folder = job.folder if step == _EXCHANGED else job.studied or job.folder
        return Ahead(job.token, folder, job.settings.device)

    def _built(self) -> Any:
        here = self._trajectory[self._step]
        like = skeleton_of(self._job, self._trajectory).load(here)
        try:
            return untrained_like(like, random_state=0, build=here.builder())
        except ArgumentError as error:
            self.because = str(error)
            return with_exchanged_values(like)


# Of a large vocabulary it takes half a second, in each observable.
_pieces = lru_cache(maxsize=1)(pieces_of)


class ReadBlock:
    """One weight matrix over all steps, read in chunks from memory-mapped files.

    The last two steps of which rows were asked stay open: of a high matrix pieces of two steps are
    read by turns, and files would be opened for each of them.
    """

    def __init__(
        self, trajectory: Trajectory, block: WeightBlock, reference_step: int
    ) -> None:
        self.name = block.name
        self.steps = trajectory.steps
        self.reference_step = reference_step
        self._trajectory = trajectory
        self._block = block
        self.shape = tuple(block.shape)
        self.masked_rows = block.masked_rows
        self._opened = lru_cache(maxsize=2)(partial(_opened, trajectory))

    def rows(self, step: int, rows: np.ndarray) -> np.ndarray:
        """Return chosen rows of the matrix at one step, in float32."""
        first = int(rows.min())
        last = int(rows.max()) + 1
        values = self._block.rows(self._opened(step)[1], first, last).float().numpy()
        return np.asarray(values[rows - first])

    def chunks(self) -> Iterator[np.ndarray]:
        """Iterate over ``(steps, coordinates)`` float64 arrays that hold the matrix once."""
        per_row = int(np.prod(self.shape[1:])) * 8 * len(self.steps)
        rows = max(1, _CHUNK_BYTES // max(per_row, 1))
        with ExitStack() as stack:
            readers = [
                stack.enter_context(checkpoint.open())
                for checkpoint in self._trajectory
            ]
            for start in range(0, self.shape[0], rows):
                stop = min(start + rows, self.shape[0])
                yield np.stack(
                    [
                        self._block.rows(r, start, stop).double().numpy().ravel()
                        for r in readers
                    ]
                )

    def not_finite(self) -> np.ndarray:
        """Return (steps,) whether the matrix holds NaN or infinity at a step."""
        is_bad = np.zeros(len(self.steps), dtype=bool)
        for chunk in self.chunks():
            is_bad |= ~np.isfinite(chunk).all(axis=1)
        return is_bad


def vocabulary_size(trajectory: Trajectory) -> int | None:
    """Return the number of ids of the run's tokenizer, where it has one."""
    tokenizer = trajectory.tokenizer()
    return None if tokenizer is None else count_ids(tokenizer)


def _opened(trajectory: Trajectory, step: int) -> tuple[Any, Reader]:
    """Return a checkpoint that is open as long as what is returned is there, and its reader."""
    context = trajectory[step].open()
    return context, context.__enter__()


class ReadSeries:
    """One layer of another observable's cells along ``step``; failed cells are left out."""

    def __init__(
        self,
        job: Job,
        source: Series,
        steps: Sequence[int],
        layer: str,
        read: Callable[[Path], Cell],
    ) -> None:
        self.layer = layer
        self.reference_step = job.settings.reference_step
        pieces = []
        for step in steps:
            cell = read(cell_path(HERE, source.node, step))
            if cell.status != "done":
                continue
            data = self._of_layer(cell.data, source.node)
            if "status" not in data or str(data.status.item()) == "done":
                pieces.append(_variables(data, source).expand_dims(step=[step]))
        if not pieces:
            raise ArgumentError(f"{source.node} has no finished cell of this layer")
        self.data: xr.Dataset = xr.concat(
            pieces, dim="step", join="outer", data_vars="all"
        )

    def _of_layer(self, data: xr.Dataset, node: str) -> xr.Dataset:
        if "layer" not in data.dims or self.layer not in data.layer.values:
            raise ArgumentError(
                f"{node} has no layer {self.layer!r}; series are of observables of activations."
            )
        return data.sel(layer=self.layer, drop=True)


def _variables(data: xr.Dataset, source: Series) -> xr.Dataset:
    check_known(source.node, "variable", source.variables, map(str, data.data_vars))
    return data[list(source.variables)]


def state_node(observable: Observable) -> str:
    """Return the node whose state an observable is given, usually its own; empty if none."""
    return observable.state_of or (observable.name if observable.prepares else "")


def load_state(
    observable: Observable, read: Callable[[Path], Cell]
) -> xr.Dataset | None:
    """Return the stored state that an observable is given, memory-mapped, or None."""
    node = state_node(observable)
    if not node:
        return None
    data = read(state_path(HERE, node)).data
    return None if "empty" in data.attrs else data


def _reference(cell: Cell, step: int) -> Any:
    """Return what a need gave at the reference step; tensors share the file's memory map.

    Raises
    ------
    StoreError
        If it could not be read there.
    """
    if cell.status != "done":
        raise StoreError(f"reference step {step} {cell.status}")
    return of_dataset(cell.data)
