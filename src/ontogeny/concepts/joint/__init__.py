"""Joint dictionaries: concepts with one code for the whole run, and a life over checkpoints."""

from __future__ import annotations

from .dictionary import JointDictionary, StaleDictionaryWarning
from .intervals import BirthIntervals
from .lives import Lives
from .presence import Presence

__all__ = ["BirthIntervals", "JointDictionary", "Lives", "Presence", "StaleDictionaryWarning"]
