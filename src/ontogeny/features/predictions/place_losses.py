"""The loss at every place of a text: where something can be learned at all, and where it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr

from ...claims import Claim
from ...errors import ArgumentError
from ...figures import Heatmap, Section
from ...inputs.scoring import has_one_form
from ...needs import InputSet, Need, Predictor
from ...needs.predictions import Reduced
from ...observables.catalogued import PASS, PresetEntry
from ...observables.known_texts import KnownTexts
from ...observables.of_predictions import OfPredictions
from ...observables.variables import dataset
from ...observables.word_frequencies import token_costs
from ...quantities import Measured, Quantity
from ...trees import Nodes
from ...units import Units
from .context_claims import claims_of_context
from .place_claims import claims_of_places
from .scored_tokens import TokenCosts


@dataclass(frozen=True)
class PlaceLosses(OfPredictions):
    """Mean loss and share of right first answers at each place of a text.

    Where all texts are of one length, 32 tokens at most, each place stands alone; else places are
    ranges in the context that double: 2, 3–4, 5–8 and so on. Place 1 is the first token, which
    nothing predicts.
    Beside it stands what the frequencies of tokens at that place, in all other texts, cost.

    Parameters
    ----------
    every
        Whether places that are not scored are shown as well. It takes a pass of its own.
    on
        Input set; the first by default.
    objective
        ``"auto"`` or ``"causal"``.

    Examples
    --------
    >>> PlaceLosses().name
    'place-losses'
    """

    every: bool = False

    kind = "place-losses"
    choices = {"objective": ("auto", "causal")}
    question = "At which places of a text does the model predict better?"
    price = PASS
    obstacles = ("no_prediction", "no_order")
    presets = (PresetEntry(("circuits", "everything"), place=12),)
    quantities = (
        Quantity(
            "place_loss",
            "loss at a place",
            units="nats per {token}",
            series="place",
            figure=False,
            nulls={"frequencies": "frequencies at that place"},
        ),
        Quantity(
            "place_accuracy", "share of right answers", series="place", figure=False
        ),
    )
    compared = ("place_loss",)
    variables = {
        "place_cost": ("loss of a text at a place", "nats per {token}"),
        "place_count": ("predicted tokens of a text at a place", ""),
        "place_scored": ("1 where predictions are judged", ""),
        "place_of_one_form": ("1 where all texts have the same places", ""),
        "place_of_whole_texts": ("1 where all tokens are scored", ""),
        "place_loss_uniform": ("loss of a uniform guess", "nats per {token}"),
    }
    section = Section(
        title="Loss by place",
        definition="Mean negative log-probability of the right token at each place of the texts, "
        "counted from 1.",
        null="What the frequencies of tokens cost at that place, counted in the other texts.",
        care="Late places have more context and other words than early ones: only the change over "
        "training at one place compares like with like.",
    )
    charts = (
        Heatmap(
            "place-loss",
            "Loss by place",
            value="place_loss",
            y="place",
            caption="Each row is a place in the texts, counted from their first token.",
        ),
    )

    def needs(self) -> Sequence[Need]:
        """Return what each token costs, or the model to be asked for it, and the texts."""
        if self.every:
            return [Predictor(self.on, self.objective), InputSet(self.on)]
        return [Reduced(TokenCosts(), self.on, self.objective), InputSet(self.on)]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return loss and accuracy at each place, and the loss of every text there."""
        asked, texts = self.needs()
        inputs = reading[texts]
        value = reading[asked]
        if self.every:
            inputs = replace(inputs, answers=None)
            costs = value.reduced(inputs, TokenCosts().reduction(inputs, False))
        else:
            costs = value
        scored = reading[texts].scored[costs["text"], costs["column"]]
        before = costs["column"] - inputs.mask.argmax(axis=1)[costs["text"]]
        if not before.all():
            raise ArgumentError(
                "place-losses compares tokens by how many stand before them; a masked model sees "
                "what follows as well, also of a first token."
            )
        one_form = has_one_form(inputs.lengths)
        place = before if one_form else np.floor(np.log2(before)).astype(int)
        kept, row = np.unique(place, return_inverse=True)
        units = Units(inputs.groups)
        unit = units.place[costs["text"]]
        shape = (len(kept), units.count)
        number = _table(row, unit, shape)
        sums = _table(row, unit, shape, costs["loss"])
        right = _table(row, unit, shape, costs["right"].astype(float))
        of_unit = np.divide(sums, number, out=np.zeros(shape), where=number > 0)
        vocabulary = int(costs["vocabulary"][0])
        where = (costs["text"].tobytes(), costs["column"].tobytes())
        frequencies = _frequencies(KnownTexts.of(inputs), vocabulary, one_form, *where)
        count = number.sum(axis=1)
        error = _error(of_unit, number)
        losses = Measured(
            ("place", sums.sum(axis=1) / count),
            stderr=("place", error) if np.isfinite(error).all() else None,
        )
        share = right.sum(axis=1) / count
        data = dataset({"place_loss": losses, "place_accuracy": ("place", share)})
        labels = [str(p + 1) if one_form else _range(p) for p in kept.tolist()]
        at_place = np.bincount(row, scored, len(kept)) > 0
        return data.assign(
            place_loss_frequencies=("place", np.bincount(row, frequencies) / count),
            place_cost=(("place", "text"), of_unit),
            place_count=(("place", "text"), number.astype(np.int32)),
            place_scored=("place", at_place.astype(np.int8)),
            place_of_one_form=np.int8(one_form),
            place_of_whole_texts=np.int8(reading[texts].answers is None),
            place_loss_uniform=float(np.log(vocabulary)),
        ).assign_coords(place=labels)

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Return the cells with what is the same at every step once."""
        fixed = (
            "place_loss_frequencies",
            "place_count",
            "place_scored",
            "place_of_one_form",
            "place_of_whole_texts",
        )
        names = [
            n
            for n in (*fixed, "place_loss_uniform")
            if "step" in data.get(n, data.step).dims
        ]
        if "place_loss" not in data:
            return data
        there = data.dropna("step", subset=["place_loss_uniform"])
        once = there.isel(step=0, drop=True)
        return data.assign({name: once[name] for name in names if name in data})

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return which places were surely learned, where others were not, or what context gives."""
        return [*claims_of_places(name, data), *claims_of_context(name, data)]


