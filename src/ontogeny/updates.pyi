# Written by .ci/stubs.py.
# ruff: noqa
from typing import Any

__all__ = []

def __getattr__(name: str) -> Any: ...
