"""Top principal components of a path, angles between column spaces, and of random subspaces."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from ontogeny.arrays import Array, matrix, namespace, numpy_matrix, to_numpy
from ontogeny.errors import ArgumentError, check_whole
from ontogeny.geometry.rank import ROUNDING, centred

from .nulls import gaussian_factor
from .snapshots import CHUNK, check_gram
from .snapshots import gram as displacement_gram


def principal_angles(W: Array, V: Array) -> Array:
    """Return the principal angles between the column spaces of `W` and `V`, smallest first.

    Small angles come from their sines and large ones from their cosines (A. Knyazev,
    M. Argentati, SIAM J. Sci. Comput. 23(6), 2002), so that 1e-9 rad is 1e-9 rad and not 0.

    Parameters
    ----------
    W, V
        Matrices (m, r) and (m, s) of one kind, float32 or float64; columns may be dependent.

    Returns
    -------
    Array
        Angles in radians, 0 to π/2, min(rank W, rank V) of them; of the kind and dtype of `W`.

    Raises
    ------
    ArgumentError
        If they differ in their number of rows, or one of them is zero.
    NonFiniteError
        If one holds NaN or infinity.

    Notes
    -----
    By chance: for independent, uniformly random subspaces of dimensions r ≤ s in R^m, the
    mean of the squared cosines is s/m; for r = 1 the squared cosine is Beta(s/2, (m−s)/2).

    (`scipy.linalg.subspace_angles` 1.17 mixes the two formulas up where small and large angles
    occur together, and then gives 1e-8 for 0.)

    Examples
    --------
    >>> import numpy as np
    >>> W = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    >>> V = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> np.round(np.degrees(principal_angles(W, V)), 6)
    array([ 0., 45.])
    """
    W = matrix("W", W)
    V = matrix("V", V)
    xp = namespace(W, V)
    _check_rows(W, V)
    dtype = xp.result_type(W, V)
    Q = _basis("W", W)
    R = _basis("V", V)
    if Q.shape[1] < R.shape[1]:
        Q, R = R, Q
    cosines = xp.linalg.svdvals(Q.T @ R)
    sines = xp.flip(xp.linalg.svdvals(R - Q @ (Q.T @ R)))
    small = cosines**2 >= 0.5
    angles = xp.where(
        small, xp.asin(xp.clip(sines, 0.0, 1.0)), xp.acos(xp.clip(cosines, 0.0, 1.0))
    )
    return xp.astype(angles, dtype)


def _basis(name: str, W: Array) -> Array:
    """Return an orthonormal float64 basis of the columns; their rank is that at W's precision."""
    xp = namespace(W)
    size = xp.max(xp.abs(W))
    if size == 0:
        raise ArgumentError(f"{name} is zero, so its columns span no subspace.")
    tolerance = xp.finfo(W.dtype).eps * max(W.shape)
    left, values, _ = xp.linalg.svd(
        xp.astype(W / size, xp.float64), full_matrices=False
    )
    return left[:, : int(xp.sum(values > tolerance * values[0]))]


def _check_rows(W: Array, V: Array) -> None:
    if W.shape[0] != V.shape[0]:
        raise ArgumentError(
            f"W and V must have equally many rows; their shapes are {tuple(W.shape)} and "
            f"{tuple(V.shape)}."
        )


def subspace_overlap(W: Array, V: Array) -> float:
    """Return the mean squared cosine of the principal angles between two column spaces.

    1 where the smaller lies in the larger, 0 where they are orthogonal. Independent uniformly
    random subspaces of dimensions r ≤ s in R^m have s/m on average.

    Parameters
    ----------
    W, V
        Bases (m, r) and (m, s) with orthonormal columns, as `principal_basis` gives them.

    Raises
    ------
    ArgumentError
        If they differ in their number of rows, or their columns are not orthonormal.

    Examples
    --------
    >>> subspace_overlap(np.eye(4)[:, :2], np.eye(4)[:, 1:3])
    0.5
    """
    W, V = (_orthonormal(name, value) for name, value in (("W", W), ("V", V)))
    _check_rows(W, V)
    return float(np.sum((W.T @ V) ** 2) / min(W.shape[1], V.shape[1]))


def _orthonormal(name: str, value: Array) -> np.ndarray:
    basis = numpy_matrix(name, value)
    if np.abs(basis.T @ basis - np.eye(basis.shape[1])).max() > 1e-4:
        raise ArgumentError(
            f"{name} must have orthonormal columns, as principal_basis gives them."
        )
    return basis


