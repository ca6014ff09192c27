"""What a guess that looks at no question reaches, and which questions it answers alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from .contrasts import joined_clusters


def guesses(
    groups: Sequence[str], options: Sequence[Sequence[str]], right: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the probability of each question to be right by chance, and which go together.

    A model may like one answer better than others, wherever it stands. Questions that share their
    answers decide between them where each is right now and then: chance is what the commonest right
    one reaches, if it is given everywhere. Where it is always the same, one liking answers them
    all, and they count once. Questions share their answers if these are the same, if the right one
    is, or of two answers if one is: whoever does not like it likes the other.

    Parameters
    ----------
    groups
        (n,) the group of each question, within which chance is taken.
    options
        (n,) its answers.
    right
        (n,) the right one.

    Returns
    -------
    chance
        (n,) at least one over the number of answers.
    cluster
        (n,) a number for questions that go together.

    Examples
    --------
    >>> always_yes = [["yes", "no"]] * 4
    >>> chance, cluster = guesses(["a"] * 4, always_yes, ["yes", "yes", "yes", "no"])
    >>> chance.tolist(), cluster.tolist()
    ([0.75, 0.75, 0.75, 0.75], [0, 1, 2, 3])
    >>> chance, cluster = guesses(["a"] * 2, [["is", "are"]] * 2, ["is", "is"])
    >>> chance.tolist(), cluster.tolist()
    ([0.5, 0.5], [0, 0])
    """
    written = [tuple(sorted(map(_plain, answers))) for answers in options]
    keys: list[list[Hashable]] = [
        [(group, answer) for answer in answers]
        if len(answers) == 2
        else [(group, _plain(one)), (group, answers)]
        for group, answers, one in zip(groups, written, right, strict=True)
    ]
    cluster = joined_clusters(keys)
    chance = np.array([1 / len(answers) for answers in written])
    own = cluster.max(initial=0) + 1 + np.arange(len(cluster))
    for members in _members(cluster):
        counts = Counter(_plain(right[place]) for place in members)
        if len(counts) > 1:
            commonest = max(counts.values()) / len(members)
            chance[members] = np.maximum(chance[members], commonest)
            cluster[members] = own[members]
        else:
            chance[members] = chance[members].mean()
    return chance, np.unique(cluster, return_inverse=True)[1]


def one_answer(groups: Sequence[str], right: Sequence[str]) -> np.ndarray:
    """Return (n,) a number for each example; one for all of a group with a single right answer.

    Examples
    --------
    >>> one_answer(["a", "a", "b", "b"], ["no", "No", "yes", "no"]).tolist()
    [0, 0, 1, 2]
    """
    answers: dict[str, set[str]] = {}
    for group, answer in zip(groups, right, strict=True):
        answers.setdefault(group, set()).add(_plain(answer))
    keys = [
        [group if len(answers[group]) == 1 else place]
        for place, group in enumerate(groups)
    ]
    return joined_clusters(keys)


def _members(cluster: np.ndarray) -> list[np.ndarray]:
    order = np.argsort(cluster, kind="stable")
    return (
        np.split(order, np.flatnonzero(np.diff(cluster[order])) + 1)
        if len(order)
        else []
    )


def _plain(answer: str) -> str:
    """Return an answer as a model may like it: without its case, and with single spaces."""
    return " ".join(str(answer).casefold().split())
