"""Which shape the decay of a curve has, layer by layer (Bernas 2025, Annex F.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ontogeny.errors import check_choice
from ontogeny.features.curves.base import OfCurve, curve_reference
from ontogeny.figures import Curves, Figure, Heatmap, Section
from ontogeny.summary import NumberTable
from ontogeny.summary.figures import along
from ontogeny.words.names import Names

from ...dynamics.fit_comparison import FitComparison, compare_fits
from ...dynamics.fit_evidence import IN_WORDS, in_words


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

    kind: ClassVar[str] = "fits"
    question: ClassVar[str] = "Which law do a node's curves follow?"
    section: ClassVar[Section] = Section(
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
    tables: ClassVar[Sequence[NumberTable]] = (
        NumberTable(
            "parameters",
            "The exponentials",
            (
                ("best", "best shape by the criterion", "", "best shape"),
                ("remaining", "shapes that an exponential is not told from", "", "or else"),
                ("rate", "rate of the exponential", "per step", "rate c"),
                ("half_time", "time to halve", "steps", "halves in"),
                ("amplitude", "amplitude of the exponential", "as curve", "A"),
                ("offset", "value that the exponential goes to", "as curve", "b"),
                ("residual_p", "p-value of an order in the residuals", "1", "p of residuals"),
            ),
            caption="In brackets: standard errors, for independent noise.",
        ),
    )
    variables: ClassVar[Names] = {
        "r2": ("share of the variance that the exponential explains", "1"),
        "r2_of": ("share of the variance explained", "1"),
        "exponential": ("whether the curve is exponential", "1"),
        "ruled_out": ("whether another shape is nine times as likely as an exponential", "1"),
        "exponential_weight": ("weight of the exponential among different shapes", "1"),
        "fitted": ("fitted curve", "as curve"),
        "verdict": ("verdict on the shape", ""),
    }

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        check_choice("criterion", self.criterion, ("aicc", "bic"))

    def examined(
        self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]
    ) -> tuple[xr.Dataset, list[str]]:
        """Add parameters with standard errors, weights and fitted curves."""
        curves = self.tabulated(data)
        options: dict[str, Any] = {
            "criterion": self.criterion,
            "reference_index": curve_reference(data, curves),
        }
        found = [compare_fits(data.step.values, y, self.offset, **options) for y in curves.T]
        models = list(found[0].fits)
        shapes = [[each.fits[m] for m in models] for each in found]
        over = ("layer", "model")
        data = data.assign(along("layer", [_row(each) for each in found]))
        data = data.assign_coords(model=models).assign(
            weight=(over, [[each.weights[m] for m in models] for each in found]),
            r2_of=(over, [[fit.r2 for fit in fits] for fits in shapes]),
            fitted=((*over, "step"), np.array([[fit.fitted for fit in fits] for fits in shapes])),
            verdict=("layer", np.array([each.verdict for each in found], dtype=object)),
        )
        data["fitted"] = data.fitted.transpose("model", "step", "layer")
        data.weight.attrs.update(long_name=f"weight by {self.criterion}", units="1")
        return data, _words(self.of, found)

    def figures(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> Sequence[Figure]:
        """Return the curves with their exponentials, and the weights of the shapes."""
        return [
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
        ]


def _row(found: FitComparison) -> dict[str, Any]:
    fit = found.fits["exponential"]
    decays = fit.determined and fit.rate < 0
    return {
        **{
            name: getattr(fit, name) for name in ("rate", "amplitude", "offset", "r2", "residual_p")
        },
        **{f"{name}_stderr": fit.stderr[name] for name in ("rate", "amplitude", "offset")},
        "half_time": np.log(2) / -fit.rate if decays else np.nan,
        "half_time_stderr": np.log(2) * fit.stderr["rate"] / fit.rate**2 if decays else np.nan,
        "exponential": float(found.exponential),
        "ruled_out": float(found.ruled_out),
        "exponential_weight": found.evidence["exponential"],
        "best": found.best,
        "remaining": in_words(found.remaining) if found.remaining else "",
    }


def _words(of: str, found: list[FitComparison]) -> list[str]:
    fitted = [each for each in found if each.best]
    count = len(fitted)
    if not count:
        return [f"No curve of {of} could be judged: {found[0].reason}."]
    words = []
    if count < len(found):
        left = next(each.reason for each in found if not each.best)
        words.append(f"{len(found) - count} of {len(found)} curves were not judged: {left}.")
    spans = sorted(np.log(2) / -each.fits["exponential"].rate for each in found if each.exponential)
    halves = " to ".join(f"{span:,.0f}" for span in (spans[:1] + spans[1:][-1:]))
    words.append(
        f"Exponential: {len(spans) or 'none'} of {count} curve{'s' * (count > 1)} of {of} (weight "
        "of at least 0.9 among materially different shapes, falling, residuals without order)"
        + (f"; time to halve: {halves} steps." if spans else ".")
    )
    others = [each for each in fitted if not each.exponential]
    ruled = [each for each in others if each.ruled_out]
    if ruled:
        words.append(
            f"Not exponential: {len(ruled)} of {count}; at least nine times as likely: "
            f"{_counted(ruled)}."
        )
    left_open = [each for each in others if not each.ruled_out and each.remaining]
    if left_open:
        words.append(
            f"An exponential is not distinguished in {len(left_open)} of {count} from: "
            f"{_counted(left_open)}."
        )
    strange = sum(each.fits[each.best].residual_p < 0.05 for each in fitted)
    if strange:
        words.append(
            f"In {strange} of {count} curves even the best shape leaves residuals with a "
            "visible order."
        )
    return words


def _counted(found: list[FitComparison]) -> str:
    """Return the shapes that remain, with the number of curves for which they do."""
    names = [name for each in found for name in each.remaining]
    return ", ".join(f"{IN_WORDS[name]} {n}" for name, n in Counter(names).most_common())
