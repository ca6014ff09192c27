"""Observables of a live model, at some steps of its training and within a budget of its time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..capture.forward import device_of
from ..errors import ArgumentError, check_number, check_whole
from ..inputs import Inputs
from ..observables import Observable
from ..study.checks import check_observables, named_inputs
from ..study.speaking import say
from ..trajectory.schedule import Every, Schedule
from ..trajectory.selection import check_step
from ..trajectory.weights.saving import unwrap
from .loggers import OBSERVED, append, as_logs, standing
from .measuring import check_live, measure
from .processes import is_first_process

# How much of a training's time observing may take.


class Budget:
    """Keeps the time of observing below a share of the training's own time.

    The first observation is always made: what one costs is known only afterwards. Another is made
    when the training has taken so long that the next, at the largest cost so far, stays within
    `share`. The first one, which warms up, counts as that only until there is a second.

    Parameters
    ----------
    share
        Above 0 and at most 1.
    now
        The clock, in seconds.

    Examples
    --------
    >>> clock = iter([0.0, 0.0, 1.0, 5.0, 41.0])
    >>> budget = Budget(0.05, now=lambda: next(clock))
    >>> with budget.spent():  # takes 1 s
    ...     pass
    >>> budget.allows(), budget.allows()  # after 4 s and 40 s of training
    (False, True)
    """

    def __init__(
        self, share: float, now: Callable[[], float] = time.perf_counter
    ) -> None:
        self.share = share
        self._now = now
        self._begin = now()
        self._costs: list[float] = []

    @property
    def seconds(self) -> float:
        """Time of all observations."""
        return sum(self._costs)

    def allows(self) -> bool:
        """Return whether another observation stays within the budget."""
        training = self._now() - self._begin - self.seconds
        next_one = max(self._costs[1:] or self._costs, default=0.0)
        return not self._costs or self.seconds + next_one <= self.share * training

    @contextmanager
    def spent(self) -> Iterator[None]:
        """Count the time of an observation."""
        begin = self._now()
        try:
            yield
        finally:
            self._costs.append(self._now() - begin)

    @property
    def overhead(self) -> float:
        """Time of observing as a share of the training's own time until now."""
        training = self._now() - self._begin - self.seconds
        return self.seconds / training if training > 0 else 0.0


