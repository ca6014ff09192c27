"""Fitting a stack of matrices, such as the layers of one checkpoint, in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from ..arrays import Array, matrix
from ..errors import ArgumentError
from .base import Extractor, as_tensor, give, plain_tensors

__all__ = ["fit_stack"]

SMALL = 200_000  # entries of a matrix up to which a CPU gains from working on several at once


def fit_stack(
    extractor: Extractor,
    stack: Array,
    *,
    init_dictionary: Array | None = None,
    together: bool | None = None,
) -> tuple[list[Any], Array]:
    """Fit one copy of `extractor` to each matrix of `stack`; each gets what it would get alone.

    To rounding, that is: in single precision a solver may stop an iteration sooner or later.

    Parameters
    ----------
    extractor
        An extractor with an integer `random_state` (or None for deterministic ones).
    stack
        Matrices of one shape, (K, n, m).
    init_dictionary
        Dictionaries (K, m, r) to start from, one a matrix.
    together
        Whether the solver works on the whole stack at once, which is faster on a GPU and for small
        matrices, and needs K times the memory. None decides by device and size.

    Returns
    -------
    fitted
        K fitted extractors.
    codes : array of shape (K, n, r)

    Raises
    ------
    ArgumentError
        If shapes do not fit, `random_state` is no integer, or an option is not what it must be.
    NonFiniteError
        If a matrix or dictionary holds NaN or infinity.

    Examples
    --------
    >>> import numpy as np
    >>> from ontogeny.concepts import make
    >>> stack = np.random.default_rng(0).normal(size=(3, 40, 6))
    >>> fitted, codes = fit_stack(make("pca", n_concepts=2), stack)
    >>> len(fitted), codes.shape
    (3, (3, 40, 2))
    """
    if not isinstance(extractor, Extractor):
        raise ArgumentError(f"extractor must be an Extractor; got {type(extractor).__name__}.")
    A = as_tensor(matrix("stack", stack, ndim=3)).detach()
    wanted = (len(A), A.shape[2], extractor.n_concepts)
    start = None
    if init_dictionary is not None:
        start = as_tensor(matrix("init_dictionary", init_dictionary, ndim=3)).detach().to(A)
        start = matrix("init_dictionary", start, ndim=3)
        if tuple(start.shape) != wanted:
            raise ArgumentError(
                f"init_dictionary must have shape (K, m, r) = {wanted}; "
                f"its shape is {tuple(start.shape)}."
            )
    if not isinstance(extractor.random_state, int | np.integer | None):
        raise ArgumentError("a stack needs an integer random_state, so that its fits are alike.")
    if together is None:
        together = A.is_cuda or A.shape[1] * A.shape[2] <= SMALL
    groups = [range(len(A))] if together else [range(k, k + 1) for k in range(len(A))]
    fitted: list[Extractor] = []
    codes: list[torch.Tensor] = []
    for group in groups:
        part = A[group.start : group.stop]
        first = None if start is None else start[group.start : group.stop]
        with plain_tensors():
            solution = extractor._fit_stack(part, first)
            for k in range(len(part)):
                one = clone(extractor)
                one._keep(solution, part, k, like=stack)
                fitted.append(one)
        codes.append(solution.codes)
    extractor._warn_unconverged(fitted)
    return fitted, give(torch.cat(codes), stack)
