"""Similarities between representations of the same examples: CKA, SVCCA, PWCCA, neighbours.

Here rows are examples (tokens) and columns are features: activations or codes, not dictionaries.
The two sides may have different numbers of features.
"""

from __future__ import annotations

from typing import Any

from ...arrays import Array, namespace
from ...distances.pair import double, give, squares
from ...errors import ArgumentError, check_whole


def cka(X: Array, Y: Array, *, unbiased: bool = True) -> Any:
    """Linear centred kernel alignment between two representations.

    Parameters
    ----------
    X, Y
        Representations of the same n examples, (..., n, p) and (..., n, q), NumPy or PyTorch.
    unbiased
        Use the unbiased estimate of HSIC (needs n >= 4), which does not grow as n falls towards
        p; else the plain one, between 0 and 1.

    Returns
    -------
    float, or an array of shape (...)
        1 for equal representations. The unbiased form can be slightly negative.

    Raises
    ------
    ArgumentError
        If shapes do not fit, there are too few examples, or all examples are equal on one side.

    Notes
    -----
    Kornblith et al. (2019), equation 4; the unbiased HSIC is that of Song et al. (2012) as used by
    Nguyen, Raghu and Kornblith (2021), equation 3, here without any n x n matrix. Invariant to
    rotation and common scaling of the features and to adding a constant row.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((50, 4))
    >>> round(cka(X, 3 * X[:, ::-1]), 6)
    1.0
    """
    X, Y, argument = _examples(X, Y, minimum=4 if unbiased else 2)
    # The biased one up to a factor that the ratio cancels.
    hsic = _unbiased_hsic if unbiased else lambda X, Y: squares(X.mT @ Y)
    return give(hsic(X, Y) / namespace(X, Y).sqrt(hsic(X, X) * hsic(Y, Y)), argument)


def svcca(X: Array, Y: Array, *, variance: float = 0.99) -> Any:
    """Mean canonical correlation of the leading principal components of two representations.

    Parameters
    ----------
    X, Y
        Representations of the same n examples, (..., n, p) and (..., n, q), NumPy or PyTorch.
    variance
        Each side keeps the fewest principal components that explain this share of its variance.

    Returns
    -------
    float, or an array of shape (...)
        Between 0 and 1; the mean is over the smaller number of components.

    Raises
    ------
    ArgumentError
        If shapes do not fit, `variance` is not in (0, 1], or all examples are equal on one side.

    Notes
    -----
    Raghu et al. (2017). With n not much larger than the number of components the value is near 1
    whatever the data: look at a shuffled control.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((50, 4))
    >>> round(svcca(X, X @ np.diag([1.0, 2.0, 3.0, 4.0]), variance=1.0), 6)
    1.0
    """
    X, Y, argument = _examples(X, Y, minimum=2)
    xp = namespace(X, Y)
    (left, _, _, used_x), (right, _, _, used_y) = (
        _components(Z, variance) for Z in (X, Y)
    )
    correlations = xp.linalg.svdvals(left.mT @ right)
    smaller = xp.minimum(xp.sum(used_x, axis=-1), xp.sum(used_y, axis=-1))
    return give(xp.clip(xp.sum(correlations, axis=-1) / smaller, 0.0, 1.0), argument)


def pwcca(X: Array, Y: Array, *, variance: float = 1.0) -> Any:
    """Projection-weighted mean canonical correlation: directions count by how much of X they hold.

    Parameters
    ----------
    X, Y
        Representations of the same n examples, (..., n, p) and (..., n, q), NumPy or PyTorch. The
        weights are those of X, so that the measure is not symmetric.
    variance
        Share of variance kept on each side before; 1 drops only what is rounding.

    Returns
    -------
    float, or an array of shape (...)
        Between 0 and 1.

    Raises
    ------
    ArgumentError
        If shapes do not fit, `variance` is not in (0, 1], or all examples are equal on one side.

    Notes
    -----
    Morcos, Raghu and Bengio (2018), equations 1 to 3: ``alpha_i = sum_j |<h_i, x_j>|`` with h_i the
    canonical variates in X and x_j its features. The mean is over as many canonical directions as
    the smaller side has, so a Y of one dimension that lies within X scores 1.
    The code that the authors published normalises otherwise, so that it gives other values: .9521
    where this and the paper's formula give .9697.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((50, 4))
    >>> round(pwcca(X, X @ np.diag([1.0, 2.0, 3.0, 4.0])), 6)
    1.0
    """
    X, Y, argument = _examples(X, Y, minimum=2)
    xp = namespace(X, Y)
    (left, values, axes, used_x), (right, _, _, used_y) = (
        _components(Z, variance) for Z in (X, Y)
    )
    turns, correlations, _ = xp.linalg.svd(left.mT @ right, full_matrices=False)
    weights = xp.sum(xp.abs((turns.mT * values[..., None, :]) @ axes), axis=-1)
    smaller = xp.minimum(xp.sum(used_x, axis=-1), xp.sum(used_y, axis=-1))
    number = xp.arange(weights.shape[-1], device=weights.device)
    weights = xp.where(number < smaller[..., None], weights, 0.0)
    mean = xp.sum(weights * correlations, axis=-1) / xp.sum(weights, axis=-1)
    return give(xp.clip(mean, 0.0, 1.0), argument)


