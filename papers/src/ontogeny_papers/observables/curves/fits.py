"""Which shape the decay of a curve has, layer by layer (Bernas 2025, Annex F.3)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ontogeny.figures import Curves, Heatmap, Section
from ontogeny.summary import NumberTable
from ontogeny.summary.figures import along
from ontogeny.trees import Nodes

from ...dynamics.fit_comparison import FitComparison, compare_fits
from ...dynamics.fit_evidence import IN_WORDS, in_words
from .base import OfCurve, curve_reference


@dataclass(frozen=True)
class Fits(OfCurve):
    """Exponential, power law and stretched exponential fitted to a node's curves, and compared.

    Parameters
    ----------
    of, variable, select, first, last, label
        Which curves, see `ontogeny.features.curves.OfCurve`.
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

    kind = "fits"
    choices = {"criterion": ("aicc", "bic")}
    question = "Which law do a node's curves follow?"
    section = Section(
        title="Shape of the decay ({of})",
        definition="Decays fitted to each curve by least squares: exponential, power law, "
        "stretched exponential; beside them a straight line and a constant.",
        symbol="A·eᶜᵗ + b,  A·(1 + t/τ)⁻ᵖ + b,  A·exp(−(t/τ)ᵝ) + b",
        null="A curve is called exponential where the exponential has a weight of at least 0.9 "
        "(Schwarz's criterion) among shapes that differ from it materially (power law with an "
        "exponent up to 3, stretched exponential with β up to 0.8 or from 1.25 on, two "
        "exponentials threefold apart, straight line), its rate is determined and negative, and "
        "its residuals are noise in any order (p ≥ 0.05).",
        care="A high R² says little: any falling curve has one. Standard errors take the noise as "
        "independent; where the residuals have an order they are too small. The shape of a curve "
        "says nothing about learning: a run that moved as far and learned nothing may look the "
        "same.",
        source="Bernas 2025, Annex F.3, Fig. 16",
    )
    tables = (
        NumberTable(
            "parameters",
            "The exponentials",
            (
                ("best", "best shape by the criterion", "", "best shape"),
                (
                    "remaining",
                    "shapes that an exponential is not told from",
                    "",
                    "or else",
                ),
                ("rate", "rate of the exponential", "per {step}", "rate c"),
                ("half_time", "time to halve", "steps", "halves in"),
                ("amplitude", "amplitude of the exponential", "as curve", "A"),
                ("offset", "value that the exponential goes to", "as curve", "b"),
                (
                    "residual_p",
                    "p-value of an order in the residuals",
                    "1",
                    "p of residuals",
                ),
            ),
            caption="In brackets: standard errors, for independent noise.",
        ),
    )
    variables = {
        "r2": ("share of the variance that the exponential explains", "1"),
        "r2_of": ("share of the variance explained", "1"),
        "exponential": ("whether the curve is exponential", "1"),
        "ruled_out": (
            "whether another shape is nine times as likely as an exponential",
            "1",
        ),
        "exponential_weight": ("weight of the exponential among different shapes", "1"),
        "fitted": ("fitted curve", "as curve"),
        "verdict": ("verdict on the shape", ""),
    }
    charts = (
        Curves(
            "exponential",
            "Curves and their exponentials",
            value="curve",
            reference="fitted",
            reference_label="exponential",
            select={"model": "exponential"},
            caption="Dashed: the exponential fitted to each curve, whether it is the best fit "
            "or not.",
        ),
        Heatmap(
            "weights",
            "Weight of each shape",
            value="weight",
            x="model",
            caption="By the information criterion; the weights of one layer sum to 1.",
        ),
    )

    def examined(self, data: xr.Dataset, nodes: Nodes) -> tuple[xr.Dataset, list[str]]:
        """Add parameters with standard errors, weights and fitted curves."""
        curves = self.tabulated(data)
        options: dict[str, Any] = {
            "criterion": self.criterion,
            "reference_index": curve_reference(data, curves),
        }
        results = [
            compare_fits(data.step.values, y, self.offset, **options) for y in curves.T
        ]
        models = list(results[0].fits)
        shapes = [[r.fits[m] for m in models] for r in results]
        over = ("layer", "model")
        data = data.assign(along("layer", [_row(r) for r in results]))
        data = data.assign_coords(model=models).assign(
            weight=(over, [[r.weights[m] for m in models] for r in results]),
            r2_of=(over, [[fit.r2 for fit in fits] for fits in shapes]),
            fitted=(
                (*over, "step"),
                np.array([[fit.fitted for fit in fits] for fits in shapes]),
            ),
            verdict=("layer", np.array([r.verdict for r in results], dtype=object)),
        )
        data["fitted"] = data.fitted.transpose("model", "step", "layer")
        data.weight.attrs.update(long_name=f"weight by {self.criterion}", units="1")
        return data, _words(self.of, results)


def _row(result: FitComparison) -> dict[str, Any]:
    fit = result.fits["exponential"]
    decays = fit.determined and fit.rate < 0
    return {
        **{
            name: getattr(fit, name)
            for name in ("rate", "amplitude", "offset", "r2", "residual_p")
        },
        **{
            f"{name}_stderr": fit.stderr[name]
            for name in ("rate", "amplitude", "offset")
        },
        "half_time": np.log(2) / -fit.rate if decays else np.nan,
        "half_time_stderr": np.log(2) * fit.stderr["rate"] / fit.rate**2
        if decays
        else np.nan,
        "exponential": float(result.exponential),
        "ruled_out": float(result.ruled_out),
        "exponential_weight": result.evidence["exponential"],
        "best": result.best,
        "remaining": in_words(result.remaining) if result.remaining else "",
    }


def _words(of: str, results: list[FitComparison]) -> list[str]:
    fitted = [r for r in results if r.best]
    count = len(fitted)
    if not count:
        return [f"No curve of {of} could be judged: {results[0].reason}."]
    words = []
    if count < len(results):
        reason = next(r.reason for r in results if not r.best)
        words.append(
            f"{len(results) - count} of {len(results)} curves were not judged: {reason}."
        )
    spans = sorted(
        np.log(2) / -r.fits["exponential"].rate for r in results if r.exponential
    )
    halves = " to ".join(f"{span:,.0f}" for span in (spans[:1] + spans[1:][-1:]))
    curves = "1 curve" if count == 1 else f"{count} curves"
    words.append(
        f"Exponential: {len(spans) or 'none'} of {curves} of {of} (weight "
        "of at least 0.9 among materially different shapes, falling, residuals without order)"
        + (f"; time to halve: {halves} {{step}}s." if spans else ".")
    )
    others = [r for r in fitted if not r.exponential]
    ruled = [r for r in others if r.ruled_out]
    if ruled:
        words.append(
            f"Not exponential: {len(ruled)} of {count}; at least nine times as likely: "
            f"{_counted(ruled)}."
        )
    left_open = [r for r in others if not r.ruled_out and r.remaining]
    if left_open:
        words.append(
            f"An exponential is not distinguished in {len(left_open)} of {count} from: "
            f"{_counted(left_open)}."
        )
    strange = sum(r.fits[r.best].residual_p < 0.05 for r in fitted)
    if strange:
        words.append(
            f"In {strange} of {count} curves even the best shape leaves residuals with a "
            "visible order."
        )
    return words


def _counted(results: list[FitComparison]) -> str:
    """Return the shapes that remain, with the number of curves for which they do."""
    names = [name for r in results for name in r.remaining]
    return ", ".join(
        f"{IN_WORDS[name]} {n}" for name, n in Counter(names).most_common()
    )
