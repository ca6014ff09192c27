"""Joint dictionaries: concepts with one code for the whole run, and a life over checkpoints."""

from __future__ import annotations

from .dictionary import JointDictionary
from .intervals import BirthIntervals
from .lives import Lives
from .presence import Presence
from .runs import StaleDictionaryWarning

__all__ = ["BirthIntervals", "JointDictionary", "Lives", "Presence", "StaleDictionaryWarning"]
