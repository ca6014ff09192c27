"""The nodes of a page: what the observables declare, as means over seeds, runs side by side."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

from ontogeny.figures import (
    Band,
    Curves,
    Figure,
    NullComparison,
    Scatter,
    Section,
    Table,
)
from ontogeny.observables import Observable
from ontogeny.quantities import Quantity, of_names
from ontogeny.summary.figures import default_figures, figure_of_runs
from ontogeny.summary.summarise import summarise
from ontogeny.words.names import named

from .comparison_judges import below_random_order, by_kind
from .verdicts import Runs, RunsOf

_MOST = 8  # values in a sentence; more are left to the figure
_SPECIAL: dict[str, tuple[Quantity, ...]] = {
    "commutators": (
        Quantity(
            "mean_loss", "training loss, median of the pairs", "nats", y_scale="log"
        ),
    ),
    "sae-probe": (
        Quantity("accuracy", "accuracy before removal", "share of answers"),
        Quantity(
            "latents_above_null", "latents that correlate beyond chance", "latents"
        ),
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
    observable: Observable, runs: RunsOf, claim: str, source: str
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
    nodes_of = {
        label: [_prepared(observable, node) for node in nodes]
        for label, nodes in runs.items()
    }
    first = next(iter(nodes_of.values()))[0]
    quantities = (*observable.quantities, *_SPECIAL.get(observable.kind, ()))
    tables = (_of_numbers(table.figure(first), first) for table in observable.tables)
    special = [*observable.figures(first, {}), *tables]
    if observable.kind == "commutators":
        special.append(_AGAINST_LOSS)
    figures = [*default_figures(first, quantities), *special]
    names = _drawn_names(figures)
    section = (observable.section or Section(observable.name, "")).filled(
        observable.arguments()
    )
    below = _below(runs) if observable.kind == "weight-rank" else []
    means = mean_of_seeds(
        {
            label: [_numbers(node, names) for node in nodes]
            for label, nodes in nodes_of.items()
        },
        [quantity for quantity in quantities if quantity.name in names],
        dataclasses.replace(section, source=source),
        figures=special,
        words=lambda data: [f"The paper: {claim}", *_sentences(data, figures), *below],
        role="motion",  # means have no rows and are not counted in the page's verdict
    )
    means.attrs["mark"] = "means over seeds, not counted in the verdict"
    return means


def _prepared(observable: Observable, node: xr.Dataset) -> xr.Dataset:
    if observable.kind == "weight-rank":
        means = by_kind(node)
        return node.drop_dims("block").merge(means).drop_attrs(deep=False)
    if observable.kind == "commutators":
        return node.assign(mean_loss=node["loss"].median("pair"))
    return node


def _of_numbers(table: Table, data: xr.Dataset) -> Table:
    """Return a table without its columns of words, which have no mean."""
    numeric = [
        column for column in table.columns if data[column.value].dtype.kind in "fiub"
    ]
    return dataclasses.replace(table, columns=numeric)


def _drawn_names(figures: Sequence[Figure]) -> list[str]:
    """Return what the figures draw, without the intervals of one seed."""
    names = dict.fromkeys(
        name for figure in figures for name in figure.variables() if name
    )
    ends = {
        end for figure in figures for end in getattr(figure, "interval", None) or ()
    }
    return [name for name in names if name not in ends]


def _numbers(node: xr.Dataset, names: Sequence[str]) -> xr.Dataset:
    numeric = [n for n in names if n in node.data_vars and node[n].dtype.kind in "fiub"]
    return node[numeric].drop_attrs(deep=False)


# ---- sentences ----------------------------------------------------------------------------------


def _below(runs: RunsOf) -> Iterator[str]:
    for label, nodes in runs.items():
        count, tested, _ = below_random_order(nodes)
        start = f"{label}: " if len(runs) > 1 else ""
        yield (
            f"{start}{count} of {tested} matrices have a lower rank than the same directions in "
            "random order, with step lengths at their place (p < .05 each, uncorrected)."
        )


def _sentences(data: xr.Dataset, figures: Sequence[Figure]) -> Iterator[str]:
    """Give the values of the first figure in words; dots beside their nulls go before curves."""
    order = sorted(figures, key=lambda figure: not isinstance(figure, NullComparison))
    figure: Any = next(
        (item for item in order if isinstance(item, NullComparison | Curves)), None
    )
    if figure is None:  # only maps, whose values no sentence can hold
        return
    for label in data.run.values if "run" in data.dims else [None]:
        one, start = (
            (data, "") if label is None else (data.sel(run=label), f"{label}: ")
        )
        if values := _values(one, figure):
            yield f"{start}{figure.title}{values}."


def _values(data: xr.Dataset, figure: Any) -> str:
    """Return ``" at steps 0 and 9: m=1 0.12 and 0.98 ± 0.01 (most frequent label 0.13)"``.

    Empty where there are more numbers than a sentence can hold.
    """
    value = data[figure.value]
    where = ""
    dims = [str(dim) for dim in value.dims if dim != "step"]
    if "step" in value.dims:
        data = data.dropna("step", how="all", subset=[figure.value])
        where = f" at steps {int(data.step[0]):,} and {int(data.step[-1]):,}"
    if figure.facet in dims and np.prod([value.sizes[dim] for dim in dims]) > _MOST:
        data = data.isel({figure.facet: -1})
        where += f", {data[figure.facet].values}"
        dims.remove(figure.facet)
    labels = list(itertools.product(*(data[dim].values for dim in dims)))
    if len(labels) > _MOST:  # the figure shows them
        return ""
    parts = [data.sel(dict(zip(dims, at, strict=True))) for at in labels]
    nulls = [_nulls(part, figure.bands[:2]) for part in parts]  # the figure shows all
    alike = len(set(nulls)) == 1
    texts = [
        f"{' · '.join(map(str, at))} {_number(part, figure.value)}".strip()
        + ("" if alike else f" ({null})")
        for at, part, null in zip(labels, parts, nulls, strict=True)
    ]
    return f"{where}: {', '.join(texts)}" + (
        f"; {nulls[0]}" if alike and nulls[0] else ""
    )


def _number(data: xr.Dataset, name: str) -> str:
    """Return the first and the last mean, the latter with its SD."""
    last = _last(data)
    text = f"{float(last[name]):.3g}"
    sd = float(last[f"{name}_sd"])
    text += f" ± {sd:.2g}" if np.isfinite(sd) else ""
    return (
        f"{float(data[name][0]):.3g} and {text}" if "step" in data[name].dims else text
    )


def _nulls(data: xr.Dataset, bands: Sequence[Band]) -> str:
    last = _last(data)
    words = []
    for band in bands:
        low, high = (f"{float(last[end]):.3g}" for end in (band.lower, band.upper))
        words.append(f"{band.label} {low}" + (f" to {high}" if high != low else ""))
    return "; ".join(words)


def _last(data: xr.Dataset) -> xr.Dataset:
    return data.isel(step=-1) if "step" in data.dims else data


def mean_of_seeds(
    runs_of: RunsOf,
    quantities: Sequence[Quantity],
    section: Section,
    *,
    figures: Sequence[Figure] = (),
    words: Callable[[xr.Dataset], Sequence[str]] = lambda _: (),
    role: str = "development",
) -> xr.Dataset:
    """Return the mean over seeds of each run with the figures of its quantities.

    Shades are mean ± SD, as the section says. Means make no rows: two or three seeds give no
    noise to judge a change by.

    Parameters
    ----------
    runs_of
        As in `over_seeds`.
    quantities, section, role
        As in `summarise`.
    figures
        Further figures, as they are drawn of a single run of one seed.
    words
        From the means to sentences.

    Examples
    --------
    >>> seeds = [
    ...     xr.Dataset({"x": ("step", [1.0, y])}, {"step": [0, 1]}) for y in (2, 4)
    ... ]
    >>> section = Section("Loss", "Mean loss.")
    >>> mean = mean_of_seeds(
    ...     {"one": seeds, "other": seeds}, [Quantity("x", "loss")], section
    ... )
    >>> mean.x.sel(run="one").values, dict(mean.x.attrs)
    (array([1., 3.]), {'long_name': 'loss', 'units': '1'})
    """
    data = named(over_seeds(runs_of), of_names(quantities))
    shade = f"Shade: mean ± SD over {int(np.max(data.seeds))} seeds."
    with_intervals = [_with_interval(figure, data) for figure in figures]
    if "run" in data.dims:
        with_intervals = [figure_of_runs(figure) for figure in with_intervals]
    return summarise(
        data,
        [dataclasses.replace(quantity, rows="", shade="") for quantity in quantities],
        dataclasses.replace(section, care=f"{section.care} {shade}".strip()),
        figures=lambda _: with_intervals,
        words=words,
        role=role,
    )


def _with_interval(figure: Figure, data: xr.Dataset) -> Figure:
    ends = f"{figure.value}_low", f"{figure.value}_high"
    if not hasattr(figure, "interval") or ends[0] not in data:
        return figure
    return dataclasses.replace(figure, interval=ends)  # type: ignore[call-arg]


def over_seeds(runs_of: RunsOf) -> xr.Dataset:
    """Return the mean over seeds of every variable, with ``_sd``, ``_low`` and ``_high``.

    Parameters
    ----------
    runs_of
        By the label of a run: one dataset of numbers for each seed.

    Returns
    -------
    xarray.Dataset
        Each variable ``v`` as ``v`` (mean), ``v_sd`` (n − 1 in the denominator; NaN for a single
        seed), ``v_low`` and ``v_high`` (mean ± SD), along ``run`` where there are several runs,
        and ``seeds``. Labels that a run lacks hold NaN.

    Examples
    --------
    >>> data = over_seeds(
    ...     {"mixed": [xr.Dataset({"rank": 3.0}), xr.Dataset({"rank": 5.0})]}
    ... )
    >>> float(data["rank"]), float(data["rank_sd"]), int(data["seeds"])
    (4.0, 1.4142135623730951, 2)
    """
    runs = {label: _of_run(seeds) for label, seeds in runs_of.items()}
    if len(runs) == 1:
        return next(iter(runs.values()))
    pieces = [data.expand_dims(run=[label]) for label, data in runs.items()]
    return xr.concat(pieces, dim="run", join="outer", data_vars="all", coords="minimal")


def _of_run(seeds: Runs) -> xr.Dataset:
    stacked = xr.concat(
        list(seeds), dim="seed", join="outer", data_vars="all", coords="minimal"
    )
    result: dict[str, xr.DataArray] = {}
    for name, values in stacked.data_vars.items():
        values = values.astype(float)
        mean = values.mean("seed", skipna=False)
        several = stacked.sizes["seed"] > 1
        sd = values.std("seed", ddof=1, skipna=False) if several else mean * np.nan
        spread = sd.fillna(0.0)
        mean.attrs.update(values.attrs)
        result |= {
            str(name): mean,
            f"{name}_sd": sd,
            f"{name}_low": mean - spread,
            f"{name}_high": mean + spread,
        }
    return xr.Dataset(result).assign(seeds=stacked.sizes["seed"])
