"""Orthants: words and contexts with the same signs in a few concepts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ontogeny.errors import (
    ArgumentError,
    check_flag,
    check_iterable,
    check_number,
    check_type,
)
from ontogeny.features.wordspace.concepts import ConceptBasis, signatures


@dataclass(frozen=True, eq=False)
class Orthant:
    """The words and contexts that share one signature.

    Parameters
    ----------
    signature
        +1 or -1 for each of `dims`.
    dims
        The concepts, counted from 0.
    word_index, typicality
        Rows of U of the member words and how typical each is, most typical first.
    context_index, context_typicality
        The same of V for contexts; empty if the basis has none.
    neutral, context_neutral
        For each member word and context whether it is neutral to one of the concepts: its sign
        there says little.
    words, contexts
        Names of the members in the same order (their numbers if the basis knows no names).

    Examples
    --------
    >>> Orthant((1, -1, 1), (0, 1, 2), *[np.zeros(0)] * 6, (), ()).name
    '+-+'
    """

    signature: tuple[int, ...]
    dims: tuple[int, ...]
    word_index: np.ndarray
    typicality: np.ndarray
    context_index: np.ndarray
    context_typicality: np.ndarray
    neutral: np.ndarray
    context_neutral: np.ndarray
    words: tuple[str, ...]
    contexts: tuple[Any, ...]

    @property
    def name(self) -> str:
        """The signature as text, such as ``"+-+"``."""
        return "".join("+" if sign > 0 else "-" for sign in self.signature)

    def __repr__(self) -> str:
        text = " ".join(map(str, self.words[:8]))
        return f"Orthant({self.name}, {len(self.words)} words: {text})"


def orthants(
    basis: ConceptBasis,
    dims: int | Sequence[int] = 5,
    *,
    neutral: float = 0.1,
    keep_neutral: bool = True,
    normalised: bool = False,
) -> list[Orthant]:
    """Return all non-empty orthants, those with most words first.

    Parameters
    ----------
    basis
        What :func:`svd_concepts` or :func:`embedding_concepts` returned.
    dims
        The first so many concepts, or the concepts themselves counted from 0; ``dims=[3]`` gives
        the two poles of a single concept.
    neutral
        A word is neutral to a concept if abs(u_k[z]) is below this many times the root mean square
        of the entries of u_k, which is 1 / sqrt(V).
    keep_neutral
        Whether neutral words stay members, as in the paper. Words and contexts are dropped alike
        otherwise.
    normalised
        Whether rows are scaled to norm 1 in `dims` before typicality is taken. Raw typicality
        mostly ranks words by their frequency.

    Raises
    ------
    ArgumentError
        If the basis has fewer concepts than asked for.

    Notes
    -----
    Zhao and Thrampoulidis (2025), Def. 1: typicality is the sum of abs(u_k[z]) over `dims`. The
    axes themselves hardly matter: a random rotation inside the same concepts gives about as
    coherent orthants (:func:`orthant_coherence` shows both).

    Examples
    --------
    >>> U = np.array([[0.9, 0.1], [0.4, -0.2], [-0.5, 0.3]])
    >>> for orthant in orthants(
    ...     ConceptBasis(U, np.ones(2), None, ("a", "b", "c")), dims=2
    ... ):
    ...     print(orthant.name, orthant.words, orthant.typicality)
    ++ ('a',) [1.]
    -+ ('c',) [0.8]
    +- ('b',) [0.6]
    """
    picked = checked_dims(basis, dims)
    check_number("neutral", neutral)
    check_flag("keep_neutral", keep_neutral)
    check_flag("normalised", normalised)
    no_contexts = np.zeros((0, basis.k))
    words, contexts = (
        _Side(vectors, picked, neutral, keep_neutral, normalised)
        for vectors in (basis.U, no_contexts if basis.V is None else basis.V)
    )
    codes = np.union1d(words.codes[words.kept], contexts.codes[contexts.kept])
    cells = [_orthant(int(code), picked, words, contexts, basis) for code in codes]
    return sorted(cells, key=lambda o: (-len(o.words), -o.typicality.max(initial=0.0)))


class _Side:
    """Signatures and typicalities of words or of contexts."""

    def __init__(
        self,
        vectors: np.ndarray,
        dims: tuple[int, ...],
        threshold: float,
        keep_neutral: bool,
        normalised: bool,
    ) -> None:
        rows = vectors[:, dims]
        self.codes = signatures(rows)
        sizes = np.abs(rows)
        scale = np.linalg.norm(rows, axis=0) / max(np.sqrt(len(rows)), 1.0)
        self.neutral = ((sizes < threshold * scale) | (sizes == 0)).any(1)
        self.kept = np.ones(len(rows), dtype=bool) if keep_neutral else ~self.neutral
        self.typicality = sizes.sum(1)
        if normalised:
            norms = np.linalg.norm(rows, axis=1)
            self.typicality = self.typicality / np.where(norms > 0, norms, 1.0)
        order = np.lexsort((-self.typicality, self.codes))
        self._order = order[self.kept[order]]
        self._sorted = self.codes[self._order]

    def members(self, code: int) -> np.ndarray:
        low, high = np.searchsorted(self._sorted, [code, code + 1])
        return self._order[low:high]


def _orthant(
    code: int, dims: tuple[int, ...], words: _Side, contexts: _Side, basis: ConceptBasis
) -> Orthant:
    mine = words.members(code)
    theirs = contexts.members(code)
    return Orthant(
        tuple(-1 if code >> i & 1 else 1 for i in range(len(dims))),
        dims,
        mine,
        words.typicality[mine],
        theirs,
        contexts.typicality[theirs],
        words.neutral[mine],
        contexts.neutral[theirs],
        tuple(named(basis.words, mine)),
        tuple(named(basis.contexts, theirs)),
    )


def named(names: Sequence[Any] | None, index: np.ndarray) -> list[Any]:
    """Return the names of `index`, or the numbers as text if there are no names."""
    return [str(i) if names is None else names[i] for i in index.tolist()]


def checked_dims(basis: ConceptBasis, dims: int | Sequence[int]) -> tuple[int, ...]:
    """Return the concepts that `dims` names, or refuse it."""
    check_type("basis", basis, ConceptBasis)
    listed: Any = dims
    if isinstance(dims, int | np.integer) and not isinstance(dims, bool):
        # One too many says the same as a million do.
        listed = range(min(int(dims), basis.k + 1))
    picked = tuple(check_iterable("dims", listed, "concepts, or a number of concepts"))
    if not all(
        isinstance(d, int | np.integer) and not isinstance(d, bool) for d in picked
    ):
        raise ArgumentError(
            f"dims must be a number of concepts, or concepts counted from 0; got {dims!r}."
        )
    if not picked or len(set(picked)) < len(picked):
        raise ArgumentError(
            f"dims must name at least one concept, each once; got {dims!r}."
        )
    if min(picked) < 0 or max(picked) >= basis.k:
        raise ArgumentError(
            f"dims must be concepts 0 to {basis.k - 1} of this basis, or at most {basis.k} of "
            f"them; got {dims!r}."
        )
    return picked
