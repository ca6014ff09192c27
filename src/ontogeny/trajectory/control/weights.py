"""The weights of one checkpoint of a control."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from ...errors import CheckpointError
from ..checkpoint import Checkpoint
from ..weights.digests import combine
from ..weights.files import Reader
from .learned import kept_names
from .reader import ControlReader
from .sources import Sources, is_bounded, remember_lengths
from .ties import first_names

_VERSION = "1"  # of what is computed; digests of controls depend on it


@dataclass(frozen=True, eq=False)
class ControlWeights:
    """What a checkpoint of a control is computed from, and how; nothing is computed yet.

    Attributes
    ----------
    kind, random_state
        Of the control.
    path
        Checkpoints of the source that are read, by increasing step; the first is where the
        control begins.
    at
        Which of them has the step of the control's checkpoint.
    """

    kind: str
    random_state: int
    path: tuple[Checkpoint, ...]
    at: int

    @property
    def name(self) -> str:
        """Return kind and seed, such as ``"turned 0"``."""
        return f"{self.kind} {self.random_state}"

    @property
    def here(self) -> Checkpoint:
        """Return the source's checkpoint of the same step."""
        return self.path[self.at]

    @property
    def sources(self) -> tuple[Checkpoint, ...]:
        """Return the checkpoints that are read."""
        return self.path

    @contextmanager
    def open(self) -> Iterator[Reader]:
        """Yield a reader that computes each tensor when it is asked for.

        Raises
        ------
        CheckpointError
            If a source cannot be read, or a bound on the revisions on disk does not allow it.
        """
        self._prepare()
        with ExitStack() as stack:
            sources = Sources(self.path, self.at, stack)
            first = first_names(self.path[0].weights, sources.reader(0)) if self.at else {}
            kept = kept_names(self.here) if self.at else frozenset()
            yield ControlReader(sources, self.kind, self.random_state, kept, first)

    def _prepare(self) -> None:
        """See to it that no more than one revision is needed beside the present one."""
        if self.kind == "turned" or self.at == 0 or not is_bounded(self.path):
            return
        if self.kind != "walk":
            raise CheckpointError(
                f"a control of kind {self.kind!r} reads other checkpoints at every step, and the "
                "revisions on disk are bounded, so they would be fetched again each time; "
                "download all first (ontogeny prefetch), or choose kind 'turned' or 'walk'."
            )
        remember_lengths(self.path)

    def on_disk(self) -> None:
        """Return None: what is computed lies in no file."""

    def digests(self, of: Callable[[Checkpoint], Mapping[str, str]]) -> dict[str, str]:
        """Return ``{tensor name: digest}`` by the digests `of` the sources, kind and seed.

        At the first step they are those of the source, as the tensors are.
        """
        if self.at == 0:
            return dict(of(self.here))
        read = [of(checkpoint) for checkpoint in self.path]
        return {
            name: self._digest({str(j): digests.get(name, "") for j, digests in enumerate(read)})
            for name in read[self.at]
        }

    def file_digests(self) -> dict[str, str] | None:
        """Return one digest by those of the Hub's files, or None if the source is elsewhere."""
        here = self.here.file_digests()
        if here is None or self.at == 0:
            return here
        read = [checkpoint.file_digests() or {} for checkpoint in self.path]
        return {self.name: self._digest({str(j): combine(d) for j, d in enumerate(read)})}

    def _digest(self, read: Mapping[str, str]) -> str:
        made = {"control": _VERSION, "kind": self.kind, "random_state": str(self.random_state)}
        return combine({**made, "at": str(self.at), **read})

    def moved(self, function: Callable[[Checkpoint], Checkpoint]) -> ControlWeights:
        """Return the same with other places of the sources, such as another cache."""
        return replace(self, path=tuple(map(function, self.path)))
