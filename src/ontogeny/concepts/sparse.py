"""Dictionary learning and sparse PCA: an L1 penalty on one factor, a bound on the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import check_choice, check_number
from .alternating import alternate
from .base import Extractor
from .linalg import least_squares, polar, product, thin_svd, unit_rows
from .rows import Factor, solve_rows
from .solution import Solution
from .tensors import Stalled, check_stopping, iterate, on_cpu, precise

BALL = Factor("ball")


def sparse_codes(A: Tensor, W: Tensor, alpha: Tensor | float) -> Tensor:
    """Return ``argmin 1/2 |A - U W^T|^2 + alpha |U|_1`` (n, r), row by row."""
    G = W.mT @ W
    B = W.mT @ A.mT
    penalty = alpha if isinstance(alpha, Tensor) else A.new_full((), alpha)
    return solve_rows(B, G, torch.zeros_like(B), Factor("sparse", penalty)).mT


@dataclass(eq=False, repr=False, kw_only=True)
class _Penalised(Extractor):
    """An extractor whose objective holds ``alpha`` times the L1 norm of one factor.

    At the moderate scale that problems are solved at, the penalty is alpha over that scale.
    """

    alpha: float = 1.0
    max_iter: int = 200
    tol: float = 1e-3

    def _check_options(self) -> None:
        check_number("alpha", self.alpha, above=True)
        check_stopping(self.max_iter, self.tol)

    def _set_scale(self, scale: Tensor) -> None:
        self._penalty = self.alpha / scale

    def _keep_objective(
        self, solution: Solution, residual: Tensor, sparse: Tensor
    ) -> None:
        """Keep the objective and ``tau`` of a solution with this residual and sparse factor."""
        tau = precise(sparse.abs().sum())
        fit = precise(residual.square().sum()) / 2
        solution.state["tau"] = tau
        solution.state["objective"] = fit + precise(self._penalty) * tau

    @property
    def objective_(self) -> float:
        """The penalised objective of A."""
        # With a sparse dictionary the penalty was scaled by 1/s as well, and V carries s.
        return float(self._objective) * float(self._scale) ** 2

    @property
    def tau_(self) -> float:
        """L1 norm of the sparse factor."""
        return float(self._tau) * float(self._scale)


class DictionaryLearning(_Penalised):
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
    >>> (
    ...     bool(np.allclose(np.linalg.norm(learned.components_, axis=1), 1)),
    ...     bool((U == 0).any()),
    ... )
    (True, True)
    """

    def _held(self, n: int, m: int) -> int:
        return 2 * n * m + 3 * self.n_concepts * (n + m)  # reconstruction and residual

    def _solve(self, A: Tensor, start: Tensor | None) -> Solution:
        penalty = self._penalty
        if start is None:
            W = self._samples(A)
            U = A.new_zeros(self.n_concepts, len(A))
        else:
            W = unit_rows(start.mT)
            U = sparse_codes(A, W.mT, penalty).mT
        rule = Factor("sparse", penalty)
        fit = alternate(A, U, W, rule, BALL, max_iter=self.max_iter, tol=self.tol)
        solution = Solution(
            fit.U.mT, unit_rows(fit.W).mT, None, fit.n_iter, fit.converged
        )
        solution.canonical(signed=True, ordered=start is None)
        solution.codes = sparse_codes(A, solution.dictionary, penalty).contiguous()
        residual = A - product(solution.codes, solution.dictionary.mT)
        self._keep_objective(solution, residual, solution.codes)
        return solution

    def _samples(self, A: Tensor) -> Tensor:
        """Return unit rows (r, m): samples drawn at random, repeated with noise if too few."""
        n, m = A.shape
        generator = self._generator()
        order = torch.randperm(n, generator=generator).to(A.device)
        noise = torch.randn(
            self.n_concepts, m, generator=generator, dtype=torch.float64
        )
        rows = A[order[torch.arange(self.n_concepts, device=A.device) % n]]
        size = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
        spread = torch.where(size > 0, 1e-3 * size, 1.0) / m**0.5
        return unit_rows(rows + spread * noise.to(A))

    def _encode(self, A: Tensor, W: Tensor) -> Tensor:
        return sparse_codes(A, W, self._penalty)


