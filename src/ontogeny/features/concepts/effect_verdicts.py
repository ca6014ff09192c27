"""What follows from the effects of all steps: shares, verdicts, figures and sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from ...claims import Beside, Claim, Subject, measurement
from ...figures import Column, Curves, Figure, Heatmap, Scatter, Table
from ...multiple_tests import holm
from ...quantities import Quantity
from ...summary.noise import null_bands, with_noise
from ...words.names import Names
from .joint_lives import SET_ASIDE

LEVEL = 0.05
UNIT = "nats per predicted token"
MATTERS = "matters"
NO_MORE = "costs no more than chance"
NO_CONCEPT = "no concept"

LEVELS = ("first_order", "removed")

REMOVED = Quantity(
    "removed",
    "what the removal of a concept costs",
    UNIT,
    nulls={
        "random": "random directions",
        "other": "its direction where other concepts fire",
    },
)
VARIABLES: Names = {
    "effect": ("what the removal of a concept costs, to first order", UNIT),
    "effect_random_low": ("the same of random directions, lower end", UNIT),
    "effect_random_high": ("the same of random directions, upper end", UNIT),
    "effect_other_low": ("the same where other concepts fire, lower end", UNIT),
    "effect_other_high": ("the same where other concepts fire, upper end", UNIT),
    "relative_effect": ("effect over the sum of its sizes at all {checkpoint}s", "1"),
    "relative_line": ("effect over the sum of its sizes at all {checkpoint}s", "1"),
    "depends": ("whether the loss depends on the layer at these tokens", "1"),
    "share": ("share of the tokens on which concepts are removed", "1"),
    **REMOVED.names(),
    "removed_concept": ("number of the removed concept", "1"),
    "first_order": ("effect of the removed concept to first order", UNIT),
    "removed_p_single": (
        "p-value that its removal costs no more than the controls",
        "1",
    ),
    "removed_p": ("the same, corrected over the concepts of a {checkpoint}", "1"),
    "judged_step": ("last {checkpoint} with controls", "{step}s"),
    "judged_removed": ("cost of removal at the last {checkpoint} with controls", UNIT),
    "judged_random": ("the same of random directions, upper end", UNIT),
    "judged_other": ("the same where other concepts fire, upper end", UNIT),
    "judged_p": ("corrected p-value at that {checkpoint}", "1"),
    "verdict": ("whether the concept matters", ""),
    "matters_from": ("{checkpoint} with controls from which on it matters", "{step}s"),
    "n_judged": ("removed concepts that are judged", "concepts"),
    "n_matter": ("removed concepts that matter", "concepts"),
    "first_order_correlation": (
        "correlation of effects to first order and by removal",
        "1",
    ),
    "first_order_slope": ("cost of removal per effect to first order", "1"),
}


def verdicts(data: xr.Dataset, joint: xr.Dataset) -> xr.Dataset:
    """Return the stacked cells with all that takes several steps, or the lives of the concepts.

    Parameters
    ----------
    data
        Cells along ``step``.
    joint
        The summary of the joint concepts.
    """
    if "effect" not in data:
        return data
    total = abs(data.effect).sum("step")
    data = data.assign(relative_effect=data.effect / total.where(total > 0))
    if "line_concept" in joint:
        data = data.assign(
            relative_line=_lines(data.relative_effect, joint.line_concept)
        )
    constant = {n: data[n] for n in ("removed_concept", "share") if n in data}
    constant = {
        n: of.max("step") if "step" in of.dims else of for n, of in constant.items()
    }
    data = null_bands(with_noise(data.assign(constant), REMOVED), REMOVED)
    data = data.assign(_agreement(data))
    if "removed_p_single" not in data or not data.removed_p_single.notnull().any():
        return data
    return data.assign(_judged(data, _are_concepts(data, joint)))


def _lines(relative: xr.DataArray, line_concept: xr.DataArray) -> xr.DataArray:
    """Return the relative effects of the concepts, in the order of the figure of their lives."""
    lines = line_concept.reindex(layer=relative.layer.values)
    table = relative.transpose("layer", "concept", "step").values
    numbers = lines.transpose("layer", "line").values
    values = np.take_along_axis(
        table, np.nan_to_num(numbers)[..., None].astype(int), axis=1
    )
    values = np.where(np.isfinite(numbers)[..., None], values, np.nan)
    return xr.DataArray(values, dims=("layer", "line", "step"))


def _are_concepts(data: xr.Dataset, joint: xr.Dataset) -> np.ndarray:
    """Return whether each removed latent is a concept, (layer, removal)."""
    numbers = data.removed_concept.transpose("layer", "removal").values
    if "concept_kind" not in joint:
        return np.isfinite(numbers)
    kinds = joint.concept_kind.reindex(layer=data.layer.values, fill_value="")
    kinds = kinds.transpose("layer", "concept").values.astype(str)
    of_removed = np.take_along_axis(kinds, np.nan_to_num(numbers).astype(int), axis=1)
    return np.isfinite(numbers) & ~np.isin(of_removed, SET_ASIDE)


def _judged(data: xr.Dataset, concept: np.ndarray) -> dict[str, Any]:
    """Return corrected p-values, and the verdicts at the last step with controls."""
    order = ("step", "layer", "removal")
    single = data.removed_p_single.transpose(*order).values
    p = np.stack([holm(np.where(concept, row, np.nan)) for row in single])
    judged = np.flatnonzero(np.isfinite(single).any(axis=(1, 2)))
    last = int(judged[-1])
    matters = p[last] <= LEVEL
    words = np.where(matters, MATTERS, np.where(concept, NO_MORE, NO_CONCEPT))
    words = np.where(np.isfinite(single[last]), words, "")
    over = ("layer", "removal")
    at = {
        "judged_removed": "removed",
        "judged_removed_stderr": "removed_stderr",
        "judged_random": "removed_random_high",
        "judged_other": "removed_other_high",
    }
    return {
        "removed_p": (order, p),
        "judged_step": float(data.step.values[last]),
        **{
            name: data[of].isel(step=last, drop=True)
            for name, of in at.items()
            if of in data
        },
        "judged_p": (over, p[last]),
        "verdict": (over, words.astype(object)),
        "matters_from": (over, _lasting(p[judged] <= LEVEL, data.step.values[judged])),
        "n_judged": ("layer", np.isfinite(p[last]).sum(axis=1).astype(float)),
        "n_matter": ("layer", matters.sum(axis=1).astype(float)),
    }


def _lasting(holds: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the first step from which on something holds (steps, ...); NaN if it does not."""
    lasting = np.flip(np.logical_and.accumulate(np.flip(holds, 0), axis=0), 0)
    return np.where(lasting.any(axis=0), steps[lasting.argmax(axis=0)], np.nan)


