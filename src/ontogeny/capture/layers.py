"""Choosing modules and tensors by patterns over their dotted paths.

The language, one component between dots at a time:

- ``*`` stands for exactly one component, ``**`` for any number; within a component ``*``, ``?`` and
  ``[abc]`` are as in file names (``layers.*.fc?``).
- A pattern may leave out the beginning of a path: ``layers.*.mlp`` matches
  ``gpt_neox.layers.3.mlp``, and ``*`` alone matches everything. A pattern that is itself the full
  path of a module means that module only.
- ``-1`` is the last of the numbered siblings, ``[start:stop:step]`` a slice of them:
  ``layers.-1.mlp``, ``layers[-1].mlp``, ``layers[0:12:3].mlp``.
- ``!pattern`` takes its matches away from those of the other patterns.
- ``pattern@3`` is the fourth call of a module that several layers share, ``pattern@*`` each call.
- ``pattern#in`` is the input of each module instead of its output, and ``pattern#q``, ``#k``,
  ``#v`` a part of a fused projection (see :mod:`ontogeny.capture.sites`).
- In known families ``attn``, ``mlp``, ``resid``, ``q``, ``layers[2].mlp`` and others are short
  names (see :mod:`ontogeny.capture.aliases`). A full path always means its module, and a short
  name that finds nothing is taken for a pattern.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from torch import Tensor, nn

from ..errors import ArgumentError, LayerMatchError
from ..inputs import Inputs
from .aliases import Aliases, attention_aliases, site_aliases
from .calls import calls_of
from .forward import first_tensor, quiet, run
from .sites import call_of, known_parts, module_of, split_label, watched

# Path -> suffixes that it may have, in order.
_Parts: TypeAlias = Callable[[str], Sequence[str]]


def match_layers(
    model: nn.Module, patterns: str | Sequence[str], inputs: Any = None
) -> list[str]:
    """Return the labels of the sites of `model` that match, in the model's order.

    The label of a module's output is the module's path; that of its input and of parts of a fused
    output have a suffix: ``"h.2#in"``, ``"h.2.attn.c_attn#q"``. Labels are patterns too.

    Parameters
    ----------
    model
        Any module; its own root path ``""`` never matches.
    patterns
        One pattern or several (see :mod:`ontogeny.capture.layers`).
    inputs
        The first text of these is run where a pattern asks for each call (``"layer@*"``); None
        runs a text of four tokens.

    Raises
    ------
    LayerMatchError
        If a pattern matches no module; the message names patterns that do, and the short names
        that are known for the model's family.

    Examples
    --------
    >>> model = nn.ModuleDict(
    ...     {"layers": nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])}
    ... )
    >>> match_layers(model, "layers.*")
    ['layers.0', 'layers.1']
    >>> match_layers(model, ["layers.*", "!layers.0"])
    ['layers.1']
    >>> match_layers(model, "layers[-1]#in")
    ['layers.1#in']
    """
    parts = functools.partial(known_parts, model)
    return _match_modules(model, patterns, site_aliases(model), parts, inputs)


def match_attention(model: nn.Module, patterns: str | Sequence[str]) -> list[str]:
    """Return the paths of the modules that match and may return attention maps.

    As `match_layers`, but ``attn`` and ``layers[2]`` mean the module that returns the maps.

    Examples
    --------
    >>> match_attention(nn.Sequential(nn.Linear(2, 2)), "*")
    ['0']
    """
    return _match_modules(model, patterns, attention_aliases(model), _whole)


def _whole(path: str) -> tuple[str, ...]:
    return ("",)


def _match_modules(
    model: nn.Module,
    patterns: str | Sequence[str],
    aliases: Aliases,
    parts: _Parts,
    inputs: Any = None,
) -> list[str]:
    paths = [path for path, _ in model.named_modules() if path]
    kind = f"module of {type(model).__name__}"

    def calls(path: str) -> int:
        return calls_of(model, inputs)[path]

    return match_paths(paths, patterns, "layers", kind, aliases, parts, calls)


def match_paths(
    paths: Sequence[str],
    patterns: str | Sequence[str],
    argument: str,
    kind: str,
    aliases: Aliases | None = None,
    parts: _Parts = _whole,
    calls: Callable[[str], int] | None = None,
) -> list[str]:
    """Return those of `paths` that match, in their order; `argument` and `kind` name things.

    `aliases` are the short names, and `parts` gives the suffixes that a path may have, in the order
    in which they are listed; ``""`` is the whole. `calls` says how often a path is called; without
    it, as of tensors, nothing matches a pattern that names a call.

    Raises
    ------
    LayerMatchError
        If a pattern matches none of them, or nothing is left after the ``!`` patterns.

    Examples
    --------
    >>> match_paths(["h.0.fc", "h.1.fc", "h.2.fc"], "h[1:].fc", "blocks", "tensor")
    ['h.1.fc', 'h.2.fc']
    """
    patterns = check_patterns(patterns, argument)
    search = _Search(paths, parts)
    aliases = aliases or Aliases()
    selection: set[str] = set()
    for pattern in patterns:
        text, call = _without_call(pattern.removeprefix("!"))
        matches = _at_calls(search.labels(text, aliases), call, calls)
        if not matches:
            raise LayerMatchError(
                _no_match(pattern, paths, argument, kind) + aliases.hint(text)
            )
        selection = (
            selection - matches if pattern.startswith("!") else selection | matches
        )
    if not selection:
        raise LayerMatchError(
            f"{argument}={list(patterns)} leaves no {kind} after the exclusions."
        )
    order = {path: place for place, path in enumerate(paths)}

    def place(label: str) -> tuple[int, int, int]:
        path, part = split_label(label)
        return order[path], call_of(label) or 0, list(search.parts(path)).index(part)

    return sorted(selection, key=place)


def _without_call(pattern: str) -> tuple[str, str]:
    """Return a pattern without ``@3`` or ``@*``, and which calls that means."""
    text, hash_, part = pattern.partition("#")
    text, _, call = text.partition("@")
    return text + hash_ + part, call


def _at_calls(
    labels: set[str], call: str, calls: Callable[[str], int] | None
) -> set[str]:
    """Return the labels of chosen calls of modules."""
    if not call:
        return labels
    selection: set[str] = set()
    if calls is None:
        return selection
    for path, part in map(split_label, labels):
        numbers: Iterable[int] = ()
        if call == "*":
            numbers = range(calls(path))
        elif call.isdecimal():
            numbers = [int(call)]
        selection |= {_label(f"{path}@{number}", part) for number in numbers}
    return selection


class _Search:
    """Finds labels, a path and perhaps ``#part``, among paths."""

    def __init__(self, paths: Sequence[str], parts: _Parts) -> None:
        self.parts = parts
        self._paths = paths
        self._path_set = set(paths)
        self._siblings = _siblings(paths)

    def labels(self, text: str, aliases: Aliases) -> set[str]:
        """Return what one pattern means: a full path, else a short name, else a pattern."""
        if split_label(text)[0] not in self._path_set:
            for group in aliases.translate(text):
                matches = set().union(*(self._matching(pattern) for pattern in group))
                if matches:
                    return matches
        return self._matching(text)

    def _matching(self, pattern: str) -> set[str]:
        text, part = split_label(pattern)
        matches = (
            {text}
            if text in self._path_set
            else _matching(text, self._paths, self._siblings)
        )
        return {_label(path, part) for path in matches if part in self.parts(path)}


