"""What the tokens of the example text are tinted by: loss, divergence from a base, entropy."""

from __future__ import annotations

import math

import numpy as np

from ...words.catalogue.captions import CAPTIONS
from ...words.formats import plain_text
from ...words.labels import short_names
from ..concepts.contexts import FULL
from .measure import (
    AS_IT_STANDS,
    SCALE_PERCENT,
    Measure,
    ends_of_controls,
    has_value_of,
    of_tokens,
    payload,
    rounded,
)
from .tokens import ShownTokens

_SEEN = {
    True: "Each token is masked in a pass of its own, and predicted from all others.",
    False: "The model sees what stands before the token.",
    None: "A causal model sees what stands before the token; of a masked model each token is "
    "masked in a pass of its own.",
}


def read_loss(tokens: ShownTokens, base: ShownTokens) -> Measure | None:
    """Return the losses of the tokens of `base`, none where the node holds none of them."""
    data = tokens.node.dataset
    values = tokens.aligned(tokens.values("token_loss", "step"), base)[None]
    is_finite = has_value_of(values)
    if not is_finite.any():
        return None
    units = plain_text(data["token_loss"].attrs.get("units") or "nats")
    masked = (
        bool(data["masked"].item())
        if "masked" in data and data["masked"].ndim == 0
        else None
    )
    costs, lead, before = (
        of_tokens(tokens, name, base, is_finite)
        for name in ("token_loss_frequencies", "token_leads_from", "token_leads_after")
    )
    top = _top(values, 10)
    return Measure(
        key="loss",
        label="loss",
        node=tokens.node,
        what="its loss",
        meaning="the more the token surprises the model",
        care=_SEEN[masked],
        low="sure",
        high=CAPTIONS["surprised"].format(top=top, units=units),
        absent="not predicted",
        has_value=is_finite,
        payload=payload(
            tokens.node,
            values,
            costs,
            10,
            top=top,
            units=units,
            told=CAPTIONS["of text"].format(units=units),
            beside="; by {word} frequencies alone {}",
            reference=f"{units} by {{word}} frequencies",
            lead=None if lead is None else rounded(lead[0], 0),
            before=None if before is None else rounded(before[0], 0),
        ),
        controls=ends_of_controls(
            data, "shown_loss_control", "the mean over these texts", units
        ),
    )


def read_divergence(tokens: ShownTokens, base: ShownTokens) -> Measure | None:
    """Return how far predictions at the tokens of `base` are from those of the tuned model's base."""
    values = tokens.aligned(tokens.values("token_divergence", "step"), base)[None]
    is_finite = has_value_of(values)
    if not is_finite.any():
        return None
    high = np.nanpercentile(values, SCALE_PERCENT)
    parts = next((n for n in (1000, 100) if high <= FULL / n), 10)
    top = max(math.ceil(min(high * parts, FULL)), 1) / parts
    return Measure(
        key="divergence",
        label="divergence from the base",
        node=tokens.node,
        what="how far the prediction of it is from the base’s",
        meaning="the further it is",
        care="Divergence D(pₜ ‖ p₀) of both predictions, whether or not the token is the right one "
        "for either.",
        low="as the base",
        high=CAPTIONS["far"].format(top=f"{top:g}"),
        absent="not predicted",
        has_value=is_finite,
        payload=payload(
            tokens.node,
            values,
            None,
            parts,
            top=top,
            units="nats",
            told=CAPTIONS["of text"].format(units="nats"),
        ),
        controls=ends_of_controls(
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
    is_finite = has_value_of(values)
    if not is_finite.any():
        return None
    layers = short_names([plain_text(label) for label in data["layer"].values])
    if len(layers) > 1:
        values = np.concatenate([values.mean(axis=0, keepdims=True), values])
        layers = ["mean of all layers", *layers]
    parts = 100 if np.nanmax(values) <= FULL / 100 else 10
    bottom, top = _ends_of(values)
    equal = of_tokens(tokens, "shown_entropy_uniform", base, is_finite)
    return Measure(
        key="entropy",
        label="attention entropy",
        node=tokens.node,
        what="the entropy of its attention, mean over heads",
        meaning="the more tokens it attends to",
        care=AS_IT_STANDS,
        low=CAPTIONS["to few"].format(bottom=bottom),
        high=CAPTIONS["to many"].format(top=top),
        absent="not counted",
        has_value=is_finite,
        payload=payload(
            tokens.node,
            values,
            equal,
            parts,
            bottom=bottom,
            top=top,
            units="nats",
            told="Mean of this text {} nats",
            beside="; equal attention {}",
            reference="nats, equal attention to all tokens that it may see",
        ),
        menu="Layer",
        options=tuple(("", name) for name in layers),
        controls=ends_of_controls(
            data, "layer_entropy_control", "the mean over all texts and layers", "nats"
        ),
    )


def _top(values: np.ndarray, parts: int) -> int:
    """Return the end of the scale: whole, and at all steps the same."""
    most = np.nanpercentile(np.minimum(values, FULL / parts), SCALE_PERCENT)
    return max(math.ceil(float(most)), 1)


def _ends_of(values: np.ndarray) -> tuple[float, float]:
    """Return a scale that most values lie within, to one decimal, at all steps the same."""
    low, high = np.nanpercentile(values, [100 - SCALE_PERCENT, SCALE_PERCENT]) * 10
    bottom = math.floor(low)
    return bottom / 10, max(math.ceil(high), bottom + 1) / 10
