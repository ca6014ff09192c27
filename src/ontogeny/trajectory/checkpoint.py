"""One checkpoint of a training run, as a value."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from ..errors import CheckpointError
from .hub.repository import RemoteModel
from .hub.revision import HubRevision, HubWeights
from .weights.building import Template, build, build_mapped, check_dtype
from .weights.configuration import read_configuration
from .weights.digests import combine, tensor_digests
from .weights.files import MemoryWeights, Reader, Weights
from .weights.placement import is_placed
from .weights.settings import built, left_settings, taken_settings


class Derived(Weights, Protocol):
    """Weights that are computed, when they are read, from those of stored checkpoints."""

    @property
    def name(self) -> str:
        """Return what they are, such as ``"turned 0"``."""

    @property
    def here(self) -> Checkpoint:
        """Return the stored checkpoint of the same step, whose configuration they have."""

    @property
    def sources(self) -> tuple[Checkpoint, ...]:
        """Return all stored checkpoints that are read."""

    def digests(self, of: Callable[[Checkpoint], Mapping[str, str]]) -> dict[str, str]:
        """Return a digest for each tensor, by those `of` the sources; nothing is computed."""

    def file_digests(self) -> dict[str, str] | None:
        """Return a digest by those of the Hub's files, or None if the sources are elsewhere."""

    def moved(self, function: Callable[[Checkpoint], Checkpoint]) -> Derived:
        """Return the same with other places of the sources."""


