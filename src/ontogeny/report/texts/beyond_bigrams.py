"""The texts of one model: by how much each token is likelier than by bigrams of the other texts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ...words.catalogue.page import BEYOND_BIGRAMS, GUESSES
from ...words.content import Content
from ..concepts.tokens import Pieces
from ..style import SHADES
from .dated_lines import Dated, Line, blind_guess, count_of
from .dates import GAIN, chosen
from .example import MOST_TOKENS, Token, text_of
from .measure import SCALE_PERCENT
from .tokens import ShownTokens, first_with


@dataclass(frozen=True)
class BeyondBigrams:
    """All that the template shows; ``key`` holds the gain in nats from which on each shade is."""

    sentence: str
    guess: str
    tokens: str
    lines: tuple[Line, ...]
    key: tuple[tuple[float, int], ...]
    kept: int
    blind: bool
    masked: bool
    numbers: bool
    dated: bool = False
    sure: bool = True


def read_beyond_bigrams(content: Content) -> BeyondBigrams | None:
    """Return two texts of one model, None where their losses or what guesses cost are missing.

    Frequencies stand for bigrams where there are none: masked models see what follows as well.
    """
    node = first_with(content, "token_loss", {"step", "text", "place"})
    if not content.one_model or node is None:
        return None
    data = node.dataset
    known = [name for name in GUESSES if f"token_loss_{name}" in data]
    shown = ShownTokens.of(
        node, "token_id", "text_number", (data.sizes["text"], MOST_TOKENS)
    )
    if not known or shown is None:
        return None
    width = shown.ids.shape[1]
    losses = shown.values("token_loss", "step")[-1, :, :width]
    blind = blind_guess(content)
    costs = np.minimum(shown.values(f"token_loss_{known[0]}")[:, :width], blind)
    gains = costs - losses
    predicted = np.isfinite(gains)
    pieces = Pieces.of(data)
    rows = chosen(pieces, shown.ids, predicted)
    if not len(rows):
        return None
    edges = _edges(gains[rows][predicted[rows]])
    lines = []
    for row in rows:
        ids = shown.ids[row]
        text = text_of(pieces, ids, predicted[row], f"text {shown.numbers[row]:,}")
        costed = zip(
            text.tokens, losses[row, ids >= 0], costs[row, ids >= 0], strict=True
        )
        lines.append(Line(text, tuple(_token(*each, edges) for each in costed)))
    tokens = f"{content.voice.token}s"
    guess = GUESSES[known[0]]
    count = count_of(lines)
    sentence = BEYOND_BIGRAMS.format(
        count=count,
        are="is" if count == 1 else "are",
        total=int(predicted[rows].sum()),
        tokens=tokens,
        guess=guess,
    )
    return BeyondBigrams(
        sentence=sentence,
        guess=guess,
        tokens=tokens,
        lines=tuple(lines),
        key=tuple((round(float(edge), 1), i) for i, edge in enumerate(edges)),
        kept=len(shown.ids),
        blind=math.isfinite(blind),
        masked=bool(data["masked"].item()) if "masked" in data else False,
        numbers=not pieces.by_id or pieces.numbers_only,
    )


def _edges(gains: np.ndarray) -> np.ndarray:
    """Return (SHADES,) gains from which on each shade is: from twice as likely to nearly all."""
    top = max(float(np.percentile(gains, SCALE_PERCENT)), GAIN)
    return np.linspace(GAIN, max(math.ceil(top), 2), SHADES, endpoint=False)


def _token(token: Token, loss: float, cost: float, edges: np.ndarray) -> Dated:
    if not token.has_value:
        return Dated(token, "given")
    shade = int(np.searchsorted(edges, cost - loss, side="right")) - 1
    state = "good" if shade >= 0 else "never"
    return Dated(token, state, shade=max(shade, 0), loss=float(loss), cost=float(cost))