def _range(power: int) -> str:
    """Return the places of a range, which have 2^power to 2^(power + 1) - 1 tokens before them."""
    first = 2**power + 1
    last = 2 ** (power + 1)
    return str(first) if first == last else f"{first}–{last}"


def _table(
    row: np.ndarray,
    unit: np.ndarray,
    shape: tuple[int, int],
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Return sums of weights, or numbers, over (places, units)."""
    flat = np.bincount(row * shape[1] + unit, weights, shape[0] * shape[1])
    return flat.reshape(shape).astype(float)


def _error(of_unit: np.ndarray, number: np.ndarray) -> np.ndarray:
    """Return the standard error of the mean of each place over units (places,); NaN of one unit."""
    counted = number > 0
    total = number.sum(axis=1)
    units = counted.sum(axis=1)
    mean = (of_unit * number).sum(axis=1) / total
    spread = (((of_unit - mean[:, None]) * number) ** 2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(
            np.where(units > 1, np.sqrt(spread * units / (units - 1)) / total, np.nan)
        )


@lru_cache(maxsize=4)
def _frequencies(
    texts: KnownTexts, vocabulary: int, one_form: bool, text: bytes, column: bytes
) -> np.ndarray:
    """Return what each token costs by frequencies in other texts, at its place where all have it.

    It is the same at every step, so it is made once.
    """
    inputs = texts.inputs
    rows, columns = (np.frombuffer(part, np.int64) for part in (text, column))
    costs = np.full(len(rows), np.log(vocabulary))
    if len(np.unique(inputs.groups[inputs.ordinary.any(axis=1)])) < 2:
        return costs
    if not one_form:
        return token_costs(inputs, rows, columns, vocabulary)
    for place in np.unique(columns):
        here = columns == place
        # Texts stay whole, so that two of them with the same token here are still two.
        at_place = inputs.mask & (np.arange(inputs.ids.shape[1]) == place)
        only = replace(inputs, answers=at_place)
        costs[here] = token_costs(only, rows[here], columns[here], vocabulary)
    return costs
