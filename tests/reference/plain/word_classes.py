"""Classes of words by the signs of concepts of the texts' own support, and what a model knows."""

from collections import Counter

import numpy as np

LENGTHS = (1, 2, 3)  # words of a context


def support(texts):
    """Return the words, most frequent first, and how often each follows each context (V, m).

    A context counts where all its tokens and the next are ordinary ones.
    """
    rows = [[text.ids[place] for place in text.ordinary] for text in texts]
    often = Counter(token for row in rows for token in row)
    words = sorted(often, key=lambda token: -often[token])  # equal ones as they are met
    contexts, counts = {}, Counter()
    for row in rows:
        for length in LENGTHS:
            for end in range(length, len(row)):
                context = tuple(row[end - length : end])
                column = contexts.setdefault(context, len(contexts))
                counts[words.index(row[end]), column] += 1
    table = np.zeros((len(words), len(contexts)))
    for place, count in counts.items():
        table[place] = count
    return np.array(words), table


def classes(table, depth):
    """Return (V,) the signs of the first concepts as one number; bit i is set where negative."""
    present = (table > 0).astype(float)
    U = np.linalg.svd(present - present.mean(axis=0), full_matrices=False)[0][:, :depth]
    return (U < 0) @ (1 << np.arange(depth))


def information(log_p, target, words, codes, depth):
    """Return (depth, e): log p(class of the token) − log p̄(it), for classes from coarse to fine.

    All other tokens are one further class.
    """
    rows = []
    of_word = dict(zip(words.tolist(), codes.tolist(), strict=True))
    p = np.exp(log_p)
    for bits in range(1, depth + 1):
        names = np.array([of_word.get(i, -1) for i in range(p.shape[1])])
        names = np.where(names < 0, 2**bits, names & (2**bits - 1))
        table = np.stack(
            [p[:, names == name].sum(axis=1) for name in range(2**bits + 1)], axis=1
        )
        mine = names[target]
        rows.append(
            np.log(table[np.arange(len(mine)), mine]) - np.log(table.mean(axis=0)[mine])
        )
    return np.array(rows)


def renamed(table, codes, draws):
    """Return (draws, V) the classes where words change places with others about as frequent.

    Words are taken in the order of their counts after contexts; a group ends before one that is
    less than 1 / 1.25 times as frequent as its first. The draw: a generator of the seeds 0 and 21,
    and for each group in turn permutations of its words.
    """
    often = np.maximum(table.sum(axis=1), 0.5)
    groups = []
    for word in np.argsort(-often, kind="stable"):
        if not groups or often[word] * 1.25 < often[groups[-1][0]] * (1 - 1e-9):
            groups.append([])
        groups[-1].append(int(word))
    rng = np.random.default_rng([0, 21])
    names = np.empty((draws, len(often)), dtype=int)
    for group in groups:
        names[:, group] = rng.permuted(np.tile(group, (draws, 1)), axis=1)
    alone = [group[0] for group in groups if len(group) == 1]
    return codes[names], 1 - often[alone].sum() / often.sum()
