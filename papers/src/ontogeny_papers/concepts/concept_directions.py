"""Concept directions of one layer with what chance and resampling give beside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ontogeny.errors import ArgumentError, check_choice
from ontogeny.inputs import Inputs, stratified_split
from ontogeny.inputs.splits import class_counts
from ontogeny.units import Units

from .cav import CAV
from .direction import Fits

GRANULARITIES = ("mean", "last", "cls")


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Which rows of a reading find a concept direction, and which test it.

    Parameters
    ----------
    text
        (n,) the text of each row.
    positive
        (n,) whether it has the larger of the two labels.
    train, test
        Rows that find the direction, and those held out; no unit is in both.
    groups
        (n,) the unit of each row, see `Inputs.groups`; None where every row is one of its own.
    """

    text: np.ndarray
    positive: np.ndarray
    train: np.ndarray
    test: np.ndarray
    groups: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        inputs: Inputs,
        tokens: str = "mean",
        train_fraction: float = 2 / 3,
        random_state: int = 0,
    ) -> LabelledRows:
        """Split the texts of a labelled input set, the same way at every checkpoint.

        Raises
        ------
        ArgumentError
            If the inputs have no labels or not two classes, or a class has a single text or unit.
        """
        check_choice("tokens", tokens, GRANULARITIES)
        if inputs.labels is None:
            raise ArgumentError(
                "concept directions need inputs with labels (labels= or a labelled data set)."
            )
        text = inputs.sample(tokens).text
        labels = np.asarray(inputs.labels)[text]
        counts = class_counts(labels)
        if len(counts) != 2:
            raise ArgumentError(
                f"labels must hold two classes; the texts of each class are {counts}."
            )
        groups = inputs.groups[text]
        train, test = stratified_split(labels, train_fraction, random_state, groups)
        return cls(text, labels == max(counts), train, test, groups)

    @property
    def truth(self) -> np.ndarray:
        """(n_test,) whether each held-out row has the concept."""
        return self.positive[self.test]

    @property
    def held_weights(self) -> np.ndarray:
        """(n_test,) weights of the held-out rows in balanced accuracy: each class counts half."""
        return balanced_weights(self.truth)

    def units(self, rows: np.ndarray) -> Units:
        """Return the units of some of the rows."""
        return Units(rows if self.groups is None else self.groups[rows])


@dataclass(frozen=True, eq=False)
class ConceptDirection:
    """A direction, its refits and its random counterparts at one layer.

    Parameters
    ----------
    cav
        The fit to the training rows.
    random
        Fits with the labels of the training rows shuffled.
    refits
        Fits to bootstrap resamples of the training rows.
    right
        (n_test,) whether each held-out row lies on its side.
    accuracy
        Balanced accuracy on the held-out rows: mean over the two classes.
    random_accuracy
        (R,) that of the random ones, on held-out rows whose labels are shuffled too: what the
        whole procedure gives where labels mean nothing.
    against
        (1 + R, m) unit directions of the concept against random texts, and of random concepts
        against the same; None where there are no random texts.
    against_texts
        How many texts each of these has.
    """

    cav: CAV
    random: Fits
    refits: Fits
    right: np.ndarray
    accuracy: float
    random_accuracy: np.ndarray
    against: np.ndarray | None = None
    against_texts: int = 0

    @property
    def cosines(self) -> np.ndarray:
        """(refits,) cosines of the refits with the direction."""
        return self.refits.directions @ np.asarray(self.cav.direction_)

    @property
    def kinds(self) -> Mapping[str, np.ndarray]:
        """Unit directions (k, m) of every kind, in the order in which they are stacked."""
        kinds = {
            "direction": np.asarray(self.cav.direction_)[None],
            "refits": self.refits.directions,
            "random": self.random.directions,
        }
        return kinds if self.against is None else {**kinds, "against": self.against}

    def stacked(self) -> np.ndarray:
        """(m, k) unit directions of all kinds, one behind the other."""
        return np.concatenate(list(self.kinds.values())).T


def fit_direction(
    A: Any,
    rows: LabelledRows,
    cav: CAV,
    n_random: int,
    n_refits: int,
    random_state: int = 0,
) -> ConceptDirection:
    """Fit a direction to the training rows of activations `A` (n, m) and test it on the others."""
    values = np.asarray(A.detach().cpu() if hasattr(A, "detach") else A, dtype=float)
    if len(values) != len(rows.text):
        raise ArgumentError(
            f"activations have {len(values)} rows for {len(rows.text)} labelled texts."
        )
    train = values[rows.train]
    positive = rows.positive[rows.train].astype(int)
    cav = cav.fit(train, positive)
    groups = rows.units(rows.train).of_row
    random = cav.permuted(train, positive, n_random, random_state, groups)
    tests = values[rows.test]
    right = cav.predict(tests).astype(bool) == rows.truth
    rng = np.random.default_rng([random_state, 1])
    order = np.stack(list(rows.units(rows.test).shuffles(rows.truth, rng, n_random)))
    shuffled = rows.truth[order]
    agrees = random.decide(tests) == shuffled
    return ConceptDirection(
        cav,
        random,
        cav.resampled(train, positive, n_refits, random_state, groups),
        right,
        float(right @ rows.held_weights),
        (agrees * balanced_weights(shuffled)).sum(1),
    )


def balanced_weights(truth: np.ndarray) -> np.ndarray:
    """Return weights (..., n) by which rows with and without the concept count half each.

    Examples
    --------
    >>> balanced_weights(np.array([True, False, False])).tolist()
    [0.5, 0.25, 0.25]
    """
    positive = truth.sum(-1, keepdims=True)
    return np.where(truth, 0.5 / positive, 0.5 / (truth.shape[-1] - positive))
