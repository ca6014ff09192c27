"""Where the cross-entropy ends: the ridge path and the direction it converges to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.optimize import minimize

from ontogeny.arrays import Array, matrix, numpy_matrix, to_numpy
from ontogeny.errors import ArgumentError, OntogenyError, check_number, check_whole

from .objectives import Objective, check_centred, check_support, make_objective


@dataclass(frozen=True, eq=False)
class MaxMargin:
    """What `max_margin_logits` found.

    Parameters
    ----------
    logits
        L^mm (V, m): it fulfils the constraints exactly.
    nuclear_norm
        Its sum of singular values.
    gap
        How far above the smallest possible it can be at most, relative: a dual bound.
    iterations
        Iterations done.
    """

    logits: np.ndarray
    nuclear_norm: float
    gap: float
    iterations: int


def max_margin_logits(
    S: Array, *, tolerance: float = 1e-4, max_iterations: int = 50_000
) -> MaxMargin:
    """Return L^mm, the logits of smallest nuclear norm that separate the support with margin 1.

    Within the support of a context all logits are equal, and every other word lies at least 1
    below them. Its direction is what the normalised logits of the cross-entropy converge to as
    the ridge penalty vanishes, for d ≥ V; it depends on the support only.

    Parameters
    ----------
    S
        Support matrix (V, m) of zeros and ones; small, for every iteration takes an SVD.
    tolerance
        Largest relative duality gap accepted.
    max_iterations
        Iterations after which to give up.

    Raises
    ------
    ArgumentError
        If S holds anything but 0 and 1, a context has no next word, or all have all words.
    OntogenyError
        If the gap is above `tolerance` after `max_iterations`.

    Notes
    -----
    Zhao and Thrampoulidis 2025, sec. 3.2, after Zhao et al. 2024 (NTP-SVM). Solved by the
    alternating direction method of multipliers: singular values are soft-thresholded, then every
    column is projected on its constraints, exactly (a sort a column). For one-hot labels the
    solution is S̃ itself (Thrampoulidis et al. 2022), whatever the imbalance.

    Examples
    --------
    >>> S = np.repeat(np.eye(3), [3, 1, 1], axis=1)
    >>> margin = max_margin_logits(S)
    >>> bool(np.allclose(margin.logits, S - S.mean(axis=0), atol=1e-3))
    True
    """
    check_number("tolerance", tolerance, above=True)
    check_whole("max_iterations", max_iterations)
    support = check_support(S)
    target = support - support.mean(axis=0)
    if not target.any():
        raise ArgumentError(
            "S has every word after every context, so nothing is separated."
        )
    rho = 1 / float(np.linalg.norm(target, 2))
    Z = target.copy()
    dual = np.zeros_like(target)
    best = math.inf
    for i in range(1, max_iterations + 1):
        L = _soft_threshold(Z - dual, 1 / rho)
        Z = _project(L + dual, support > 0)
        dual += L - Z
        if i % 25 == 0 or i == max_iterations:
            norm = float(np.linalg.norm(Z, "nuc"))
            best = min(best, _gap(norm, -rho * dual, support))
            if best <= tolerance:
                return MaxMargin(Z, norm, best, i)
    raise OntogenyError(
        f"the largest margin was not found in {max_iterations} iterations: relative gap "
        f"{best:.2g}, tolerance {tolerance:g}."
    )


def ridge_path(
    S_centred: Array,
    d: int,
    ridges: Sequence[float],
    *,
    P: Array | None = None,
    pi: Array | None = None,
    max_margin: Array | None = None,
    max_iterations: int = 20_000,
    random_state: int = 0,
) -> xr.Dataset:
    """Return the minimisers of the cross-entropy with a ridge penalty, from strong to vanishing.

    Each is found by L-BFGS from the one before, the first from a small random start. From the
    growth rate of the first concept upwards the minimiser is zero, whose cosines are NaN.

    Parameters
    ----------
    S_centred, d, P, pi
        As in `train_ufm`.
    ridges
        Penalties in the units of `train_ufm`, positive; they are taken from large to small.
    max_margin
        L^mm of `max_margin_logits` (V, m), to compare with.
    max_iterations
        Of L-BFGS at each penalty.
    random_state
        Seed of the start.

    Returns
    -------
    xarray.Dataset
        Along ``ridge``: ``cosine`` of the logits with S̃, ``max_margin_cosine``, ``logit_norm``,
        ``cross_entropy`` (without the penalty), ``gradient_norm`` relative to the penalty's own,
        ``projection(ridge, concept)`` u_iᵀ L v_i and ``sigma(concept)``.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or every ridge is so strong that the logits stay 0.

    Notes
    -----
    Zhao and Thrampoulidis 2025, sec. 3.2 (the paper's proxy L^mm for where gradient descent ends,
    and S̃ as a proxy for L^mm). The logits grow like log(1/ridge), so the direction converges
    slowly.

    Examples
    --------
    >>> S = np.repeat(np.eye(4), [4, 4, 1, 1], axis=1)
    >>> path = ridge_path(S - S.mean(axis=0), d=4, ridges=[1e-1, 1e-4])
    >>> bool(path.cosine[1] > path.cosine[0])
    True
    """
    S = check_centred("S_centred", numpy_matrix("S_centred", S_centred))
    penalties = np.sort(numpy_matrix("ridges", ridges, ndim=1))[::-1]
    if (penalties <= 0).any():
        raise ArgumentError(
            f"ridges must be positive; the smallest is {penalties[-1]:g}."
        )
    check_whole("d", d)
    check_whole("max_iterations", max_iterations)
    check_whole("random_state", random_state, 0)
    if P is not None:
        P = to_numpy(matrix("P", P))
    plain = make_objective(S, "cross_entropy", P, pi, 0.0)
    strongest = plain.growth_rates()[0]
    if penalties[-1] >= strongest:
        raise ArgumentError(
            f"ridges must go below {strongest:.3g}, where the logits begin to differ from 0; "
            f"the smallest is {penalties[-1]:g}."
        )
    if max_margin is not None:
        max_margin = to_numpy(matrix("max_margin", max_margin))
        if max_margin.shape != S.shape:
            raise ArgumentError(
                f"max_margin must have shape {S.shape}; got {max_margin.shape}."
            )
    minima = _minima(S, d, penalties, strongest, P, pi, max_iterations, random_state)
    U, sigma, Vt = np.linalg.svd(S, full_matrices=False)
    mask = sigma > 1e-6 * sigma[0]
    rows = []
    for weights, error in minima:
        W, H = _split(weights, S.shape, d)
        L = W @ H
        rows.append(
            {
                "cosine": _cosine(L, S),
                "max_margin_cosine": np.nan
                if max_margin is None
                else _cosine(L, max_margin),
                "logit_norm": float(np.linalg.norm(L)),
                "cross_entropy": plain.value(W, H),
                "gradient_norm": error,
                "projection": np.sum(U * (L @ Vt.T), axis=0)[mask],
            }
        )
    data = xr.Dataset(
        {
            name: (
                ("ridge", "concept") if name == "projection" else "ridge",
                [r[name] for r in rows],
            )
            for name in rows[0]
        },
        coords={"ridge": penalties, "concept": np.arange(1, int(mask.sum()) + 1)},
    )
    return data.assign(sigma=("concept", sigma[mask]))


def _minima(
    S: np.ndarray,
    d: int,
    penalties: np.ndarray,
    strongest: float,
    P: np.ndarray | None,
    pi: Array | None,
    max_iterations: int,
    random_state: int,
) -> Iterator[tuple[np.ndarray, float]]:
    """Give the minimiser at each penalty, and the norm of the gradient there, relative."""
    rng = np.random.default_rng(random_state)
    start = 0.1 * rng.standard_normal((len(S) + S.shape[1]) * d) / math.sqrt(d)
    point = start
    for ridge in penalties:
        objective = make_objective(S, "cross_entropy", P, pi, float(ridge))
        # Zero is the minimiser, and no gradient leads away from it.
        if ridge >= strongest:
            yield np.zeros_like(start), 0.0
            continue
        weights, error = _minimum(objective, point, d, max_iterations)
        yield weights, error
        # Concepts that a stronger penalty kept out are zero there, and no gradient leads away.
        point = weights + 0.1 * start


def _minimum(
    objective: Objective, point: np.ndarray, d: int, max_iterations: int
) -> tuple[np.ndarray, float]:
    """Return the minimiser near `point` and the norm of the gradient there, relative."""
    shape = objective.S.shape

    def value(x: np.ndarray) -> tuple[float, np.ndarray]:
        W, H = _split(x, shape, d)
        dW, dH = objective.gradient(W, H)
        return objective.value(W, H), np.concatenate([dW.ravel(), dH.ravel()])

    minimum = minimize(
        value,
        point,
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": max_iterations,
            "maxfun": 2 * max_iterations,
            "ftol": 0,
            "gtol": 1e-9,
        },
    )
    norm = float(np.linalg.norm(minimum.x))
    scale = max(objective.ridge * norm, 1e-300)
    return minimum.x, float(np.linalg.norm(value(minimum.x)[1])) / scale


def _split(
    x: np.ndarray, shape: tuple[int, int], d: int
) -> tuple[np.ndarray, np.ndarray]:
    words, contexts = shape
    return x[: words * d].reshape(words, d), x[words * d :].reshape(d, contexts)


def _cosine(L: np.ndarray, M: np.ndarray) -> float:
    norms = float(np.linalg.norm(L) * np.linalg.norm(M))
    return float(np.sum(L * M)) / norms if norms > 0 else np.nan


def _soft_threshold(M: np.ndarray, threshold: float) -> np.ndarray:
    U, s, Vt = np.linalg.svd(M, full_matrices=False)
    return (U * np.maximum(s - threshold, 0)) @ Vt


def _project(Y: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Return the nearest matrix whose support is level in a column and the rest 1 below it."""
    outside = np.sort(np.where(inside, -np.inf, Y + 1), axis=0)[::-1]
    finite = np.where(np.isfinite(outside), outside, 0.0)
    sums = np.sum(Y, axis=0, where=inside) + np.vstack(
        [0 * finite[:1], np.cumsum(finite, axis=0)]
    )
    levels = sums / (inside.sum(axis=0) + np.arange(len(Y) + 1)[:, None])
    # Words outside join the level one by one, highest first, as long as they stand above it.
    joined = np.sum(np.logical_and.accumulate(outside > levels[:-1], axis=0), axis=0)
    level = levels[joined, np.arange(Y.shape[1])]
    return np.where(inside, level, np.minimum(Y, level - 1))


def _gap(norm: float, Y: np.ndarray, support: np.ndarray) -> float:
    """Return how far `norm` lies above the bound that the multiplier `Y` gives, relative."""
    bound = -np.sum(Y, where=support == 0) / max(1.0, float(np.linalg.norm(Y, 2)))
    return float((norm - bound) / norm)