class Observer:
    """Measures a model while it trains, and leaves the training bit for bit the same.

    Call it after every optimiser step, as a `Recorder`::

        observe = Observer([Loss()], inputs, "runs/tiny", log=to_wandb())
        for step in range(1, 1001):
            ...  # one optimiser step
            observe(step, model)
        observe.finish(1000, model)

    Modes, gradients, buffers, hooks and all random states are put back. What it found is written to
    ``observed.jsonl`` and sent to `log`. A failure is said once, kept in that file, and never stops
    the training. Under ``torch.distributed`` only the first process observes.

    Parameters
    ----------
    observe
        Observables that one checkpoint is enough for, such as ``Loss()``, ``AttentionEntropy()``
        and ``EffectiveDimensions()``.
    inputs
        The texts, as in `ontogeny.Study`. A few dozen are enough for a curve.
    folder
        Where ``observed.jsonl`` goes.
    every, total
        At which steps, as in `Recorder`.
    log
        A function ``log(metrics, step)``, or several; see `ontogeny.recording.loggers`.
    budget
        Largest share of the training's own time. Where another observation would go beyond it, a
        step is skipped.
    batch_size
        Texts in one forward pass.

    Raises
    ------
    ArgumentError
        If an argument is not what it must be, or an observable takes more than one checkpoint.

    Examples
    --------
    >>> import tempfile
    >>> from ontogeny.observables import Loss
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))
    >>> texts = Inputs.from_tokens([[1, 2, 3], [4, 5]])
    >>> observe = Observer([Loss(objective="causal")], texts, tempfile.mkdtemp())
    >>> list(observe(0, model))
    ['observed/loss']
    """

    def __init__(
        self,
        observe: Sequence[Observable],
        inputs: Inputs | Mapping[str, Any],
        folder: str | Path,
        *,
        every: Every = "log",
        total: int | None = None,
        log: Any = None,
        budget: float = 0.05,
        batch_size: int = 16,
    ) -> None:
        self.observables = check_observables(observe)
        if inputs is None:
            raise ArgumentError(
                "observe= needs inputs=, the texts that the model is observed on."
            )
        self.inputs = named_inputs(inputs)
        for observable in self.observables:
            check_live(observable)
            observable.check_inputs(self.inputs)
        self.path = Path(folder).expanduser().resolve() / OBSERVED
        self.schedule = Schedule.coerce(every, total)
        self.log = as_logs(log)
        self._share = check_number("budget", budget, 0, 1, above=True)
        self._batch_size = check_whole("batch_size", batch_size)
        self._budget: Budget | None = None
        self._steps: set[int] = set()
        self._skipped: list[int] = []
        self._failed: Counter[str] = Counter()
        self._unwritten = False
        self._last = -1

    @property
    def overhead(self) -> float:
        """Time of observing as a share of the training's own time until now."""
        return 0.0 if self._budget is None else self._budget.overhead

    @property
    def skipped(self) -> list[int]:
        """Steps that were not observed because that would have taken too long."""
        return list(self._skipped)

    def __call__(self, step: int, model: nn.Module) -> dict[str, float] | None:
        """Return what was observed, or None if nothing is due or the budget does not allow it."""
        step = check_step("step", step)
        if not is_first_process():
            return None
        self._begin(step)
        return self.observe(step, model) if self.schedule.due(step) else None

    def observe(self, step: int, model: nn.Module) -> dict[str, float] | None:
        """Observe a step, due or not, unless it was observed or the budget does not allow it."""
        step = check_step("step", step)
        if not is_first_process():
            return None
        budget = self._begin(step)
        if step in self._steps or step in self._skipped:
            return None
        model = unwrap(model)
        _wait_for(model)  # what the training has begun on a GPU is no cost of observing
        if not budget.allows():
            self._skipped.append(step)
            self._note({"step": step, "skipped": "budget"})
            return None
        with budget.spent():
            measurement = measure(
                model, step, self.observables, self.inputs, self._batch_size
            )
            _wait_for(model)
            failed = {**measurement.failed, **self._send(measurement.metrics, step)}
            entry = {"step": step, "metrics": measurement.metrics}
            self._note(entry | ({"failed": failed} if failed else {}))
        self._steps.add(step)
        for what, why in failed.items():
            if not self._failed[what]:
                say(
                    f"observing {what} failed at step {step}: {why}; the training goes on"
                )
            self._failed[what] += 1
        return measurement.metrics

    def finish(self, step: int, model: nn.Module | None) -> None:
        """Observe the last step too, and say what was skipped and what failed.

        None stands for a model that is no longer that of the last step.
        """
        step = check_step("step", step)
        if not is_first_process():
            return
        budget = self._begin(step)
        if model is not None:
            self.observe(step, model)
        overhead = round(budget.overhead, 4)
        self._note({"step": step, "finished": True, "overhead": overhead})
        if self._skipped:
            done = len(self._steps)
            say(
                f"observed at {done} of {done + len(self._skipped)} steps: more would have taken "
                f"over {100 * self._share:g} % of the training's time (budget={self._share:g}); "
                f"skipped: {', '.join(map(str, self._skipped))}"
            )
        for what, count in self._failed.items():
            if count > 1:
                say(f"observing {what} failed {count} times; {self.path.name} says why")

    def _begin(self, step: int) -> Budget:
        """Start the clock at the first call; steps that an earlier process observed stay.

        Those after `step` are of a run that went another way, and are observed anew.
        """
        if self._budget is None:
            if self.path.is_file():
                self._steps = {
                    e["step"] for e in standing(self.path) if e.get("metrics")
                }
            self._budget = Budget(self._share)
            self._last = max(self._steps, default=-1)
        if step < self._last:
            self._steps = {there for there in self._steps if there <= step}
            self._skipped = [there for there in self._skipped if there <= step]
            self._note({"step": step, "resumed": True})
        self._last = step
        return self._budget

    def _note(self, entry: Mapping[str, Any]) -> None:
        """Add an entry to the record; a disk that is full does not stop the training here."""
        try:
            append(self.path, entry)
        except OSError as error:
            if not self._unwritten:
                say(f"{self.path} cannot be written: {error}; the training goes on")
            self._unwritten = True

    def _send(self, metrics: Mapping[str, float], step: int) -> dict[str, str]:
        """Send numbers to the loggers; return how that failed."""
        failed = {}
        for log in self.log if metrics else ():
            try:
                log(metrics, step)
            except Exception as error:  # a logger never stops a training
                name = getattr(log, "__qualname__", type(log).__name__).split(".")[0]
                failed[f"log {name}"] = f"{type(error).__name__}: {error}".split("\n")[
                    0
                ]
        return failed


def _wait_for(model: nn.Module) -> None:
    device = device_of(model)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
