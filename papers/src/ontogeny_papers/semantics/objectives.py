"""The two losses of the unconstrained features model, with their gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ontogeny.arrays import Array, matrix, namespace, numpy_matrix, to_numpy
from ontogeny.errors import ArgumentError, check_choice


@dataclass(frozen=True)
class Objective:
    """Σ_j w_j loss_j(W h_j) + (ridge/2)(‖W‖² + ‖H‖²); made by `make_objective`.

    Parameters
    ----------
    S
        Centred support matrix (V, m).
    loss
        ``"square"`` or ``"cross_entropy"``.
    P
        Next-word distributions (V, m), or None where neither given nor to be read off `S`.
    weights
        w = m π (m,), or None for 1 each.
    ridge
        Weight of the penalty.
    """

    S: Array
    loss: str
    P: Array | None
    weights: Array | None
    ridge: float

    @property
    def is_plain(self) -> bool:
        """Whether there are neither weights nor a penalty."""
        return self.weights is None and self.ridge == 0

    def value(self, W: Array, H: Array) -> float:
        """Return the objective at `W`, `H`."""
        xp = namespace(W)
        L = W @ H
        if self.loss == "square":
            losses = xp.sum((L - self.S) ** 2, axis=0) / 2
        else:
            losses = _log_normaliser(L)[0, :] - xp.sum(self.P * L, axis=0)
        if self.weights is not None:
            losses = losses * self.weights
        penalty = self.ridge / 2 * (float(xp.sum(W**2)) + float(xp.sum(H**2)))
        return float(xp.sum(losses)) + penalty

    def gradient(self, W: Array, H: Array) -> tuple[Array, Array]:
        """Return the derivatives by `W` and by `H`."""
        L = W @ H
        if self.loss == "square":
            by_logits = L - self.S
        else:
            xp = namespace(L)
            by_logits = xp.exp(L - _log_normaliser(L)) - self.P
        if self.weights is not None:
            by_logits = by_logits * self.weights
        dW = by_logits @ H.T
        dH = W.T @ by_logits
        if self.ridge:
            dW = dW + self.ridge * W
            dH = dH + self.ridge * H
        return dW, dH

    def candidates(self) -> dict[str, Array]:
        """Return the matrices whose directions may be learned first, by name."""
        matrices = {"S": self.S}
        if self.P is not None:
            xp = namespace(self.P)
            matrices["P"] = self.P - xp.mean(self.P, axis=0, keepdims=True)
        if self.weights is not None:
            matrices |= {
                f"{name} diag(π)": M * self.weights for name, M in matrices.items()
            }
        return matrices

    def growth_rates(self) -> np.ndarray:
        """Return the rates at which a small start grows, largest first.

        The singular values of minus the gradient by the logits at zero: S̃ diag(w) for the square
        loss, centred P diag(w) for the cross-entropy.
        """
        name = "S" if self.loss == "square" else "P"
        M = self.candidates()[name if self.weights is None else f"{name} diag(π)"]
        rates = to_numpy(namespace(M).linalg.svdvals(M)).astype(float)
        if rates[0] == 0:
            raise ArgumentError(
                "all contexts have the same distribution: nothing to learn."
            )
        return rates


def make_objective(
    S: Array, loss: str, P: Array | None, pi: Array | None, ridge: float
) -> Objective:
    """Return the objective for a centred support matrix; see `train_ufm` for the arguments.

    Raises
    ------
    ArgumentError
        If the loss is unknown, or `P` or `pi` does not fit S or is no distribution.
    """
    check_choice("loss", loss, ("square", "cross_entropy"))
    xp = namespace(S)
    if P is not None:
        P = matrix("P", P)
        if type(P) is not type(S):
            raise ArgumentError(
                f"P must be of the kind of S_centred, {type(S).__name__}; got {type(P).__name__}."
            )
        P = xp.astype(P, S.dtype)
        _check_distributions(P, S)
    elif loss == "cross_entropy":
        support = support_of(S)
        P = support / xp.sum(support, axis=0, keepdims=True)
    return Objective(S, loss, P, _weights(pi, S), ridge)


def check_centred(name: str, S: Array) -> Array:
    """Return `S` as a finite matrix whose columns have mean 0.

    Raises
    ------
    ArgumentError
        If they do not.
    """
    S = matrix(name, S)
    xp = namespace(S)
    worst = float(xp.max(xp.abs(xp.mean(S, axis=0))))
    if worst > 1e-5 * float(xp.max(xp.abs(S))) + 1e-300:
        raise ArgumentError(
            f"{name} must have columns of mean 0 (the support matrix minus its column means); "
            f"a column has mean {worst:.3g}."
        )
    return S


def check_support(S: Array) -> np.ndarray:
    """Return `S` (V, m) as float64 if it holds only 0 and 1, and a next word for every context.

    Raises
    ------
    ArgumentError
        If it does not.
    """
    support = numpy_matrix("S", S)
    if not np.isin(support, (0.0, 1.0)).all():
        raise ArgumentError(
            "S must hold only 0 and 1: the support, not centred and not counts."
        )
    if not support.any(axis=0).all():
        raise ArgumentError(
            f"context {int(np.argmin(support.any(axis=0)))} has no next word in S."
        )
    return support


def support_of(S_centred: Array) -> Array:
    """Return the support S (V, m) of zeros and ones that a centred support matrix shows.

    A column of S̃ is 1 − n/V where a word can follow and −n/V elsewhere, so its sign tells; a
    column of zeros is a context that every word can follow.

    Examples
    --------
    >>> support_of(np.array([[0.5, 0.0], [-0.5, 0.0]]))
    array([[1., 1.],
           [0., 1.]])
    """
    xp = namespace(S_centred)
    largest = xp.max(xp.abs(S_centred), axis=0, keepdims=True)
    return xp.astype((S_centred > 0) | (largest < 1e-9), S_centred.dtype)


def _check_distributions(P: Array, S: Array) -> None:
    xp = namespace(P, S)
    if tuple(P.shape) != tuple(S.shape):
        raise ArgumentError(
            f"P must have the shape of S_centred, {tuple(S.shape)}; it has {tuple(P.shape)}."
        )
    sums = xp.sum(P, axis=0)
    if bool(xp.any(P < 0)) or float(xp.max(xp.abs(sums - 1))) > 1e-4:
        raise ArgumentError(
            "P must hold probabilities, its columns summing to 1; the smallest entry is "
            f"{float(xp.min(P)):.3g}, the sums lie in {float(xp.min(sums)):.4g} to "
            f"{float(xp.max(sums)):.4g}."
        )


def _weights(pi: Array | None, S: Array) -> Array | None:
    if pi is None:
        return None
    xp = namespace(S)
    pi = matrix("pi", pi, ndim=1)
    if tuple(pi.shape) != (S.shape[1],) or bool(namespace(pi).any(pi < 0)):
        raise ArgumentError(
            f"pi must hold {S.shape[1]} weights, one for each context, none negative; "
            f"its shape is {tuple(pi.shape)}."
        )
    total = float(namespace(pi).sum(pi))
    if not (total > 0 and math.isfinite(total)):
        raise ArgumentError(f"pi must have a positive sum; it is {total}.")
    return xp.asarray(to_numpy(pi) * (S.shape[1] / total), dtype=S.dtype)


def _log_normaliser(L: Array) -> Array:
    """Return log Σ exp of every column, (1, m)."""
    xp = namespace(L)
    largest = xp.max(L, axis=0, keepdims=True)
    return largest + xp.log(xp.sum(xp.exp(L - largest), axis=0, keepdims=True))
