"""The control runs of a study: which there are, at which steps, and what is observed of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import ArgumentError, TooFewCheckpointsError, check_whole
from ...observables import Observable
from ...trajectory import Trajectory
from .settings import noise_steps

# Fewer steps in common with the run say nothing about half of a change.
FEWEST_STEPS = 3


@dataclass(frozen=True)
class ControlRun:
    """One control run of a study.

    Parameters
    ----------
    name
        Such as ``"turned 0"``.
    steps
        The steps that it is read at.
    kind, random_state
        How it is made of the run's own checkpoints; a run that was given has neither.
    given
        The checkpoints of a run that was given.
    """

    name: str
    steps: tuple[int, ...]
    kind: str = ""
    random_state: int | None = None
    given: Trajectory | None = field(default=None, repr=False)

    def of(self, trajectory: Trajectory) -> Trajectory:
        """Return its checkpoints; those that are made of `trajectory` are computed when read."""
        if self.given is not None:
            return self.given.select(steps=self.steps)
        assert self.random_state is not None
        return trajectory.select(steps=self.steps).control(self.kind, self.random_state)

    def to_dict(self) -> dict[str, Any]:
        """Return what it is as plain data."""
        kind = self.kind or self.name
        return {
            "name": self.name,
            "kind": kind,
            "random_state": self.random_state,
            "steps": list(self.steps),
        }


@dataclass(frozen=True)
class Controls:
    """What a study is told of control runs, checked.

    Parameters
    ----------
    count, kind
        How many are made of the run's own checkpoints, and how; see `Trajectory.control`.
    steps
        At about how many steps each is read.
    given
        Trained control runs by name.
    """

    count: int = 0
    kind: str = "turned"
    steps: int = 12
    given: Mapping[str, Trajectory] = field(default_factory=dict)

    @classmethod
    def checked(
        cls,
        trajectory: Trajectory,
        count: Any,
        kind: Any,
        steps: Any,
        control_runs: Any,
    ) -> Controls:
        """Return the arguments of a study that are about control runs.

        Raises
        ------
        ArgumentError
            If a number or the kind is not one, or a given run does not fit the study's.
        """
        check_whole("controls", count, 0)
        check_whole("control_steps", steps, FEWEST_STEPS)
        if count:
            trajectory.control(kind)  # refuses what cannot be; nothing is read
        runs = {str(name): run for name, run in _by_name(control_runs).items()}
        for name, run in runs.items():
            _check_given(name, run, trajectory)
            if name in [f"{kind} {i}" for i in range(count)]:
                raise ArgumentError(
                    f"control_runs must not be called {name!r}, as one that the study makes."
                )
        return cls(count, kind, steps, runs)

    @property
    def words(self) -> str:
        """What there is, in a few words: ``"3 turned"``."""
        made = [f"{self.count} {self.kind}"] if self.count else []
        return ", ".join([*made, *self.given]) or "none"

    def runs(
        self, steps: Sequence[int], reference_step: int, frozen: Sequence[int] = ()
    ) -> list[ControlRun]:
        """Return the control runs of a run with these steps, read at its reference step too."""
        at_steps = control_steps(steps, self.steps, reference_step, frozen)
        made = [
            ControlRun(f"{self.kind} {i}", at_steps, self.kind, i)
            for i in range(self.count)
        ]
        runs = self.given.items()
        return [
            *made,
            *(self._control(name, run, steps, reference_step) for name, run in runs),
        ]

    def _control(
        self, name: str, run: Trajectory, steps: Sequence[int], reference_step: int
    ) -> ControlRun:
        common = [int(step) for step in run.steps if step in set(steps)]
        reference = reference_step if reference_step in common else common[-1]
        return ControlRun(name, control_steps(common, self.steps, reference), given=run)


def control_steps(
    steps: Sequence[int], count: int, reference_step: int, frozen: Sequence[int] = ()
) -> tuple[int, ...]:
    """Return about `count` steps spread over the order of `steps`, with the reference step.

    Examples
    --------
    >>> control_steps([0, 1, 2, 4, 8, 16, 32], 3, 16)
    (0, 4, 16, 32)
    """
    return tuple(sorted({*noise_steps(steps, count, frozen), reference_step}))


def observed_of_controls(observables: Iterable[Observable]) -> tuple[Observable, ...]:
    """Return what is observed of control runs: quantities that are read checkpoint by checkpoint.

    Not the motion of weights, which controls share with the run, nor what follows from the curves
    of other observables.
    """
    motionless = {
        o.name: o
        for o in observables
        if o.quantities
        and o.role != "motion"
        and o.needs()
        and not (o.over_blocks or o.source)
    }
    # In whatever order they stand: one may come before the node that it depends on.
    while lacking := [
        n for n, o in motionless.items() if not _read(o) <= set(motionless)
    ]:
        motionless = {name: o for name, o in motionless.items() if name not in lacking}
    return tuple(motionless.values())


def _read(observable: Observable) -> set[str]:
    """Return the names of the other nodes that an observable is computed from."""
    return {*observable.depends_on, *filter(None, [observable.state_of])}


def _by_name(value: Any) -> Mapping[str, Trajectory]:
    if isinstance(value, Mapping):
        return value
    runs = [value] if isinstance(value, Trajectory) else value
    if isinstance(runs, str) or not isinstance(runs, Iterable):
        raise ArgumentError(
            "control_runs must hold Trajectory instances, as {name: trajectory} or a list; got "
            f"{value!r}."
        )
    by_name: dict[str, Trajectory] = {}
    for run in runs:
        name = run.title if isinstance(run, Trajectory) else repr(run)
        if name in by_name:
            raise ArgumentError(
                f"two control_runs are called {name!r}; give them as {{name: trajectory}}."
            )
        by_name[name] = run
    return by_name


def _check_given(name: str, run: Any, trajectory: Trajectory) -> None:
    if not isinstance(run, Trajectory):
        raise ArgumentError(
            f"control_runs must hold Trajectory instances; {name!r} is a {type(run).__name__}."
        )
    common = set(run.steps.tolist()) & set(trajectory.steps.tolist())
    if len(common) < FEWEST_STEPS:
        raise TooFewCheckpointsError(
            f"the control run {name!r} has {len(common)} steps in common with the study's run; "
            f"at least {FEWEST_STEPS} are needed."
        )
