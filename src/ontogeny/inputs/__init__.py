"""The fixed texts or tokens that every checkpoint sees.

They are tokenised once. Mask, special tokens and character spans travel with the ids; padding and
special tokens are counted and never sampled; the sample of tokens is drawn once from a seed and is
the same at every checkpoint.
"""

from .batches import Batch
from .groups import text_groups
from .pieces import pieces_of, pieces_of_texts
from .sampling import TokenSample
from .shown import ShownTexts
from .splits import class_counts, stratified_draw, stratified_split
from .token_files import read_tokens
from .tokens import Inputs

__all__ = [
    "Batch",
    "Inputs",
    "ShownTexts",
    "TokenSample",
    "class_counts",
    "pieces_of",
    "pieces_of_texts",
    "read_tokens",
    "stratified_draw",
    "stratified_split",
    "text_groups",
]
