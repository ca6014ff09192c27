"""Predict the order of learning from a text, then change it by weights of the loss."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import linregress, pearsonr, rankdata
from scipy.stats import t as student

from ontogeny import semantics
from ontogeny.claims import Reason
from ontogeny.features.wordspace.support import WordStream

from .. import training
from ..recipe import Findings, Materials
from ..verdicts import LEVEL, Runs, Verdict
from .intervention_nodes import (
    ADVANCED,
    INVERTED,
    RANDOM,
    curves_node,
    effects_node,
    order_node,
)

_LENGTH = 16  # words of a crop
_HELDOUT = 0.05


@dataclass(frozen=True)
class InterventionSize:
    """Words, contexts, concepts predicted and advanced, the training, shuffled texts, seeds."""

    vocab_size: int = 200
    n_contexts: int = 600
    concepts: int = 20
    advanced: int = 3
    factor: float = 2.0
    steps: int = 500
    records: int = 80
    width: int = 64
    shuffles: int = 20
    seeds: tuple[int, ...] = (0, 1, 2)


@dataclass(frozen=True, eq=False)
class _Experiment:
    """A text, what is predicted for it, and how a model is trained on it."""

    order: semantics.PredictedOrder
    words: WordStream
    size: InterventionSize

    @property
    def rows(self) -> np.ndarray:
        """The text as rows of the support, negative for other words."""
        return training.rows_of(
            self.words.ids, self.order.support.word_ids, len(self.words.words)
        )

    def task(
        self, part: slice, weights: np.ndarray | None = None
    ) -> training.RunningTask:
        """Return the training on a part of the text."""
        support = self.order.support
        contexts = support.contexts.ids
        return training.RunningTask(
            self.rows[part], contexts, support.shape[0], weights, length=_LENGTH
        )

    def run(self, weights: semantics.ContextWeights | None, seed: int) -> xr.Dataset:
        """Return the learned shares along one training, and the loss on held-out text."""
        size = self.size
        cut = round(len(self.words) * (1 - _HELDOUT))
        weighted = None if weights is None else weights.at(self.words.ids)[:cut]
        words = self.order.support.shape[0]
        model = training.context_model(
            words + 1, _LENGTH, width=size.width, random_state=seed
        )
        data = training.record_logits(
            model,
            self.task(slice(cut), weighted),
            size.steps,
            at=training.spaced_steps(size.steps, size.records),
            measure=self._shares,
            random_state=seed,
        )
        loss = self.task(slice(cut, None)).text_loss(model)
        return data[["share"]].assign(loss=loss)

    def _shares(self, logits: np.ndarray) -> xr.Dataset:
        return xr.Dataset(
            {"share": (("corpus", "concept"), self.order.learned_shares(logits))}
        )


def measure_intervention(size: InterventionSize, materials: Materials) -> Findings:
    """Return the predicted and the measured order, and what weights of the loss change."""
    words = materials.words
    order = semantics.predicted_order(
        words,
        size.concepts,
        vocab_size=size.vocab_size,
        n_contexts=size.n_contexts,
        n_draws=size.shuffles,
    )
    experiment = _Experiment(order, words, size)
    plain = materials.of_seeds(
        "plain", "no weights", size.seeds, partial(experiment.run, None)
    )
    compared = semantics.compare_order(
        order,
        plain[0].step,
        np.stack([run.share.transpose("step", ...).values for run in plain]),
    )
    changed = {k: _changed(experiment, materials, k) for k in _concepts(order, size)}
    effects = _effects(plain, changed)
    numbers = (vars(compared), effects)
    nodes = {
        "order": order_node(order, compared),
        "intervention": curves_node(plain, changed),
    }
    nodes["effects"] = effects_node(effects)
    return Findings(nodes, numbers)


def judge_intervention(compared: dict[str, Any], effects: xr.Dataset) -> list[Verdict]:
    """Judge the predicted order (fields of an `OrderComparison`), and what weights change."""
    return [_of_order(semantics.OrderComparison(**compared)), *_of_effects(effects)]


def _concepts(order: semantics.PredictedOrder, size: InterventionSize) -> list[int]:
    """Return numbers of concepts, evenly spaced; the first, word frequency, is left out."""
    k = len(order.rates)
    return sorted({int(i) for i in np.linspace(2, (k + 2) // 2, size.advanced).round()})


def _changed(
    experiment: _Experiment, materials: Materials, concept: int
) -> dict[str, list[xr.Dataset]]:
    """Return the trainings with each kind of weights, seed by seed."""
    order = experiment.order
    size = experiment.size
    highest = semantics.factor_limits(order, concept)[1]
    factor = min(size.factor, 1 + 0.8 * (highest - 1))
    weights = semantics.context_weights(order, concept, factor)

    def weighted(name: str, seed: int) -> xr.Dataset:
        used = {ADVANCED: weights, INVERTED: weights.inverted()}.get(name)
        used = weights.permuted(seed) if used is None else used
        return experiment.run(used, seed).assign(ratio=used.chosen_ratio)

    return {
        name: materials.of_seeds(
            f"concept-{concept}-{name.replace(' ', '-')}",
            f"concept {concept}, {name}",
            size.seeds,
            partial(weighted, name),
        )
        for name in (ADVANCED, INVERTED, RANDOM)
    }


def octaves_gained(run: xr.Dataset, plain: xr.Dataset) -> np.ndarray:
    """Return by how many octaves of steps each concept is learned sooner in `run` (k,).

    The area between the two curves of the learned share, between 0 and 1, over log2(step). A curve
    that is the same but for half of the steps gains one octave; no threshold is needed.
    """
    log_step = np.log2(np.maximum(run.step.values, 1))
    shares = [
        data.share.isel(corpus=0).transpose("concept", "step").clip(0, 1).values
        for data in (run, plain)
    ]
    area: np.ndarray = np.trapezoid(shares[0] - shares[1], log_step, axis=1)
    return area


def _effects(
    plain: Runs, changed: dict[int, dict[str, list[xr.Dataset]]]
) -> xr.Dataset:
    """Return what each kind of weights does, over (concept, weights, seed)."""
    rows = []
    for concept, runs in changed.items():
        for of_kind in runs.values():
            for run, base in zip(of_kind, plain, strict=True):
                gained = octaves_gained(run, base)
                others = float(np.delete(gained, concept - 1).mean())
                cost = float(run.loss - base.loss)
                rows.append((gained[concept - 1], others, cost, float(run.ratio)))
    shape = (len(changed), 3, len(plain))
    columns = np.array(rows, dtype=float).T
    dims = ("concept", "weights", "seed")
    names = ("gained", "others", "cost", "ratio")
    return xr.Dataset(
        {
            name: (dims, column.reshape(shape))
            for name, column in zip(names, columns, strict=True)
        },
        coords={"concept": list(changed), "weights": [ADVANCED, INVERTED, RANDOM]},
    )


# ---- verdicts -----------------------------------------------------------------------------------


def _of_order(result: semantics.OrderComparison) -> Verdict:
    low, high = result.interval
    lower, upper = result.shuffled_interval
    return Verdict(
        "running text: concepts are learned in the order of the singular values of P diag(π)",
        bool(result.spearman > upper and result.p_value <= LEVEL) or None,
        f"rank correlation {result.spearman:.2f} ({low:.2f} to {high:.2f}), "
        f"{result.learned_at.shape[1]} concepts, {len(result.of_seed)} seeds",
        f"shuffled next words' concepts, 95 %: {lower:.2f} to {upper:.2f}; random orders "
        f"p = {result.p_value:.1g}",
        reason=Reason.WITHIN_CHANCE,
    )


def _of_effects(effects: xr.Dataset) -> list[Verdict]:
    advanced, inverted, random = (
        effects.sel(weights=kind) for kind in (ADVANCED, INVERTED, RANDOM)
    )
    beside = f"random weights of the same spread {_spread(random.gained)}"
    sooner, later = (effect.gained - random.gained for effect in (advanced, inverted))
    predicted, gained = (effects[name].values.ravel() for name in ("ratio", "gained"))
    rank = pearsonr(rankdata(predicted), rankdata(gained), alternative="greater")
    slope = float(linregress(np.log2(predicted), gained).slope)
    return [
        Verdict(
            "weights that should advance a concept do",
            _is_positive(sooner),
            f"{_spread(advanced.gained)} octaves of steps sooner, rate multiplied by "
            f"{_range(advanced.ratio)}; other concepts {_spread(advanced.others)}",
            f"{beside}; difference {_spread(sooner)}",
            of_paper=False,
        ),
        Verdict(
            "inverted weights delay it",
            _is_positive(-later),
            f"{_spread(inverted.gained)} octaves of steps sooner, rate multiplied by "
            f"{_range(inverted.ratio)}",
            f"{beside}; difference {_spread(later)}",
            reason=Reason.WITHIN_NOISE,
            of_paper=False,
        ),
        Verdict(
            "the more a rate should change, the more the concept moves",
            bool(rank.pvalue <= LEVEL) or None,
            f"rank correlation {rank.statistic:.2f} over {len(gained)} trainings, random weights "
            f"among them; {slope:.2f} octaves for each doubling of the rate",
            f"no relation p = {rank.pvalue:.1g}; free embeddings move by 1 octave",
            reason=Reason.WITHIN_CHANCE,  # a relation that is not seen may be there
            of_paper=False,
        ),
        Verdict(
            "advancing a concept costs no more held-out loss than random weights",
            _is_positive(random.cost - advanced.cost),
            f"{_spread(advanced.cost, 4)} nats more than without weights",
            f"random weights {_spread(random.cost, 4)}",
            reason=Reason.WITHIN_NOISE,
            of_paper=False,
        ),
    ]


def _mean_interval(values: xr.DataArray) -> tuple[float, float, float]:
    """Return mean and 95 % interval (Student's t) over pairs of a concept and a seed."""
    array = values.values.ravel()
    mean = float(array.mean())
    if len(array) < 2:
        return mean, -np.inf, np.inf
    width = float(
        student.ppf(0.975, len(array) - 1) * array.std(ddof=1) / np.sqrt(len(array))
    )
    return mean, mean - width, mean + width


def _is_positive(values: xr.DataArray) -> bool | None:
    """Return whether the mean is above 0 or below; None where its interval holds 0."""
    _, low, high = _mean_interval(values)
    return None if low <= 0 <= high else bool(low > 0)


def _spread(values: xr.DataArray, digits: int = 2) -> str:
    mean, low, high = _mean_interval(values)
    return f"{mean:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _range(values: xr.DataArray) -> str:
    low = f"{float(values.min()):.2f}"
    high = f"{float(values.max()):.2f}"
    return low if low == high else f"{low} to {high}"
