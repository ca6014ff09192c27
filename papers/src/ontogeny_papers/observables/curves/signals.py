"""Curves of two nodes beside each other: do they share more than their trends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from ontogeny.dynamics import holm
from ontogeny.errors import ArgumentError, check_whole
from ontogeny.figures import Curves, Figure, Scatter, Section
from ontogeny.observables.arguments import check_node
from ontogeny.summary import NumberTable
from ontogeny.summary.noise import MEASURABLE
from ontogeny.trees import Nodes

from ...dynamics.shared_structure import FREE
from ...dynamics.signals import SignalComparison, compare_signals, standardise
from ...dynamics.smoothing import rolling_mean
from ...dynamics.trends import FEWEST_FOR_A_TREND
from .base import WHOLE_MODEL, OfCurve, check_labels, curve_reference, curves_of

_AROUND = "around the trends"
_CORRELATIONS = NumberTable(
    "layers",
    "Correlations, and beyond the trends",
    (
        ("pearson", "Pearson correlation", "1", "Pearson r", "values"),
        ("spearman", "rank correlation", "1", "Spearman", "values"),
        (
            "fluctuation_pearson",
            "Pearson correlation around the trends",
            "1",
            "Pearson r",
            _AROUND,
        ),
        (
            "pearson_p",
            "p-value of the Pearson correlation, corrected",
            "1",
            "p (Holm)",
            _AROUND,
        ),
        (
            "fluctuation_spearman",
            "rank correlation around the trends",
            "1",
            "Spearman",
            _AROUND,
        ),
        (
            "spearman_p",
            "p-value of the rank correlation, corrected",
            "1",
            "p (Holm)",
            _AROUND,
        ),
    ),
)
_DTW = "dynamic time warping distance"
_MI = "mutual information"
_COURSES = NumberTable(
    "courses",
    "Courses, beside what the trends alone give",
    (
        (
            "rolling_pearson",
            "Pearson correlation of rolling means",
            "1",
            "r of rolling means",
        ),
        ("dtw", _DTW, "1", "measured", "DTW"),
        ("dtw_surrogates", f"{_DTW} of surrogates", "1", "trends alone", "DTW"),
        ("mutual_information", _MI, "nats", "measured", _MI),
        (
            "mutual_information_surrogates",
            f"{_MI} of surrogates",
            "nats",
            "trends alone",
            _MI,
        ),
    ),
)


@dataclass(frozen=True)
class Signals(OfCurve):
    """A node's curves compared with those of another node, layer by layer and averaged.

    Parameters
    ----------
    of, variable, select, first, last, label
        The curves, such as concepts' distance to the reference; see
        `ontogeny.features.curves.OfCurve`.
    against, against_variable, against_select
        The curves they are compared with; default: how activations decay.
    half_window
        Neighbours on each side in the rolling means.
    n_draws, random_state
        Surrogates behind the p-values, and their seed.

    Examples
    --------
    >>> Signals("concepts-ica").depends_on
    ('concepts-ica', 'activation-decay')
    """

    against: str = "activation-decay"
    against_variable: str = "rotation_removed"
    against_select: Mapping[str, Any] = field(default_factory=dict, hash=False)
    half_window: int = 2
    n_draws: int = 999
    random_state: int = 0

    kind = "signals"
    question = "Does one node's curve follow another's?"
    requires = "two nodes with curves"
    section = Section(
        title="Signals ({of} and {against})",
        definition="Two curves of each layer beside each other: correlation, dynamic time warping "
        "and mutual information of the values, and what they share around their trends.",
        symbol="r = cor(x, y);  r_f = cor(x − trend, y − trend)",
        null="Surrogates that keep the trend, the local noise and its memory of one curve, and "
        "nothing of what it shares with the other. Two independent decays have a high r and are "
        "called related in at most 5 % at level 5 %. Where both have jumps or a cycle in common, "
        "there is no verdict: one learning-rate schedule does that to unrelated quantities.",
        care="A high r between two decays is no evidence of anything. Without noise in a curve "
        "there is nothing to test. A shared fluctuation may come from the tokens or checkpoints "
        "that both curves use.",
        source="Bernas 2025, sec. 5.4, Figs 6 and 7",
    )
    tables = (_CORRELATIONS, _COURSES)
    variables = {
        "other": ("the curve compared with", ""),
        "standardised": ("standardised value", "1"),
        "averaged": ("mean over layers of standardised values", "1"),
        "rolling_standardised": ("rolling mean of standardised values", "1"),
        "standardised_of": ("this curve, standardised", "1"),
        "standardised_against": ("the other curve, standardised", "1"),
        "reason": ("why it is not tested", ""),
        "mean_pearson": ("mean absolute Pearson correlation over layers", "1"),
        "mean_rolling_pearson": ("mean absolute correlation of rolling means", "1"),
        "joint_pearson": ("correlation around the trends, all layers", "1"),
        "joint_p": ("p-value of the correlation, all layers", "1"),
        "structure_p": ("p-value of no jumps or cycle in common", "1"),
        "joint_structure_p": (
            "p-value of no jumps or cycle in common, all layers",
            "1",
        ),
    }

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        check_node("against", self.against)
        check_labels("against_select", self.against_select)
        check_whole("half_window", self.half_window, minimum=0)
        check_whole("n_draws", self.n_draws, minimum=19)

    @property
    def depends_on(self) -> tuple[str, ...]:  # type: ignore[override]
        """Both nodes."""
        return (self.of, self.against)

    def examined(self, data: xr.Dataset, nodes: Nodes) -> tuple[xr.Dataset, list[str]]:
        """Add the other curves, standardised ones, and comparisons."""
        data, first, second = self._comparable(
            self._with_other(data, nodes[self.against])
        )
        result = compare_signals(
            first,
            second,
            data.step.values,
            half_window=self.half_window,
            n_draws=self.n_draws,
            random_state=self.random_state,
        )
        signals = np.stack([standardise(first), standardise(second)])
        names = [self.of, self.against]
        numbers = {
            name: getattr(result, name)
            for table in self.tables
            for name in table.names()
        }
        numbers |= {name: holm(numbers[name]) for name in ("pearson_p", "spearman_p")}
        data = data.assign(
            {name: ("layer", values) for name, values in numbers.items()}
        )
        data = data.assign_coords(signal=names).assign(
            standardised=(("signal", "step", "layer"), signals),
            averaged=(("signal", "step"), _mean(signals)),
            rolling_standardised=(
                ("signal", "step", "layer"),
                _rolling(signals, self.half_window),
            ),
            standardised_of=_on_an_axis(signals[0], self.of),
            standardised_against=_on_an_axis(signals[1], self.against),
            reason=("layer", np.asarray(result.reason, dtype=object)),
            mean_pearson=float(np.mean(np.abs(result.pearson))),
            mean_rolling_pearson=float(np.mean(np.abs(result.rolling_pearson))),
            joint_pearson=result.joint_pearson,
            joint_p=result.joint_p,
            joint_structure_p=result.joint_structure_p,
            structure_p=("layer", np.asarray(result.structure_p)),
        )
        return data, _words(names, data, result)

    def figures(self, data: xr.Dataset, nodes: Nodes) -> Sequence[Figure]:
        """Return the standardised curves, their rolling means, one against the other, averages."""
        return [
            Curves(
                "overlay",
                "Standardised curves of each layer",
                value="standardised",
                series="signal",
                facet="layer",
                caption="Mean 0 and standard deviation 1 over the {checkpoint}s; the reference "
                "{checkpoint} left out.",
            ),
            Curves(
                "rolling",
                "Rolling means of each layer",
                value="rolling_standardised",
                series="signal",
                facet="layer",
                caption=f"Mean of each standardised value and its {self.half_window} neighbours on "
                "either side.",
            ),
            Scatter(
                "scatter",
                "One curve against the other, by layer",
                x="standardised_against",
                y="standardised_of",
                points="step",
                colour="step",
                facet="layer",
                caption="Each point is a checkpoint. Two decays that share nothing else lie near a "
                "rising line as well.",
            ),
            Curves(
                "averaged",
                "Averaged over layers",
                value="averaged",
                series="signal",
                caption="Mean of the standardised curves.",
            ),
        ]

    def _comparable(
        self, data: xr.Dataset
    ) -> tuple[xr.Dataset, np.ndarray, np.ndarray]:
        """Return the layers whose curves vary over enough steps that both have, as tables."""
        first = self.tabulated(data)
        second = data.other.transpose("step", "layer").values
        gaps = np.isnan(first) | np.isnan(second)
        # A distance to the reference on either side is 0 at it.
        for table in (first, second):
            reference = curve_reference(data, table)
            if reference is not None:
                gaps[reference] = True
        tables = [np.where(gaps, np.nan, table) for table in (first, second)]
        usable = (~gaps).sum(axis=0) >= FEWEST_FOR_A_TREND
        for table in tables:
            usable &= _varies(table)
        if not usable.any():
            raise ArgumentError(
                f"no layer of {self.of!r} and {self.against!r} varies over at least "
                f"{FEWEST_FOR_A_TREND} steps that both have."
            )
        first, second = (table[:, usable] for table in tables)
        return data.isel(layer=np.flatnonzero(usable)), first, second

    def _with_other(self, data: xr.Dataset, node: xr.Dataset) -> xr.Dataset:
        """Return the layers that both nodes have, with ``other(step, layer)``."""
        other = curves_of(
            node, self.against, self.against_variable, self.against_select
        )
        # The same curve beside each layer's.
        if list(other.layer.values) == [WHOLE_MODEL]:
            other = other.isel(layer=0, drop=True).expand_dims(layer=data.layer.values)
        layers = [
            label for label in data.layer.values if label in set(other.layer.values)
        ]
        if not layers:
            raise ArgumentError(
                f"{self.of!r} and {self.against!r} have no layer in common."
            )
        other = other.reindex(step=data.step.values, layer=layers)
        return data.sel(layer=layers).assign(other=other)


def _varies(table: np.ndarray) -> np.ndarray:
    """Return for each column whether it holds two different numbers."""
    there = ~np.isnan(table)
    low = np.where(there, table, np.inf).min(axis=0)
    high = np.where(there, table, -np.inf).max(axis=0)
    return high - low > MEASURABLE * np.maximum(np.abs(high), np.abs(low))


def _on_an_axis(values: np.ndarray, node: str) -> xr.Variable:
    return xr.Variable(
        ("step", "layer"), values, {"long_name": f"{node}, standardised"}
    )


def _rolling(signals: np.ndarray, half_window: int) -> np.ndarray:
    """Return rolling means (signal, step, layer) over the steps that are there, NaN at others."""
    means = np.full(signals.shape, np.nan)
    for layer in range(signals.shape[2]):  # both signals have the same gaps
        there = ~np.isnan(signals[0, :, layer])
        means[:, there, layer] = rolling_mean(signals[:, there, layer], half_window)
    return means


def _mean(signals: np.ndarray) -> np.ndarray:
    """Return the mean over layers, NaN where all are."""
    there = ~np.isnan(signals)
    count = there.sum(axis=-1)
    return np.where(there, signals, 0.0).sum(axis=-1) / np.where(
        count > 0, count, np.nan
    )


def _words(names: list[str], data: xr.Dataset, result: SignalComparison) -> list[str]:
    count = data.sizes["layer"]
    raw = float(data.mean_pearson)
    tested = int(np.isfinite(data.pearson_p).sum())
    alike = int((data.structure_p <= FREE).sum())
    text = f"{names[0]} and {names[1]} have a mean |r| of {raw:.2f} over {count} layers"
    words = [f"{text}, trends included: any two decays have a high one."]
    if alike:
        words.append(
            f"In {alike} of {count} layers jumps or a cycle at the same checkpoints, as a shared "
            "schedule would make them in both, cannot be ruled out: no verdict."
        )
    if not tested and not alike:
        words.append(
            "In no layer do both show noise distinguishable from their trends: nothing to test."
        )
    if tested:
        related = int((data.pearson_p <= 0.05).sum())
        words.append(
            f"Around the trends they are related in {related} of {tested} judged layers (Holm)."
        )
    if np.isfinite(result.joint_p):
        verdict = "more" if result.joint_p <= 0.05 else "no more"
        words.append(
            f"Over all layers the fluctuations correlate with r = {result.joint_pearson:.2f} "
            f"(p = {result.joint_p:.3f}): {verdict} than the trends explain. A run that moved as "
            "far and learned nothing may look the same."
        )
    elif np.isfinite(result.joint_structure_p):
        words.append(
            "That all layers together follow one schedule cannot be ruled out: no verdict."
        )
    return words
