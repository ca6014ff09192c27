"""One thing that tokens of the example text are tinted by, and what the page's script reads of it.

Values are stored as whole parts of their unit, one byte each, so that what the page says of a token
is the result's number, rounded once. The scale of a tint is the same at all steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...control_kinds import judging
from ...words.nodes import Node
from ..concepts.contexts import FULL, MISSING, packed
from .tokens import ShownTokens

SCALE_PERCENT = 95  # the scale ends where this share of all values lies below it
AS_IT_STANDS = "The text is read as it stands: no token is masked."


@dataclass(frozen=True, eq=False)
class Measure:
    """One thing that tokens are tinted by.

    "Every token with" ``what`` it is: the stronger its tint, ``meaning``; ``care`` stands after it.
    ``low`` and ``high`` stand at the ends of the scale, ``absent`` says what tokens without a value
    are, and ``has_value`` (text, place) which have one. Several ``options`` (group, name) make a
    ``menu``.
    """

    key: str
    label: str
    node: Node
    what: str
    meaning: str
    care: str
    low: str
    high: str
    absent: str
    has_value: np.ndarray
    payload: dict[str, Any]
    menu: str = ""
    options: tuple[tuple[str, str], ...] = (("", ""),)
    controls: str = ""

    @property
    def groups(self) -> dict[str, list[tuple[int, str]]]:
        """Number and name of the options of each group."""
        groups: dict[str, list[tuple[int, str]]] = {}
        for place, (group, name) in enumerate(self.options):
            groups.setdefault(group, []).append((place, name))
        return groups


def payload(
    node: Node,
    values: np.ndarray,
    references: np.ndarray | None,
    parts: int,
    *,
    means: np.ndarray | None = None,
    **scale: Any,
) -> dict[str, Any]:
    """Return what the script reads of values (option, step, text, place) at the measured steps.

    `means` (option, 1, step) stand instead of the means of the texts. `scale` is ``bottom`` and
    ``top`` of the tint, its ``units``, and what is ``told`` of a text, ``beside`` that and of a
    token's ``reference``.
    """
    measured = ~np.isnan(values).all(axis=(0, 2, 3))
    values = values[:, measured]
    means = _means(values).transpose(0, 2, 1) if means is None else means[..., measured]
    return {
        "option": 0,
        "steps": node.dataset["step"].values[measured].astype(int).tolist(),
        "parts": parts,
        "full": FULL,
        "values": packed(_coded(values, parts)),
        "means": [rounded(one, 4) for one in means],
        "references": None if references is None else packed(_coded(references, parts)),
        "costs": None if references is None else rounded(_means(references), 4)[0],
        "bottom": 0,
        "beside": "",
        "reference": "",
        **scale,
    }


def rounded(table: np.ndarray, digits: int) -> list[list[float | None]]:
    """Return numbers as the script reads them: none where nothing is known."""
    return [[_finite(value, digits) for value in row] for row in table]


def has_value_of(values: np.ndarray) -> np.ndarray:
    """Return which tokens (text, place) have a value in some option at some step."""
    return np.asarray(~np.isnan(values).all(axis=(0, 1)))


def of_tokens(
    tokens: ShownTokens, name: str, base: ShownTokens, is_finite: np.ndarray
) -> np.ndarray | None:
    """Return numbers (1, text, place) of tokens with a value; none where the result lacks them."""
    data = tokens.node.dataset
    if name not in data or set(data[name].dims) != set(tokens.dims):
        return None
    return np.where(is_finite, tokens.aligned(tokens.values(name), base), np.nan)[None]


def _coded(values: np.ndarray, parts: int) -> np.ndarray:
    """Return values in parts of their unit, one byte each."""
    rounded = np.clip(np.round(values * parts), 0, FULL)
    return np.where(np.isnan(values), MISSING, rounded).astype(np.uint8)


def _means(values: np.ndarray) -> np.ndarray:
    """Return means over the last axis of what is known; NaN where there is nothing."""
    is_finite = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(
            np.where(is_finite, values, 0).sum(axis=-1) / is_finite.sum(axis=-1)
        )


def _finite(value: float, digits: int) -> float | None:
    if not math.isfinite(value):
        return None
    return round(float(value), digits) if digits else round(value)


def ends_of_controls(data: Any, name: str, what: str, units: str) -> str:
    """Say where a mean ends in the control runs that judge, over layers where it has some."""
    if name not in data or not {"run", "step"} <= set(data[name].dims) <= {
        "run",
        "step",
        "layer",
    }:
        return ""
    courses = data[name].mean(
        [dim for dim in data[name].dims if dim == "layer"], skipna=False
    )
    runs = judging(courses).transpose("run", "step").values.astype(float)
    ends = [
        course[np.isfinite(course)][-1] for course in runs if np.isfinite(course).any()
    ]
    if not ends:
        return ""
    number, span = range_of_controls(ends, ".2f")
    own = data.get(name.removesuffix("_control"))
    last = own.dropna("step") if own is not None and own.dims == ("step",) else []
    here = f", here at {float(last[-1]):.2f}" if len(last) else ""
    return f"In {number} {what} ends at {span} {units}{here}."


def range_of_controls(values: list[Any], form: str) -> tuple[str, str]:
    """Return how many control runs have these values, and the range of them."""
    low = format(min(values), form)
    high = format(max(values), form)
    number = "the control run" if len(values) == 1 else f"{len(values)} control runs"
    return number, low if low == high else f"{low}–{high}"
