"""SVD and PCA: the best approximation of its rank, without and with centring."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from .base import Solution, as_tensor, give
from .linalg import thin_svd
from .stream import MomentExtractor, Moments

__all__ = ["PCA", "SVD"]


class SVD(MomentExtractor):
    """Truncated singular value decomposition, the scale shared: ``U S^1/2`` and ``V S^1/2``.

    Deterministic; ``init_dictionary`` is checked and changes nothing. ``partial_fit`` takes rows in
    batches and is exact. Concepts beyond the rank of
    A are zero.

    Parameters
    ----------
    n_concepts
        Number r of concepts.
    random_state
        There for symmetry with the other extractors; nothing is drawn.

    Attributes
    ----------
    singular_values_ : array of shape (r,)

    References
    ----------
    Report, Def. 21 (spec A2).

    Examples
    --------
    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(50, 6))
    >>> svd = SVD(n_concepts=6)
    >>> U = svd.fit_transform(A)
    >>> bool(np.allclose(U @ svd.components_, A))
    True
    """

    _scale_in: ClassVar[str] = "both"

    def __init__(self, n_concepts: int = 100, *, random_state: Any = None) -> None:
        self.n_concepts = n_concepts
        self.random_state = random_state

    def _solve(self, A: Tensor, start: Tensor | None) -> Solution:
        parts = [thin_svd(a, self.n_concepts) for a in A]
        Y, sigma, V = (torch.stack(p) for p in zip(*parts, strict=True))
        root = sigma.sqrt()[:, None]
        inverse = torch.where(root > 0, 1 / root.clamp(min=torch.finfo(A.dtype).tiny), 0.0)
        solution = Solution(Y * inverse, V * root, n_iter=[1] * len(A), converged=[True] * len(A))
        solution.canonical(signed=True, ordered=False)
        solution.state["sigma"] = sigma
        return solution

    def _encode(self, A: Tensor, W: Tensor) -> Tensor:
        energy = W.square().sum(0)  # the singular values
        return (A @ W) * torch.where(
            energy > 0, 1 / energy.clamp(min=torch.finfo(W.dtype).tiny), 0.0
        )

    def _moment_matrix(self, moments: Moments) -> Tensor:
        return moments.about_zero()

    def _from_moments(self, moments: Moments, sigma: Tensor, V: Tensor) -> Solution:
        codes = V.new_zeros(1, 1, self.n_concepts)
        return Solution(codes, (V * sigma.sqrt())[None], state={"sigma": sigma[None]})

    @property
    def singular_values_(self) -> Any:
        """The r largest singular values of A."""
        return self._sigma * self._scale


class PCA(MomentExtractor):
    """Principal component analysis: centred, orthonormal dictionary, uncorrelated codes.

    Deterministic; ``init_dictionary`` is checked and changes nothing. ``partial_fit`` takes rows in
    batches and is exact. Concepts beyond the rank of
    the centred A are zero. ``inverse_transform`` adds the mean back.

    Parameters
    ----------
    n_concepts
        Number r of concepts.
    random_state
        There for symmetry with the other extractors; nothing is drawn.

    Attributes
    ----------
    explained_variance_ : array of shape (r,)
        Variance of each code over the samples (divided by n), in float64.

    References
    ----------
    Report, Def. 22 (spec A2).

    Examples
    --------
    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(50, 6)) + 5
    >>> pca = PCA(n_concepts=2).fit(A)
    >>> bool(np.allclose(pca.components_ @ pca.components_.T, np.eye(2)))
    True
    """

    _scale_in: ClassVar[str] = "codes"

    def __init__(self, n_concepts: int = 100, *, random_state: Any = None) -> None:
        self.n_concepts = n_concepts
        self.random_state = random_state

    def _solve(self, A: Tensor, start: Tensor | None) -> Solution:
        mean = A.mean(1, keepdim=True)
        parts = [thin_svd(a - b, self.n_concepts) for a, b in zip(A, mean, strict=True)]
        codes, sigma, V = (torch.stack(p) for p in zip(*parts, strict=True))
        K = len(A)
        solution = Solution(codes, V, mean, n_iter=[1] * K, converged=[True] * K)
        solution.canonical(signed=True, ordered=False)
        solution.state["sigma"] = sigma
        solution.state["samples"] = sigma.new_full((K,), A.shape[1], dtype=torch.float64)
        return solution

    def _encode(self, A: Tensor, W: Tensor) -> Tensor:
        return A @ W

    def _moment_matrix(self, moments: Moments) -> Tensor:
        return moments.scatter

    def _from_moments(self, moments: Moments, sigma: Tensor, V: Tensor) -> Solution:
        codes = V.new_zeros(1, 1, self.n_concepts)
        state = {"sigma": sigma[None], "samples": sigma.new_full((1,), moments.count)}
        return Solution(codes, V[None], moments.mean[None, None], state=state)

    @property
    def explained_variance_(self) -> Any:
        """Variance of each code (divided by n, not n - 1); in float64, where squares have room."""
        sigma = as_tensor(self._sigma).double() * float(self._scale)
        return give(sigma.square() / float(self._samples), self._sigma)
