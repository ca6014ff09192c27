"""Where something can be learned at all: places to score, proposed by passes at three checkpoints.

Places are proposed where all texts have the same form, in which the model learns the last ones from
their texts, while at others it never knows more than which tokens stand there. They are chosen on
one half of the texts and judged on the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import OntogenyError
from ..inputs import Inputs
from ..inputs.scoring import has_one_form
from ..observables import ModelFacts
from ..observables.registry import kinds
from ..tails import t_above
from ..trajectory import Trajectory
from .place_trial import place_trial
from .presets import Preset, filled_entry

LEVEL = 0.01  # of a fall of the loss, on each half of the texts
# Of what the mean answer at a place costs: what stays above it is not learned from its text.
BLIND = 0.95
FALL = 0.1  # of the same: early in training all places fall by less, some not yet
OPEN = 0.5  # nats that it costs where there is something to know: less than between two tokens
_FEWEST = 20  # texts
_MOST_TEXTS = 200
_KIND = "place-losses"
_MOST_SEPARATORS = 8
_FEW_TOKENS = 32


@dataclass(frozen=True)
class ProposedPlaces:
    """Places that a study may score, and why.

    Attributes
    ----------
    table
        What says so in the table of inputs of a study file.
    option
        What says so on the command line.
    why
        What the trial passes showed.
    """

    table: dict[str, Any]
    option: str
    why: str

    @property
    def line(self) -> str:
        """What is said before a study starts."""
        return f"{self.why}: {self.option}"


def proposed_places(
    trajectory: Trajectory, inputs: Inputs, random_state: int = 0
) -> ProposedPlaces | None:
    """Return which places a study should score, None where the texts and losses show no such thing.

    Parameters
    ----------
    trajectory
        The checkpoints; of the first, the middle and the last one the losses are taken.
    inputs
        The texts, all tokens of which are scored. A causal model is asked.
    random_state
        Seed of the halves.
    """
    if inputs.answers is not None:  # what is scored is known, as of conversations
        return None
    few = inputs.subset(np.arange(min(len(inputs), _MOST_TEXTS))).padded("right")
    forms = _forms(few)
    is_here = all(checkpoint.is_downloaded for checkpoint in trajectory)
    if len(few) < _FEWEST or len(trajectory) < 2 or not forms or not is_here:
        return None
    try:
        costs, guesses = place_trial(trajectory, few, [form.classes for form in forms])
    except (OntogenyError, RuntimeError, IndexError):
        # What is wrong is said where it is studied.
        return None
    first = np.random.default_rng(random_state).permutation(np.unique(few.groups))
    is_first = np.isin(few.groups, first[: len(first) // 2])
    # Of several separators the first one that the first half shows.
    for form, guess in zip(forms, guesses, strict=True):
        of_groups = np.stack([form.means(values) for values in (costs, guess)])
        chosen = learned_end(*of_groups[:, :, is_first])
        if chosen.learned:
            lost, guessed = of_groups[:, :, ~is_first]
            is_right = is_confirmed(lost, guessed, chosen)
            return form.proposal(chosen) if is_right else None
    return None


def of_places(
    content: Mapping[str, Any], inputs: Inputs, preset: Preset, model: ModelFacts
) -> list[dict[str, Any]]:
    """Return the loss by place for texts that have the same places, or of which some are scored.

    So it does for long texts of a few kinds of tokens, such as Markov chains, where what is learned
    in context shows. Nothing where the preset has it, or the model predicts no next token.
    """
    has_it = any(entry["kind"] == _KIND for entry in content["observables"])
    is_scored = inputs.answers is not None
    is_told = is_scored or has_one_form(inputs.lengths) or _has_few_tokens(inputs)
    if has_it or not is_told:
        return []
    cls = kinds()[_KIND]
    if model.objective != "causal" or cls.ruled_out(model, cls.fewest_steps):
        return []
    every = {"every": True} if is_scored else {}
    return [{"kind": _KIND, **filled_entry(cls, preset, model), **every}]


def _has_few_tokens(inputs: Inputs) -> bool:
    """Return whether texts are of one length, and of so few kinds of tokens as a made task."""
    is_even = bool((inputs.lengths == inputs.lengths[0]).all())
    return is_even and len(np.unique(inputs.ids[inputs.ordinary])) <= _FEW_TOKENS


@dataclass(frozen=True)
class LearnedEnd:
    """How many of the last places are learned, where some before them are not.

    Attributes
    ----------
    learned
        Number of last places; 0 where none stand out.
    blind
        Places before them that are not learned.
    """

    learned: int = 0
    blind: tuple[int, ...] = ()


def learned_end(costs: np.ndarray, guesses: np.ndarray) -> LearnedEnd:
    """Return which of the last places are learned after one that is not.

    Places where little is to be known, as of a separator, count neither way.

    Parameters
    ----------
    costs
        (3, texts, places) losses at the first, the middle and the last checkpoint.
    guesses
        (3, texts, places) what the mean answer of the model costs there.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> costs = 3.0 + 0.1 * rng.normal(size=(3, 50, 2))
    >>> costs[2, :, 1] -= 2.9
    >>> learned_end(costs, np.full((3, 50, 2), 3.0))
    LearnedEnd(learned=1, blind=(0,))
    """
    size = costs.shape[2]
    is_open = guesses[2].mean(axis=0) >= OPEN
    blind = np.flatnonzero(is_open & _is_blind(costs, guesses).all(axis=0))
    if not len(blind):
        return LearnedEnd()
    after = [p for p in range(blind[-1] + 1, size) if is_open[p]]
    if not after or not all(_fell(costs[:, :, p], guesses[:, :, p]) for p in after):
        return LearnedEnd()
    return LearnedEnd(size - after[0], tuple(blind.tolist()))


def is_confirmed(costs: np.ndarray, guesses: np.ndarray, chosen: LearnedEnd) -> bool:
    """Return whether other texts show the same: the last places fall, and the one before is blind.

    Examples
    --------
    >>> flat = np.full((3, 50, 2), 3.0)
    >>> is_confirmed(flat, flat, LearnedEnd(1, (0,)))
    False
    """
    before = chosen.blind[-1]
    last = slice(costs.shape[2] - chosen.learned, None)
    return bool(_is_blind(costs, guesses)[:, before].all()) and _fell(
        costs[:, :, last].mean(axis=2), guesses[:, :, last].mean(axis=2)
    )


def _is_blind(costs: np.ndarray, guesses: np.ndarray) -> np.ndarray:
    """Return at which checkpoints and places the texts help next to nothing."""
    return np.asarray(costs.mean(axis=1) >= BLIND * guesses.mean(axis=1))


def _fell(costs: np.ndarray, guesses: np.ndarray) -> bool:
    """Return whether losses (3, texts) surely fell, by enough, to surely below guesses."""
    least = FALL * guesses.mean(axis=1)
    means = costs.mean(axis=1)
    if means[2] > means[0] - least[0] or means[2] > guesses[2].mean() - least[2]:
        return False
    return all(_surely_below(costs[2] - line) for line in (costs[0], guesses[2]))


def _surely_below(values: np.ndarray) -> bool:
    error = values.std(ddof=1) / np.sqrt(len(values))
    mean = float(values.mean())
    if error == 0:
        return mean < 0
    return mean < 0 and bool(t_above(-mean / error, len(values) - 1) <= LEVEL)


@dataclass(frozen=True, eq=False)
class _Ends:
    """Texts of one length: the last places of each."""

    shape: tuple[int, int]

    @property
    def classes(self) -> np.ndarray:
        """The places."""
        return np.broadcast_to(np.arange(self.shape[1]), self.shape)

    def means(self, costs: np.ndarray) -> np.ndarray:
        """Return the loss of each place after the first."""
        return costs[:, :, 1:]

    def proposal(self, chosen: LearnedEnd) -> ProposedPlaces:
        """Return the proposal to score the last places."""
        size = self.shape[1]
        count = chosen.learned
        before = size - count
        blind = len(chosen.blind) + 1  # with the first token
        first = "first" if before == 1 else f"first {before}"
        which = f"the {first}" if blind == before else f"{blind} of the {first}"
        last = "the last" if count == 1 else f"the last {count}"
        score = f"last:{count}"
        return ProposedPlaces(
            {"score": score},
            f"--score {score}",
            f"{which} of {size} tokens cannot be predicted; the loss is of {last}",
        )


@dataclass(frozen=True, eq=False)
class _Separator:
    """Texts with one token that each holds once: what stands before it, and after it."""

    written: str | int
    after: np.ndarray

    @property
    def classes(self) -> np.ndarray:
        """What stands before the separator, and after it."""
        return self.after.astype(int)

    def means(self, costs: np.ndarray) -> np.ndarray:
        """Return the mean loss of each text before and after the separator."""
        parts = [np.where(mask, costs, np.nan) for mask in (~self.after, self.after)]
        return np.stack([np.nanmean(part, axis=2) for part in parts], axis=2)

    def proposal(self, chosen: LearnedEnd) -> ProposedPlaces:
        """Return the proposal to score what stands after the separator."""
        why = f"what stands before {self.written!r} cannot be predicted; the loss is of what follows"
        return ProposedPlaces(
            {"answer_after": self.written}, f"--answer-after {self.written!r}", why
        )


def _forms(inputs: Inputs) -> Sequence[_Ends | _Separator]:
    """Return in which way the texts have the same form: by length, else by separators."""
    lengths = inputs.lengths
    if has_one_form(lengths) and lengths[0] > 2 and inputs.ordinary.all():
        return [_Ends((len(lengths), int(lengths[0])))]
    return _separators(inputs)[:_MOST_SEPARATORS]


def _separators(inputs: Inputs) -> list[_Separator]:
    """Return the tokens that every text holds once, with predicted tokens before and after it."""
    found = []
    for token in np.unique(inputs.ids[0][inputs.ordinary[0]]):
        here = (inputs.ids == token) & inputs.ordinary
        if (here.sum(axis=1) != 1).any():
            continue
        place = here.argmax(axis=1)
        columns = np.arange(inputs.ids.shape[1])
        after = columns > place[:, None]
        before = (columns < place[:, None]) & (columns > 0)
        has_both = [
            (part & inputs.ordinary).any(axis=1).all() for part in (before, after)
        ]
        if all(has_both):
            word = (inputs.word(0, int(place[0])) or "").strip()
            found.append(_Separator(word or int(token), after))
    return found
