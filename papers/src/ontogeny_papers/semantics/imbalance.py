"""STEP imbalance: half of the classes have R examples each, the others one, in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ontogeny.arrays import numpy_matrix
from ontogeny.errors import ArgumentError, check_choice, check_whole

REWEIGHTINGS = ("none", "paper", "equal-rates")
_LARGEST = 10**9  # entries of a dense matrix


@dataclass(frozen=True, eq=False)
class StepImbalance:
    """The support matrix of STEP-imbalanced one-hot data and its factors.

    Parameters
    ----------
    S
        One-hot support (V, m), m = (R + 1) V/2; the first V/2 words are the majorities.
    S_centred
        S minus its column means.
    U
        Left singular vectors (V, V − 1).
    sigma
        Singular values (V − 1,): sqrt(R) for V/2 − 1 differences of majorities,
        sqrt((R + 1)/2) for majorities against minorities, 1 for V/2 − 1 differences of minorities.
    V
        Right singular vectors (m, V − 1).
    kind
        ``"majority"``, ``"between"`` or ``"minority"`` for each concept (V − 1,).
    ratio
        R.
    """

    S: np.ndarray
    S_centred: np.ndarray
    U: np.ndarray
    sigma: np.ndarray
    V: np.ndarray
    kind: np.ndarray
    ratio: int

    def reweighting(self, rule: str = "equal-rates") -> np.ndarray:
        """Return ω (m,) for the weighted loss (1/2) ‖(S̃ − W H) Ω‖².

        ``"equal-rates"``: R^(−1/4) for majority examples, which makes all concepts learned
        together. ``"paper"``: R^(−1/2), as printed in App. D.1; gradient descent on the weighted
        loss then learns the minorities first. ``"none"``: ones. Minority examples weigh 1.

        To train with it: ``train_ufm(S_centred, d, pi=omega**2)``, whose time runs
        ``m / sum(omega**2)`` times as fast as that of the weighted loss.

        Raises
        ------
        ArgumentError
            If the rule is unknown.

        Examples
        --------
        >>> step_imbalance(4, 16).reweighting("equal-rates")[[0, -1]]
        array([0.5, 1. ])
        """
        check_choice("rule", rule, REWEIGHTINGS)
        power = {"none": 0.0, "equal-rates": -0.25, "paper": -0.5}[rule]
        majority = np.arange(self.S.shape[1]) < self.ratio * len(self.S) // 2
        return np.where(majority, float(self.ratio) ** power, 1.0)


def step_imbalance(V: int, R: int) -> StepImbalance:
    """Return the STEP-imbalanced support matrix of `V` words and ratio `R` with its exact factors.

    Parameters
    ----------
    V
        Number of words (classes), even, at least 2.
    R
        Imbalance ratio: contexts (examples) of each of the V/2 majorities, at least 1; each
        minority has one.

    Returns
    -------
    StepImbalance
        ``.S``, ``.S_centred``, ``.U``, ``.sigma``, ``.V``, ``.kind`` and ``.reweighting``.

    Raises
    ------
    ArgumentError
        If V is odd or below 2, or R is no whole number of at least 1.

    Notes
    -----
    Zhao and Thrampoulidis 2025, App. A.4 and D.1, with the two slips of the printed factors
    repaired: the majority rows of V need 1/sqrt(R), and the last V/2 − 1 singular values are 1.
    The basis F of differences within a group is the discrete cosine basis (any other serves).

    Examples
    --------
    >>> step = step_imbalance(4, 9)
    >>> step.sigma
    array([3.        , 2.23606798, 1.        ])
    >>> bool(np.allclose(step.U * step.sigma @ step.V.T, step.S_centred))
    True
    """
    V = check_whole("V", V, 2)
    R = check_whole("R", R)
    if V * (V // 2) * (R + 1) > _LARGEST:
        raise ArgumentError(
            f"V and R must make a matrix of at most {_LARGEST} entries, V · V/2 · (R + 1); "
            f"got V={V} and R={R}."
        )
    if V % 2:
        raise ArgumentError(
            f"V must be even, half majorities and half minorities; got {V}."
        )
    half = V // 2
    F = _cosine_basis(half)
    counts = np.repeat([R, 1], half)
    S = np.repeat(np.eye(V), counts, axis=1)
    U = np.zeros((V, V - 1))
    U[:half, : half - 1] = F
    U[half:, half:] = F
    U[:half, half - 1] = -math.sqrt(1 / V)
    U[half:, half - 1] = math.sqrt(1 / V)
    sigma = np.repeat(
        [math.sqrt(R), math.sqrt((R + 1) / 2), 1.0], [half - 1, 1, half - 1]
    )
    right = np.zeros((len(S[0]), V - 1))
    right[: half * R, : half - 1] = np.repeat(F, R, axis=0) / math.sqrt(R)
    between = math.sqrt(2 / ((R + 1) * V))
    right[: half * R, half - 1] = -between
    right[half * R :, half - 1] = between
    right[half * R :, half:] = F
    kind = np.repeat(["majority", "between", "minority"], [half - 1, 1, half - 1])
    return StepImbalance(S, S - S.mean(axis=0), U, sigma, right, kind, int(R))


def loss_growth_rates(S_centred: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """Return the rates at which gradient descent on (1/2) ‖(S̃ − W H) Ω‖² learns from near zero.

    These are the singular values of S̃ Ω², because the gradient holds Ω twice, and not those of
    S̃ Ω as App. D.1 takes them to be.

    Parameters
    ----------
    S_centred
        Centred support matrix (V, m).
    omega
        Weights of the contexts (m,), not negative.

    Raises
    ------
    ArgumentError
        If the shapes do not fit, or a weight is negative.

    Examples
    --------
    >>> step = step_imbalance(4, 16)
    >>> loss_growth_rates(step.S_centred, step.reweighting("equal-rates"))[:3].round(3)
    array([1., 1., 1.])
    >>> loss_growth_rates(step.S_centred, step.reweighting("paper"))[:3].round(3)
    array([1.   , 0.729, 0.25 ])
    """
    S = numpy_matrix("S_centred", S_centred)
    weights = numpy_matrix("omega", omega, ndim=1)
    if weights.shape != (S.shape[1],) or (weights < 0).any():
        raise ArgumentError(
            f"omega must hold {S.shape[1]} weights, one for each context, none negative; "
            f"its shape is {weights.shape}."
        )
    return np.linalg.svd(S * weights**2, compute_uv=False)


def _cosine_basis(n: int) -> np.ndarray:
    """Return the DCT-II without its first vector: (n, n − 1), orthonormal, orthogonal to ones."""
    place = np.arange(n)[:, None] + 0.5
    frequency = np.arange(1, n)
    return math.sqrt(2 / n) * np.cos(np.pi * place * frequency / n)
