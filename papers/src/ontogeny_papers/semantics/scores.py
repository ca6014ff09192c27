"""How coherent groups of words are, beside what chance and a rotated basis give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from ontogeny.errors import (
    ArgumentError,
    check_iterable,
    check_texts,
    check_type,
    check_whole,
)
from ontogeny.features.wordspace.concepts import ConceptBasis, signatures

from .neighbours import NeighbourVectors, mean_similarity
from .orthant import checked_dims

_TIE = 1e-6  # of a score: as far apart equal ones are in single precision


@dataclass(frozen=True, eq=False)
class Score:
    """One number of a grouping, with the same number of groupings that know nothing.

    Parameters
    ----------
    value
        The score of the groups.
    permuted
        Scores of random groups of the same sizes, one a draw.
    rotated
        Scores after random rotations inside the same concepts, one a draw; None where the groups
        come from no basis.

    Examples
    --------
    >>> score = Score(0.4, np.array([0.0, 0.1, 0.2]), np.array([0.3, 0.5]))
    >>> score.p_value, score.rotated_percentile
    (0.25, 50.0)
    """

    value: float
    permuted: np.ndarray
    rotated: np.ndarray | None = None

    @property
    def p_value(self) -> float:
        """How often random groups of the same sizes score as well: (1 + hits) / (1 + draws).

        NaN where the score is; a draw without a score counts as a hit.
        """
        if np.isnan(self.value):
            return float("nan")
        below = int(_below(self.permuted, self.value).sum())
        return float((1 + len(self.permuted) - below) / (1 + len(self.permuted)))

    @property
    def rotated_percentile(self) -> float:
        """Share of rotated bases that score lower, in percent; NaN without rotations."""
        if self.rotated is None or not len(self.rotated) or np.isnan(self.value):
            return float("nan")
        return float(100 * _below(self.rotated, self.value).mean())

    def __repr__(self) -> str:
        text = f"{self.value:.3f}; permuted {_spread(self.permuted)}"
        if self.rotated is not None:
            text += f"; rotated {_spread(self.rotated)}, percentile {self.rotated_percentile:.0f}"
        return f"Score({text})"


def _below(draws: np.ndarray, value: float) -> np.ndarray:
    """Return which draws are lower, and not so by rounding alone."""
    return np.asarray(draws < value - _TIE * abs(value))


@dataclass(frozen=True, eq=False)
class Coherence:
    """How well groups agree with classes of words.

    Parameters
    ----------
    ami
        Adjusted mutual information: 1 where groups and classes are the same, 0 on average for
        random groups whatever their number.
    purity
        Share of words that belong to the most frequent class of their group. It rises with the
        number of groups: read it beside the permuted value only.
    labelled
        Number of words with a class, over which the scores are taken.
    groups
        Number of groups that hold one of them.
    similarity
        Mean cosine between the neighbour vectors, in held-out text, of the 15 most typical words
        of a group, over all groups; None without neighbour vectors.

    Examples
    --------
    >>> labels = {"june": "month", "july": "month", "two": "number", "ten": "number"}
    >>> coherence(
    ...     [["june", "july"], ["two", "ten"]], labels, n_permutations=9
    ... ).ami.value
    1.0
    """

    ami: Score
    purity: Score
    labelled: int
    groups: int
    similarity: Score | None = None


def coherence(
    groups: Sequence[Any],
    labels: Mapping[str, str],
    *,
    neighbours: NeighbourVectors | None = None,
    n_permutations: int = 100,
    random_state: int = 0,
) -> Coherence:
    """Score groups of words against classes, beside random groups of the same sizes.

    Parameters
    ----------
    groups
        Orthants, clusters, or lists of words, most typical first. A word may be in one group only.
    labels
        From word to class, such as :func:`word_classes` gives; other words do not count.
    neighbours
        Neighbour vectors of held-out text, for the score that needs no labels.
    n_permutations
        Number of random partitions.
    random_state
        Seed of the partitions.

    Raises
    ------
    ArgumentError
        If a word is in two groups, or fewer than two words or classes are left.

    Notes
    -----
    Adjusted mutual information as in Vinh, Epps and Bailey (2010), arithmetic mean.

    Examples
    --------
    >>> labels = {"june": "month", "july": "month", "two": "number", "ten": "number"}
    >>> scores = coherence([["june", "two"], ["july", "ten"]], labels, n_permutations=9)
    >>> round(scores.ami.value, 2), scores.purity.value
    (-0.5, 0.5)
    """
    check_whole("random_state", random_state, 0)
    members = [
        tuple(
            check_texts(f"groups: entry {i}", getattr(group, "words", group), "words")
        )
        for i, group in enumerate(check_iterable("groups", groups, "groups of words"))
    ]
    words = [word for group in members for word in group]
    if len(set(words)) < len(words):
        twice = next(word for word in words if words.count(word) > 1)
        raise ArgumentError(
            f"groups must not share words; {twice!r} is in more than one."
        )
    scorer = _Scorer(words, labels, neighbours)
    codes = np.repeat(np.arange(len(members)), [len(group) for group in members])
    ranks = -np.arange(len(words), dtype=np.float64)
    return scorer.compared(
        codes, ranks, n_permutations, [], np.random.default_rng(random_state)
    )


def orthant_coherence(
    basis: ConceptBasis,
    labels: Mapping[str, str],
    dims: int | Sequence[int] = 5,
    *,
    neighbours: NeighbourVectors | None = None,
    n_permutations: int = 100,
    n_rotations: int = 100,
    random_state: int = 0,
) -> Coherence:
    """Score the orthants of a basis, beside random partitions and beside rotated bases.

    A rotated basis spans the same concepts with other axes. What the true axes add is the
    difference to it, not to the random partition.

    Parameters
    ----------
    basis
        With names of words.
    labels
        From word to class.
    dims
        As in :func:`orthants`.
    neighbours
        Neighbour vectors of held-out text, for the score that needs no labels.
    n_permutations, n_rotations
        Numbers of draws.
    random_state
        Seed of both.

    Raises
    ------
    ArgumentError
        If the basis has no words, or fewer than two of them have a class, or all the same.

    Notes
    -----
    Rotations are uniform on the orthogonal group of the chosen columns of U.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> words = tuple("abcdefgh")
    >>> basis = ConceptBasis(rng.normal(size=(8, 2)), np.ones(2), None, words)
    >>> scores = orthant_coherence(
    ...     basis, dict.fromkeys(words[:4], "x") | {"e": "y"}, dims=2
    ... )
    >>> scores.labelled, scores.ami.rotated.shape
    (5, (100,))
    """
    picked = checked_dims(basis, dims)
    if basis.words is None:
        raise ArgumentError(
            "basis must know its words; give them to embedding_concepts."
        )
    check_whole("random_state", random_state, 0)
    rows = basis.U[:, picked]
    scorer = _Scorer(list(basis.words), labels, neighbours)
    rng = np.random.default_rng(random_state)
    check_whole("n_rotations", n_rotations, 0)
    turned = [rows @ random_rotation(rows.shape[1], rng) for _ in range(n_rotations)]
    others = [(signatures(x), np.abs(x).sum(1)) for x in turned]
    return scorer.compared(
        signatures(rows), np.abs(rows).sum(1), n_permutations, others, rng
    )


def purity(groups: np.ndarray, classes: np.ndarray) -> float:
    """Return the share of members that belong to the most frequent class of their group.

    Examples
    --------
    >>> purity(np.array([0, 0, 0, 1]), np.array([5, 5, 7, 7]))
    0.75
    """
    return float(contingency_matrix(classes, groups).max(axis=0).sum() / len(groups))


def random_rotation(p: int, rng: np.random.Generator) -> np.ndarray:
    """Return an orthogonal matrix (p, p), uniform on the orthogonal group.

    Examples
    --------
    >>> R = random_rotation(3, np.random.default_rng(0))
    >>> bool(np.allclose(R @ R.T, np.eye(3)))
    True
    """
    Q, R = np.linalg.qr(rng.normal(size=(p, p)))
    # Without the signs QR's choice would favour some rotations.
    return Q * np.sign(np.diag(R))


class _Scorer:
    """The scores of any partition of the same words, given as a code and a typicality a word."""

    def __init__(
        self,
        words: Sequence[str],
        labels: Mapping[str, str],
        neighbours: NeighbourVectors | None,
    ) -> None:
        check_type("labels", labels, Mapping)
        check_type("neighbours", neighbours, NeighbourVectors, type(None))
        self.kept = np.array([word in labels for word in words], dtype=bool)
        if self.kept.sum() < 2:
            raise ArgumentError(
                f"labels name {int(self.kept.sum())} of the {len(words)} words; "
                "at least 2 are needed."
            )
        self.classes = np.array([labels[word] for word in words if word in labels])
        if len(set(self.classes.tolist())) < 2:
            raise ArgumentError(
                f"labels give all words the same class, {self.classes[0]!r}; at least 2 are needed."
            )
        self.vectors = None if neighbours is None else neighbours.of(words)

    def __call__(self, codes: np.ndarray, typicality: np.ndarray) -> tuple[float, ...]:
        mine = codes[self.kept]
        ami = float(adjusted_mutual_info_score(self.classes, mine))
        scores = (ami, purity(mine, self.classes))
        if self.vectors is None:
            return scores
        return (*scores, mean_similarity(self.vectors, codes, typicality))

    def compared(
        self,
        codes: np.ndarray,
        typicality: np.ndarray,
        n_permutations: int,
        rotated: list[tuple[np.ndarray, np.ndarray]],
        rng: np.random.Generator,
    ) -> Coherence:
        """Score a partition beside random ones of the same sizes and beside `rotated` ones."""
        check_whole("n_permutations", n_permutations, 0)
        # All words change places, also those without a class; only the labelled ones are scored.
        n = len(codes)
        draws = [
            self(rng.permutation(codes), rng.random(n)) for _ in range(n_permutations)
        ]
        turned = [self(*other) for other in rotated]
        value = self(codes, typicality)
        scores = [
            Score(
                v,
                np.array([draw[i] for draw in draws]),
                np.array([draw[i] for draw in turned]) if rotated else None,
            )
            for i, v in enumerate(value)
        ]
        groups = len(np.unique(codes[self.kept]))
        return Coherence(
            scores[0], scores[1], int(self.kept.sum()), groups, *scores[2:]
        )


def _spread(draws: np.ndarray) -> str:
    return f"{draws.mean():.3f} ± {draws.std():.3f}" if len(draws) else "not drawn"
