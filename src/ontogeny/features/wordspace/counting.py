"""Counting the contexts of a token stream without a Python loop over its tokens.

Contexts are found length by length: one of length L + 1 can only be among the most frequent if its
first L and its last L words are, so that most positions drop out early. A context is a number
(the number of all its words but the last, times V, plus the last), so keys are exact integers and
never hashes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

# Positions handled at once: bounds what sorting and matching need beside the stream itself.
CHUNK = 1 << 22


@dataclass(frozen=True, eq=False)
class Contexts:
    """Contexts as word numbers: ``ids`` (m, longest), -1 after their end; ``counts`` (m,)."""

    ids: np.ndarray
    counts: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Words in each context, shape (m,)."""
        return (self.ids >= 0).sum(1)


def highest_id(ids: np.ndarray) -> int:
    """Return the highest id of a stream, -1 if there is none; ids may be unsigned.

    Examples
    --------
    >>> highest_id(np.array([3, 1], dtype=np.uint16)), highest_id(np.zeros(0, int))
    (3, -1)
    """
    return max(int(ids.max()), -1) if len(ids) else -1


def frequent_words(
    ids: np.ndarray, excluded: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the `n` most frequent ids of a stream and their counts; ties go to the first met.

    Examples
    --------
    >>> frequent_words(np.array([4, 2, 2, -1, 4, 7]), np.array([7]), 5)
    (array([4, 2]), array([2, 2]))
    """
    highest = highest_id(ids)
    # The last place is that of negative ids.
    counts = np.zeros(highest + 2, dtype=np.int64)
    first = np.full(highest + 2, len(ids), dtype=np.int64)
    for part in _chunks(len(ids)):
        places = np.maximum(ids[part].astype(np.int64), -1)  # unsigned ids have no -1
        counts += np.bincount(places + 1, minlength=highest + 2)[
            np.r_[1 : highest + 2, 0]
        ]
        np.minimum.at(first, places, np.arange(part.start, part.stop))
    counts[-1] = 0
    counts[excluded[(excluded >= 0) & (excluded <= highest)]] = 0
    order = np.lexsort((first, -counts))[: min(n, np.count_nonzero(counts))]
    return order, counts[order]


def relabelled(ids: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Return the stream with ids replaced by their place in `words`; -1 for every other id.

    Examples
    --------
    >>> relabelled(np.array([4, 2, 9, -1]), np.array([2, 4]))
    array([ 1,  0, -1, -1], dtype=int32)
    """
    table = np.full(highest_id(ids) + 2, -1, dtype=np.int32)
    inside = words[words < len(table) - 1]
    table[inside] = np.arange(len(words), dtype=np.int32)[words < len(table) - 1]
    labels = np.empty(len(ids), dtype=np.int32)
    for part in _chunks(len(ids)):
        labels[part] = table[np.maximum(ids[part].astype(np.int64), -1)]
    return labels


def frequent_contexts(
    ids: np.ndarray,
    n_words: int,
    n: int,
    shortest: int,
    longest: int,
    *,
    per_length: bool = False,
) -> Contexts:
    """Return the `n` most frequent contexts of `shortest` to `longest` words.

    A context counts where all its words and the next word are not negative. Ties go to the context
    that is met first, then to the shorter one. With `per_length` every length has the same share
    of `n`, the shortest lengths one more each where it does not divide.

    Examples
    --------
    >>> table = frequent_contexts(np.array([0, 1, 0, 1, 0]), 2, 2, 1, 2)
    >>> table.ids.tolist(), table.counts.tolist()
    ([[0, -1], [1, -1]], [2, 2])
    """
    levels: list[_Level] = []
    # Position p of a context is that of its last word; p + 1 must hold a word too.
    positions = np.flatnonzero((ids[:-1] >= 0) & (ids[1:] >= 0))
    keys = ids[positions].astype(np.int64)
    pool = np.zeros(0, dtype=np.int64)
    for length in range(1, longest + 1):
        level, nodes = _level(keys, positions)
        if shortest <= length and not per_length:
            pool = np.concatenate([pool, level.counts])
            pool = pool if len(pool) <= n else np.partition(pool, len(pool) - n)[-n:]
        needed = int(pool.min()) if len(pool) == n else 1
        level, positions, nodes = _pruned(level, positions, nodes, needed)
        levels.append(level)
        follows = np.flatnonzero(positions[1:] == positions[:-1] + 1)
        keys = nodes[follows].astype(np.int64) * n_words + ids[positions[follows + 1]]
        positions = positions[follows + 1]
    return _selected(levels, n_words, n, shortest, per_length)


def count_next_words(
    ids: np.ndarray, contexts: Contexts, n_words: int
) -> sparse.csr_array:
    """Return how often each word follows each context, shape (n_words, m), in one pass.

    Examples
    --------
    >>> table = Contexts(np.array([[0, 1], [1, -1]]), np.array([2, 2]))
    >>> count_next_words(np.array([0, 1, 0, 1, 1, -1]), table, 2).toarray()
    array([[1, 1],
           [1, 1]])
    """
    shape = (n_words, len(contexts.ids))
    total = sparse.csr_array(shape, dtype=np.int64)
    for positions, columns in matched_positions(ids, contexts.ids, n_words):
        ones = np.ones(len(positions), dtype=np.int64)
        total = (
            total
            + sparse.coo_array((ones, (ids[positions], columns)), shape=shape).tocsr()
        )
    total.sort_indices()
    return total


def matched_positions(
    ids: np.ndarray, contexts: np.ndarray, n_words: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield where a word follows one of the contexts: its position, and the context's number.

    A position comes once for every context that ends before it. `contexts` (m, longest) are word
    numbers, -1 after their end.

    Examples
    --------
    >>> (matches,) = matched_positions(
    ...     np.array([0, 1, 0, 1]), np.array([[0, 1], [1, -1]]), 2
    ... )
    >>> sorted(zip(*(column.tolist() for column in matches)))
    [(2, 0), (2, 1)]
    """
    trie = _Trie(contexts, n_words)
    for part in _chunks(max(len(ids) - 1, 0)):
        yield trie.match(ids, part)


@dataclass(frozen=True, eq=False)
class _Level:
    """The contexts of one length: sorted keys, counts, and the position each is first met at."""

    keys: np.ndarray
    counts: np.ndarray
    first: np.ndarray


def _level(keys: np.ndarray, positions: np.ndarray) -> tuple[_Level, np.ndarray]:
    """Count `keys`; return the level and each position's index in it."""
    parts = []
    inverses = []
    for part in _chunks(len(keys)):
        values, first, inverse, counts = np.unique(
            keys[part], return_index=True, return_inverse=True, return_counts=True
        )
        parts.append((values, counts, positions[part][first]))
        inverses.append(inverse.astype(np.int32))
    if not parts:
        nothing = np.zeros(0, dtype=np.int64)
        return _Level(nothing, nothing, nothing), np.zeros(0, dtype=np.int32)
    if len(parts) == 1:
        return _Level(*parts[0]), inverses[0]
    values, counts, first = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.diff(values[order], prepend=values[order[0]] - 1))
    table = values[order][starts]
    level = _Level(
        table,
        np.add.reduceat(counts[order], starts),
        np.minimum.reduceat(first[order], starts),
    )
    nodes = [
        np.searchsorted(table, part[0]).astype(np.int32)[inverse]
        for part, inverse in zip(parts, inverses, strict=True)
    ]
    return level, np.concatenate(nodes)


def _pruned(
    level: _Level, positions: np.ndarray, nodes: np.ndarray, needed: int
) -> tuple[_Level, np.ndarray, np.ndarray]:
    """Drop contexts that occur less than `needed` times, and the positions they stand at."""
    keep = level.counts >= needed
    if keep.all():
        return level, positions, nodes
    alive = keep[nodes]
    renumbered = (np.cumsum(keep) - 1).astype(np.int32)
    pruned = _Level(level.keys[keep], level.counts[keep], level.first[keep])
    return pruned, positions[alive], renumbered[nodes[alive]]


def _selected(
    levels: list[_Level], n_words: int, n: int, shortest: int, per_length: bool
) -> Contexts:
    lengths = range(shortest, len(levels) + 1)
    picked = []
    for i, length in enumerate(lengths):
        level = levels[length - 1]
        quota = n // len(lengths) + (i < n % len(lengths)) if per_length else n
        nodes = np.lexsort((level.first, -level.counts))[:quota]
        words = _words(levels, length, nodes, n_words)
        sizes = np.full(len(nodes), length)
        picked.append((words, level.counts[nodes], level.first[nodes], sizes))
    words, counts, first, sizes = (
        np.concatenate(column) for column in zip(*picked, strict=True)
    )
    order = np.lexsort((sizes, first, -counts))[:n]
    return Contexts(words[order], counts[order])


def _words(
    levels: list[_Level], length: int, nodes: np.ndarray, n_words: int
) -> np.ndarray:
    """Return the words of contexts by walking back from their last word to their first."""
    words = np.full((len(nodes), len(levels)), -1, dtype=np.int32)
    for place in range(length - 1, 0, -1):
        nodes, words[:, place] = np.divmod(levels[place].keys[nodes], n_words)
    words[:, 0] = levels[0].keys[nodes]
    return words


class _Trie:
    """The wanted contexts as a tree over words, matched at many positions at once."""

    def __init__(self, contexts: np.ndarray, n_words: int) -> None:
        self.n_words = n_words
        self.tables: list[np.ndarray] = []
        self.columns: list[np.ndarray] = []
        nodes = np.zeros(len(contexts), dtype=np.int64)
        lengths = (contexts >= 0).sum(1)
        for place in range(contexts.shape[1]):
            reach = np.flatnonzero(lengths > place)
            keys = nodes[reach] * n_words + contexts[reach, place]
            table, inverse = np.unique(keys, return_inverse=True)
            nodes[reach] = inverse
            columns = np.full(len(table), -1, dtype=np.int64)
            ends = lengths[reach] == place + 1
            columns[inverse[ends]] = reach[ends]
            self.tables.append(table)
            self.columns.append(columns)

    def match(self, ids: np.ndarray, starts: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return the next word's position, and the column, of contexts that start in `starts`."""
        at = np.arange(starts.start, starts.stop)
        nodes = np.zeros(len(at), dtype=np.int64)
        nexts = []
        columns = []
        for place, (table, ends) in enumerate(
            zip(self.tables, self.columns, strict=True)
        ):
            inside = at + place + 1 < len(ids)
            at = at[inside]
            nodes = nodes[inside]
            word = ids[at + place]
            is_word = word >= 0
            keys = nodes[is_word] * self.n_words + word[is_word]
            at_key = np.minimum(np.searchsorted(table, keys), max(len(table) - 1, 0))
            hit = (
                table[at_key] == keys if len(table) else np.zeros(len(keys), dtype=bool)
            )
            at = at[is_word][hit]
            nodes = at_key[hit]
            following = ids[at + place + 1]
            counted = (ends[nodes] >= 0) & (following >= 0)
            nexts.append(at[counted] + place + 1)
            columns.append(ends[nodes][counted])
        return np.concatenate(nexts), np.concatenate(columns)


def _chunks(n: int) -> Iterator[slice]:
    return (slice(start, min(start + CHUNK, n)) for start in range(0, n, CHUNK))
