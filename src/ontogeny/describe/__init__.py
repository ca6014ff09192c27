"""What a concept is: the tokens that it fires on, its contexts, and a name where it has earned one.

Functions of codes (n, r) and of the tokens that their rows are of. Codes may have any sign: each
concept is first turned to the side where it is strongest, see `orientation`.
"""

from __future__ import annotations

from .concentration import concentration
from .contexts import contexts
from .enrichment import enrichment
from .names import names
from .neighbours import neighbours, neighbours_of_gram
from .rows import orientation
from .tokens import strongest_tokens

__all__ = [
    "concentration",
    "contexts",
    "enrichment",
    "names",
    "neighbours",
    "neighbours_of_gram",
    "orientation",
    "strongest_tokens",
]
