"""Class names: concepts whose words stand in the same contexts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from ....arrays import Array
from ....dynamics import holm
from ....errors import check_texts
from ....figures.characters import in_words, shown
from ....inputs import Inputs
from ....inputs.sampling import TokenSample
from ..describe.contexts import strongest_rows
from ..describe.names import ALPHA, upper_limit
from ..describe.rows import Rows, described
from .contexts import WordContexts

BETWEEN = " · "  # of the words of a class
FEWEST = 3  # words of a class name
MOST = 4
LEAST_SHARE = 0.02  # of the squared code, of each word of a class name
DRAWS_PER_CONCEPT = 200
MOST_DRAWS = 40_000
EXAMPLES = 4  # of the strongest places


def class_names(
    codes: Array,
    inputs: Inputs,
    sample: TokenSample,
    *,
    untrained: ArrayLike,
    pieces: Sequence[str],
    texts: Sequence[str] = (),
    random_state: int = 0,
) -> xr.Dataset:
    """Return a name for each concept that stands for a class of words: ``said · asked · replied``.

    A class name is the three or four most typical of the eight words that carry most of the
    squared code: near to the mean of the class, heavy, and at the strongest places. It is given
    where both hold:

    - the coherence exceeds that of 95 % of the untrained model's concepts;
    - the p-value, corrected over the concepts (Holm), is at most .05: words as frequent, drawn
      instead, are rarely as much alike by both halves of the texts.

    The coherence says how much the words stand in the same contexts. The eight words that carry
    most of the squared code are chosen on one half of the texts; their vectors are of the words
    beside them in the other half (`texts`, and where both hold less than 100,000 words, Python's
    documentation and the bundled English). Their weighted mean cosine, with the first three words
    weighing as much as the third, is compared with that of words that are as frequent, in standard
    deviations of these; the mean of both directions. It is 0 where fewer than two words have a
    vector.

    Parameters
    ----------
    codes
        (n, r) codes of the rows of `sample`.
    inputs, sample
        The texts, and which of their tokens the rows are: ``inputs.sample(...)``.
    pieces
        How each token id is written, see `ontogeny.inputs.pieces_of`; pieces of a word are joined.
    texts
        Further texts that vectors are taken from.
    random_state
        Seed of the halves and of the words drawn.
    untrained
        (q,) coherences of the untrained model's concepts in the same layer.

    Returns
    -------
    xarray.Dataset
        ``class_name(concept)``, empty where none is given; ``coherence(concept)``;
        ``coherence_limit``, without dimension; ``class_p(concept)``.

    Raises
    ------
    ArgumentError
        If codes and sample disagree, all rows come from one unit of texts, `pieces` or `texts`
        are no lists of texts, or `untrained` is no list of numbers.
    NonFiniteError
        If a code is NaN or infinite.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> ids = rng.integers(0, 20, (300, 12)) + 20 * (
    ...     np.arange(12) % 6
    ... )  # six classes take turns
    >>> inputs = Inputs.from_tokens(ids)
    >>> codes = np.stack(
    ...     [ids.ravel() < 8, ids.ravel() % 20 == 0], axis=1
    ... )  # one; a word of each
    >>> pieces = [f" w{i}" for i in range(120)]
    >>> limit = [0.5] * 20
    >>> labels = class_names(
    ...     codes, inputs, inputs.sample(), untrained=limit, pieces=pieces
    ... )
    >>> len(labels.class_name.values[0].split(" · ")), labels.class_name.values[1]
    (4, '')
    """
    values, rows = described(codes, inputs, sample)
    pieces = check_texts("pieces", pieces, "texts, one for each token id")
    further = check_texts("texts", texts, "texts")
    return class_variables(
        values, rows, WordContexts.of(rows, pieces, further, random_state), untrained
    )


def class_variables(
    values: np.ndarray, rows: Rows, contexts: WordContexts, untrained: ArrayLike | None
) -> xr.Dataset:
    """Return the same from codes that are turned to their strong side, and known words.

    No name is given without an untrained model.
    """
    r = values.shape[1]
    judged = contexts.judged(values, min(max(DRAWS_PER_CONCEPT * r, 2000), MOST_DRAWS))
    limit = upper_limit([] if untrained is None else untrained)
    z = judged.z
    p = holm(judged.p)
    peaks = strongest_rows(values, rows, EXAMPLES)
    names = [
        _name(contexts, judged.chosen[j], contexts.place[peaks[j][peaks[j] >= 0]])
        if z[j] > limit and p[j] <= ALPHA
        else ""
        for j in range(r)
    ]
    return xr.Dataset(
        {
            "class_name": ("concept", np.array(names, dtype=object)),
            "coherence": ("concept", z),
            "coherence_limit": ((), limit),
            "class_p": ("concept", p),
        }
    )


def _name(
    contexts: WordContexts,
    halves: Sequence[dict[int, tuple[float, float]]],
    peaks: np.ndarray,
) -> str:
    """Return the most typical words; empty where fewer than three carry enough of the code.

    Each half says of its words how much of the code they carry, and how near they are to the mean
    of the class.
    """
    scores: dict[str, float] = {}
    shares: dict[str, float] = {}
    forms: dict[str, tuple[float, str]] = {}
    for word in set().union(*halves):
        share, cosine = np.mean([half.get(word, (0.0, 0.0)) for half in halves], axis=0)
        text = str(contexts.words[word])
        key = text.casefold()
        level = min(share, _third(halves))
        scores[key] = scores.get(key, 0.0) + level * cosine * (
            1 + int((peaks == word).sum())
        )
        shares[key] = shares.get(key, 0.0) + share
        forms[key] = max(forms.get(key, (0.0, "")), (share, text))
    ranked = sorted(scores, key=lambda key: -scores[key])
    members = [key for key in ranked if scores[key] > 0 and shares[key] >= LEAST_SHARE]
    # A class is of words or of marks: the marks beside a few verbs are none of them.
    members = [key for key in members if _is_word(key) == _is_word(members[0])][:MOST]
    if len(members) < FEWEST:
        return ""
    return BETWEEN.join(shown(in_words(forms[key][1])) for key in members)


def _is_word(text: str) -> bool:
    return any(character.isalnum() for character in text)


def _third(halves: Sequence[dict[int, tuple[float, float]]]) -> float:
    """Return the share of the third word: the first ones count as much as it."""
    return float(
        np.mean([sorted([s for s, _ in half.values()])[-3:][0] for half in halves])
    )
