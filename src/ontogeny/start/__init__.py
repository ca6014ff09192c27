"""From the name of a run to a study that fits it: presets, study files, and what they cost."""

from .presets import PRESETS
from .proposal import propose
from .shown import look
from .source import names_of
from .wishes import Wishes

__all__ = ["PRESETS", "Wishes", "look", "names_of", "propose"]
