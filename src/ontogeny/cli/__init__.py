"""The command ``ontogeny``."""

from .main import main

__all__ = ["main"]
