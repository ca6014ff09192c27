"""What n-grams of the study's texts say of other texts: the level that takes no understanding."""

from __future__ import annotations

import numpy as np

from ...inputs import Inputs
from ...observables.word_frequencies import smoothed
from .token_texts import TokenTexts

ORDER = 4  # a token and the three before it

_TOKENS = 200_000  # of the study's texts that are counted
_AT_ONCE = 4096


def ngram_scores(tokens: TokenTexts, inputs: Inputs, vocabulary: int) -> np.ndarray:
    """Return (n,) the summed log-probability of texts under n-grams of an input set, in nats.

    Four-grams that fall back on shorter ones, see `ontogeny.observables.word_frequencies`. The
    texts themselves are not counted.

    Parameters
    ----------
    tokens
        The texts.
    inputs
        The texts that are counted, of which at most 200,000 tokens.
    vocabulary
        Number of tokens that the model can give a probability.
    """
    counted = inputs.padded("right")
    enough = int(np.searchsorted(np.cumsum(counted.lengths), _TOKENS))
    counted = counted.subset(np.arange(max(1, enough)))
    scores = [
        _scores(
            tokens,
            np.arange(first, min(first + _AT_ONCE, len(tokens))),
            counted,
            vocabulary,
        )
        for first in range(0, len(tokens), _AT_ONCE)
    ]
    return np.concatenate(scores)


def _scores(
    tokens: TokenTexts, texts: np.ndarray, counted: Inputs, vocabulary: int
) -> np.ndarray:
    rows = [row[mask] for row, mask in zip(counted.ids, counted.mask, strict=True)]
    special = [
        row[mask] for row, mask in zip(counted.special, counted.mask, strict=True)
    ]
    for text in texts:
        place = tokens.of(int(text))
        rows.append(tokens.ids[place].astype(np.int64))
        special.append(tokens.width[place] == 0)
    # One unit, which is not counted for its own texts.
    unit = -np.ones(len(texts), dtype=np.int64)
    both = Inputs.from_tokens(
        rows, special=special, documents=np.concatenate([np.arange(len(counted)), unit])
    )
    text, column = np.nonzero(both.ordinary)
    probability = smoothed(both, text, column, vocabulary, ORDER)[-1][0]
    asked = text >= len(counted)
    return np.bincount(
        text[asked] - len(counted),
        weights=np.log(probability[asked]),
        minlength=len(texts),
    )
