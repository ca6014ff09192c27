"""Tokens of a result: how their ids are written, and the texts of which every token is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from ..inputs import ShownTexts
from ..words.names import Names

# Variable of a state: how each id of the vocabulary is written.
PIECES = "vocabulary_pieces"
SHOWN: Names = {
    "shown_text_number": ("number of the text in its input set", ""),
    "shown_token_id": ("token; -1 beyond the text", ""),
}


def pieces_variable(pieces: Sequence[str]) -> tuple[str, np.ndarray]:
    """Return pieces in the order of ids as a variable of a state."""
    return "vocabulary", object_array(pieces)


def object_array(texts: Sequence[str]) -> np.ndarray:
    """Return texts as an array of objects; of no text as well, of which NumPy makes numbers."""
    return np.array([*texts, None], dtype=object)[:-1]


def with_pieces(data: xr.Dataset, names: Sequence[str]) -> xr.Dataset:
    """Return data with ``piece_text(piece)`` of the ids that some variables hold.

    Ids below 0 stand for no token. One that the vocabulary lacks is written as its digits.

    Examples
    --------
    >>> data = xr.Dataset(
    ...     {"right_id": ("gap", [2, -1, 9]), PIECES: ("vocabulary", ["a", "b", "c"])}
    ... )
    >>> result = with_pieces(data, ["right_id"])
    >>> result.piece.values.tolist(), result.piece_text.values.tolist()
    ([2, 9], ['c', '9'])
    """
    every = data[PIECES].values
    there = [data[name].values.ravel() for name in names if name in data]
    ids = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *there]))
    ids = ids[ids >= 0].astype(np.int64)
    texts = [str(every[i]) if i < len(every) else str(i) for i in ids]
    data = data.drop_vars(PIECES).assign_coords(piece=ids)
    return data.assign(piece_text=("piece", np.array(texts, dtype=str)))


def written(data: xr.Dataset) -> dict[int, str]:
    """Return the pieces of a result by their ids.

    Examples
    --------
    >>> data = xr.Dataset({"piece_text": ("piece", ["c"])}, {"piece": [2]})
    >>> written(data)
    {2: 'c'}
    """
    return dict(
        zip(data.piece.values.tolist(), map(str, data.piece_text.values), strict=True)
    )


def whole_numbers(data: xr.Dataset, names: Sequence[str]) -> xr.Dataset:
    """Return data with variables as whole numbers, -1 at steps that are missing.

    Examples
    --------
    >>> data = xr.Dataset({"rank": ("step", [3.0, np.nan])})
    >>> whole_numbers(data, ["rank"])["rank"].values.tolist()
    [3, -1]
    """
    columns = {
        name: data[name].fillna(-1).astype(np.int64) for name in names if name in data
    }
    return data.assign(columns)


def shown_variables(texts: ShownTexts) -> dict[str, Any]:
    """Return numbers of the texts and ids of their tokens, under the names of `SHOWN`."""
    return {
        "shown_text_number": ("shown_text", texts.number),
        "shown_token_id": (("shown_text", "shown_place"), texts.ids),
    }
