"""Which shape a decay has: exponential only where all others are clearly less likely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ontogeny.dynamics.series import checked_series, checked_steps
from ontogeny.errors import check_choice

from .decay_shapes import SHAPES
from .fit import Fit, finished_fit, inverse_diagonal, no_fit, refusal, smallest_rss
from .fit_evidence import ENOUGH, exponential_evidence, in_words, remaining
from .fits import fit_shape

NAN = np.nan
LEVEL = 0.05


@dataclass(frozen=True, eq=False)
class FitComparison:
    """Several shapes fitted to one series, see `compare_fits`.

    Parameters
    ----------
    fits
        By name: ``exponential``, ``power``, ``stretched-exponential``, and the two that are no
        decay, ``straight`` and ``constant``.
    weights
        Weight of each by the information criterion, summing to 1; NaN where not all can be
        compared.
    best
        Name of the one with the greatest weight; empty where the values are too few to compare all
        five, or are constant.
    criterion
        ``"aicc"`` or ``"bic"``.
    evidence
        Weight of the exponential among shapes that differ materially from it, see
        `exponential_evidence`; NaN where they cannot be compared.
    """

    fits: Mapping[str, Fit]
    weights: Mapping[str, float]
    best: str
    criterion: str
    evidence: Mapping[str, float]

    @property
    def exponential(self) -> bool:
        """Whether the curve is exponential as far as one can tell.

        Its rate is determined and negative, its residuals have no visible order (p ≥ 0.05), and its
        `evidence` is at least 0.9.
        """
        return self._candidate and self.evidence["exponential"] >= ENOUGH

    @property
    def remaining(self) -> tuple[str, ...]:
        """Shapes that an exponential is not distinguished from, or nine times as likely ones."""
        return remaining(self.evidence) if self.best else ()

    @property
    def ruled_out(self) -> bool:
        """Whether some other shape is at least nine times as likely as an exponential."""
        largest = max(self.evidence.values(), default=NAN)
        return bool(
            self.evidence.get("exponential", NAN) <= largest * (1 - ENOUGH) / ENOUGH
        )

    @property
    def _candidate(self) -> bool:
        fit = self.fits["exponential"]
        falls = bool(self.best) and fit.determined and fit.rate < 0
        # NaN: not tested, so not counted.
        return bool(falls and fit.residual_p >= LEVEL)

    @property
    def reason(self) -> str:
        """Why the shapes could not be compared; empty where they were."""
        if self.best:
            return ""
        refused = [fit.reason for fit in self.fits.values() if np.isnan(fit.aicc)]
        few = f"{self.fits['constant'].n} values are too few to compare all shapes"
        return refused[0] if len(refused) == len(self.fits) else few

    @property
    def verdict(self) -> str:
        """One sentence that says which shape fits, and how well."""
        if not self.best:
            return f"No comparison: {self.reason}."
        if self.best == "constant":
            return "No decay: a constant fits best."
        fit = self.fits["exponential"]
        weight = self.evidence["exponential"]
        others = in_words(self.remaining)
        if self.exponential:
            return f"Exponential (weight {weight:.2f}, R² {fit.r2:.3f})."
        if self.ruled_out:
            return f"Not exponential: at least nine times as likely is {others}."
        if fit.residual_p < LEVEL:
            return "Not exponential: its residuals are not noise."
        if others:
            return f"Not distinguished from {others} (weight of the exponential {weight:.2f})."
        return f"Not called exponential: {fit.reason or 'the best exponential rises'}."


def compare_fits(
    steps: ArrayLike,
    values: ArrayLike,
    offset: bool = True,
    *,
    criterion: str = "aicc",
    reference_index: int | None = None,
) -> FitComparison:
    """Fit exponential, power law, stretched exponential, a straight line and a constant.

    Parameters
    ----------
    steps, values, offset, reference_index
        As in `fit_exponential`.
    criterion
        ``"aicc"`` or ``"bic"``. Both take the noise as independent; where it has a memory, they
        favour more parameters than they should.

    Returns
    -------
    FitComparison
        With ``.fits``, ``.weights``, ``.best``, ``.evidence`` and ``.exponential``.

    Raises
    ------
    ArgumentError
        If `criterion` is unknown, steps do not increase, or shapes do not fit.
    NonFiniteError
        If a value is infinite.

    References
    ----------
    K. P. Burnham, D. R. Anderson, Model Selection and Multimodel Inference, 2002 (weights).

    Notes
    -----
    Measured (100 curves each, 12, 24 and 32 checkpoints): see the guide to error rates.

    Examples
    --------
    >>> steps = np.arange(40) * 100
    >>> noise = 0.01 * np.random.default_rng(0).normal(size=40)
    >>> compare_fits(steps, np.exp(-steps / 900) + noise).exponential
    True
    >>> compare_fits(steps, 1 / (1 + steps / 300) + noise).exponential
    False
    >>> compare_fits(steps, np.exp(-steps / 900) + 10 * noise).verdict[:22]
    'Not distinguished from'
    """
    check_choice("criterion", criterion, ("aicc", "bic"))
    fits = {
        name: fit_shape(name, steps, values, offset, reference_index=reference_index)
        for name in SHAPES
    }
    steps = checked_steps(steps)
    series = checked_series("values", values, steps, reference_index)
    for name, degree in (("straight", 1), ("constant", 0)):
        fits[name] = _polynomial(name, degree, steps, series)
    scores = np.array([getattr(fit, criterion) for fit in fits.values()])
    if not np.isfinite(
        scores
    ).all():  # the best of those that few values allow is not the best
        return FitComparison(
            fits, dict.fromkeys(fits, NAN), "", criterion, {"exponential": NAN}
        )
    relative = np.exp(-(scores - scores.min()) / 2)
    weights = dict(zip(fits, (relative / relative.sum()).tolist(), strict=True))
    best = max(weights, key=lambda name: (weights[name], -len(fits[name].parameters)))
    evidence = exponential_evidence(steps, series, fits, offset)
    return FitComparison(fits, weights, best, criterion, evidence)


def _polynomial(name: str, degree: int, steps: np.ndarray, series: np.ndarray) -> Fit:
    """Return a constant ``offset``, or a line with ``slope`` per step, as a fit."""
    there = ~np.isnan(series)
    y = series[there]
    names = ("offset", "slope")[: degree + 1]
    reason = refusal(y, degree + 1)
    if reason:
        return no_fit(name, names, series, reason)
    powers = steps[-1] ** np.arange(degree + 1)
    design = (steps[:, None] / steps[-1]) ** np.arange(degree + 1)
    linear = np.linalg.lstsq(design[there], y, rcond=None)[0]
    fitted = design @ linear
    variance = smallest_rss(y - fitted[there], y) / (len(y) - degree - 1)
    errors = np.sqrt(variance * inverse_diagonal(design[there]))
    return finished_fit(
        name,
        dict(zip(names, linear / powers, strict=True)),
        dict(zip(names, errors / powers, strict=True)),
        series,
        fitted,
        degree + 1,
    )
