"""Examples of abilities that turn from one checkpoint to the next, for the page's slider."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from ...words.abilities import has_abilities
from ...words.content import Content
from ...words.formats import plain_text

MOST = 2000
"""Examples of a node that the page holds."""


def turning(content: Content) -> list[dict[str, Any]]:
    """Return for each node of abilities its steps, the texts of its examples, and which are right.

    What is right at a step is a text of a digit for each example: 1 or 0, 5 of a tie, and a blank
    where it was not measured.
    """
    nodes = [node.dataset for node in content.nodes if has_abilities(node.dataset)]
    return [_turning(data) for data in nodes if "right" in data and data.sizes["step"] > 1]


def _turning(data: xr.Dataset) -> dict[str, Any]:
    (dim,) = (str(dim) for dim in data.right.dims if dim != "step")
    data = data.isel({dim: slice(MOST)})
    right = np.nan_to_num(data.right.transpose("step", dim).values, nan=-1.0)
    digits = np.select([right == 1, right == 0, right > 0], ["1", "0", "5"], " ")
    return {
        "steps": data.step.values.tolist(),
        "groups": [plain_text(name) for name in data[f"group_of_{dim}"].values],
        "texts": _texts(data),
        "right": ["".join(row) for row in digits],
    }


def _texts(data: xr.Dataset) -> list[list[str]]:
    """Return each example's right text and, of a pair, the wrong one."""
    if "right_text" in data:
        sides = [data.right_text.values, data.wrong_text.values]
        return [[plain_text(text) for text in pair] for pair in zip(*sides, strict=True)]
    answers = data.answer_text.values
    if "right_answer" in data:
        answers = answers[data.right_answer.values.astype(int)]
    both = zip(data.prompt.values, answers, strict=True)
    return [[plain_text(f"{prompt} {str(answer).strip()}")] for prompt, answer in both]
