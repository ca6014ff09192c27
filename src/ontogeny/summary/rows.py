"""Rows of the developmental chart: every series of the quantities that make rows, measured alike.

What is measured of a row stands here; what is said of it, over a whole page, in `verdicts`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import xarray as xr

from ..dynamics import development
from ..dynamics.order import in_order
from ..errors import ArgumentError
from ..quantities import CONTROL, Quantity
from . import verdicts
from .controls import control_p_values, control_rows
from .learning import (
    lead_over_null,
    learned_p_values,
    lost_p_values,
    not_improved,
    outside,
    own_tests,
)
from .noise import change_floor, reference_index

# The words of a row, as a quantity gives them.
_WORDS = ("row", "row_name", "row_kind")
# What a row has from its course, under the same names.
_OF_COURSE = (
    "half_step",
    "half_step_low",
    "half_step_high",
    "p_uncorrected",
    "p_order",
    "p_slow",
    "smallest_p",
    "noise_known",
    "moved",
    "only_memory",
)


def chart_rows(data: xr.Dataset, quantities: Sequence[Quantity]) -> dict[str, Any]:
    """Measure all series of the quantities that make rows, and judge them among each other.

    Returns
    -------
    dict
        Ready for ``assign``, empty where no quantity makes rows. Over rows: ``row``, ``row_name``,
        ``row_kind``, ``row_layer`` and ``row_quantity`` (words); ``row_compares`` and ``row_to`` (what
        a distance is, and to which step); ``progress`` and ``distinct``, over steps as well;
        ``first_value``, ``last_value``; ``half_step`` with its interval and ``settled_step``;
        ``noise_known``, ``moved`` (the change exceeds its noise), ``only_memory`` (the memory of
        the reference step explains it as well), ``can_learn`` and
        ``better_sign`` (+1 or -1 where higher or lower is better performance), ``own_value`` (no
        distance to a reference step);
        ``p_uncorrected``, ``p_order`` and ``p_slow``; the verdicts of `ontogeny.summary.judged`.
        With control runs: ``control_first``, ``control_last`` and ``control_half_step`` over
        (row, run), ``run_change`` and ``run_half_step``, which are those of the run itself at the
        steps of each control, and ``p_control_change`` and ``p_control_half``.

    Examples
    --------
    >>> loss = xr.Dataset({"x": ("step", np.linspace(8, 4, 10)), "x_stderr": 0.03})
    >>> loss = loss.assign_coords(step=np.arange(10))
    >>> chart_rows(loss, [Quantity("x", "loss", rows="loss")])["changed"][1].tolist()
    [True]
    """
    with_rows = [q for q in quantities if has_rows(data, q)]
    alike = (
        [q for q in with_rows if q.relative_to == to]
        for to in ("", "reference", "last")
    )
    groups = [group for those in alike if (group := _measured(data, those)) is not None]
    if not groups:
        return {}
    rows = xr.concat(groups, dim="row", join="outer", data_vars="all", coords="minimal")
    rows = _by_own_test(data, rows)
    if "run" in rows.dims:
        p_values = control_p_values(rows)
        rows = rows.assign(
            {f"p_control_{name}": ("row", p) for name, p in p_values.items()}
        )
    floors = rows["change_floor"].values
    p_learned = learned_p_values(data, rows, floors)
    may_have_learned = p_learned <= verdicts.LEVELS.control  # and became too sure of it
    of_learning = {
        "p_learned_uncorrected": p_learned,
        "p_lost_uncorrected": lost_p_values(data, rows),
        "outside": outside(rows),
        "not_improved": not_improved(rows, floors) & ~may_have_learned,
    }
    rows = rows.assign({name: ("row", values) for name, values in of_learning.items()})
    (rows,) = verdicts.judged({"": rows}).values()
    return {
        str(name): (values.dims, values.values)
        for name, values in rows.variables.items()
    }


def _by_own_test(data: xr.Dataset, rows: xr.Dataset) -> xr.Dataset:
    """Return rows of which those whose quantity brings a test of change are judged by it.

    A quantity says so by ``x_p_changed``. From 0 to 105 of 120 examples were no change by the order
    of few checkpoints, of which an exact test of the same examples leaves no doubt.
    """
    names = rows["row_quantity"].values
    own = own_tests(data, names, "changed")
    has_test = np.isfinite(own)
    smallest = np.array([in_order(_known_steps(data[name])) for name in names])
    return rows.assign(
        p_uncorrected=("row", np.where(has_test, own, rows["p_uncorrected"].values)),
        smallest_p=("row", np.where(has_test, smallest, rows["smallest_p"].values)),
        own_change_test=("row", has_test),
    )


def _known_steps(values: xr.DataArray) -> int:
    return int(values.notnull().any([d for d in values.dims if d != "step"]).sum())


def has_rows(data: xr.Dataset, quantity: Quantity) -> bool:
    """Return whether a quantity makes rows of the chart: has a label for them, and steps."""
    return (
        bool(quantity.rows)
        and quantity.name in data
        and "step" in data[quantity.name].dims
    )


def _measured(data: xr.Dataset, quantities: Sequence[Quantity]) -> xr.Dataset | None:
    """Return the variables of the rows of quantities that share their reference."""
    series = list(chain.from_iterable(_series(data, q) for q in quantities))
    if not series:
        return None
    labels, layers, names, values, floors, late, settled, controls, lead = zip(
        *series, strict=True
    )
    reference = reference_index(data, quantities[0].relative_to)
    steps = data.step.values
    course = development(
        steps,
        np.stack(values),
        np.stack(floors),
        reference,
        level=verdicts.LEVELS.change,
        n_tests=len(values),
        floor_to_last=np.stack(late),
    )
    settled_steps = [
        step if below is None else _settled_below(steps, row, below, reference)
        for step, row, below in zip(course.settled_step, values, settled, strict=True)
    ]
    # The floor at the last known step of each row, NaN where there is none.
    last = len(steps) - 1 - np.isfinite(np.stack(values))[:, ::-1].argmax(axis=1)
    change_floor = np.take_along_axis(np.stack(floors), last[:, None], axis=1)[:, 0]
    is_reference = np.arange(len(steps)) == (-1 if reference is None else reference)
    usable = np.isfinite(np.stack(values)) & ~is_reference
    settled_step = _after_half(
        steps, usable, np.array(settled_steps), course.half_step_high
    )
    better = {q.name: {"lower": -1, "higher": 1}.get(q.better, 0) for q in quantities}
    sign = np.array([better[name] for name in names])
    compares = {q.name: q.compares if q.relative_to else "" for q in quantities}
    rows = xr.Dataset(
        {
            **{
                name: ("row", np.array(words, dtype=object))
                for name, words in zip(_WORDS, zip(*labels, strict=True), strict=True)
            },
            "row_layer": ("row", np.array(layers, dtype=object)),
            "row_quantity": ("row", np.array(names, dtype=object)),
            **{
                name: (("row", "step"), getattr(course, name))
                for name in ("progress", "distinct")
            },
            **{name: ("row", getattr(course, name)) for name in _OF_COURSE},
            "first_value": ("row", course.first),
            "last_value": ("row", course.last),
            "settled_step": ("row", np.where(course.moved, settled_step, np.nan)),
            "can_learn": ("row", sign != 0),
            "better_sign": ("row", sign),
            "own_value": ("row", np.full(len(names), not quantities[0].relative_to)),
            "row_compares": (
                "row",
                np.array([compares[n] for n in names], dtype=object),
            ),
            "row_to": (
                "row",
                np.array([quantities[0].relative_to] * len(names), object),
            ),
            "lead": ("row", np.array(lead)),
            "change_floor": ("row", change_floor),
        }
    )
    if all(control is None for control in controls):
        return rows
    return _beside(data, rows, values, controls, reference)


def _beside(
    data: xr.Dataset,
    rows: xr.Dataset,
    values: Sequence[np.ndarray],
    controls: Sequence[xr.DataArray | None],
    reference: int | None,
) -> xr.Dataset:
    """Return rows with what each control run gives of them."""
    runs = data["run"].values
    nothing = np.full((data.sizes["run"], data.sizes["step"]), np.nan)
    counts = np.arange(data.sizes["step"]) != reference
    of_rows = []
    for row, control in zip(values, controls, strict=True):
        table = nothing if control is None else control.transpose("run", "step").values
        of_rows.append(
            control_rows(data.step.values, np.where(counts, row, np.nan), table)
        )
    stacked = {
        key: (("row", "run"), np.stack([row[key] for row in of_rows]))
        for key in of_rows[0]
    }
    return rows.assign(stacked).assign_coords(run=runs)


def _series(data: xr.Dataset, quantity: Quantity) -> Iterator[tuple[Any, ...]]:
    """Give words, layer, quantity, values, floors, settling noise and controls of each row."""
    value = data[quantity.name].sel(quantity.at, drop=True)
    floor, late = (
        change_floor(data, quantity, to_last=last).sel(quantity.at, drop=True)
        for last in (False, True)
    )
    names = (
        f"{quantity.name}_{quantity.settled_by}_high",
        f"{quantity.name}_{CONTROL}",
    )
    settled, control = (
        data[name].sel(quantity.at, drop=True) if name in data else None
        for name in names
    )
    dims = sorted(
        (str(d) for d in value.dims if d != "step"), key=lambda dim: dim == "layer"
    )
    for labels in itertools.product(*(value[dim].values for dim in dims)):
        at = dict(zip(dims, labels, strict=True))
        below = None if settled is None else settled.sel(at).values
        try:
            words = quantity.row_words(at)
        except KeyError as error:
            raise ArgumentError(
                f"rows of {quantity.name!r} names {error}, which is no dimension of it; "
                f"it has {', '.join(dims) or 'none'}."
            ) from None
        layer = str(at.get("layer", ""))
        beside = None if control is None else control.sel(at)
        numbers = (series.sel(at).values for series in (value, floor, late))
        lead = lead_over_null(data, quantity, at)
        yield words, layer, quantity.name, *numbers, below, beside, lead


def _after_half(
    steps: np.ndarray, usable: np.ndarray, settled: np.ndarray, half_high: np.ndarray
) -> np.ndarray:
    """Return settled steps (rows,), none before half of the change is surely over.

    NaN for the last of the ``usable`` (rows, T) steps, which nothing follows. A row with a
    half-change step of 118 (90 to 400) had settled at 160 of 400 steps.
    """
    surely = np.searchsorted(
        steps, np.where(np.isfinite(half_high), half_high, steps[0])
    )
    later = np.maximum(settled, steps[np.minimum(surely, len(steps) - 1)])
    last = steps[len(steps) - 1 - usable[:, ::-1].argmax(axis=1)]
    return np.where(later < last, later, np.nan)


def _settled_below(
    steps: np.ndarray, values: np.ndarray, noise: np.ndarray, reference: int | None
) -> float:
    """Return the first step from which on the distance stays within what refitting gives."""
    usable = np.arange(len(steps)) != (-1 if reference is None else reference)
    above = usable & ~(values <= noise)
    start = int(np.flatnonzero(above)[-1]) + 1 if above.any() else 0
    return (
        float(steps[start])
        if start < len(steps) and usable[start:].any()
        else float("nan")
    )
