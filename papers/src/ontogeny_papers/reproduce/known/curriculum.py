"""A curriculum switch in the marker task: what is forgotten, and what stays."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from ontogeny.observables import Observable

from ...observables.readout.accuracy import ReadoutAccuracy
from ...observables.similarity_maps import StepSimilarity
from ..formats import listed, named, short
from ..marker_recipe import MarkerRecipe, Scale
from ..training import MarkerRun
from ..verdicts import Found, Verdict, each, exceeds, last_of, unanimous

_MIXED = "mixed"
_SWITCH = "switch"
_FIRST = "m=1"
_LEARNED = 0.9
_LOST = 0.1
"""Accuracy that counts as forgotten."""
_LESS = 0.1
"""Difference of CKA that counts."""


@dataclass(frozen=True)
class SwitchRecipe(MarkerRecipe):
    """The case of a switch on the marker task, beside turned controls; sizes are of `Scale`."""

    controls: int = 3

    def adapted(
        self, observable: Observable, run: MarkerRun, size: Scale
    ) -> Observable:
        """Return an observable with the sets that it reads; similarity is that of m = 1."""
        if observable.kind == StepSimilarity.kind:
            return replace(observable, on=_FIRST)  # type: ignore[call-arg]
        return super().adapted(observable, run, size)


def judge(results: Found) -> list[Verdict]:
    """Judge what a switch from m = 1 to larger m takes away, when, and in which layer.

    There are two stages of equal length, so that the switch is at the checkpoint in the middle.
    """
    accuracy = results["readout-accuracy"]
    switched = accuracy[_SWITCH]
    mixed = accuracy[_MIXED]
    labels = switched[0].set.values
    switch = _switch(switched[0])
    before = each(switched, lambda run: run.accuracy.sel(set=_FIRST, step=switch))
    after = last_of(switched, "accuracy")
    last = after[:, 0]
    new = after[:, -1]
    mixed_kept = last_of(mixed, "accuracy")
    majority = each(
        switched, lambda run: run.accuracy_majority.sel(set=_FIRST).isel(step=-1)
    )
    control = each(
        switched, lambda run: run.accuracy_control.sel(set=_FIRST).isel(step=-1)
    )
    learned = bool((before > _LEARNED).all())
    falls = each(switched, lambda run: _steepest_fall(run.accuracy.sel(set=_FIRST)))
    spacing = float(np.diff(switched[0].step.values).max())
    spread_by_chance = len(switched[0].step) - 1
    return [
        Verdict(
            "after the switch the first task is forgotten; in mixed training it stays",
            unanimous((before - last > _LOST) & (mixed_kept[:, 0] > _LEARNED), last)
            if learned
            else None,
            f"accuracy on {_FIRST} {short(before)} at the switch and {short(last)} in the end; "
            f"the new task {short(new)}",
            f"mixed {named(labels, mixed_kept, 2)}; most frequent label {short(majority)}; turned "
            f"runs {short(control.ravel())}; {_LOST:g} counts as forgotten",
        ),
        Verdict(
            "it is forgotten at the switch",
            unanimous(abs(falls - switch - spacing / 2) <= spacing / 2, falls)
            if learned
            else None,
            f"steepest fall before step {listed(falls)}; the switch is at step {switch:,}",
            f"checkpoints every {spacing:,.0f} steps: by chance in one of {spread_by_chance} "
            f"intervals, in every seed with p = {spread_by_chance ** -len(falls):.2g}",
        ),
        _layers(results, switch),
    ]


def _layers(results: Found, switch: int) -> Verdict:
    """Judge whether the first layer keeps more of its arrangement than the last one."""
    runs = results["step-similarity"]
    similarity = each(runs[_SWITCH], lambda run: _since(run.between, switch))
    shuffled = each(runs[_SWITCH], lambda run: _since(run.between_shuffled, switch))
    mixed = each(runs[_MIXED], lambda run: _since(run.between, switch))
    layers = runs[_SWITCH][0].layer.values
    return Verdict(
        "early layers keep more than late ones",
        exceeds(similarity[:, 0], similarity[:, -1], _LESS),
        f"CKA of the answers' states on {_FIRST} between the switch and the end: "
        f"{named(layers, similarity, 2)}",
        f"tokens out of order {named(layers, shuffled, 2)}; mixed training over the same steps "
        f"{named(layers, mixed, 2)}; {_LESS:g} counts",
    )


def _since(between: xr.DataArray, switch: int) -> xr.DataArray:
    return between.sel(step=switch).isel(step_=-1).transpose("layer")


def _switch(run: xr.Dataset) -> int:
    """Return the checkpoint in the middle, where the second of two stages begins."""
    return int(run.step.values[run.sizes["step"] // 2])


def _steepest_fall(accuracy: xr.DataArray) -> float:
    """Return the step before which a series falls most between two checkpoints."""
    return float(accuracy.step.values[1 + int(np.diff(accuracy.values).argmin())])


def _runs(run: MarkerRun) -> dict[str, MarkerRun]:
    return {_MIXED: run, _SWITCH: replace(run, curriculum=True)}


_OBSERVABLES = (ReadoutAccuracy(), StepSimilarity("resid", tokens="last"))
_QUICK = MarkerRun.demo()
_FULL = replace(_QUICK, layers=4, steps=4000)
RECIPE = SwitchRecipe(
    "known-curriculum-switch",
    "A curriculum switch in the marker task",
    "training on a new task alone takes the earlier one away, and most of all in late layers.",
    "McCloskey and Cohen 1989; Ramasesh et al. 2021, Anatomy of catastrophic forgetting; Xu 2026, "
    "sec. 4.5",
    Scale(_runs(_FULL), tuple(range(10)), 100, _OBSERVABLES),
    Scale(_runs(_QUICK), (0, 1), 25, _OBSERVABLES, texts=256),
    "two stages of 250 steps each, and two layers.",
    judge=judge,
)
"""The case as a recipe."""
