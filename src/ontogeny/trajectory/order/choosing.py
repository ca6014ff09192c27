"""Which files of a folder are the checkpoints of a run, and in which order."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...errors import ArgumentError, CheckpointError
from ..findings import some
from .inside import Held
from .names import exact, read_name, whole
from .readings import (
    NO_STEP,
    Reading,
    by_held,
    by_marks,
    by_shape,
    in_order,
    shape,
    stem,
    times,
    with_last,
)

ASKED = ("--exclude", "not in --only")  # how reasons begin that were asked for


@dataclass(frozen=True)
class Choice:
    """What is said of a folder beside its path.

    Parameters
    ----------
    step_from
        Where the step stands: in names, as ``"epoch={}"`` (``*`` is any text), or under a key in
        the files, as ``"iter_num"``. None: found out.
    only, exclude
        Patterns of names that are taken, and that are left out.
    key
        Under which key of the files the weights stand, as ``"ema"``. None: one of the usual keys.

    Examples
    --------
    >>> Choice("epoch={}").steps(["a_epoch=3-loss=2.5.pt", "b.pt"])
    ({'a_epoch=3-loss=2.5.pt': 3}, 1)
    """

    step_from: str | None = None
    only: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    key: str | None = None

    def __post_init__(self) -> None:
        for name in ("only", "exclude"):
            if isinstance(getattr(self, name), str):
                object.__setattr__(self, name, (getattr(self, name),))
            object.__setattr__(self, name, tuple(getattr(self, name)))
            if not all(isinstance(text, str) and text for text in getattr(self, name)):
                raise ArgumentError(
                    f"{name} must be patterns of names such as 'best*'."
                )
        if self.key is not None and not (isinstance(self.key, str) and self.key):
            raise ArgumentError(
                f"key must be a name in the files, as 'ema'; got {self.key!r}."
            )
        source = self.step_from
        if source is not None and (
            not isinstance(source, str) or source.count("{}") > 1
        ):
            raise ArgumentError(
                "step_from must be a pattern of names with one {}, such as 'epoch={}', or a key of "
                f"the files, such as 'iter_num'; got {source!r}."
            )

    @property
    def step_key(self) -> str | None:
        """The key of the files that the step stands under, or None."""
        has_key = self.step_from is not None and "{}" not in self.step_from
        return self.step_from if has_key else None

    def leaves_out(self, name: str) -> str | None:
        """Return why a file is left out by its name, or None."""
        names = {name, name.rstrip("/"), stem(name)}

        def is_of(pattern: str) -> bool:
            return any(fnmatch.fnmatchcase(name, pattern) for name in names)

        excluded = next(filter(is_of, self.exclude), None)
        if excluded is not None:
            return f"--exclude '{excluded}'"
        if self.only and not any(map(is_of, self.only)):
            return f"not in --only {' '.join(map(repr, self.only))}"
        return None

    def steps(self, names: Sequence[str]) -> tuple[dict[str, int], int]:
        """Return the steps that a pattern reads from names, and by what they are multiplied."""
        before, _, after = (self.step_from or "").partition("{}")
        number = r"(\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?:[kKmMbBtT](?![A-Za-z]))?)"
        parts = [
            ".*?".join(map(re.escape, part.split("*"))) for part in (before, after)
        ]
        start = "" if before else r"(?<![\d.])"
        pattern = re.compile(f"{start}{parts[0]}{number}{parts[1]}")
        matches = {name: pattern.search(stem(name)) for name in names}
        values = {name: exact(m[1]) for name, m in matches.items() if m is not None}
        return whole(
            {name: value for name, value in values.items() if value is not None}
        )


@dataclass(frozen=True)
class Order:
    """The files that are checkpoints, by step, and why the others are not.

    Attributes
    ----------
    names
        ``{step: name}``, increasing.
    unit
        What steps count: ``"step"``, ``"epoch"`` or ``"tokens"``.
    source
        Where they were read from, such as ``"the names, checkpoint-{}"``.
    left_out
        ``(name, why)`` of files of weights that are not taken.
    guessed
        The form of the names, such as ``"model_{}"``, where no word in them and nothing in the
        files says that their numbers are steps; else empty.
    """

    names: Mapping[int, str] = field(default_factory=dict)
    unit: str = "step"
    source: str = ""
    left_out: tuple[tuple[str, str], ...] = ()
    guessed: str = ""

    def lines(
        self, chosen: Sequence[int] | None = None, available: Sequence[int] = ()
    ) -> list[str]:
        """Return what is taken and from where, and what is left out, at most five names of a kind.

        Parameters
        ----------
        chosen
            The steps that are taken, by default all.
        available
            Those that they were selected from, if any others.
        """
        steps = list(self.names) if chosen is None else list(chosen)
        plural = "" if len(steps) == 1 else "s"
        reach = f"{steps[0]:,} to {steps[-1]:,}" if plural else f"{steps[0]:,}"
        units = self.unit if self.unit.endswith("tokens") else f"{self.unit}s"
        unit = units if plural else self.unit
        source = f", by {some([self.source])}" if self.source else ""
        rest = [f"{step:,}" for step in available if step not in steps]
        of = f" of {len(available)} checkpoints" if rest else f" checkpoint{plural}"
        lines = [f"{len(steps)}{of}, {unit} {reach}{source}"]
        if rest:
            lines.append(
                f"left out: {units if rest[1:] else self.unit} {some(rest)} (not selected)"
            )
        by_reason: dict[str, list[str]] = {}
        for name, why in self.left_out:
            by_reason.setdefault(why, []).append(name)
        return lines + [f"left out: {some(n)} ({why})" for why, n in by_reason.items()]


def order_of(
    names: Sequence[str],
    steps: Mapping[str, Held] | Callable[[str], Held | None] | None = None,
    choice: Choice | None = None,
) -> Order:
    r"""Return which files are the checkpoints of a run, and their steps.

    A step that files hold counts before their names. Of a name only a number counts that a word
    for steps marks, or that alone distinguishes names that are otherwise alike.

    Parameters
    ----------
    names
        Names of files, and of folders with a ``/`` at the end.
    steps
        What files hold, by name.
    choice
        What was said: where the step stands, and which files are meant.

    Raises
    ------
    CheckpointError
        If two readings are possible, or two files stand for one step; the message names both.

    Examples
    --------
    >>> print("\n".join(order_of(["step_1k.pt", "step_10k.pt", "best.pt"]).lines()))
    2 checkpoints, steps 1,000 to 10,000, by the names, step_{}
    left out: best.pt (no step in it or its name)
    """
    choice = choice or Choice()
    reasons = {name: choice.leaves_out(name) for name in names}
    excluded = {name: why for name, why in reasons.items() if why is not None}
    candidates = [name for name in names if name not in excluded]
    if names and not candidates:
        raise CheckpointError(
            f"nothing is left of {some(list(names))}: {next(iter(excluded.values()))}."
        )
    inside = steps if isinstance(steps, Mapping) else _all_held(candidates, steps)
    asked = choice.step_from is not None
    reading = (
        _by_choice(candidates, inside, choice)
        if asked
        else _by_names(candidates, inside)
    )
    if reading is None:
        return Order(
            left_out=tuple({**dict.fromkeys(candidates, NO_STEP), **excluded}.items())
        )
    rest = {
        n: NO_STEP
        for n in candidates
        if n not in reading.steps and n not in reading.left_out
    }
    return Order(
        {step: name for name, step in in_order(reading.steps)},
        reading.unit,
        reading.source,
        tuple(sorted({**reading.left_out, **rest, **excluded}.items())),
        reading.guessed,
    )


def _all_held(
    names: Sequence[str], read: Callable[[str], Held | None] | None
) -> dict[str, Held]:
    numbers = {} if read is None else {name: read(name) for name in names}
    return {name: reading for name, reading in numbers.items() if reading is not None}


def _by_choice(
    names: Sequence[str], readings: Mapping[str, Held], choice: Choice
) -> Reading:
    """Return the reading that was asked for."""
    source = choice.step_from or ""
    if choice.step_key is not None:
        steps = {n: record.value for n, record in readings.items()}
        unit = next((record.unit for record in readings.values()), "step")
        reading = Reading(steps, unit, f"{source} in the files", "")
    else:
        number = read_name(source.replace("{}", "1").replace("*", ""))
        steps, power = choice.steps(names)
        unit = times(power, "step" if number is None else number.unit)
        reading = Reading(steps, unit, f"the names, {source}", "")
    if not reading.steps:
        raise CheckpointError(
            f"--step-from '{source}' reads no step from {some(list(names))}."
        )
    for step, several in reading.doubles().items():
        raise CheckpointError(
            f"--step-from '{source}' reads {step} from {several[0]} and from {several[1]}; leave "
            f"one out with --exclude '{several[1].rstrip('/')}'."
        )
    rest = [name for name in names if name not in reading.steps]
    reading.leave_out(rest, f"--step-from '{source}' reads no step from it")
    return reading


def _by_names(names: Sequence[str], readings: Mapping[str, Held]) -> Reading | None:
    """Return the reading that files and names give themselves."""
    holding = by_held(names, readings, "step")
    if holding is None:
        marked = by_marks(names)
        if (
            marked is not None
            and "step" not in marked.source
            and _are_epochs(marked, readings)
        ):
            marked.unit = "epoch"  # timm's checkpoint-3.pth.tar
        if marked is not None:
            return with_last(marked, readings)
        unmarked = by_shape(names)
        for unit in ("tokens", "epoch"):
            held = by_held(names, readings, unit)
            # One final file that holds its epoch orders no others.
            if held and (not unmarked or len(held.steps) >= len(unmarked.steps)):
                return held
        return unmarked and with_last(unmarked, readings)
    rest = [n for n in names if n not in holding.steps and n not in holding.left_out]
    without = [name for name in rest if read_name(stem(name)) is not None]
    by_names = by_marks(without)
    if by_names is None:
        return holding
    if by_names.unit == "step" and _agree(holding, {shape(name) for name in without}):
        both = holding.steps | by_names.steps
        if len(set(both.values())) == len(both):
            source = f"{holding.source}, and {by_names.source}"
            return Reading(
                both, "step", source, "", holding.left_out | by_names.left_out
            )
    if 2 * len(holding.steps) >= len(names):
        holding.leave_out(without, "holds no step, as the others do")
        return holding
    by_names.leave_out(
        list(holding.steps), f"not named as the others are, {by_names.source}"
    )
    return by_names


def _are_epochs(reading: Reading, held: Mapping[str, Held]) -> bool:
    """Return whether most files hold as their epoch what their names say, and none another."""
    epochs = {
        n: held[n].value for n in reading.steps if n in held and held[n].unit == "epoch"
    }
    return epochs.items() <= reading.steps.items() and 2 * len(epochs) > len(
        reading.steps
    )


def _agree(holding: Reading, forms: set[str]) -> bool:
    """Return whether files of these forms hold the steps that their names say."""
    alike = {name: step for name, step in holding.steps.items() if shape(name) in forms}
    numbers = {name: read_name(stem(name)) for name in alike}
    return all(n is not None and n.value == alike[name] for name, n in numbers.items())
