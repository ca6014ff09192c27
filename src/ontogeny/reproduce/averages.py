"""The nodes of a page: what the observables declare, as means over seeds, runs side by side."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from ..figures import Curves, Figure, NullComparison, Scatter, Section
from ..observables import Observable
from ..quantities import Quantity
from ..summary import mean_of_seeds
from ..summary.figures import default_figures

__all__ = ["average_node", "by_kind"]

_MOST = 8  # values in a sentence
_SPECIAL: dict[str, tuple[Quantity, ...]] = {
    "commutators": (
        Quantity("mean_loss", "training loss, median of the pairs", "nats", y_scale="log"),
    ),
    "sae-probe": (
        Quantity("accuracy", "accuracy before removal", "share of answers"),
        Quantity("latents_above_null", "latents that correlate beyond chance", "latents"),
    ),
}
_AGAINST_LOSS = Scatter(
    "against-loss",
    "Norm of the commutator against the loss",
    x="mean_loss",
    y="norm_over_pairs",
    points="step",
    colour="step",
    select={"statistic": "median"},
    x_scale="log",
    y_scale="log",
    caption="Means over seeds at each step. Both fall in training: that alone relates them.",
)


def average_node(
    observable: Observable, runs: Mapping[str, Sequence[xr.Dataset]], claim: str, source: str
) -> xr.Dataset:
    """Return the figures of an observable with means over seeds, and what they show in words.

    Parameters
    ----------
    observable
        What was observed.
    runs
        Its node in the study of each seed, by the label of the run.
    claim, source
        What the paper says, and where.
    """
    first = next(iter(runs.values()))[0]
    quantities = (*observable.quantities, *_SPECIAL.get(observable.kind, ()))
    special = list(observable.figures(first, {}))
    if observable.kind == "commutators":
        special.append(_AGAINST_LOSS)
    found = {label: [_prepared(observable, node) for node in nodes] for label, nodes in runs.items()}
    drawn = [*default_figures(next(iter(found.values()))[0], quantities), *special]
    names = _drawn_names(drawn)
    section = (observable.section or Section(observable.name, "")).filled(observable.arguments())
    return mean_of_seeds(
        {label: [_numbers(node, names) for node in nodes] for label, nodes in found.items()},
        quantities,
        dataclasses.replace(section, source=source),
        figures=special,
        words=lambda data: [f"The paper: {claim}", *_sentences(data, drawn)],
        role="motion",  # means have no rows, and say nothing of development by themselves
    )


def by_kind(node: xr.Dataset) -> xr.Dataset:
    """Return the numbers of weight matrices as means over those of one kind.

    Examples
    --------
    >>> blocks = ["layers.0.q_proj.weight", "layers.1.q_proj.weight"]
    >>> node = xr.Dataset({"variance_rank": ("block", [3.0, 5.0])}, {"block": blocks})
    >>> by_kind(node).variance_rank.to_series().to_dict()
    {'q_proj': 4.0}
    """
    kinds = [str(block).rsplit(".", 2)[-2] for block in node.block.values]
    own = [name for name, values in node.data_vars.items() if "block" in values.dims]
    numbers = node[[name for name in own if node[name].dtype.kind in "fiub"]]
    return numbers.astype(float).assign_coords(block=kinds).groupby("block").mean()


def _prepared(observable: Observable, node: xr.Dataset) -> xr.Dataset:
    if observable.kind == "weight-rank":
        means = by_kind(node)
        return node.drop_dims("block").merge(means).drop_attrs(deep=False)
    if observable.kind == "commutators":
        return node.assign(mean_loss=node["loss"].median("pair"))
    return node


def _drawn_names(figures: Sequence[Figure]) -> list[str]:
    """Return what the figures draw, without the intervals of one seed."""
    names = dict.fromkeys(name for figure in figures for name in figure.variables() if name)
    ends = {end for figure in figures for end in getattr(figure, "interval", None) or ()}
    return [name for name in names if name not in ends]


def _numbers(node: xr.Dataset, names: Sequence[str]) -> xr.Dataset:
    kept = [n for n in names if n in node.data_vars and node[n].dtype.kind in "fiub"]
    return node[kept].drop_attrs(deep=False)


# ---- sentences ----------------------------------------------------------------------------------


def _sentences(data: xr.Dataset, figures: Sequence[Figure]) -> Iterator[str]:
    """Say what the first figure shows; dots beside their nulls go before curves."""
    order = sorted(figures, key=lambda figure: not isinstance(figure, NullComparison))
    figure: Any = next(each for each in order if isinstance(each, NullComparison | Curves))
    for label in data.run.values if "run" in data.dims else [None]:
        one = data if label is None else data.sel(run=label)
        head = f"{figure.title}: " if label is None else f"{label}, {_lower(figure.title)}: "
        yield head + _values(one, figure) + "."


def _lower(title: str) -> str:
    return title[:1].lower() + title[1:]


def _values(data: xr.Dataset, figure: Any) -> str:
    value = data[figure.value]
    within = ""
    dims = [str(dim) for dim in value.dims if dim != "step"]
    if figure.facet in dims and np.prod([value.sizes[dim] for dim in dims]) > _MOST:
        data = data.isel({figure.facet: -1})
        within = f"{data[figure.facet].values}: "
        dims.remove(figure.facet)
    if "step" in value.dims:
        data = data.dropna("step", how="all", subset=[figure.value])
        within = f"steps {int(data.step[0]):,} and {int(data.step[-1]):,}: {within}"
    labels = itertools.product(*(data[dim].values for dim in dims))
    each = [_value(data.sel(dict(zip(dims, at, strict=True))), figure, at) for at in labels]
    return within + ", ".join(each)


def _value(data: xr.Dataset, figure: Any, labels: Sequence[Any]) -> str:
    """Return ``"m=1 0.12 and 0.98 ± 0.01 (most frequent label 0.13)"``."""
    name = figure.value
    last = data if "step" not in data[name].dims else data.isel(step=-1)
    sd = float(last[f"{name}_sd"])
    text = f"{float(last[name]):.3g}" + (f" ± {sd:.2g}" if np.isfinite(sd) else "")
    if "step" in data[name].dims:
        text = f"{float(data[name][0]):.3g} and {text}"
    beside = "; ".join(_null(last, band) for band in figure.bands)
    words = " · ".join(map(str, labels))
    return f"{words} {text}".strip() + (f" ({beside})" if beside else "")


def _null(data: xr.Dataset, band: Any) -> str:
    low, high = (f"{float(data[end]):.3g}" for end in (band.lower, band.upper))
    return f"{band.label} {low}" + (f" to {high}" if high != low else "")
