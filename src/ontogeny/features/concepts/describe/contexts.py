"""Where a concept is strongest, with the text around it."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ....arrays import Array
from ....errors import check_whole
from ....inputs import Inputs
from ....inputs.sampling import TokenSample
from .rows import BEYOND, Rows, described

UNKNOWN = -1.0  # the code of a token that is not among the sampled rows


def contexts(
    codes: Array,
    inputs: Inputs,
    sample: TokenSample,
    examples: int = 4,
    before: int = 6,
    after: int = 6,
) -> xr.Dataset:
    """Return the strongest tokens of each concept in distinct texts, with the tokens around them.

    Texts that repeat or share a document count as one (`Inputs.groups`). Equal codes are taken in
    the order of the rows. Codes are turned by `orientation` first; only positive ones are shown.

    Parameters
    ----------
    codes
        (n, r) codes of the rows of `sample`.
    inputs, sample
        The texts, and which of their tokens the rows are: ``inputs.sample(...)``.
    examples
        Texts for each concept, strongest first.
    before, after
        Tokens on either side.

    Returns
    -------
    xarray.Dataset
        ``context_text(concept, example)``, the text, and ``context_place(concept, example)``, the
        token in it, counted from its first token; both -1 where the concept fires in fewer texts.
        ``context_id(concept, example, place)``, the ids around it, -1 beyond the text, with
        `place` from ``-before`` to ``after``. ``context_code``, of the same shape, float32: 0 to
        1 of the concept's largest code, -1 where the token is not among the rows. A row that is
        the mean of a text has ``context_place`` -1; its context is the beginning of the text,
        from place 0 on, where its code stands.

    Raises
    ------
    ArgumentError
        If codes and sample disagree, or a count is not a whole number.
    NonFiniteError
        If a code is NaN or infinite.

    Examples
    --------
    >>> inputs = Inputs.from_tokens([[7, 8, 9], [8, 6]])
    >>> result = contexts([[0], [2], [1], [4], [0]], inputs, inputs.sample(), 2, 1, 1)
    >>> result.context_text.values.tolist(), result.context_place.values.tolist()
    ([[1, 0]], [[0, 1]])
    >>> result.context_id.values.tolist(), result.context_code.values.tolist()
    ([[[-1, 8, 6], [7, 8, 9]]], [[[-1.0, 1.0, 0.0], [0.0, 0.5, 0.25]]])
    """
    examples = check_whole("examples", examples)
    before = check_whole("before", before, 0)
    after = check_whole("after", after, 0)
    values, rows = described(codes, inputs, sample)
    peaks = strongest_rows(values, rows, examples)
    offsets = np.arange(-before, after + 1)
    ids, code = _around(values, rows, peaks, offsets)
    place = ("concept", "example", "place")
    return xr.Dataset(
        {
            "context_id": (place, ids),
            "context_code": (place, code),
            "context_text": (place[:2], _of(rows.sample.text, peaks)),
            "context_place": (place[:2], _of(rows.sample.position, peaks)),
        },
        coords={"place": offsets},
    )


def strongest_rows(values: np.ndarray, rows: Rows, count: int) -> np.ndarray:
    """Return (r, count) the strongest row of each concept in distinct units; -1 where none fires.

    Examples
    --------
    >>> inputs = Inputs.from_tokens([[7, 8], [8, 6]])
    >>> rows = Rows(inputs, inputs.sample())
    >>> strongest_rows(np.array([[5.0, 0], [4, 1], [4, 0], [4, 0]]), rows, 2).tolist()
    [[0, 2], [1, -1]]
    """
    order = np.argsort(rows.units.place, kind="stable")
    starts = np.cumsum(rows.units.sizes) - rows.units.sizes
    sorted_values = values[order]
    largest = np.maximum.reduceat(sorted_values, starts)
    peak = sorted_values == np.repeat(largest, rows.units.sizes, axis=0)
    first = np.minimum.reduceat(np.where(peak, order[:, None], len(order)), starts)
    strongest = np.lexsort((first, -largest), axis=0)[:count]
    strongest_here = np.take_along_axis(first, strongest, axis=0)
    fires = np.take_along_axis(largest, strongest, axis=0) > 0
    missing = ((0, 0), (0, max(count - len(strongest), 0)))
    return np.pad(np.where(fires, strongest_here, -1).T, missing, constant_values=-1)


def _of(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return values (n,) of rows of any shape, -1 where the row is -1."""
    return np.where(rows >= 0, values[rows], -1)


def _around(
    values: np.ndarray, rows: Rows, peaks: np.ndarray, offsets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return ids and relative codes (r, examples, places) around the rows `peaks`."""
    flat = peaks.ravel()
    text = rows.sample.text[flat]
    position = rows.sample.position[flat]
    ids = rows.ids_at(text, np.maximum(position, 0), offsets)
    near = rows.rows_at(text, position, offsets)
    near[:, offsets == 0] = flat[:, None]
    near[position < 0] = np.where(offsets == 0, flat[position < 0][:, None], -1)
    concept = np.repeat(np.arange(len(peaks)), peaks.shape[1])[:, None]
    share = np.maximum(values, 0.0) / np.maximum(
        values.max(axis=0), np.finfo(float).tiny
    )
    codes = np.where(near >= 0, share[near, concept], UNKNOWN)
    none = (flat < 0)[:, None]
    shape = (*peaks.shape, len(offsets))
    return (
        np.where(none, BEYOND, ids).reshape(shape),
        np.where(none, UNKNOWN, codes).astype(np.float32).reshape(shape),
    )
