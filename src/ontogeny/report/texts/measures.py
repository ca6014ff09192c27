"""What the tokens of the example text are tinted by: loss, divergence, a concept, or entropy.

Values are stored as whole parts of their unit, one byte each, so that what the page says of a token
is the result's number, rounded once. The scale of a tint is the same at all steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...control_kinds import is_null
from ...words.formats import plain_text
from ...words.labels import short_names
from ...words.nodes import Node
from ..concepts.contexts import FULL, MISSING, packed
from ..concepts.lives import Concept, Concepts, line_names
from .tokens import ShownTokens

SCALE_PERCENT = 95  # the scale ends where this share of all values lies below it

# Codes of tokens that the page holds; the sharpest concepts go first.
MOST_CODES = 420_000

FIRES = 50  # percent of its largest code from which on a concept fires

_SEEN = {
    True: "Each token is masked in a pass of its own, and predicted from all others.",
    False: "The model sees what stands before the token.",
    None: "A causal model sees what stands before the token; of a masked model each token is "
    "masked in a pass of its own.",
}
_AS_IT_STANDS = "The text is read as it stands: no token is masked."


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


def read_loss(tokens: ShownTokens, base: ShownTokens) -> Measure | None:
    """Return the losses of the tokens of `base`, none where the node holds none of them."""
    data = tokens.node.dataset
    values = tokens.aligned(tokens.values("token_loss", "step"), base)[None]
    is_finite = _has_value(values)
    if not is_finite.any():
        return None
    units = plain_text(data["token_loss"].attrs.get("units") or "nats")
    masked = (
        bool(data["masked"].item())
        if "masked" in data and data["masked"].ndim == 0
        else None
    )
    costs, lead, before = (
        _of_tokens(tokens, name, base, is_finite)
        for name in ("token_loss_frequencies", "token_leads_from", "token_leads_after")
    )
    top = _top(values, 10)
    words = {
        "bottom": 0,
        "top": top,
        "units": units,
        "told": f"Mean of this text {{}} {units}",
        "beside": "; by {word} frequencies alone {}",
        "reference": f"{units} by {{word}} frequencies",
        "lead": None
        if lead is None
        else [[_finite(x, 0) for x in row] for row in lead[0]],
        "before": None
        if before is None
        else [[_finite(x, 0) for x in row] for row in before[0]],
    }
    return Measure(
        key="loss",
        label="loss",
        node=tokens.node,
        what="its loss",
        meaning="the more the token surprises the model",
        care=_SEEN[masked],
        low="sure",
        high=f"surprised ({top} {units} or more)",
        absent="not predicted",
        has_value=is_finite,
        payload=_payload(tokens.node, values, costs, 10) | words,
        controls=_ends(data, "shown_loss_control", "the mean over these texts", units),
    )


def read_divergence(tokens: ShownTokens, base: ShownTokens) -> Measure | None:
    """Return how far predictions at the tokens of `base` are from those of the tuned model's base."""
    values = tokens.aligned(tokens.values("token_divergence", "step"), base)[None]
    is_finite = _has_value(values)
    if not is_finite.any():
        return None
    high = np.nanpercentile(values, SCALE_PERCENT)
    parts = next((n for n in (1000, 100) if high <= FULL / n), 10)
    top = max(math.ceil(min(high * parts, FULL)), 1) / parts
    words = {
        "bottom": 0,
        "top": top,
        "units": "nats",
        "told": "Mean of this text {} nats",
        "beside": "",
        "reference": "",
    }
    return Measure(
        key="divergence",
        label="divergence from the base",
        node=tokens.node,
        what="how far the prediction of it is from the base’s",
        meaning="the further it is",
        care="Divergence D(pₜ ‖ p₀) of both predictions, whether or not the token is the right one "
        "for either.",
        low="as the base",
        high=f"far ({top:g} nats or more)",
        absent="not predicted",
        has_value=is_finite,
        payload=_payload(tokens.node, values, None, parts) | words,
        controls=_ends(
            tokens.node.dataset,
            "divergence_control",
            "the mean over all texts of this node",
            "nats",
        ),
    )


