"""Two stacks of dictionaries and everything that several distances read of them.

Each factorisation is computed when it is first asked for and kept, so that one comparison by
thirteen measures costs two thin SVDs and a few small ones. All arithmetic is in float64 on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from ..arrays import Array, check_finite, matrix, namespace, on_host
from ..errors import ArgumentError, NonFiniteError
from .matching import assignments, picked

_LARGEST = 1e70
_SMALLEST = 1e-100
_SAME = (
    "the same shape (..., m, r), because their columns are compared one with another "
    "(only matrix-log, grassmann and bures compare different numbers of concepts)"
)


@dataclass(eq=False)
class Factors:
    """A stack of dictionaries (k, m, r) with its norms and thin SVD, each computed once.

    `floor` is the machine precision of the argument's dtype: what is below it in relation
    to the largest singular value is no direction but rounding.
    """

    stack: Array
    floor: float

    @cached_property
    def svd(self) -> tuple[Array, Array, Array]:
        """Left vectors (k, m, q), singular values (k, q), right vectors (k, q, r)."""
        return tuple(namespace(self.stack).linalg.svd(self.stack, full_matrices=False))

    @cached_property
    def lengths(self) -> Array:
        """Lengths of the columns (k, r); a column shorter than 1e-100 counts as zero."""
        xp = namespace(self.stack)
        length = xp.sqrt(xp.sum(self.stack * self.stack, axis=-2))
        return xp.where(length > _SMALLEST, length, xp.zeros_like(length))

    @cached_property
    def squares(self) -> Array:
        """Squared Frobenius norms (k,)."""
        return squares(self.stack)

    def ranked(self, tolerance: float | None) -> Array:
        """Mask (k, q) of the singular values above `tolerance` times the largest one."""
        xp = namespace(self.stack)
        values = self.svd[1]
        if tolerance is None:
            tolerance = max(self.stack.shape[-2:]) * self.floor
        return (values > tolerance * values[..., :1]) & (values > xp.zeros_like(values))


@dataclass(eq=False)
class Pair:
    """Two stacks of dictionaries, compared member by member."""

    first: Factors
    second: Factors

    def __post_init__(self) -> None:
        self.xp = namespace(self.first.stack, self.second.stack)

    @cached_property
    def difference(self) -> Array:
        """W - V, exact before rounding, so that no norm of it cancels."""
        return self.first.stack - self.second.stack

    @cached_property
    def difference_squares(self) -> Array:
        """Squared Frobenius norms of W - V (k,)."""
        return squares(self.difference)

    @cached_property
    def difference_spectrum(self) -> Array:
        """Singular values of W - V (k, q), in falling order.

        Where the smallest is above a thousandth of the largest, the r x r Gram matrix gives them
        to 1e-12 in a third of the time.
        """
        xp = self.xp
        difference = self.difference
        if difference.shape[-2] >= 2 * difference.shape[-1]:
            squared = xp.flip(xp.linalg.eigvalsh(difference.mT @ difference), axis=-1)
            if bool(xp.all(squared[..., -1] > 1e-6 * squared[..., 0])):
                return xp.sqrt(squared)
        return xp.linalg.svdvals(difference)

    @cached_property
    def overlap(self) -> Array:
        """Inner products of the left singular vectors of W with those of V (k, q, q)."""
        return self.first.svd[0].mT @ self.second.svd[0]

    @cached_property
    def residual_first(self) -> Array:
        """What the column space of V leaves of W's left singular vectors (k, m, q)."""
        return self.first.svd[0] - self.second.svd[0] @ self.overlap.mT

    @cached_property
    def coordinates(self) -> Array:
        """V's left singular vectors [C, T] in a basis of the joint column space (k, 2q, q).

        The basis is W's left singular vectors and an orthonormal basis of what they leave of V's.
        C is the overlap; T, whose columns are as long as the sines of the angles between V's
        vectors and W's column space, is the triangle of that residual's QR factorisation, so that
        small sines have all their digits.
        """
        residual = self.second.svd[0] - self.first.svd[0] @ self.overlap
        return self.xp.concat([self.overlap, _triangle(residual)], axis=-2)

    @property
    def triangle(self) -> Array:
        """T, the lower half of the `coordinates` (k, q, q)."""
        return self.coordinates[..., self.overlap.shape[-1] :, :]

    @cached_property
    def inner(self) -> Array:
        """Inner products of the columns of W with those of V (k, r, r)."""
        return self.first.stack.mT @ self.second.stack

    @cached_property
    def cosines(self) -> Array:
        """Absolute cosines between the columns of W and those of V (k, r, r)."""
        return cosines(self.inner, self.first, self.second)

    @cached_property
    def matches(self) -> np.ndarray:
        """Column of V matched to every column of W so that the cosines' sum is largest (k, r)."""
        return assignments(self.cosines)

    @cached_property
    def matched(self) -> Array:
        """Absolute cosine of every column of W with its match (k, r)."""
        return picked(self.cosines, self.matches)


def cosines(inner: Array, first: Factors, second: Factors) -> Array:
    """Absolute cosines (k, r, r) from inner products; a zero column has 0 with everything."""
    xp = namespace(inner)
    lengths = first.lengths[..., :, None] * second.lengths[..., None, :]
    share = xp.abs(inner) / xp.where(lengths > 0, lengths, xp.ones_like(lengths))
    return xp.where(lengths > 0, xp.clip(share, 0.0, 1.0), xp.zeros_like(share))


