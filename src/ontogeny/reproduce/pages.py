"""The folder of a reproduction: its result and its page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from .. import report
from ..errors import ArgumentError
from ..store import write_json
from ..study.layout import settings_path
from ..study.merge import write_result

_OWN = ("studies", "pieces")  # what a recipe that was stopped leaves


def check_own(place: Path) -> None:
    """Refuse a folder that no recipe has written: its page would be overwritten."""
    if place.is_dir() and not settings_path(place).is_file():
        others = [p.name for p in place.iterdir() if p.name not in _OWN and p.name[0] != "."]
        if others:
            raise ArgumentError(f"{place} holds other files ({others[0]}); give another folder.")


def publish(
    place: Path, name: str, nodes: Mapping[str, xr.Dataset], attributes: Mapping[Any, Any]
) -> Path:
    """Write nodes and attributes of the recipe `name` as a study folder; return its page.

    Means over seeds have no checkpoints of their own, so the page says nothing of an audit.
    """
    kept = {key: value for key, value in attributes.items() if key != "findings"}
    whole = xr.DataTree.from_dict(
        {
            "/": xr.Dataset(
                attrs={
                    **kept,
                    "nodes": json.dumps(list(nodes)),
                    "problems": json.dumps([]),
                }
            ),
            **nodes,
        }
    )
    place.mkdir(parents=True, exist_ok=True)
    write_json(
        settings_path(place),
        {"format": "ontogeny-study-1", "title": attributes["title"], "recipe": name},
    )
    write_result(place, whole)
    return report.write(whole, place / "report.html")
