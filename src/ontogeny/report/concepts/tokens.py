"""Tokens as a node shows them: the text of every id that stands in its arrays."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import xarray as xr

from ...characters import shown
from ...words.formats import plain_text

BEYOND = -1  # an id that means: beyond the text


@dataclass
class Pieces:
    """The texts of a node's tokens, and those that were asked for, each once and by its place.

    Examples
    --------
    >>> pieces = Pieces({5: " the", 9: ","})
    >>> pieces.all_places(np.array([9, 5, 9, -1])).tolist(), pieces.texts
    ([1, 0, 1, -1], [' the', ','])
    """

    by_id: dict[int, str]
    texts: list[str] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, data: xr.Dataset) -> Pieces:
        """Return the pieces of a node: ``piece_text(piece)``, whose labels are the tokens' ids."""
        if "piece_text" not in data or data["piece_text"].dims != ("piece",):
            return cls({})
        texts = data["piece_text"].values.tolist()
        ids = data["piece_text"]["piece"].values.tolist()
        return cls({int(i): str(text) for i, text in zip(ids, texts, strict=True)})

    def text(self, token: int) -> str:
        """Return how a token is shown; by its number where no text is known, never empty."""
        text = plain_text(shown(self.by_id.get(token, str(token))))
        return text if text.strip() else "␣" * len(text) or "∅"

    def place(self, token: int) -> int:
        """Return the place of a token among the texts that are kept; -1 beyond the text."""
        if token < 0:
            return BEYOND
        if token not in self.places:
            self.places[token] = len(self.texts)
            self.texts.append(self.text(token))
        return self.places[token]

    def all_places(self, tokens: np.ndarray) -> np.ndarray:
        """Return the places of an array of tokens."""
        distinct, inverse = np.unique(
            np.asarray(tokens, dtype=int), return_inverse=True
        )
        places = np.array([self.place(int(token)) for token in distinct], dtype=int)
        return places[inverse].reshape(np.shape(tokens))

    @property
    def numbers_only(self) -> bool:
        """Whether the result holds no tokenizer: every token is shown by its number."""
        return all(text == str(token) for token, text in self.by_id.items())
