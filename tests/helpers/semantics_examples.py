"""A plain count of contexts, as the definition reads."""

from __future__ import annotations

from collections import Counter

import numpy as np


def brute_force(ids, vocab_size, n_contexts, shortest, longest, excluded=()):
    """Count with dictionaries, position after position; ties keep the order of insertion."""
    words = Counter(i for i in ids if i >= 0 and i not in excluded)
    kept = [word for word, _ in words.most_common(vocab_size)]
    row = {word: z for z, word in enumerate(kept)}
    contexts, follow = Counter(), Counter()
    for end in range(len(ids) - 1):
        if ids[end + 1] not in row:
            continue
        for length in range(1, longest + 1):
            if end - length + 1 < 0 or ids[end - length + 1] not in row:
                break
            if length >= shortest:
                context = tuple(row[i] for i in ids[end - length + 1 : end + 1])
                contexts[context] += 1
                follow[context, row[ids[end + 1]]] += 1
    columns = [context for context, _ in contexts.most_common(n_contexts)]
    counts = np.array(
        [[follow[c, z] for c in columns] for z in range(len(kept))], dtype=int
    )
    return kept, columns, counts.reshape(len(kept), len(columns))


def in_words(support):
    return [tuple(int(i) for i in row if i >= 0) for row in support.contexts.ids]
