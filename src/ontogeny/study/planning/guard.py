"""A model whose code is no library's is tried on one text before its numbers are believed.

At the first and the last checkpoint the text is read by a module that was built for it alone. What
the study reads by must give the same: one module that gets the weights of one checkpoint after the
other, a streamed one, and a batch of three texts with padding. Where it does not, the study reads
in a plainer way and says so; where no way helps, it is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ... import capture
from ...capture.forward import quiet, run, without_added
from ...capture.loss import resolve_objective
from ...capture.outputs import output_tensor, relative_change
from ...capture.trial.first_look import look_at
from ...capture.trial.invariance import shortened
from ...errors import ArgumentError, CheckpointError, OntogenyError
from ...inputs import Inputs
from ...needs import Losses, Need
from ...trajectory import Checkpoint, Trajectory
from ...trajectory.hub.repository import RemoteModel
from ...trajectory.skeleton import Skeleton
from ..folder.settings import Settings

log = logging.getLogger("ontogeny.study")

_TOKENS = 32
_TRIES = 3  # checkpoints at either end
PASSES = 12  # of the text, at most
# Nats per token that kernels of another shape may make of the same text.
_NATS = 1e-4
_HALF_NATS = 3e-2


@dataclass(frozen=True)
class Fallback:
    """A plainer way of reading a model than was asked for; nothing where none is needed.

    Attributes
    ----------
    batch_size
        1 where texts are read one by one, else 0.
    weights
        What `Settings.weights` becomes, or empty.
    notes
        What is said of it.
    """

    batch_size: int = 0
    weights: str = ""
    notes: tuple[str, ...] = ()

    def of(self, settings: Settings) -> Settings:
        """Return settings with this way of reading."""
        return replace(
            settings,
            batch_size=self.batch_size or settings.batch_size,
            weights=self.weights or settings.weights,
        )

    def joined(self, other: Fallback) -> Fallback:
        """Return what both ask for."""
        alone = other.batch_size != self.batch_size and other.batch_size
        further = alone or (other.weights and other.weights != self.weights)
        return Fallback(
            self.batch_size or other.batch_size,
            other.weights or self.weights,
            (*self.notes, *(other.notes if further else ())),
        )


def is_tried(checkpoint: Checkpoint) -> bool:
    """Return whether a checkpoint's model is not built by this library or transformers alone.

    A class or a function of the user's, a module in memory, or code of a repository on the Hub.
    """
    template = checkpoint.template
    of_library = type(template).__module__.startswith("ontogeny.")  # as of GGUF files
    return template is not None and (
        not of_library or isinstance(template, RemoteModel)
    )


def guard(
    trajectory: Trajectory,
    inputs: Mapping[str, Inputs],
    needs: Sequence[Need],
    settings: Settings,
) -> Fallback:
    """Return the way in which a run's model must be read.

    Raises
    ------
    ArgumentError
        If two modules built of the same checkpoint differ, or no way of reading gives what a bare
        pass of the model gives.
    """
    running = [need for need in needs if need.runs_model]
    here = [c for c in trajectory if is_tried(c) and c.is_downloaded]
    if not running or not here:
        return Fallback()
    # Where one cannot be read, which its cells say, another stands for it.
    for first, last in product(here[:_TRIES], here[: -_TRIES - 1 : -1]):
        try:
            return _Guard(trajectory, inputs, running, settings).of(first, last)
        except CheckpointError as error:
            log.debug(
                "the model was not tried at %s and %s: %s",
                first.label,
                last.label,
                error,
            )
    return Fallback()


class _Guard:
    def __init__(
        self,
        trajectory: Trajectory,
        inputs: Mapping[str, Inputs],
        needs: Sequence[Need],
        settings: Settings,
    ) -> None:
        self._trajectory = trajectory
        self._settings = settings
        self._place = (settings.device, settings.torch_dtype())
        on = needs[0].on or next(iter(inputs))
        texts = settings.reading_settings().layout(inputs[on])
        # Never more than a bare pass of the study's texts.
        most = int(texts.mask.sum()) // PASSES
        self._texts = shortened(
            texts, max(2, min(_TOKENS, most, int(texts.lengths.max())))
        )
        self._longest = int(self._texts.lengths.argmax())
        objectives = (getattr(need, "objective", None) for need in needs)
        self._objective = next(filter(None, objectives), None)
        self._is_causal = False  # until a model shows it

    def of(self, first: Checkpoint, last: Checkpoint) -> Fallback:
        """Return the way of reading that the first and the last checkpoint need."""
        ends = (first, last) if last is not first else (first,)
        bare = [self._bare(checkpoint, seed=i) for i, checkpoint in enumerate(ends)]
        skeleton = self._trajectory.skeleton(*self._place)
        found = Fallback()
        for checkpoint, alone in zip(ends, bare, strict=True):
            found = found.joined(
                self._swapped(skeleton, checkpoint, alone, checkpoint is first)
            )
        if self._settings.weights == "streamed":
            for checkpoint, alone in zip(ends, bare, strict=True):
                found = self._streamed(skeleton, checkpoint, alone).joined(found)
        return found

    def _bare(self, checkpoint: Checkpoint, seed: int) -> Tensor | None:
        """Return what a module gives that was built for one checkpoint alone."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed + 1)
            model = checkpoint.model(*self._place)
        if self._objective is not None:
            with suppress(ArgumentError):  # its observables say what is missing
                self._is_causal = resolve_objective(model, self._objective) == "causal"
        return self._alone(model)

    def _swapped(
        self,
        skeleton: Skeleton,
        checkpoint: Checkpoint,
        bare: Tensor | None,
        is_first: bool,
    ) -> Fallback:
        """Compare the module that gets the weights of every checkpoint."""
        model = skeleton.load(checkpoint)
        alone = self._alone(model)
        together = self._together(model, checkpoint, alone)
        if _same(bare, alone):
            return together
        again = alone if is_first else self._bare(checkpoint, seed=100)
        if not _same(bare, again):
            raise ArgumentError(
                f"two models built of {checkpoint.label} give {self._both(bare, again)} for the "
                "same text: it computes with something that is not in the checkpoint. Save it "
                "with the weights, or build it the same each time."
            )
        note = (
            f"the model is built anew at every checkpoint: with the weights of {checkpoint.label} "
            f"put into one that was used before, it gives {self._both(alone, bare)} for the same "
            "text, so it keeps something that it computed from its weights"
        )
        return together.joined(Fallback(weights="rebuilt", notes=(note,)))

    def _together(
        self, model: nn.Module, checkpoint: Checkpoint, alone: Tensor | None
    ) -> Fallback:
        """Compare a batch of three texts, and what the study reads, with the text alone."""
        nats = self._nats(alone)
        if nats is None:
            return Fallback()
        allowed = (
            _NATS if alone is not None and alone.element_size() >= 4 else _HALF_NATS
        )
        together = min(len(self._texts), self._settings.batch_size)
        batched = self._read(model, together)
        if batched is None or abs(batched - nats) <= allowed:
            return Fallback()
        single = self._read(model, 1) if together > 1 else batched
        if single is None or abs(single - nats) > allowed:
            raise ArgumentError(
                f"a text of {checkpoint.label} has a loss of {nats:.6g} nats per token by the "
                f"model's own logits, and {single or batched:.6g} as it is read; the model cannot "
                "be studied."
            )
        note = (
            f"texts are read one by one, without padding: at {checkpoint.label} one has a loss of "
            f"{nats:.6g} nats per token alone and {batched:.6g} in a batch of {len(self._texts)}"
        )
        return Fallback(batch_size=1, notes=(note,))

    def _streamed(
        self, skeleton: Skeleton, checkpoint: Checkpoint, bare: Tensor | None
    ) -> Fallback:
        alone = self._alone(skeleton.streamed(checkpoint))
        if _same(bare, alone):
            return Fallback()
        note = (
            f"weights are loaded and not streamed: streamed, {checkpoint.label} gives "
            f"{self._both(alone, bare)} for the same text"
        )
        return Fallback(weights="loaded", notes=(note,))

    def _alone(self, model: nn.Module) -> Tensor | None:
        """Return what a model gives for the text, (tokens, features) on the CPU."""
        batch = self._texts.subset([self._longest]).batches(1)[0]
        positions = self._settings.positions == "mask"
        try:
            look_at(model, self._texts)
            with quiet(model):
                output = output_tensor(run(model, batch, position_ids=positions))
                output = without_added(output, batch.ids.shape)
        except Exception as error:  # the dry run of the observables says what is wrong
            log.debug("the model was not tried: %s", error)
            return None
        return None if output is None else output[0].detach().cpu()

    def _nats(self, rows: Tensor | None) -> float | None:
        """Return the loss of the text, in nats per token, where the study reads predictions."""
        ids = self._texts.subset([self._longest]).batches(1)[0].ids[0]
        if (
            not self._is_causal
            or rows is None
            or rows.ndim != 2
            or len(rows) != len(ids)
        ):
            return None
        if len(ids) < 2 or rows.shape[1] <= int(ids.max()):
            return None
        log_p = rows[:-1].float().log_softmax(-1)
        target = torch.from_numpy(np.ascontiguousarray(ids[1:]))[:, None]
        return float(-log_p.gather(1, target).double().mean())

    def _read(self, model: nn.Module, batch_size: int) -> float | None:
        """Return the loss of the text as the study reads it, in nats per token."""
        need = Losses(objective="causal")
        settings = replace(self._settings, batch_size=batch_size).reading_settings()
        try:
            read = capture.read(model, [need], {"text": self._texts}, settings)[need]
        except OntogenyError as error:
            log.debug("the model was not tried: %s", error)
            return None
        return float(read.loss[self._longest])

    def _both(self, one: Tensor | None, other: Tensor | None) -> str:
        """Return two readings of the text in words."""
        first = self._nats(one)
        second = None if first is None else self._nats(other)
        if first is not None and second is not None:
            return f"{first:.6g} and {second:.6g} nats per token"
        if one is None or other is None or one.shape != other.shape:
            return "outputs of different shapes"
        return f"outputs of norm {float(one.double().norm()):.6g} that differ by {_apart(one, other)}"


def _apart(one: Tensor, other: Tensor) -> str:
    return f"{relative_change(one, other):.2g} of it"


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    """Return whether two readings have equal bits, where NaN equals NaN; unread ones are equal."""
    if one is None or other is None:
        return True
    if one.shape != other.shape:
        return False
    equal: Any = (one == other) | (one.isnan() & other.isnan())
    return bool(equal.all())
