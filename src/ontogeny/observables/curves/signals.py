"""Curves of two nodes beside each other: do they share more than their trends (row A9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ...dynamics import FEWEST_FOR_A_TREND, SignalComparison, compare_signals, holm, standardise
from ...errors import ArgumentError, check_whole
from ...figures import Column, Curves, Section, Table, attach
from ...summary import MEASURABLE, Names
from ..arguments import check_labels, check_node
from .base import WHOLE_MODEL, OfCurve, curve_reference, curves_of

_NAMES = (
    "pearson",
    "spearman",
    "rolling_pearson",
    "fluctuation_pearson",
    "fluctuation_spearman",
    "dtw",
    "dtw_surrogates",
    "mutual_information",
    "mutual_information_surrogates",
)


@dataclass(frozen=True)
class Signals(OfCurve):
    """A node's curves compared with those of another node, layer by layer and averaged.

    Parameters
    ----------
    of, variable, select, first, last, label
        The curves, such as concepts' distance to the reference; see
        `ontogeny.observables.curves.OfCurve`.
    against, against_variable, against_select
        The curves they are compared with; default: how activations decay.
    half_window
        Neighbours on each side in the rolling means.
    surrogates, random_state
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
    surrogates: int = 999
    random_state: int = 0

    kind: ClassVar[str] = "signals"
    variables: ClassVar[Names] = {
        "other": ("the curve compared with", ""),
        "standardised": ("standardised value", "1"),
        "averaged": ("mean over layers of standardised values", "1"),
        "pearson": ("Pearson correlation", "1"),
        "spearman": ("rank correlation", "1"),
        "rolling_pearson": ("Pearson correlation of rolling means", "1"),
        "fluctuation_pearson": ("Pearson correlation around the trends", "1"),
        "fluctuation_spearman": ("rank correlation around the trends", "1"),
        "pearson_p": ("p-value of the Pearson correlation, corrected", "1"),
        "spearman_p": ("p-value of the rank correlation, corrected", "1"),
        "dtw": ("dynamic time warping distance", "1"),
        "dtw_surrogates": ("dynamic time warping distance of surrogates", "1"),
        "mutual_information": ("mutual information", "nats"),
        "mutual_information_surrogates": ("mutual information of surrogates", "nats"),
        "reason": ("why it is not tested", ""),
        "mean_pearson": ("mean absolute Pearson correlation over layers", "1"),
        "mean_rolling_pearson": ("mean absolute correlation of rolling means", "1"),
        "joint_pearson": ("correlation around the trends, all layers", "1"),
        "joint_p": ("p-value of the correlation, all layers", "1"),
    }

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        check_node("against", self.against)
        check_labels("against_select", self.against_select)
        check_whole("half_window", self.half_window, minimum=0)
        check_whole("surrogates", self.surrogates, minimum=19)

    @property
    def depends_on(self) -> tuple[str, ...]:  # type: ignore[override]
        """Both nodes."""
        return (self.of, self.against)

    def summarise(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Add the other curves, standardised ones, comparisons, figures and sentences."""
        both = self._with_other(self.curves(data, nodes), nodes[self.against])
        data, first, second = self._comparable(both)
        found = compare_signals(
            first,
            second,
            data.step.values,
            half_window=self.half_window,
            n_surrogates=self.surrogates,
            random_state=self.random_state,
        )
        shown = np.stack([standardise(first), standardise(second)])
        names = [self.of, self.against]
        columns = {name: ("layer", getattr(found, name)) for name in _NAMES}
        data = (
            data.assign_coords(signal=names)
            .assign(columns)
            .assign(
                standardised=(("signal", "step", "layer"), shown),
                averaged=(("signal", "step"), _mean(shown)),
                pearson_p=("layer", holm(found.pearson_p)),
                spearman_p=("layer", holm(found.spearman_p)),
                reason=("layer", np.asarray(found.reason, dtype=object)),
                mean_pearson=float(np.mean(np.abs(found.pearson))),
                mean_rolling_pearson=float(np.mean(np.abs(found.rolling_pearson))),
                joint_pearson=found.joint_pearson,
                joint_p=found.joint_p,
            )
        )
        words = _words(names, data, found)
        return attach(data, _section(*names), _figures(), words)

    def _comparable(self, data: xr.Dataset) -> tuple[xr.Dataset, np.ndarray, np.ndarray]:
        """Return the layers whose curves vary over enough steps that both have, as tables."""
        first = self.tabulated(data)
        second = data.other.transpose("step", "layer").values
        gaps = np.isnan(first) | np.isnan(second)
        for table in (first, second):  # a distance to the reference on either side is 0 at it
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
        other = curves_of(node, self.against, self.against_variable, self.against_select)
        if list(other.layer.values) == [WHOLE_MODEL]:  # the same curve beside each layer's
            other = other.isel(layer=0, drop=True).expand_dims(layer=data.layer.values)
        layers = [label for label in data.layer.values if label in set(other.layer.values)]
        if not layers:
            raise ArgumentError(f"{self.of!r} and {self.against!r} have no layer in common.")
        other = other.reindex(step=data.step.values, layer=layers)
        return data.sel(layer=layers).assign(other=other)


def _varies(table: np.ndarray) -> np.ndarray:
    """Return for each column whether it holds two different numbers."""
    there = ~np.isnan(table)
    low = np.where(there, table, np.inf).min(axis=0)
    high = np.where(there, table, -np.inf).max(axis=0)
    return high - low > MEASURABLE * np.maximum(np.abs(high), np.abs(low))


def _mean(shown: np.ndarray) -> np.ndarray:
    """Return the mean over layers, NaN where all are."""
    there = ~np.isnan(shown)
    count = there.sum(axis=-1)
    return np.where(there, shown, 0.0).sum(axis=-1) / np.where(count > 0, count, np.nan)


def _words(names: list[str], data: xr.Dataset, found: SignalComparison) -> list[str]:
    count = data.sizes["layer"]
    raw = float(data.mean_pearson)
    tested = int(np.isfinite(data.pearson_p).sum())
    text = f"{names[0]} and {names[1]} have a mean |r| of {raw:.2f} over {count} layers"
    words = [f"{text}, trends included: any two decays have a high one."]
    if not tested:
        words.append(
            "In no layer do both show noise that could be told from their trends: nothing to test."
        )
        return words
    related = int((data.pearson_p <= 0.05).sum())
    words.append(f"Around the trends they are related in {related} of {tested} layers (Holm, 5 %).")
    verdict = "more" if found.joint_p <= 0.05 else "no more"
    words.append(
        f"Over all layers the fluctuations correlate with r = {found.joint_pearson:.2f} "
        f"(p = {found.joint_p:.3f}): {verdict} than the trends explain."
    )
    return words


def _section(first: str, second: str) -> Section:
    return Section(
        title=f"Signals ({first} and {second})",
        definition="Two curves of each layer beside each other: correlation, dynamic time warping "
        "and mutual information of the values, and what they share around their trends.",
        symbol="r = cor(x, y);  r_f = cor(x − trend, y − trend)",
        null="Surrogates that keep the trend, the local noise and its memory of one curve, and "
        "nothing of what it shares with the other. Two independent decays have a high r and are "
        "called related in about 5 % at level 5 %.",
        care="A high r between two decays is no evidence of anything. Without noise in a curve "
        "there is nothing to test. A shared fluctuation may come from the tokens or checkpoints "
        "that both curves use.",
        source="Bernas 2025, sec. 5.4, Figs 6 and 7",
    )


def _figures() -> list[Curves | Table]:
    fluctuations = [
        Column("pearson", "Pearson r", over="values"),
        Column("spearman", "Spearman", over="values"),
        Column("fluctuation_pearson", "Pearson r", over="around the trends"),
        Column("pearson_p", "p (Holm)", over="around the trends"),
        Column("fluctuation_spearman", "Spearman", over="around the trends"),
        Column("spearman_p", "p (Holm)", over="around the trends"),
    ]
    courses = [
        Column("rolling_pearson", "r of rolling means"),
        Column("dtw", "measured", over="DTW"),
        Column("dtw_surrogates", "trends alone", over="DTW"),
        Column("mutual_information", "measured", over="mutual information"),
        Column("mutual_information_surrogates", "trends alone", over="mutual information"),
    ]
    return [
        Curves(
            "overlay",
            "Standardised curves of each layer",
            value="standardised",
            series="signal",
            facet="layer",
            caption="Mean 0 and standard deviation 1 over the steps; the reference step left out.",
        ),
        Curves(
            "averaged",
            "Averaged over layers",
            value="averaged",
            series="signal",
            caption="Mean of the standardised curves.",
        ),
        Table("layers", "Correlations, and beyond the trends", columns=fluctuations),
        Table("courses", "Courses, beside what the trends alone give", columns=courses),
    ]
