"""SVD and PCA: the best approximation of its rank, without and with centring."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .base import Extractor
from .linalg import moments, thin_svd
from .solution import Solution
from .tensors import as_tensor, give, precise


class SVD(Extractor):
    """Truncated singular value decomposition, the scale shared: ``U S^1/2`` and ``V S^1/2``.

    Deterministic; ``init_dictionary`` is checked and changes nothing. Concepts beyond the rank of
    A are zero.

    Parameters
    ----------
    n_concepts
        Number r of concepts.
    random_state
        Here for symmetry with the other extractors; nothing is drawn.

    Attributes
    ----------
    singular_values_ : array of shape (r,)

    References
    ----------
    Report, Def. 21.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(50, 6))
    >>> svd = SVD(n_concepts=6)
    >>> U = svd.fit_transform(A)
    >>> bool(np.allclose(U @ svd.components_, A))
    True
    """

    _scale_in = "both"

    def _held(self, n: int, m: int) -> int:
        return moments(n, m)

    def _solve(self, A: Tensor, start: Tensor | None) -> Solution:
        Y, sigma, V = thin_svd(A, self.n_concepts)
        root = sigma.sqrt()
        solution = Solution(Y * _inverse(root), V * root, state={"sigma": sigma})
        solution.canonical(signed=True, ordered=False)
        return solution

    def _encode(self, A: Tensor, W: Tensor) -> Tensor:
        return (A @ W) * _inverse(W.square().sum(0))  # of the singular values

    @property
    def singular_values_(self) -> Any:
        """The r largest singular values of A."""
        return self._sigma * self._scale


def _inverse(values: Tensor) -> Tensor:
    """Return 1 / values, and 0 for 0."""
    return torch.where(
        values > 0, 1 / values.clamp(min=torch.finfo(values.dtype).tiny), 0.0
    )


class PCA(Extractor):
    """Principal component analysis: centred, orthonormal dictionary, uncorrelated codes.

    Deterministic; ``init_dictionary`` is checked and changes nothing. Concepts beyond the rank of
    the centred A are zero. ``inverse_transform`` adds the mean back.

    Parameters
    ----------
    n_concepts
        Number r of concepts.
    random_state
        Here for symmetry with the other extractors; nothing is drawn.

    Attributes
    ----------
    explained_variance_ : array of shape (r,)
        Variance of each code over the samples (divided by n), in float64.

    References
    ----------
    Report, Def. 22.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(50, 6)) + 5
    >>> pca = PCA(n_concepts=2).fit(A)
    >>> bool(np.allclose(pca.components_ @ pca.components_.T, np.eye(2)))
    True
    """

    def _held(self, n: int, m: int) -> int:
        return n * m + moments(n, m)  # centred

    def _solve(self, A: Tensor, start: Tensor | None) -> Solution:
        mean = A.mean(0, keepdim=True)
        codes, sigma, V = thin_svd(A - mean, self.n_concepts)
        samples = precise(sigma.new_full((), len(A)))
        solution = Solution(codes, V, mean, state={"sigma": sigma, "samples": samples})
        solution.canonical(signed=True, ordered=False)
        return solution

    def _encode(self, A: Tensor, W: Tensor) -> Tensor:
        return A @ W

    @property
    def explained_variance_(self) -> Any:
        """Variance of each code (divided by n, not n - 1); float64, as squares overflow."""
        sigma = precise(as_tensor(self._sigma)) * float(self._scale)
        return give(sigma.square() / float(self._samples), self._sigma)
