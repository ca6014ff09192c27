"""One dictionary over the views of a layer: which runs have each concept, born when, named what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr
from scipy.stats import rankdata

from ...atlas.words import visible
from ...concepts import JointDictionary, concept_changes
from ...concepts.joint.snapshots import fitted_steps
from ...inputs.pieces import pieces_of, pieces_of_texts
from ...needs import InputSet
from .views import LayerViews, RunViews

FEWEST = 5  # concepts that were born in all runs, below which their order says nothing
DRAWS = 2000  # orders of births that are drawn by chance
START = -1.0  # in place of a birth: there from the start


@dataclass(frozen=True, eq=False)
class LayerConcepts:
    """The shared concepts of one layer.

    Attributes
    ----------
    present
        (runs, c) which run has which concept; of concepts that both halves of the texts find.
    birth, low, high
        (runs, c) training step of the birth with its interval; NaN where it was not born, -1 where
        the run has it from its start.
    life
        By run (steps, c): strength as a share of its peak in that run, and (steps,) the steps.
    label
        (c,) name, or the tokens that carry most of the code.
    chance
        How many concepts several runs share where their tokens are in other orders.
    change
        (c,) by ``kind``, ``ratio``, ``ratio_low``, ``ratio_high`` and ``cosine``: what the second
        run made of the concepts of the first; None unless it was trained from it.
    """

    present: np.ndarray
    birth: np.ndarray
    low: np.ndarray
    high: np.ndarray
    life: dict[str, tuple[np.ndarray, np.ndarray]]
    label: list[str]
    chance: float = np.nan
    change: dict[str, np.ndarray] | None = None

    @property
    def everywhere(self) -> np.ndarray:
        """(c,) whether all runs have a concept."""
        return np.asarray(self.present.all(axis=0))

    @property
    def from_start(self) -> np.ndarray:
        """(c,) whether all runs have a concept from their first checkpoint on."""
        return np.asarray((self.birth == START).all(axis=0))

    @property
    def born_everywhere(self) -> np.ndarray:
        """(c,) whether it is in all runs, and was born in each of them."""
        return np.asarray(self.everywhere & (self.birth >= 0).all(axis=0))

    @property
    def together(self) -> np.ndarray:
        """(c,) whether the intervals of its births in all runs meet."""
        meet = np.nanmax(self.low, axis=0, initial=-np.inf) < np.nanmin(
            self.high, axis=0, initial=np.inf
        )
        return np.asarray(self.born_everywhere & meet)

    def order(self) -> tuple[float, float]:
        """Return how alike runs order the births of what was born in all of them, and a p-value."""
        return order_agreement(self.birth[:, self.born_everywhere])


def order_agreement(births: np.ndarray, random_state: int = 0) -> tuple[float, float]:
    """Return the mean rank correlation of births (runs, c) between runs, with a p-value.

    Chance: the births of each run are dealt to the concepts anew. NaN of fewer than five concepts,
    and where a run has all births at one checkpoint.

    Examples
    --------
    >>> births = np.array([[1, 2, 4, 8, 16, 32], [2, 4, 4, 16, 16, 64]])
    >>> correlation, p = order_agreement(births)
    >>> round(correlation, 2), p < 0.05
    (0.97, True)
    """
    runs, count = births.shape
    if count < FEWEST or (np.ptp(births, axis=1) == 0).any():
        return np.nan, np.nan
    ranks = rankdata(births, axis=1)
    ranks = ranks - ranks.mean(axis=1, keepdims=True)
    ranks /= np.linalg.norm(ranks, axis=1, keepdims=True)
    pairs = runs * (runs - 1)

    def mean(R: np.ndarray) -> float:
        return float(((R.sum(axis=0) ** 2).sum() - runs) / pairs)

    rng = np.random.default_rng(random_state)
    permuted = [mean(rng.permuted(ranks, axis=1)) for _ in range(DRAWS)]
    there = mean(ranks)
    return there, (1 + sum(agreement >= there - 1e-12 for agreement in permuted)) / (
        1 + DRAWS
    )


def of_layer(
    runs: Sequence[RunViews],
    files: Mapping[str, Mapping[int, Path]],
    paths: Sequence[str],
    words: Describing | None,
    start: int | None = None,
) -> LayerConcepts:
    """Return the concepts of one layer of all runs; `paths` are what it is called in each.

    With `words`, concepts get labels, and the fit to tokens in other orders is made as well, and
    what a second run changed that began at the step `start` of the first.
    """
    made = _dictionary(runs[0])
    first = runs[0]
    X: dict[str, Any] = {
        run.name: LayerViews(list(files[run.name].values()), path)
        for run, path in zip(runs, paths, strict=True)
    }
    steps = {run.name: np.array(list(files[run.name])) for run in runs}
    joint = made.fit(X, groups=first.units, steps=steps)
    concepts = np.flatnonzero(joint.is_concept_ & joint.replicates_)
    present = joint.present_[:, concepts]
    birth, low, high = (np.full(present.shape, np.nan) for _ in range(3))
    life = {}
    for i, name in enumerate(joint.runs_):
        lives = joint.lives_[name]
        births = joint.births_[name]
        own_steps = steps[name]
        born = lives.born[concepts]
        at_start = np.where(present[i] & (lives.start[concepts] == 0), START, np.nan)
        birth[i] = np.where(born >= 0, own_steps[born], at_start)
        low[i] = np.where(
            born >= 0, own_steps[np.maximum(births.after[concepts], 0)], np.nan
        )
        high[i] = np.where(born >= 0, own_steps[births.before[concepts]], np.nan)
        strength = joint.strength_[name][:, concepts]
        share = strength / np.maximum(strength.max(axis=0), 1e-30)
        life[name] = (own_steps, np.where(present[i], share, np.nan))
    if words is None:
        return LayerConcepts(present, birth, low, high, life, [])
    chance = _chance(made, X, first.units)
    label = words.labels(
        joint.codes_[:, concepts], X[first.name][0], int(steps[first.name][0])
    )
    change = _change(joint, concepts, start)
    return LayerConcepts(present, birth, low, high, life, label, chance, change)


def _change(
    joint: JointDictionary, concepts: np.ndarray, start: int | None
) -> dict[str, np.ndarray] | None:
    """Return what the second of two runs made of concepts of the first, if it comes from it.

    It began at the step `start`; where that is not known, it comes from the first if the last
    checkpoints of both write concepts in the same directions: another seed has another basis.
    """
    if len(joint.runs_) != 2:
        return None
    base, tuned = (joint.presence_[name] for name in joint.runs_)
    steps = joint.steps_[joint.runs_[0]].tolist()
    first = base.at(-1 if start is None else steps.index(start))
    asked = np.isin(np.arange(len(joint.replicates_)), concepts)
    # From a known start the basis is common, also where most concepts have turned.
    from_start = start is not None
    readable = joint.readable
    of_all = concept_changes(
        first, tuned.at(-1), asked, readable=readable, common_basis=from_start
    )
    if start is None and not of_all.common_basis:
        return None
    # Where the first writes almost nothing, a ratio to it is a number of noise.
    ends = {"ratio": of_all.ratio, "ratio_low": of_all.low, "ratio_high": of_all.high}
    ends = {
        name: np.where(of_all.kind == "new", np.nan, value)
        for name, value in ends.items()
    }
    values = {"kind": of_all.kind, **ends, "cosine": of_all.cosine}
    return {name: value[concepts] for name, value in values.items()}


@dataclass(frozen=True)
class Describing:
    """What says which tokens a concept stands for."""

    run: RunViews
    texts: Any
    pieces: list[str]

    @classmethod
    def of(cls, run: RunViews) -> Describing:
        """Return what the texts of a run say, and its tokenizer."""
        need = run.need
        inputs = run.part.job.inputs_of(run.need)
        tokenizer = run.part.trajectory.tokenizer()
        pieces = pieces_of_texts(inputs) if tokenizer is None else pieces_of(tokenizer)
        texts = run.observable.texts_of(need, {InputSet(need.on): inputs})
        texts = texts if run.sample is None else replace(texts, sample=run.sample)
        return cls(run, texts, pieces)

    def labels(self, codes: np.ndarray, first: np.ndarray, step: int) -> list[str]:
        """Return the name of each concept, or else its strongest tokens.

        Names are given beside latents of the untrained model: of the `first` checkpoint (n, m), if
        that is at step 0.
        """
        if self.run.need.tokens == "mean" or not codes.shape[1]:
            return ["" for _ in range(codes.shape[1])]
        untrained = None
        if step == 0:
            fitted = self.run.observable.untrained_codes(torch.from_numpy(first))
            if fitted.any():
                untrained = self.texts.of_untrained(fitted)
        variables = xr.Dataset(self.texts.described(codes, untrained, self.pieces))
        lines = zip(variables["name"].values, variables["token_id"].values, strict=True)
        return [str(name) or self._tokens(ids) for name, ids in lines]

    def _tokens(self, ids: np.ndarray) -> str:
        return " ".join(visible(self.pieces[i]) for i in ids[:3].tolist() if i >= 0)


def _dictionary(run: RunViews) -> JointDictionary:
    joint = run.observable
    count = (
        joint.fit_steps if isinstance(joint.fit_steps, int) else len(joint.fit_steps)
    )
    return JointDictionary(
        joint.n_concepts,
        joint.method,
        joint.n_active,
        fit_steps=count,
        max_tokens=None,
        readable=joint.readable,
        reseeds=0,
        random_state=joint.random_state,
    )


def _chance(
    made: JointDictionary, X: Mapping[str, LayerViews], groups: np.ndarray
) -> float:
    """Return how many concepts are shared by chance; on the checkpoints of the fit alone."""
    count = made.fit_steps if isinstance(made.fit_steps, int) else 12
    fewer = {
        n: [views[i] for i in fitted_steps(count, len(views))] for n, views in X.items()
    }
    return made.false_shared_rate(fewer, groups=groups)
