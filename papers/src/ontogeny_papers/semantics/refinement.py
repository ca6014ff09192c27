"""Orthants of one concept, of two, and so on, as a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ontogeny.errors import ArgumentError
from ontogeny.features.wordspace.concepts import ConceptBasis

from .orthant import Orthant, checked_dims, orthants


@dataclass(frozen=True, eq=False)
class RefinementTree:
    """Orthants of the first 1, 2, ..., p concepts: each splits into at most two of the next level.

    Parameters
    ----------
    levels
        ``levels[p - 1]`` holds the non-empty orthants of p concepts.

    Examples
    --------
    >>> U = np.array([[0.9, 0.1], [0.4, -0.2], [-0.5, 0.3]])
    >>> tree = refinement_tree(
    ...     ConceptBasis(U, np.ones(2), None, ("a", "b", "c")), depth=2
    ... )
    >>> [[orthant.name for orthant in level] for level in tree.levels]
    [['+', '-'], ['++', '-+', '+-']]
    """

    levels: tuple[tuple[Orthant, ...], ...]


def refinement_tree(
    basis: ConceptBasis, depth: int = 5, **options: Any
) -> RefinementTree:
    """Return the orthants of the first 1, 2, ... `depth` concepts as a tree.

    Parameters
    ----------
    basis
        What :func:`svd_concepts` returned.
    depth
        Number of levels.
    **options
        Of :func:`orthants`.

    Raises
    ------
    ArgumentError
        As :func:`orthants`.

    Notes
    -----
    Zhao and Thrampoulidis (2025), sec. 4.3, Figs 2 and 11.

    Examples
    --------
    >>> basis = ConceptBasis(
    ...     np.array([[0.9, 0.1], [-0.4, 0.2]]), np.ones(2), None, ("a", "b")
    ... )
    >>> [len(level) for level in refinement_tree(basis, 2).levels]
    [2, 2]
    """
    if not isinstance(depth, int | np.integer):
        raise ArgumentError(f"depth must be a number of concepts; got {depth!r}.")
    checked_dims(basis, depth)
    return RefinementTree(
        tuple(tuple(orthants(basis, p, **options)) for p in range(1, depth + 1))
    )
