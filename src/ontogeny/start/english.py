"""Whether a model reads English: the bundled minimal pairs would show nothing of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import OntogenyError
from ..inputs.tokenize import tokenize

PIECES = 3.0
"""Tokens of a common English word, on average, at most; of letters it takes 5.5."""
COMMON_SHARE = 0.12
"""Of the words of English texts that are among the commonest, at least; measured: .18 to .31."""

_COMMON = "the and of to is was that it he she for with his her they be at on this".split()  # noqa: SIM905
_SENTENCE = (
    "the old farmer walked to the river with his brown dog because she wanted some fresh water and "
    "the little children were playing with their red ball behind the house until the evening"
)
_UNKNOWN = 0.1  # of tokens


def no_english(tokenizer: Any, texts: Sequence[str]) -> str:
    """Return why English sentences would show nothing of a model; empty if nothing speaks against.

    Parameters
    ----------
    tokenizer
        The run's.
    texts
        What it is said to read; empty if that is not known.

    Examples
    --------
    >>> from ontogeny.tasks import train_tokenizer
    >>> tokenizer = train_tokenizer(["Hund und Katze"] * 4, vocab_size=270)
    >>> no_english(tokenizer, [])
    'its tokenizer cuts an English word into 5.4 tokens, 3 at most'
    """
    try:
        read = tokenize([_SENTENCE], tokenizer, 1024, "right", None)
    except OntogenyError as error:
        return f"its tokenizer does not read English words: {str(error).rstrip('.')}"
    ids = read["ids"][read["mask"] & ~read["special"]]
    pieces = len(ids) / len(_SENTENCE.split())
    if pieces > PIECES:
        return f"its tokenizer cuts an English word into {pieces:.1f} tokens, {PIECES:.0f} at most"
    if np.mean(ids == getattr(tokenizer, "unk_token_id", None)) > _UNKNOWN:
        return "its tokenizer does not know English words"
    words = [word.strip(".,;:!?\"'()").lower() for text in texts for word in text.split()]
    share = np.mean([word in _COMMON for word in words]) if words else 1.0
    few = f"only {100 * share:.0f} % of its texts' words are common English ones"
    return few if share < COMMON_SHARE else ""