@dataclass(eq=False, repr=False, kw_only=True)
class SparsePCA(_Penalised):
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
        Here for symmetry with the other extractors; the start is the PCA.

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

    sparse: str = "dictionary"

    def _check_options(self) -> None:
        check_choice("sparse", self.sparse, ("dictionary", "codes"))
        super()._check_options()

    def _held(self, n: int, m: int) -> int:
        return n * m + 3 * self.n_concepts * (min(n, m) + m)  # centred

    def _solve(self, A: Tensor, start: Tensor | None) -> Solution:
        mean = A.mean(0, keepdim=True)
        solve = (
            self._sparse_dictionary
            if self.sparse == "dictionary"
            else self._sparse_codes
        )
        solution = solve(A - mean, start)
        solution.canonical(signed=True, ordered=start is None)
        solution.offset = mean
        return solution

    def _sparse_dictionary(self, A: Tensor, start: Tensor | None) -> Solution:
        # The problem does not change when samples are rotated, and U stays in the span of A: the
        # triangular factor stands for A, and an iteration costs m rows instead of n.
        S = torch.linalg.qr(A, mode="r").R if A.shape[0] > 2 * A.shape[1] else A
        if start is None:
            Y, sigma, V = thin_svd(S, self.n_concepts)
            U = unit_rows(Y.mT).contiguous()
            W = (V * sigma).mT.contiguous()
        else:
            U = _least_squares(S, start).mT.contiguous()
            W = start.mT * torch.linalg.vector_norm(U, dim=1, keepdim=True)
            U = unit_rows(U)
        rule = Factor("sparse", self._penalty)
        fit = alternate(S, U, W, BALL, rule, max_iter=self.max_iter, tol=self.tol)
        W = unit_rows(fit.W).mT
        solution = Solution(_least_squares(A, W), W, None, fit.n_iter, fit.converged)
        self._keep_objective(solution, S - product(fit.U.mT, fit.W), fit.W)
        return solution

    def _sparse_codes(self, A: Tensor, start: Tensor | None) -> Solution:
        W = thin_svd(A, self.n_concepts)[2] if start is None else start
        stalled = Stalled(self.tol, window=10)
        (U, W, _), n_iter, converged = iterate(
            _threshold_and_turn(A, W, self._penalty),
            lambda step: stalled(step[2]),
            self.max_iter,
        )
        solution = Solution(U, W, None, n_iter, converged)
        self._keep_objective(solution, A - product(U, W.mT), U)
        return solution

    def _encode(self, A: Tensor, W: Tensor) -> Tensor:
        if self.sparse == "codes":
            return _shrunk(A @ W, self._penalty)
        return _least_squares(A, W)


def _threshold_and_turn(
    A: Tensor, W: Tensor, alpha: Tensor
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield exact codes ``soft(A W, alpha)``, the best orthonormal W for them, the objective."""
    norm2 = precise(A.square().sum(1)).sum()
    U = _shrunk(A @ W, alpha)
    while True:
        W = _nearest_rotation(A.mT @ U)
        P = A @ W
        U = _shrunk(P, alpha)
        fit = (precise(U) * precise(U / 2 - P)).sum()
        yield U, W, norm2 / 2 + fit + precise(alpha) * precise(U.abs().sum())


def _shrunk(X: Tensor, by: Tensor) -> Tensor:
    return X - X.clamp(-by, by)


def _nearest_rotation(X: Tensor) -> Tensor:
    """Return the nearest matrix (m, r) with orthonormal columns, without those that vanish."""
    if not on_cpu(X):
        return polar(X)
    left, _, right = torch.linalg.svd(X, full_matrices=False)
    return left @ right


def _least_squares(A: Tensor, W: Tensor) -> Tensor:
    return least_squares(W.mT, W.mT @ A.mT).mT
