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
    (dim,) = before.right.dims
    names = [str(name) for name in before.group.values if name in after.group.values]
    sides = [_of_groups(node, str(dim)) for node in (before, after)]
    names = [name for name in names if np.array_equal(*(side[name][1] for side in sides))]
    numbers, p_values, chance = [], [], []
    for name in names:
        (one, contrast), (two, _) = (side[name] for side in sides)
        both = np.stack([one, two]).astype(float)
        level = float(before.accuracy_chance.sel(group=name))
        alone = both.shape[1] < 2
        half = float(change_floor(both[1:] - both[:1], contrast)[0])
        numbers.append((float(both[0].mean()), float(both[1].mean()), half))
        p_values.append(np.nan if alone else change_p_value(both[1] - both[0], contrast))
        chance.append([np.nan if alone else chance_p_value(row, contrast, level) for row in both])
    if not names:
        return []
    corrected = holm(p_values).tolist()
    above = [above_chance(row).tolist() for row in np.transpose(chance)]
    return [
        GroupChange(name, a, b, max(b - a - half, -1.0), min(b - a + half, 1.0), p, q, was, is_)
        for name, (a, b, half), p, q, was, is_ in zip(
            names, numbers, p_values, corrected, *above, strict=True
        )
    ]


def _of_groups(node: xr.Dataset, dim: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return for each group what is right, and which words each example sets against which."""
    of_example = np.array([str(name) for name in node[f"group_of_{dim}"].values], dtype=object)
    contrast = node.contrast.values if "contrast" in node else np.arange(len(of_example))
    places = {str(name): of_example == str(name) for name in node.group.values}
    # Numbers of contrasts depend on the files: only what they have in common within a group counts.
    return {
        name: (node.right.values[at], np.unique(contrast[at], return_inverse=True)[1])
        for name, at in places.items()
    }
