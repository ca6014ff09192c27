"""What a readout of each checkpoint says of a concept at the tokens of the example text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...words.catalogue.captions import CAPTIONS
from ..concepts.contexts import MISSING
from ..concepts.lives import Concept, Concepts, line_names
from .measure import AS_IT_STANDS, Measure, has_value_of, payload, range_of_controls
from .tokens import ShownTokens

# Codes of tokens that the page holds; the sharpest concepts go first.
MOST_CODES = 420_000

FIRES = 50  # percent of its largest code from which on a concept fires


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
    is_finite = has_value_of(values)
    if not is_finite.any():
        return None
    readable = (
        data["readability"].transpose("layer", "concept", "step").values[_places(picks)]
    )
    return Measure(
        key="concept",
        label="concept",
        node=tokens.node,
        what="what this checkpoint alone tells of a concept",
        meaning="the nearer it is to the concept’s largest code",
        care=f"{AS_IT_STANDS} A readout fires on as many tokens where the concept is not there "
        "yet: it then fires elsewhere.",
        low="nothing",
        high="the concept’s largest code (100 %)",
        absent="no code",
        has_value=is_finite,
        payload=payload(
            tokens.node,
            values,
            _shared(tokens, base, picks),
            1,
            means=readable[:, None],
            option=_liveliest(values[:, -1, base.first], picks),
            top=100,
            units="% of its largest code",
            told="Correlation of readout and shared codes over all texts {}",
            reference="% by the code that all checkpoints share",
        ),
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


def _liveliest(of_first: np.ndarray, picks: Sequence[Concept]) -> int:
    """Return the concept that is shown first: the sharpest named one that fires in the first text.

    Any is taken where none has a name; where none fires, the one that ends strongest there.
    """
    has_name = np.array([bool(concept.given or concept.name) for concept in picks])
    codes = np.nan_to_num(of_first) * (has_name | ~has_name.any())[:, None]
    fires = codes.max(axis=1) >= FIRES
    return int((fires if fires.any() else codes.sum(axis=1)).argmax())


def _names_given(concepts: Concepts, count: int) -> str:
    """Say which concepts are in the menu, and how many got a name, here and in control runs."""
    every = len(concepts.every)
    in_menu = CAPTIONS["in menu"].format(some=f"{count:,}", all=f"{every:,}")
    menu = in_menu if count < every else ""
    counts = [n_names for n_names, _ in concepts.named_controls]
    if not counts or concepts.named is None:
        return menu.rstrip()
    number, span = range_of_controls(counts, ",")
    return CAPTIONS["names"].format(
        menu=menu, count=f"{concepts.named:,}", controls=span, number=number
    )
