"""The fixed texts or tokens that every checkpoint sees.

They are tokenised once. Mask, special tokens and character spans travel with the ids; padding and
special tokens are counted and never sampled; the sample of tokens is drawn once from a seed and is
the same at every checkpoint.
"""

from .shown import ShownTexts
from .splits import stratified_split
from .token_files import read_tokens
from .tokens import Inputs

__all__ = ["Inputs", "ShownTexts", "read_tokens", "stratified_split"]
