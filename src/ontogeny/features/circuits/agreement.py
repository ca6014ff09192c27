"""How far a model's predictions are from those of n-gram models of a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from ...claims import Claim, Subject, measurement
from ...errors import ArgumentError
from ...figures import Section
from ...inputs import Inputs
from ...needs import InputSet, Need
from ...observables.arguments import check_wholes
from ...observables.catalogued import DISTRIBUTIONS, PresetEntry
from ...observables.known_texts import KnownTexts
from ...observables.of_predictions import OfPredictions
from ...observables.variables import dataset
from ...quantities import Measured, Quantity
from ...trees import Nodes
from .ngrams import LARGEST_ORDER, NGrams

_WORDS = {1: "unigrams", 2: "bigrams", 3: "trigrams", 4: "4-grams"}
_NUMBERS_AT_ONCE = 2**22  # of whole distributions in float64: six of 32 MB
_RESAMPLES = 200


@dataclass(frozen=True)
class NgramAgreement(OfPredictions):
    """Divergence of a model's predictions from n-gram models of given texts.

    D(model ‖ n-gram) in nats, mean over predicted tokens: 0 where the model predicts what the
    n-gram model does. Models come close to unigrams first, then to bigrams, and leave them as they
    use more context. The n-grams are interpolated with shorter ones (see
    `ontogeny.features.circuits.NGrams`); their smoothing is stored in ``smoothing``.

    Parameters
    ----------
    counted
        Input set whose n-grams are counted, such as the training text; by default the texts
        themselves, each compared with the counts of all others.
    orders
        Which n, from 1 to 4. For a masked model only 1.
    on
        Input set whose tokens are predicted; the first by default.
    objective
        ``"auto"``, ``"causal"`` or ``"masked"``.
    random_state
        Seed of the null, and of which tokens are masked.

    Notes
    -----
    N. Belrose et al. 2024, "Neural networks learn statistics of increasing complexity".

    Examples
    --------
    >>> NgramAgreement(orders=(1, 2)).name
    'ngram-agreement'
    """

    counted: str | None = None
    orders: tuple[int, ...] = (1, 2, 3)
    random_state: int = 0

    kind = "ngram-agreement"
    question = (
        "When does the model predict what word frequencies, bigrams and trigrams do?"
    )
    price = DISTRIBUTIONS
    obstacles = ("no_prediction", "no_order")
    presets = (PresetEntry(("circuits", "everything"), place=260),)
    quantities = (
        Quantity(
            "divergence",
            "divergence of the model from n-grams",
            units="nats per {token}",
            symbol="D(p ‖ qₙ) = Σ p log(p / qₙ)",
            rows="distance to {ngram}",
            series="ngram",
            minimum=0.0,
            nulls={"uniform": "a uniform guess", "other": "n-grams of other places"},
        ),
        Quantity(
            "reverse_divergence",
            "divergence of n-grams from the model",
            units="nats per {token}",
            symbol="D(qₙ ‖ p)",
            series="ngram",
            minimum=0.0,
            caption="What it costs to predict samples of the n-gram model with the model, beyond "
            "what they cost at least.",
        ),
    )
    variables = {
        "smoothing": (
            "counts added (unigrams), or weight of the shorter n-gram in counts",
            "1",
        ),
        "closest_step": ("{checkpoint} of the smallest divergence", "{step}s"),
        "closest_step_low": (
            "{checkpoint} of the smallest divergence, lower end",
            "{step}s",
        ),
        "closest_step_high": (
            "{checkpoint} of the smallest divergence, upper end",
            "{step}s",
        ),
    }
    section = Section(
        title="Agreement with n-grams",
        definition="Kullback-Leibler divergence of the model's prediction from that of n-gram "
        "models of a text, mean over predicted tokens.",
        null="A uniform guess in place of the model; and the model's predictions beside the n-gram "
        "predictions of other, randomly chosen places.",
        care="n-gram models of few texts are poor: their own error is in the divergence and not in "
        "its interval, which is over the texts that are predicted.",
        source="Belrose et al. 2024; smoothing: MacKay & Peto 1995",
    )

    def check(self) -> None:
        """Refuse orders that there are not."""
        check_wholes("orders", self.orders, minimum=1, fewest=1)
        if max(self.orders) > LARGEST_ORDER:
            raise ArgumentError(
                f"orders must be at most {LARGEST_ORDER}; got {self.orders}."
            )

    def needs(self) -> Sequence[Need]:
        """Return the model to be asked, the texts, and those that are counted."""
        counted = self.on if self.counted is None else self.counted
        return [*super().needs(), InputSet(counted)]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return the divergences by n."""
        model, inputs, counted = (reading[need] for need in self.needs())
        if model.masked and max(self.orders) > 1:
            raise ArgumentError(
                f"orders must be (1,) for a masked model, which sees both sides of a token, while "
                f"n-grams see those before it; got {self.orders}."
            )
        models = _models(
            KnownTexts.of(counted), model.vocabulary(inputs), max(self.orders)
        )
        rng = np.random.default_rng([self.random_state, 13])
        other = rng.permutation(np.argwhere(inputs.scored))
        compare = Comparison(models, inputs, self.orders, other)
        sums = model.reduced(inputs, compare, self.random_state)
        nulls = {
            null: ("ngram", [float(sums[f"{null}_{n}"].mean()) for n in self.orders])
            for null in ("uniform", "other")
        }
        cell: dict[str, Any] = {
            "smoothing": ("ngram", models.smoothing[np.array(self.orders) - 1])
        }
        for name, lines in (("divergence", nulls), ("reverse_divergence", {})):
            table = np.stack([sums[f"{name}_{n}"] for n in self.orders])
            cell[name] = Measured.over_tokens(
                "ngram", table, sums["text"], inputs.groups, lines
            )
        return dataset(cell).assign_coords(ngram=[_WORDS[n] for n in self.orders])

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Return the cells with the step at which each n-gram model is closest."""
        if "divergence_of_text" not in data:
            return data
        of_text = data.divergence_of_text.dropna("step", how="all")
        weights = data.divergence_weights.max("step").fillna(0.0)
        closest = closest_steps(
            of_text.transpose("step", "ngram", "text"), weights.values
        )
        smoothing = data.smoothing.dropna("step", how="all").isel(step=0, drop=True)
        ends = {name: ("ngram", step) for name, step in closest.items()}
        return data.assign({"smoothing": smoothing, **ends})

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return when the model was closest to each n-gram model."""
        if "closest_step" not in data or "run" in data.closest_step.dims:
            return []
        return [_closest(name, data.sel(ngram=label)) for label in data.ngram.values]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Divergences between predictions of a model and of n-gram models, token by token.

    Parameters
    ----------
    models
        The n-gram models.
    inputs
        The texts that are predicted.
    orders
        Which n.
    other
        (places, 2) text and column of places that are taken in turn for the null.
    """

    models: NGrams
    inputs: Inputs
    orders: Sequence[int]
    other: np.ndarray

    def __call__(
        self, text: np.ndarray, column: np.ndarray, target: Tensor, log_p: Tensor
    ) -> dict[str, np.ndarray]:
        """Return the divergences of some tokens by name, (e,) each."""
        size = max(1, _NUMBERS_AT_ONCE // self.models.vocabulary)
        pieces = [
            self._of(text[i : i + size], column[i : i + size], log_p[i : i + size])
            for i in range(0, len(text), size)
        ]
        return {
            name: np.concatenate([piece[name] for piece in pieces])
            for name in pieces[0]
        }

    def _of(
        self, text: np.ndarray, column: np.ndarray, log_p: Tensor
    ) -> dict[str, np.ndarray]:
        p = log_p.exp()
        place = self.other[(text * self.inputs.ids.shape[1] + column) % len(self.other)]
        here = self.models.distributions(self.inputs, text, column)
        there = self.models.distributions(self.inputs, place[:, 0], place[:, 1])
        sums = {}
        for n in self.orders:
            q, log_q = _on(here[n - 1], log_p)
            _, log_other = _on(there[n - 1], log_p)
            sums[f"divergence_{n}"] = _divergence(p, log_p, log_q)
            sums[f"reverse_divergence_{n}"] = _divergence(q, log_q, log_p)
            sums[f"other_{n}"] = _divergence(p, log_p, log_other)
            sums[f"uniform_{n}"] = -log_q.mean(dim=1) - np.log(log_q.shape[1])
        return {name: values.double().cpu().numpy() for name, values in sums.items()}


def _on(q: np.ndarray, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return a distribution and its logarithm as tensors like another."""
    distribution = torch.from_numpy(q)
    return distribution.to(like), distribution.log().to(like)


