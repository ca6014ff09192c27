"""Linear encoders of least residual: ``min over E of |U - A E|`` in a chosen norm.

Every norm works in an orthonormal basis Q of the columns of A, so that how ill-conditioned A is
matters only when the answer is carried back, where directions within rounding are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ontogeny.arrays import Array, matrix, namespace
from ontogeny.distances.pair import as_given, double
from ontogeny.errors import ArgumentError, check_choice

from .residual_norms import NORMS, ResidualNorm, matrix_norm

ENCODER_NORMS = ("fro", "nuclear", "2", "l1", "linf", "induced-l1", "induced-linf")
_UNITARY = ("fro", "nuclear", "2")
_CHECK_EVERY = 10
_RELAXATION = 1.6
_BALANCED_FOR = 400  # the penalty stops moving after this, as convergence asks


@dataclass(frozen=True, eq=False)
class Encoder:
    """A linear map from activations to codes, as `fit_encoder` found it.

    Parameters
    ----------
    matrix
        E (m, r).
    intercept
        b (r,), zero unless asked for.
    norm
        The norm that was minimised.
    error
        ``norm(U - A E - b)`` on the rows it was fitted to.
    relative_error
        The same as a share of ``norm(U)``; 0 where U is zero.
    rank
        Directions of A that were used.
    n_iter
        Iterations; 1 for a closed form.
    gap
        Proven bound of how far the objective may lie above its minimum, as a share of it.
    converged
        Whether `gap` is within the tolerance.
    """

    matrix: Array
    intercept: Array
    norm: str
    error: float
    relative_error: float
    rank: int
    n_iter: int
    gap: float
    converged: bool

    def predict(self, A: Array) -> Array:
        """Return the codes ``A E + b`` (n, r) of activations (n, m)."""
        A = matrix("A", A)
        if A.shape[1] != self.matrix.shape[0]:
            raise ArgumentError(
                f"A must have {self.matrix.shape[0]} features as in the fit; "
                f"its shape is {tuple(A.shape)}."
            )
        xp = namespace(A, self.matrix)
        return (
            xp.astype(A, self.matrix.dtype, copy=False) @ self.matrix + self.intercept
        )


@dataclass(frozen=True, eq=False)
class _Basis:
    """``A - mean = Q diag(s) V^T`` without the directions within rounding; Q may start with 1."""

    Q: Array
    scale: Array
    right: Array
    mean: Array
    constant: bool

    def penalty(self, ridge: float) -> Array:
        """Return the weight (k, 1) of each squared coordinate that `ridge` puts on E."""
        xp = namespace(self.Q)
        free = xp.zeros_like(self.Q[0, :1]) if self.constant else self.scale[:0]
        return xp.concat([free, ridge / self.scale**2])[:, None]

    def carried_back(self, X: Array) -> tuple[Array, Array]:
        """Return E (m, r) and b (r,) of coordinates X (k, r)."""
        xp = namespace(X)
        first = 1 if self.constant else 0
        E = self.right @ (X[first:] / self.scale[:, None])
        b = xp.sum(X[:first], axis=0) / self.Q.shape[0] ** 0.5
        return E, b - self.mean @ E


def fit_encoder(
    A: Array,
    U: Array,
    norm: str = "fro",
    *,
    ridge: float = 0.0,
    intercept: bool = False,
    tol: float = 2e-3,
    max_iter: int = 3000,
) -> Encoder:
    """Return the linear encoder E (m, r) that minimises ``norm(U - A E)``.

    Parameters
    ----------
    A
        Activations (n, m), NumPy or PyTorch.
    U
        Codes (n, r) of the same rows.
    norm
        ``"fro"``, ``"nuclear"``, ``"2"`` (spectral); ``"l1"`` (sum of absolute entries) and
        ``"linf"`` (largest absolute entry), both entry-wise; ``"induced-l1"`` (largest column sum)
        and ``"induced-linf"`` (largest row sum), the operator norms that a solver's ``norm(X, 1)``
        and ``norm(X, inf)`` mean.
    ridge
        Penalty on E. The objective is ``|U - A E|_F² + ridge |E|_F²`` for ``"fro"`` and
        ``norm(U - A E) + ridge/2 |E|_F²`` for the others, where ``"linf"`` counts the largest
        entry of every column and ``"induced-l1"`` all column sums.
    intercept
        Whether to add a constant b, without penalty. Codes of extractors that centre (PCA, ICA)
        have one.
    tol, max_iter
        Norms without a closed form stop when the duality gap is below `tol` of the objective, or
        after `max_iter` iterations.

    Returns
    -------
    Encoder
        The map with its error, rank and convergence; arrays of the kind and dtype of A.

    Raises
    ------
    ArgumentError
        If shapes or numbers are not what they must be.
    NonFiniteError
        If A or U holds NaN or infinity.

    Notes
    -----
    Bernas (2025), Algorithm 3. Without ridge the least-squares solution minimises *every*
    unitarily invariant norm, because ``U - A E`` always projects to ``(1 - Q Q^T) U`` and a
    projection never raises such a norm: ``"fro"``, ``"nuclear"`` and ``"2"`` then give one
    encoder. ``"linf"`` and ``"induced-l1"`` are reached column by column, which minimises the
    largest column too. Of the solutions for a rank-deficient A the one of least norm is returned;
    directions of A within the rounding of its dtype (``eps sqrt(max(n, m)) |A|_F``) are not used.
    Other norms: the alternating direction method of multipliers with a feasible dual point as
    certificate.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A, E = rng.normal(size=(50, 4)), rng.normal(size=(4, 2))
    >>> U = A @ E
    >>> U[0] += 100.0  # one broken row
    >>> [
    ...     bool(abs(fit_encoder(A, U, norm).matrix - E).max() < 1e-2)
    ...     for norm in ("fro", "l1")
    ... ]
    [False, True]
    """
    check_choice("norm", norm, ENCODER_NORMS)
    if not (np.isfinite(ridge) and ridge >= 0):
        raise ArgumentError(f"ridge must be 0 or more; got {ridge!r}.")
    if not tol > 0 or max_iter < 1:
        raise ArgumentError(
            f"tol must be above 0 and max_iter at least 1; got {tol}, {max_iter}."
        )
    wide, array = double("A", matrix("A", A))
    codes, given_codes = double("U", matrix("U", U))
    namespace(array, given_codes)
    if len(array) != len(given_codes):
        raise ArgumentError(f"A has {len(array)} rows and U {len(given_codes)}.")
    xp = namespace(wide)
    a = _size(wide[0])
    u = _size(codes[0])
    if u == 0 or a == 0:
        u = u or 1.0
        a = a or 1.0
    eps = float(xp.finfo(array.dtype).eps)
    basis = _basis(wide[0] / a, eps, intercept)
    target = codes[0] / u
    penalty = basis.penalty(ridge / a**2 if norm == "fro" else ridge * u / a**2)
    X, n_iter, gap = _solve(basis.Q, target, norm, penalty, tol, max_iter)
    E, b = basis.carried_back(X)
    error = matrix_norm(target - basis.Q @ X, norm)
    whole = matrix_norm(target, norm)
    return Encoder(
        matrix=as_given(E * (u / a), array),
        intercept=as_given(b * u, array),
        norm=norm,
        error=error * u,
        relative_error=error / whole if whole > 0 else 0.0,
        rank=int(basis.scale.shape[0]),
        n_iter=n_iter,
        gap=gap,
        converged=gap <= tol,
    )


def _basis(A: Array, eps: float, constant: bool) -> _Basis:
    xp = namespace(A)
    mean = xp.mean(A, axis=0) if constant else xp.zeros_like(A[0])
    # A thin QR first makes the SVD of a tall matrix several times cheaper.
    Q, triangle = xp.linalg.qr(A - mean)
    left, values, right = xp.linalg.svd(triangle, full_matrices=False)
    floor = eps * max(A.shape) ** 0.5 * xp.linalg.matrix_norm(A)
    rank = int(xp.sum(xp.astype(values > floor, xp.int64)))
    Q = Q @ left[:, :rank]
    values = values[:rank]
    right = right[:rank].mT
    if constant:
        ones = xp.ones_like(A[:, :1]) / A.shape[0] ** 0.5
        Q = xp.concat([ones, Q], axis=1)
    return _Basis(Q, values, right, mean, constant)


def _solve(
    Q: Array, U: Array, norm: str, penalty: Array, tol: float, max_iter: int
) -> tuple[Array, int, float]:
    """Return the coordinates X (k, r) of the best encoder, iterations, and the relative gap."""
    xp = namespace(Q)
    free = float(xp.sum(penalty)) == 0
    if norm == "fro" or (norm in _UNITARY and free) or not Q.shape[1]:
        return (Q.mT @ U) / (1 + penalty), 1, 0.0
    return _split(Q, U, NORMS[norm], penalty, tol, max_iter)


def _split(
    Q: Array, U: Array, norm: ResidualNorm, penalty: Array, tol: float, max_iter: int
) -> tuple[Array, int, float]:
    """Alternate between residual and coordinates; R + Q X = U holds in the limit."""
    xp = namespace(Q)
    X = (Q.mT @ U) / (1 + penalty)
    R = U - Q @ X
    rho = _first_rho(norm, R, U) / (Q.shape[1] if norm.peaked else 1)
    Y = xp.zeros_like(R)
    best = _Best(xp, X)
    for n_iter in range(1, max_iter + 1):
        X = rho * (Q.mT @ (U - R - Y)) / (penalty + rho)
        moved = _RELAXATION * (Q @ X) + (1 - _RELAXATION) * (U - R)
        before = R
        R = norm.prox(U - moved - Y, 1.0 / rho)
        Y = Y + R + moved - U
        if n_iter % _CHECK_EVERY and n_iter < max_iter:
            continue
        best.update(Q, U, norm, penalty, X, -rho * Y)
        if best.gap <= tol:
            break
        if n_iter <= _BALANCED_FOR:
            change = _balance(norm, R + Q @ X - U, rho * (Q.mT @ (R - before)))
            rho = rho * change
            Y = Y / change
    return best.X, n_iter, best.gap


class _Best:
    """The best coordinates so far, and how far from the minimum they can be at most."""

    def __init__(self, xp: Any, X: Array) -> None:
        self.xp = xp
        self.X = X
        self.gap = float("inf")
        self._lower: Any = None
        self._upper: Any = None

    def update(
        self, Q: Array, U: Array, norm: ResidualNorm, penalty: Array, X: Array, Z: Array
    ) -> None:
        """Compare X with the best so far, and Z, made feasible, with the best lower bound."""
        xp = self.xp
        size = _per_problem(norm, penalty * X**2)
        upper = norm.value(U - Q @ X) + size / 2
        Z = Z - Q @ (Q.mT @ Z - penalty * X)
        scale = 1.0 / xp.clip(norm.dual(Z), 1.0, None)
        lower = scale * _per_problem(norm, Z * U) - scale**2 * size / 2
        if self._upper is None:
            self._upper = upper
            self._lower = lower
            self.X = X
        else:
            better = upper < self._upper
            self.X = xp.where(better, X, self.X)
            self._upper = xp.minimum(upper, self._upper)
            self._lower = xp.maximum(lower, self._lower)
        # The gap is a share of the objective, which is zero for an exact fit.
        negligible = 1e-12 * float(xp.sum(norm.value(U)))
        above = max(float(xp.sum(self._upper)) - float(xp.sum(self._lower)), 0.0)
        whole = float(xp.sum(self._upper))
        self.gap = 0.0 if whole <= negligible else above / whole


def _per_problem(norm: ResidualNorm, entries: Array) -> Array:
    xp = namespace(entries)
    return (
        xp.sum(entries, axis=0) if norm.by_column else xp.reshape(xp.sum(entries), (1,))
    )


def _first_rho(norm: ResidualNorm, R: Array, U: Array) -> Array:
    """Return a first penalty: the inverse of the size that the norm sees, (r,) or (1,)."""
    xp = namespace(R)
    size = xp.sqrt(_per_problem(norm, R**2) / R.shape[0])
    whole = xp.sqrt(_per_problem(norm, U**2) / R.shape[0])
    return 1.0 / xp.maximum(
        size, 1e-6 * xp.where(whole > 0, whole, xp.ones_like(whole))
    )


def _balance(norm: ResidualNorm, primal: Array, dual: Array) -> Array:
    """Return the factor on rho that brings primal and dual residual to the same order."""
    xp = namespace(primal)
    first = xp.sqrt(_per_problem(norm, primal**2))
    second = xp.sqrt(_per_problem(norm, dual**2))
    change = xp.ones_like(first)
    change = xp.where(first > 5 * second, 2 * change, change)
    return xp.where(second > 5 * first, change / 2, change)


def _size(values: Array) -> float:
    xp = namespace(values)
    return float(xp.max(xp.abs(values)))
