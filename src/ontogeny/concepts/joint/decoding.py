"""Checkpoints read one at a time with shared codes: which tokens are used, and what is decoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ...errors import ArgumentError
from .presence import Decoder, PartialDecoder, Presence
from .readout import CheckpointReadout, Moments
from .snapshots import Snapshots, chosen_rows, deviation, fixed_half, standardised, text_blocks

BLOCKS = 200  # texts are resampled one by one up to this number, then in blocks


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of a fit, which are the same at every checkpoint.

    Attributes
    ----------
    shape
        Tokens and features of a checkpoint.
    rows
        (n,) rows that are used.
    half, block
        (n,) whether a token is of the first half of the texts; the block of texts it belongs to.
    common
        What every checkpoint is divided by: the standard deviation of the first one, or None for
        that of each.
    """

    shape: tuple[int, ...]
    rows: np.ndarray
    half: np.ndarray
    block: np.ndarray
    common: float | None

    @classmethod
    def chosen(
        cls,
        first: np.ndarray,
        groups: Any,
        max_tokens: int | None,
        scale: str,
        rng: np.random.Generator,
    ) -> Tokens:
        """Return the tokens of a fit whose first checkpoint is `first`, and halves of the texts."""
        texts = np.arange(len(first)) if groups is None else np.asarray(groups)
        if texts.shape != (len(first),):
            raise ArgumentError(
                f"groups must hold one text for each of the {len(first)} tokens; "
                f"its shape is {texts.shape}."
            )
        rows = chosen_rows(len(first), max_tokens, rng)
        half = fixed_half(texts[rows])
        block = text_blocks(texts[rows], BLOCKS, rng)
        common = None if scale == "step" else deviation(first, rows)
        return cls(first.shape, rows, half, block, common)

    def of_run(self, first: np.ndarray, name: str) -> Tokens:
        """Return the same tokens of another run; `name` is the run that they were chosen in."""
        if len(first) != self.shape[0]:
            raise ArgumentError(
                f"every run must have the same tokens; a checkpoint of {name!r} has "
                f"{self.shape[0]}, one of another run {len(first)}."
            )
        common = None if self.common is None else deviation(first, self.rows)
        return replace(self, shape=first.shape, common=common)

    @property
    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        """(n,) tokens of the one half of the texts, and of the other."""
        return self.half, ~self.half

    def standardised(self, values: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the tokens of a checkpoint, centred and scaled, (n, m) float32, and the scale."""
        if values.shape != self.shape:
            raise ArgumentError(
                "a checkpoint must have the tokens and features of the fit, "
                f"{self.shape}; its shape is {values.shape}."
            )
        return standardised(values, self.rows, self.common)

    def in_units(
        self, values: np.ndarray, scale: float, D: np.ndarray, codes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return decoders (r, m) and offset (m,) in the units of the activations."""
        component = D * np.float32(scale)
        mean = values[self.rows].mean(axis=0, dtype=np.float64)
        return component, mean - codes.mean(axis=0, dtype=np.float64) @ component


class Decoded(NamedTuple):
    """Concepts at S checkpoints, with decoders (S, r, m) and offsets (S, m) in their units.

    `others` are the strengths (S, r) that other decoders give, one array each.
    """

    presence: Presence
    components: np.ndarray
    offsets: np.ndarray
    others: list[np.ndarray]


def decoded(
    snapshots: Snapshots, tokens: Tokens, decoder: Decoder, others: Sequence[PartialDecoder] = ()
) -> Decoded:
    """Read all checkpoints once."""
    parts, components, offsets = [], [], []
    strengths: list[list[np.ndarray]] = [[] for _ in others]
    for _, values in snapshots.read(range(snapshots.count())):
        X, scale = tokens.standardised(values)
        parts.append(CheckpointReadout(Moments(X, tokens.half), decoder).presence)
        for other, strength in zip(others, strengths, strict=True):
            strength.append(other.strength(X))
        component, offset = tokens.in_units(values, scale, parts[-1].decoders[0], decoder.codes)
        components.append(component)
        offsets.append(offset)
    return Decoded(
        Presence.joined(parts),
        np.stack(components),
        np.stack(offsets),
        [np.stack(of_checkpoints) for of_checkpoints in strengths],
    )
