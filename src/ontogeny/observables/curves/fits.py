"""Which shape the decay of a curve has, layer by layer (row A15)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ...dynamics import FitComparison, compare_fits
from ...errors import check_choice
from ...figures import Column, Curves, Heatmap, Section, Table, attach
from ...summary import Names
from .base import OfCurve, curve_reference


@dataclass(frozen=True)
class Fits(OfCurve):
    """Exponential, power law and stretched exponential fitted to a node's curves, and compared.

    Parameters
    ----------
    of, variable, select, first, last, label
        Which curves, see `ontogeny.observables.curves.OfCurve`.
    offset
        Fit the value that the decay goes to; otherwise it goes to 0.
    criterion
        ``"aicc"`` or ``"bic"``.

    Examples
    --------
    >>> Fits("activation-decay", "relative").name
    'activation-decay-fits'
    """

    offset: bool = True
    criterion: str = "aicc"

    kind: ClassVar[str] = "fits"
    variables: ClassVar[Names] = {
        "half_time": ("time to halve", "steps"),
        "rate": ("rate of the exponential", "per step"),
        "amplitude": ("amplitude of the exponential", "as curve"),
        "offset": ("value that the exponential goes to", "as curve"),
        "r2": ("share of the variance that the exponential explains", "1"),
        "r2_of": ("share of the variance explained", "1"),
        "residual_p": ("p-value of an order in the residuals", "1"),
        "exponential": ("whether it earned the name exponential", "1"),
        "exponential_weight": ("weight of the exponential", "1"),
        "best": ("best shape by the criterion", ""),
        "fitted": ("fitted curve", "as curve"),
        "verdict": ("verdict on the shape", ""),
    }

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        check_choice("criterion", self.criterion, ("aicc", "bic"))

    def summarise(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Add parameters with standard errors, weights, curves, figures and sentences."""
        data = self.curves(data, nodes)
        curves = self.tabulated(data)
        steps = data.step.values
        reference = curve_reference(data, curves)
        found = [
            compare_fits(
                steps, column, self.offset, criterion=self.criterion, reference_index=reference
            )
            for column in curves.T
        ]
        models = list(found[0].fits)
        rows = [_row(each) for each in found]
        columns = {name: ("layer", np.array([row[name] for row in rows])) for name in rows[0]}
        data = (
            data.assign_coords(model=models)
            .assign(columns)
            .assign(
                weight=(("layer", "model"), [[each.weights[m] for m in models] for each in found]),
                r2_of=(("layer", "model"), [[each.fits[m].r2 for m in models] for each in found]),
                fitted=(
                    ("model", "step", "layer"),
                    np.stack([[each.fits[m].fitted for each in found] for m in models]).swapaxes(
                        1, 2
                    ),
                ),
                verdict=("layer", np.array([each.verdict for each in found], dtype=object)),
            )
        )
        data.weight.attrs.update(long_name=f"weight by {self.criterion}", units="1")
        return attach(data, _section(self.of), _FIGURES, _words(self.of, found))


def _row(found: FitComparison) -> dict[str, Any]:
    fit = found.fits["exponential"]
    rate, error = fit.rate, fit.stderr["rate"]
    decays = fit.determined and rate < 0
    return {
        "rate": rate,
        "rate_stderr": error,
        "amplitude": fit.amplitude,
        "amplitude_stderr": fit.stderr["amplitude"],
        "offset": fit.offset,
        "offset_stderr": fit.stderr["offset"],
        "half_time": float(np.log(2) / -rate) if decays else np.nan,
        "half_time_stderr": float(np.log(2) * error / rate**2) if decays else np.nan,
        "r2": fit.r2,
        "residual_p": fit.residual_p,
        "exponential": float(found.exponential),
        "exponential_weight": found.weights["exponential"],
        "best": found.best,
    }


def _words(of: str, found: list[FitComparison]) -> list[str]:
    count = sum(bool(each.best) for each in found)
    if not count:
        return [f"No curve of {of} could be judged: {found[0].reason}."]
    earned = [each.fits["exponential"] for each in found if each.exponential]
    best = [each.best for each in found if each.best]
    left = next((each.reason for each in found if not each.best), "")
    words = (
        [f"{len(found) - count} of {len(found)} curves were not judged: {left}."] if left else []
    )
    if earned:
        spans = sorted(float(np.log(2) / -fit.rate) for fit in earned)
        halves = f"{spans[0]:,.0f} to {spans[-1]:,.0f}" if len(spans) > 1 else f"{spans[0]:,.0f}"
        words.append(
            f"Of {count} curves of {of}, {len(earned)} earned the name exponential (best by the "
            f"criterion, falling, residuals without order); time to halve: {halves} steps."
        )
    else:
        words.append(f"None of {count} curves of {of} has earned the name exponential.")
    counts = {name: best.count(name) for name in dict.fromkeys(best)}
    words.append(
        f"Best by the criterion: {', '.join(f'{name} {n}' for name, n in counts.items())}."
    )
    strange = sum(each.fits[each.best].residual_p < 0.05 for each in found if each.best)
    if strange:
        words.append(
            f"In {strange} of {count} curves even the best shape leaves residuals with a "
            "visible order."
        )
    return words


def _section(of: str) -> Section:
    return Section(
        title=f"Shape of the decay ({of})",
        definition="Decays fitted to each curve by least squares: exponential, power law, "
        "stretched exponential; beside them a straight line and a constant.",
        symbol="A·eᶜᵗ + b,  A·(1 + t/τ)⁻ᵖ + b,  A·exp(−(t/τ)ᵝ) + b",
        null="Exponential is earned where it is the best by the criterion, its rate is determined, "
        "and its residuals are noise in any order (p ≥ 0.05).",
        care="A high R² says little: any falling curve has one. Standard errors take the noise as "
        "independent; where the residuals have an order they are too small.",
        source="Bernas 2025, Annex F.3, Fig. 16",
    )


_FIGURES = [
    Curves(
        "exponential",
        "Curves and their exponentials",
        value="curve",
        reference="fitted",
        reference_label="exponential",
        select={"model": "exponential"},
        caption="Dashed: the exponential fitted to each curve, whether it is earned or not.",
    ),
    Heatmap(
        "weights",
        "Weight of each shape",
        value="weight",
        x="model",
        y="layer",
        caption="By the information criterion; the weights of one layer sum to 1.",
    ),
    Table(
        "parameters",
        "The exponentials",
        columns=[
            Column("best", "best shape"),
            Column("rate", "rate c", sd="rate_stderr"),
            Column("half_time", "halves in", sd="half_time_stderr"),
            Column("amplitude", "A", sd="amplitude_stderr"),
            Column("offset", "b", sd="offset_stderr"),
            Column("residual_p", "p of residuals"),
        ],
        caption="In brackets: standard errors, for independent noise.",
    ),
]
