"""Training texts beside held-out ones: what is memorised, what generalises, and what overfits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr

from ...capture.predicted import next_tokens
from ...claims import Claim
from ...errors import ArgumentError
from ...figures import Section
from ...inputs import Inputs
from ...needs import InputSet, Need
from ...needs.predictions import Reduced
from ...observables.catalogued import PASS
from ...observables.known_texts import KnownTexts
from ...observables.of_predictions import OfPredictions
from ...observables.variables import dataset
from ...observables.word_frequencies import guesses
from ...quantities import Measured, Quantity
from ...summary.noise import mean_stderr
from ...trees import Nodes
from ...units import Units
from ...words.names import Names
from .scored_tokens import TokenCosts
from .set_claims import claims_of_sets

SETS = ("training", "held-out")
# What is stored of each text of both sets; the last two are the same at every step.
_OF_TEXTS = {
    "cost": ("loss", "nats per {token}"),
    "right": ("share of right answers", "1"),
    "line": ("loss by word frequencies", "nats per {token}"),
    "count": ("number of predicted tokens", ""),
}
_ONCE = (
    "training_line",
    "training_count",
    "held_line",
    "held_count",
    "answers_scored",
    "set_loss_frequencies",
)


def _names_of_texts(name: str) -> Names:
    return {
        f"{name}_{part}": (f"{words} of each text of the {name} set", units)
        for part, (words, units) in _OF_TEXTS.items()
    }


@dataclass(frozen=True)
class TrainingTexts(OfPredictions):
    """Loss and share of right answers of training texts, beside those of held-out texts.

    Where only answers are scored, a text is right if all of its scored tokens are first answers;
    else the share is that of tokens. Of answers of several tokens both are given.

    Parameters
    ----------
    training
        Input set of training texts.
    on
        Input set of held-out texts; the first by default.
    objective
        ``"auto"``, ``"causal"`` or ``"masked"``.

    Examples
    --------
    >>> TrainingTexts("training").on is None
    True
    """

    training: str

    kind = "training-texts"
    question = "What is memorised, and what generalises?"
    requires = "two sets of texts, a vocabulary head"
    price = PASS
    quantities = (
        Quantity(
            "set_loss",
            "loss of training and held-out texts",
            units="nats per {token}",
            series="set",
            nulls={"frequencies": "word frequencies"},
        ),
        Quantity("set_accuracy", "share of right answers", series="set", minimum=0.0),
        Quantity(
            "token_accuracy",
            "share of right answer tokens",
            series="set",
            minimum=0.0,
            optional=True,
            caption="Of answers of several tokens, which are right as a whole or not at all above.",
        ),
        Quantity(
            "gap",
            "held-out loss minus training loss",
            units="nats per {token}",
            caption="Above 0 the training texts are predicted better than others.",
        ),
    )
    variables = {
        **_names_of_texts("training"),
        **_names_of_texts("held"),
        "answers_scored": ("1 where only answers are scored", ""),
    }
    section = Section(
        title="Training texts and held-out texts",
        definition="The loss and the share of right answers on texts of the training set, and on "
        "texts that the model was not trained on.",
        null="What the frequencies of tokens in the other texts of the same set cost.",
        care="The two sets are of the same kind only if they were divided at random. Noise is over "
        "the texts of each set.",
    )

    def check(self) -> None:
        """Refuse no set of training texts."""
        if not self.training.strip():
            raise ArgumentError(
                f"training must name the input set of training texts; got {self.training!r}."
            )

    def needs(self) -> Sequence[Need]:
        """Return what each token of both sets costs, and the texts of both."""
        names = (self.training, self.on)
        costs = [Reduced(TokenCosts(), name, self.objective) for name in names]
        return [*costs, *(InputSet(name) for name in names)]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return loss, accuracy and gap, and what each unit of texts says."""
        *costs, training, held = (reading[need] for need in self.needs())
        read = [_of_units(c, i) for c, i in zip(costs, (training, held), strict=True)]
        counts = [one["count"] for one in read]
        losses = _means([one["cost"] for one in read], counts)
        weights = counts
        if _answers(held):  # texts are right or wrong, and count alike
            weights = [np.ones(len(one["right"])) for one in read]
        measured = {
            "set_loss": _over_sets(losses),
            "set_accuracy": _over_sets(_means([one["right"] for one in read], weights)),
            "gap": _gap(losses),
        }
        if _answers(held) and _several_tokens(costs):
            tokens = [one["right_tokens"] for one in read]
            measured["token_accuracy"] = _over_sets(_means(tokens, counts))
        frequencies = [
            float(np.average(one["line"], weights=one["count"])) for one in read
        ]
        data = dataset(measured).assign(
            set_loss_frequencies=("set", frequencies),
            answers_scored=np.int8(_answers(held)),
        )
        for name, one in zip(("training", "held"), read, strict=True):
            for part in _OF_TEXTS:
                data[f"{name}_{part}"] = (f"{name}_text", one[part])
        return data.assign_coords(set=list(SETS))

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Return the cells with what is the same at every step once."""
        if "set_loss" not in data:
            return data
        names = [n for n in _ONCE if n in data and "step" in data[n].dims]
        once = data.dropna("step", subset=["gap"]).isel(step=0, drop=True)
        return data.assign({n: once[n] for n in names})

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return since when it has memorised, generalises and overfits."""
        return claims_of_sets(name, data)


