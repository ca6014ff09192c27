"""One module for a whole trajectory: weights are swapped within it, memory stays constant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import nn

from ..errors import CheckpointError
from .checkpoint import Checkpoint
from .findings import some
from .weights.building import agreeing, check_dtype, put
from .weights.configuration import changes, other_model
from .weights.files import state_tensors
from .weights.names import NameMap, map_names
from .weights.placement import at_rest
from .weights.streaming import stream


class Checkpoints(Protocol):
    """Checkpoints in order that are found by their step, as those of a `Trajectory`."""

    def __getitem__(self, step: int) -> Checkpoint: ...
    def __iter__(self) -> Iterator[Checkpoint]: ...


@dataclass(frozen=True)
class Identity:
    """What all checkpoints of a run have alike, whichever of them a process reads first.

    Attributes
    ----------
    label
        The checkpoint that it is of.
    configuration
        What defines the model, or None.
    shapes
        Of its tensors, where there is no configuration and they are on this machine.
    settings
        Those of a model that stand beside its weights and that its builder does not take.
    """

    label: str
    configuration: dict[str, Any] | None
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict, repr=False)
    settings: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Identity:
        """Return that of a checkpoint."""
        configuration = checkpoint.configuration()
        is_configured = configuration is not None or not checkpoint.is_downloaded
        shapes = {} if is_configured else _shapes(checkpoint)
        return cls(checkpoint.label, configuration, shapes, checkpoint.settings_left())

    def refuse(self, checkpoint: Checkpoint) -> None:
        """Raise CheckpointError where a checkpoint is another model."""
        changed = other_model(self.configuration, checkpoint.configuration())
        if not changed:
            after = _shapes(checkpoint) if self.shapes else {}
            changed = changes(
                self.shapes, {n: after.get(n, s) for n, s in self.shapes.items()}
            )
        if changed:
            raise CheckpointError(
                f"{checkpoint.label} is another model than {self.label}: {some(changed, '; ')}."
            )
        left = checkpoint.settings_left()
        changed = changes(self.settings, left) if self.settings and left else []
        if changed:
            raise CheckpointError(
                f"{checkpoint.label} has other settings than {self.label}: {some(changed, '; ')}; "
                "what builds the model does not take them: give a function that does, such as "
                "build(config)."
            )


def _shapes(checkpoint: Checkpoint) -> dict[str, tuple[int, ...]]:
    with checkpoint.open() as reader:
        return {name: reader.shape(name) for name in reader.names()}


class Skeleton:
    """The one module of a process, with the weights of one checkpoint after another.

    Made by `Trajectory.skeleton`. Every `load` returns the same module object, but where a
    checkpoint holds other settings that its model is built with: what was computed with the earlier
    weights must be done with by then. `Checkpoint.model` gives independent ones.

    Parameters
    ----------
    trajectory
        The checkpoints that can be loaded by step.
    device
        Where the module lives.
    dtype
        Floating-point dtype of the weights; None keeps that of the first checkpoint loaded.
    anew
        Whether a module is built for every checkpoint: where one keeps something that it computed
        from its weights.

    Examples
    --------
    >>> from ontogeny import Trajectory
    >>> trajectory = Trajectory.from_models({0: nn.Linear(3, 2), 10: nn.Linear(3, 2)})
    >>> skeleton = trajectory.skeleton()
    >>> skeleton.load(0) is skeleton.load(10)
    True
    """

    def __init__(
        self,
        trajectory: Checkpoints,
        device: str | torch.device = "cpu",
        dtype: torch.dtype | None = None,
        anew: bool = False,
    ) -> None:
        check_dtype(dtype)
        self._anew = anew
        self._trajectory = trajectory
        self._device = device
        self._dtype = dtype
        self._module: nn.Module | None = None
        self._to_file: dict[str, str] = {}
        self._identity: Identity | None = None
        self._settings: dict[str, Any] = {}
        self._names: tuple[list[str], NameMap] | None = None

    def load(self, checkpoint: Checkpoint | int) -> nn.Module:
        """Return the module with the weights of `checkpoint`, in eval mode, without gradients.

        Raises
        ------
        CheckpointError
            If a weight is missing, newly initialised or of another shape, the configuration
            differs from the first checkpoint's, or the step is unknown.
        """
        if not isinstance(checkpoint, Checkpoint):
            checkpoint = self._trajectory[checkpoint]
        settings = checkpoint.settings()
        if self._identity is not None:
            self._identity.refuse(checkpoint)
        if self._module is None or self._anew or settings != self._settings:
            self._module = None  # never two at once
            self._module = self._first(checkpoint)
            self._settings = settings
        else:
            self._swap(self._module, checkpoint)
        self._module.zero_grad(set_to_none=True)
        return self._module.eval()

    def file_names(self) -> dict[str, str]:
        """Return ``{parameter or buffer name: tensor name in the checkpoint files}``.

        Every name of a tied tensor maps to the stored one. Names without a single partner in the
        file (buffers that are not saved, weights that transformers joins or splits) are absent.
        """
        if not self._to_file:
            self.load(next(iter(self._trajectory)))
        return dict(self._to_file)

    def mapped(self, checkpoint: Checkpoint) -> nn.Module:
        """Return a module whose weights are to be looked at, see `Checkpoint.mapped`.

        It is none of the skeleton's, but `file_names` are known afterwards.

        Raises
        ------
        CheckpointError
            If a weight is missing, newly initialised or of another shape.
        """
        module = checkpoint.mapped()
        self._to_file = self._agreeing(module, checkpoint)
        return module

    def streamed(self, checkpoint: Checkpoint) -> nn.Module:
        """Return a module that reads the weights of each part from the files while that runs.

        It takes the memory of its largest part, on the skeleton's device too, and its numbers are
        those of a loaded one. All is read again for every batch.

        Raises
        ------
        CheckpointError
            If `mapped` raises it, or a weight is not stored as one tensor.
        """
        module = checkpoint.mapped()
        if not self._to_file:
            self._to_file = self._agreeing(module, checkpoint)
        place = self._device, self._dtype
        stream(checkpoint.label, module, checkpoint.weights, self._to_file, *place)
        return module

    def _first(self, checkpoint: Checkpoint) -> nn.Module:
        module = checkpoint.model(self._device, self._dtype)
        self._to_file = self._agreeing(module, checkpoint)
        if self._identity is None:
            left = checkpoint.settings_left()
            self._identity = Identity(
                checkpoint.label, checkpoint.configuration(), settings=left
            )
        return module

    def _agreeing(self, module: nn.Module, checkpoint: Checkpoint) -> dict[str, str]:
        """Return the stored names whose values agree with what transformers loaded."""
        with checkpoint.open() as reader:
            to_file = self._map(module, checkpoint, reader.names()).to_file
            proven = agreeing(reader, module, to_file)
        return {
            name: file_name for name, file_name in to_file.items() if name in proven
        }

    def _swap(self, module: nn.Module, checkpoint: Checkpoint) -> None:
        at_rest(module)
        module.train()  # what it fused or kept for evaluation comes from other weights
        with checkpoint.open() as reader:
            names = self._map(module, checkpoint, reader.names())
            if (
                self._to_file.keys() >= state_tensors(module).keys()
                and not names.missing
            ):
                exact = self._dtype is None
                put(checkpoint.label, reader, module, names.to_file, exact)
                return
        # What transformers joins, splits or turns on the way has to go through transformers.
        fresh = state_tensors(checkpoint.model(dtype=self._dtype))
        with torch.no_grad():
            for name, target in state_tensors(module).items():
                target.copy_(fresh[name])

    def _map(
        self, module: nn.Module, checkpoint: Checkpoint, file_names: list[str]
    ) -> NameMap:
        if self._names is None or self._names[0] != file_names:
            self._names = (
                file_names,
                map_names(module, file_names, checkpoint.home.path),
            )
        return self._names[1]
