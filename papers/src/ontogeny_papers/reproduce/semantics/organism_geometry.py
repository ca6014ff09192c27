"""What the concepts of the organisms distinguish, and their orthants (Figs 1 and 2B)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import ortho_group

from ontogeny import semantics
from ontogeny.features.wordspace.concepts import ConceptBasis, signatures

from .. import tasks
from ..verdicts import LEVEL, Verdict


@dataclass(frozen=True, eq=False)
class Distinction:
    """Two classes of words, and the contexts that only one of the two can follow.

    Parameters
    ----------
    words, contexts
        1 for members of the first class, -1 for those of the second, 0 for neither: (V,), (m,).
    """

    words: np.ndarray
    contexts: np.ndarray

    @classmethod
    def between(
        cls, S: np.ndarray, first: np.ndarray, second: np.ndarray
    ) -> Distinction:
        """Return the distinction of two classes, masks (V,), in a support matrix (V, m)."""
        only = [
            (S[mask] > 0).any(0) & ~(S[~mask] > 0).any(0) for mask in (first, second)
        ]
        return cls(first * 1 - second * 1, only[0] * 1 - only[1] * 1)

    def right_signs(self, u: np.ndarray, v: np.ndarray) -> int:
        """Return how many words and contexts have the sign of their class, either way round."""
        truth = np.r_[self.words, self.contexts]
        loadings = np.r_[u, v]
        right = int((truth * loadings > 0).sum())
        return max(right, int((truth * loadings < 0).sum()))

    def separation(self, words: np.ndarray, contexts: np.ndarray) -> float:
        """Return how well scores of words and contexts part the classes: 0.5 by chance, 1 wholly.

        Areas under the curve of words and of contexts, averaged; either way round, but the same
        way for both.
        """
        sides = ((words, self.words), (contexts, self.contexts))
        area = np.mean(
            [_area(scores[side > 0], scores[side < 0]) for scores, side in sides]
        )
        return float(max(area, 1 - area))


@dataclass(frozen=True, eq=False)
class Geometry:
    """The organisms, their concepts, and the same world with shuffled next words.

    Parameters
    ----------
    world, basis
        The organisms and the concepts of their support.
    n_draws
        Draws of every null.
    """

    world: tasks.OrganismWorld
    basis: ConceptBasis
    n_draws: int

    def of(self, attribute: str) -> np.ndarray:
        """Return which subjects an attribute is true of, (V,) bool."""
        return self.world.S[:, self.world.attributes.index(attribute)] > 0

    @property
    def kinds(self) -> dict[str, np.ndarray]:
        """The classes of the paper's colours, masks (V,)."""
        return {
            "plants": self.of("grows roots"),
            "mammals": self.of("stays warm-blooded"),
            "birds": self.of("has feathers"),
            "fish": self.of("lives in water"),
        }

    @property
    def distinctions(self) -> tuple[Distinction, Distinction]:
        """Plants against animals, and mammals against other animals."""
        plants = self.kinds["plants"]
        mammals = self.kinds["mammals"]
        between = partial(Distinction.between, self.world.S)
        return between(plants, ~plants), between(mammals, ~plants & ~mammals)

    def shuffled(self) -> list[ConceptBasis]:
        """Return the concepts of worlds where random subjects follow every context."""
        rng = np.random.default_rng(0)
        S = self.world.S
        return [
            semantics.svd_concepts(rng.permuted(S, axis=0), self.basis.k)
            for _ in range(self.n_draws)
        ]

    def rotated(self) -> list[ConceptBasis]:
        """Return the same concepts with random axes."""
        assert self.basis.V is not None  # of a support matrix
        rng = np.random.default_rng(1)
        sigma = self.basis.sigma
        turns = ortho_group(self.basis.k, seed=rng).rvs(self.n_draws)
        return [ConceptBasis(self.basis.U @ R, sigma, self.basis.V @ R) for R in turns]

    def refined(self, basis: ConceptBasis) -> int:
        """Return how many of animals, mammals and dogs are orthants of 1, 2 and 3 concepts."""
        one, two = (
            _holds(basis.U[:, :p], mask) for p, mask in enumerate(self._nested[:2], 1)
        )
        three = any(
            _holds(basis.U[:, [0, 1, k]], self._nested[2]) for k in range(2, basis.k)
        )
        return one + two + three

    @property
    def _nested(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return ~self.kinds["plants"], self.kinds["mammals"], self.of("hunts in groups")


def count_concepts(geometry: Geometry) -> dict[str, dict[str, Any]]:
    """Return what `judge_concepts` is given: right signs and refined classes, with their nulls."""
    shuffled = geometry.shuffled()
    counts = {}
    names = ("plants from animals", "mammals from other animals")
    for k, (name, distinction) in enumerate(
        zip(names, geometry.distinctions, strict=True)
    ):

        def right(
            of: ConceptBasis, k: int = k, distinction: Distinction = distinction
        ) -> int:
            assert of.V is not None  # of a support matrix
            return distinction.right_signs(of.U[:, k], of.V[:, k])

        counts[name] = {
            "words": np.count_nonzero(distinction.words),
            "contexts": np.count_nonzero(distinction.contexts),
            "right": right(geometry.basis),
            "shuffled": [right(basis) for basis in shuffled],
        }
    counts["refined"] = {
        "classes": geometry.refined(geometry.basis),
        "shuffled": [geometry.refined(basis) for basis in shuffled],
        "rotated": [geometry.refined(basis) for basis in geometry.rotated()],
    }
    return counts


def judge_concepts(counts: Mapping[str, Mapping[str, Any]]) -> list[Verdict]:
    """Judge what the first concepts distinguish, and whether orthants refine classes."""
    *signs, (_, refined) = counts.items()
    mine = refined["classes"]
    nulls = (refined["shuffled"], refined["rotated"])
    verdict = Verdict(
        "orthants of 1, 2 and 3 concepts are animals, mammals, then dogs and wolves (Fig. 2B)",
        mine == 3 and max(p_value(null, mine) for null in nulls) <= LEVEL,
        f"{mine} of 3 classes are orthants",
        f"shuffled next words {np.mean(nulls[0]):.1f} of 3 (p = {p_value(nulls[0], mine):.2g}); "
        f"rotated axes {np.mean(nulls[1]):.1f} of 3 (p = {p_value(nulls[1], mine):.2g})",
    )
    return [*(_of_signs(k, name, of) for k, (name, of) in enumerate(signs, 1)), verdict]


def _of_signs(k: int, name: str, counts: Mapping[str, Any]) -> Verdict:
    mine, others, words, contexts = (
        counts[each] for each in ("right", "shuffled", "words", "contexts")
    )
    return Verdict(
        f"concept {k} separates {name} (Fig. 1)",
        mine == words + contexts and p_value(others, mine) <= LEVEL,
        f"{mine} of {words + contexts} signs, of {words} words and {contexts} contexts",
        f"shuffled next words {np.mean(others):.1f} signs (p = {p_value(others, mine):.2g})",
    )


def p_value(draws: Sequence[float] | np.ndarray, observed: float) -> float:
    """Return how often draws of a null are at least as large: (1 + hits) / (1 + draws)."""
    return semantics.Score(observed, np.asarray(draws)).p_value


def _area(above: np.ndarray, below: np.ndarray) -> float:
    """Return how often a score of `above` is the larger one; equal ones count half."""
    apart = above[:, None] - below
    return float((apart > 0).mean() + (apart == 0).mean() / 2)


def _holds(vectors: np.ndarray, mask: np.ndarray) -> bool:
    """Return whether the words of a mask are one orthant of all words."""
    codes = signatures(vectors)
    return bool(((codes == codes[mask][0]) == mask).all())
