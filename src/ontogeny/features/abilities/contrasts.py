"""Which words a pair of texts sets against each other, and which examples go together by them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

# Thai, Lao, Burmese, Khmer, Chinese and Japanese leave no space between words.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
)
# Words, and marks apart from them; of scripts without spaces each sign.
_WORDS = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")


@dataclass(frozen=True, eq=False)
class Ties:
    """Which of n examples go together.

    Parameters
    ----------
    contrast
        (n,) a number for the two words that stand against each other, in either direction.
    side
        (n,) which of the two is right: 1 or -1; 0 where the order of words alone differs.
    cluster
        (n,) a number for contrasts that share a word. Clusters are independent.
    """

    contrast: np.ndarray
    side: np.ndarray
    cluster: np.ndarray

    @classmethod
    def of_clusters(cls, cluster: np.ndarray) -> Ties:
        """Return ties of examples of which no two set the same words against each other."""
        number = len(cluster)
        return cls(np.arange(number), np.ones(number, dtype=int), cluster)

    @cached_property
    def sizes(self) -> np.ndarray:
        """(clusters,) examples of each cluster."""
        return np.unique(self.cluster, return_counts=True)[1]

    @property
    def is_alone(self) -> bool:
        """Whether every example is a cluster of its own."""
        return len(self.sizes) == len(self.cluster)

    @cached_property
    def is_single(self) -> np.ndarray:
        """(n,) whether the example is a cluster of its own."""
        _, place, size = np.unique(
            self.cluster, return_inverse=True, return_counts=True
        )
        return np.asarray(size[place] == 1)

    @cached_property
    def contrasts_in_order(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The other examples by cluster and contrast, where contrasts begin, and their clusters."""
        order = np.lexsort((self.contrast, self.cluster))
        order = order[~self.is_single[order]]
        named = np.stack([self.cluster[order], self.contrast[order]])
        begins = np.append(True, (np.diff(named) != 0).any(axis=0))[: len(order)]
        first = np.flatnonzero(begins)
        return order, first, named[0, first]

    @cached_property
    def units(self) -> np.ndarray:
        """(n,) what can be drawn apart: examples of a contrast in both directions, else clusters.

        No liking for a word is right in both directions.
        """
        both = np.isin(self.contrast, np.intersect1d(*self._contrasts_of_sides()))
        own = np.arange(len(self.cluster)) + self.cluster.max(initial=0) + 1
        return np.unique(np.where(both, own, self.cluster), return_inverse=True)[1]

    @property
    def liking(self) -> float:
        """The largest accuracy that a fixed liking for one word of each contrast would give."""
        _, place = np.unique(self.contrast, return_inverse=True)
        surplus = np.abs(np.bincount(place, self.side)).sum()
        return float(len(place) + surplus) / (2 * len(place))

    def _contrasts_of_sides(self) -> tuple[np.ndarray, np.ndarray]:
        return self.contrast[self.side > 0], self.contrast[self.side < 0]


def words_apart(right: str, wrong: str) -> tuple[str, str]:
    """Return the words that only the right text has, and those that only the wrong one has.

    Case does not count, unless texts differ in nothing else, and then all capitals are one word.
    The same holds of white space. Two empty texts where the same words stand in another order: no
    liking for a word tells them apart.

    Examples
    --------
    >>> (
    ...     words_apart("The dogs run.", "The dogs runs."),
    ...     words_apart('"Go!" he said', '"Go! he said'),
    ... )
    (('run', 'runs'), ('"', ''))
    >>> words_apart("a big dog", "a dog big"), words_apart("in Rome", "in rome")
    (('', ''), ('(capitals)', '(no capitals)'))
    """
    sides = [_WORDS.findall(text.casefold()) for text in (right, wrong)]
    one, other = map(Counter, sides)
    if one != other:
        return _joined(one - other), _joined(other - one)
    if sides[0] != sides[1]:
        return "", ""
    capitals = [sum(map(str.isupper, text)) for text in (right, wrong)]
    spaces = [sum(map(str.isspace, text)) for text in (right, wrong)]
    for (more, fewer), names in (
        (capitals, ("(capitals)", "(no capitals)")),
        (spaces, ("(spaces)", "(no spaces)")),
    ):
        if more != fewer:
            return names if more > fewer else names[::-1]
    return "", ""


def _joined(words: Counter[str]) -> str:
    return " ".join(sorted(words.elements()))


def ties_of_words(right: Sequence[str], wrong: Sequence[str]) -> Ties:
    """Return which pairs go together, by the words that `words_apart` gives of each.

    Pairs that a word order distinguishes each are a contrast of their own. A text with nothing in the
    place of the other's words counts as a word as well: a model may like the shorter one.

    Examples
    --------
    >>> ties = ties_of_words(["is", "are", "has", "runs"], ["are", "is", "have", "is"])
    >>> ties.contrast.tolist(), ties.side.tolist(), ties.cluster.tolist()
    ([0, 0, 1, 2], [1, -1, -1, 1], [0, 0, 1, 0])
    """
    pairs = [tuple(map(str, pair)) for pair in zip(right, wrong, strict=True)]
    names: list[Hashable] = [
        frozenset(pair) if any(pair) else place for place, pair in enumerate(pairs)
    ]
    side = np.array([(a > b) - (a < b) for a, b in pairs], dtype=int)
    words = [
        " ".join(pair).split(" ") if any(pair) else [place]
        for place, pair in enumerate(pairs)
    ]
    return Ties(_numbered(names), side, joined_clusters(words))


def joined_clusters(keys: Sequence[Iterable[Hashable]]) -> np.ndarray:
    """Return (n,) a number for examples that share a key, or are joined by others that do.

    Examples
    --------
    >>> joined_clusters([["a", "b"], ["c"], ["b", "d"], ["d"]]).tolist()
    [0, 1, 0, 0]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    of_each = [list(of_one) for of_one in keys]
    counts = np.array([len(of_one) for of_one in of_each], dtype=int)
    place = np.repeat(np.arange(len(keys)), counts)
    key = len(keys) + _numbered([*chain.from_iterable(of_each)])
    size = int(key.max(initial=len(keys) - 1)) + 1
    graph = coo_array((np.ones(len(key)), (place, key)), shape=(size, size))
    return _numbered(
        connected_components(graph, directed=False)[1][: len(keys)].tolist()
    )


def _numbered(names: Sequence[Hashable]) -> np.ndarray:
    """Return (n,) a number for each name, in the order in which they come first."""
    numbers: dict[Hashable, int] = {}
    return np.array(
        [numbers.setdefault(name, len(numbers)) for name in names], dtype=int
    )
