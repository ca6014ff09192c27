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

from ...claims import Certainty, Claim, Reason, Subject, measurement
from ...control_kinds import judging, kind_of
from ...summary.learning import MIRRORED, luck_of_pairs, p_by_luck
from ...units import Units

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
    return judging(beside).transpose("run", "step")


def claims_of_exchanges(name: str, data: xr.Dataset) -> list[Claim]:
    """Return what the exchanges show."""
    if "accuracy_p_gain" not in data or "step" not in data["accuracy_p_gain"].dims:
        return []
    last = data.dropna("step", subset=["accuracy_p_gain"]).isel(step=-1)
    others = last["accuracy_exchanged"].values[1:]
    low, middle, high = np.quantile(others, [0.01, 0.5, 0.99]).tolist()
    subject = Subject(name, "accuracy_exchanged")
    beside = measurement(subject, middle, low=low, high=high, units="1")
    is_judged = "accuracy_p_learned" in data
    if float(data["accuracy_trained_start"]):
        known = _judged(
            name, "accuracy_trained_start", 1.0, is_judged or data.sizes["step"] == 1
        )
        return [beside, known]
    if data["accuracy_p_gain"].notnull().sum() < 2:
        return [beside]
    count = last.sizes["exchange"]  # the labels as they are among them
    share = (float(last["accuracy_p_gain"]) * count - 1) / (count - 1)
    return [beside, _judged(name, "accuracy_p_gain", share, is_judged)]


def _judged(name: str, quantity: str, value: float, is_judged: bool) -> Claim:
    """Return a claim that is open where too few control runs judge it."""
    subject = Subject(name, quantity)
    if is_judged:
        return measurement(subject, value, units="1")
    return measurement(
        subject, value, units="1", certainty=Certainty.OPEN, reason=Reason.FEW_CONTROLS
    )
