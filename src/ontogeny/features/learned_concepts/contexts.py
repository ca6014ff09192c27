"""Contexts of components: from the top, the middle and the low end, and near misses of a name."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import rel_entr

from .places import Places

BANDS = ("top", "middle", "low", "near miss")
TOP = 60  # strongest places in distinct texts, of which the first contexts are drawn
MISS = 0.5  # standard deviations, below which a place that the name's rule holds at is a miss
AROUND = (-12, 6)  # tokens before and after
BINS = np.arange(-4.0, 16.5, 0.5)  # of the histogram of codes, in standard deviations
WORDS = 6
UNKNOWN = -1.0  # of a token that was not sampled


def contexts(
    code: np.ndarray,
    fires: np.ndarray,
    holds: np.ndarray,
    places: Places,
    count: int,
    seed: int,
) -> dict[str, Any]:
    """Return contexts of one component, its histogram and the words at its strong places.

    Parameters
    ----------
    code
        (n,) codes.
    fires
        (n,) where it is strong.
    holds
        (n,) where its name's rule holds; nowhere of one without a name.
    places
        The rows.
    count
        Contexts of each band, in distinct texts.
    """
    rng = np.random.default_rng(seed)
    strongest, middle, weakest = in_parts(code, fires)
    missed = np.flatnonzero(holds & (code < MISS))
    bands = [_distinct(strongest, places, TOP), middle, weakest, missed]
    drawn = np.full((len(BANDS), count), -1)
    for i, rows in enumerate(bands):
        # Of few strong places no place stands twice.
        others = rows[~np.isin(rows, drawn)]
        some = _distinct(rng.permutation(others), places, count)
        drawn[i, : len(some)] = some[np.argsort(-code[some], kind="stable")]
    shape = (len(BANDS), count, AROUND[1] - AROUND[0] + 1)
    is_drawn = drawn.ravel()[:, None] >= 0
    around = places.rows(drawn.ravel(), AROUND)
    shares = np.where(around >= 0, code[around] / max(code.max(), 1e-30), UNKNOWN)
    return {
        "context_text": _of(places.sample.text, drawn),
        "context_place": _of(places.sample.position, drawn),
        "context_code": np.where(is_drawn, shares, UNKNOWN)
        .astype(np.float32)
        .reshape(shape),
        "context_id": np.where(is_drawn, places.ids(drawn.ravel(), AROUND), -1).reshape(
            shape
        ),
        "histogram": np.histogram(np.clip(code, BINS[0], BINS[-1]), BINS)[0].astype(
            np.float32
        ),
        "words": _words(fires, places),
    }


def in_parts(
    code: np.ndarray, fires: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the places where a code (n,) is strong: the strongest fifth, the middle, the weakest.

    Each by the code, the largest first.

    Examples
    --------
    >>> code = np.array([0.1, 7.0, 5.0, 9.0, 6.0, 8.0])
    >>> [part.tolist() for part in in_parts(code, code > 1)]
    [[3], [5, 1, 4], [2]]
    """
    order = np.argsort(-code, kind="stable")
    first, *middle, last = np.array_split(order[: int(fires.sum())], 5)
    return first, np.concatenate(middle), last


def _distinct(rows: np.ndarray, places: Places, count: int) -> np.ndarray:
    """Return the first row of each text, in the order of `rows`, at most `count`."""
    _, first = np.unique(
        places.inputs.groups[places.sample.text[rows]], return_index=True
    )
    return rows[np.sort(first)[:count]]


def _of(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.where(rows >= 0, values[rows], -1)


def typical(words: np.ndarray, fires: np.ndarray) -> np.ndarray:
    """Return the numbers of the words (n,) that are most typical of the places (n,), best first.

    By the log-likelihood ratio of a word there against elsewhere (Dunning 1993). By the code alone,
    or by the hits alone of the four counts, lists begin with function words.

    Examples
    --------
    >>> fires = np.array([True, True, True, False, False, False, False, False])
    >>> typical(np.array([1, 2, 2, 1, 1, 1, 1, 3]), fires).tolist()
    [2]
    """
    count = np.bincount(words)
    hits = np.bincount(words, weights=fires)
    # At the places and elsewhere: of this word, and of all others.
    places = np.array([[fires.sum()], [(~fires).sum()]])
    seen = np.stack([hits, count - hits])
    expected = places * (count / len(words))
    others = places * ((len(words) - count) / len(words))
    score = (rel_entr(seen, expected) + rel_entr(places - seen, others)).sum(axis=0)
    is_more = hits > expected[0]
    order = np.argsort(np.where(is_more, -score, 0.0), kind="stable")
    return order[: int(is_more.sum())]


def _words(fires: np.ndarray, places: Places) -> str:
    # Number 0 is of places without a word.
    best = [i for i in typical(places.words(0), fires)[: WORDS + 1].tolist() if i]
    return " · ".join(places.names[i] for i in best[:WORDS])
