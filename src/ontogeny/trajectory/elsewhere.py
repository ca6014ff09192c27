"""Checkpoints that a folder does not hold itself: in folders below it, or in its history."""

from __future__ import annotations

import shlex
from itertools import chain
from pathlib import Path

from ..errors import CheckpointError
from .order.candidates import ordered
from .order.names import read_name
from .weights.inert import few

_DEPTH = 3  # run/seed1/checkpoints
_MOST = 50  # folders of one folder that are looked into


def checkpoints_below(folder: Path, depth: int = _DEPTH) -> list[Path]:
    """Return the nearest folders below that hold checkpoints."""
    inner = [
        path
        for path in sorted(folder.iterdir())
        if path.is_dir() and path.name[0] != "."
    ]
    holding = [path for path in inner[:_MOST] if _holds(path)]
    if holding or depth == 1:
        return holding
    below = (checkpoints_below(path, depth - 1) for path in inner[:_MOST])
    return list(chain.from_iterable(below))


def _holds(folder: Path) -> bool:
    try:
        return bool(ordered(folder)[0])
    except CheckpointError:  # their steps can be read in two ways
        return True


def elsewhere(folder: Path) -> list[tuple[str, str]]:
    """Return ``(name, what to do)`` of checkpoints that opening a folder as one model leaves out.

    A clone of a repository on the Hub may have them as branches or tags.
    """
    below = checkpoints_below(folder, 2)
    others = [(f"{path.relative_to(folder)}/", "name this folder") for path in below]
    kind, names = _revisions(folder / ".git")
    if names:
        git = shlex.join(["git", "-C", str(folder)])
        to = shlex.quote(str(folder.with_name(f"{folder.name}-steps")))
        form = f"%(refname:lstrip={kind.count('/')})"
        loop = f"for r in $({git} for-each-ref --format='{form}' {kind})"
        how = f"{loop}; do {git} worktree add {to}/$r $r; done; then name {to}"
        others.append((f"revisions {few(names)}", how))
    return others


def _revisions(git: Path) -> tuple[str, list[str]]:
    """Return the tags or branches of a clone whose names are those of steps, if there are two."""
    packed = git / "packed-refs"
    words = packed.read_text(errors="replace").split() if packed.is_file() else []
    refs = {
        *words,
        *(str(p.relative_to(git)) for p in git.glob("refs/**/*") if p.is_file()),
    }
    for kind in ("refs/tags/", "refs/remotes/origin/", "refs/heads/"):
        names = sorted(ref.removeprefix(kind) for ref in refs if ref.startswith(kind))
        steps = [
            (number.value or 0, n)
            for n in names
            if (number := read_name(n)) is not None
        ]
        if len(steps) > 1:
            return kind, [name for _, name in sorted(steps)]
    return "", []
