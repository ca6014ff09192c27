"""ontogeny: how a language model develops during training.

Importing this package loads neither PyTorch nor transformers nor a plotting library; each public
name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from ._version import __version__

_ATTRIBUTES = {
    "Trajectory": "trajectory",
    "Checkpoint": "trajectory",
    "Recorder": "recording",
    "RecorderCallback": "recording",
    "Inputs": "inputs",
    "Observable": "observables",
    "observable": "observables",
    "Study": "study",
    "open_study": "study",
    "compare": "comparison",
}
_MODULES = (
    "atlas",
    "capture",
    "claims",
    "comparison",
    "concepts",
    "describe",
    "distances",
    "dynamics",
    "errors",
    "figures",
    "geometry",
    "inputs",
    "needs",
    "observables",
    "quantities",
    "recording",
    "report",
    "semantics",
    "share",
    "study",
    "summary",
    "tasks",
    "training",
    "trajectory",
    "updates",
)

__all__ = ["__version__", *_ATTRIBUTES, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _ATTRIBUTES:
        value = getattr(
            importlib.import_module(f".{_ATTRIBUTES[name]}", __name__), name
        )
        globals()[name] = value
        return value
    if name == "reproduce":
        return importlib.import_module("ontogeny_papers.reproduce")
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'ontogeny' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