def mutual_neighbours(X: Array, Y: Array, *, k: int = 10) -> Any:
    """Share of the k nearest neighbours of an example that two representations have in common.

    Parameters
    ----------
    X, Y
        Representations of the same n examples, (..., n, p) and (..., n, q), NumPy or PyTorch.
    k
        Neighbours of each example, by the cosine of centred features; below n - 1.

    Returns
    -------
    float, or an array of shape (...)
        Mean over examples, between 0 and 1; k / (n - 1) by chance.

    Raises
    ------
    ArgumentError
        If shapes do not fit, `k` is out of range, or all examples are equal on one side.

    Notes
    -----
    M. Huh et al. 2024, *The platonic representation hypothesis*, "mutual nearest-neighbour metric".
    Of equally near neighbours the one with the smaller number counts. It needs n x n numbers.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((50, 4))
    >>> mutual_neighbours(X, 3 * X[:, ::-1])
    1.0
    """
    X, Y, argument = _examples(X, Y, minimum=3)
    check_whole("k", k, 1, X.shape[-2] - 2)
    xp = namespace(X, Y)
    shared = xp.sum(_nearest(X, k) * _nearest(Y, k), axis=(-2, -1))
    return give(shared / (k * X.shape[-2]), argument)


def _nearest(X: Array, k: int) -> Array:
    """Return (..., n, n) whether an example is one of the k nearest of another, as 0 or 1."""
    xp = namespace(X)
    size = xp.sqrt(xp.sum(X * X, axis=-1, keepdims=True))
    unit = X / xp.where(size > 0, size, xp.ones_like(size))
    itself = xp.eye(X.shape[-2], dtype=X.dtype, device=X.device)
    cosines = unit @ unit.mT - 4.0 * itself
    farthest = xp.sort(cosines, axis=-1, stable=False)[..., -k, None]
    nearer = cosines > farthest
    equal = xp.astype(cosines == farthest, X.dtype)
    places_left = k - xp.sum(xp.astype(nearer, X.dtype), axis=-1, keepdims=True)
    first = (equal > 0) & (xp.cumulative_sum(equal, axis=-1) <= places_left)
    return xp.astype(nearer | first, X.dtype)


def _examples(X: Array, Y: Array, *, minimum: int) -> tuple[Array, Array, Array]:
    """Both sides centred, as float64 stacks, beside X as it was given."""
    first, argument = double("X", X)
    second, other = double("Y", Y)
    namespace(argument, other)
    if tuple(argument.shape[:-1]) != tuple(other.shape[:-1]):
        raise ArgumentError(
            "X and Y must describe the same examples, shapes (..., n, p) and (..., n, q); "
            f"got {tuple(argument.shape)} and {tuple(other.shape)}."
        )
    if argument.shape[-2] < minimum:
        raise ArgumentError(
            f"at least {minimum} examples are needed; got {argument.shape[-2]}."
        )
    return _centred("X", first), _centred("Y", second), argument


def _centred(name: str, stack: Array) -> Array:
    xp = namespace(stack)
    centred = stack - xp.mean(stack, axis=-2, keepdims=True)
    largest = xp.max(xp.abs(centred), axis=(-2, -1))
    if not bool(xp.all(largest > 1e-14 * xp.max(xp.abs(stack), axis=(-2, -1)))):
        raise ArgumentError(
            f"all examples of {name} are equal: nothing can be correlated with it."
        )
    return centred / largest[..., None, None]


def _unbiased_hsic(X: Array, Y: Array) -> Array:
    """Unbiased HSIC up to 1 / (n (n - 3)); K and L are the linear kernels without diagonals."""
    xp = namespace(X, Y)
    n = X.shape[-2]
    diagonals = [xp.sum(side * side, axis=-1) for side in (X, Y)]
    # Centred columns sum to zero, so a full kernel's rows do, and only the diagonals remain.
    rows = xp.sum(diagonals[0] * diagonals[1], axis=-1)
    product = squares(X.mT @ Y) - rows
    sums = [-xp.sum(diagonal, axis=-1) for diagonal in diagonals]
    return product + sums[0] * sums[1] / ((n - 1) * (n - 2)) - 2.0 * rows / (n - 2)


def _components(X: Array, variance: float) -> tuple[Array, Array, Array, Array]:
    """SVD of centred examples whose components beyond the wanted variance are zero, and a mask."""
    if not 0 < variance <= 1:
        raise ArgumentError(f"variance must be in (0, 1]; got {variance}.")
    xp = namespace(X)
    left, values, axes = xp.linalg.svd(X, full_matrices=False)
    energy = values**2
    before = xp.cumulative_sum(energy, axis=-1) - energy
    rounding = max(X.shape[-2:]) * xp.finfo(X.dtype).eps * values[..., :1]
    is_used = (values > rounding) & (
        before < variance * xp.sum(energy, axis=-1, keepdims=True)
    )
    return (
        xp.where(is_used[..., None, :], left, 0.0),
        xp.where(is_used, values, 0.0),
        axes,
        is_used,
    )
