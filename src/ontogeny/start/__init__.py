"""From the name of a run to a study that fits it: presets, study files, and what they cost.

Its parts are loaded when they are first used: a run is found before what tries it is loaded.
"""

import importlib
from typing import Any

_HOMES = {
    "PRESETS": "presets",
    "Wishes": "wishes",
    "look": "shown",
    "names_of": "source",
    "propose": "proposal",
}

__all__ = ["PRESETS", "Wishes", "look", "names_of", "propose"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
