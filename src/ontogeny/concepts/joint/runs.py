"""The runs of a joint dictionary: whose checkpoints they are, and what shared codes say of them."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ...errors import ArgumentError
from .lives import Lives, lives
from .presence import (
    BirthIntervals,
    Decoder,
    PartialDecoder,
    Presence,
    birth_intervals,
    widened,
)
from .readout import CheckpointReadout, Moments
from .snapshots import (
    Snapshots,
    chosen_rows,
    deviation,
    fitted_steps,
    fixed_half,
    standardised,
    text_blocks,
    training_steps,
)

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
    snapshots: Snapshots,
    tokens: Tokens,
    decoder: Decoder,
    others: Sequence[PartialDecoder] = (),
) -> Decoded:
    """Read all checkpoints once."""
    parts = []
    components = []
    offsets = []
    strengths: list[list[np.ndarray]] = [[] for _ in others]
    for _, values in snapshots.read(range(snapshots.count())):
        X, scale = tokens.standardised(values)
        parts.append(CheckpointReadout(Moments(X, tokens.half), decoder).presence)
        for other, strength in zip(others, strengths, strict=True):
            strength.append(other.strength(X))
        component, offset = tokens.in_units(
            values, scale, parts[-1].decoders[0], decoder.codes
        )
        components.append(component)
        offsets.append(offset)
    return Decoded(
        Presence.joined(parts),
        np.stack(components),
        np.stack(offsets),
        [np.stack(of_checkpoints) for of_checkpoints in strengths],
    )


STALE = 0.9  # of what is explained at the worst fitted checkpoint
ONLY = ""  # name of a run that was given without one


class StaleDictionaryWarning(UserWarning):
    """The shared codes explain much less of a new checkpoint than of those they were fitted on."""


def by_name(X: Any) -> dict[str, Snapshots]:
    """Return the checkpoints of each run; those of one without a name under `ONLY`."""
    if not isinstance(X, Mapping):
        return {ONLY: Snapshots(X)}
    if not X or not all(isinstance(name, str) and name.strip() for name in X):
        raise ArgumentError(
            "X must name at least one run, by a text that is not empty, such as "
            f'{{"seed 0": [...], "seed 1": [...]}}; got the names {list(X)}.'
        )
    return {name: Snapshots(source, f"X[{name!r}]") for name, source in X.items()}


def of_each(name: str, value: Any, runs: Sequence[str]) -> dict[str, Any]:
    """Return an argument for each run: by name, or None for all."""
    if list(runs) == [ONLY]:
        return {ONLY: value}
    if value is None:
        return dict.fromkeys(runs)
    if not isinstance(value, Mapping) or set(value) != set(runs):
        got = sorted(value) if isinstance(value, Mapping) else type(value).__name__
        raise ArgumentError(
            f"{name} must hold one value for each run, {list(runs)}; got {got}."
        )
    return {run: value[run] for run in runs}


@dataclass(eq=False)
class FittedRun:
    """One run of a joint dictionary.

    Parameters
    ----------
    steps
        (S,) training steps.
    fitted
        Indexes of the checkpoints that the codes are fitted on.
    tokens
        The tokens, with the width and scale of this run.
    """

    steps: np.ndarray
    fitted: np.ndarray
    tokens: Tokens
    presence: Presence = dataclasses.field(init=False)
    components: np.ndarray = dataclasses.field(init=False)
    offsets: np.ndarray = dataclasses.field(init=False)
    lives: Lives = dataclasses.field(init=False)
    births: BirthIntervals = dataclasses.field(init=False)

    @classmethod
    def opened(
        cls, name: str, snapshots: Snapshots, steps: Any, fit_steps: Any, tokens: Any
    ) -> FittedRun:
        """Return a run before the fit; `tokens` are made of its first checkpoint that is fitted."""
        count = snapshots.count()
        step_numbers = training_steps(
            steps, count, f"steps[{name!r}]" if name else "steps"
        )
        fitted = fitted_steps(fit_steps, count)
        _, first = next(snapshots.read(fitted[:1].tolist()))
        return cls(step_numbers, fitted, tokens(first))

    def read(
        self,
        snapshots: Snapshots,
        decoder: Decoder,
        others: Sequence[PartialDecoder],
        again: Sequence[np.ndarray],
    ) -> None:
        """Read all checkpoints once; `again` (r,) correlates codes with those of each other fit."""
        there = decoded(snapshots, self.tokens, decoder, others)
        self.presence, self.components, self.offsets = there[:3]
        self._again = list(zip(there.others, again, strict=True))

    def later(self, snapshots: Snapshots, decoder: Decoder) -> Decoded:
        """Return what codes say of further checkpoints; warn where that is little."""
        there = decoded(snapshots, self.tokens, decoder)
        explained = there.presence.explained
        least = self.presence.explained[self.fitted].min()
        if (explained < STALE * least).any():
            warnings.warn(
                f"the shared codes explain {explained.min():.2f} of the variance of a new "
                f"checkpoint, and at least {least:.2f} of those they were fitted on: it holds what "
                "they do not know. Fit again with it.",
                StaleDictionaryWarning,
                stacklevel=4,
            )
        return there

    def join(self, later: Decoded, steps: Any) -> None:
        """Join later checkpoints, as `later` returns them."""
        added = training_steps(steps, len(later.offsets))
        self.steps = training_steps([*self.steps.tolist(), *added.tolist()], None)
        self.components = np.concatenate([self.components, later.components])
        self.offsets = np.concatenate([self.offsets, later.offsets])
        self.presence = Presence.joined([self.presence, later.presence])

    def judge(self, readable: float, n_draws: int, seed: int) -> None:
        """Read off the lives, and how sure births are."""
        there = self.presence
        self.lives = lives(there.strength, there.readable, there.whitened, readable)
        births = birth_intervals(
            there, self.lives, n_draws, np.random.default_rng(seed)
        )
        for strength, again in self._again:
            # After `extend` other seeds have no strengths at the added checkpoints.
            if len(strength) == len(there.strength):
                births = widened(births, self.lives.born, strength, again)
        self.births = births
