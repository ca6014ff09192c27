"""How often verdicts on groups of minimal pairs are false, and how often they find an ability.

A model that learned nothing likes some words: each word has a normal liking, and each pair noise of
a given size beside it. It must be above chance in at most 5 % of groups, and must not gain or lose
when its likings are drawn anew. Intervals must hold the truth in 95 %. An able model adds a gap to
every right word. No model is run: the functions that judge a study are called on what such a model
answers.

    python benchmarks/abilities_rates.py --draws 2000
"""

import argparse
import itertools

import numpy as np

from ontogeny.features.abilities.changes import p_on_these
from ontogeny.features.abilities.contrasts import Ties, ties_of_words
from ontogeny.features.abilities.exact_tests import p_changed
from ontogeny.features.abilities.intervals import LEVEL, Chance, share_interval

CONTRASTS = (1, 2, 3, 5, 10, 30)
# Share of the pairs of a contrast in which its first word is right.
DIRECTIONS = {"balanced": 0.5, "two to one": 2 / 3, "one direction": 1.0}
SIZES = {
    "equal": lambda rng, number: np.full(number, 12),
    "unequal": lambda rng, number: 1 + rng.geometric(1 / 12, number),
}


def group(number, direction, size, shared, rng):
    """Return the right and the wrong word of each pair of a group, numbers of words."""
    right = []
    wrong = []
    for contrast, pairs in enumerate(SIZES[size](rng, number).tolist()):
        words = (0, contrast + 1) if shared else (2 * contrast, 2 * contrast + 1)
        first = np.arange(pairs) < round(DIRECTIONS[direction] * pairs)
        right += np.where(first, *words).tolist()
        wrong += np.where(first, *words[::-1]).tolist()
    return np.array(right), np.array(wrong)


def answers(right, wrong, noise, gap, rng):
    """Return which pairs are right of a model with likings drawn anew."""
    liking = rng.normal(size=max(right.max(), wrong.max()) + 1)
    apart = liking[right] - liking[wrong] + noise * rng.normal(size=len(right)) + gap
    return (apart > 0).astype(float)


def judged(number, direction, size, noise, draws, gap=0.0, shared=False):
    """Return the share of groups above chance, gained or lost, and without a possible verdict.

    Changes are asked of a quarter of the draws.
    """
    rng = np.random.default_rng(number)
    above = 0
    changed = []
    open_ = 0
    for draw in range(draws):
        right, wrong = group(number, direction, size, shared, rng)
        ties = ties_of_words([f"w{w}" for w in right], [f"w{w}" for w in wrong])
        chance = Chance(np.full(len(right), 0.5), ties, of_words=True)
        after = answers(right, wrong, noise, gap, rng)
        above += chance.p_value(after) <= LEVEL
        if draw % 4 == 0:
            before = answers(right, wrong, noise, 0.0, rng)
            changed.append(p_changed(after - before, ties) <= LEVEL)
            open_ += chance.smallest_p > LEVEL
    return above / draws, np.mean(changed), open_ / len(changed)


def covered(number, spread, size, draws, truth):
    """Return how often an interval holds the truth, and its mean width; clusters have effects."""
    rng = np.random.default_rng(number)
    held = 0
    width = 0.0
    for _ in range(draws):
        sizes = SIZES[size](rng, number)
        effect = rng.beta(truth * spread, (1 - truth) * spread, number)
        cluster = np.repeat(np.arange(number), sizes)
        right = (rng.random(len(cluster)) < effect[cluster]).astype(float)
        low, high = (
            end[0] for end in share_interval(right[None], Ties.of_clusters(cluster))
        )
        held += low <= truth <= high
        width += high - low
    return held / draws, width / draws


def wandering(kind, checkpoints, draws, examples=120):
    """Return how often a run that only wanders is changed on its examples at 1 %."""
    rng = np.random.default_rng(checkpoints)
    found = 0
    hard = rng.normal(size=examples)
    for _ in range(draws):
        noise = rng.normal(size=checkpoints)
        if kind != "fresh":
            for i in range(1, checkpoints):
                noise[i] += float(kind) * noise[i - 1]
        level = 0.5 * noise[:, None] + 0.5 * rng.normal(size=(checkpoints, examples))
        found += p_on_these((level + hard > 0).astype(float)) <= 0.01
    return found / draws


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=2000)
    draws = parser.parse_args().draws
    print("likes words: above chance, changed, no verdict possible")
    for row in itertools.product(CONTRASTS, DIRECTIONS, SIZES, (0.1, 1.0)):
        print(*row, *np.round(judged(*row, draws), 3), flush=True)
    print("the same, contrasts share a word")
    for row in itertools.product((2, 5, 30), DIRECTIONS):
        print(
            *row,
            *np.round(judged(*row, "equal", 0.1, draws, shared=True), 3),
            flush=True,
        )
    print(
        "able (gap 2 of likings 1.4 and noise 1): above chance, changed, no verdict possible"
    )
    for row in itertools.product(CONTRASTS, DIRECTIONS):
        print(
            *row,
            *np.round(judged(*row, "equal", 1.0, draws // 5, gap=2.0), 3),
            flush=True,
        )
    print("intervals: hold the truth, width")
    for row in itertools.product((2, 3, 5, 10, 30), (0.02, 1.0, 20.0), SIZES):
        held = [covered(*row, draws // 2, truth) for truth in (0.5, 0.7, 0.9)]
        print(*row, *np.round(held, 3).ravel(), flush=True)
    print("wanders: changed on these examples at 1 %")
    for row in itertools.product(("fresh", "0.5", "0.9", "1.0"), (2, 4, 6, 8, 16, 50)):
        print(*row, round(wandering(*row, draws // 4), 4), flush=True)


if __name__ == "__main__":
    main()
