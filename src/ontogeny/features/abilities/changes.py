"""What changed between two states of a model: groups of examples, paired, corrected over groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from ...dynamics import holm
from .intervals import LEVEL, above_chance, chance_p_value, change_floor, change_p_value


@dataclass(frozen=True)
class GroupChange:
    """How the accuracy on one group of examples differs between two states of a model.

    Parameters
    ----------
    name
        The group.
    before, after
        Accuracy, 0 to 1.
    low, high
        95 % interval of the change, paired over examples.
    p_uncorrected, p_value
        Of no change, by the sign test of the examples that turned; corrected over the groups.
    above_before, above_after
        Whether it was above chance, corrected over the groups.
    """

    name: str
    before: float
    after: float
    low: float
    high: float
    p_uncorrected: float
    p_value: float
    above_before: bool
    above_after: bool

    @property
    def gained(self) -> bool:
        """Whether it surely rose, and ends above chance."""
        return self.p_value <= LEVEL and self.after > self.before and self.above_after

    @property
    def lost(self) -> bool:
        """Whether it surely fell, and was above chance."""
        return self.p_value <= LEVEL and self.after < self.before and self.above_before


def group_changes(before: xr.Dataset, after: xr.Dataset) -> list[GroupChange]:
    """Return how each group differs between two states, in the order of the groups.

    Parameters
    ----------
    before, after
        A node of abilities at one step each, of one run or of two, with ``right`` over the
        examples. Only groups of which both hold the same examples are compared.

    Examples
    --------
    >>> node = xr.Dataset(
    ...     {
    ...         "right": (("step", "pair"), [[0, 1] * 10, [1] * 20]),
    ...         "group_of_pair": ("pair", ["tense"] * 20),
    ...         "accuracy_chance": ("group", [0.5]),
    ...     },
    ...     {"group": ["tense"]},
    ... )
    >>> (tense,) = group_changes(node.isel(step=0), node.isel(step=1))
    >>> tense.gained, tense.before, tense.after, round(tense.p_value, 3)
    (True, 0.5, 1.0, 0.002)
    """
    ours, theirs = _of_groups(before), _of_groups(after)
    names = [
        n for n in ours if n in theirs and all(map(np.array_equal, ours[n][1:], theirs[n][1:]))
    ]
    rows = []
    for name in names:
        (one, contrast, _), (two, *_) = ours[name], theirs[name]
        change, level = two.mean() - one.mean(), float(before.accuracy_chance.sel(group=name))
        half = float(change_floor(two[None] - one, contrast)[0])
        ends = one.mean(), two.mean(), max(change - half, -1.0), min(change + half, 1.0)
        p_values = [chance_p_value(right, contrast, level) for right in (one, two)]
        rows.append([*map(float, ends), change_p_value(two - one, contrast), *p_values])
    table = np.array(rows).reshape(-1, 7)
    further = zip(holm(table[:, 4]).tolist(), *map(above_chance, table[:, 5:].T), strict=True)
    return [
        GroupChange(name, a, b, low, high, p, corrected, bool(was), bool(now))
        for name, (a, b, low, high, p, *_), (corrected, was, now) in zip(
            names, rows, further, strict=True
        )
    ]


def _of_groups(node: xr.Dataset) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return for each group what is right, which words are set against which, and the texts."""
    (dim,) = node.right.dims
    right = node.right.values.astype(float)
    of_example = np.array([str(name) for name in node[f"group_of_{dim}"].values], dtype=object)
    contrast = node.contrast.values if "contrast" in node else np.arange(len(right))
    places = {str(name): of_example == str(name) for name in node.group.values}
    # Numbers of contrasts depend on the files: only what they have in common within a group counts.
    shown = [node[name].values for name in ("prompt", "right_text", "wrong_text") if name in node]
    texts = np.array([[str(text) for text in column] for column in shown], dtype=object)
    texts = texts.reshape(len(shown), len(right))
    return {
        n: (right[at], np.unique(contrast[at], return_inverse=True)[1], texts[..., at])
        for n, at in places.items()
    }
