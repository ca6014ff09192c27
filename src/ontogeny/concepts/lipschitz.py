"""How much an extractor's answer moves when the activations move a little."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ..arrays import Array, matrix, to_numpy
from ..errors import ArgumentError, check_choice, check_number, check_whole
from .base import Extractor
from .checks import check_seed

__all__ = ["LocalLipschitz", "local_lipschitz"]

SMALLEST_RADIUS = 1e-12  # rounding of A to float64 is 1e-16 of it, a ten-thousandth of this


@dataclass(frozen=True)
class LocalLipschitz:
    """An empirical local Lipschitz constant: a lower bound of the true one (Def. 36).

    Parameters
    ----------
    value
        The largest ratio ``|f(A + E) - f(A)| / |E|`` found, in Frobenius norms.
    ratios
        One ratio for each direction.
    radius
        The size ``|E|`` of the perturbations.
    directions
        How the directions were drawn.
    output
        What f gives: ``"dictionary"``, ``"codes"`` or ``"reconstruction"``.
    n_iter
        Iterations of the fit at A, then of each perturbed fit.
    direction
        The direction (n, m) of the largest ratio, of norm 1: ``A + radius * direction`` gives it.
    """

    value: float
    ratios: np.ndarray
    radius: float
    directions: str
    output: str
    n_iter: tuple[int, ...]
    direction: np.ndarray = field(repr=False)


def local_lipschitz(
    extractor: Extractor,
    A: Array,
    *,
    relative_radius: float = 1e-4,
    n_directions: int = 8,
    directions: str = "gaussian",
    output: str = "dictionary",
    random_state: Any = 0,
) -> LocalLipschitz:
    """Perturb `A` in random directions, refit, and return how far the answer moved.

    A ratio that stays put as the radius shrinks speaks for a Lipschitz map; one that grows like
    1 / radius means a jump (another optimum, another number of iterations, other signs or order).
    A fixed iteration count and seed make the map a finite composition of smooth steps
    (report, sec. 8.6); a tolerance lets the number of iterations jump.

    Parameters
    ----------
    extractor
        Any extractor; it is cloned. Its `random_state` must be an integer.
    A
        Activations (n, m); they are taken in float64, so that rounding is not what is measured.
    relative_radius
        Norm of the perturbation against that of `A`; at least 1e-12, above rounding.
    n_directions
        Number of directions; the largest ratio is kept.
    directions
        ``"gaussian"`` (independent entries) or ``"rows"`` (one sample moves).
    output
        What is compared: ``"dictionary"``, ``"codes"`` or ``"reconstruction"``.
    random_state
        Seed of the directions.

    Raises
    ------
    ArgumentError
        If an argument is out of range, or A is zero.
    NonFiniteError
        If A holds NaN or infinity.

    References
    ----------
    Report, Def. 36 and sec. 8.6 (spec A8).

    Examples
    --------
    >>> import numpy as np
    >>> from ontogeny.concepts import make
    >>> A = np.diag([3.0, 2.0, 1.0])
    >>> found = local_lipschitz(make("svd", n_concepts=2), A, output="reconstruction")
    >>> 0.5 < found.value < 3
    True
    """
    check_choice("directions", directions, ("gaussian", "rows"))
    check_choice("output", output, ("dictionary", "codes", "reconstruction"))
    check_number("relative_radius", relative_radius, SMALLEST_RADIUS)
    check_whole("n_directions", n_directions)
    if not isinstance(extractor, Extractor):
        raise ArgumentError(f"extractor must be an Extractor; got {type(extractor).__name__}.")
    if not isinstance(extractor.random_state, int | np.integer | None):
        raise ArgumentError(
            "the extractor needs an integer random_state: every fit has to draw alike."
        )
    base = to_numpy(matrix("A", A)).astype(np.float64)
    radius = relative_radius * float(np.linalg.norm(base))
    if radius == 0:
        raise ArgumentError("A must not be zero.")
    rng = check_seed(random_state)
    first, count = _answer(extractor, base, output)
    ratios: list[float] = []
    counts, worst = [count], base
    for _ in range(n_directions):
        E = rng.standard_normal(base.shape)
        if directions == "rows":
            E *= (np.arange(len(base)) == rng.randint(len(base)))[:, None]
        E *= radius / np.linalg.norm(E)
        moved, count = _answer(extractor, base + E, output)
        ratio = float(np.linalg.norm(moved - first)) / radius
        worst = E / radius if ratio >= max(ratios, default=0.0) else worst
        ratios.append(ratio)
        counts.append(count)
    value, count_of = max(ratios), tuple(counts)
    return LocalLipschitz(value, np.array(ratios), radius, directions, output, count_of, worst)


def _answer(extractor: Extractor, A: np.ndarray, output: str) -> tuple[np.ndarray, int]:
    fitted = clone(extractor)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        U = fitted.fit_transform(A)
    answers = {
        "dictionary": lambda: fitted.components_,
        "codes": lambda: U,
        "reconstruction": lambda: fitted.inverse_transform(U),
    }
    return np.asarray(answers[output]()), fitted.n_iter_
