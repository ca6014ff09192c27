"""Sentences on the rows of a node: from what to what, in which direction, when, beyond what."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import xarray as xr

from ..dynamics.reasons import Reason
from ..quantities import Quantity
from .formats import fine_step, from_to, joined, value_range, with_labels
from .order import apart
from .reasons import MAY_GIVE, may_give
from .row_words import apart_from_controls
from .rows import Row, read_rows

FEW = 4  # rows that a sentence names one by one

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
    >>> from ontogeny.summary.rows import chart_rows
    >>> loss = Quantity("x", "loss", "nats", rows="loss", subject="The loss")
    >>> data = xr.Dataset({"x": ("step", np.linspace(8, 4, 10)), "x_stderr": 0.036})
    >>> data = data.assign_coords(step=np.arange(10))
    >>> print(*statements(data.assign(chart_rows(data, [loss])), [loss]), sep="\n")
    The loss fell from 8 to 4 nats; half of the change was over by step 4.5 (4–5).
    No control was run: one that moved as far and learned nothing may look the same.
    """
    rows = read_rows(data, "", "", "")
    sentences: list[str] = []
    for quantity in quantities:
        if quantity.name not in data:
            if not quantity.optional:
                sentences.append(f"No cell holds the {quantity.title} ({quantity.name!r}).")
        elif quantity.subject is not None and quantity.rows:
            for subject, at, members in _groups(data, rows, quantity):
                whole = _whole(subject, at, members, quantity)
                sentences += _of_rows(members, whole, data, quantity)
    changed = any(row.changed and not row.learned for row in rows) and sentences
    return [*sentences, NO_CONTROL] if changed and "p_control" not in data else sentences


def _groups(
    data: xr.Dataset, rows: Sequence[Row], quantity: Quantity
) -> Iterator[tuple[str, dict[str, str], list[Row]]]:
    """Give the subject with labels and rows: all at once, or those of each label that it names."""
    rows = [row for row in rows if row.variable == quantity.name]
    if not rows:
        return
    value = data[quantity.name]
    dims = [str(d) for d in value.dims if d not in ("step", *quantity.at)]
    subject = quantity.subject or f"The {quantity.title}" + (" of {layer}" * ("layer" in dims))
    label_dims = [d for d in dims if d != "layer" and f"{{{d}}}" in subject]
    if not label_dims:
        yield subject, {}, rows
        return
    order = sorted(dims, key=lambda dim: dim == "layer")
    labels = [
        dict(zip(order, map(str, place), strict=True))
        for place in itertools.product(*(value[dim].values for dim in order))
    ]
    for place in itertools.product(*(value[dim].values for dim in label_dims)):
        at = dict(zip(label_dims, map(str, place), strict=True))
        here = [at.items() <= label.items() for label in labels]
        yield subject, at, list(itertools.compress(rows, here))


def _whole(subject: str, at: Mapping[str, str], rows: Sequence[Row], quantity: Quantity) -> str:
    """Return the subject with labels where it names their dimensions; these may hold braces."""
    layer = rows[0].layer
    if len(rows) > 1:
        subject = subject.replace(" of {layer}", "").replace(" in {layer}", "")
        layer = "the layers"
    labels = {**at, "layer": layer}
    text = with_labels(subject, labels)
    return f"{text}: the {quantity.title}" if quantity.relative_to else text


def _of_rows(rows: Sequence[Row], subject: str, data: xr.Dataset, quantity: Quantity) -> list[str]:
    if not any(row.noise_known for row in rows):
        return [f"{subject}: its noise was not measured, so that no verdict is given."]
    changed = [row for row in rows if row.changed]
    unjudged = [row for row in rows if row.noise_known and not row.judgeable]
    counts = Counter(row.state.kind for row in unjudged)
    sentences = [_course(changed, rows, subject, data, quantity)] if changed else []
    for state, among in (("few", ""), ("many", " among so many rows")):
        if few := counts[state]:
            some = "it" if len(rows) == 1 else f"{few} of {len(rows)} {_kind(rows)}"
            sentences.append(f"{subject}: too few checkpoints to judge {some}{among}.")
    if memory := counts["memory"]:
        sentences.append(
            f"{subject}: noise that is correlated between checkpoints could give the same curve in "
            f"{_share(memory, rows)}, so that no verdict is given."
        )
    if slow := [row for row in unjudged if row.state.kind == "slow"]:
        course = _moved(slow, rows, data, subject, quantity)
        sentences.append(f"{course}, so that no verdict is given.")
    if not unjudged and not changed:
        sentences += _no_course(rows, data, subject, quantity)
    return [*sentences, *_order(changed, quantity), *_control(changed, data)]


