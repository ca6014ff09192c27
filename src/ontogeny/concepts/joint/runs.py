"""The runs of a joint dictionary: whose checkpoints they are, and what shared codes say of them."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import ArgumentError
from .decoding import Decoded, Tokens, decoded
from .intervals import BirthIntervals, birth_intervals, widened
from .lives import Lives, lives
from .presence import Decoder, PartialDecoder, Presence
from .snapshots import Snapshots, fitted_steps, training_steps

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
        raise ArgumentError(f"{name} must hold one value for each run, {list(runs)}; got {got}.")
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
        step_numbers = training_steps(steps, count, f"steps[{name!r}]" if name else "steps")
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
        explained, least = there.presence.explained, self.presence.explained[self.fitted].min()
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
        births = birth_intervals(there, self.lives, n_draws, np.random.default_rng(seed))
        for strength, again in self._again:
            # After `extend` other seeds have no strengths at the added checkpoints.
            if len(strength) == len(there.strength):
                births = widened(births, self.lives.born, strength, again)
        self.births = births
