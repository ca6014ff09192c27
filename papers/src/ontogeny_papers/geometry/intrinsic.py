"""Intrinsic dimension from two nearest neighbours, with its error and what chance gives."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ontogeny.arrays import Array, numpy_matrix
from ontogeny.errors import ArgumentError, check_choice, check_whole

from .neighbour_ratios import (
    FEWEST,
    FLAT,
    METHODS,
    check_estimator,
    estimate,
    log_ratios,
    usable_logs,
)

if TYPE_CHECKING:
    import xarray as xr


ORTHOGONAL = 1e-4  # largest |cosine| between rows that counts as orthogonal
_SIMULATED = 400  # points of the sets that standard errors are simulated with, at most
_DIMENSIONS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)  # and their dimensions


class SpectrumOnlyWarning(UserWarning):
    """Rows are orthogonal: their distances depend on their norms alone."""


@dataclass(frozen=True)
class IntrinsicDimension:
    """A TwoNN estimate, its error, and the same estimate on points without structure.

    Attributes
    ----------
    value
        The dimension.
    stderr
        Its standard error: the relative spread of the estimate over simulated sets of as many
        points of about this dimension.
    null, null_sd
        Mean and standard deviation of the estimate on isotropic Gaussian points of the same
        shape; NaN where no null was asked for. It lies far below m where m is large.
    method
        ``"regression"``, ``"origin"``, ``"facco"`` or ``"likelihood"``.
    points
        Points used.
    duplicates
        Points dropped because they coincide with another (their nearest distance is 0); the
        neighbours of the others are taken without them.
    discard
        Share of the largest ratios that was left out.
    """

    value: float
    stderr: float
    null: float
    null_sd: float
    method: str
    points: int
    duplicates: int
    discard: float = 0.0


def two_nn(
    X: Array,
    method: str = "regression",
    *,
    discard: float = 0.0,
    n_draws: int = 20,
    random_state: int = 0,
) -> IntrinsicDimension:
    """Estimate the intrinsic dimension of points from mu = r2/r1, nearest-neighbour distances.

    Where points fill a d-dimensional manifold evenly, P(mu > t) = t^-d.

    Parameters
    ----------
    X
        Points (n, m), one a row (a dictionary's concepts are the rows of its transpose, as in
        ``components_``). Distances are taken in float64.
    method
        ``"regression"``: least squares of ``log(1 - (j - 0.5)/n)`` on ``log mu_(j)`` with an
        intercept (the report's Algorithm 4); ``"origin"``: the same line through the origin;
        ``"facco"``: the same with ``log(1 - j/n)``, as Facco et al. and scikit-dimension 0.5 have
        it, without the last ratio, where that is infinite; ``"likelihood"``: ``n / sum log mu``.
    discard
        Share of the largest ratios that is left out (the report's code leaves out 0.05).
        The likelihood is then that of the censored sample.
    n_draws
        Draws of the null, 0 for none.
    random_state
        Seed of the null.

    Raises
    ------
    ArgumentError
        If fewer than five points have a ratio, or more than half of the ratios are 1
        (orthonormal rows: PCA; points on a grid): the dimension is then undefined.
    NonFiniteError
        If `X` is not finite.

    Warns
    -----
    SpectrumOnlyWarning
        If the rows are orthogonal, as one step's SVD dictionary is: every distance then follows
        from two norms, and the number describes the spectrum and no manifold.

    References
    ----------
    Facco, d'Errico, Rodriguez and Laio, Scientific Reports 7 (2017); report, Algorithm 4.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(1000, 2)) @ np.ones((2, 20))
    >>> estimate = two_nn(X, n_draws=0)  # a line in 20 dimensions
    >>> bool(abs(estimate.value - 1) < 3 * estimate.stderr)
    True
    """
    X = numpy_matrix("X", X)
    check_estimator(method, discard)
    if check_whole("n_draws", n_draws, minimum=0) == 1:
        raise ArgumentError("n_draws must be 0 or at least 2; got 1.")
    X = X / (np.abs(X).max() or 1.0)  # squares of distances must not under- or overflow
    ratios, coincides = log_ratios(X)
    logs = usable_logs(ratios)
    duplicates = int(coincides.sum())
    if len(logs) < FEWEST:
        raise ArgumentError(
            f"X must hold at least {FEWEST} points with two neighbours at a distance; of "
            f"{len(X)} points {duplicates} coincide with another."
        )
    tied = int((logs < FLAT).sum())
    if 2 * tied > len(logs):  # of points from any density none is
        raise ArgumentError(
            f"the two nearest neighbours of {tied} of {len(logs)} points are equally far (as in an "
            "orthonormal dictionary, or on a grid): the intrinsic dimension is undefined."
        )
    _warn_if_orthogonal(X)
    value = float(estimate(logs[None], method, discard)[0])
    null = (
        two_nn_null(
            len(logs),
            X.shape[1],
            method,
            discard=discard,
            n_draws=n_draws,
            random_state=random_state,
        )
        if n_draws
        else np.full(2, np.nan)
    )
    return IntrinsicDimension(
        value=value,
        stderr=standard_error(value, len(logs), method, discard),
        null=float(null.mean()),
        null_sd=float(null.std(ddof=1)),
        method=method,
        points=len(logs),
        duplicates=duplicates,
        discard=discard,
    )


def two_nn_null(
    n: int,
    m: int,
    method: str = "regression",
    *,
    discard: float = 0.0,
    n_draws: int = 20,
    random_state: int = 0,
) -> np.ndarray:
    """Return estimates (n_draws,) on `n` isotropic Gaussian points in `m` dimensions.

    100 points in 768 dimensions give about 131 and not 768: with so few points the estimate
    cannot distinguish high dimensions.

    Examples
    --------
    >>> null = two_nn_null(100, 768, n_draws=40)
    >>> bool(110 < null.mean() < 150)
    True
    """
    check_estimator(method, discard)
    n = check_whole("n", n, minimum=FEWEST)
    m = check_whole("m", m)
    n_draws = check_whole("n_draws", n_draws)
    rng = np.random.default_rng(random_state)
    draws = [
        usable_logs(log_ratios(rng.standard_normal((n, m)))[0]) for _ in range(n_draws)
    ]
    return np.array([estimate(d[None], method, discard)[0] for d in draws])


def two_nn_calibrated(
    estimate: IntrinsicDimension,
    dims: np.ndarray | list[int],
    *,
    n_draws: int = 10,
    random_state: int = 0,
) -> xr.Dataset:
    """Return which Gaussian dimensions give an estimate like `estimate` at its number of points.

    TwoNN is too small where points are few for their dimension. For each dimension of `dims` the
    null is drawn, by the same method and `discard`; it is compatible where `estimate.value` lies
    within two standard deviations (of the null and the estimate together).

    Raises
    ------
    ArgumentError
        If `dims` are no whole numbers from 1 on, or `n_draws` is below 2.

    Returns
    -------
    xarray.Dataset
        ``expected(dimension)``, ``sd(dimension)``, ``compatible(dimension)``.

    Examples
    --------
    >>> X = np.random.default_rng(1).normal(size=(100, 20))
    >>> table = two_nn_calibrated(two_nn(X, n_draws=0), [5, 20, 60])
    >>> table.compatible.values.tolist()
    [False, True, False]
    """
    import xarray as xr

    argument = np.asarray(dims)
    if (
        argument.ndim != 1
        or not argument.size
        or (argument < 1).any()
        or (argument % 1 != 0).any()
    ):
        raise ArgumentError(f"dims must be whole numbers from 1 on; got {dims!r}.")
    n_draws = check_whole("n_draws", n_draws, minimum=2)
    dims = argument.astype(np.int64)
    draws = [
        two_nn_null(
            estimate.points,
            int(d),
            estimate.method,
            discard=estimate.discard,
            n_draws=n_draws,
            random_state=random_state,
        )
        for d in dims
    ]
    mean = np.array([d.mean() for d in draws])
    sd = np.array([d.std(ddof=1) for d in draws])
    near = np.abs(estimate.value - mean) <= 2 * np.hypot(sd, estimate.stderr)
    return xr.Dataset(
        {
            "expected": ("dimension", mean),
            "sd": ("dimension", sd),
            "compatible": ("dimension", near),
        },
        coords={"dimension": dims},
    )


def two_nn_blocks(
    X: Array,
    method: str = "regression",
    *,
    smallest: int = 32,
    discard: float = 0.0,
    random_state: int = 0,
) -> xr.Dataset:
    """Estimate the dimension on ever smaller disjoint blocks of the points (block analysis).

    On a manifold the estimate hardly depends on the size of the blocks; where noise adds
    dimensions at small scale, it falls as blocks get smaller and neighbours farther.

    Returns
    -------
    xarray.Dataset
        ``dimension(size)``: mean over the blocks; ``sd(size)`` between them (NaN for one block);
        ``blocks(size)``.

    References
    ----------
    Facco et al. (2017), Fig. 3.

    Examples
    --------
    >>> X = np.random.default_rng(0).uniform(size=(256, 2))
    >>> two_nn_blocks(X).size.values.tolist()
    [256, 128, 64, 32]
    """
    import xarray as xr

    X = numpy_matrix("X", X)
    check_choice("method", method, METHODS)
    if not FEWEST <= check_whole("smallest", smallest) <= len(X):
        raise ArgumentError(
            f"smallest must lie between {FEWEST} and the number of points {len(X)}; got {smallest}."
        )
    order = np.random.default_rng(random_state).permutation(len(X))
    sizes = [len(X) // 2**k for k in range(64) if len(X) // 2**k >= smallest]
    rows = []
    for size in sizes:
        blocks = [order[i : i + size] for i in range(0, len(X) - size + 1, size)]
        result = np.array(
            [two_nn(X[b], method, discard=discard, n_draws=0).value for b in blocks],
            dtype=float,
        )
        rows.append(
            (
                result.mean(),
                result.std(ddof=1) if len(result) > 1 else np.nan,
                len(result),
            )
        )
    mean, sd, count = (np.array(column) for column in zip(*rows, strict=True))
    return xr.Dataset(
        {"dimension": ("size", mean), "sd": ("size", sd), "blocks": ("size", count)},
        coords={"size": sizes},
    )


def orthogonal_rows(X: np.ndarray) -> bool:
    """Return whether all rows are orthogonal: then their distances hold nothing but their norms."""
    norms = np.linalg.norm(X, axis=1)
    if len(X) > X.shape[1] or not (norms > 0).all():
        return False
    cosines = (X / norms[:, None]) @ (X / norms[:, None]).T
    np.fill_diagonal(cosines, 0.0)
    return bool(np.abs(cosines).max() < ORTHOGONAL)


def _warn_if_orthogonal(X: np.ndarray) -> None:
    if orthogonal_rows(X):
        warnings.warn(
            "the rows of X are orthogonal (as one step's SVD dictionary is): their distances "
            "follow from their norms, so the estimate describes the spectrum and no manifold.",
            SpectrumOnlyWarning,
            stacklevel=3,
        )


def standard_error(value: float, points: int, method: str, discard: float) -> float:
    """Return the spread of the estimate over sets of `points` of about the dimension `value`.

    Neighbouring points share their distances, so the ratios are not independent and resampling
    them gives errors that are too small (by 40 % at 200 points in three dimensions).
    """
    size = min(points, _SIMULATED)
    dims = np.array(_DIMENSIONS)
    nearest = int(dims[np.argmin(np.abs(np.log(dims) - np.log(max(value, 1.0))))])
    return (
        value
        * _relative_spread(size, nearest, method, discard)
        * (size / points) ** 0.5
    )


@cache
def _relative_spread(n: int, d: int, method: str, discard: float) -> float:
    draws = two_nn_null(n, d, method, discard=discard, n_draws=100, random_state=n)
    return float(draws.std(ddof=1) / draws.mean())
