"""Loss on fixed texts: the clock that every other curve is read against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr

from ...capture.predicted import next_tokens
from ...claims import Claim
from ...errors import check_number
from ...figures import Section
from ...inputs import Inputs
from ...needs import InputSet, Losses, Need
from ...observables.catalogued import PASS, PresetEntry
from ...observables.crossing import Crossing, crossing
from ...observables.known_texts import KnownTexts
from ...observables.of_predictions import OfPredictions
from ...observables.variables import dataset
from ...observables.word_frequencies import blind_guess, guesses
from ...quantities import Measured, Quantity
from ...trajectory.recorded import TRAINING, VALIDATION
from ...trees import Nodes
from ...words.names import Names
from . import renamed_words, trained_start
from .loss_claims import claims_of_loss
from .recorded import check_recorded, far_from_record, with_recorded

# What the loss is read against: ends of the variables' names, and what the figure calls them.
LINES = {
    "uniform": "uniform guess",
    "unigram": "{word} frequencies",
    "bigram": "bigrams",
    "own_unigram": "its own {word} frequencies",
    "own_bigram": "its own bigrams",
}

# Lines that are the same at every step.
_FIXED = ("uniform", "unigram", "bigram")

# What the loss gains by over a uniform guess, each beyond the one before it.
GAINS = {
    "frequencies": "how often {word}s occur",
    "before": "the {token} before",
    "context": "what else stands around a token",
}

_ENDS = {"": "", "_low": ", lower end", "_high": ", upper end"}


def _variables() -> Names:
    names = {**renamed_words.VARIABLES, **trained_start.VARIABLES}
    for line in list(LINES)[1:]:
        words = f"from which on the loss is below {LINES[line]}"
        names |= _of_step(f"loss_below_{line}", words)
    for gain, guess in GAINS.items():
        names |= _of_step(f"loss_half_{gain}", f"of half the gain by {guess}")
    return names


def _of_step(name: str, words: str) -> Names:
    """Return title and units of a step and of the ends of its interval."""
    return {
        f"{name}{end}": (f"{{checkpoint}} {words}{more}", "{step}s")
        for end, more in _ENDS.items()
    }


@dataclass(frozen=True)
class Loss(OfPredictions):
    """Mean loss on the study's texts, in nats per predicted token.

    Beside it stand what guesses cost on the same tokens: ``loss_uniform``, a uniform guess (the
    logarithm of the number of tokens that the model can give a probability), ``loss_unigram``, the
    frequencies of tokens, and for causal models ``loss_bigram``, each token's frequency after the
    one before it. Frequencies are those of all other texts of the set; a set of a single text has
    neither. ``loss_below_unigram`` and ``loss_below_bigram`` are the steps from which on the loss
    stays below them, with their interval over texts; NaN where it does not.

    ``loss_renamed`` is the loss with the words as they are, and on the same texts with all words
    consistently renamed. Where nothing was learned of these words, the gain since the first step is
    one of those; ``loss_p_learned`` is by how many it is reached.

    ``loss_calibrated`` is the loss at the model's best temperature, and ``loss_matched`` the cost
    of telling which word stands where, which no temperature and no preference of words moves. By
    both a run that begins trained is judged beside mirrored control runs: ``loss_p_lost`` and
    ``loss_p_learned``.

    Parameters
    ----------
    on
        Input set; the first by default.
    objective
        ``"auto"``, ``"causal"`` or ``"masked"``.
    mask_fraction, random_state
        Which tokens are masked, the same at every step.
    floor
        The best possible loss in nats per token, where it is known, as of a task that is made: a
        line like the others.
    recorded, recorded_of
        Losses that the run wrote down itself, as pairs of a step and nats per token, and of which
        texts they are: ``"validation"`` or ``"training"``. They are a dashed line, and where they
        are far from the measured loss, that is said.

    Examples
    --------
    >>> Loss().needs()[0].objective
    'auto'
    """

    mask_fraction: float = 0.15
    random_state: int = 0
    floor: float | None = None
    recorded: tuple[tuple[float, float], ...] = ()
    recorded_of: str = ""

    kind = "loss"
    choices = {"recorded_of": ("", VALIDATION, TRAINING)}
    summary_only = ("floor", "recorded", "recorded_of")
    question = "How well does the model predict these texts?"
    price = PASS
    presets = (
        PresetEntry(
            (
                "quick",
                "standard",
                "abilities",
                "weights",
                "circuits",
                "fine-tuning",
                "everything",
                "one-model",
            ),
            place=10,
        ),
    )
    compared = ("loss_calibrated", "loss_matched")
    role = "track"
    quantities = (
        Quantity(
            "loss",
            "loss on fixed texts",
            units="nats per {token}",
            rows="loss",
            better="lower",
            nulls={**LINES, "best": "best possible"},
            dashed={"recorded": "recorded by the run"},
            caption="Mean over predicted tokens; what guesses cost is of the same tokens.",
        ),
    )
    section = Section(
        title="Loss on fixed texts",
        definition="Mean negative log-probability of the right token at the predicted "
        "positions; the same texts, and of a masked model the same masks, at every {checkpoint}.",
        symbol="L(θₜ) = −mean log p(xᵢ | context; θₜ)",
        null="The same texts with all {word}s consistently renamed: where nothing was learned of "
        "them, the loss gains as much on renamed {word}s. A change counts where it exceeds 1.96 "
        "standard errors of the paired difference over texts.",
        care="Measured on the study's texts only, so its level depends on them. {Word} frequencies "
        "and bigrams are those of the other texts of the set, so that with few texts their lines "
        "lie higher than the training text's own frequencies would. Only a loss below that of the "
        "model's own {word} frequencies, the mean of its predictions, shows that it uses context.",
    )
    variables = _variables()

    def check(self) -> None:
        """Refuse a best loss below 0, and what is no pair of a step and a loss."""
        check_recorded(self.recorded)
        if self.floor is not None:
            check_number("floor", self.floor, 0)

    def needs(self) -> Sequence[Need]:
        """Return the losses of every text, and the texts."""
        losses = Losses(self.on, self.objective, self.mask_fraction, self.random_state)
        return [losses, InputSet(self.on)]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return the mean loss and that of every text, weighted by its predicted tokens."""
        losses, inputs = (reading[need] for need in self.needs())
        of_text = losses.loss.values.astype(np.float64)
        weights = losses.tokens.values
        counted = weights > 0
        of_text = np.where(counted, of_text, 0.0)
        units = reading.units(self.needs()[0])
        mean = Measured.over_texts(_mean(of_text, weights), of_text, weights, units)
        renamed = ("renaming", losses["renamed"].values.astype(np.float32))
        lines = self._lines(inputs, losses, units)
        return dataset(
            {"loss": mean, "loss_renamed": renamed, **lines, **_without(losses, units)}
        )

    def _lines(
        self, inputs: Inputs, losses: xr.Dataset, units: np.ndarray
    ) -> dict[str, Any]:
        """Return what guesses cost on the predicted tokens, over all and of every unit."""
        vocabulary = losses.attrs["vocabulary"]
        masked = losses.attrs["objective"] == "masked"
        variables: dict[str, Any] = {"loss_uniform": blind_guess(vocabulary)}
        if not inputs.has_several_units:
            return variables
        corruption = (self.mask_fraction, self.random_state) if masked else None
        weights = losses.tokens.values
        fixed = _guesses(KnownTexts.of(inputs), vocabulary, corruption)
        lines = [(line, losses[line].values) for line in LINES if line in losses]
        for line, of_text in [*fixed, *lines]:
            mean = Measured.over_texts(_mean(of_text, weights), of_text, weights, units)
            variables[f"loss_{line}"] = mean.value
            variables[f"loss_{line}_of_text"] = mean.of_text
        return variables

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Return the cells with each line once, and the steps at which the loss went below it."""
        fixed = [f"loss_{line}" for line in _FIXED]
        lines = [*fixed, *(f"{line}_of_text" for line in fixed)]
        constants = [
            name for name in lines if name in data and "step" in data[name].dims
        ]
        data = data.assign({name: _constant(data[name]) for name in constants})
        if self.floor is not None:
            data = data.assign(loss_best=self.floor)
        data = with_recorded(data, self.recorded, self.recorded_of)
        for line in list(LINES)[1:]:
            if f"loss_{line}_of_text" in data:
                costs = _of_text(data, f"loss_{line}")
                data = data.assign(
                    _crossed(data, f"loss_below_{line}", _of_text(data, "loss"), costs)
                )
        if "loss_renamed" in data:
            data = renamed_words.with_renamed_words(data)
        return (
            data.assign(_half_gains(data))
            if "loss_own_unigram_of_text" in data
            else data
        )

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return what the loss passes and gains from, if it rose again, if the run wrote another."""
        return [*claims_of_loss(name, data), *far_from_record(name, data)]


