"""Two halves of the texts: tokens are chosen on one and confirmed on the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....arrays import Array
from ....errors import ArgumentError
from ....inputs import Inputs, stratified_split
from ....inputs.sampling import TokenSample
from ....units import Units
from .rows import Kinds, Rows, described, squared

CHOSEN = 3  # tokens that a concept may concentrate on


def check_units(units: Units) -> None:
    """Check that rows come from two units of texts at least."""
    if units.count < 2:
        raise ArgumentError(
            "inputs must hold two units of texts at least (texts that repeat or share a document "
            "are one): what is found in one is confirmed in the other; the rows come from 1."
        )


@dataclass(frozen=True, eq=False)
class Confirmation:
    """The tokens chosen on one half of the texts, on the other half."""

    strength: np.ndarray
    """(n_half, r) squared codes."""
    carried: np.ndarray
    """(r,) squared code on the chosen tokens."""
    occurrences: np.ndarray
    """(r,) rows that are of a chosen token."""

    @property
    def share(self) -> np.ndarray:
        """(r,) share of the squared code on the chosen tokens; 0 where nothing fires."""
        total = self.strength.sum(axis=0)
        shares = np.where(total > 0, self.carried / np.where(total > 0, total, 1.0), 0.0)
        return np.asarray(np.minimum(shares, 1.0).round(12))  # two orders of adding up round apart


def confirmations(values: np.ndarray, rows: Rows, random_state: int) -> list[Confirmation]:
    """Return what each half of the texts confirms of the tokens chosen on the other one."""
    check_units(rows.units)
    halves = stratified_split(
        np.zeros(len(rows), dtype=int), 0.5, random_state, groups=rows.units.of_row
    )
    kinds, strength = Kinds.of(rows.ids()), squared(values)
    sums = [kinds.sums(strength, half) for half in halves]
    pairs = []
    for first, second in ((0, 1), (1, 0)):
        strongest = np.argsort(-sums[first], axis=0, kind="stable")[:CHOSEN]
        fires = np.take_along_axis(sums[first], strongest, axis=0) > 0
        carried = np.where(fires, np.take_along_axis(sums[second], strongest, axis=0), 0.0)
        there = np.where(fires, kinds.counts(halves[second])[strongest], 0)
        pairs.append(Confirmation(strength[halves[second]], carried.sum(axis=0), there.sum(axis=0)))
    return pairs


def concentration(
    codes: Array, inputs: Inputs, sample: TokenSample, random_state: int = 0
) -> np.ndarray:
    """Return the share of each concept's squared code that three tokens carry.

    The three tokens that carry most are chosen on one half of the units of texts, and their share
    is measured on the other half; the mean of both directions. A concept that fires on three rows
    in all therefore gets a high share only if they are of the same tokens in both halves. Only
    the positive side of a code counts, after `orientation`.

    Parameters
    ----------
    codes
        (n, r) codes of the rows of `sample`.
    inputs, sample
        The texts, and which of their tokens the rows are: ``inputs.sample(...)``.
    random_state
        Seed of the halves.

    Returns
    -------
    numpy.ndarray
        (r,) 0 to 1; 0 for a concept that fires in one half alone or nowhere; NaN for rows that
        are means of texts, which have no token.

    Raises
    ------
    ArgumentError
        If codes and sample disagree, or all rows come from one unit of texts.
    NonFiniteError
        If a code is NaN or infinite.

    Examples
    --------
    >>> inputs = Inputs.from_tokens([[7, 8, 9], [9, 7, 8], [6, 5, 7]])
    >>> codes = (inputs.ids == 7).reshape(-1, 1)
    >>> concentration(codes, inputs, inputs.sample())
    array([1.])
    """
    values, rows = described(codes, inputs, sample)
    if not rows.has_tokens:
        return np.full(values.shape[1], np.nan)
    halves = confirmations(values, rows, random_state)
    return np.asarray(np.mean([half.share for half in halves], axis=0))
