"""What one checkpoint says of a direction: how much of it there is, and how well it reads."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from scipy.stats import rankdata

from ...concepts.joint.snapshots import fixed_half
from ...quantities import Measured
from ...units import Units

RIDGE = 1e-3  # of the regression, against the mean variance of a feature
FITTED = ("means", "regression")


class Rows(NamedTuple):
    """Centred activations (n, m) of one layer, and the unit of texts of each row."""

    A: np.ndarray
    units: Units

    @classmethod
    def of(cls, A: np.ndarray, units: np.ndarray) -> Rows:
        """Return activations less their mean."""
        return cls(A - A.mean(axis=0, dtype=np.float64).astype(A.dtype), Units(units))


def shares(rows: Rows, unit: np.ndarray, random: np.ndarray) -> Measured:
    """Return the share of the variance along unit directions (r, m), and along random ones (k, m).

    Of random directions the part along each direction is taken off: where one has most of the
    variance, they would be that direction.

    Examples
    --------
    >>> rows = Rows.of(np.diag([3.0, 4.0, 0.0]), np.arange(3))
    >>> shares(rows, np.eye(3)[2:], np.eye(3)[:2]).value[1]
    array([0.])
    """
    squares = np.einsum("nm,nm->n", rows.A, rows.A, dtype=np.float64)
    whole = max(float(squares.sum()), 1e-30)
    along = (rows.A @ unit.T).astype(np.float64).T ** 2
    per_row = np.divide(along, squares, out=np.zeros_like(along), where=squares > 0)
    of_text, weights = rows.units.means(per_row, squares)
    chance = [
        ((rows.A @ apart(random, one).T).astype(np.float64) ** 2).sum(axis=0) / whole
        for one in unit
    ]
    return Measured(
        ("direction", along.sum(axis=1) / whole),
        of_text=(("direction", "text"), of_text),
        weights=("text", weights),
        nulls={"random": (("direction", "draw"), np.array(chance))},
    )


def apart(random: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """Return directions (k, m) of length 1 without their part along a unit direction (m,)."""
    return unit_rows(random - np.outer(random @ unit, unit).astype(random.dtype))


def relative_strength(codes: np.ndarray, others: np.ndarray) -> float:
    """Return how strong codes (n,) are over others; 0 where the others are 0.

    Examples
    --------
    >>> relative_strength(np.array([3.0, 4.0]), np.array([10.0, 0.0]))
    0.5
    """
    size = float(np.linalg.norm(others))
    return float(np.linalg.norm(codes)) / size if size > 0 else 0.0


def aucs(
    rows: Rows, unit: np.ndarray, random: np.ndarray, labels: np.ndarray
) -> Measured:
    """Return how well unit directions (r, m) tell rows with a label, and random ones (k, m).

    Parameters
    ----------
    labels
        (r, n) bool, for each direction.
    """
    scores = (rows.A @ unit.T).T.astype(np.float64)
    auc, of_row, weights = zip(*map(placements, scores, labels), strict=True)
    means, totals = zip(
        *(rows.units.means(*each) for each in zip(of_row, weights, strict=True)),
        strict=True,
    )
    pairs = zip(unit, labels, strict=True)
    chance = [auc_of(rows.A @ apart(random, one).T, y) for one, y in pairs]
    return Measured(
        ("direction", np.array(auc)),
        of_text=(("direction", "text"), np.stack(means)),
        weights=(("direction", "text"), np.stack(totals)),
        nulls={"random": (("direction", "draw"), np.array(chance))},
    )


def auc_of(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the AUC (k,) of each column of scores (n, k).

    Examples
    --------
    >>> auc_of(np.array([[1.0], [2.0], [3.0]]), np.array([False, True, True]))
    array([1.])
    """
    count = int(labels.sum())
    above = labels @ rankdata(scores, axis=0) - count * (count + 1) / 2
    return np.asarray(above / (count * (len(labels) - count)))


def placements(
    scores: np.ndarray, labels: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the AUC of scores (n,), what each row says of it (n,), and its weight (n,).

    The weighted mean of what rows say is the AUC, and its standard error that of DeLong et al.,
    Biometrics 44, 1988: the share of rows with the other label that a row is told from.

    Examples
    --------
    >>> auc, of_row, weights = placements(
    ...     np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, True, False, True])
    ... )
    >>> auc, round(float(of_row @ weights), 12)
    (0.75, 0.75)
    """
    count = np.array([(~labels).sum(), labels.sum()])
    above = rankdata(scores)
    for of in (labels, ~labels):
        above[of] -= rankdata(scores[of])
    told = np.where(labels, above / count[0], 1 - above / count[1])
    auc = float(told[labels].mean())
    return auc, auc + 2 * (told - auc), 0.5 / count[labels.astype(int)]


def agreements(
    rows: Rows, codes: np.ndarray, there: np.ndarray, random: np.ndarray
) -> Measured:
    """Return the correlation of codes (r, n) with those of the reference step (r, n).

    Parameters
    ----------
    random
        (2, k, n) codes of random directions here and there.
    """
    one, other = (_standardised(part) for part in (codes, there))
    value = (one * other).mean(axis=1)
    of_row = one * other - value[:, None] * ((one**2 + other**2) / 2 - 1)
    means, weights = rows.units.means(of_row)
    here, before = (_standardised(part) for part in random)
    return Measured(
        ("direction", value),
        of_text=(("direction", "text"), means),
        weights=("text", weights),
        nulls={"random": ("draw", (here * before).mean(axis=1))},
    )


def _standardised(codes: np.ndarray) -> np.ndarray:
    centred = codes - codes.mean(axis=1, keepdims=True)
    spread = centred.std(axis=1, keepdims=True)
    return np.asarray(centred / np.where(spread > 0, spread, 1.0))


def cosines(rows: Rows, unit: np.ndarray, aims: np.ndarray) -> dict[str, Any]:
    """Return cosines of unit directions (r, m) with those fitted here, and of two halves' fits.

    Parameters
    ----------
    aims
        (r, n) what each is fitted to: labels, or its codes at the reference step.

    Returns
    -------
    dict
        ``cosine`` and ``cosine_halves`` over (fitted, direction): with the difference of means,
        or the covariance with the aim, and with the regression. One text has no halves.
    """
    dims = ("fitted", "direction")
    whole = fitted(rows.A, aims)
    cosine = {"cosine": (dims, np.einsum("frm,rm->fr", whole, unit))}
    if rows.units.count < 2:
        return cosine
    half = fixed_half(rows.units.place)
    parts = [fitted(rows.A[some], aims[:, some]) for some in (half, ~half)]
    return cosine | {"cosine_halves": (dims, np.einsum("frm,frm->fr", *parts))}


def fitted(A: np.ndarray, aims: np.ndarray) -> np.ndarray:
    """Return unit directions (2, r, m) that rows (n, m) give of aims (r, n), as `FITTED` names."""
    A = A - A.mean(axis=0)
    aims = aims - aims.mean(axis=1, keepdims=True)
    along = (aims @ A).astype(np.float64)
    moment = (A.T @ A).astype(np.float64)
    moment.flat[:: len(moment) + 1] += max(
        RIDGE * np.trace(moment) / len(moment), 1e-12
    )
    solved = scipy.linalg.solve(moment, along.T, assume_a="pos", check_finite=False).T
    return np.stack([unit_rows(along), unit_rows(solved)])


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Return rows of length 1; a row of zeros stays."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1.0))