def read_entropy(tokens: ShownTokens, base: ShownTokens) -> Measure | None:
    """Return the attention entropy of the tokens of `base`, of every layer and their mean."""
    data = tokens.node.dataset
    values = tokens.aligned(tokens.values("shown_entropy", "layer", "step"), base)
    is_finite = _has_value(values)
    if not is_finite.any():
        return None
    layers = short_names([plain_text(label) for label in data["layer"].values])
    if len(layers) > 1:
        values = np.concatenate([values.mean(axis=0, keepdims=True), values])
        layers = ["mean of all layers", *layers]
    parts = 100 if np.nanmax(values) <= FULL / 100 else 10
    bottom, top = _ends_of(values)
    words = {
        "bottom": bottom,
        "top": top,
        "units": "nats",
        "told": "Mean of this text {} nats",
        "beside": "; equal attention {}",
        "reference": "nats, equal attention to all tokens that it may see",
    }
    equal = _of_tokens(tokens, "shown_entropy_uniform", base, is_finite)
    return Measure(
        key="entropy",
        label="attention entropy",
        node=tokens.node,
        what="the entropy of its attention, mean over heads",
        meaning="the more tokens it attends to",
        care=_AS_IT_STANDS,
        low=f"to few ({bottom} nats or less)",
        high=f"to many ({top} nats or more)",
        absent="not counted",
        has_value=is_finite,
        payload=_payload(tokens.node, values, equal, parts) | words,
        menu="Layer",
        options=tuple(("", name) for name in layers),
        controls=_ends(
            data, "layer_entropy_control", "the mean over all texts and layers", "nats"
        ),
    )


