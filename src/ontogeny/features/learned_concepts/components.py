"""Independent components of activations, and which of them both halves of the texts find."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch

from ...scratch import let_go, scratch_array
from .dictionary import sparse_codes
from .parts import scaled

AGAIN = 0.7  # correlation of codes from which on two components are the same
RANK = 1e-5  # variance of a direction, against the largest, that is none
FIRST = 20_000  # tokens on which the rotation begins
ITERATIONS = 200
TOLERANCE = 1e-5
POLISH = 30  # iterations on all tokens


class Components(NamedTuple):
    """Components of one layer at one step.

    Attributes
    ----------
    codes
        (n, r) of variance 1, with their heavy side positive.
    halves
        (2, n, r): the nearest component of a fit to either half of the texts alone, signed alike.
    again
        (r,) correlation with the worse of them.
    """

    codes: np.ndarray
    halves: np.ndarray
    again: np.ndarray

    def kept(self, which: np.ndarray) -> Components:
        """Return some of the components."""
        return Components(
            self.codes[:, which], self.halves[:, :, which], self.again[which]
        )

    def in_files(self) -> Components:
        """Return the same with codes in files: memory lets go of what is not in use."""
        return Components(in_file(self.codes), in_file(self.halves), self.again)

    def let_go(self) -> None:
        """Take codes in files out of memory, until they are read again."""
        let_go(self.codes)
        let_go(self.halves)


def sharpness(codes: np.ndarray) -> np.ndarray:
    """Return the excess kurtosis (r,) of codes (n, r)."""
    squares = codes.astype(np.float64) ** 2
    size = squares.mean(axis=0)
    squares **= 2
    return np.asarray(squares.mean(axis=0) / size**2 - 3)


def components(
    X: np.ndarray, half: np.ndarray, count: int, seed: int, latents: int = 0
) -> Components:
    """Return components of rows X (n, m) by fits to all of them and to both halves.

    At most `count` independent ones, as far as the rank goes. Beyond these, where there are more
    `latents` than components: those of a sparse dictionary, begun from each fit's own components,
    that both halves find and no component is.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sources = rng.exponential(size=(4000, 3)) ** 2
    >>> found = components(
    ...     scaled(sources @ rng.normal(size=(3, 3))), np.arange(4000) < 2000, 3, 0
    ... )
    >>> bool(found.again.min() > 0.9)
    True
    """
    parts = (np.ones(len(X), dtype=bool), half, ~half)
    made = (_fitted(X, rows, count, seed) for rows in parts)
    if not latents:
        return _compared(made)
    fits = list(made)
    found = _compared(fits)
    if not found.again.size or latents <= max(codes.shape[1] for codes in fits):
        return found
    # Each with a seed of its own: of noise, fits that begin alike find 12 of 48 latents again.
    beyond = _compared(
        [
            sparse_codes(X, rows, codes, latents, 3 * seed + fit)
            for fit, (rows, codes) in enumerate(zip(parts, fits, strict=True))
        ]
    )
    beyond = beyond.kept(np.flatnonzero(beyond.again >= AGAIN))
    known = likeness(beyond.codes, found.codes[:, found.again >= AGAIN])
    alike = np.abs(correlations(beyond.codes, beyond.codes))
    new: list[int] = []
    for j in np.flatnonzero(known < AGAIN).tolist():
        if (alike[j, new] < AGAIN).all():
            new.append(j)
    pairs = zip(found, beyond.kept(np.array(new, dtype=int)), strict=True)
    return Components(*(np.concatenate(pair, axis=-1) for pair in pairs))


def _compared(fits: Iterable[np.ndarray]) -> Components:
    """Return the codes of the first fit, each beside its nearest of the others.

    Of fits that are made one by one, one is in memory beside what is returned.
    """
    others = iter(fits)
    codes = next(others)
    skew = np.einsum("nr,nr,nr->r", codes, codes, codes, dtype=np.float64)
    codes = codes * np.where(skew < 0, -1, 1).astype(np.float32)
    halves = scratch_array((2, *codes.shape), np.float32)
    again = np.full(codes.shape[1], np.inf)
    for half, other in zip(halves, others, strict=True):
        half[:], correlation = nearest(codes, other)
        let_go(halves)
        again = np.minimum(again, correlation)
    return Components(codes, halves, again)


def in_file(values: np.ndarray) -> np.ndarray:
    """Return numbers in a file, out of memory until they are read."""
    stored = scratch_array(values.shape, values.dtype)
    stored[:] = values
    let_go(stored)
    return stored


def correlations(codes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return (r, s) the correlations of codes (n, r) with others (n, s); 0 of what is constant."""
    return np.asarray(scaled(codes).T @ scaled(others) / len(codes))


def nearest(codes: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the column of `others` that each code correlates with most, signed; and how much."""
    if not others.shape[1]:
        return np.zeros_like(codes), np.zeros(codes.shape[1])
    correlation = correlations(codes, others)
    best = np.abs(correlation).argmax(axis=1)
    found = correlation[np.arange(len(best)), best]
    near = others[:, best]
    near *= np.where(found < 0, -1, 1).astype(np.float32)
    return near, np.abs(found)


def likeness(codes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return (r,) how much each code correlates with its nearest of `others`; 0 without any."""
    return np.abs(correlations(codes, others)).max(axis=1, initial=0.0)


def _fitted(X: np.ndarray, rows: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return codes (n, r) of all rows by a fit to some of them, `rows` (n,) bool."""
    from ...concepts.ica import decorrelate, rotate

    part = X[rows]
    mean = part.mean(axis=0)
    moment = (part.T @ part).astype(np.float64) / len(part) - np.outer(mean, mean)
    values, axes = np.linalg.eigh(moment)
    used = np.flatnonzero(values > RANK * max(float(values[-1]), 1e-30))[::-1][:count]
    if not len(used):
        return np.zeros((len(X), 0), dtype=np.float32)
    whiten = (axes[:, used] / np.sqrt(values[used])).astype(np.float32)
    Z = torch.from_numpy((part - mean) @ whiten)
    generator = torch.Generator().manual_seed(seed)
    start = decorrelate(
        torch.randn(len(used), len(used), generator=generator).double()
    ).float()
    some = torch.randperm(len(Z), generator=generator)[:FIRST]
    turn, _, _ = rotate(Z[some], start, "logcosh", ITERATIONS, TOLERANCE)
    if len(some) < len(Z):
        turn, _, _ = rotate(Z, turn, "logcosh", POLISH, TOLERANCE)
    return np.asarray((X - mean) @ (whiten @ turn.numpy().T), dtype=np.float32)
