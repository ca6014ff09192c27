"""Which solutions of an extractor are the same solution, and the one that is returned.

The report's Table 1 with corrections: semi-NMF and non-strict convex NMF have positive scaling
freedom, semi-NMF more than that, and linear ICA resolves rotations.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ontogeny.arrays import Array, matrix
from ontogeny.concepts.solution import Solution
from ontogeny.concepts.tensors import as_tensor, give
from ontogeny.errors import ArgumentError, check_choice


@dataclass(frozen=True)
class Structure:
    """What may be done to (U, W) without changing an extractor's problem.

    Parameters
    ----------
    permutation
        The concepts can be put in another order (Def. 31). False where the order is part of the
        solution (by singular value).
    scaling
        Concepts can be scaled against their codes (Def. 32): ``"no"`` or ``"positive"``.
    sign
        The sign of a concept and its codes can be flipped together (Def. 33).
    rotation
        Concepts can be rotated (Def. 34): ``"no"``, ``"if repeated"`` (within equal singular
        values) or ``"inside the orthant"`` (any invertible map that keeps the signs).
    canonical
        The member of the class that is returned.
    """

    permutation: bool
    scaling: str
    sign: bool
    rotation: str
    canonical: str


_BY_ENERGY = "in order of energy"
_STRUCTURES = {
    "nmf": Structure(
        True, "positive", False, "inside the orthant", f"unit columns, {_BY_ENERGY}"
    ),
    "convex-nmf": Structure(
        True,
        "positive",
        False,
        "no",
        f"unit columns (strict: rows of H sum to 1), {_BY_ENERGY}",
    ),
    "semi-nmf": Structure(
        True, "positive", False, "inside the orthant", f"unit columns, {_BY_ENERGY}"
    ),
    "svd": Structure(
        False,
        "no",
        True,
        "if repeated",
        "by singular value, largest entry of a column positive",
    ),
    "pca": Structure(
        False,
        "no",
        True,
        "if repeated",
        "by variance, largest entry of a column positive",
    ),
    "sparse-pca": Structure(
        True, "no", True, "no", f"unit columns, largest entry positive, {_BY_ENERGY}"
    ),
    "ica": Structure(
        True,
        "no",
        True,
        "no",
        f"unit-variance codes, largest entry positive, {_BY_ENERGY}",
    ),
    "kmeans": Structure(True, "no", False, "no", _BY_ENERGY),
    "dictionary": Structure(
        True, "no", True, "no", f"unit columns, largest entry positive, {_BY_ENERGY}"
    ),
    "sae": Structure(True, "no", False, "no", f"unit columns, {_BY_ENERGY}"),
}


def structure(name: str) -> Structure:
    """Return which solutions of an extractor are equivalent.

    Convex NMF's scaling freedom is removed by ``strict_convex=True`` (the default).

    Examples
    --------
    >>> structure("ica").rotation
    'no'
    >>> structure("semi-nmf").scaling
    'positive'
    """
    return _STRUCTURES[check_choice("name", name, _STRUCTURES)]


def canonical_form(U: Array, W: Array, name: str) -> tuple[Array, Array]:
    """Return the canonical member of the class of (U, W): the same for all equivalent solutions.

    Undoes what ``structure(name)`` allows of permutation, positive scaling and sign; a zero
    concept stays zero. Positive scaling is fixed by unit dictionary columns. Every extractor
    returns this form but for two, whose scale says something: strictly convex NMF (rows of H sum
    to 1) and NMF of split activations (unit columns of ``parts_``).

    Parameters
    ----------
    U, W
        Codes (n, r) and dictionary (m, r).
    name
        Name of the extractor they come from.

    Raises
    ------
    ArgumentError
        If U and W have different numbers of columns.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> U, W = rng.normal(size=(20, 3)), rng.normal(size=(6, 3))
    >>> first = canonical_form(U, W, "ica")
    >>> second = canonical_form(U[:, [2, 0, 1]] * -1, W[:, [2, 0, 1]] * -1, "ica")
    >>> bool(np.allclose(first[0], second[0]) and np.allclose(first[1], second[1]))
    True
    """
    rules = structure(name)
    codes = as_tensor(matrix("U", U))
    dictionary = as_tensor(matrix("W", W))
    if codes.shape[1] != dictionary.shape[1]:
        raise ArgumentError(
            "U and W must have the same number of columns; "
            f"they have {codes.shape[1]} and {dictionary.shape[1]}."
        )
    if rules.scaling == "positive":
        norm = torch.linalg.vector_norm(dictionary, dim=0)
        norm = torch.where(norm > 0, norm, 1.0)
        codes = codes * norm
        dictionary = dictionary / norm
    solution = Solution(codes, dictionary)
    solution.canonical(signed=rules.sign, ordered=rules.permutation)
    return give(solution.codes, U), give(solution.dictionary, W)
