"""NumPy arrays and PyTorch tensors, handled by one code.

The packages that know arrays only are written once against the array API standard; ``namespace``
gives the functions of the kind of an argument, ``matrix`` checks an argument.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from array_api_compat import array_namespace, is_numpy_array, is_torch_array
from numpy.typing import ArrayLike

from .errors import ArgumentError, NonFiniteError

# Numpy.ndarray or torch.Tensor; results are of the kind of the input.
Array: TypeAlias = Any


def is_array(value: object) -> bool:
    """Return whether `value` is a NumPy array or a PyTorch tensor.

    Examples
    --------
    >>> is_array(np.ones(2)), is_array([1.0, 1.0])
    (True, False)
    """
    return is_numpy_array(value) or is_torch_array(value)


def namespace(*arrays: Array) -> Any:
    """Return the array-API namespace that all `arrays` share.

    Raises
    ------
    ArgumentError
        If NumPy arrays and tensors are mixed, or an argument is neither.

    Examples
    --------
    >>> namespace(np.ones(2)).__name__
    'array_api_compat.numpy'
    """
    for array in arrays:
        if not is_array(array):
            raise ArgumentError(
                f"expected a NumPy array or a PyTorch tensor; got {type(array).__name__}."
            )
    try:
        return array_namespace(*arrays)
    except TypeError:
        kinds = ", ".join(sorted({type(a).__name__ for a in arrays}))
        raise ArgumentError(
            f"arrays must all be NumPy or all be PyTorch; got {kinds}."
        ) from None


def numbers(name: str, values: ArrayLike) -> np.ndarray:
    """Return values as a float64 array, or refuse what holds no numbers.

    Examples
    --------
    >>> numbers("values", [1, 2])
    array([1., 2.])
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name} must be an array of numbers; got {type(values).__name__}."
        ) from None


def on_host(array: Array) -> Array:
    """Return `array` in the memory of the CPU, a tensor without its gradient history.

    Examples
    --------
    >>> on_host(np.arange(3))
    array([0, 1, 2])
    """
    return array.detach().cpu() if is_torch_array(array) else array


def to_numpy(array: Array) -> np.ndarray:
    """Return `array` as a NumPy array on the CPU, without its gradient history.

    Examples
    --------
    >>> to_numpy(np.arange(3))
    array([0, 1, 2])
    """
    return on_host(array).numpy() if is_torch_array(array) else np.asarray(array)


def matrix(
    name: str, value: Array, *, ndim: int | None = 2, finite: bool = True
) -> Array:
    """Return `value` if it is a finite floating-point array with the right number of dimensions.

    `ndim` -1 means at least 2, None any number. Lists and integer arrays become float64 NumPy
    arrays; half precision becomes float32.

    Raises
    ------
    ArgumentError
        If the number of dimensions is wrong, or the array is empty or not numeric.
    NonFiniteError
        If it holds NaN or infinity and `finite` is set.

    Examples
    --------
    >>> matrix("A", [[1, 2], [3, 4]]).dtype
    dtype('float64')
    """
    array = value if is_array(value) else numbers(name, value)
    layout = str(getattr(array, "layout", "torch.strided"))
    if layout != "torch.strided":
        raise ArgumentError(f"{name} must be dense; got {layout}. Use '.to_dense()'.")
    xp = namespace(array)
    if not xp.isdtype(array.dtype, "real floating"):
        if not xp.isdtype(array.dtype, ("integral", "bool")):
            raise ArgumentError(
                f"{name} must hold real numbers; its dtype is {array.dtype}."
            )
        array = xp.astype(array, xp.float64)
    elif xp.finfo(array.dtype).bits < 32:
        array = xp.astype(array, xp.float32)
    right = ndim is None or (array.ndim >= 2 if ndim == -1 else array.ndim == ndim)
    if not right or 0 in tuple(array.shape):
        count = {-1: "at least 2 ", None: ""}.get(ndim, f"{ndim} ")
        raise ArgumentError(
            f"{name} must have {count}dimensions, none of them empty; "
            f"its shape is {tuple(array.shape)}."
        )
    if finite:
        check_finite(name, array)
    return array


def numpy_matrix(name: str, value: Array, *, ndim: int | None = 2) -> np.ndarray:
    """Return what `matrix` returns as a float64 NumPy array of its own, on the CPU.

    Examples
    --------
    >>> numpy_matrix("A", [[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    """
    return to_numpy(matrix(name, value, ndim=ndim)).astype(np.float64)


def check_finite(name: str, array: Array) -> None:
    """Check that all entries of a floating-point array are numbers. A device is waited for once.

    Raises
    ------
    NonFiniteError
        If it holds NaN or infinity.

    Examples
    --------
    >>> check_finite("A", np.array([1.0, np.nan]))
    Traceback (most recent call last):
    ontogeny.errors.NonFiniteError: A holds 1 NaN or infinite values of 2.
    """
    xp = namespace(array)
    if 0 in tuple(array.shape):
        return
    # NaN goes through; no copy of the array.
    ends = xp.stack([xp.min(array), xp.max(array)])
    if not bool(xp.all(xp.isfinite(ends))):
        count = int(xp.sum(xp.astype(~xp.isfinite(array), xp.int64)))
        raise NonFiniteError(
            f"{name} holds {count} NaN or infinite values of {int(np.prod(tuple(array.shape)))}."
        )
