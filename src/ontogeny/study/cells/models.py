"""What the tasks of a run share, and how a worker loads a checkpoint and reads its needs.

These functions run in any process or thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import nn

from ... import activity, capture
from ...capture.gradients import untouched
from ...errors import CheckpointError
from ...inputs import Inputs
from ...needs import Need
from ...observables import Observable
from ...own_code import Sendable
from ...trajectory import Checkpoint, Trajectory
from ...trajectory.control.weights import ControlWeights
from ...trajectory.skeleton import Identity, Skeleton
from ..folder.code import library_code
from ..folder.layout import digests_path
from ..folder.settings import Settings
from .ahead import Ahead
from .cache import DigestCache

log = logging.getLogger("ontogeny.study")
_local = threading.local()


@dataclass(frozen=True)
class Job(Sendable):
    """What all tasks of one run share, as picklable values.

    Attributes
    ----------
    first
        What every other checkpoint must be the same model as, in whichever order they are read.
    studied
        The folder of the run that is studied, for its controls.
    library
        The digest of this library's files where the run was planned.
    model_class
        The name of the model's class.
    by_step
        Whether all that reads a checkpoint is done one after the other (see `in_hand`).
    left_out
        Why observables are not computed, by node: they failed at two checkpoints when tried.
    """

    token: str
    folder: Path
    observables: tuple[Observable, ...]
    inputs: Mapping[str, Inputs]
    settings: Settings
    first: Identity | None = field(default=None, repr=False)
    studied: Path | None = field(default=None, repr=False)
    library: str = field(default_factory=library_code, repr=False)
    model_class: str = ""
    by_step: bool = False
    left_out: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def by_name(self) -> dict[str, Observable]:
        """The observables by their node names."""
        return {o.name: o for o in self.observables}

    def inputs_of(self, need: Need) -> Inputs:
        """Return the input set that a need reads."""
        return self.inputs[need.at_step.on or next(iter(self.inputs))]

    @cached_property
    def digests(self) -> DigestCache:
        """The digests of weights that are noted in the study's folder."""
        return DigestCache(digests_path(self.studied or self.folder))


def own_needs(observable: Observable) -> list[Need]:
    """Return the needs that are read of every checkpoint itself."""
    return [n for n in observable.needs() if n.at_step is n and n.over == "step"]


def read_needs(
    job: Job,
    trajectory: Trajectory,
    step: int,
    needs: Sequence[Need],
    along: Sequence[Need] = (),
) -> dict[Need, Any]:
    """Read all `needs` of one checkpoint, loaded into this thread's skeleton if a need asks it.

    Those `along` are read too, unless they would take passes of their own over all texts.
    """
    log.debug("phase=loading step=%d", step)
    activity.now(f"loading and reading step {step}")
    if job.first is not None:
        job.first.refuse(trajectory[step])
    model = _model_for(job, trajectory, step, needs)
    log.debug("phase=capturing step=%d", step)
    return read_model(job, model, needs, along)


def _model_for(
    job: Job, trajectory: Trajectory, step: int, needs: Sequence[Need]
) -> Any:
    if not any(need.reads_model for need in needs):
        return nn.Identity()
    if only_looks(needs):
        return trajectory[step].mapped()
    skeleton = skeleton_of(job, trajectory)
    _local.model = model_of(skeleton, trajectory[step], needs, job.settings)
    return _local.model


def read_once(
    job: Job,
    trajectory: Trajectory,
    step: int,
    later: Sequence[Need],
    needs: Sequence[Need],
) -> dict[Need, Any]:
    """Read all `needs` of one checkpoint, but for what was read before with those of another cell.

    `later` are the needs of cells to come that are read along (see `Ahead`).
    """

    def read(missing: Sequence[Need], along: Sequence[Need]) -> dict[Need, Any]:
        return read_needs(job, trajectory, step, missing, along) if missing else {}

    derived = trajectory[step].derived
    folder = job.folder
    # A control begins with the weights of the run: of SmolLM2 each of six read them for 45 s.
    if (
        job.studied is not None
        and isinstance(derived, ControlWeights)
        and derived.at == 0
    ):
        folder = job.studied
    return Ahead(job.token, folder, job.settings.device).read(step, needs, later, read)


def only_looks(needs: Iterable[Need]) -> bool:
    """Return whether no need runs the model or is given it: nothing has to be loaded then."""
    return not any(need.runs_model or need.exclusive for need in needs)


def model_of(
    skeleton: Skeleton,
    checkpoint: Checkpoint,
    needs: Iterable[Need],
    settings: Settings,
) -> Any:
    """Return the model of a checkpoint, loaded or streamed; what is given away is loaded."""
    if settings.weights == "streamed" and not any(need.exclusive for need in needs):
        return skeleton.streamed(checkpoint)
    return skeleton.load(checkpoint)


def read_model(
    job: Job, model: Any, needs: Sequence[Need], along: Sequence[Need] = ()
) -> dict[Need, Any]:
    """Read all `needs` of a model, as the study reads its checkpoints."""
    return capture.read(
        model, needs, job.inputs, job.settings.reading_settings(), along
    )


class Values(dict[Need, Any]):
    """The values of needs at one checkpoint; asking for one that cannot be read raises why."""

    def __init__(
        self, needs: Sequence[Need], read: Callable[[Sequence[Need]], dict[Need, Any]]
    ) -> None:
        super().__init__()
        self._errors: dict[Need, Exception] = {}
        needs = list(dict.fromkeys(needs))
        try:
            self.update(read(needs) if needs else {})
        except CheckpointError as error:
            # Of a damaged file nothing can be read: one by one it would be loaded for each need.
            self._errors = dict.fromkeys(needs, error)
        except Exception as error:
            # A need that cannot be read must not cost the others theirs.
            log.debug("reading together failed (%s); reading one by one", error)
            for need in needs:
                try:
                    self.update(read([need]))
                except Exception as reason:
                    self._errors[need] = reason

    def __missing__(self, need: Need) -> Any:
        raise self._errors.get(need, KeyError(need))


def skeleton_of(job: Job, trajectory: Trajectory) -> Any:
    """Return this thread's one model skeleton of the run."""
    # Building a model takes longer than filling it, so each thread builds one and fills it with
    # the weights of every checkpoint; the token tells the runs of one process apart.
    if getattr(_local, "token", None) != job.token:
        settings = job.settings
        anew = settings.weights == "rebuilt"
        _local.skeleton = trajectory.skeleton(
            settings.device, settings.torch_dtype(), anew
        )
        _local.token = job.token
    return _local.skeleton


def release_skeleton() -> None:
    """Drop this thread's model."""
    _local.token = _local.skeleton = _local.model = None


def restored(observable: Observable) -> AbstractContextManager[Any]:
    """Return a context after which this thread's model is as it was, if `observable` gets it."""
    exclusive = any(need.exclusive for need in observable.needs())
    return untouched(_local.model) if exclusive else nullcontext()
