"""Observables: functions of one checkpoint, each with its nulls and its figures."""

from .._exports import exported_names, exporter
from .base import Observable
from .catalogued import ModelFacts, PresetEntry
from .own import OwnMeasure, observable
from .readings import BlockReading, Reading, Run, SeriesReading
from .registry import make, make_own, names
from .variables import by_layer, dataset

__all__ = [
    "Observable",
    "Reading",
    "BlockReading",
    "SeriesReading",
    "Run",
    "by_layer",
    "dataset",
    "ModelFacts",
    "OwnMeasure",
    "PresetEntry",
    "make",
    "make_own",
    "names",
    "observable",
    *exported_names("observables"),
]

__getattr__ = exporter("observables")
