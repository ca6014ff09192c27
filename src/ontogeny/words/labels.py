"""Module paths made short, and grouped by depth for the layer selector and its colours."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile


def truncate(text: str, length: int) -> str:
    """Cut `text` to `length` characters, the last one an ellipsis.

    Examples
    --------
    >>> truncate("attention entropy", 10)
    'attention…'
    """
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def said_once(names: Iterable[tuple[str, str]]) -> list[str]:
    """Return each kind of names once, with how many names there are of it.

    Examples
    --------
    >>> kind = "distance moved"
    >>> said_once([(f"q · {kind}", kind), ("loss", "loss"), (f"v · {kind}", kind)])
    ['distance moved (of 2 kinds)', 'loss']
    """
    counts = Counter(kind for _, kind in dict.fromkeys(names))
    return [
        f"{name} (of {count} kinds)" if count > 1 else name
        for name, count in counts.items()
    ]


def slug(text: str, taken: Iterable[str] = ()) -> str:
    """Return `text` as a part of a link: lower case, hyphens, numbered where it is taken.

    Examples
    --------
    >>> slug("model.layers.2.mlp · ICA"), slug("A b", ["a-b"])
    ('model-layers-2-mlp-ica', 'a-b-2')
    """
    stem = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "x"
    names = set(taken)
    name = stem
    number = 2
    while name in names:
        name = f"{stem}-{number}"
        number = number + 1
    return name


def short_names(paths: Sequence[str]) -> list[str]:
    """Return the shortest names that tell dotted `paths` apart.

    Parts that all share at either end go; between the depth and the last part also what names do
    not need, in all of them or in none.

    Examples
    --------
    >>> short_names(
    ...     ["h.0.self_attn.q.weight", "h.0.mlp.up.weight", "h.1.mlp.up.weight"]
    ... )
    ['0.q', '0.up', '1.up']
    >>> short_names(["model.layers.0.mlp", "model.layers.1.mlp"])
    ['layer 0', 'layer 1']
    >>> short_names(["layers.0.mlp", "layers.0.attn", "layers.1.mlp"])
    ['0.mlp', '0.attn', '1.mlp']
    >>> short_names(["model.layers.3.mlp"]), short_names(["h.3.mlp.up.weight"])
    (['layer 3'], ['3.up'])
    >>> short_names(["gpt_neox.layers.1"])
    ['layer 1']
    >>> short_names(["blocks.0.mlp@0", "blocks.0.mlp@1"])
    ['layer 0', 'layer 1']
    >>> short_names(["svd", "ica"])
    ['svd', 'ica']
    >>> short_names(["SGD 0.001, as stated", "SGD 0.1"])
    ['SGD 0.001, as stated', 'SGD 0.1']
    """
    unique = list(dict.fromkeys(paths))
    # Names of runs and the like are no module paths.
    if any(" " in path for path in unique):
        return list(paths)
    parts = [re.split(r"[.@]", p) for p in unique]
    if len(unique) < 2:
        return [_alone(path) for path in paths]
    start = _shared(parts)
    stop = _shared([p[start:][::-1] for p in parts])
    middles = [p[start : len(p) - stop] for p in parts]
    names = [".".join(_without_middle(p)) for p in middles]
    if len(set(names)) < len(names):
        names = [".".join(p) for p in middles]
    if not all(names) or len(set(names)) < len(names):
        names = unique
    if all(n.isdigit() for n in names) and start:
        names = [f"layer {n}" for n in names]
    short = dict(zip(unique, names, strict=True))
    return [short[p] for p in paths]


def _alone(path: str) -> str:
    """Return the name of the one module or weight that there is."""
    parts = [part for part in path.split(".") if part not in ("weight", "bias")]
    whole = len(parts) == len(path.split("."))
    if sum(part.isdigit() for part in parts) != 1 or "#" in path:
        return ".".join(path.split(".")[-3:])
    depth = next(part for part in parts if part.isdigit())
    if whole and len(parts) > 1:
        return f"layer {depth}"
    return path if parts[-1].isdigit() else f"{depth}.{parts[-1]}"


def _without_middle(parts: Sequence[str]) -> Sequence[str]:
    """Return what leads to the first number, the number, and the last part: ``2.q_proj``."""
    depth = next((i for i, part in enumerate(parts) if part.isdigit()), None)
    return parts if depth is None else [*parts[: depth + 1], *parts[depth + 1 :][-1:]]


def _shared(parts: Sequence[Sequence[str]]) -> int:
    """How many leading components all share, leaving each at least one."""
    columns = zip(*(p[:-1] for p in parts), strict=False)
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))


@dataclass(frozen=True)
class LayerGroups:
    """The chips of the layer selector: one for each depth or path without a depth."""

    labels: tuple[str, ...]
    members: dict[str, int]

    def of(self, path: str) -> int:
        """Return the number of the chip that `path` belongs to, or -1 for none."""
        return self.members.get(path, -1)


def layer_groups(paths: Iterable[str]) -> LayerGroups:
    """Group module paths by the first number in them, in order of depth.

    Examples
    --------
    >>> groups = layer_groups(
    ...     ["embed", "layers.0.mlp", "layers.0.attn", "layers.1.mlp", "head"]
    ... )
    >>> groups.labels, groups.of("layers.0.attn")
    (('embed', '0', '1', 'head'), 1)
    """
    names = {path: _group_name(path) for path in paths if path}
    order = list(dict.fromkeys(names.values()))
    numbered = sorted((n for n in order if n.isdigit()), key=int)
    first = next((i for i, n in enumerate(order) if n.isdigit()), len(order))
    labels = (*order[:first], *numbered, *(n for n in order[first:] if not n.isdigit()))
    places = {label: i for i, label in enumerate(labels)}
    return LayerGroups(labels, {path: places[name] for path, name in names.items()})


def depth_parts(path: str) -> list[str]:
    """Return the parts of a layer's label that may be its depth: of a shared module, the call.

    Examples
    --------
    >>> depth_parts("layers.3#in"), depth_parts("blocks.0.mlp@2")
    (['layers', '3'], ['2'])
    """
    path, _, call = path.partition("#")[0].partition("@")
    return [call] if call else path.split(".")


def _group_name(path: str) -> str:
    parts = depth_parts(path)
    depth = next((p for p in parts if p.isascii() and p.isdigit()), None)
    if depth is not None:
        return str(int(depth))
    return (
        parts[-2] if len(parts) > 1 and parts[-1] in ("weight", "bias") else parts[-1]
    )
