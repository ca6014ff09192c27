"""TCAV at every step: how often a concept's direction raises what the model predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ..capture import Target
from ..capture.targets import OBJECTIVES, QUANTITIES
from ..capture.tcav import ALONG_OF, EVALUATED, check_influence, concept_scores
from ..dynamics import regime_table
from ..errors import ArgumentError, check_choice
from ..figures import Band, Column, Curves, Footer, Heatmap, Pair, Section, Table, attach
from ..needs import Gradients, Need
from .base import Reading, by_layer
from .supervised import (
    LEVEL,
    LabelledConcepts,
    chance_band,
    concept_rows,
    judged,
    row_statements,
)

__all__ = ["TCAV"]

_LOSSES = {"auto": None, "masked": "masked", "causal": "next-token", "class": "classification"}
_EARLY, _LATE = (20 / 480, 100 / 480), (380 / 480, 460 / 480)


@dataclass(frozen=True)
class TCAV(LabelledConcepts):
    """TCAV scores of labelled concepts at every layer (sec. 6.2 of the report).

    The score is the fraction of held-out texts whose directional derivative along the concept's
    direction is positive. Beside it: the scores of directions for shuffled labels, and of
    bootstrap refits. See `ontogeny.capture.tcav` for one model; the parameters that are not listed
    are those of `LabelledConcepts`.

    Parameters
    ----------
    target
        ``"masked"``: the gold token at masked positions; ``"causal"``: the next token; ``"class"``:
        each text's own class; ``"auto"``: by the name of the model's class. A text's value is the
        mean over its targets.
    quantity
        ``"logit"`` or ``"log-probability"``.
    evaluate
        ``"positive"``: held-out texts with the concept; ``"all"``.
    mask_fraction
        For ``"masked"``.
    early, late
        Windows of the regime table, first and last step; None takes the report's shares of the
        run (20 to 100 and 380 to 460 of 480 thousand steps).

    Examples
    --------
    >>> TCAV("model.layers.*", on="sst2", target="masked").name
    'tcav'
    """

    target: str = "auto"
    quantity: str = "logit"
    evaluate: str = "positive"
    mask_fraction: float = 0.15
    early: tuple[float, float] | None = None
    late: tuple[float, float] | None = None

    kind: ClassVar[str] = "tcav"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("target", self.target, OBJECTIVES)
        check_choice("quantity", self.quantity, QUANTITIES)
        check_choice("evaluate", self.evaluate, EVALUATED)
        for name in ("early", "late"):
            window = getattr(self, name)
            if window is not None and (len(window) != 2 or not window[0] < window[1]):
                raise ArgumentError(f"{name} must be a first and a last step; got {window}.")

    def needs(self) -> Sequence[Need]:
        """Return the activations of each input set, and the model with the set."""
        return [n for on in self.sets for n in (self._activations(on), self._gradients(on))]

    def _gradients(self, on: str | None) -> Gradients:
        return Gradients(_LOSSES[self.target], on, self.mask_fraction, self.random_state)

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return scores of every layer and concept, with those of shuffled labels and refits.

        Over (layer, concept): ``score``, ``score_low``, ``score_high``, ``examples``, ``zeros``,
        ``random_score(draw)``, ``refit_score(refit)``, ``positive(text)``, the mean ``derivative``
        with ``random_derivative(draw)``, and ``accuracy``.
        """
        values = [reading[self._activations(on)] for on in self.sets]
        lent = [reading[self._gradients(on)] for on in self.sets]
        rows = [self._rows(each.inputs) for each in lent]
        fits: dict[str, Any] = {}
        failed: dict[str, Exception] = {}
        for path in values[0]:
            try:
                fits[path] = [self._fit(v[path], r) for v, r in zip(values, rows, strict=True)]
            except (ValueError, ArithmeticError) as error:
                failed[path] = error
        target = Target(
            self.target, self.quantity, "text", None, self.mask_fraction, self.random_state
        )
        scores = [
            concept_scores(
                each.model,
                each.inputs,
                labelled,
                {path: fit[i] for path, fit in fits.items()},
                target=target,
                along=ALONG_OF[self.tokens],
                evaluate=self.evaluate,
                settings=each.settings,
            )
            for i, (each, labelled) in enumerate(zip(lent, rows, strict=True))
            if fits
        ]

        def one(path: str, _: Any) -> Mapping[str, Any]:
            if path in failed:
                raise failed[path]
            for each in scores:
                check_influence(path, each[path])
            pieces = [_plain(each[path]) for each in scores]
            for piece, fit in zip(pieces, fits[path], strict=True):
                piece["accuracy"] = fit.accuracy
            return self._stacked(pieces)

        return by_layer(values[0], one).assign_coords(concept=self.concepts)

    def summarise(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Add corrected p-values, the regime table, rows, figures and sentences."""
        data = judged(data, "score", "random_score", centre=0.5)
        data = data.assign(chance_band(data, "random_score"))
        data = judged(data, "derivative", "random_derivative", "derivative_", centre=0.0)
        size = np.sqrt((data.random_derivative**2).mean("draw"))
        size = size.where(size > 0)  # layers and steps have their own scales
        data = data.assign(relative_derivative=data.derivative / size)
        scaled = xr.Dataset({"random": data.random_derivative / size})
        data = data.assign(chance_band(scaled, "random", "derivative_"))
        counts = data.examples.max(("step", "layer"))
        weights = {str(c): np.ones(int(counts.sel(concept=c))) for c in data.concept.values}
        data = data.assign(concept_rows(data, "score", "positive", weights, "TCAV"))
        data.score.attrs.update(long_name="TCAV score", symbol="TCAV", units="share of texts")
        data.derivative.attrs.update(long_name="mean directional derivative", units="1")
        data.relative_derivative.attrs.update(
            long_name="mean derivative over the size of those of shuffled labels", units="1"
        )
        for name in ("p_corrected", "derivative_p_corrected"):
            data[name].attrs.update(long_name="corrected p-value", units="1")
        words = [*_significant(data), *row_statements(data, "The score")]
        figures: list[Any] = list(_FIGURES)
        try:
            data, table = self._regimes(data)
            figures.append(table)
        except ArgumentError as error:
            words.append(f"No regime table: {error}")
        return attach(data, _SECTION, figures, words)

    def _regimes(self, data: xr.Dataset) -> tuple[xr.Dataset, Table]:
        last = float(data.step.values[-1])
        early = self.early or (round(_EARLY[0] * last), round(_EARLY[1] * last))
        late = self.late or (round(_LATE[0] * last), round(_LATE[1] * last))
        columns, pairs = [], []
        sums: dict[str, dict[str, str]] = {"sum of differences": {}, "sigma-aware sum": {}}
        for i, concept in enumerate(data.concept.values):
            scores = data.score.sel(concept=concept).transpose("layer", "step")
            table = regime_table(scores, data.step.values, early, late)
            names = {str(name): f"regime{i}_{name}" for name in table.data_vars}
            data = data.assign({names[str(k)]: v.variable for k, v in table.data_vars.items()})
            for name, head in (("early", "First"), ("late", "Second"), ("overall", "Overall")):
                mean, sd = names[f"{name}_mean"], names[f"{name}_sd"]
                columns.append(Column(mean, head, sd=sd, over=str(concept)))
            pairs.append(Pair(names["early_mean"], names["late_mean"]))
            sums["sum of differences"][names["late_mean"]] = names["sum_difference"]
            sums["sigma-aware sum"][names["late_mean"]] = names["sigma_aware_sum"]
        return data, Table(
            "regimes",
            "Scores in two windows of training",
            columns=columns,
            pairs=pairs,
            footer=[Footer(label, cells, signed=True) for label, cells in sums.items()],
            caption=f"Mean (SD) over the checkpoints of steps {early[0]:,.0f} to {early[1]:,.0f}, "
            f"{late[0]:,.0f} to {late[1]:,.0f}, and all. Differences are second minus first; the "
            "sigma-aware sum divides each by √(σ₁² + σ₂²). Neighbouring checkpoints are no "
            "independent draws, so neither sum is a test.",
        )


def _plain(scores: xr.Dataset) -> dict[str, Any]:
    """Return a layer's scores as numbers and ``(dims, array)`` pairs; texts are ``text``."""
    return {
        str(name): (
            (tuple("text" if d == "example" else str(d) for d in v.dims), v.values)
            if v.ndim
            else float(v)
        )
        for name, v in scores.data_vars.items()
    }


def _significant(data: xr.Dataset) -> list[str]:
    words = []
    for concept in data.concept.values:
        here = data.sel(concept=concept)
        total = int(np.isfinite(here.p_corrected).sum())
        if not total:
            words.append(f"{concept}: no layer has a score at any step.")
            continue
        count = int((here.p_corrected <= LEVEL).sum())
        slopes = int((here.derivative_p_corrected <= LEVEL).sum())
        random = here.random_score.values
        random = random[np.isfinite(random)]
        low, high = np.quantile(random, [0.025, 0.975])
        words.append(
            f"{concept}: {count} of {total} scores and {slopes} of {total} mean derivatives "
            "(layers and steps) differ from those of shuffled labels (two-sided, p ≤ "
            f"{LEVEL:g}, corrected over concepts, layers and steps); 95 % of the shuffled scores "
            f"lie between {low:.2f} and {high:.2f}."
        )
        extreme = float(np.isin(random, (0.0, 1.0)).mean())
        if extreme > LEVEL:
            words.append(
                f"{concept}: {extreme:.0%} of the shuffled scores are 0 or 1, so that scores can "
                "hardly tell; go by the mean derivative."
            )
    return words


_SECTION = Section(
    title="Labelled concepts: influence (TCAV)",
    definition="Fraction of held-out texts of which the predicted tokens become more likely when "
    "activations move along the concept's direction.",
    symbol="TCAV = mean 1[∂f(x)/∂h · v > 0]",
    null="Directions for shuffled labels, the same shuffles at every step; two-sided, corrected "
    "over concepts, layers and steps (largest standardised value of each shuffle).",
    care="Gradients of different texts share directions, so most random directions score near 0 "
    "or 1: a score far from one half shows nothing by itself, and where many shuffles score 0 or "
    "1 no score can differ from them. The mean derivative does not saturate.",
    source="Bernas 2025, sec. 6.2, Fig. 10, Table 2; Kim et al. 2018",
)
_FIGURES = [
    Curves(
        "scores",
        "TCAV scores",
        value="score",
        facet="concept",
        bands=[Band("chance_low", "chance_high", "shuffled labels")],
        caption="One half: the direction raises and lowers equally often. Grey: 95 % of the "
        "directions for shuffled labels, over all layers.",
    ),
    Heatmap(
        "significant",
        "Corrected p-value of the score",
        value="p_corrected",
        facet="concept",
        caption="At most 0.05: further from one half than shuffled labels reach anywhere.",
    ),
    Curves(
        "derivatives",
        "Mean directional derivative",
        value="relative_derivative",
        facet="concept",
        bands=[Band("derivative_chance_low", "derivative_chance_high", "shuffled labels")],
        caption="Mean over held-out texts along the unit direction, over the root mean square of "
        "the same for shuffled labels. Grey: 95 % of the latter, over all layers.",
    ),
    Heatmap(
        "derivatives-significant",
        "Corrected p-value of the mean derivative",
        value="derivative_p_corrected",
        facet="concept",
        caption="At most 0.05: further from zero than shuffled labels reach anywhere.",
    ),
]
