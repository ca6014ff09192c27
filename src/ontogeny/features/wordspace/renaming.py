"""Words that change places with others about as frequent: the control of any grouping of words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

AS_FREQUENT = 1.25  # largest ratio of the frequencies of words that change places


def as_frequent(often: np.ndarray) -> list[np.ndarray]:
    """Return the words in groups of about the same frequency: the most frequent, and down.

    Parameters
    ----------
    often
        How often each word occurs (V,), in any unit. Within a group the largest is at most 1.25
        times the smallest.

    Examples
    --------
    >>> [group.tolist() for group in as_frequent(np.array([10.0, 1.0, 9.0, 1.1]))]
    [[0, 2], [3, 1]]
    """
    order = np.argsort(-often, kind="stable")
    groups = [[int(order[0])]]
    for word in order[1:]:
        if often[word] * AS_FREQUENT < often[groups[-1][0]] * (1 - 1e-9):
            groups.append([])
        groups[-1].append(int(word))
    return [np.array(group) for group in groups]


def renamings(groups: Sequence[np.ndarray], n_draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return new names of the words, drawn within their groups: (draws, V).

    Examples
    --------
    >>> renamings([np.array([0]), np.array([1, 2])], 2, np.random.default_rng(5))
    array([[0, 2, 1],
           [0, 2, 1]])
    """
    renamed = np.empty((n_draws, sum(map(len, groups))), dtype=np.int64)
    for group in groups:
        renamed[:, group] = rng.permuted(np.tile(group, (n_draws, 1)), axis=1)
    return renamed
