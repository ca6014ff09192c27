"""How much of planted features, and of their births, a method finds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ontogeny.errors import ArgumentError

FOUND = 0.7  # correlation of codes above which a planted feature is found


class Recovered(NamedTuple):
    """What a method found of planted lives.

    Parameters
    ----------
    found
        Share of the planted features with which a code correlates by 0.7 or more.
    recall
        Share of the planted births that were found and said to be where they are.
    said
        Number of births that the method says.
    exact
        Share of these that are at the planted checkpoint.
    steady, widening
        How many of them are of features that are steady, or that only fire on more tokens.
    """

    found: float
    recall: float
    said: int
    exact: float
    steady: int
    widening: int


def recovered(
    planted_codes: np.ndarray,
    planted_born: np.ndarray,
    kind: np.ndarray,
    codes: np.ndarray,
    born: np.ndarray,
) -> Recovered:
    """Return what codes (n, r) and births (r,) have of planted codes (n, f), births and kinds (f,).

    Births are indexes of checkpoints, -1 for none.
    """
    if codes.shape[0] != planted_codes.shape[0] or born.shape != codes.shape[1:]:
        raise ArgumentError(
            "codes must be (n, r) on the planted tokens and born (r,); got shapes "
            f"{codes.shape} and {born.shape}."
        )
    correlation = _standard(planted_codes).T @ _standard(codes)
    best = correlation.argmax(axis=1)
    found = correlation.max(axis=1) >= FOUND
    planted = planted_born >= 0
    said = np.flatnonzero(born >= 0)
    own = correlation[:, said].argmax(axis=0)
    return Recovered(
        found=float(found.mean()),
        recall=float(
            (planted & found & (born[best] == planted_born)).sum()
            / max(planted.sum(), 1)
        ),
        said=len(said),
        exact=float((planted_born[own] == born[said]).mean()) if len(said) else 1.0,
        steady=int((kind[own] == "steady").sum()),
        widening=int((kind[own] == "widening").sum()),
    )


def _standard(codes: np.ndarray) -> np.ndarray:
    """Return centred columns of unit length; constant ones become 0."""
    centred = codes - codes.mean(axis=0)
    length = np.linalg.norm(centred, axis=0)
    return centred / np.where(length > 0, length, 1.0) * (length > 0)
