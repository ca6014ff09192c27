"""Whether a classifier learned the labels of its texts, beside the same labels exchanged.

If it learned nothing of them, its answers know no label: exchanged among the texts they fit as
well. One pass gives all exchanges. But an answer that knows no label still follows some feature of
the texts, which goes with the labels by luck. That luck does not shrink with more texts: random
heads on a pretrained model of language (SmolLM2-135M-Instruct in four bits) have a standard
deviation of .04 on 872 sentiments, and of .26 on images of two digits. So the last accuracy must
also exceed, by the noise of texts and by the luck of at least two control runs, what exchanged
labels give; the harm of control runs does not count.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ...control_kinds import NO_NULLS, kind_of
from ...summary.learning import MIRRORED, luck_of_pairs, p_by_luck
from ...units import Units
from ...words.controls import PAIRS

DRAWS = 999
# By which the first checkpoint is said to know the labels; verdicts are corrected over a page.
LEVEL = 0.01
LUCK = 0.04
COUNT = 4
"""Least standard deviation of the luck of answers, and as how many control runs it counts."""

VARIABLES = {
    "accuracy_exchanged": (
        "accuracy with the labels as they are, and exchanged",
        "share of texts",
    ),
    "accuracy_excess": ("accuracy beyond that with exchanged labels", "share of texts"),
    "accuracy_p_gain": (
        "p-value of the gain since the first {checkpoint} among exchanges",
        "1",
    ),
    "accuracy_p_learned": ("p-value of what was learned of the labels", "1"),
    "accuracy_trained_start": (
        "1 where the first {checkpoint} knows the labels already",
        "1",
    ),
}


def exchanged(
    answers: np.ndarray, labels: np.ndarray, units: np.ndarray
) -> dict[str, Any]:
    """Return the accuracy of answers (texts,) with their labels, and with them exchanged.

    Units exchange their labels as in `Units.shuffles`; the exchanges are the same at every step.
    """
    shuffles = Units(units).shuffles(labels, np.random.default_rng(0), DRAWS)
    shares = [
        (answers == labels).mean(),
        *((answers == labels[rows]).mean() for rows in shuffles),
    ]
    return {
        "accuracy_exchanged": ("exchange", np.array(shares)),
        "accuracy_excess": float(shares[0] - np.mean(shares[1:])),
    }


def with_exchanged_labels(data: xr.Dataset) -> xr.Dataset:
    """Return the cells of an accuracy with what its exchanges say.

    ``accuracy_p_learned``, which the verdict of the row reads, is the larger p-value of the gain
    over exchanged labels and of the last accuracy over texts and the luck of control runs. Of a
    run whose first step knows the labels already, it is that of the gain over exchanges and
    against the luck of pairs of mirrored control runs. It is left out where there are none.
    """
    shares = data["accuracy_exchanged"].transpose("step", "exchange").values
    complete = np.flatnonzero(np.isfinite(shares).all(axis=1))
    if not len(complete):
        return data
    beside = _of_controls(data)
    # A last checkpoint without finite answers has none in control runs that were not read before.
    shared = complete[np.isfinite(beside.values).all(axis=0)[complete]]
    first, last = (shared if len(shared) > 1 else complete)[[0, -1]]
    gains = shares - shares[first]
    p_gain = np.where(
        np.isfinite(shares[:, 0]), (gains >= gains[:, :1] - 1e-9).mean(axis=1), np.nan
    )
    trained = _beyond_luck(shares[first], np.zeros(0)) <= LEVEL
    derived: dict[str, Any] = {
        "accuracy_p_gain": ("step", p_gain),
        "accuracy_trained_start": float(trained),
    }
    if first != last:
        beside = beside.isel(step=[first, last])
        if not trained:
            luck = beside.isel(step=-1).values.ravel()
            luck = luck[np.isfinite(luck)]
            p_last = _beyond_luck(shares[last], luck) if len(luck) > 1 else np.nan
        else:
            kinds = np.array([kind_of(str(run)) for run in beside["run"].values])
            of_pairs = beside.values[kinds == MIRRORED]
            luck = luck_of_pairs((of_pairs[:, 1] - of_pairs[:, 0])[None])[0]
            change = gains[last] - gains[last, 1:].mean()
            p_last = float(
                p_by_luck(change[:1], change[1:].var(keepdims=True), luck[None])[0]
            )
        if np.isfinite(p_last):
            derived["accuracy_p_learned"] = max(float(p_gain[last]), p_last)
    return data.assign(derived)


def _beyond_luck(shares: np.ndarray, luck: np.ndarray) -> float:
    """Return how likely the first of the shares is where only texts and luck make it."""
    excess = np.array([shares[0] - shares[1:].mean()])
    texts = np.array([shares[1:].var()])
    pooled = np.r_[luck, np.full(COUNT, LUCK)]
    # Of control runs with more luck than the least, the larger p-value: alone they are few, and
    # pooled with the least they are too sure (random heads on digits).
    several = (
        [pooled, luck] if len(luck) > 1 and (luck**2).mean() > LUCK**2 else [pooled]
    )
    return max(float(p_by_luck(excess, texts, one[None])[0]) for one in several)


def _of_controls(data: xr.Dataset) -> xr.DataArray:
    """Return the excess (run, step) of control runs that learn nothing."""
    beside = data.get("accuracy_excess_control")
    if beside is None:
        return data["accuracy_excess"].expand_dims(run=0).assign_coords(run=[])
    nulls = [kind_of(str(run)) not in NO_NULLS for run in beside["run"].values]
    return beside.isel(run=nulls).transpose("run", "step")


def sentence(data: xr.Dataset) -> list[str]:
    """Say what the exchanges show."""
    if "accuracy_p_gain" not in data or "step" not in data["accuracy_p_gain"].dims:
        return []
    last = data.dropna("step", subset=["accuracy_p_gain"]).isel(step=-1)
    low, high = 100 * np.quantile(last["accuracy_exchanged"].values[1:], [0.01, 0.99])
    words = f"With labels exchanged among the texts, {low:.1f} to {high:.1f} % would be right"
    words += " at the last {checkpoint}"
    if float(data["accuracy_trained_start"]):
        more = "the first {checkpoint} knows these labels already"
        if "accuracy_p_learned" not in data and data.sizes["step"] > 1:
            more += f", and {PAIRS}"
        return [f"{words}; {more}."]
    if data["accuracy_p_gain"].notnull().sum() < 2:
        return [f"{words}."]
    count = last.sizes["exchange"]  # the labels as they are among them
    share = (float(last["accuracy_p_gain"]) * count - 1) / (count - 1)
    words += f"; {100 * share:.1f} % of exchanges gain as much as the labels themselves"
    if "accuracy_p_learned" not in data:
        words += ", and how much of that is luck, two control runs or more would show"
    return [f"{words}."]