def read_codes(
    tokens: ShownTokens, base: ShownTokens, concepts: Concepts
) -> Measure | None:
    """Return what readouts of every step say of the concepts at the tokens of `base`."""
    data = tokens.node.dataset
    picks = concepts.every[: max(MOST_CODES // (data.sizes["step"] * base.ids.size), 1)]
    if not picks:
        return None
    codes = tokens.values("shown_code", "layer", "concept", "step")[_places(picks)]
    values = tokens.aligned(np.where(codes == MISSING, np.nan, codes), base)
    is_finite = _has_value(values)
    if not is_finite.any():
        return None
    words = {
        "option": _liveliest(values[:, -1, base.first], picks),
        "bottom": 0,
        "top": 100,
        "units": "% of its largest code",
        "told": "Correlation of readout and shared codes over all texts {}",
        "beside": "",
        "reference": "% by the code that all checkpoints share",
    }
    readable = (
        data["readability"].transpose("layer", "concept", "step").values[_places(picks)]
    )
    return Measure(
        key="concept",
        label="concept",
        node=tokens.node,
        what="what this checkpoint alone tells of a concept",
        meaning="the nearer it is to the concept’s largest code",
        care=f"{_AS_IT_STANDS} A readout fires on as many tokens where the concept is not there "
        "yet: it then fires elsewhere.",
        low="nothing",
        high="the concept’s largest code (100 %)",
        absent="no code",
        has_value=is_finite,
        payload=_payload(
            tokens.node, values, _shared(tokens, base, picks), 1, readable[:, None]
        )
        | words,
        menu="Concept",
        options=tuple(
            ("named" if concept.given or concept.name else "not named", name)
            for concept, name in zip(picks, line_names(picks), strict=True)
        ),
        controls=_names_given(concepts, len(picks)),
    )


def _places(picks: Sequence[Concept]) -> tuple[np.ndarray, np.ndarray]:
    layer, number = np.array([concept.place for concept in picks]).T
    return layer, number


def _shared(
    tokens: ShownTokens, base: ShownTokens, picks: Sequence[Concept]
) -> np.ndarray | None:
    """Return the codes (concept, text, place) that all checkpoints share."""
    if "shown_shared_code" not in tokens.node.dataset:
        return None
    codes = tokens.values("shown_shared_code", "layer", "concept")[_places(picks)]
    return tokens.aligned(np.where(codes == MISSING, np.nan, codes), base)


def _has_value(values: np.ndarray) -> np.ndarray:
    """Return which tokens (text, place) have a value in some option at some step."""
    return np.asarray(~np.isnan(values).all(axis=(0, 1)))


def _of_tokens(
    tokens: ShownTokens, name: str, base: ShownTokens, is_finite: np.ndarray
) -> np.ndarray | None:
    """Return numbers (1, text, place) of tokens with a value; none where the result lacks them."""
    data = tokens.node.dataset
    if name not in data or set(data[name].dims) != set(tokens.dims):
        return None
    return np.where(is_finite, tokens.aligned(tokens.values(name), base), np.nan)[None]


def _top(values: np.ndarray, parts: int) -> int:
    """Return the end of the scale: whole, and at all steps the same."""
    most = np.nanpercentile(np.minimum(values, FULL / parts), SCALE_PERCENT)
    return max(math.ceil(float(most)), 1)


def _ends_of(values: np.ndarray) -> tuple[float, float]:
    """Return a scale that most values lie within, to one decimal, at all steps the same."""
    low, high = np.nanpercentile(values, [100 - SCALE_PERCENT, SCALE_PERCENT]) * 10
    bottom = math.floor(low)
    return bottom / 10, max(math.ceil(high), bottom + 1) / 10


def _liveliest(of_first: np.ndarray, picks: Sequence[Concept]) -> int:
    """Return the concept that is shown first: the sharpest named one that fires in the first text.

    Any is taken where none has a name; where none fires, the one that ends strongest there.
    """
    has_name = np.array([bool(concept.given or concept.name) for concept in picks])
    codes = np.nan_to_num(of_first) * (has_name | ~has_name.any())[:, None]
    fires = codes.max(axis=1) >= FIRES
    return int((fires if fires.any() else codes.sum(axis=1)).argmax())


def _payload(
    node: Node,
    values: np.ndarray,
    references: np.ndarray | None,
    parts: int,
    means: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return what the script reads of values (option, step, text, place) at the measured steps.

    `means` (option, 1, step) stand instead of the means of the texts.
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
        "means": [[[_finite(x, 4) for x in row] for row in one] for one in means],
        "references": None if references is None else packed(_coded(references, parts)),
        "costs": None
        if references is None
        else [_finite(x, 4) for x in _means(references)[0]],
    }


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


def _ends(data: Any, name: str, what: str, units: str) -> str:
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
    judges = [is_null(str(run)) for run in courses["run"].values]
    runs = courses.transpose("run", "step").values[judges].astype(float)
    ends = [
        course[np.isfinite(course)][-1] for course in runs if np.isfinite(course).any()
    ]
    if not ends:
        return ""
    number, span = _controls(ends, ".2f")
    own = data.get(name.removesuffix("_control"))
    last = own.dropna("step") if own is not None and own.dims == ("step",) else []
    here = f", here at {float(last[-1]):.2f}" if len(last) else ""
    return f"In {number} {what} ends at {span} {units}{here}."


def _controls(values: list[Any], form: str) -> tuple[str, str]:
    """Return how many control runs have these values, and the range of them."""
    low = format(min(values), form)
    high = format(max(values), form)
    number = "the control run" if len(values) == 1 else f"{len(values)} control runs"
    return number, low if low == high else f"{low}–{high}"


def _names_given(concepts: Concepts, count: int) -> str:
    """Say which concepts are in the menu, and how many got a name, here and in control runs."""
    every = len(concepts.every)
    menu = (
        f"In the menu: the {count:,} sharpest concepts of {every:,}. "
        if count < every
        else ""
    )
    counts = [n_names for n_names, _ in concepts.named_controls]
    if not counts or concepts.named is None:
        return menu.rstrip()
    number, span = _controls(counts, ",")
    return (
        f"{menu}{concepts.named:,} got a name here, and {span} in {number}, which have concepts of "
        "their own."
    )
