"""What is kept of the training of free embeddings, and the theory beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ontogeny.arrays import Array, matrix, namespace, to_numpy
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny.features.wordspace.order import first_crossing

from .objectives import Objective
from .subspaces import leading_directions, subspace_overlap

# The gradient flow of a two-layer linear model in closed form: how each concept is learned.


def closed_form(sigma: Array, delta: float, t: Any) -> Array:
    """Return the learned share a_i(t) of every concept under gradient flow.

    For the flow of (1/2) ‖S̃ − W H‖² from W(0) = e^−δ U Rᵀ, H(0) = e^−δ R Vᵀ with S̃ = U Σ Vᵀ the
    singular values of the logits W(t) H(t) are σ_i a_i(t), and W(t) = U sqrt(Σ A(t)) Rᵀ.

    Parameters
    ----------
    sigma
        Singular values (r,) of S̃, positive; NumPy or PyTorch.
    delta
        Minus the logarithm of the initial scale.
    t
        Times of the flow, at least 0: a number, or an array of any shape.

    Returns
    -------
    Array
        a_i(t) = 1 / (1 + (σ_i e^2δ − 1) e^(−2 σ_i t)), of shape t.shape + (r,), of the kind and
        dtype of `sigma`; a_i(0) = e^−2δ / σ_i, and 1 is all of it.

    Raises
    ------
    ArgumentError
        If a singular value is not positive, a time is negative, or a shape is wrong.
    NonFiniteError
        If an argument is NaN or infinite.

    Notes
    -----
    Zhao and Thrampoulidis 2025, Proposition 1, after Saxe et al. 2013 and Gidel et al. 2019. The
    paper writes the loss without the 1/2, which would halve the time constant; the formula is that
    of the loss with it. Computed from logarithms, so that no δ and no t overflows.

    Examples
    --------
    >>> import numpy as np
    >>> closed_form(np.array([2.0, 1.0]), 4.0, [0.0, 4.0, 8.0]).round(3)
    array([[0.   , 0.   ],
           [0.999, 0.5  ],
           [1.   , 1.   ]])
    """
    values = _singular_values(sigma)
    xp = namespace(values)
    scale = _finite_number("delta", delta)
    times = xp.asarray(matrix("t", t, ndim=None), dtype=values.dtype)
    if bool(xp.any(times < 0)):
        raise ArgumentError(
            f"t must not be negative; its smallest value is {float(xp.min(times))}."
        )
    exponent = 2 * times[..., None] * values
    # 1/a = (1 - e^-2σt) + σ e^(2δ - 2σt): two terms of one sign, so nothing cancels.
    started = -xp.expm1(-exponent)
    rising = xp.log(xp.where(started > 0, started, xp.ones_like(started)))
    rising = xp.where(started > 0, rising, xp.full_like(rising, -xp.inf))
    return xp.exp(-xp.logaddexp(rising, xp.log(values) + 2 * scale - exponent))


def half_times(sigma: Array, delta: float) -> Array:
    """Return the time at which half of every concept is learned, log(σ_i e^2δ − 1) / (2 σ_i).

    In units of δ it tends to the paper's T_i = 1/σ_i as δ grows: larger singular values first.

    Parameters
    ----------
    sigma
        Singular values (r,) of S̃, positive.
    delta
        Minus the logarithm of the initial scale; every concept must start below one half, which
        is σ_i e^2δ > 2.

    Raises
    ------
    ArgumentError
        If a singular value is not positive, or a concept starts above one half.

    Examples
    --------
    >>> import numpy as np
    >>> half_times(np.array([2.0, 1.0]), 8.0).round(3)
    array([4.173, 8.   ])
    """
    values = _singular_values(sigma)
    xp = namespace(values)
    scale = _finite_number("delta", delta)
    log_start = xp.log(values) + 2 * scale
    if bool(xp.any(log_start <= 0.6931471805599453)):
        raise ArgumentError(
            f"delta={delta} starts a concept above one half: sigma e^(2 delta) must exceed 2, and "
            f"the smallest singular value is {float(xp.min(values)):.3g}."
        )
    return (log_start + xp.log1p(-xp.exp(-log_start))) / (2 * values)


def _singular_values(sigma: Array) -> Array:
    values = matrix("sigma", sigma, ndim=1)
    xp = namespace(values)
    if bool(xp.any(values <= 0)):
        raise ArgumentError(
            f"sigma must be positive; its smallest value is {float(xp.min(values)):.3g}."
        )
    return values


def _finite_number(name: str, value: Any) -> float:
    return float(matrix(name, [value], ndim=1)[0])


OVERLAPS = (1, 3, 5, 10, 20, 50)


@dataclass(frozen=True)
class UfmBasis:
    """The concepts of S̃ that fit into d dimensions: U (V, r), sigma (r,), V (m, r)."""

    U: Array
    sigma: Array
    V: Array


def basis_of(S: Array, d: int) -> UfmBasis:
    """Return the leading d concepts of a centred support matrix, or all there are.

    Raises
    ------
    ArgumentError
        If it is zero.
    """
    xp = namespace(S)
    U, sigma, Vt = xp.linalg.svd(S, full_matrices=False)
    if float(sigma[0]) == 0:
        raise ArgumentError(
            "S_centred is zero: every word follows every context, nothing to learn."
        )
    rank = int(xp.sum(xp.astype(sigma > 1e-6 * sigma[0], xp.int64)))
    r = min(d, rank)
    return UfmBasis(U[:, :r], sigma[:r], Vt[:r, :].T)


class UfmRecorder:
    """What is kept of the training at chosen iterations."""

    def __init__(self, objective: Objective, basis: UfmBasis) -> None:
        self.objective = objective
        self.basis = basis
        self.ks = [k for k in OVERLAPS if k <= len(basis.sigma)]
        self.directions = {
            name: leading_directions(M, self.ks[-1])
            for name, M in objective.candidates().items()
        }
        self._rows: list[dict[str, Any]] = []

    def take(self, i: int, time: float, W: Array, H: Array) -> None:
        """Record iteration `i`."""
        L = W @ H
        S = self.objective.S
        xp = namespace(L)
        loss = self.objective.value(W, H)
        if not math.isfinite(loss):
            raise NonFiniteError(
                f"the training diverged at iteration {i}; a smaller step_size may help."
            )
        inner = (self.basis.U.T @ W) @ (H @ self.basis.V)
        along = xp.linalg.diagonal(inner)
        norm = float(xp.linalg.vector_norm(L))
        Q = leading_directions(L, self.ks[-1])
        self._rows.append(
            {
                "iteration": i,
                "time": time,
                "loss": loss,
                "projection": to_numpy(along),
                "singular_value": to_numpy(xp.linalg.svdvals(L))[: len(along)],
                "logit_norm": norm,
                "complement_norm": float(
                    xp.linalg.vector_norm(L - self.basis.U @ inner @ self.basis.V.T)
                ),
                "mixing_norm": float(
                    xp.linalg.vector_norm(
                        inner - along * xp.eye(len(along), dtype=along.dtype)
                    )
                ),
                "cosine": float(xp.sum(L * S))
                / (norm * float(xp.linalg.vector_norm(S)) or 1.0),
                "overlap": [
                    subspace_overlap(U, Q, self.ks) for U in self.directions.values()
                ],
            }
        )

    def result(self) -> xr.Dataset:
        """Return all records as one dataset."""
        dims: dict[str, tuple[str, ...]] = {
            "projection": ("time", "concept"),
            "singular_value": ("time", "concept"),
            "overlap": ("time", "matrix", "k"),
        }
        columns = {
            name: np.array([row[name] for row in self._rows]) for name in self._rows[0]
        }
        data = xr.Dataset(
            {
                name: (dims.get(name, ("time",)), values)
                for name, values in columns.items()
                if name not in ("time", "iteration")
            },
            coords={
                "time": columns["time"],
                "iteration": ("time", columns["iteration"]),
                "concept": np.arange(1, len(self.basis.sigma) + 1),
                "matrix": list(self.directions),
                "k": self.ks,
            },
        )
        return data.assign(sigma=("concept", to_numpy(self.basis.sigma).astype(float)))


def with_theory(data: xr.Dataset, objective: Objective, delta: float) -> xr.Dataset:
    """Return the records with half-times, and with the closed form where it is known."""
    times = data.time.values
    series = data.projection.values.T
    sigma = data.sigma.values
    # A projection that ends below zero is no share of a concept: it has no half-time.
    last = np.where(series[:, -1] > 0, series[:, -1], np.nan)
    level = sigma if objective.loss == "square" else last
    data = data.assign(half_time=("concept", first_crossing(times, series, level / 2)))
    if objective.loss == "square" and objective.is_plain:
        data = data.assign(
            theory=(("time", "concept"), sigma * closed_form(sigma, delta, times))
        )
        if (np.log(sigma) + 2 * delta > math.log(2)).all():
            data = data.assign(theory_half_time=("concept", half_times(sigma, delta)))
    return _labelled(data)


_LABELS = {
    "projection": ("projection of the logits on the concept", "uᵢᵀ L vᵢ"),
    "singular_value": ("singular value of the logits", "σᵢ(L)"),
    "theory": ("closed form", "σᵢ aᵢ(t)"),
    "sigma": ("singular value of the centred support matrix", "σᵢ"),
    "complement_norm": ("norm of the logits outside the concepts", "‖L − UUᵀLVVᵀ‖"),
    "mixing_norm": ("norm of what mixes the concepts", "‖off-diagonal of UᵀLV‖"),
    "cosine": ("cosine of the logits with the centred support matrix", "cos(L, S̃)"),
    "overlap": ("overlap of the k leading directions", "‖UₖᵀQₖ‖²/k"),
    "logit_norm": ("norm of the logits", "‖L‖"),
    "loss": ("loss with its penalty", ""),
}


def _labelled(data: xr.Dataset) -> xr.Dataset:
    for name, (label, symbol) in _LABELS.items():
        if name in data:
            data[name].attrs.update(long_name=label, symbol=symbol)
    data.time.attrs.update(long_name="time of the flow", units="1")
    return data