def _no_course(
    rows: Sequence[Row], data: xr.Dataset, subject: str, quantity: Quantity
) -> list[str]:
    """Say that no row changed; of those that moved, what may give the same."""
    reasons = [reason for reason in MAY_GIVE if any(row.reason == reason for row in rows)]
    if not reasons:
        series = "its series" if len(rows) == 1 else f"any of {len(rows)} {_kind(rows)}"
        return [f"{subject}: no change above its noise in {series}."]
    groups = ([row for row in rows if row.reason == reason] for reason in reasons)
    return [f"{_moved(alike, rows, data, subject, quantity)}." for alike in groups]


def _moved(
    alike: Sequence[Row], rows: Sequence[Row], data: xr.Dataset, subject: str, quantity: Quantity
) -> str:
    """Say that some of the rows moved by more than noise, and what may give the same of them."""
    went = f"went {_ends(alike, data, quantity)}"
    if len(rows) > 1:
        went = f"moved in {_share(len(alike), rows)}"
    return f"{subject} {went} by more than noise, but {may_give(alike, Reason(alike[0].reason))}"


def _ends(rows: Sequence[Row], data: xr.Dataset, quantity: Quantity) -> str:
    """Say from what to what; of a distance to the last checkpoint also where it ends, before it."""
    first, last = ([getattr(r, name) for r in rows] for name in ("first_value", "last_value"))
    steps, before = data["step"].values, ""
    end = steps[-1] if quantity.relative_to == "last" else data.attrs.get("reference_step")
    if quantity.relative_to and end == steps[-1]:
        measured = np.isfinite([row.progress[:-1] for row in rows]).any(axis=0)
        before = (
            f" at {{step}} {steps[:-1][measured][-1]:,}, the last one before its reference "
            f"{{checkpoint}}"
        )
    return from_to(first, last, quantity.units) + before


def _course(
    changed: Sequence[Row], rows: Sequence[Row], subject: str, data: xr.Dataset, quantity: Quantity
) -> str:
    """Say in which direction rows went, from what to what, and when half of it was over."""
    rises = [row.last_value > row.first_value for row in changed]
    where = "" if len(rows) == 1 else f" in {_share(len(changed), rows, of=changed)}"
    ends, half = _ends(changed, data, quantity), ""
    if any(row.has_half for row in changed):
        half = f"; half of the change was over by {_half(changed)}"
    if len(set(rises)) == 1:
        verb = "rose" if rises[0] else "fell"
        return f"{subject} {verb}{where} {ends}{half}{_settled(changed, data)}."
    up, down = sum(rises), len(rises) - sum(rises)
    return f"{subject} changed{where}: it rose in {up} and fell in {down}, {ends}{half}."


def _half(rows: Sequence[Row]) -> str:
    """Return the half-change step of a row with its interval, or the range of several."""
    if len(rows) == 1:
        row = rows[0]
        step, low, high = map(fine_step, (row.half_step, row.half_step_low, row.half_step_high))
        has_interval = math.isfinite(row.half_step_low) and math.isfinite(row.half_step_high)
        return f"{{step}} {step}" + (f" ({low}–{high})" if has_interval else "")
    halves = [row.half_step for row in rows]
    first, last = fine_step(float(np.nanmin(halves))), fine_step(float(np.nanmax(halves)))
    return f"{{step}}s {first} to {last}" if first != last else f"{{step}} {first}"


def _settled(rows: Sequence[Row], data: xr.Dataset) -> str:
    if len(rows) > 1 or not rows[0].settled_step > rows[0].half_step:
        return ""
    with_units = f" with {data.attrs['units']} texts" if "units" in data.attrs else ""
    step = fine_step(rows[0].settled_step)
    return f"; after {{step}} {step} any further change is too small to measure{with_units}"