@dataclass(frozen=True)
class Checkpoint:
    """The weights of a model after `step` updates; made by a `Trajectory`.

    Attributes
    ----------
    step
        Number of optimiser updates done.
    label
        Its name in messages and figures, such as ``"checkpoint-500"`` or ``"step 500"``.
    path
        Its folder, or None if it lives in memory or is computed. That of a Hub revision may not
        be there yet.
    tokens
        Number of tokens seen in training, where the name of the revision gives it.
    source
        The Hub revision that it comes from, if any; weights are fetched when they are needed.
    derived
        How its weights are computed from those of stored checkpoints, as those of
        `Trajectory.control` are; None if they are stored.

    Examples
    --------
    >>> from ontogeny import Trajectory
    >>> checkpoint = Trajectory.from_models({7: nn.Linear(3, 2)})[7]
    >>> checkpoint.label, checkpoint.model().training
    ('step 7', False)
    >>> with checkpoint.open() as tensors:
    ...     tensors.shape("weight"), tensors.rows("weight", 0, 1).shape
    ((2, 3), torch.Size([1, 3]))
    """

    step: int
    label: str
    path: Path | None
    weights: Weights = field(repr=False)
    template: Template | None = field(default=None, repr=False, compare=False)
    tokens: int | None = field(default=None, repr=False)
    source: HubRevision | None = field(default=None, repr=False)
    derived: Derived | None = field(default=None, repr=False)

    @property
    def home(self) -> Checkpoint:
        """The stored checkpoint that configuration and tokenizer come from: usually itself."""
        return self if self.derived is None else self.derived.here.home

    @property
    def sources(self) -> tuple[Checkpoint, ...]:
        """The stored checkpoints that are read for its weights: usually itself alone."""
        if self.derived is None:
            return (self,)
        made_of = chain.from_iterable(c.sources for c in self.derived.sources)
        return tuple(dict.fromkeys(made_of))

    @property
    def hub_revisions(self) -> list[HubRevision]:
        """The revisions of the Hub that are read for its weights."""
        return [s.source for s in self.sources if s.source is not None]

    @property
    def is_computed(self) -> bool:
        """Whether its weights are computed when they are read."""
        return self.derived is not None and self.weights is self.derived

    @property
    def is_downloaded(self) -> bool:
        """Whether nothing has to be fetched from the Hub to read its weights."""
        return all(c.source is None or c.source.is_downloaded() for c in self.sources)

    @property
    def revision(self) -> str | None:
        """The branch or tag on the Hub, or None."""
        return None if self.source is None else self.source.name

    @property
    def commit(self) -> str | None:
        """The commit on the Hub that everything of this checkpoint comes from, or None."""
        return None if self.source is None else self.source.commit

    def model(
        self, device: str | torch.device = "cpu", dtype: torch.dtype | None = None
    ) -> nn.Module:
        """Return a fresh module in eval mode that shares nothing with any other.

        Parameters
        ----------
        device
            Where its tensors go; those of a model that accelerate has placed stay there.
        dtype
            Floating-point dtype of the weights; None keeps the stored one.

        Raises
        ------
        CheckpointError
            If any weight is missing, newly initialised or of another shape.
        """
        check_dtype(dtype)
        with self.present() as there:
            module = build(
                there.label, there.weights, there.home.path, there.template, dtype
            )
        return module if is_placed(module) else module.to(device)

    def mapped(self) -> nn.Module:
        """Return a module in eval mode, on the CPU, whose weights are to be looked at only.

        Of safetensors files, a weight is read when it is used, so this costs neither time nor
        memory. It is not to be changed or run: `model` gives one that is.

        Raises
        ------
        CheckpointError
            If any weight is missing, newly initialised or of another shape.
        """
        with self.present() as there:
            return build_mapped(
                there.label, there.weights, there.home.path, there.template
            )

    @contextmanager
    def present(self, tensors: Collection[str] | None = None) -> Iterator[Checkpoint]:
        """Yield this checkpoint with its weights on this machine; they stay there meanwhile.

        Of weights that are computed, those of the same step are there. Where only some `tensors`
        are named, shards of a Hub revision without them may be missing.

        Raises
        ------
        CheckpointError
            If the weights of a Hub revision cannot be fetched whole.
        """
        if self.derived is not None and self.is_computed:
            here = self.derived.here
            with here.present(tensors) as there:
                if there is here:
                    yield self
                else:
                    yield self.derived_from(lambda c: there if c is here else c)
            return
        if not isinstance(self.weights, HubWeights):
            yield self
            return
        with self.weights.source.present(tensors) as source:
            yield self if source is self.source else self.moved(source)

    def moved(self, source: HubRevision) -> Checkpoint:
        """Return this checkpoint with its files in another cache."""
        template = self.template
        if isinstance(template, RemoteModel):
            template = RemoteModel(source)
        return replace(
            self,
            path=source.path,
            weights=HubWeights(source),
            template=template,
            source=source,
        )

    def derived_from(self, function: Callable[[Checkpoint], Checkpoint]) -> Checkpoint:
        """Return this checkpoint, whose weights are computed, with other places of its sources."""
        assert self.derived is not None
        moved = self.derived.moved(function)
        here = moved.here
        template = (
            here.template if isinstance(self.template, RemoteModel) else self.template
        )
        return replace(
            self, weights=moved, derived=moved, template=template, source=here.source
        )

    def digests(self) -> dict[str, str]:
        """Return ``{tensor name: digest}`` by content: dtype, shape and bytes.

        Names are those of the file. Files are hashed once in a process, as long as their sizes
        and modification times stay. Of weights that are computed, the digests follow from those
        of what is read and from how they are computed.

        Raises
        ------
        CheckpointError
            If a file is damaged, or (as `NotDownloadedError`) the weights of a Hub revision are
            not on this machine: this never downloads. `file_digests` does without them.
        """
        if self.derived is not None:
            return self.derived.digests(Checkpoint.digests)
        return tensor_digests(self.weights)

    def file_digests(self) -> dict[str, str] | None:
        """Return ``{weight file: SHA-256}`` of a Hub revision from its listing, else None.

        Nothing is downloaded. The digests are the same before and after a download, so they are
        what the results of a Hub revision depend on: all of its weights, as whole files.

        Raises
        ------
        CheckpointError
            If the Hub cannot be reached, or the revision holds no weights or not all shards.
        """
        if self.derived is not None:
            return self.derived.file_digests()
        return None if self.source is None else self.source.digests()

    @property
    def fingerprint(self) -> str:
        """One digest of all weights: by tensor content, of a Hub revision by whole files.

        Raises
        ------
        CheckpointError
            As `digests` and `file_digests` do.
        """
        files = self.file_digests()
        return combine(self.digests() if files is None else files)

    def open(self) -> AbstractContextManager[Reader]:
        """Open the tensors for reading one by one, or some rows of one.

        The reader has ``names()``, ``shape(name)``, ``dtype(name)``, ``get(name)`` and
        ``rows(name, start, stop)``; files are memory-mapped.
        """
        return self.weights.open()

    def configuration(self) -> dict[str, Any] | None:
        """Return the configuration that defines the model, or None if there is none.

        Keys that do not define the model (paths, library versions) are left out.

        Raises
        ------
        CheckpointError
            If the folder is gone, or `config.json` cannot be read or fetched.
        """
        if self.derived is not None:
            return self.home.configuration()
        if self.source is not None:
            self.source.fetch("config.json")
        elif isinstance(self.weights, MemoryWeights):
            source = self.weights.source
            return read_configuration(source if isinstance(source, nn.Module) else None)
        elif self.path is not None and not self.path.exists():
            raise CheckpointError(f"{self.label} is gone: {self.path} does not exist.")
        return read_configuration(self.path)

    def builder(self) -> Template | None:
        """Return what builds its model, with its settings where it asks for any."""
        if self.template is None or isinstance(self.template, nn.Module):
            return self.template
        return partial(built, self.template, self.home.path)

    def settings(self) -> dict[str, Any]:
        """Return the settings beside its weights that the model is built with, by dotted names.

        Empty where the model is built without any, and of weights that are still to be fetched.

        Raises
        ------
        CheckpointError
            If they cannot be read.
        """
        return (
            taken_settings(self.template, self.home.path) if self.is_downloaded else {}
        )

    def settings_left(self) -> dict[str, Any]:
        """Return the settings of a model that is built without any, by dotted names.

        Raises
        ------
        CheckpointError
            If they cannot be read.
        """
        return (
            left_settings(self.template, self.home.path) if self.is_downloaded else {}
        )
