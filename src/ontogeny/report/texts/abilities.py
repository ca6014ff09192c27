"""Examples of abilities that turn from one checkpoint to the next, for the page's slider."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ...words.abilities import has_abilities, texts_of
from ...words.content import Content
from ...words.formats import plain_text

MOST = 2000  # examples of a node that the page holds


def turning(content: Content) -> list[dict[str, Any]]:
    """Return for each node of abilities its steps, the texts of its examples, and which are right.

    What is right at a step is a text of a digit for each example: 1 or 0, 5 of a tie, and a blank
    where it was not measured. Of a pair, the wrong text stands after the right one. Examples of
    groups that are not shown to be above chance at either end may turn by luck, and are left out;
    ``lucky`` is how many groups these are.
    """
    nodes = [node.dataset for node in content.nodes if has_abilities(node.dataset)]
    return [
        _turning(data) for data in nodes if "right" in data and data.sizes["step"] > 1
    ]


def _turning(data: xr.Dataset) -> dict[str, Any]:
    (dim,) = (str(dim) for dim in data.right.dims if dim != "step")
    able = data.above_chance | data.get("above_chance_first", False)
    groups = data[f"group_of_{dim}"].values
    is_told = np.isin(groups, data.group[able])
    told = np.flatnonzero(is_told)
    number = len(told)
    # Evenly over the file, in which groups stand one after the other.
    places = np.linspace(0, number - 1, min(number, MOST)).astype(int)
    data = data.isel({dim: told[np.unique(places)]})
    right = data.right.transpose("step", dim).values
    digits = np.select([right == 1, right == 0, right > 0], ["1", "0", "5"], " ")
    sides = texts_of(data)
    return {
        "steps": data.step.values.tolist(),
        "groups": [plain_text(name) for name in data[f"group_of_{dim}"].values],
        "texts": [
            [plain_text(text) for text in texts] for texts in zip(*sides, strict=True)
        ],
        "right": ["".join(row) for row in digits],
        "of": number,
        "lucky": len(set(groups[~is_told])),
    }
