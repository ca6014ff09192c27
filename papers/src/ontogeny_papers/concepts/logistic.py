"""Ridge logistic regression solved to tolerance, many label vectors on the same samples at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import expit

_UNIT_STEPS = 40
_ROUNDING = 1e-7  # gradients this small hardly change an objective near one
_JITTER = 1e-12  # of the mean curvature: keeps the factorisation defined where features are tied


class Solved(NamedTuple):
    """One minimiser: ``coef`` (m,), ``intercept``, whether it met the tolerance, iterations."""

    coef: np.ndarray
    intercept: float
    converged: bool
    n_iter: int


class RidgeLogistic:
    """Minimises ``mean_i w_i log(1 + exp(-s_i (a_i . v + b))) + l2 |v|^2`` for labels s = +1, -1.

    The logistic loss is nowhere more curved than ``A^T A / 4n`` (Böhning 1992), so that one
    Cholesky factor of that bound conditions the problem for every label vector and every weighting
    of the same samples: L-BFGS then needs some ten to thirty iterations whatever the scales of the
    features. Where it stops short (separable samples, hardly any penalty), Newton's method with
    conjugate gradients goes on from there. Shuffled labels give probabilities near one half, where
    the bound is nearly the curvature itself, so that steps of unit length solve them together.

    Parameters
    ----------
    A
        (n, m) float64 samples.
    l2
        Penalty; the intercept is not penalised.
    intercept
        Whether there is one.
    """

    def __init__(self, A: np.ndarray, l2: float, intercept: bool) -> None:
        self._samples = np.column_stack([A, np.ones(len(A))]) if intercept else A
        self._intercept = intercept
        n, m = self._samples.shape
        penalty = np.full(m, 2 * l2)
        if intercept:
            penalty[-1] = 0
        bound = self._samples.T @ self._samples / (4 * n)
        bound[np.diag_indices(m)] += penalty + _JITTER * np.trace(bound) / m + _JITTER
        self._factor = cholesky(bound, lower=True)
        self._white = solve_triangular(self._factor, self._samples.T, lower=True).T
        inverse = solve_triangular(self._factor, np.eye(m), lower=True)
        self._pull = (inverse * penalty) @ inverse.T
        features = self._white[:, :-1] if intercept else self._white
        # Of the gradient without cancellation: where activations are tiny, so is every gradient.
        self._scale = min(1.0, float(np.linalg.norm(np.abs(features).mean(axis=0))) / 2)

    def solve_many(
        self, signs: np.ndarray, weights: np.ndarray | None, tol: float, max_iter: int
    ) -> Iterator[Solved]:
        """Iterate over the minimisers for each row of `signs` (K, n) and of `weights` (K, n).

        Each sample counts `weights` times. One has converged where the norm of the gradient, in
        the coordinates in which the curvature is at most one, is at most `tol`: the objective then
        lies within about ``tol^2`` of its minimum. Where the penalty dwarfs the curvature, so that
        all gradients are small, `tol` is relative to their scale.
        """
        tol *= self._scale
        zero = np.zeros(len(self._pull))
        if weights is not None or len(signs) == 1:
            for k, row in enumerate(signs):
                counted = None if weights is None else weights[k]
                yield self._solve(row, counted, tol, max_iter, zero)
            return
        points, steps, converged = self._unit_steps(
            signs, tol, min(max_iter, _UNIT_STEPS)
        )
        for k, row in enumerate(signs):
            if converged[k]:
                yield self._solution(points[:, k], steps, True)
            else:
                yield self._solve(row, None, tol, max_iter, points[:, k])

    def _unit_steps(
        self, signs: np.ndarray, tol: float, limit: int
    ) -> tuple[np.ndarray, int, np.ndarray]:
        """Descend with unit steps, which never raise the objective, for all labels together."""
        labels = signs.T
        points = np.zeros((len(self._pull), len(signs)))
        for step in range(limit + 1):
            slope = labels * expit(-labels * (self._white @ points)) / len(labels)
            gradient = self._pull @ points - self._white.T @ slope
            converged = np.linalg.norm(gradient, axis=0) <= tol
            if converged.all() or step == limit:
                break
            points = points - gradient
        return points, step, converged

    def _solve(
        self,
        signs: np.ndarray,
        weights: np.ndarray | None,
        tol: float,
        max_iter: int,
        start: np.ndarray,
    ) -> Solved:
        objective = _Objective(self._white, self._pull, signs, weights)
        options = {"maxiter": max_iter, "gtol": tol / np.sqrt(len(start)), "ftol": 0.0}
        result = minimize(
            objective, start, jac=True, method="L-BFGS-B", options=options
        )
        point = result.x
        steps = int(result.nit)
        size = float(np.linalg.norm(result.jac))
        slope = result.jac
        # Line searches end where the objective's last digit does; unit steps need no objective.
        for _ in range(_UNIT_STEPS if tol < size < 10 * _ROUNDING else 0):
            point = point - slope
            slope = objective(point)[1]
            steps = steps + 1
            size = float(np.linalg.norm(slope))
            if size <= tol:
                break
        if size > tol:
            options = {"maxiter": max_iter, "gtol": tol}
            result = minimize(
                objective,
                point,
                jac=True,
                hessp=objective.curvature,
                method="trust-ncg",
                options=options,
            )
            point = result.x
            steps = steps + int(result.nit)
            size = float(np.linalg.norm(result.jac))
        return self._solution(point, steps, size <= tol)

    def _solution(self, point: np.ndarray, steps: int, converged: bool) -> Solved:
        v = solve_triangular(self._factor.T, point)
        coef, intercept = (v[:-1], float(v[-1])) if self._intercept else (v, 0.0)
        return Solved(coef, intercept, converged, steps)


class _Objective:
    """The objective and its gradient in whitened coordinates ``z = L^T v``."""

    def __init__(
        self,
        white: np.ndarray,
        pull: np.ndarray,
        signs: np.ndarray,
        weights: np.ndarray | None,
    ) -> None:
        self._rows = white
        self._pull = pull
        self._signs = signs
        total = len(signs) if weights is None else weights.sum()
        self._weights = (
            np.full(len(signs), 1 / total) if weights is None else weights / total
        )

    def __call__(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        margins = self._signs * (self._rows @ z)
        pulled = self._pull @ z
        value = self._weights @ np.logaddexp(0, -margins) + 0.5 * z @ pulled
        slope = self._weights * self._signs * expit(-margins)
        return float(value), pulled - self._rows.T @ slope

    def curvature(self, z: np.ndarray, direction: np.ndarray) -> np.ndarray:
        margins = self._rows @ z
        bend = self._weights * expit(margins) * expit(-margins)
        return np.asarray(
            self._rows.T @ (bend * (self._rows @ direction)) + self._pull @ direction
        )
