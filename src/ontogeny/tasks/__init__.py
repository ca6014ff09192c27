"""Texts, labelled texts and tokenizers, and runs with a planted development.

The tasks of the papers (markers, organisms, digits) are in `ontogeny_papers.reproduce.tasks`.

Examples
--------
>>> from ontogeny import tasks
>>> train, heldout = tasks.split_texts([f"text {i}" for i in range(10)], 0.2)
>>> len(train), len(heldout)
(8, 2)
"""

from .bundled import bundled_texts
from .corpus import python_documentation, split_texts
from .files import document_files, text_files
from .hub_texts import load_texts
from .labelled import LabelledTexts
from .tables import read_labelled
from .tokenizer import train_tokenizer

__all__ = [
    "LabelledTexts",
    "bundled_texts",
    "document_files",
    "load_texts",
    "python_documentation",
    "read_labelled",
    "split_texts",
    "text_files",
    "train_tokenizer",
]
