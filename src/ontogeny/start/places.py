"""Where something can be learned at all: places to score, proposed by passes at three checkpoints.

Places are proposed where all texts have the same form, in which the loss at the last ones falls
while at others it stays at a blind guess or above. They are chosen on one half of the texts and
judged on the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.stats import t

from ..capture.predictor import Predictor
from ..errors import OntogenyError
from ..inputs import Inputs
from ..inputs.scoring import has_one_form
from ..observables import ModelFacts
from ..observables.registry import kinds
from ..trajectory import Trajectory
from .presets import Preset, filled_entry

LEVEL = 0.01  # of a fall of the loss, on each half of the texts
# Of a blind guess: what stays above it is not learned. A model that knows which tokens stand at a
# place, as 23 numbers of 24 tokens, costs .99 of it.
BLIND = 0.95
FALL = 0.1  # of a blind guess: early in training all places fall by less, some not yet
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
        costs, vocabulary = _costs(trajectory, few)
    except (OntogenyError, RuntimeError, IndexError):
        # What is wrong is said where it is studied.
        return None
    blind = float(np.log(vocabulary))
    first = np.random.default_rng(random_state).permutation(np.unique(few.groups))
    is_first = np.isin(few.groups, first[: len(first) // 2])
    for form in forms:  # of several separators the first one that the first half shows
        of_groups = form.means(costs)
        count = learned_end(of_groups[:, is_first], blind)
        if count:
            if not is_confirmed(of_groups[:, ~is_first], blind, count):
                return None
            return form.proposal(count)
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


def learned_end(costs: np.ndarray, blind: float) -> int:
    """Return at how many of the last places the loss falls, where it stays blind before them.

    Parameters
    ----------
    costs
        (3, texts, places) losses at the first, the middle and the last checkpoint.
    blind
        The loss of a blind guess.

    Returns
    -------
    int
        0 where there is no place that stays blind, or one after it does not fall.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> costs = 3.0 + 0.1 * rng.normal(size=(3, 50, 2))
    >>> costs[2, :, 1] -= 2.9
    >>> learned_end(costs, 3.0)
    1
    """
    blind_places = np.flatnonzero((costs.mean(axis=1) >= BLIND * blind).all(axis=0))
    if not len(blind_places):
        return 0
    last = int(blind_places[-1])
    count = costs.shape[2] - 1 - last
    fell = [
        _fell(costs[:, :, place], blind) for place in range(last + 1, costs.shape[2])
    ]
    return count if count and all(fell) else 0


def is_confirmed(costs: np.ndarray, blind: float, count: int) -> bool:
    """Return whether other texts show the same: the last `count` places fall, one before is blind.

    Examples
    --------
    >>> is_confirmed(np.full((3, 50, 2), 3.0), 3.0, 1)
    False
    """
    before = costs[:, :, -count - 1].mean(axis=1)
    return bool((before >= BLIND * blind).all()) and _fell(
        costs[:, :, -count:].mean(axis=2), blind
    )


def _fell(costs: np.ndarray, blind: float) -> bool:
    """Return whether losses (3, texts) surely fell, by enough, to surely below a blind guess."""
    if costs[2].mean() > costs[0].mean() - FALL * blind:
        return False
    return all(
        _surely_below(costs[2] - line)
        for line in (costs[0], np.full(costs.shape[1], blind))
    )


def _surely_below(values: np.ndarray) -> bool:
    error = values.std(ddof=1) / np.sqrt(len(values))
    mean = float(values.mean())
    if error == 0:
        return mean < 0
    return mean < 0 and bool(t.sf(-mean / error, len(values) - 1) <= LEVEL)


def _costs(trajectory: Trajectory, inputs: Inputs) -> tuple[np.ndarray, int]:
    """Return the loss of every token (3, texts, places), NaN where none is, and the vocabulary."""
    places = [0, len(trajectory) // 2, len(trajectory) - 1]
    costs = np.full((3, *inputs.ids.shape), np.nan)
    vocabulary = 0
    for row, place in enumerate(places):
        model = trajectory.checkpoints[place].model(dtype=torch.float32)
        read = Predictor(model, "causal").reduced(inputs, _loss)
        costs[row, read["text"], read["column"]] = read["loss"]
        vocabulary = int(read["vocabulary"][0])
    return costs, vocabulary


def _loss(
    text: np.ndarray, column: np.ndarray, target: torch.Tensor, log_p: torch.Tensor
) -> Any:
    loss = -log_p.gather(1, target[:, None])[:, 0]
    return {"loss": loss.double(), "vocabulary": np.full(len(text), log_p.shape[1])}


@dataclass(frozen=True, eq=False)
class _Ends:
    """Texts of one length: the last places of each."""

    size: int

    def means(self, costs: np.ndarray) -> np.ndarray:
        """Return the loss of each place after the first."""
        return costs[:, :, 1:]

    def proposal(self, count: int) -> ProposedPlaces:
        """Return the proposal to score the last places."""
        before = self.size - count
        first = "first" if before == 1 else f"first {before}"
        why = f"the {first} of {self.size} tokens cannot be predicted"
        last = "the last" if count == 1 else f"the last {count}"
        score = f"last:{count}"
        return ProposedPlaces(
            {"score": score}, f"--score {score}", f"{why}; the loss is of {last}"
        )


@dataclass(frozen=True, eq=False)
class _Separator:
    """Texts with one token that each holds once: what stands before it, and after it."""

    written: str | int
    after: np.ndarray

    def means(self, costs: np.ndarray) -> np.ndarray:
        """Return the mean loss of each text before and after the separator."""
        parts = [np.where(mask, costs, np.nan) for mask in (~self.after, self.after)]
        return np.stack([np.nanmean(part, axis=2) for part in parts], axis=2)

    def proposal(self, count: int) -> ProposedPlaces:
        """Return the proposal to score what stands after the separator."""
        why = f"what stands before {self.written!r} cannot be predicted; the loss is of what follows"
        return ProposedPlaces(
            {"answer_after": self.written}, f"--answer-after {self.written!r}", why
        )


def _forms(inputs: Inputs) -> Sequence[_Ends | _Separator]:
    """Return in which way the texts have the same form: by length, else by separators."""
    lengths = inputs.lengths
    if has_one_form(lengths) and lengths[0] > 2 and inputs.ordinary.all():
        return [_Ends(int(lengths[0]))]
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