def _label(path: str, part: str) -> str:
    return f"{path}#{part}" if part else path


def check_patterns(patterns: str | Sequence[str], argument: str) -> tuple[str, ...]:
    """Return globs as a tuple; refuse none, an empty one, or what is no text."""
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
    parts = _with_indices(pattern, siblings).split(".")
    return {path for path in paths if _fits(parts, path.split("."), siblings)}


def _with_indices(pattern: str, siblings: Iterable[str]) -> str:
    """Return ``layers.[0:4]`` for ``layers[0:4]``, and ``layers.-1`` for ``layers[-1]``.

    ``fc[2]`` stays a file-name pattern unless something called ``fc`` has numbered children.
    """
    pattern = re.sub(r"(?<=[^.])(\[-?\d*:)", r".\1", pattern)
    parents = {parent.rpartition(".")[2] for parent in siblings}

    def index(match: re.Match[str]) -> str:
        name, number = match.groups()
        return (
            f"{name}.{number}"
            if any(fnmatchcase(p, name) for p in parents)
            else match[0]
        )

    return re.sub(r"([^.\[\]]+)\[(-?\d+)\](?=\.|$)", index, pattern)


def _fits(patterns: list[str], parts: list[str], siblings: Counter[str]) -> bool:
    """Compare from the end, where most paths differ; what is left of `parts` may be anything."""
    if not patterns:
        return True
    if patterns[-1] == "**":
        ends = range(len(parts), -1, -1)
        return any(_fits(patterns[:-1], parts[:end], siblings) for end in ends)
    if not parts or not _component_fits(patterns[-1], parts, siblings):
        return False
    return _fits(patterns[:-1], parts[:-1], siblings)