def _without(losses: xr.Dataset, units: np.ndarray) -> dict[str, Any]:
    """Return what the texts cost whatever the temperature, and whatever words are preferred."""
    weights = losses.tokens.values
    matched = losses["matched_tokens"].values
    of_text = np.where(weights > 0, losses["calibrated"].values, 0.0)
    calibrated = Measured.over_texts(_mean(of_text, weights), of_text, weights, units)
    of_text = losses["matched"].values
    told = Measured.over_texts(_mean(of_text, matched), of_text, matched, units)
    return {
        "loss_calibrated": calibrated.value,
        "loss_calibrated_of_text": calibrated.of_text,
        "loss_inverse_temperature": float(losses["inverse_temperature"]),
        "loss_matched": told.value,
        "loss_matched_of_text": told.of_text,
        "loss_matched_weights": told.weights,
        "loss_matched_blind": float(losses["matched_blind"]),
    }


@lru_cache(maxsize=4)
def _guesses(
    texts: KnownTexts, vocabulary: int, corruption: tuple[float, int] | None
) -> tuple[tuple[str, np.ndarray], ...]:
    """Return what guesses cost in each text: the same at every step, so they are made once.

    `corruption` is the share of masked tokens and its seed, None for the next token.
    """
    inputs = texts.inputs
    predicted = inputs.corrupt(*corruption)[1] if corruption else next_tokens(inputs)
    guessed = guesses(inputs, predicted, vocabulary, pairs=corruption is None)
    for of_text in guessed.values():
        of_text.flags.writeable = False
    return tuple(guessed.items())


