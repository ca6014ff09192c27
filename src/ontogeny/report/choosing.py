"""Which layers and steps are meant, with messages that say what there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, check_iterable, suggestion
from ..words.labels import depth_parts, short_names

_SHOWN = 12


def layer_path(paths: Sequence[str], layer: Any) -> str:
    """Return the module path that a layer's number, path or short name means.

    A number is the depth in the path, such as 3 in ``model.layers.3.mlp``; negative ones count
    depths from the end. None means the only layer.

    Examples
    --------
    >>> layer_path(["model.layers.0.mlp", "model.layers.12.mlp"], 12)
    'model.layers.12.mlp'
    """
    paths = [str(path) for path in paths]
    if layer is None and len(paths) == 1:
        return paths[0]
    matches = _matching(paths, layer)
    if len(matches) > 1:
        raise ArgumentError(
            f"layer {layer!r} may be any of {listed(matches)}; give its path."
        )
    return matches[0]


def layer_paths(paths: Sequence[str], layers: Any) -> list[str]:
    """Return all module paths that some layers mean, each once, in the order of `paths`.

    A number means every module of that depth; negative ones count depths from the end.

    Examples
    --------
    >>> layer_paths(["h.0.mlp", "h.1.attn", "h.1.mlp", "h.2.mlp", "h.2.attn"], [-1, 0])
    ['h.0.mlp', 'h.2.mlp', 'h.2.attn']
    """
    alone = isinstance(layers, str) or whole(layers) is not None
    choices = (
        [layers]
        if alone
        else list(check_iterable("layers", layers, "numbers or names"))
    )
    if not choices:
        raise ArgumentError("layers must name at least one layer; got none.")
    names = [str(path) for path in paths]
    selection = set[str]().union(*(_matching(names, layer) for layer in choices))
    return [path for path in names if path in selection]


def _matching(paths: Sequence[str], layer: Any) -> list[str]:
    """Return the paths that a number, path or short name means, at least one."""
    short = short_names(paths)
    number = whole(layer)
    if number is not None:
        number = _from_the_end(paths, number)
        matches = [p for p in paths if str(number) in depth_parts(p)]
    else:
        pairs = zip(paths, short, strict=True)
        matches = [p for p, name in pairs if str(layer) in (p, name)]
    if matches:
        return matches
    there = listed(list(dict.fromkeys([*short, *paths])) if len(paths) < 7 else short)
    near = suggestion(str(layer), [*short, *paths]) if isinstance(layer, str) else ""
    raise ArgumentError(f"layer must be one of {there}; got {layer!r}.{near}")


def _from_the_end(paths: Sequence[str], number: int) -> int:
    """Return the depth that a negative number means, or the number if it means none."""
    numbers = (
        next((p for p in depth_parts(path) if p.isdigit()), None) for path in paths
    )
    depths = sorted({int(number) for number in numbers if number})
    return depths[number] if -len(depths) <= number < 0 else number


def step_position(steps: Sequence[int], choice: Any) -> int:
    """Return the position of a training step; negative numbers count from the end.

    Examples
    --------
    >>> step_position([0, 100, 200], -1), step_position([0, 100, 200], 100)
    (2, 1)
    """
    steps = [int(step) for step in steps]
    number = whole(choice)
    if number is not None and -len(steps) <= number < 0:
        return len(steps) + number
    if number in steps:
        return steps.index(number)
    hint = (
        ""
        if number is None
        else f" The nearest is {min(steps, key=lambda s: abs(s - number))}."
    )
    raise ArgumentError(
        f"step must be one of the result's {len(steps)} steps, {listed(steps)}, or an index from "
        f"{-len(steps)} to -1; got {choice!r}.{hint}"
    )


def chosen_steps(steps: Sequence[int], choice: Any) -> list[int]:
    """Return some steps of a result: those of a list, or of a slice from one step to another.

    Both ends of a slice belong to it. Negative numbers count from the end.

    Examples
    --------
    >>> (
    ...     chosen_steps([0, 1, 2, 4, 8], slice(2, 5)),
    ...     chosen_steps([0, 1, 2, 4, 8], [0, -1]),
    ... )
    ([2, 4], [0, 8])
    """
    numbers = [int(step) for step in steps]
    if isinstance(choice, slice):
        return _between(numbers, choice)
    alone = whole(choice) is not None
    choices = (
        [choice] if alone else list(check_iterable("steps", choice, "training steps"))
    )
    if not choices:
        raise ArgumentError("steps must name at least one step; got none.")
    places = {step_position(numbers, step) for step in choices}
    return [step for place, step in enumerate(numbers) if place in places]


def _between(steps: Sequence[int], span: slice) -> list[int]:
    ends = [whole(end) for end in (span.start, span.stop) if end is not None]
    if span.step is not None or None in ends:
        raise ArgumentError(
            f"a slice of steps must go from one training step to another, such as "
            f"slice({steps[0]}, {steps[-1]}); got {span!r}."
        )
    first = steps[0] if span.start is None else _end(steps, int(span.start))
    last = steps[-1] if span.stop is None else _end(steps, int(span.stop))
    if between := [step for step in steps if first <= step <= last]:
        return between
    raise ArgumentError(
        f"no step lies from {first} to {last}; the result's steps are {listed(steps)}."
    )


def _end(steps: Sequence[int], end: int) -> int:
    """Return an end of a slice as a step; a negative one counts from the end."""
    return end if end >= 0 else steps[step_position(steps, end)]


def whole(value: Any) -> int | None:
    """Return a whole number as such; None for anything else.

    Examples
    --------
    >>> whole(np.int64(3)), whole(True), whole("3")
    (3, None, None)
    """
    number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return int(value) if number else None


def listed(names: Sequence[Any]) -> str:
    """Return names as a message lists them; of many the first and the last.

    Examples
    --------
    >>> listed(["loss", 3])
    "'loss', 3"
    """
    texts = [repr(name) if isinstance(name, str) else str(name) for name in names]
    if len(texts) > _SHOWN:
        texts = [*texts[: _SHOWN - 2], "...", texts[-1]]
    return ", ".join(texts)
