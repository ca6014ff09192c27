"""Observables are tried at one checkpoint before a study computes: mistakes cost seconds.

Each is prepared and observed on two texts and two matrices. What fails there may only lack some, so
it is tried on more texts, and at last on all of both: what fails then fails in a real cell as well.
It is a mistake for certain if the observable itself refuses, at two checkpoints. Anything else that
fails as a whole at two is left out; what fails at one may go better at others, and is only said.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ...capture.gradients import untouched
from ...errors import ArgumentError, CheckpointError, NonFiniteError, OntogenyError
from ...inputs import Inputs
from ...needs import Need
from ...needs.derived import Reference
from ...observables import Observable
from ...observables.registry import is_own
from ...own_code import reason
from ...problems.problem import of_node
from ...trajectory import Trajectory
from ..cells.models import Job, Values, read_model
from ..cells.readings import ReadStep, RunView
from ..folder.settings import Settings

log = logging.getLogger("ontogeny.study")
_TEXTS = (2, 16, None)


@dataclass(frozen=True)
class DryFailure:
    """An observable that could not be computed at one step, with all texts.

    Parameters
    ----------
    node
        Its name.
    step
        The step.
    why
        The reason.
    refused
        Whether it refuses everything with an `ArgumentError`; of a study's `Probe`, at two
        checkpoints.
    whole
        Whether nothing of it can be computed, in no layer.
    again
        Another step at which nothing of it can be computed; None where none is known.
    """

    node: str
    step: int
    why: str
    refused: bool
    whole: bool = True
    again: int | None = None

    @property
    def left_out(self) -> bool:
        """Whether it is left out: it failed as a whole at two checkpoints, and does not refuse."""
        return self.again is not None and not self.refused

    @property
    def why_left_out(self) -> str:
        """Return what the result says at every step, of which two alone were tried."""
        why = self.why.rstrip(".")
        return f"{why}; left out, as it failed when tried at steps {self.step} and {self.again}"


class _OtherStepsError(Exception):
    """More than one checkpoint would have to be read."""


class _DryRun(RunView):
    """The study as `prepare` sees it, at one checkpoint: it also stands for an untrained model."""

    is_trial = True

    @property
    def steps(self) -> np.ndarray:
        raise _OtherStepsError("its state takes several steps")

    @property
    def first_steps(self) -> np.ndarray:
        return self.steps

    def reading(self, step: int) -> ReadStep:
        if step != self.reference_step:
            raise _OtherStepsError("its state takes several steps")
        return _DryReading(self._job, self._observable, step, self._at_reference)

    def untrained(self) -> ReadStep:
        return self.reading(self.reference_step)


class _DryReading(ReadStep):
    """One checkpoint that is its own reference, without noise."""

    def __getitem__(self, need: Need) -> Any:
        self._check_declared(need)
        return self._values[need.at_step if isinstance(need, Reference) else need]


def dry_run(
    model: Any,
    trajectory: Trajectory,
    inputs: Mapping[str, Inputs],
    observables: Sequence[Observable],
    settings: Settings,
    texts: Sequence[int | None] = _TEXTS,
) -> list[DryFailure]:
    """Try observables on the model of the one checkpoint of a trajectory.

    Parameters
    ----------
    model
        The module with the weights of that checkpoint.
    texts
        Numbers of texts that are tried in turn where fewer were not enough; None means all.
    """
    settings = replace(
        settings, noise_steps=(), reference_step=int(trajectory.steps[0])
    )
    remaining = [o for o in observables if can_be_tried(o)]
    failures: list[DryFailure] = []
    # Some need more than two texts, such as fits of many concepts: what fails is tried on more,
    # and counts only if it fails on all of them.
    for count in texts:
        few = {name: _some(input_set, count) for name, input_set in inputs.items()}
        whole = all(
            len(few[name]) == len(input_set) for name, input_set in inputs.items()
        )
        job = Job("dry run", Path(), tuple(remaining), few, settings)
        needs = chain.from_iterable(o.needs() for o in remaining)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            at_step = [need.at_step for need in needs]
            values = Values(at_step, partial(read_model, job, model))
        if not whole:  # of SmolLM2-135M, decomposing all 211 matrices took 10 s
            values.update(
                {n: _last_two(v) for n, v in values.items() if not n.reads_inputs}
            )
        failures = []
        for observable in remaining:
            exclusive = any(need.exclusive for need in observable.needs())
            with untouched(model) if exclusive else nullcontext():
                failures += _try(observable, job, values, trajectory)
        failed = {failure.node for failure in failures}
        remaining = [o for o in remaining if o.name in failed]
        if not remaining or whole:
            break
    return failures


def confirmed(
    failures: Sequence[DryFailure],
    trajectory: Trajectory,
    inputs: Mapping[str, Inputs],
    observables: Sequence[Observable],
    settings: Settings,
) -> tuple[DryFailure, ...]:
    """Return failures with what another checkpoint says: refused only where it is refused as well.

    That is the reference step, or else the last one. Nothing is downloaded for it.
    """
    whole = [failure for failure in failures if failure.whole]
    if not whole or len(trajectory) == 1:
        return tuple(failures)
    again: dict[str, DryFailure] = {}
    others = [
        settings.reference_step,
        int(trajectory.steps[-1]),
        int(trajectory.steps[0]),
    ]
    step = next((s for s in others if s != whole[0].step), others[0])
    checkpoint = trajectory[step]
    names = {failure.node for failure in whole}
    if checkpoint.is_downloaded:
        try:
            skeleton = trajectory.skeleton(
                settings.device, settings.torch_dtype(), anew=True
            )
            model = skeleton.load(checkpoint)
            there = trajectory.select(steps=[step])
            tried = [o for o in observables if o.name in names]
            failed = dry_run(model, there, inputs, tried, settings, texts=(None,))
            again = {failure.node: failure for failure in failed if failure.whole}
        except OntogenyError as error:
            log.debug("no dry run at step %d: %s", step, error)
    return tuple(_with(failure, again.get(failure.node)) for failure in failures)


def _with(failure: DryFailure, again: DryFailure | None) -> DryFailure:
    """Return a failure with that at another checkpoint; there may be none, or none was tried."""
    if again is None or not failure.whole:
        return replace(failure, refused=False)
    refused = failure.refused and again.refused
    return replace(failure, refused=refused, again=again.step)


def can_be_tried(observable: Observable) -> bool:
    """Return whether an observable can be tried at one checkpoint, at the cost of a cell.

    It must be mapped over steps, and take its state from no other step or node. Those of the
    library that are given the whole model cost too much.
    """
    needs = [need.at_step for need in observable.needs()]
    of_steps = bool(needs) and all(need.over == "step" for need in needs)
    if any(need.exclusive for need in needs) and not is_own(observable):
        return False
    return of_steps and not (observable.prepares_over_steps or observable.state_of)


def _last_two(value: Any) -> Any:
    """Return the last two of a model's matrices, and any other value as it is."""
    return (
        {name: value[name] for name in list(value)[-2:]}
        if isinstance(value, Mapping)
        else value
    )


