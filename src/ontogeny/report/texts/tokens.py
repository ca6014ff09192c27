"""Texts of which a node holds every token, and what nodes hold of the same tokens.

Nodes know nothing of each other: what one holds of a text of another is found by the text's number
and checked token by token, never assumed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...words.content import Content
from ...words.nodes import Node
from ..concepts.tokens import Pieces

BEYOND = -1  # an id that stands for no token: beyond the text


@dataclass(frozen=True, eq=False)
class ShownTokens:
    """The texts of a node: numbers (k,) in their input set, and ids (k, w), -1 beyond the text.

    ``dims`` are the node's names of texts and places.
    """

    node: Node
    dims: tuple[str, str]
    numbers: np.ndarray
    ids: np.ndarray

    @classmethod
    def of(
        cls, node: Node, ids: str, numbers: str, most: tuple[int, int]
    ) -> ShownTokens | None:
        """Return the first texts of a node and their first tokens, none where it holds no ids."""
        data = node.dataset
        if ids not in data or data[ids].ndim != 2 or numbers not in data:
            return None
        (text,) = data[numbers].dims
        (place,) = (dim for dim in data[ids].dims if dim != text)
        cut = (
            data[ids]
            .transpose(text, place)
            .isel({text: slice(most[0]), place: slice(most[1])})
        )
        names = _filled(data[numbers].values[: most[0]])
        return cls(node, (str(text), str(place)), names, _filled(cut.values))

    def rows_of(self, others: ShownTokens) -> list[int]:
        """Return where each text of `others` stands here; -1 where it is not here.

        It is here where a text has its number, and the same token at every place that both hold.
        """
        width = min(self.ids.shape[1], others.ids.shape[1])
        rows = []
        for number, ids in zip(others.numbers, others.ids, strict=True):
            same = (self.numbers == number) & (self.ids[:, :width] == ids[:width]).all(
                axis=1
            )
            rows.append(int(same.argmax()) if same.any() else -1)
        return rows

    @property
    def first(self) -> int:
        """The text to begin with: that of most words, as digits and signs tell a reader little."""
        pieces = Pieces.of(self.node.dataset).by_id.items()
        words = [i for i, piece in pieces if piece.strip().isalpha()]
        return (
            int(np.isin(self.ids, words).sum(axis=1).argmax()) if self.ids.size else 0
        )

    def values(self, name: str, *lead: str) -> np.ndarray:
        """Return a variable over `lead`, and then its texts and places."""
        return np.asarray(self.node.dataset[name].transpose(*lead, *self.dims).values)

    def aligned(self, values: np.ndarray, others: ShownTokens) -> np.ndarray:
        """Return values (..., text, place) at the tokens of `others`, NaN where unknown."""
        places = min(values.shape[-1], others.ids.shape[1])
        aligned = np.full((*values.shape[:-2], *others.ids.shape), np.nan)
        for text, row in enumerate(self.rows_of(others)):
            if row >= 0:
                aligned[..., text, :places] = values[..., row, :places]
        aligned[..., others.ids == BEYOND] = np.nan
        return aligned


def _filled(numbers: np.ndarray) -> np.ndarray:
    """Return numbers as integers; runs of fewer texts have NaN beside those of others."""
    return np.nan_to_num(numbers.astype(float), nan=BEYOND).astype(int)


def first_with(content: Content, name: str, dims: set[str]) -> Node | None:
    """Return the first node whose variable `name` has these dimensions."""
    for node in content.nodes:
        if name in node.dataset and set(node.dataset[name].dims) == dims:
            return node
    return None