def _divergence(p: Tensor, log_p: Tensor, log_q: Tensor) -> Tensor:
    # A probability that is rounded to 0 counts for nothing.
    return torch.where(p > 0, p * (log_p - log_q), torch.zeros_like(p)).sum(dim=1)


def closest_steps(of_text: xr.DataArray, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Return the step of the smallest mean over texts, and its 95 % interval over resampled texts.

    Parameters
    ----------
    of_text
        (step, ngram, text).
    weights
        (text,).

    Examples
    --------
    >>> values = xr.DataArray(
    ...     np.array([3.0, 1.0, 2.0])[:, None, None] * np.ones((3, 1, 4)),
    ...     dims=("step", "ngram", "text"),
    ...     coords={"step": [0, 5, 9]},
    ... )
    >>> {
    ...     name: float(step[0])
    ...     for name, step in closest_steps(values, np.ones(4)).items()
    ... }
    {'closest_step': 5.0, 'closest_step_low': 5.0, 'closest_step_high': 5.0}
    """
    steps = of_text.step.values
    values = np.nan_to_num(of_text.values)
    rng = np.random.default_rng(0)
    times = rng.multinomial(
        len(weights), np.full(len(weights), 1 / len(weights)), _RESAMPLES
    )
    closest = steps[np.einsum("snt,rt->rsn", values, times * weights).argmin(axis=1)]
    low, high = np.quantile(closest, [0.025, 0.975], axis=0, method="nearest")
    step = steps[(values @ weights).argmin(axis=0)]
    ends = {"closest_step": step, "closest_step_low": low, "closest_step_high": high}
    return {name: quantiles.astype(np.float64) for name, quantiles in ends.items()}


def _closest(name: str, data: xr.Dataset) -> Claim:
    return measurement(
        Subject(name, "closest_step", label=str(data.ngram.item())),
        float(data.divergence.min()),
        units="nats",
        since=float(data.closest_step),
        since_low=float(data.closest_step_low),
        since_high=float(data.closest_step_high),
        evidence=(f"{name}/divergence", f"{name}/closest_step"),
    )


@lru_cache(maxsize=4)
def _models(texts: KnownTexts, vocabulary: int, order: int) -> NGrams:
    """Return n-gram models of texts: the same at every step, so they are made once."""
    return NGrams.of(texts.inputs, vocabulary, order)