def _order(rows: Sequence[Row], quantity: Quantity) -> list[str]:
    """Say which row came before which, where nothing but the run decides that.

    The order of distances to a reference step turns round with the reference.
    """
    if quantity.relative_to or not all(row.layer for row in rows):
        return []
    parts = [f"{row.layer}, by {_half([row])}" for row in apart(rows, math.comb(len(rows), 2))]
    order = ", before it was in ".join(parts)
    return [f"In this run half of the change was over in {order}."] if parts else []


def _control(rows: Sequence[Row], data: xr.Dataset) -> list[str]:
    """Say what the control runs did, and whether the change goes beyond it."""
    if not rows or "p_control" not in data:
        return ["This was learned."] if rows and all(row.learned for row in rows) else []
    if not any(math.isfinite(row.p_control) or row.learned or row.lost for row in rows):
        return ["These control runs cannot say whether motion alone would do the same."]
    controls = [control for row in rows for control in row.controls]
    ends = (
        f"over the same {{checkpoint}}s it changed by "
        f"{_changes([c.run_change for c in controls])}, and in "
        f"control runs by {_changes([c.change for c in controls])}{_beginnings(rows)}"
    )
    learned, beyond = (sum(getattr(r, verdict) for r in rows) for verdict in ("learned", "beyond"))
    if learned == len(rows):
        return [f"This was learned: {ends}."]
    if all(row.lost for row in rows):
        return [f"This was forgotten: {ends}."]
    if beyond == len(rows):
        return [f"That is beyond its motion: {ends}."]
    if not beyond:
        apart = apart_from_controls(rows)
        what = f"not shown to be beyond motion ({apart})" if apart else "no more than motion gives"
        return [f"That is {what}: {ends}."]
    past, others = ([row for row in rows if bool(row.beyond) is side] for side in (True, False))
    mine = _changes([control.run_change for row in past for control in row.controls])
    theirs = _changes([control.change for row in past for control in row.controls])
    more = all(row.side == "more" for row in past)  # else smaller, or half-way at another step
    than = "this is more than in control runs" if more else "control runs do not give this"
    so_far = f"In {_places(past)} {than} ({mine} against {theirs}), and so beyond motion"
    return [f"{so_far}; in {_places(others)} it is not shown to be{_beginnings(rows)}."]


def _beginnings(rows: Sequence[Row]) -> str:
    """Say where control runs begin elsewhere, as concepts that are fitted anew to the first step.

    Distances are to the last step of each: that of a run began at 0.94, of its controls at 0.66.
    """
    firsts = [(row, [control.first_value for control in row.controls]) for row in rows]
    apart = [
        (row.first_value, values)
        for row, values in firsts
        if values and all(abs(v - row.first_value) > row.change_floor for v in values)
    ]
    if not apart:
        return ""
    theirs = value_range(value for _, values in apart for value in values)
    return f"; control runs began at {theirs}, the run at {value_range(own for own, _ in apart)}"


def _changes(values: Sequence[float]) -> str:
    """Return changes with their sign, or the range of several."""
    finite = [value for value in values if math.isfinite(value)]
    ends = (f"{end:+.3g}".replace("-", "−") for end in (min(finite), max(finite)))
    return " to ".join(dict.fromkeys(ends))


def _share(part: int, rows: Sequence[Row], of: Sequence[Row] | None = None) -> str:
    """Return a part of `rows` in words; `of` are those that tell what they are."""
    kind = _kind(rows if of is None else of)
    if part == len(rows):
        return f"{'both' if part == 2 else f'all {part}'} {kind}"
    return f"{part} of {len(rows)} {kind}"


def _places(rows: Sequence[Row]) -> str:
    """Return the names of the rows: ``layers 0 to 2 and 5``, or those of few, or their number."""
    depths = [row.short_layer.removeprefix("layer ") for row in rows]
    if not all(depth.isdigit() for depth in depths):
        names = list(dict.fromkeys(row.short_layer or row.label for row in rows))
        return joined(names) if len(names) <= FEW else f"{len(rows)} {_kind(rows)}"
    numbers = sorted({int(depth) for depth in depths})
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"layers {numbers[0]} to {numbers[-1]}"
    return f"layer{'s' * (len(numbers) > 1)} {joined([str(n) for n in numbers])}"


def _kind(rows: Sequence[Row]) -> str:
    """Return what rows are: layers where each is another one, else series of any kind."""
    layers = {row.layer for row in rows if row.layer}
    return "layers" if len(layers) == len(rows) else "series"
