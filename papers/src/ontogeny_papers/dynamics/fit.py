"""A curve fitted to a series: parameters, errors, and whether the residuals are noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ontogeny.dynamics.order import step_order_test
from ontogeny.dynamics.series import RESOLUTION

NAN = np.nan


@dataclass(frozen=True, eq=False)
class Fit:
    """A curve fitted by least squares: offset + amplitude · g(step).

    Parameters
    ----------
    model
        Name of the shape g.
    parameters
        By name: ``amplitude``, ``offset`` (0 where none was fitted) and those of the shape; NaN
        where there is no fit.
    stderr
        Their standard errors, for independent noise of one size; 0 for an offset not fitted.
    r2
        Share of the variance explained; NaN without a fit.
    residual_stderr
        Standard deviation of the noise, √(RSS / (n − parameters)).
    residual_p
        p-value of "the residuals are noise in any order" (`step_order_test`); a small one says
        that the curve has another shape, or its noise a memory, and that the standard errors are
        too small. NaN below 6 steps.
    aicc, bic
        Information criteria, to compare fits of the same values.
    determined
        Whether the data pin the shape's parameters down.
    reason
        Why not, else empty.
    n
        Number of values.
    fitted
        (T,): the curve at all steps, missing ones included.
    residuals
        (T,): values minus curve; NaN where a value is missing.
    """

    model: str
    parameters: Mapping[str, float]
    stderr: Mapping[str, float]
    r2: float
    residual_stderr: float
    residual_p: float
    aicc: float
    bic: float
    determined: bool
    reason: str
    n: int
    fitted: np.ndarray
    residuals: np.ndarray

    @property
    def amplitude(self) -> float:
        """What multiplies the shape: value at step 0 minus offset."""
        return self.parameters["amplitude"]

    @property
    def offset(self) -> float:
        """The value that a decay goes to."""
        return self.parameters["offset"]

    @property
    def rate(self) -> float:
        """The exponent c of an exponential per step; negative for a decay, NaN for others."""
        return self.parameters.get("rate", NAN)


def refusal(values: np.ndarray, parameters: int) -> str:
    """Return why values (n,) cannot be fitted, or an empty string."""
    if len(values) < parameters + 2:
        return f"{len(values)} values are too few for {parameters} parameters and their noise"
    if np.ptp(values) <= RESOLUTION * np.abs(values).max():
        return "the series is constant"
    return ""


def no_fit(model: str, names: Sequence[str], series: np.ndarray, reason: str) -> Fit:
    """Return a fit that says why there is none."""
    nothing = dict.fromkeys(names, NAN)
    empty = np.full(series.shape, NAN)
    n = int(np.count_nonzero(~np.isnan(series)))
    return Fit(
        model, nothing, nothing, NAN, NAN, NAN, NAN, NAN, False, reason, n, empty, empty
    )


def finished_fit(
    model: str,
    parameters: Mapping[str, float],
    stderr: Mapping[str, float],
    series: np.ndarray,
    fitted: np.ndarray,
    count: int,
    reason: str = "",
) -> Fit:
    """Return a fit with `count` free parameters and all that follows from its curve."""
    there = ~np.isnan(series)
    y = series[there]
    residual = (series - fitted)[there]
    rss = smallest_rss(residual, y)
    aicc, bic = information_criteria(rss, len(y), count)
    return Fit(
        model=model,
        parameters={name: float(value) for name, value in parameters.items()},
        stderr={name: float(value) for name, value in stderr.items()},
        r2=float(1 - (residual**2).sum() / ((y - y.mean()) ** 2).sum()),
        residual_stderr=float(np.sqrt(rss / (len(y) - count))),
        residual_p=_residual_order(residual, y),
        aicc=aicc,
        bic=bic,
        determined=not reason,
        reason=reason,
        n=len(y),
        fitted=fitted,
        residuals=series - fitted,
    )


def smallest_rss(residuals: np.ndarray, values: np.ndarray) -> float:
    """Return the sum of squares of residuals (n,), not below the rounding of float32 values."""
    floor = len(values) * (RESOLUTION * np.abs(values).max()) ** 2
    return max(float((residuals**2).sum()), floor)


def inverse_diagonal(jacobian: np.ndarray) -> np.ndarray:
    """Return the diagonal of (JᵀJ)⁻¹; infinite where J is rank-deficient."""
    norms = np.linalg.norm(jacobian, axis=0)
    if not (norms > 0).all():
        return np.full(jacobian.shape[1], np.inf)
    _, sigma, vt = np.linalg.svd(jacobian / norms, full_matrices=False)
    if sigma[-1] < 1e-10 * sigma[0]:
        return np.full(jacobian.shape[1], np.inf)
    return ((vt / sigma[:, None]) ** 2).sum(axis=0) / norms**2


def information_criteria(rss: float, n: int, parameters: int) -> tuple[float, float]:
    """Return AICc and BIC of a least-squares fit; the noise's size is one more parameter.

    H. Akaike 1974, with N. Sugiura's correction (1978); G. Schwarz 1978.

    Examples
    --------
    >>> [round(x, 3) for x in information_criteria(10.0, 10, 2)]
    [10.0, 6.908]
    """
    k = parameters + 1
    spare = n - k - 1
    aicc = (
        n * np.log(rss / n) + 2 * k + (2 * k * (k + 1) / spare if spare > 0 else np.inf)
    )
    return float(aicc), float(n * np.log(rss / n) + k * np.log(n))


def _residual_order(residuals: np.ndarray, values: np.ndarray) -> float:
    """Return the p-value of any order in residuals (n,); 1 where they are only rounding."""
    if np.abs(residuals).max() <= RESOLUTION * np.abs(values).max():
        return 1.0
    return float(step_order_test(residuals, n_draws=199, level=0.05))
