"""Whether a stored cell is what would be computed today."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import StoreError
from ..store import Cell, difference, read_cell, read_header
from ..trajectory import Trajectory
from .digests import whole_digest

__all__ = ["judge", "looked_at", "plain"]


def judge(
    path: Path | None, fingerprint: Mapping[str, Any], read: Callable[[Path], Cell] = read_cell
) -> tuple[str, tuple[str, ...]]:
    """Return the outcome of what is stored at `path`, and why.

    ``"done"``, ``"new"``, ``"stale"`` (it is of something else, or damaged) or ``"retry"`` (it was
    missing or had failed).
    """
    if path is None or not path.exists():
        return "new", ()
    try:
        stored = read(path)
    except StoreError as error:
        return "stale", (str(error),)
    changed = difference(stored.fingerprint, plain(fingerprint))
    if changed:
        return "stale", tuple(changed)
    if stored.status != "done" or _failed_layers(stored.data):
        return "retry", (stored.status,)
    return "done", ()


def looked_at(path: Path | None, trajectory: Trajectory) -> dict[str, Any]:
    """Return today's value of what a stored state looked at beside the reference step."""
    if path is None or not path.exists():
        return {}
    try:
        stored = read_header(path)["fingerprint"]
    except StoreError:
        return {}
    extra: dict[str, Any] = {}
    if "other_weights" in stored:
        steps = set(trajectory.steps.tolist())
        extra["other_weights"] = {
            s: whole_digest(trajectory[int(s)]) if int(s) in steps else "absent"
            for s in stored["other_weights"]
        }
    if "steps" in stored:
        extra["steps"] = [int(s) for s in trajectory.steps]
    return extra


def plain(value: Any) -> Any:
    """Return `value` as JSON would give it back: tuples as lists, numbers as Python numbers.

    Examples
    --------
    >>> plain({1: (2, 3)})
    {'1': [2, 3]}
    """
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value.item() if hasattr(value, "item") else value


def _failed_layers(data: Any) -> bool:
    status = data.get("status")
    return status is not None and bool((status != "done").any())
