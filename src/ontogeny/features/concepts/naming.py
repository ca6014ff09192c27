"""Which names a concept keeps, by its code and contexts, and what tells it from its namesakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import xarray as xr

from ...characters import in_words, shown
from .describe.row_words import word_at
from .describe.rows import BEYOND, Kinds, Rows, squared

LEAST_EXPLAINED = 0.2  # share of a code that its token explains in texts left out
LEAST_AT_PEAK = 0.5  # of the contexts shown, that are strongest at a word of the name
CUT = "…"  # in the name of a piece that is part of several words
LEAST = 0.1  # share of the squared code by which a neighbour must be commoner than elsewhere
_SIDES = ((-1, "after", "at the start"), (1, "before", "at the end"))


def chosen_names(data: xr.Dataset) -> xr.Dataset:
    """Return a node whose names are borne out.

    A name falls where tokens explain too little of the code, or where fewer than half of the
    contexts shown, those of all steps or those of the last one, are strongest at a word of it.
    Where several concepts of a layer then have the same one, each gets what differs.
    """
    if "name" not in data:
        return data
    dims = data["name"].dims
    last = data.isel(step=-1) if "step" in data.dims and "step" not in dims else data
    names = data["name"].values.astype(object).copy()
    for place in np.ndindex(names.shape):
        one = last.isel(dict(zip(dims, place, strict=True)))
        if names[place] and not borne_out(one, str(names[place])):
            names[place] = ""
    if "name_beside" in data:
        names = _distinguished(names, data["name_beside"].transpose(*dims).values)
    return data.assign(name=(dims, names))


def borne_out(one: xr.Dataset, name: str) -> bool:
    """Return whether the code and the contexts of one concept bear out a name."""
    if "enrichment" in one and "position" in one.dims:
        explained = float(one["enrichment"].sel(position="token"))
        if explained < LEAST_EXPLAINED:  # not of NaN, which was not measured
            return False
    written = dict(
        zip(one["piece"].values.tolist(), one["piece_text"].values, strict=True)
    )
    forms = set(name.casefold().split(", "))
    for prefix in ("shared_context", "context"):
        if f"{prefix}_id" not in one:
            continue
        peaks = list(_peaks(one[f"{prefix}_id"], written))
        hits = sum(not forms.isdisjoint(peak) for peak in peaks)
        if peaks and hits < LEAST_AT_PEAK * len(peaks):
            return False
    return True


def _peaks(ids: xr.DataArray, written: dict[int, str]) -> Iterator[set[str]]:
    """Yield for each context how the token at its strongest place may be called."""
    middle = int(np.flatnonzero(ids["place"].values == 0)[0])
    for line in ids.transpose("example", "place").values:
        if not line[middle] >= 0:  # NaN of a gap is none either
            continue
        pieces = [written.get(int(i), str(int(i))) if i >= 0 else "" for i in line]
        piece = in_words(pieces[middle])
        forms = {piece, f"{piece}{CUT}", f"{CUT}{piece}", word_at(pieces, middle)}
        yield {shown(in_words(form)).casefold() for form in forms if form}


def _distinguished(names: np.ndarray, beside: np.ndarray) -> np.ndarray:
    """Return names (layers, concepts), with what stands beside where several are equal."""
    distinct = names.copy()
    for i, row in enumerate(names):
        counts = Counter(name for name in row if name)
        for j, name in enumerate(row):
            if counts[name] > 1 and beside[i, j]:
                distinct[i, j] = f"{name} {beside[i, j]}"
    return distinct


def beside(
    values: np.ndarray, rows: Rows, names: Sequence[str], pieces: Sequence[str]
) -> np.ndarray:
    """Return for each concept (r,) the neighbour that tells it from others of the same name.

    Empty for a name that is the only one of its kind, and where nothing tells it apart.

    Examples
    --------
    >>> from ontogeny.inputs import Inputs
    >>> inputs = Inputs.from_tokens([[0, 2, 1, 2], [0, 2, 1, 2]])
    >>> values = np.zeros((8, 2))
    >>> values[1::4, 0], values[3::4, 1] = 1, 1
    >>> rows = Rows(inputs, inputs.sample())
    >>> beside(values, rows, ["comma", "comma"], [" a", " b", ","]).tolist()
    ['after a', 'after b']
    """
    neighbours = np.full(len(names), "", dtype=object)
    strength = squared(values)
    share = strength / np.maximum(strength.sum(axis=0), np.finfo(float).tiny)
    sides = [Kinds.of(rows.ids(offset)) for offset, *_ in _SIDES]
    carried = [kinds.sums(share) for kinds in sides]
    for name in {name for name in names if name and list(names).count(name) > 1}:
        group = np.flatnonzero(np.asarray(names, dtype=object) == name)
        for j in group:
            others = group[group != j]
            more = [sums[:, j] - sums[:, others].max(axis=1) for sums in carried]
            side = int(more[1].max() > more[0].max())
            if more[side].max() >= LEAST:
                _, word, edge = _SIDES[side]
                i = int(sides[side].values[more[side].argmax()])
                piece = pieces[i] if i < len(pieces) else str(i)
                neighbours[j] = (
                    edge if i == BEYOND else f"{word} {shown(in_words(piece))}"
                )
    return neighbours
