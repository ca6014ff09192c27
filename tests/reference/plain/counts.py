"""What frequencies and n-grams of the other texts predict, by counting with dictionaries."""

from collections import Counter, defaultdict

import numpy as np

SMOOTHING = np.geomspace(1e-4, 10.0, 26)
STRENGTH = np.geomspace(1e-2, 1e4, 31)


class Counted:
    """Tokens after each context, in all texts and within each unit.

    A frequency is of all ordinary tokens, an n-gram of those that are predicted.
    """

    def __init__(self, texts, order):
        self.texts, self.order = texts, order
        self.after = [defaultdict(Counter) for _ in range(order)]
        for text in texts:
            for length, table in enumerate(self.after):
                for place in text.predicted if length else text.ordinary:
                    if (context := context_of(text, place, length)) is not None:
                        table[None, context][text.ids[place]] += 1
                        table[text.unit, context][text.ids[place]] += 1

    def elsewhere(self, context, unit):
        """Return how often each token follows a context outside a unit."""
        table = self.after[len(context)]
        return table[None, context] - table[unit, context]

    def probability(self, text, place, length, strength, shorter):
        """Return that of one token, from its probability after a shorter context."""
        context = context_of(text, place, length)
        there = Counter() if context is None else self.elsewhere(context, text.unit)
        return (there[text.ids[place]] + strength * shorter) / (
            there.total() + strength
        )


def context_of(text, place, length):
    """Return the tokens before a place, None where there are fewer."""
    return text.ids[place - length : place] if place >= length else None


def smoothed(texts, places, vocabulary, order):
    """Return for n = 1 to `order` the probabilities of tokens, and the smoothing that is best.

    Parameters
    ----------
    texts
        The texts that are counted.
    places
        Pairs of a text and the place of a token.
    vocabulary
        How many tokens have a probability.
    """
    counted, models = Counted(texts, order), []
    shorter = np.full(len(places), 1 / vocabulary)
    for length in range(order):
        # A frequency with α added to each token is an n-gram after no token, of strength α V.
        grid = STRENGTH if length else SMOOTHING
        tried = []
        for strength in grid:
            weight = strength if length else strength * vocabulary
            tried.append(
                [
                    counted.probability(text, place, length, weight, before)
                    for (text, place), before in zip(places, shorter, strict=True)
                ]
            )
        best = int(np.argmin([-np.log(p).sum() for p in tried]))
        shorter = np.array(tried[best])
        models.append((shorter, float(grid[best])))
    return models


def distributions(counted, smoothing, text, place, vocabulary):
    """Return what each n-gram model of the other texts predicts at a place, (order, V)."""
    given = [np.ones(vocabulary)]
    for length, strength in enumerate(smoothing):
        context = context_of(text, place, length)
        there = Counter() if context is None else counted.elsewhere(context, text.unit)
        counts = np.array([there[token] for token in range(vocabulary)], dtype=float)
        whole = counts + strength * given[-1]
        given.append(whole / whole.sum())
    return np.array(given[1:])


def shares_elsewhere(texts, token, unit):
    """Return the share of a token outside a unit, the most frequent token there, and its share."""
    there = Counted(texts, 1).elsewhere((), unit)
    most = min(there, key=lambda other: (-there[other], other))
    return there[token] / there.total(), most, there[most] / there.total()