def _triangle(stack: Array) -> Array:
    """R of the QR factorisation of every member, without Q (the array API cannot ask for that)."""
    if is_torch_array(stack):
        import torch

        return torch.linalg.qr(stack, mode="r")[1]
    return np.linalg.qr(stack, mode="r")


def squares(stack: Array) -> Array:
    """Sum of squares of every member of a stack (k, m, r)."""
    return namespace(stack).sum(stack * stack, axis=(-2, -1))


def double(name: str, value: Array) -> tuple[Array, Array]:
    """Return `value` as a checked float64 stack (k, m, r) of the CPU, beside the array as given.

    The factorisations are of matrices that are small for a GPU, and some GPUs have no float64. One
    copy, for which a GPU is waited for once, gives the same numbers wherever the array lives.
    """
    argument = matrix(name, value, ndim=-1, finite=False)
    xp = namespace(argument)
    wide = xp.astype(on_host(argument), xp.float64, copy=False)
    largest = max(float(xp.max(wide)), -float(xp.min(wide)))
    if not largest <= _LARGEST:  # or NaN, which both of them pass on
        check_finite(name, wide)
        raise ArgumentError(
            f"{name} holds numbers beyond {_LARGEST:g}, whose products overflow: divide what is "
            "compared by a common scale first."
        )
    return xp.reshape(wide, (-1, *argument.shape[-2:])), argument


def stacked(name: str, value: Array) -> tuple[Factors, Array]:
    """Return `value` as `Factors`, beside the array as it was given."""
    wide, argument = double(name, value)
    return Factors(wide, float(namespace(argument).finfo(argument.dtype).eps)), argument


def codes_of(name: str, value: Array, dictionary: Array) -> Array:
    """Return codes (..., n, r) that go with a dictionary as a stack in float64."""
    stack, raw = double(name, value)
    *lead, _, r = dictionary.shape
    if list(raw.shape[:-2]) != lead or raw.shape[-1] != r:
        raise ArgumentError(
            f"{name} must have shape {(*lead, 'n', r)} to go with W; got {tuple(raw.shape)}."
        )
    return stack


def pair_of(W: Array, V: Array, *, any_r: bool = False) -> tuple[Pair, Array]:
    """Check two stacks of dictionaries and return them as a `Pair`, with W as it was given.

    With `any_r`, for measures of W W^T and V V^T alone, the narrower one gets columns of zeros:
    they leave these products as they are.

    Raises
    ------
    ArgumentError
        If the shapes differ, NumPy arrays and tensors are mixed, or a number exceeds 1e70.
    NonFiniteError
        If either holds NaN or infinity.
    """
    first, argument = stacked("W", W)
    second, other = stacked("V", V)
    shapes = tuple(argument.shape), tuple(other.shape)
    if any_r and shapes[0][:-1] == shapes[1][:-1]:
        r = max(shape[-1] for shape in shapes)
        first = _widened(first, r)
        second = _widened(second, r)
    elif shapes[0] != shapes[1]:
        allowed = "the same number of features, (..., m, any r)" if any_r else _SAME
        raise ArgumentError(
            f"W and V must have {allowed}; got {shapes[0]} and {shapes[1]}."
        )
    return Pair(first, second), argument


def _widened(factors: Factors, r: int) -> Factors:
    """Return the stack with columns of zeros up to r columns."""
    stack = factors.stack
    missing = r - factors.stack.shape[-1]
    if not missing:
        return factors
    xp = namespace(stack)
    zeros = xp.zeros_like(stack[..., :1])
    return Factors(xp.concat([stack, *repeat(zeros, missing)], axis=-1), factors.floor)


def give(result: Array, argument: Array) -> Any:
    """Return one number as a float, a batch in the shape, kind and dtype of the argument.

    Raises
    ------
    NonFiniteError
        If a finite number of the batch does not fit in that dtype.
    """
    xp = namespace(result)
    if argument.ndim == 2:
        return float(result[0])
    if bool(
        xp.any(xp.isfinite(result) & (xp.abs(result) > xp.finfo(argument.dtype).max))
    ):
        raise NonFiniteError(
            f"a result does not fit in {argument.dtype}: pass float64 arrays."
        )
    return as_given(xp.reshape(result, tuple(argument.shape[:-2])), argument)


def give_stack(stack: Array, argument: Array) -> Array:
    """Return matrices (k, a, b) as (..., a, b), of the kind and dtype of the argument."""
    lead = tuple(argument.shape[:-2])
    return as_given(
        namespace(stack).reshape(stack, lead + tuple(stack.shape[-2:])), argument
    )


def as_given(result: Array, argument: Array) -> Array:
    """Return `result` in the dtype and on the device of `argument`."""
    result = namespace(result).astype(result, argument.dtype)
    return result.to(argument.device) if is_torch_array(result) else result


def measured(
    measure: Callable[..., Array],
    W: Array,
    V: Array,
    *,
    any_r: bool = False,
    **options: Any,
) -> Any:
    """Check W and V, apply `measure` to them as a `Pair`, and return what `give` makes of it."""
    pair, argument = pair_of(W, V, any_r=any_r)
    return give(measure(pair, **options), argument)
