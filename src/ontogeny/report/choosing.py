"""Which layers and steps are meant, with messages that say what there is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, check_iterable, suggestion
from ..words.labels import short_names

_SHOWN = 12


def layer_path(paths: Sequence[str], given: Any) -> str:
    """Return the module path that a layer's number, path or short name means.

    A number is the depth in the path, such as 3 in ``model.layers.3.mlp``; negative ones count
    depths from the end. None means the only layer.

    Examples
    --------
    >>> layer_path(["model.layers.0.mlp", "model.layers.12.mlp"], 12)
    'model.layers.12.mlp'
    """
    paths = [str(path) for path in paths]
    if given is None and len(paths) == 1:
        return paths[0]
    found = _matching(paths, given)
    if len(found) > 1:
        raise ArgumentError(f"layer {given!r} may be any of {listed(found)}; give its path.")
    return found[0]


def layer_paths(paths: Sequence[str], given: Any) -> list[str]:
    """Return all module paths that some layers mean, each once, in the order of `paths`.

    A number means every module of that depth; negative ones count depths from the end.

    Examples
    --------
    >>> layer_paths(["h.0.mlp", "h.1.attn", "h.1.mlp", "h.2.mlp", "h.2.attn"], [-1, 0])
    ['h.0.mlp', 'h.2.mlp', 'h.2.attn']
    """
    alone = isinstance(given, str) or whole(given) is not None
    chosen = [given] if alone else list(check_iterable("layers", given, "numbers or names"))
    if not chosen:
        raise ArgumentError("layers must name at least one layer; got none.")
    names = [str(path) for path in paths]
    found = {path for each in chosen for path in _matching(names, each)}
    return [path for path in names if path in found]


def _matching(paths: Sequence[str], given: Any) -> list[str]:
    """Return the paths that a number, path or short name means, at least one."""
    short = short_names(paths)
    number = whole(given)
    if number is not None:
        number = _from_the_end(paths, number)
        found = [p for p in paths if str(number) in p.partition("#")[0].split(".")]
    else:
        pairs = zip(paths, short, strict=True)
        found = [p for p, name in pairs if str(given) in (p, name)]
    if found:
        return found
    there = listed(list(dict.fromkeys([*short, *paths])) if len(paths) < 7 else short)
    near = suggestion(str(given), [*short, *paths]) if isinstance(given, str) else ""
    raise ArgumentError(f"layer must be one of {there}; got {given!r}.{near}")


def _from_the_end(paths: Sequence[str], number: int) -> int:
    """Return the depth that a negative number means, or the number if it means none."""
    named = [re.search(r"(?:^|\.)(\d+)(?:\.|$)", path.partition("#")[0]) for path in paths]
    depths = sorted({int(each[1]) for each in named if each})
    return depths[number] if -len(depths) <= number < 0 else number


def step_position(steps: Sequence[int], given: Any) -> int:
    """Return the position of a training step; negative numbers count from the end.

    Examples
    --------
    >>> step_position([0, 100, 200], -1), step_position([0, 100, 200], 100)
    (2, 1)
    """
    steps = [int(step) for step in steps]
    number = whole(given)
    if number is not None and -len(steps) <= number < 0:
        return len(steps) + number
    if number in steps:
        return steps.index(number)
    hint = "" if number is None else f" The nearest is {min(steps, key=lambda s: abs(s - number))}."
    raise ArgumentError(
        f"step must be one of the result's {len(steps)} steps, {listed(steps)}, or an index from "
        f"{-len(steps)} to -1; got {given!r}.{hint}"
    )


def chosen_steps(steps: Sequence[int], given: Any) -> list[int]:
    """Return some steps of a result: those of a list, or of a slice from one step to another.

    Both ends of a slice belong to it. Negative numbers count from the end.

    Examples
    --------
    >>> chosen_steps([0, 1, 2, 4, 8], slice(2, 5)), chosen_steps([0, 1, 2, 4, 8], [0, -1])
    ([2, 4], [0, 8])
    """
    known = [int(step) for step in steps]
    if isinstance(given, slice):
        return _between(known, given)
    alone = whole(given) is not None
    chosen = [given] if alone else list(check_iterable("steps", given, "training steps"))
    if not chosen:
        raise ArgumentError("steps must name at least one step; got none.")
    places = {step_position(known, each) for each in chosen}
    return [step for place, step in enumerate(known) if place in places]


def _between(steps: Sequence[int], given: slice) -> list[int]:
    ends = [whole(end) for end in (given.start, given.stop) if end is not None]
    if given.step is not None or None in ends:
        raise ArgumentError(
            f"a slice of steps must go from one training step to another, such as "
            f"slice({steps[0]}, {steps[-1]}); got {given!r}."
        )
    first = steps[0] if given.start is None else _end(steps, int(given.start))
    last = steps[-1] if given.stop is None else _end(steps, int(given.stop))
    if found := [step for step in steps if first <= step <= last]:
        return found
    raise ArgumentError(
        f"no step lies from {first} to {last}; the result's steps are {listed(steps)}."
    )


def _end(steps: Sequence[int], given: int) -> int:
    """Return an end of a slice as a step; a negative one counts from the end."""
    return given if given >= 0 else steps[step_position(steps, given)]


def whole(given: Any) -> int | None:
    """Return a whole number as such; None for anything else.

    Examples
    --------
    >>> whole(np.int64(3)), whole(True), whole("3")
    (3, None, None)
    """
    number = isinstance(given, int | np.integer) and not isinstance(given, bool)
    return int(given) if number else None


def listed(names: Sequence[Any]) -> str:
    """Return names as a message lists them; of many the first and the last.

    Examples
    --------
    >>> listed(["loss", 3])
    "'loss', 3"
    """
    shown = [repr(name) if isinstance(name, str) else str(name) for name in names]
    if len(shown) > _SHOWN:
        shown = [*shown[: _SHOWN - 2], "...", shown[-1]]
    return ", ".join(shown)
