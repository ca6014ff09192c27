"""Observables: functions of one checkpoint, each with its nulls and its figures."""

from __future__ import annotations

from . import (
    activations,
    attention,
    circuits,
    concepts,
    curves,
    labelled,
    predictions,
    readout,
    semantics,
    weights,
)
from .activations import *
from .attention import *
from .base import BlockReading, Observable, Reading, Run, SeriesReading, by_layer, dataset
from .catalogued import PresetEntry
from .circuits import *
from .concepts import *
from .curves import *
from .labelled import *
from .model_facts import ModelFacts
from .predictions import *
from .readout import *
from .registry import make, make_own, names
from .semantics import *
from .weights import *

__all__ = [
    "Observable",
    "Reading",
    "BlockReading",
    "SeriesReading",
    "Run",
    "by_layer",
    "dataset",
    "ModelFacts",
    "PresetEntry",
    "make",
    "make_own",
    "names",
]
__all__ += activations.__all__
__all__ += attention.__all__
__all__ += circuits.__all__
__all__ += concepts.__all__
__all__ += curves.__all__
__all__ += labelled.__all__
__all__ += predictions.__all__
__all__ += readout.__all__
__all__ += semantics.__all__
__all__ += weights.__all__