def _component_fits(pattern: str, parts: list[str], siblings: Counter[str]) -> bool:
    part = parts[-1]
    if pattern[:1] not in ("-", "["):
        return fnmatchcase(part, pattern)
    count = siblings[".".join(parts[:-1])]
    if re.fullmatch(r"-\d+", pattern):
        return part.isdecimal() and int(part) == count + int(pattern)
    if re.fullmatch(r"\[-?\d*:-?\d*(:-?\d*)?\]", pattern):
        bounds = [
            int(number) if number else None for number in pattern[1:-1].split(":")
        ]
        return part.isdecimal() and int(part) in range(*slice(*bounds).indices(count))
    return fnmatchcase(part, pattern)


def _no_match(pattern: str, paths: Sequence[str], argument: str, kind: str) -> str:
    general = Counter(_generalised(path) for path in paths)
    text = pattern.removeprefix("!")
    shapes = list(general)
    alike = get_close_matches(_generalised(text), shapes, n=3, cutoff=0.5)
    ends = {shape.split(".")[-1] for shape in shapes}
    tails = get_close_matches(text.split(".")[-1], ends, n=3, cutoff=0.75)
    ending: list[str] = []
    for tail in tails:
        ending += [shape for shape in shapes if shape.split(".")[-1] == tail]
    near = [*alike, *ending] if "." in text else [*ending, *alike]
    near = list(dict.fromkeys(near or [shape for shape, _ in general.most_common(3)]))[
        :3
    ]
    lines = "; ".join(
        f"{general[s]} {'matches' if general[s] == 1 else 'match'} '{s}'" for s in near
    )
    there = f"Of those there are, {lines}." if lines else "It has none inside."
    return f"{argument} pattern '{pattern}' matches no {kind}. {there}"


def _generalised(path: str) -> str:
    return ".".join(
        "*" if re.fullmatch(r"-?\d+", part) else part for part in path.split(".")
    )


class LayerInfo(NamedTuple):
    """One site: its label, the name of its module's class, and the shape of what it gives.

    The shape is None for a module that is not called or gives no tensor.
    """

    path: str
    kind: str
    shape: tuple[int, ...] | None


def list_layers(
    model: nn.Module, pattern: str | Sequence[str] = "**", inputs: Any = None
) -> list[LayerInfo]:
    """Return the sites that match, with the shapes that they give for one text.

    Parameters
    ----------
    model
        Any module.
    pattern
        Patterns over module paths (see :mod:`ontogeny.capture.layers`).
    inputs
        The first text of these is run; None runs a text of four tokens.

    Raises
    ------
    LayerMatchError
        If a pattern matches no module.

    Examples
    --------
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 3))
    >>> list_layers(model, "1")
    [LayerInfo(path='1', kind='Linear', shape=(1, 4, 3))]
    """
    labels = match_layers(model, pattern, inputs)
    shapes: dict[str, tuple[int, ...]] = {}

    def note(path: str, output: Any) -> None:
        tensor = first_tensor(output)
        if isinstance(tensor, Tensor):
            shapes.setdefault(path, tuple(tensor.shape))

    inputs = (
        Inputs.from_tokens(np.arange(4)[None])
        if inputs is None
        else Inputs.coerce(inputs)
    )
    with quiet(model), watched(model, labels, note):
        run(model, inputs.padded("right").subset([0]).batches(1)[0])
    return [
        LayerInfo(
            label,
            type(model.get_submodule(module_of(label))).__name__,
            shapes.get(label),
        )
        for label in labels
    ]
