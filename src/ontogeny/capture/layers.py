"""Choosing modules and tensors by patterns over their dotted paths.

The language, one component between dots at a time:

- ``*`` stands for exactly one component, ``**`` for any number; within a component ``*``, ``?`` and
  ``[abc]`` are as in file names (``layers.*.fc?``).
- A pattern may leave out the beginning of a path: ``layers.*.mlp`` matches
  ``gpt_neox.layers.3.mlp``, and ``*`` alone matches everything. A pattern that is itself the full
  path of a module means that module only.
- ``-1`` is the last of the numbered siblings, ``[start:stop:step]`` a slice of them:
  ``layers.-1.mlp``, ``layers[0:12:3].mlp``.
- ``!pattern`` takes its matches away from those of the other patterns.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from torch import nn

from ..errors import ArgumentError, LayerMatchError

__all__ = ["match_layers", "match_paths"]


def match_layers(model: nn.Module, patterns: str | Sequence[str]) -> list[str]:
    """Return the paths of the modules of `model` that match, in the model's order.

    Parameters
    ----------
    model
        Any module; its own root path ``""`` never matches.
    patterns
        One pattern or several (see :mod:`ontogeny.capture.layers`).

    Raises
    ------
    LayerMatchError
        If a pattern matches no module; the message names patterns that do.

    Examples
    --------
    >>> model = nn.ModuleDict({"layers": nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])})
    >>> match_layers(model, "layers.*")
    ['layers.0', 'layers.1']
    >>> match_layers(model, ["layers.*", "!layers.0"])
    ['layers.1']
    """
    paths = [path for path, _ in model.named_modules() if path]
    return match_paths(paths, patterns, "layers", f"module of {type(model).__name__}")


def match_paths(
    paths: Sequence[str], patterns: str | Sequence[str], argument: str, kind: str
) -> list[str]:
    """Return those of `paths` that match, in their order; `argument` and `kind` name things.

    Raises
    ------
    LayerMatchError
        If a pattern matches none of them, or nothing is left after the ``!`` patterns.

    Examples
    --------
    >>> match_paths(["h.0.fc", "h.1.fc", "h.2.fc"], "h[1:].fc", "blocks", "tensor")
    ['h.1.fc', 'h.2.fc']
    """
    patterns = _check_patterns(patterns, argument)
    known, siblings = set(paths), _siblings(paths)
    kept: set[str] = set()
    for pattern in patterns:
        text = pattern.removeprefix("!")
        found = {text} if text in known else _matching(text, paths, siblings)
        if not found:
            raise LayerMatchError(_no_match(pattern, paths, argument, kind))
        kept = kept - found if pattern.startswith("!") else kept | found
    if not kept:
        raise LayerMatchError(f"{argument}={list(patterns)} leaves no {kind} after the exclusions.")
    return [path for path in paths if path in kept]


def _check_patterns(patterns: str | Sequence[str], argument: str) -> tuple[str, ...]:
    patterns = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    if not patterns or not all(isinstance(p, str) and p.strip("!") for p in patterns):
        raise ArgumentError(
            f"{argument} must be a pattern or a list of patterns such as 'model.layers.*.mlp'; "
            f"got {patterns!r}."
        )
    if all(p.startswith("!") for p in patterns):
        patterns = ("**", *patterns)
    return patterns


def _siblings(paths: Iterable[str]) -> Counter[str]:
    """Count the numbered children of every parent path, also those that only appear as prefix."""
    numbered = set()
    for path in paths:
        parts = path.split(".")
        for end, part in enumerate(parts):
            if part.isdecimal():
                numbered.add((".".join(parts[:end]), part))
    return Counter(parent for parent, _ in numbered)


def _matching(pattern: str, paths: Iterable[str], siblings: Counter[str]) -> set[str]:
    pattern = re.sub(r"(?<=[^.])(\[-?\d*:)", r".\1", pattern)  # layers[0:4] is layers.[0:4]
    wanted = pattern.split(".")
    return {path for path in paths if _fits(wanted, path.split("."), siblings)}


def _fits(wanted: list[str], parts: list[str], siblings: Counter[str]) -> bool:
    """Compare from the end, where most paths differ; what is left of `parts` may be anything."""
    if not wanted:
        return True
    if wanted[-1] == "**":
        ends = range(len(parts), -1, -1)
        return any(_fits(wanted[:-1], parts[:end], siblings) for end in ends)
    if not parts or not _component_fits(wanted[-1], parts, siblings):
        return False
    return _fits(wanted[:-1], parts[:-1], siblings)


def _component_fits(wanted: str, parts: list[str], siblings: Counter[str]) -> bool:
    part = parts[-1]
    if wanted[:1] not in ("-", "["):
        return fnmatchcase(part, wanted)
    count = siblings[".".join(parts[:-1])]
    if re.fullmatch(r"-\d+", wanted):
        return part.isdecimal() and int(part) == count + int(wanted)
    if re.fullmatch(r"\[-?\d*:-?\d*(:-?\d*)?\]", wanted):
        bounds = [int(number) if number else None for number in wanted[1:-1].split(":")]
        return part.isdecimal() and int(part) in range(*slice(*bounds).indices(count))
    return fnmatchcase(part, wanted)


def _no_match(pattern: str, paths: Sequence[str], argument: str, kind: str) -> str:
    general = Counter(_generalised(path) for path in paths)
    text = pattern.removeprefix("!")
    shapes = list(general)
    near = get_close_matches(_generalised(text), shapes, n=3, cutoff=0.5)
    tail = text.split(".")[-1]
    near += [s for s in shapes if s.split(".")[-1] == tail and s not in near][: 3 - len(near)]
    near = near or [shape for shape, _ in general.most_common(3)]
    lines = "; ".join(
        f"{general[s]} {'matches' if general[s] == 1 else 'match'} '{s}'" for s in near
    )
    return f"{argument} pattern '{pattern}' matches no {kind}. Of those there are, {lines}."


def _generalised(path: str) -> str:
    return ".".join("*" if re.fullmatch(r"-?\d+", part) else part for part in path.split("."))
