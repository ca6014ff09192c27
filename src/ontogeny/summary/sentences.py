"""Sentences on the rows of a node: from what to what, in which direction, when, beyond what."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import xarray as xr

from ..quantities import Quantity

NO_CONTROL = "No control was run: one that moved as far and learned nothing may look the same."


def statements(data: xr.Dataset, quantities: Sequence[Quantity]) -> list[str]:
    r"""Return what the rows of every quantity show; rows that its subject names by themselves.

    Parameters
    ----------
    data
        A node with rows that were judged (`ontogeny.summary.judged`).
    quantities
        What it holds.

    Examples
    --------
    >>> from ontogeny.summary import chart_rows
    >>> loss = Quantity("x", "loss", "nats", rows="loss", subject="The loss")
    >>> data = xr.Dataset({"x": ("step", np.linspace(8, 4, 10)), "x_stderr": 0.036})
    >>> data = data.assign_coords(step=np.arange(10))
    >>> print(*statements(data.assign(chart_rows(data, [loss])), [loss]), sep="\n")
    The loss fell from 8 to 4 nats; half of the change was over by step 4.5 (4–5).
    No control was run: one that moved as far and learned nothing may look the same.
    """
    words: list[str] = []
    for quantity in quantities:
        if quantity.name not in data:
            if not quantity.optional:
                words.append(f"No cell holds the {quantity.title} ({quantity.name!r}).")
        elif quantity.subject is not None and quantity.rows and "row" in data.dims:
            for subject, at, rows in _groups(data, quantity):
                words += _of_rows(rows, subject, at, quantity)
    of_change = "changed" in data and bool(data.changed.any()) and words
    return [*words, NO_CONTROL] if of_change and "p_control" not in data else words


def _groups(
    data: xr.Dataset, quantity: Quantity
) -> Iterator[tuple[str, dict[str, str], xr.Dataset]]:
    """Give the subject with labels and rows: all at once, or those of each label that it names."""
    own = data.isel(row=np.flatnonzero(data.row_quantity.values == quantity.name))
    if not own.sizes["row"]:
        return
    value = data[quantity.name]
    dims = [str(d) for d in value.dims if d not in ("step", *quantity.at)]
    subject = quantity.subject or f"The {quantity.title}" + (" of {layer}" * ("layer" in dims))
    named = [d for d in dims if d != "layer" and f"{{{d}}}" in subject]
    if not named:
        yield subject, {}, own
        return
    order = sorted(dims, key=lambda dim: dim == "layer")
    labels = list(itertools.product(*(value[dim].values for dim in order)))
    for wanted in itertools.product(*(value[dim].values for dim in named)):
        at = dict(zip(named, map(str, wanted), strict=True))
        kept = [
            i
            for i, each in enumerate(labels)
            if all(str(dict(zip(order, each, strict=True))[d]) == at[d] for d in named)
        ]
        yield subject, at, own.isel(row=kept)


def _filled(text: str, at: Mapping[str, str]) -> str:
    """Return a text with labels where it names their dimensions; labels may hold braces, too."""
    return re.sub(r"\{(\w+)\}", lambda found: at.get(found[1], found[0]), text)


def _of_rows(
    rows: xr.Dataset, subject: str, at: Mapping[str, str], quantity: Quantity
) -> list[str]:
    count = rows.sizes["row"]
    if count == 1:
        layer = str(rows.row_layer.values[0])
        what = _filled(subject, {**at, "layer": layer})
    else:
        what = subject.replace(" of {layer}", "").replace(" in {layer}", "")
        what = _filled(what, {**at, "layer": "the layers"})
    if quantity.relative_to:
        what = f"{what}: the {quantity.title}"
    if not rows.noise_known.values.any():
        return [f"{what}: its noise was not measured, so that no verdict is given."]
    changed = np.flatnonzero(rows.changed.values)
    unjudged = rows.noise_known.values & ~rows.judgeable.values
    memory = unjudged & rows.only_memory.values
    few = int((unjudged & ~memory).sum())
    words = [_change(rows.isel(row=changed), count, what, quantity)] if len(changed) else []
    if few:
        words.append(f"{what}: too few checkpoints to judge {_some(few, rows)}.")
    if memory.any():
        words.append(
            f"{what}: jitter with memory would give the same curve in "
            f"{_share(int(memory.sum()), count, rows)}, so that no verdict is given."
        )
    if not unjudged.any() and not len(changed):
        words.append(_no_course(rows, what, quantity))
    if len(changed):
        words += [*_order(rows.isel(row=changed), quantity), *_control(rows, changed)]
    return words


def _no_course(rows: xr.Dataset, what: str, quantity: Quantity) -> str:
    """Say that no row changed; of those that moved, that only the order of steps is not shown."""
    count, moved = rows.sizes["row"], int(rows.moved.sum())
    if not moved:
        return f"{what}: no change above noise and chance in {_any(rows)}."
    chance = f"by more than noise, but chance may give {rows.sizes['step']:,} checkpoints such"
    if count > 1:
        return f"{what} moved in {_share(moved, count, rows)} {chance} an order."
    return (
        f"{what} went {_ends(rows, quantity)}, {chance} an order (p = {rows.p_value.item():.2g})."
    )


def _ends(rows: xr.Dataset, quantity: Quantity) -> str:
    units = "" if quantity.units == "1" else f" {quantity.units}"
    return f"from {_values(rows.first_value)} to {_values(rows.last_value)}{units}"


def _change(rows: xr.Dataset, count: int, what: str, quantity: Quantity) -> str:
    """Say in which direction rows went, from what to what, and when half of it was over."""
    rises = rows.last_value.values > rows.first_value.values
    where = "" if count == 1 else f" in {_share(len(rises), count, rows)}"
    ends = _ends(rows, quantity)
    if rises.all() or not rises.any():
        verb = "rose" if rises.all() else "fell"
        return f"{what} {verb}{where} {ends}; {_half(rows)}{_settled(rows)}."
    up, down = int(rises.sum()), int((~rises).sum())
    return f"{what} changed{where}: it rose in {up} and fell in {down}, {ends}; {_half(rows)}."


def _half(rows: xr.Dataset) -> str:
    halves = rows.half_step.values
    if len(halves) > 1:
        first, last = _step(float(np.nanmin(halves))), _step(float(np.nanmax(halves)))
        when = f"steps {first} to {last}" if first != last else f"step {first}"
        return f"half of the change was over by {when}"
    return f"half of the change was over by {_when(rows)}"


def _when(rows: xr.Dataset) -> str:
    """Return the half-change step of a single row with its interval."""
    low, high = float(rows.half_step_low.values[0]), float(rows.half_step_high.values[0])
    known = np.isfinite([low, high]).all()
    interval = f" ({_step(low)}–{_step(high)})" if known else ""
    return f"step {_step(float(rows.half_step.values[0]))}{interval}"


def _settled(rows: xr.Dataset) -> str:
    settled = rows.settled_step.values
    if len(settled) > 1 or not settled[0] > rows.half_step.values[0]:
        return ""
    with_units = f" with {rows.attrs['units']} texts" if "units" in rows.attrs else ""
    step = _step(float(settled[0]))
    return f"; after step {step} any further change is too small to measure{with_units}"


def _order(rows: xr.Dataset, quantity: Quantity) -> list[str]:
    """Say which row came first and last, where nothing but the run decides that.

    The order of distances to a reference step turns round with the reference, and intervals that
    overlap have none.
    """
    if rows.sizes["row"] < 2 or quantity.relative_to or not rows.row_layer.values.all():
        return []
    order = np.argsort(rows.half_step.values, kind="stable")
    first, last = rows.isel(row=order[0]), rows.isel(row=order[-1])
    if not float(first.half_step_high) < float(last.half_step_low):
        return []
    parts = [f"{row.row_layer.item()}, by {_when(row.expand_dims('row'))}" for row in (first, last)]
    return [f"In this run the first layer to be half-way was {parts[0]}; the last was {parts[1]}."]


def _control(rows: xr.Dataset, changed: np.ndarray) -> list[str]:
    """Say what the control runs did, and whether the change goes beyond it."""
    if "p_control" not in rows:
        return []
    chosen = rows.isel(row=changed)
    if not np.isfinite(chosen.p_control.values).any():
        return ["These control runs cannot say whether motion alone would do the same."]
    of_controls = _changes(chosen.control_last - chosen.control_first)
    controls = f"over the same steps it changed by {_changes(chosen.run_change)}, and in control "
    controls += f"runs by {of_controls}"
    count, learned = len(changed), int(chosen.learned.sum())
    if learned == count:
        return [f"This was learned: {controls}."]
    beyond = int(chosen.beyond.sum())
    if beyond == count:
        return [f"That is beyond its motion: {controls}."]
    if not beyond:
        return [f"That is no more than motion gives: {controls}."]
    return [f"It is beyond motion in {_share(beyond, count, chosen)}: {controls}."]


def _changes(values: xr.DataArray) -> str:
    """Return changes with their sign, or the range of several."""
    known = values.values[np.isfinite(values.values)]
    ends = dict.fromkeys(
        f"{float(end):+.3g}".replace("-", "−") for end in (known.min(), known.max())
    )
    return " to ".join(ends)


def _values(values: xr.DataArray) -> str:
    """Return a value or the range of several."""
    known = values.values[np.isfinite(values.values)]
    ends = dict.fromkeys((_number(float(known.min())), _number(float(known.max()))))
    return "–".join(ends)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _step(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}".removesuffix(".0")


def _share(part: int, count: int, rows: xr.Dataset) -> str:
    if part == count:
        return f"{'both' if count == 2 else f'all {count}'} {_kind(rows)}"
    return f"{part} of {count} {_kind(rows)}"


def _some(count: int, rows: xr.Dataset) -> str:
    if rows.sizes["row"] == 1:
        return "it"
    return f"{count} of {rows.sizes['row']} {_kind(rows)}"


def _any(rows: xr.Dataset) -> str:
    count = rows.sizes["row"]
    return "its series" if count == 1 else f"any of {count} {_kind(rows)}"


def _kind(rows: xr.Dataset) -> str:
    """Return what rows are: layers where each is another one, else series of any kind."""
    layers = [str(layer) for layer in rows.row_layer.values if layer]
    return "layers" if len(set(layers)) == rows.sizes["row"] else "series"
