"""Ways to read the steps of a folder's files: from what they hold, and from their names."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from ...errors import CheckpointError
from ..findings import some
from .inside import Held
from .names import Number, numbers_of, read_name, whole

SUFFIXES = (".pth.tar", ".pt.tar", ".pt", ".pth", ".ckpt", ".safetensors", ".bin", "/")
NAMES = "the names, "
NO_STEP = "no step in it or its name"


@dataclass
class Reading:
    """One way to read steps: those by name, what they count, and how to ask for it.

    `guessed` is the form of the names where no word in them says that they are steps.
    """

    steps: dict[str, int]
    unit: str
    source: str
    remedy: str
    left_out: dict[str, str] = field(default_factory=dict)
    guessed: str = ""

    def doubles(self) -> dict[int, list[str]]:
        """Return the steps that several files stand for, with the files."""
        by_step: dict[int, list[str]] = {}
        for name, step in self.steps.items():
            by_step.setdefault(step, []).append(name)
        return {step: names for step, names in by_step.items() if len(names) > 1}

    def leave_out(self, names: Iterable[str], why: str) -> None:
        """Take files out of the reading, and say why."""
        for name in names:
            self.steps.pop(name, None)
            self.left_out[name] = why

    def __str__(self) -> str:
        steps = some([f"{name} {step:,}" for name, step in in_order(self.steps)])
        unit = f"{self.unit.removesuffix('s')}s"
        return f"by {self.source} ({unit}: {steps}), {self.remedy}"


def times(power: int, unit: str) -> str:
    """Return what steps count that are a power of ten times the numbers in names."""
    return unit if power == 1 else f"{power} x {unit}"


def in_order(steps: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return names and steps by increasing step."""
    return sorted(steps.items(), key=lambda item: (item[1], item[0]))


def refuse(readings: Sequence[Reading]) -> CheckpointError:
    """Return the error that names the readings that are possible, and how to choose."""
    ways = "; or ".join(map(str, readings))
    return CheckpointError(
        f"the steps can be read in {len(readings)} ways: {ways}. Choose with that option; "
        "--only and --exclude choose files."
    )


def stem(name: str) -> str:
    """Return a name without what files of weights end in.

    Examples
    --------
    >>> stem("epoch=0-val_loss=5.70.ckpt"), stem("model.2/")
    ('epoch=0-val_loss=5.70', 'model.2')
    """
    return name.removesuffix(next((end for end in SUFFIXES if name.endswith(end)), ""))


def shape(name: str) -> str:
    """Return a name with ``*`` for its numbers."""
    end = name.removeprefix(stem(name))
    numbers = numbers_of(stem(name))
    return (numbers[0].pattern.replace("{}", "*") if numbers else stem(name)) + end


def by_marks(names: Sequence[str]) -> Reading | None:
    """Return the steps that words in the names mark, of files whose names are alike.

    Raises
    ------
    CheckpointError
        If they are of several kinds, or hold several steps of which none tells all apart.
    """
    marked = {n: number for n in names if (number := read_name(stem(n))) is not None}
    if not marked:
        return None
    readings = [_of_pattern(group) for group in _alike(marked)]
    reading, *others = sorted(readings, key=lambda r: -len(r.steps))
    if others and (len(others[0].steps) > 1 or len(reading.steps) == 1):
        raise refuse(
            [_with_glob(candidate, readings) for candidate in (reading, *others)]
        )
    for other in others:
        reading.leave_out(other.steps, f"not named as the others are, {reading.source}")
    _check_alternatives(reading, {name: marked[name] for name in reading.steps})
    return reading


def _alike(marked: Mapping[str, Number]) -> list[dict[str, Number]]:
    """Return groups of names that differ in numbers only; else in what follows the step."""
    same: dict[tuple[str, ...], dict[str, Number]] = {}
    begin: dict[tuple[str, ...], dict[str, Number]] = {}
    for name, number in marked.items():
        end = name.removeprefix(stem(name))
        same.setdefault((number.pattern, end), {})[name] = number
        begin.setdefault((number.pattern.partition("{}")[0], end), {})[name] = number
    single = all(len(group) == 1 for group in same.values())
    return list((begin if single else same).values())


def _of_pattern(group: Mapping[str, Number]) -> Reading:
    number = next(iter(group.values()))
    pattern = number.pattern
    if len({reading.pattern for reading in group.values()}) > 1:
        pattern = f"{pattern.partition('{}')[0]}{{}}"
    values = {
        name: reading.value
        for name, reading in group.items()
        if reading.value is not None
    }
    steps, power = whole(values)
    unit = times(power, number.unit)
    return Reading(steps, unit, f"{NAMES}{pattern}", f"--step-from '{pattern}'")


def _with_glob(reading: Reading, readings: Sequence[Reading]) -> Reading:
    option = "--only"
    globs = {shape(name) for name in reading.steps}
    others = set(chain(*(other.steps for other in readings if other is not reading)))
    # Ckpt_*.pt is ckpt_5_ema.pt, too.
    if any(fnmatch.filter(others, glob) for glob in globs):
        option = "--exclude"
        globs = {shape(name) for name in others}
    reading.remedy = " ".join(f"{option} '{glob}'" for glob in sorted(globs))
    return reading


