"""Training batches of the marker task, each reachable by its step: mixed or by a curriculum."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import torch

from ontogeny.errors import ArgumentError, check_whole

from .markers import MarkerBatch, MarkerTask

_BLOCK = 64  # batches made at once: one call costs about as much for 64 as for one
_TRAINING = 0x74726169


class MarkerStream:
    """The training batches of one seed: ``stream(step)`` gives that of the update `step`.

    A batch depends on the task, the seed, the batch size, the device's kind and the step only, so
    a run that was stopped goes on with the same batches. They are made 64 at a time on the device.

    Parameters
    ----------
    task
        What is drawn.
    batch_size
        Examples of a batch.
    random_state
        Seed.
    curriculum
        ``(steps, markers)`` stages: for so many steps only these numbers of markers, one stage
        after the other; the last goes on for ever. Empty: the task's own, mixed, all the time.
    device
        Where batches are made.

    Raises
    ------
    ArgumentError
        If the batch size or a stage is not positive, or the markers do not fit.

    Examples
    --------
    >>> stream = MarkerStream(MarkerTask(), 4, curriculum=[(10, 1), (10, 2)])
    >>> stream(3).markers.tolist(), stream(10).markers.tolist()
    ([1, 1, 1, 1], [2, 2, 2, 2])
    >>> bool(
    ...     (
    ...         stream(3).ids
    ...         == MarkerStream(MarkerTask(), 4, curriculum=[(10, 1)])(3).ids
    ...     ).all()
    ... )
    True
    """

    def __init__(
        self,
        task: MarkerTask,
        batch_size: int = 64,
        random_state: int = 0,
        *,
        curriculum: Sequence[tuple[int, int | Sequence[int]]] = (),
        device: str | torch.device = "cpu",
    ) -> None:
        check_whole("batch_size", batch_size)
        check_whole("random_state", random_state, 0)
        if any(steps < 1 for steps, _ in curriculum):
            raise ArgumentError(
                f"every stage of curriculum needs steps above 0; got {curriculum}."
            )
        self.task = task
        self.batch_size = batch_size
        self.random_state = random_state
        self._stages = [markers for _, markers in curriculum] or [task.counts]
        self._ends = list(accumulate(steps for steps, _ in curriculum))[:-1]
        self._generator = torch.Generator(device)
        self._batch: tuple[tuple[int, int], MarkerBatch] | None = None

    def __call__(self, step: int) -> MarkerBatch:
        """Return the batch of update `step`, counted from 0."""
        stage = bisect_right(self._ends, step)
        within = step - (self._ends[stage - 1] if stage else 0)
        key = (stage, within // _BLOCK)
        if self._batch is None or self._batch[0] != key:
            words = np.random.SeedSequence(
                [_TRAINING, self.random_state, *key]
            ).generate_state(2)
            self._generator.manual_seed(int(words[0]) << 32 | int(words[1]))
            count = _BLOCK * self.batch_size
            self._batch = (
                key,
                self.task.sample(count, self._generator, self._stages[stage]),
            )
        start = within % _BLOCK * self.batch_size
        return MarkerBatch(
            *(tensor[start : start + self.batch_size] for tensor in self._batch[1])
        )
