"""The gradient flow of a two-layer linear model in closed form: how each concept is learned."""

from __future__ import annotations

from typing import Any

from ontogeny.arrays import Array, matrix, namespace
from ontogeny.errors import ArgumentError


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
