"""What all extractors share: validation, the scale, the canonical form, scikit-learn's conventions.

Solvers see one matrix (n, m) as a PyTorch tensor, so that one code serves the CPU and the GPU.
NumPy arrays are wrapped without a copy and come back as NumPy arrays.
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from ..arrays import Array, matrix
from ..errors import ArgumentError, NonFiniteError, check_whole
from .scale import check_range, dtype_name, power_of_two, within_reach
from .solution import Solution
from .tensors import (
    as_tensor,
    check_room,
    check_seed,
    give,
    plain_tensors,
    precise,
    threads_for,
)

NORM_ROWS = 512


@dataclass(eq=False, repr=False)
class Extractor(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of all extractors: ``A ~ U W^T`` with codes U (n, r) and dictionary W (m, r).

    A subclass gives ``_solve`` (fit a matrix) and ``_encode`` (codes of new rows).

    Attributes
    ----------
    components_ : array of shape (r, m)
        The transposed dictionary: one concept a row.
    offset_ : array of shape (m,)
        What ``inverse_transform`` adds back (the mean, or zero).
    reconstruction_error_ : float
        Frobenius norm of ``A - inverse_transform(U)``.
    relative_error_ : float
        The same as a fraction of the Frobenius norm of A (0 where A is zero).
    n_iter_ : int
        Iterations of the solver (1 where there is nothing to iterate).
    converged_ : bool
        Whether the solver's stopping rule was met.
    n_features_in_ : int
        m.
    """

    # Which factor carries the scale of A: "codes", "dictionary" or "both" (a square root each).
    _scale_in: ClassVar[str] = "codes"

    _on_overflow: ClassVar[str] = "; give float64 activations"  # what then helps

    n_concepts: int = 100
    _: KW_ONLY
    random_state: Any = None

    def fit(
        self, X: Array, y: Any = None, *, init_dictionary: Array | None = None
    ) -> Self:
        """Fit to activations `X` (n, m).

        Parameters
        ----------
        X
            Activations, n samples by m features: NumPy array or PyTorch tensor.
        y
            Ignored; it is here by scikit-learn's convention.
        init_dictionary
            Dictionary (m, r) to start from, such as ``fitted.components_.T`` of a neighbouring
            checkpoint. Concept j then continues column j: the concepts keep its order. Zero
            columns start where the rest of the dictionary leaves most to explain.

        Raises
        ------
        ArgumentError
            If an argument is out of range, or the entries of `X` are too small or large for
            their dtype (largest entry outside 1e-30 to 1e30 in float32).
        NonFiniteError
            If `X` or `init_dictionary` holds NaN or infinity, or the fit leaves the dtype's range.
        """
        self.fit_transform(X, y, init_dictionary=init_dictionary)
        return self

    def fit_transform(
        self, X: Array, y: Any = None, *, init_dictionary: Array | None = None
    ) -> Array:
        """Fit to `X` and return its codes U (n, r); see ``fit``."""
        A = self._check(X, reset=True)
        start = (
            None if init_dictionary is None else self._check_start(init_dictionary, A)
        )
        with plain_tensors(), threads_for(A):
            solution = self._fit_scaled(A, start)
            self._keep(solution, A, like=X)
        if not self.converged_:
            warnings.warn(
                f"{type(self).__name__}: the fit did not converge in {self.n_iter_} iterations; "
                "raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,  # the caller: scikit-learn wraps this method once
            )
        return give(solution.codes, X)

    def transform(self, X: Array) -> Array:
        """Return the codes (n, r) of `X` (n, m) in the fitted dictionary.

        Each row is encoded by itself: by a non-negative or sparse solve, an assignment, a
        projection or an encoder, as the extractor's problem asks for.

        Raises
        ------
        ArgumentError
            If `X` has another number of features.
        NonFiniteError
            If `X` holds NaN or infinity, or codes do not fit the dtype of `X`.
        """
        check_is_fitted(self, "components_")
        A = self._check(X, reset=False)
        with plain_tensors(), threads_for(A):
            codes = self._encode_scaled(A)
        if not bool(torch.isfinite(codes).all()):
            raise NonFiniteError(
                f"codes of X leave the range of {dtype_name(A.dtype)}; multiply X by a constant."
            )
        return give(codes, X)

    def inverse_transform(self, U: Array) -> Array:
        """Return the reconstruction ``U W^T + offset`` (n, m) of codes `U` (n, r).

        Differentiable in `U` where it is a tensor.

        Raises
        ------
        ArgumentError
            If `U` has another number of columns.
        NonFiniteError
            If `U` holds NaN or infinity.
        """
        check_is_fitted(self, "components_")
        U = matrix("U", U)
        codes = as_tensor(U)
        components = self._fitted("components_", codes)
        if codes.shape[1] != components.shape[0]:
            raise ArgumentError(
                f"U must have {components.shape[0]} columns, one a concept; "
                f"its shape is {tuple(codes.shape)}."
            )
        return give(codes @ components + self._fitted("offset_", codes), U)

    def memory_needed(self, n: int, m: int, itemsize: int = 4) -> int:
        """Return the bytes that a fit to activations (n, m) holds at the least beside them.

        `itemsize` is that of the dtype: 4 for float32, 8 for float64. A fit that needs more than
        is free is refused before anything is computed. Beyond that a fit takes copies that depend
        on its path: see the table of the guide on costs.

        Examples
        --------
        >>> from ontogeny import concepts
        >>> concepts.make("convex-nmf", variant="multiplicative").memory_needed(
        ...     50_000, 768
        ... ) // 10**9
        10
        """
        return itemsize * max(self._held(n, m), self.n_concepts * (n + m))

    # -- what subclasses give ------------------------------------------------------------------

    def _held(self, n: int, m: int) -> int:
        """Return how many numbers a fit to (n, m) holds at once, beside A, codes and dictionary."""
        return 0

    def _solve(self, A: Tensor, start: Tensor | None) -> Solution:
        """Fit `A` (n, m), whose entries are of moderate size, from `start` (m, r)."""
        raise NotImplementedError

    def _encode(self, A: Tensor, W: Tensor) -> Tensor:
        """Return the codes of `A` (n, m), of moderate size and with the offset taken off."""
        raise NotImplementedError

    def _set_scale(self, scale: Tensor) -> None:
        """Take note of the power of two that the matrix was divided by."""

    # -- shared machinery ----------------------------------------------------------------------

    def _check(self, X: Any, *, reset: bool) -> Tensor:
        if not isinstance(X, torch.Tensor):
            if getattr(X, "dtype", None) == np.float16:
                X = np.asarray(X, dtype=np.float32)
            X = validate_data(
                self,
                X,
                reset=reset,
                dtype=[np.float64, np.float32],
                ensure_all_finite=False,
            )
            return as_tensor(matrix("X", X))
        X = matrix("X", X.detach())
        if reset:
            self.__dict__.pop("feature_names_in_", None)
            self.n_features_in_ = X.shape[1]
        elif X.shape[1] != self.n_features_in_:
            raise ArgumentError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return X

    def _check_start(self, W: Array, A: Tensor) -> Tensor:
        W = as_tensor(matrix("init_dictionary", W)).detach().to(A)
        shape = (A.shape[-1], self._check_n_concepts())
        if tuple(W.shape) != shape:
            hint = " Give components_.T." if tuple(W.shape) == shape[::-1] else ""
            raise ArgumentError(
                f"init_dictionary must have shape (m, r) = {shape}; "
                f"its shape is {tuple(W.shape)}.{hint}"
            )
        # Again: a cast to the dtype of A may overflow.
        return matrix("init_dictionary", W)

    def _check_n_concepts(self) -> int:
        return check_whole("n_concepts", self.n_concepts)

    def _generator(self) -> torch.Generator:
        """Return a generator on the CPU, so that every device draws the same numbers."""
        seed = int(check_seed(self.random_state).randint(2**31 - 1))
        return torch.Generator().manual_seed(seed)

    def _fit_scaled(self, A: Tensor, start: Tensor | None) -> Solution:
        """Solve at a moderate scale and give the scale back."""
        self._check_arguments()
        n, m = A.shape
        needed = self.memory_needed(n, m, A.element_size())
        check_room(type(self).__name__, needed, (n, m), A)
        divisor = power_of_two(check_range(A))
        scale = A.new_full((), divisor)
        self._set_scale(scale)
        in_dictionary, in_codes = self._split_scale(scale)
        if start is not None:
            start = within_reach(start / in_dictionary)
        solution = self._solve(A if divisor == 1 else A / scale, start)
        solution.dictionary = solution.dictionary * in_dictionary
        solution.codes = solution.codes.contiguous() * in_codes
        if solution.offset is not None:
            solution.offset = solution.offset * scale
        solution.state["scale"] = scale
        factors = solution.dictionary, solution.codes
        if not bool(
            torch.stack([torch.isfinite(factor).all() for factor in factors]).all()
        ):
            raise NonFiniteError(
                f"{type(self).__name__} left the range of {dtype_name(A.dtype)}"
                f" within {solution.n_iter} iterations{self._on_overflow}."
            )
        return solution

    def _check_arguments(self) -> None:
        self._check_n_concepts()
        check_seed(self.random_state)
        self._check_options()

    def _check_options(self) -> None:
        """Check the options of the subclass; raise ArgumentError."""

    def _split_scale(self, scale: Tensor) -> tuple[Tensor, Tensor]:
        """Return what of the scale goes to the dictionary and what to the codes."""
        one = torch.ones_like(scale)
        if self._scale_in == "both":
            return scale.sqrt(), scale.sqrt()
        return (one, scale) if self._scale_in == "codes" else (scale, one)

    def _encode_scaled(self, A: Tensor) -> Tensor:
        scale = self._fitted("_scale", A)
        if not 0 < float(scale) < float("inf"):
            raise NonFiniteError(
                f"the fitted dictionary is too large or small for {dtype_name(A.dtype)}; give X in "
                f"{dtype_name(as_tensor(self.components_).dtype)}."
            )
        self._set_scale(scale)
        W = self._fitted("components_", A).mT
        moderate = A / scale - self._fitted("offset_", A) / scale
        in_dictionary, in_codes = self._split_scale(scale)
        return self._encode(moderate, W / in_dictionary) * in_codes

    def _keep(self, solution: Solution, A: Tensor, like: Array) -> None:
        """Keep the solution as fitted attributes of the kind of `like`."""
        W = solution.dictionary
        U = solution.codes
        offset = W.new_zeros(len(W)) if solution.offset is None else solution.offset[0]
        # Copies: what is kept must not hold a larger array in memory, nor in a pickle.
        self.components_ = give(W.mT.clone(memory_format=torch.contiguous_format), like)
        self.offset_ = give(offset.clone(), like)
        # An earlier fit may have had other ones.
        for name in self.__dict__.pop("_state", ()):
            delattr(self, f"_{name}")
        for name, value in solution.state.items():
            setattr(self, f"_{name}", give(value.clone(), like))
        self._state = tuple(solution.state)
        scale = float(solution.state["scale"])
        residual, norm = _norms(A, U, W, offset, scale)
        self.reconstruction_error_ = residual * scale
        self.relative_error_ = residual / norm if norm > 0 else 0.0
        self.n_iter_ = solution.n_iter
        self.converged_ = solution.converged
        self.n_features_in_ = W.shape[0]

    def _fitted(self, name: str, like: Tensor) -> Tensor:
        return as_tensor(getattr(self, name)).to(like)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _norms(
    A: Tensor, U: Tensor, W: Tensor, b: Tensor, scale: float
) -> tuple[float, float]:
    """Return the norms of ``(A - U W^T - b) / scale`` and of ``A / scale``, by slices."""
    sums = precise(A.new_zeros(2))
    for rows, codes in zip(A.split(NORM_ROWS), U.split(NORM_ROWS), strict=True):
        rows = rows if scale == 1 else rows / scale
        rest = torch.addmm(rows, codes, W.mT, alpha=-1 / scale)
        rest -= b / scale
        norms = torch.stack(
            [torch.linalg.vector_norm(rest), torch.linalg.vector_norm(rows)]
        )
        sums = sums + precise(norms).square()
    residual, norm = sums.sqrt().tolist()
    return residual, norm
