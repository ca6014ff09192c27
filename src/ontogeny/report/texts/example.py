"""Example text: a few texts whose tokens are tinted, as by loss, concept or attention entropy."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...characters import in_words, shown, whole_characters, within, without_bytes
from ...words.catalogue.captions import CAPTIONS
from ...words.content import Content
from ...words.formats import plain_text, plural
from ..concepts.contexts import MISSING
from ..concepts.lives import Concepts
from ..concepts.nodes import read_concepts
from ..concepts.tokens import Pieces
from .codes import read_codes
from .measure import Measure
from .measures import read_divergence, read_entropy, read_loss
from .tokens import ShownTokens, first_with

MOST_TEXTS = 12  # that the page holds
MOST_TOKENS = 256  # of each


@dataclass(frozen=True)
class Token:
    """A token as it stands in its text; `words` is its name where it holds no letter or digit."""

    text: str
    words: str
    has_value: bool


@dataclass(frozen=True)
class Text:
    """One text: what it is called, the direction it runs in, and its tokens."""

    name: str
    direction: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True)
class Example:
    """All that the template shows of the example texts, and what the script reads.

    ``texts`` is empty where no token was kept. ``numbers`` is whether tokens are shown by their
    ids, for want of a tokenizer, and ``first`` the text that is shown at first.
    """

    texts: tuple[Text, ...] = ()
    measures: tuple[Measure, ...] = ()
    numbers: bool = False
    first: int = 0
    notices: tuple[str, ...] = ()
    payload: dict[str, Any] | None = None


def read_example(content: Content, concepts: Concepts | None = None) -> Example | None:
    """Return the texts whose tokens a result holds, with all that it holds of them.

    `concepts` are those of the result where they were read before. None where no node holds numbers
    of single tokens; an example without texts where some do, and hold none of the tokens.
    """
    sources = _sources(content, concepts)
    if not sources:
        return None
    bases = [tokens for _, tokens in sources if tokens is not None]
    measures: list[Measure] = []
    for base in bases:
        measures_or_none = (
            read(tokens, base) for read, tokens in sources if tokens is not None
        )
        measures = [measure for measure in measures_or_none if measure is not None]
        if measures:
            return _example(content, base, measures)
    return None if bases else Example()


def _sources(
    content: Content, concepts: Concepts | None
) -> list[tuple[Any, ShownTokens | None]]:
    """Return how each measure is read, and the tokens that its node holds, if any."""
    most = (MOST_TEXTS, MOST_TOKENS)
    readers: list[tuple[Any, ShownTokens | None]] = []
    losses = first_with(content, "token_loss", {"step", "text", "place"})
    if losses:
        readers.append(
            (read_loss, ShownTokens.of(losses, "token_id", "text_number", most))
        )
    tuned = first_with(content, "token_divergence", {"step", "shown_text", "place"})
    if tuned:
        readers.append(
            (read_divergence, ShownTokens.of(tuned, "token_id", "text_number", most))
        )
    tokens = {"shown_text", "shown_place"}
    codes = first_with(content, "shown_code", {"step", "layer", "concept", *tokens})
    if codes:
        there = concepts or read_concepts(content)
        view = ShownTokens.of(codes, "shown_token_id", "shown_text_number", most)
        if there is not None and there.node is codes:
            readers.append((lambda view, base: read_codes(view, base, there), view))
    entropies = first_with(content, "shown_entropy", {"step", "layer", *tokens})
    if entropies:
        view = ShownTokens.of(entropies, "shown_token_id", "shown_text_number", most)
        readers.append((read_entropy, view))
    return readers


def _example(
    content: Content, base: ShownTokens, measures: Sequence[Measure]
) -> Example:
    pieces = Pieces.of(base.node.dataset)
    is_finite = measures[0].has_value
    texts = tuple(
        text_of(pieces, ids, is_shown, f"text {number:,}")
        for ids, is_shown, number in zip(base.ids, is_finite, base.numbers, strict=True)
    )
    payload = [
        {"key": m.key, "absent": m.absent, "options": [name for _, name in m.options]}
        | {
            key: content.voice.fill(x) if isinstance(x, str) else x
            for key, x in m.payload.items()
        }
        for m in measures
    ]
    return Example(
        texts=texts,
        measures=tuple(measures),
        numbers=not pieces.by_id or pieces.numbers_only,
        first=base.first,
        notices=_notices(base),
        payload={"missing": MISSING, "measures": payload, "first": base.first},
    )


def text_of(pieces: Pieces, ids: np.ndarray, is_finite: np.ndarray, name: str) -> Text:
    """Return one text as far as it goes; it runs as most letters of its known tokens do."""
    there = ids >= 0
    raw = [pieces.by_id.get(int(token), str(token)) for token in ids[there]]
    ordinary = is_finite[there]
    tokens = tuple(
        Token(plain_text(within(piece)) or "∅", _words(piece), bool(asked))
        for piece, asked in zip(raw, ordinary, strict=True)
    )
    known = [piece for piece, asked in zip(raw, ordinary, strict=True) if asked]
    letters = without_bytes("".join(whole_characters(known)[0]))
    kinds = [unicodedata.bidirectional(letter) for letter in letters]
    from_the_right = sum(kind in ("R", "AL") for kind in kinds)
    return Text(name, "rtl" if from_the_right > kinds.count("L") else "ltr", tokens)


def _words(piece: str) -> str:
    """Return what a token of marks or spaces is called; nothing where it names itself."""
    if any(character.isalnum() for character in piece):
        return ""
    return plain_text(shown(in_words(piece))) if piece else "nothing"


def _notices(base: ShownTokens) -> tuple[str, ...]:
    """Say what of the texts is not shown."""
    data = base.node.dataset
    sentences = []
    for dimension, most, noun in zip(
        base.dims, (MOST_TEXTS, MOST_TOKENS), ("text", "token"), strict=True
    ):
        if data.sizes[dimension] > most:
            every = plural(data.sizes[dimension], noun)
            shown_words = CAPTIONS[f"{noun}s shown"]
            sentences.append(shown_words.format(some=most, all=every))
    return tuple(sentences)