def _check_alternatives(reading: Reading, numbers: Mapping[str, Number]) -> None:
    """Refuse names in which another number orders otherwise, or distinguishes what this does not."""
    doubles = reading.doubles()
    for column in _columns(numbers):
        marked = next(iter(column.values())).kind != ""
        try:
            other = _of_pattern(column)
        except CheckpointError:
            # Parts of epochs that can be read in two ways, beside clear steps.
            if doubles:
                raise
            continue
        if other.source == reading.source or not (doubles or marked):
            continue
        if doubles and other.doubles():  # it does not distinguish them either
            continue
        ordered = [other.steps[name] for name, _ in in_order(reading.steps)]
        if doubles or ordered != sorted(ordered):
            raise refuse([reading, other])
    for step, names in doubles.items():
        parts, others = (re.split(r"(\d+)", name) for name in names[:2])
        if len(parts) != len(others):
            others = [part if part in others else "" for part in parts]
        # Seed_0-step_0, seed_1-step_0: by their places.
        pairs = zip(parts, others, strict=True)
        glob = "".join("*" if p.isdigit() and p == q else p for p, q in pairs).rstrip(
            "/"
        )
        copies = fnmatch.fnmatchcase(names[1].rstrip("/"), glob)
        run = (
            "" if copies or "*" not in glob else f"take one run with --only '{glob}', "
        )
        raise CheckpointError(
            f"{' and '.join(names[:2])} both stand for {reading.unit} {step}; {run}keep one of "
            f"them, or leave one out with --exclude '{names[1].rstrip('/')}'."
        )


def _columns(names: Iterable[str]) -> list[dict[str, Number]]:
    """Return the numbers at each place of names of one form, where they vary and may be steps."""
    rows = {name: numbers_of(stem(name)) for name in names}
    if len({len(row) for row in rows.values()}) != 1:
        return []
    columns = [
        dict(zip(rows, column, strict=True))
        for column in zip(*rows.values(), strict=True)
    ]
    return [
        column
        for column in columns
        if len({number.value for number in column.values()}) > 1
        and all(n.value is not None and n.kind != "none" for n in column.values())
    ]


def by_shape(names: Sequence[str]) -> Reading | None:
    """Return the only number that distinguishes names that are otherwise alike.

    Raises
    ------
    CheckpointError
        If there are several such numbers.
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(shape(name), []).append(name)
    sizes = sorted(map(len, groups.values()), reverse=True)
    if not sizes or sizes[0] < 2:
        return None
    largest = [group for group in groups.values() if len(group) == sizes[0]]
    readings = list(map(_of_pattern, chain.from_iterable(map(_columns, largest))))
    apart = [reading for reading in readings if not reading.doubles()]
    if len(apart) > 1:
        raise refuse(apart)
    for reading in apart:
        reading.guessed = reading.source.removeprefix(NAMES)
    return apart[0] if apart else None


def with_last(reading: Reading, by_name: Mapping[str, Held]) -> Reading:
    """Return epochs of names with those files that only hold theirs, such as the final one.

    Names may count from one where files count from zero: files that say both tell. What comes in
    at no place of its own is left out, with what it holds.
    """
    others = [name for name in by_name if name not in reading.steps | reading.left_out]
    rest = {n: by_name[n] for n in others if by_name[n].unit != "step"}
    both = {n: by_name[n] for n in reading.steps if n in by_name}
    apart = {
        reading.steps[n] - held.value
        for n, held in both.items()
        if held.unit == "epoch"
    }
    known = reading.unit == "epoch" and len(apart) < 2
    offset = max(apart, default=0)
    last = max(reading.steps.values(), default=0)
    added: list[str] = []
    for name, held in sorted(rest.items(), key=lambda item: item[1].value):
        step = held.value + offset
        says = f"holds {held.unit.removesuffix('s')} {held.value:,}"
        twin = next((n for n, s in reading.steps.items() if s == step), None)
        if not known or held.unit != "epoch":
            units = f"{reading.unit.removesuffix('s')}s"
            reading.left_out[name] = f"{says}, and the other names count {units}"
        elif twin is not None and (apart or step < last):
            reading.left_out[name] = f"{says}, as {twin} does"
        elif twin is not None:
            reading.left_out[name] = f"{says}; {twin} may be the same"
        else:
            reading.steps[name] = step
            added.append(name)
    if added:
        reading.source += f", and what {some(added)} hold{'' if added[1:] else 's'}"
    return reading


def by_held(
    names: Sequence[str], by_name: Mapping[str, Held], unit: str
) -> Reading | None:
    """Return the steps that files hold; of several with one step the one whose name fits.

    Raises
    ------
    CheckpointError
        If several hold one step, and their names tell other steps.
    """
    group = {
        name: by_name[name]
        for name in names
        if name in by_name and by_name[name].unit == unit
    }
    if not group:
        return None
    keys = sorted({record.key for record in group.values()})
    steps = {name: record.value for name, record in group.items()}
    reading = Reading(
        steps, unit, f"{' and '.join(keys)} in the files", f"--step-from {keys[0]}"
    )
    forms = [shape(name) for name in names]
    for step, several in reading.doubles().items():
        first = _first(several, step, forms)
        if first is None:
            other = by_marks(several) or by_shape(several)
            if other is not None:
                raise refuse([reading, by_marks(names) or by_shape(names) or other])
            raise CheckpointError(
                f"{' and '.join(several[:2])} both hold {unit} {step}; leave one out with "
                f"--exclude '{several[1].rstrip('/')}'."
            )
        others = [name for name in several if name != first]
        reading.leave_out(others, f"holds {unit} {step}, as {first} does")
    return reading


def _first(names: Sequence[str], step: int, forms: Sequence[str]) -> str | None:
    """Return the file whose name says the step too, or is of the commonest form; else None."""
    numbers = {name: read_name(stem(name)) for name in names}
    saying = [
        n
        for n, number in numbers.items()
        if number is not None and number.value == step
    ]
    if len(saying) == 1:
        return saying[0]
    counts = {name: forms.count(shape(name)) for name in saying or names}
    most = [name for name, count in counts.items() if count == max(counts.values())]
    return most[0] if len(most) == 1 else None