def _some(inputs: Inputs, count: int | None) -> Inputs:
    """Return the texts with the most tokens, in their order; of two, one has about 32 tokens."""
    if count is None or count >= len(inputs):
        return inputs
    tokens = inputs.ordinary.sum(axis=1) * inputs.scored.any(axis=1)
    order = np.argsort(-tokens, kind="stable")
    # The longest alone shows what fails on long texts, and costs less.
    if count == _TEXTS[0]:
        order[1:] = order[1:][np.argsort(abs(tokens[order[1:]] - 32), kind="stable")]
    return inputs.subset(np.sort(order[:count]))


def _try(
    observable: Observable, job: Job, values: Values, trajectory: Trajectory
) -> list[DryFailure]:
    """Prepare and observe; return how that failed, if it did."""
    step = job.settings.reference_step
    with warnings.catch_warnings():
        # Of fits on two texts; real cells warn by themselves.
        warnings.simplefilter("ignore")
        try:
            view = _DryRun(job, trajectory, observable, values)
            state = observable.prepare(view) if observable.prepares else None
            data = observable.observe(_DryReading(job, observable, step, values), state)
        except (_OtherStepsError, CheckpointError) as error:
            log.debug("no dry run of %s: %s", observable.name, error)
            return []
        except Exception as error:
            refused = isinstance(error, ArgumentError)
            whole = not isinstance(error, NonFiniteError)  # it says nothing of others
            why = reason(error)
            return [DryFailure(observable.name, step, why, refused, whole)]
    return _failed_layers(observable, data, step)


def _failed_layers(observable: Observable, data: Any, step: int) -> list[DryFailure]:
    """Return how layers failed in what was observed, if any did."""
    if not isinstance(data, xr.Dataset):
        kind = type(data).__name__
        why = f"ArgumentError: an observable must return an xarray.Dataset; got {kind}."
        return [DryFailure(observable.name, step, why, refused=True)]
    rows = of_node(observable.name, data.expand_dims(step=[step]))
    if not rows:
        return []
    refused = all(row.reason.startswith(ArgumentError.__name__) for row in rows)
    whole = "status" in data and bool((data["status"] != "done").all())
    why = rows[0].reason
    whole &= not why.startswith(NonFiniteError.__name__)
    return [DryFailure(observable.name, step, why, refused and whole, whole)]