def random_subspace_angles(
    r: int, s: int, dimension: int, n_draws: int = 1000, random_state: int = 0
) -> np.ndarray:
    """Draw the principal angles between independent, uniformly random subspaces of R^m.

    Their squared cosines are the eigenvalues of a matrix-variate Beta, drawn from two small Wishart
    matrices at a cost that does not grow with m.

    Parameters
    ----------
    r, s
        Dimensions of the two subspaces, at least 1.
    dimension
        m, at least r + s.
    n_draws
        Number of draws.
    random_state
        Seed.

    Returns
    -------
    numpy.ndarray
        (n, min(r, s)) radians, smallest first.

    Raises
    ------
    ArgumentError
        If a number is out of range or not whole.

    References
    ----------
    P.-A. Absil, A. Edelman, P. Koev, On the largest principal angle between random subspaces,
    Linear Algebra and its Applications 414, 2006.

    Examples
    --------
    >>> angles = random_subspace_angles(3, 3, 16_384)
    >>> round(float(np.mean(np.cos(angles) ** 2) * 16_384), 1)
    3.0
    """
    low, high = sorted((check_whole("r", r), check_whole("s", s)))
    n_draws = check_whole("n_draws", n_draws)
    if check_whole("dimension", dimension) < r + s:
        raise ArgumentError(
            f"dimension must be at least r + s = {r + s}; got {dimension}."
        )
    rng = np.random.default_rng(random_state)
    inside = rng.standard_normal((n_draws, low, high))
    outside = gaussian_factor(low, dimension - high, n_draws, rng)
    A, B = (factor @ np.swapaxes(factor, 1, 2) for factor in (inside, outside))
    squares = np.stack(
        [eigh(a, a + b, eigvals_only=True)[::-1] for a, b in zip(A, B, strict=True)]
    )
    return np.arccos(np.sqrt(np.clip(squares, 0.0, 1.0)))


def principal_coefficients(
    gram: np.ndarray, k: int, end: int | None = None
) -> np.ndarray:
    """Return how the top principal components are made of the snapshots' displacements.

    Parameters
    ----------
    gram
        Displacement Gram matrix (T, T).
    k
        Number of components, at least 1.
    end
        Only the first `end` snapshots count (the prefix), at least 2; default all.

    Returns
    -------
    numpy.ndarray
        (end, k') with k' ≤ k; displacements (end, d) transposed times this is the basis (d, k').

    Raises
    ------
    ArgumentError
        If `k` or `end` is out of range.

    Examples
    --------
    >>> line = np.linspace(0, 1, 20)[:, None] * np.array([3.0, 4.0])
    >>> np.abs(line.T @ principal_coefficients(line @ line.T, k=1)).round(6).ravel()
    array([0.6, 0.8])
    """
    grams = check_gram(gram)
    if len(grams) < 2:
        raise ArgumentError(
            "the directions of a path need at least 2 snapshots; there is 1."
        )
    k = check_whole("k", k)
    end = check_whole("end", len(grams) if end is None else end, minimum=2)
    if end > len(grams):
        raise ArgumentError(
            f"end must be from 2 to {len(grams)}, the snapshots; got {end}."
        )
    values, vectors = np.linalg.eigh(centred(grams[:end, :end]))
    places = np.flatnonzero(values > ROUNDING * max(values[-1], np.finfo(float).tiny))[
        ::-1
    ][:k]
    vectors = vectors[:, places]
    # They sum to zero, so the mean drops out; exactly so, or a small component carries the first.
    return (vectors - vectors.mean(axis=0)) / np.sqrt(values[places])


def principal_basis(
    snapshots: Array, k: int, *, gram: np.ndarray | None = None, end: int | None = None
) -> np.ndarray:
    """Return the top principal components of a trajectory as an orthonormal basis.

    They come from the (T, T) Gram matrix in float64; the coordinates are read once, in slices.

    Parameters
    ----------
    snapshots
        A weight block at T steps, (T, ...); may be memory-mapped.
    k
        Number of components, at least 1.
    gram
        Its displacement Gram matrix (T, T), if known.
    end
        Only the first `end` snapshots count (the prefix), at least 2; default all.

    Returns
    -------
    numpy.ndarray
        (coordinates, k') float64 with orthonormal columns; k' < k where the path has fewer
        directions, 0 where nothing moves.

    Raises
    ------
    ArgumentError
        If `k` or `end` is out of range, or a shape is wrong.
    NonFiniteError
        If a value is NaN or infinite.

    Examples
    --------
    >>> line = np.linspace(0, 1, 20)[:, None] * np.array([3.0, 4.0])
    >>> principal_basis(line, k=2).shape
    (2, 1)
    """
    grams = displacement_gram(snapshots) if gram is None else check_gram(gram)
    if len(snapshots) != len(grams):
        raise ArgumentError(
            f"gram is of {len(grams)} snapshots; snapshots has {len(snapshots)}."
        )
    weights = principal_coefficients(grams, k, end)
    flat = snapshots[: len(weights)].reshape(len(weights), -1)
    basis = np.empty((flat.shape[1], weights.shape[1]))
    width = max(1, CHUNK // len(weights))
    for start in range(0, len(basis), width):
        chunk = to_numpy(flat[:, start : start + width]).astype(float)
        basis[start : start + width] = (chunk - chunk[:1]).T @ weights
    # Components far below the first come out slightly oblique: removed, leaving spans in order.
    oblique = np.linalg.cholesky(basis.T @ basis)
    return basis @ np.linalg.inv(oblique).T
