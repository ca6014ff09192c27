"""Data of the small training runs: texts and tokenizers, tasks with known structure.

Examples
--------
>>> from ontogeny import tasks
>>> train, heldout = tasks.split_texts([f"text {i}" for i in range(10)], 0.2)
>>> len(train), len(heldout)
(8, 2)
"""

from __future__ import annotations

from .corpus import python_documentation, split_texts
from .digits import ImbalancedDigits, imbalanced_digits
from .files import text_files
from .hub_texts import DATASETS, load_texts
from .labelled import LabelledTexts
from .marker_stream import MarkerStream
from .markers import MarkerBatch, MarkerTask
from .organisms import OrganismWorld, organism_world
from .planted import PLANTED, Planted, PlantedModel, planted
from .tables import read_labelled
from .tokenizer import train_tokenizer

__all__ = [
    "DATASETS",
    "PLANTED",
    "ImbalancedDigits",
    "LabelledTexts",
    "MarkerBatch",
    "MarkerStream",
    "MarkerTask",
    "OrganismWorld",
    "Planted",
    "PlantedModel",
    "imbalanced_digits",
    "load_texts",
    "organism_world",
    "planted",
    "python_documentation",
    "read_labelled",
    "split_texts",
    "text_files",
    "train_tokenizer",
]
