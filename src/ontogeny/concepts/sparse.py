"""Dictionary learning and sparse PCA: an L1 penalty on one factor, a bound on the other."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from ..errors import check_choice, check_number
from .alternating import Factor, alternate, solve_rows
from .base import Extractor, Solution
from .checks import check_stopping
from .linalg import least_squares, thin_svd

__all__ = ["DictionaryLearning", "SparsePCA", "sparse_codes"]

BALL = Factor("ball")


def sparse_codes(A: Tensor, W: Tensor, alpha: Tensor | float) -> Tensor:
    """Return ``argmin 1/2 |A - U W^T|^2 + alpha |U|_1`` (n, r), row by row."""
    G, B = W.mT @ W, W.mT @ A.mT
    penalty = torch.as_tensor(alpha, dtype=A.dtype, device=A.device).reshape(1, 1)
    return solve_rows(B, G, torch.zeros_like(B), Factor("sparse", penalty)).mT


class DictionaryLearning(Extractor):
    """Dictionary learning: ``min 1/2 |A - U W^T|^2 + alpha |U|_1``, columns of W of norm at most 1.

    Solved by block coordinate descent with extrapolation over both factors. Canonical form:
    columns of unit norm, largest entry positive, in the order of their energy. `alpha` has the
    units of A times its norm: activations that grow tenfold need ten times the penalty.

    Parameters
    ----------
    n_concepts
        Number r of atoms.
    alpha
        Weight of the L1 penalty on the codes.
    max_iter, tol
        Done when ten iterations lower the objective by less than `tol` of itself.
    random_state
        Seed of the start (samples, drawn at random).

    Attributes
    ----------
    objective_ : float
        The penalised objective of A.
    tau_ : float
        ``|U|_1``: the bound that `alpha` amounts to (report, Property 4).

    References
    ----------
    Mairal, Bach, Ponce and Sapiro (2009); report, Def. 29 with the bound it leaves out.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(60, 8))
    >>> learned = DictionaryLearning(n_concepts=4, alpha=0.5, random_state=0)
    >>> U = learned.fit_transform(A)
    >>> bool(np.allclose(np.linalg.norm(learned.components_, axis=1), 1)), bool((U == 0).any())
    (True, True)
    """

    _scale_in: ClassVar[str] = "codes"

    def __init__(
        self,
        n_concepts: int = 100,
        *,
        alpha: float = 1.0,
        max_iter: int = 200,
        tol: float = 1e-3,
        random_state: Any = None,
    ) -> None:
        self.n_concepts = n_concepts
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _check_options(self) -> None:
        check_number("alpha", self.alpha, above=True)
        check_stopping(self.max_iter, self.tol)

    def _set_scale(self, scale: Tensor) -> None:
        self._penalty = (self.alpha / scale)[:, None]

    def _solve(self, A: Tensor, start: Tensor | None) -> Solution:
        W = self._samples(A) if start is None else _unit(start.mT)
        U = A.new_zeros(len(A), self.n_concepts, A.shape[1])
        penalty = self._penalty
        if start is not None:
            known = [sparse_codes(a, w.mT, p).mT for a, w, p in zip(A, W, penalty, strict=True)]
            U = torch.stack(known)
        rule = Factor("sparse", penalty)
        fit = alternate(A, U, W, rule, BALL, max_iter=self.max_iter, tol=self.tol)
        solution = Solution(fit.U.mT, _unit(fit.W).mT, None, fit.n_iter, fit.converged)
        solution.canonical(signed=True, ordered=start is None)
        codes = [
            sparse_codes(a, w, p) for a, w, p in zip(A, solution.dictionary, penalty, strict=True)
        ]
        solution.codes = torch.stack(codes)
        residual = A - solution.codes @ solution.dictionary.mT
        tau = solution.codes.abs().sum((1, 2)).double()
        solution.state["tau"] = tau
        solution.state["objective"] = (
            residual.square().sum((1, 2)).double() / 2 + penalty[:, 0].double() * tau
        )
        return solution

    def _samples(self, A: Tensor) -> Tensor:
        """Return unit rows (K, r, m): samples drawn at random, repeated with noise if too few."""
        n = A.shape[1]
        generator = self._generator()
        chosen = torch.randperm(n, generator=generator).to(A.device)
        noise = torch.randn(self.n_concepts, A.shape[2], generator=generator, dtype=torch.float64)
        rows = A[:, chosen[torch.arange(self.n_concepts, device=A.device) % n]]
        size = torch.linalg.vector_norm(rows, dim=2, keepdim=True)
        spread = torch.where(size > 0, 1e-3 * size, 1.0) / A.shape[2] ** 0.5
        return _unit(rows + spread * noise.to(A))

    def _encode(self, A: Tensor, W: Tensor) -> Tensor:
        return sparse_codes(A, W, self._penalty[0])

    @property
    def objective_(self) -> float:
        """The penalised objective of A."""
        return float(self._objective) * float(self._scale) ** 2

    @property
    def tau_(self) -> float:
        """``|U|_1``."""
        return float(self._tau) * float(self._scale)


class SparsePCA(Extractor):
    """Sparse PCA, in either of the two problems of that name, on centred activations.

    ``sparse="dictionary"`` (scikit-learn's): ``min 1/2 |A - U V^T|^2 + alpha |V|_1`` with columns
    of U of norm at most 1; ``components_`` are the unit columns of V, codes their least squares.
    ``sparse="codes"`` (the report's Def. 23): ``min 1/2 |A - U W^T|^2 + alpha |U|_1`` with
    orthonormal W; codes are soft-thresholded projections.

    Concepts that the penalty removes altogether are zero. ``inverse_transform`` adds the mean.

    Parameters
    ----------
    n_concepts
        Number r of components.
    sparse
        Which factor is sparse.
    alpha
        Weight of the L1 penalty; it has the units of A times (codes) or over (dictionary) a norm.
    max_iter, tol
        Done when ten iterations lower the objective by less than `tol` of itself.
    random_state
        There for symmetry with the other extractors; the start is the PCA.

    Attributes
    ----------
    objective_ : float
        The penalised objective of A.
    tau_ : float
        L1 norm of the sparse factor: the bound that `alpha` amounts to.

    References
    ----------
    Jenatton, Obozinski and Bach (2010); report, Def. 23 and Property 4.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.random.default_rng(0).normal(size=(60, 8))
    >>> bool((SparsePCA(n_concepts=3, alpha=2.0).fit(A).components_ == 0).any())
    True
    """

    _scale_in: ClassVar[str] = "codes"

    def __init__(
        self,
        n_concepts: int = 100,
        *,
        sparse: str = "dictionary",
        alpha: float = 1.0,
        max_iter: int = 200,
        tol: float = 1e-3,
        random_state: Any = None,
    ) -> None:
        self.n_concepts = n_concepts
        self.sparse = sparse
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _check_options(self) -> None:
        check_choice("sparse", self.sparse, ("dictionary", "codes"))
        check_number("alpha", self.alpha, above=True)
        check_stopping(self.max_iter, self.tol)

    def _set_scale(self, scale: Tensor) -> None:
        self._penalty = (self.alpha / scale)[:, None]

    def _solve(self, A: Tensor, start: Tensor | None) -> Solution:
        mean = A.mean(1, keepdim=True)
        solve = self._sparse_dictionary if self.sparse == "dictionary" else self._sparse_codes
        solution = solve(A - mean, start)
        solution.offset = mean
        return solution

    def _sparse_dictionary(self, A: Tensor, start: Tensor | None) -> Solution:
        # The problem does not change when samples are rotated, and U stays in the span of A: the
        # triangular factor stands for A, and an iteration costs m rows instead of n.
        S = torch.linalg.qr(A, mode="r").R if A.shape[1] > 2 * A.shape[2] else A
        if start is None:
            parts = [thin_svd(s, self.n_concepts) for s in S]
            U = torch.stack([_unit(y.mT) for y, _, _ in parts])
            W = torch.stack([(v * s).mT for _, s, v in parts])
        else:
            U = torch.stack([_least_squares(s, w).mT for s, w in zip(S, start, strict=True)])
            W = start.mT * torch.linalg.vector_norm(U, dim=2, keepdim=True)
            U = _unit(U)
        rule = Factor("sparse", self._penalty)
        fit = alternate(S, U, W, BALL, rule, max_iter=self.max_iter, tol=self.tol)
        tau = fit.W.abs().sum((1, 2)).double()
        residual = (S - fit.U.mT @ fit.W).square().sum((1, 2)).double()
        W = _unit(fit.W).mT
        codes = torch.stack([_least_squares(a, w) for a, w in zip(A, W, strict=True)])
        solution = Solution(codes, W, None, fit.n_iter, fit.converged)
        solution.state["tau"] = tau
        solution.state["objective"] = residual / 2 + self._penalty[:, 0].double() * tau
        solution.canonical(signed=True, ordered=start is None)
        return solution

    def _sparse_codes(self, A: Tensor, start: Tensor | None) -> Solution:
        ordered = start is None
        if start is None:
            start = torch.stack([thin_svd(a, self.n_concepts)[2] for a in A])
        fits = [
            _threshold_and_turn(a, s, float(p), self.max_iter, self.tol)
            for a, s, p in zip(A, start, self._penalty, strict=True)
        ]
        U, W = torch.stack([f[0] for f in fits]), torch.stack([f[1] for f in fits])
        solution = Solution(U, W, None, [f[2] for f in fits], [f[3] for f in fits])
        tau = U.abs().sum((1, 2)).double()
        residual = (A - U @ W.mT).square().sum((1, 2)).double()
        solution.state["tau"] = tau
        solution.state["objective"] = residual / 2 + self._penalty[:, 0].double() * tau
        solution.canonical(signed=True, ordered=ordered)
        return solution

    def _encode(self, A: Tensor, W: Tensor) -> Tensor:
        if self.sparse == "codes":
            return torch.nn.functional.softshrink(A @ W, float(self._penalty[0]))
        return _least_squares(A, W)

    @property
    def objective_(self) -> float:
        """The penalised objective of A."""
        # With a sparse dictionary the penalty was scaled by 1/s as well, and V carries s.
        return float(self._objective) * float(self._scale) ** 2

    @property
    def tau_(self) -> float:
        """L1 norm of the sparse factor."""
        return float(self._tau) * float(self._scale)


def _threshold_and_turn(
    A: Tensor, W: Tensor, alpha: float, max_iter: int, tol: float
) -> tuple[Tensor, Tensor, int, bool]:
    """Alternate exact codes ``soft(A W, alpha)`` and the best orthonormal W (a polar factor)."""
    norm2 = float(A.square().sum(1).double().sum())
    history: list[float] = []
    U = torch.nn.functional.softshrink(A @ W, alpha)
    for i in range(1, max_iter + 1):
        C = A.mT @ U
        left, _, right = torch.linalg.svd(C, full_matrices=False)
        W = left @ right
        P = A @ W
        U = torch.nn.functional.softshrink(P, alpha)
        fit = float((U.double() * (U / 2 - P).double()).sum())
        history.append(norm2 / 2 + fit + alpha * float(U.abs().sum().double()))
        if i > 10 and history[-11] - history[-1] <= tol * history[-1]:
            return U, W, i, True
    return U, W, max_iter, False


def _least_squares(A: Tensor, W: Tensor) -> Tensor:
    return least_squares(W.mT, W.mT @ A.mT).mT


def _unit(W: Tensor) -> Tensor:
    """Return the rows scaled to unit norm; zero rows stay zero."""
    norm = torch.linalg.vector_norm(W, dim=-1, keepdim=True)
    return W / torch.where(norm > 0, norm, 1.0)
