"""What attention maps say: entropies of queries, and heads on repeated sequences."""

import numpy as np


def entropies(maps, queries):
    """Return (heads,) the mean entropy in nats of the queries' attention, of (heads, n, n) maps.

    What a row lacks to 1, as where a sink takes its share, stands for no token.
    """
    rows = maps[:, queries]
    shares = rows / rows.sum(axis=-1, keepdims=True)
    logs = np.log(np.where(shares > 0, shares, 1.0))
    return -(shares * logs).sum(axis=-1).mean(axis=-1)


def farthest(maps):
    """Return how far back a query of a causal map sees."""
    _, query, key = (maps > 0).nonzero()
    return int((query - key).max())


def equal_entropy(queries, back):
    """Return the mean entropy of equal attention to all tokens not farther back."""
    return float(np.mean([np.log(min(place, back) + 1) for place in queries]))


def sequences(tokens, count, period):
    """Return random sequences that repeat after `period`, and others in which nothing repeats.

    The draw: a generator of the seeds 0 and 11, for each sequence a choice without replacement.
    """
    rng = np.random.default_rng([0, 11])
    whole = np.array(
        [rng.choice(tokens, 2 * period, replace=False) for _ in range(count)]
    )
    return np.tile(whole[:, :period], 2), whole


def scores(maps, period):
    """Return (3, heads) mean attention to the token before, to the copy, and to what followed it.

    `maps` (heads, 2p, 2p) are those of the sequence alone; what a start token gets is left out.
    """
    both, second = range(1, 2 * period), range(period, 2 * period)
    places = (
        [(i, i - 1) for i in both],
        [(i, i - period) for i in second],
        [(i, i - period + 1) for i in second],
    )
    return np.array(
        [[one[tuple(zip(*at, strict=True))].mean() for one in maps] for at in places]
    )
