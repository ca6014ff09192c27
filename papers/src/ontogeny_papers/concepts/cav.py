"""Concept activation vectors: a direction of activations, learnt from labelled examples."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from ontogeny.arrays import Array, to_numpy
from ontogeny.errors import ArgumentError, check_choice, check_number, check_whole
from ontogeny.units import Units

from .direction import Fits, adam, mean_differences
from .logistic import RidgeLogistic

SOLVERS = ("lbfgs", "adam", "mean-difference")
_ITERATIONS = {"lbfgs": 1000, "adam": 2500, "mean-difference": 1}


@dataclass(eq=False, repr=False)
class CAV(ClassifierMixin, BaseEstimator):
    r"""Concept activation vector: the normal of the plane that separates two classes.

    Minimises ``mean cross-entropy + l2 |v|^2`` over v (Definition 38 of the report with its
    penalty, sec. 8.2; B. Kim et al., *TCAV*, ICML 2018). The problem is convex; the default solves
    it to tolerance. The direction points to the larger of the two labels, ``classes_[1]``.

    Parameters
    ----------
    l2
        Penalty on the squared norm. scikit-learn's ``LogisticRegression`` has the same minimiser
        with ``C = 1 / (2 n l2)``. The activations are taken as they are: where they grow in
        training, the same penalty weighs less.
    intercept
        Whether the plane may miss the origin; not penalised. The report has none.
    solver
        ``"lbfgs"`` (to tolerance), ``"adam"`` (the report's schedule: from zero, `learning_rate`
        0.01, 2,500 steps on all samples, which need not end at the minimum) or
        ``"mean-difference"`` (difference of the class means; no penalty).
    tol
        For ``"lbfgs"``: bound on the gradient's norm where the curvature is at most one.
    max_iter
        Iterations; None means 1,000 for ``"lbfgs"`` and 2,500 for ``"adam"``.
    learning_rate
        For ``"adam"``.

    Attributes
    ----------
    direction_ : array of shape (m,)
        Unit vector, of the kind and dtype of the activations.
    coef_ : array of shape (1, m)
        The minimiser v itself.
    intercept_ : array of shape (1,)
        Its threshold, 0 without an intercept.
    classes_ : numpy.ndarray of shape (2,)
        The two labels, sorted.
    n_iter_ : int
    converged_ : bool
    n_features_in_ : int

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(200) % 2
    >>> A = rng.normal(size=(200, 5))
    >>> A[:, 2] += 4 * y - 2
    >>> cav = CAV(l2=0.3).fit(A, y)
    >>> (
    ...     int(abs(cav.direction_).argmax()),
    ...     round(float(np.linalg.norm(cav.direction_)), 6),
    ... )
    (2, 1.0)
    """

    l2: float = 0.3
    intercept: bool = False
    solver: str = "lbfgs"
    tol: float = 1e-7
    max_iter: int | None = None
    learning_rate: float = 0.01

    def fit(self, X: Array, y: Any) -> Self:
        """Fit to activations `X` (n, m) with two labels `y` (n,).

        Raises
        ------
        ArgumentError
            If an option is out of range, `y` does not hold two classes, or no direction is left:
            the minimiser is zero, as where all activations are equal.
        """
        A, signs = self._validate(X, y)
        fits = self._solve(A, signs[None], None)
        if not fits.coef.any():
            raise ArgumentError(
                "the activations hold no direction between the two classes: the best vector is "
                f"zero ({len(A)} samples, {A.shape[1]} features)."
            )
        if not fits.converged[0]:
            warnings.warn(
                f"CAV did not converge in {fits.n_iter[0]} iterations; raise max_iter or l2.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.coef_ = _give(fits.coef, X)
        self.direction_ = _give(fits.directions[0], X)
        self.intercept_ = _give(fits.intercept, X)
        self.n_iter_ = int(fits.n_iter[0])
        self.converged_ = bool(fits.converged[0])
        return self

    def decision_function(self, X: Array) -> Array:
        """Return (n,) ``a . v + b``: positive on the side of ``classes_[1]``."""
        check_is_fitted(self)
        A = validate_data(self, _plain(X), reset=False, dtype=(np.float64, np.float32))
        scores = A.astype(float) @ _plain(self.coef_)[0] + _plain(self.intercept_)[0]
        return _give(scores, X)

    def predict(self, X: Array) -> Array:
        """Return the label of each row; a tensor if `X` is one and the labels are numbers."""
        check_is_fitted(self)
        labels = self.classes_[(_plain(self.decision_function(X)) > 0).astype(int)]
        numeric = labels.dtype.kind in "biuf"
        return (
            torch.from_numpy(labels).to(X.device)
            if torch.is_tensor(X) and numeric
            else labels
        )

    def predict_proba(self, X: Array) -> Array:
        """Return (n, 2) probabilities of ``classes_``; meaningless for mean-difference."""
        p = expit(_plain(self.decision_function(X)).astype(float))
        return _give(np.column_stack([1 - p, p]), X)

    def permuted(
        self,
        X: Array,
        y: Any,
        n_draws: int = 100,
        random_state: int = 0,
        groups: Any = None,
    ) -> Fits:
        """Return random-concept CAVs: fits to the same activations with the labels shuffled.

        The shuffles depend on the labels, groups and `random_state` only: they are the same at
        every layer and checkpoint, so that tests over layers and steps can share them.

        Parameters
        ----------
        X, y
            Activations (n, m) and two labels (n,).
        n_draws
            Shuffles.
        random_state
            Their seed.
        groups
            (n,) the document of each row, where rows of a document are not independent. Labels are
            then shuffled as far as they are exchangeable, see `ontogeny.units.Units.shuffles`.

        Raises
        ------
        ArgumentError
            If `groups` has another length, or anything that `fit` refuses.

        Examples
        --------
        >>> A, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
        >>> CAV().permuted(A, y, n_draws=7).directions.shape
        (7, 3)
        """
        A, signs = clone(self)._validate(X, y)
        rng = np.random.default_rng(random_state)
        units = Units.of(groups, len(A))
        draws = units.shuffles(signs, rng, check_whole("n_draws", n_draws))
        return self._solve(A, np.stack([signs[rows] for rows in draws]), None)

    def resampled(
        self,
        X: Array,
        y: Any,
        n_draws: int = 20,
        random_state: int = 0,
        groups: Any = None,
    ) -> Fits:
        """Return refits to bootstrap resamples of the rows, drawn within each class.

        With `groups` (n,), whole groups are drawn: within each class where groups have one, and
        otherwise from all of them.
        """
        A, signs = clone(self)._validate(X, y)
        rng = np.random.default_rng(random_state)
        units = Units.of(groups, len(A))
        strata = _strata(signs, units)
        count = check_whole("n_draws", n_draws)
        weights = np.stack(
            [_bootstrap_weights(signs, units, strata, rng) for _ in range(count)]
        )
        return self._solve(A, np.repeat(signs[None], n_draws, 0), weights)

    def bootstrap_cosine(
        self,
        X: Array,
        y: Any,
        n_draws: int = 20,
        random_state: int = 0,
        groups: Any = None,
    ) -> np.ndarray:
        """Return (n_draws,) cosines of refits to resampled rows with the fit to all rows.

        Near 1 the direction is the data's; near 0 it is the sample's. `groups` as in `resampled`.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> y = np.arange(300) % 2
        >>> A = rng.normal(size=(300, 4)) + 3 * y[:, None]
        >>> bool(CAV(intercept=True).bootstrap_cosine(A, y).min() > 0.9)
        True
        """
        A, signs = clone(self)._validate(X, y)
        whole = self._solve(A, signs[None], None).directions[0]
        return self.resampled(X, y, n_draws, random_state, groups).directions @ whole

    def _validate(self, X: Array, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return float64 activations and signs (n,) of the labels; set ``classes_``."""
        self._check_options()
        if y is None:
            raise ValueError(
                "This CAV estimator requires y to be passed, but the target y is None"
            )
        A, y = validate_data(self, _plain(X), _plain(y), dtype=(np.float64, np.float32))
        check_classification_targets(y)
        kind = type_of_target(y)
        classes = np.unique(y)
        if len(classes) > 2:
            raise ArgumentError(
                "Only binary classification is supported. The type of the target is "
                f"{kind}; it has {len(classes)} classes."
            )
        if len(classes) < 2:
            raise ArgumentError(
                f"y must hold two classes; it holds one class only: {classes.tolist()}."
            )
        self.classes_ = classes
        return A.astype(float), np.where(y == classes[1], 1.0, -1.0)

    def _check_options(self) -> None:
        check_choice("solver", self.solver, SOLVERS)
        for name in ("l2", "tol", "learning_rate"):
            check_number(name, getattr(self, name))
        if self.max_iter is not None:
            check_whole("max_iter", self.max_iter)

    def _solve(
        self, A: np.ndarray, signs: np.ndarray, weights: np.ndarray | None
    ) -> Fits:
        """Return the fits for each row of `signs` (K, n) and `weights` (K, n)."""
        if self.solver == "mean-difference":
            return mean_differences(A, signs, weights, self.intercept)
        limit = self.max_iter or _ITERATIONS[self.solver]
        if self.solver == "adam":
            return adam(
                A, signs, weights, self.l2, self.intercept, self.learning_rate, limit
            )
        solver = RidgeLogistic(A, self.l2, self.intercept)
        solved = solver.solve_many(signs, weights, self.tol, limit)
        return Fits(*map(np.array, zip(*solved, strict=True)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _strata(signs: np.ndarray, units: Units) -> list[np.ndarray]:
    """Return the units of each class, or all of them where some have both classes."""
    if not units.constant(signs):
        return [np.arange(units.count)]
    return [np.flatnonzero(signs[units.first_rows] == sign) for sign in (-1, 1)]


def _bootstrap_weights(
    signs: np.ndarray, units: Units, strata: list[np.ndarray], rng: np.random.Generator
) -> np.ndarray:
    """Return how often a bootstrap over units draws each row (n,); no class is lost."""
    while True:
        times = np.zeros(units.count)
        for members in strata:
            times[members] = rng.multinomial(
                len(members), np.full(len(members), 1 / len(members))
            )
        weights = np.asarray(times[units.place])
        if all(weights[signs == sign].any() for sign in (-1, 1)):
            return weights


def _plain(value: Any) -> Any:
    """Return a tensor as NumPy (half precision as float32); other things as they are."""
    if not torch.is_tensor(value):
        return value
    half = value.is_floating_point() and value.element_size() < 4
    return to_numpy(value.float() if half else value)


def _give(array: np.ndarray, like: Any) -> Array:
    """Return `array` as the kind of floating-point array that `like` is."""
    dtype = getattr(like, "dtype", None)
    if isinstance(like, torch.Tensor):
        wide = dtype if dtype in (torch.float32, torch.float64) else torch.float32
        return torch.from_numpy(np.ascontiguousarray(array)).to(like.device, wide)
    return array.astype(np.float32) if dtype == np.float32 else array
