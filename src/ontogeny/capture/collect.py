"""Collectors: what takes its part out of a forward pass, and the pass that feeds them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from typing import Any, Protocol

from torch import Tensor, nn

from ..errors import ArgumentError
from ..inputs.batches import Batch
from .forward import Enough, quiet, run
from .fused import fused_maps
from .sites import watched


class Collector(Protocol):
    """Takes what one need asks for out of forward passes that it may share with others."""

    paths: Sequence[str] = ()
    """Labels of the sites that it wants to see."""

    takes_maps: bool = False
    """Whether it takes the maps of fused attention."""

    def attached(self) -> AbstractContextManager[None]:
        """Return the context in which batches are fed."""
        return nullcontext()

    @abstractmethod
    def start(self, batch: Batch) -> set[str] | None:
        """Begin a batch; return the sites that it waits for, None to run to the very end.

        The empty set says that nothing of this batch is wanted.
        """

    def take(self, path: str, output: Any) -> None:
        """Take what is wanted of one site's value; must copy, never keep a view."""
        return

    def take_map(self, path: str, weights: Tensor) -> None:
        """Take what is wanted of a map of fused attention, before its module has ended."""
        return

    @abstractmethod
    def finish(self, output: Any) -> None:
        """End a batch; `output` is the model's, None if the pass was stopped before."""

    def result(self) -> Any:
        """Return what was collected over all batches."""
        return


class _Pass:
    """The state of one batch's forward pass."""

    def __init__(self, model: nn.Module, collectors: Sequence[Collector]) -> None:
        self.model = model
        self.collectors = collectors
        self.listeners: dict[str, list[Collector]] = {}
        for collector in collectors:
            for path in dict.fromkeys(collector.paths):
                self.listeners.setdefault(path, []).append(collector)
        self.waiting: set[str] = set()
        self.to_the_end = False

    def on_output(self, path: str, output: Any) -> None:
        for collector in self.listeners[path]:
            collector.take(path, output)
        self.waiting.discard(path)
        if not self.waiting and not self.to_the_end:
            raise Enough

    def on_map(self, path: str, weights: Tensor) -> None:
        for collector in self.listeners[path]:
            collector.take_map(path, weights)

    def forward(self, batch: Batch, position_ids: bool) -> None:
        awaited = [collector.start(batch) for collector in self.collectors]
        self.to_the_end = any(paths is None for paths in awaited)
        self.waiting = set().union(*(paths or () for paths in awaited))
        output = None
        if self.waiting or self.to_the_end:
            with suppress(Enough):
                output = run(self.model, batch, position_ids=position_ids)
        if self.waiting:
            raise ArgumentError(
                f"the forward pass of {type(self.model).__name__} never called "
                f"{', '.join(sorted(self.waiting))}; choose layers that take part in it."
            )
        for collector in self.collectors:
            collector.finish(output)


def feed(
    model: nn.Module,
    batches: Iterable[Batch],
    collectors: Sequence[Collector],
    *,
    position_ids: bool = False,
) -> None:
    """Run every batch once, no further than the deepest module that any collector waits for.

    Raises
    ------
    ArgumentError
        If a module that is waited for is never called.
    """
    state = _Pass(model, collectors)
    with quiet(model), ExitStack() as stack:
        stack.enter_context(watched(model, state.listeners, state.on_output))
        if any(collector.takes_maps for collector in collectors):
            stack.enter_context(fused_maps(model, state.listeners, state.on_map))
        for collector in collectors:
            stack.enter_context(collector.attached())
        for batch in batches:
            state.forward(batch, position_ids)
