"""Codes as logits: how far two distributions over concepts are apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax

from ontogeny.arrays import Array, numpy_matrix
from ontogeny.errors import ArgumentError


@dataclass(frozen=True, eq=False)
class LogitComparison:
    """Codes Z compared with reference codes Z_ref; P and Q are their softmax over concepts.

    Parameters
    ----------
    mse
        Mean squared error between P_ref and Q, over rows and concepts.
    cross_entropy
        Mean over rows of H(P_ref, Q), in nats.
    kl
        Mean over rows of KL(P_ref ‖ Q), in nats.
    correlation
        Pearson correlation between all logits; 0 where one side is constant.
    logit_mse
        Mean squared error between the logits themselves.
    kl_stderr
        Standard error of `kl` over rows; 0 for a single row.
    """

    mse: float
    cross_entropy: float
    kl: float
    correlation: float
    logit_mse: float
    kl_stderr: float


def compare_logits(
    Z: Array, Z_ref: Array, *, temperature: float = 1.0
) -> LogitComparison:
    """Compare codes with reference codes as distributions over concepts and as numbers.

    Parameters
    ----------
    Z, Z_ref
        Codes (n, r), one row a token or text, concepts in the same order.
    temperature
        Both are divided by it before the softmax. Codes of unit variance (ICA) are logits as they
        are; codes on the scale of the activations (SVD, PCA) saturate it.

    Raises
    ------
    ArgumentError
        If shapes differ or the temperature is not positive.
    NonFiniteError
        If a code is NaN or infinite.

    Notes
    -----
    Bernas (2025), sec. 6.1, footnotes 40-43. KL is summed as ``P (e^d - 1 - d)`` with
    ``d = log Q - log P``, whose terms are never negative, so that it keeps its digits near zero.

    Examples
    --------
    >>> Z = np.array([[2.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
    >>> same = compare_logits(Z, Z)
    >>> same.kl, same.mse, same.correlation
    (0.0, 0.0, 1.0)
    >>> round(compare_logits(Z[:, ::-1], Z).kl, 3)
    1.203
    """
    first = numpy_matrix("Z", Z)
    second = numpy_matrix("Z_ref", Z_ref)
    if first.shape != second.shape:
        raise ArgumentError(
            f"Z and Z_ref must have the same shape (n, r); got {first.shape} and {second.shape}."
        )
    log_p = _log_shares(second, temperature)
    log_q = _log_shares(first, temperature)
    P = np.exp(log_p)
    Q = np.exp(log_q)
    d = log_q - log_p
    near = np.abs(d) < 1
    terms = np.where(near, P * (np.expm1(np.where(near, d, 0.0)) - d), Q - P - P * d)
    rows = np.maximum(terms, 0.0).sum(1)
    return LogitComparison(
        mse=float(np.mean((P - Q) ** 2)),
        cross_entropy=float(-(P * log_q).sum(1).mean()),
        kl=float(rows.mean()),
        correlation=float(np.clip((_unit(first) * _unit(second)).sum(), -1.0, 1.0)),
        logit_mse=float(np.mean((first - second) ** 2)),
        kl_stderr=float(rows.std(ddof=1) / len(rows) ** 0.5) if len(rows) > 1 else 0.0,
    )


def concept_shares(Z: Array, *, temperature: float = 1.0) -> np.ndarray:
    """Return the mean over rows of the softmax of codes Z (n, r): the share of each concept (r,).

    Examples
    --------
    >>> concept_shares(np.array([[0.0, 0.0], [np.log(3), 0.0]])).round(3)
    array([0.625, 0.375])
    """
    codes = numpy_matrix("Z", Z)
    return np.exp(_log_shares(codes, temperature)).mean(0)


def _log_shares(codes: np.ndarray, temperature: float) -> np.ndarray:
    if not (np.isfinite(temperature) and temperature > 0):
        raise ArgumentError(f"temperature must be above 0; got {temperature!r}.")
    return log_softmax(codes / temperature, axis=1)


def _unit(values: np.ndarray) -> np.ndarray:
    """Return the centred values at length 1; zero where they are constant up to rounding."""
    largest = np.abs(values).max()
    scaled = values / largest if largest > 0 else values
    centred = scaled - scaled.mean()
    length = np.linalg.norm(centred)
    return centred / length if length > 1e-14 * values.size**0.5 else 0.0 * values