def _agreement(data: xr.Dataset) -> dict[str, Any]:
    """Return correlation (layer,) and slope of both levels, over steps and removed concepts."""
    lines = []
    for layer in data.layer.values:
        one = data.sel(layer=layer)
        x, y = (
            one[name].transpose("step", "removal").values.ravel() for name in LEVELS
        )
        is_finite = np.isfinite(x) & np.isfinite(y)
        x = x[is_finite]
        y = y[is_finite]
        varies = len(x) > 2 and x.std() > 0 and y.std() > 0
        correlation = float(np.corrcoef(x, y)[0, 1]) if varies else np.nan
        lines.append((correlation, float(x @ y / (x @ x)) if varies else np.nan))
    correlations, slopes = np.array(lines).T
    return {
        "first_order_correlation": ("layer", correlations),
        "first_order_slope": ("layer", slopes),
    }


def figures(data: xr.Dataset) -> list[Figure]:
    """Return the effects over steps, the verdicts, and how both levels agree."""
    drawings: list[Figure] = []
    if "relative_line" in data and data.sizes.get("line", 0):
        drawings.append(
            Heatmap(
                "relative-effects",
                "When each concept mattered",
                value="relative_line",
                x="step",
                y="line",
                facet="layer",
                caption="One row a concept, as in the figure of their lives: its effect to first "
                "order, over the sum of its sizes at all {checkpoint}s. Below 0 the loss falls "
                "without it.",
            )
        )
    if "removed" in data:
        drawings += [
            Curves(
                "removed",
                "What the removal of a concept costs",
                value="removed",
                series="removal",
                facet="layer",
                interval=("removed_low", "removed_high")
                if "removed_low" in data
                else None,
                caption="The strongest concepts of each layer.",
                shade="±1.96 standard errors over texts",
            ),
            Scatter(
                "first-order",
                "Effects to first order and by removal",
                x="first_order",
                y="removed",
                points=("removal", "step"),
                facet="layer",
                colour="step",
                caption="One point for each removed concept and {checkpoint}.",
            ),
        ]
    if "verdict" in data:
        drawings.append(_table())
    return drawings


def _table() -> Table:
    return Table(
        "verdicts",
        "Which concepts matter",
        columns=[
            Column("removed_concept", "concept"),
            Column("judged_removed", "cost", sd="judged_removed_stderr"),
            Column("judged_random", "random directions"),
            Column("judged_other", "where others fire"),
            Column("judged_p", "p"),
            Column("verdict", "verdict"),
        ],
        group="layer",
        rows="removal",
        caption="At the last {checkpoint} with controls. In brackets: standard error over texts. "
        "Of the controls: the upper end of their draws.",
    )


def claims_of_effects(name: str, data: xr.Dataset) -> Iterator[Claim]:
    """Give what the removal of the concepts of each layer costs, or that it is unknown.

    Examples
    --------
    >>> data = xr.Dataset(
    ...     {"depends": (("step", "layer"), [[0.0]])}, {"layer": ["h.5.mlp"]}
    ... )
    >>> [claim.subject.layer for claim in claims_of_effects("effects", data)]
    ['h.5.mlp']
    """
    if "verdict" in data:
        yield from _judgements(name, data)
    if "depends" not in data:
        return
    best = data.depends.max("step") if "step" in data.depends.dims else data.depends
    for layer in data.layer.values[(best == 0).values]:
        yield measurement(Subject(name, "depends", str(layer)), 0.0)


def _judgements(name: str, data: xr.Dataset) -> Iterator[Claim]:
    for layer in data.layer.values:
        one = data.sel(layer=layer)
        if int(one.n_judged):
            yield measurement(
                Subject(name, "verdict", str(layer), step=float(data.judged_step)),
                int(one.n_matter),
                whole=float(one.n_judged),
                beside=_dearest(one),
                figure=f"{name}/removed",
            )


def _dearest(one: xr.Dataset) -> list[Beside]:
    """Return the concept whose removal costs most of those that matter, with its cost in nats."""
    if not int(one.n_matter):
        return []
    cost = one.judged_removed.where(one.verdict == MATTERS)
    dearest = int(cost.argmax("removal"))
    number = f"{float(one.removed_concept[dearest]):.0f}"
    return [Beside("reference", f"concept {number}", float(cost[dearest]))]