def _answers(inputs: Inputs) -> bool:
    return inputs.answers is not None


def _of_units(costs: Mapping[str, np.ndarray], inputs: Inputs) -> dict[str, np.ndarray]:
    """Return loss, share of right answers, loss by frequencies, and tokens of each unit."""
    units = Units(inputs.groups)
    unit = units.place[costs["text"]]
    count = np.bincount(unit, minlength=units.count)
    asked = np.flatnonzero(count)
    cost = np.bincount(unit, costs["loss"], units.count)
    right = np.bincount(unit, costs["right"].astype(float), units.count)
    line = _line(KnownTexts.of(inputs), int(costs["vocabulary"][0]))
    line = np.bincount(unit, line[costs["text"]], units.count)
    tokens = right[asked] / count[asked]
    return {
        "cost": cost[asked] / count[asked],
        "right": _wholly_right(costs, units)[asked] if _answers(inputs) else tokens,
        "right_tokens": tokens,
        "line": line[asked] / count[asked],
        "count": count[asked],
    }


def _wholly_right(costs: Mapping[str, np.ndarray], units: Units) -> np.ndarray:
    """Return for each unit in which share of its texts all scored tokens are right."""
    texts, row = np.unique(costs["text"], return_inverse=True)
    wrong = np.bincount(row, ~costs["right"].astype(bool))
    unit = units.place[texts]
    number = np.bincount(unit, minlength=units.count)
    return np.asarray(
        np.bincount(unit, wrong == 0, units.count) / np.maximum(number, 1)
    )


def _several_tokens(costs: Sequence[Mapping[str, np.ndarray]]) -> bool:
    """Return whether some answer has several tokens."""
    return any(len(np.unique(one["text"])) < len(one["text"]) for one in costs)


def _means(
    values: Sequence[np.ndarray], weights: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted mean over the units of each set and its standard error, NaN of one unit."""
    pairs = list(zip(values, weights, strict=True))
    means = [float(np.average(of, weights=weight)) for of, weight in pairs]
    return np.array(means), np.array([float(mean_stderr(*pair)) for pair in pairs])


def _over_sets(of: tuple[np.ndarray, np.ndarray]) -> Measured:
    """Return means of both sets; without noise where that of one is unknown."""
    means, errors = of
    is_known = bool(np.isfinite(errors).all())
    return Measured(("set", means), stderr=("set", errors) if is_known else None)


def _gap(losses: tuple[np.ndarray, np.ndarray]) -> Measured:
    """Return the loss of held-out texts minus that of training texts."""
    means, errors = losses
    error = float(np.hypot(*errors))
    value = float(means[1] - means[0])
    return Measured(value, stderr=error if np.isfinite(error) else None)


@lru_cache(maxsize=4)
def _line(texts: KnownTexts, vocabulary: int) -> np.ndarray:
    """Return what each text costs by word frequencies (texts,); of a set of one a uniform guess."""
    inputs = texts.inputs
    if not inputs.has_several_units:
        return np.full(len(inputs), np.log(vocabulary))
    return guesses(inputs, next_tokens(inputs), vocabulary, pairs=False)["unigram"]