def _mean(of_text: np.ndarray, weights: np.ndarray) -> float:
    counted = weights > 0
    return float(np.average(of_text[counted], weights=weights[counted]))


def _constant(values: xr.DataArray) -> xr.DataArray:
    """Return what is the same at all steps once, read where a step has it."""
    array = values.dropna("step", how="all")
    return (
        array.isel(step=0, drop=True)
        if array.sizes["step"]
        else values.isel(step=0, drop=True)
    )


def _half_gains(data: xr.Dataset) -> dict[str, float]:
    """Return the steps at which half of what each kind of knowledge gains was there for good.

    A gain is what one line costs less than the one above it. Its half-way point is that of the sum
    over texts, so that a resample of texts has its own end.
    """
    names = [
        name for name in ("own_unigram", "own_bigram") if f"loss_{name}_of_text" in data
    ]
    costs = [_of_text(data, f"loss_{name}") for name in names]
    lines = [data.loss_uniform.values, *costs, _of_text(data, "loss")]
    gains = [high - low for high, low in pairwise(lines)]
    kinds = list(GAINS) if len(gains) == len(GAINS) else ["frequencies", "context"]
    variables: dict[str, float] = {}
    for kind, gain in zip(kinds, gains, strict=True):
        measured = np.isfinite(gain).any(axis=1)
        if measured.any():
            last = gain[measured][-1]
            variables |= _crossed(data, f"loss_half_{kind}", -gain, -last / 2)
    return variables


def _of_text(data: xr.Dataset, name: str) -> np.ndarray:
    """Return what each text costs, over (step, text), or over texts alone."""
    return np.asarray(data[f"{name}_of_text"].transpose(..., "text").values)


def _crossed(
    data: xr.Dataset, name: str, losses: np.ndarray, line: np.ndarray
) -> dict[str, float]:
    """Return the step from which on some losses stay below a line, and its interval."""
    weights = data.loss_weights.transpose("step", "text").max("step").fillna(0.0)
    cross: Crossing = crossing(data.step.values, losses, line, weights.values)
    ends = {"": cross.step, "_low": cross.low, "_high": cross.high}
    return {f"{name}{e}": v if np.isfinite(v) else np.nan for e, v in ends.items()}
