"""Joint dictionaries: concepts with one code for the whole run, and a life over checkpoints."""

from .dictionary import JointDictionary
from .lives import Lives
from .presence import BirthIntervals, Presence
from .runs import StaleDictionaryWarning

__all__ = [
    "BirthIntervals",
    "JointDictionary",
    "Lives",
    "Presence",
    "StaleDictionaryWarning",
]
