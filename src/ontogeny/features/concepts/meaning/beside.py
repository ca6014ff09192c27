"""What stands beside the tokens of a concept, where several concepts have one name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....figures.characters import in_words, shown
from ..describe.rows import BEYOND, Kinds, Rows, squared

LEAST = 0.1  # share of the squared code by which a neighbour must be commoner than elsewhere
_SIDES = ((-1, "after", "at the start"), (1, "before", "at the end"))


def beside(
    values: np.ndarray, rows: Rows, names: Sequence[str], pieces: Sequence[str]
) -> np.ndarray:
    """Return for each concept (r,) the neighbour that tells it from others of the same name.

    Empty for a name that is the only one of its kind, and where nothing tells it apart.

    Examples
    --------
    >>> from ontogeny.inputs import Inputs
    >>> inputs = Inputs.from_tokens([[0, 2, 1, 2], [0, 2, 1, 2]])
    >>> values = np.zeros((8, 2))
    >>> values[1::4, 0], values[3::4, 1] = 1, 1
    >>> rows = Rows(inputs, inputs.sample())
    >>> beside(values, rows, ["comma", "comma"], [" a", " b", ","]).tolist()
    ['after a', 'after b']
    """
    neighbours = np.full(len(names), "", dtype=object)
    strength = squared(values)
    share = strength / np.maximum(strength.sum(axis=0), np.finfo(float).tiny)
    sides = [Kinds.of(rows.ids(offset)) for offset, *_ in _SIDES]
    carried = [kinds.sums(share) for kinds in sides]
    for name in {name for name in names if name and list(names).count(name) > 1}:
        group = np.flatnonzero(np.asarray(names, dtype=object) == name)
        for j in group:
            others = group[group != j]
            more = [sums[:, j] - sums[:, others].max(axis=1) for sums in carried]
            side = int(more[1].max() > more[0].max())
            if more[side].max() >= LEAST:
                _, word, edge = _SIDES[side]
                i = int(sides[side].values[more[side].argmax()])
                piece = pieces[i] if i < len(pieces) else str(i)
                neighbours[j] = edge if i == BEYOND else f"{word} {shown(in_words(piece))}"
    return neighbours
