"""Figure 10 and Table 2: labelled concepts, how readable they are, and their TCAV scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ontogeny.claims import Reason
from ontogeny.inputs import Inputs
from ontogeny.trajectory import Trajectory

from ...observables.labelled.directions import ConceptDirections
from ...observables.labelled.tcav import TCAV
from ..formats import short
from ..recipe import Materials
from ..verdicts import LEVEL, Found, Runs, Verdict, each, more_often, unanimous
from .concept_recipe import ConceptRecipe, ConceptSize, sizes, studied_texts
from .labelled_texts import of_topic, of_word_order
from .masked_run import MaskedRun
from .paths import the_runs
from .score_windows import CountOfRises, in_windows

_CONCEPTS = ("semantic", "syntactic")


@dataclass(frozen=True)
class LabelledSize(ConceptSize):
    """A size with how many sentences each labelled set has."""

    sentences: int = 600


@dataclass(frozen=True)
class LabelledRecipe(ConceptRecipe):
    """A recipe on labelled sentences of the texts that a run was not trained on."""

    def study_folder(
        self, label: str, seed: int, recorded: Path, materials: Materials
    ) -> Path:
        """Return where a seed is studied: apart from the recipes on unlabelled texts."""
        place = super().study_folder(label, seed, recorded, materials)
        return place.with_name(f"{place.name}-labelled")

    def inputs(  # type: ignore[override]
        self,
        run: MaskedRun,
        trajectory: Trajectory,
        size: LabelledSize,
        materials: Materials,
    ) -> dict[str, Inputs]:
        """Return both sets; sentences of one text count as one document."""
        texts = studied_texts(trajectory, materials)
        topic, semantic = of_topic(texts, size.sentences, 0)
        materials.progress.note(f"the topic is {topic!r}")
        sources = zip(
            _CONCEPTS, (semantic, of_word_order(texts, size.sentences, 0)), strict=True
        )
        return {
            name: Inputs.from_texts(
                labelled.texts,
                trajectory.tokenizer(),
                size.max_length,
                labels=labelled.labels,
                documents=labelled.documents,
                source=f"{name} sentences",
            )
            for name, labelled in sources
        }


def judge(results: Found) -> Sequence[Verdict]:
    """Judge Figure 10 and Table 2 beside shuffled labels."""
    scores = the_runs(results, "tcav")
    readable = the_runs(results, "cav")
    return [
        *(_readable(readable, name) for name in _CONCEPTS),
        _matters(scores, readable),
        _noisier(scores),
        _syntactic_gains(scores),
        _improving(scores),
    ]


def _readable(runs: Runs, name: str) -> Verdict:
    """State whether a concept is learned: readable in the end, more so than at first."""
    accuracies = [
        run.accuracy.sel(concept=name).dropna("step", how="all") for run in runs
    ]
    first, last = (
        np.array([float(a.isel(step=i).max()) for a in accuracies]) for i in (0, -1)
    )
    p = each(runs, lambda run: run.p_corrected.sel(concept=name).isel(step=-1).min())
    before = each(
        runs, lambda run: run.p_corrected.sel(concept=name).isel(step=0).min()
    )
    control = _control_ends(runs, name)
    holds = unanimous(
        (p <= LEVEL) & (last > first) & (last > control.max()), p, first, last
    )
    return Verdict(
        f"the {name} concept is learned: its labels become readable",
        bool(holds and np.isfinite(control).all()) or None,
        f"balanced accuracy on held-out sentences, best layer: {short(first)} at the first step, "
        f"{short(last)} at the last (corrected p {_listed(p)})",
        f"untrained p {_listed(before)}; turned runs end at {short(control)}; chance 0.5",
        reason=Reason.WITHIN_CHANCE,  # no test reads all labels
        of_paper=False,
    )


def _control_ends(runs: Runs, name: str) -> np.ndarray:
    """Return the best layer's accuracy of every control run at its last step."""
    if "accuracy_control" not in runs[0]:
        return np.array([np.nan])
    ends = [
        run.accuracy_control.sel(concept=name)
        .dropna("step", how="all")
        .isel(step=-1)
        .max("layer")
        for run in runs
    ]
    return np.concatenate([np.atleast_1d(end.values) for end in ends])


def _matters(runs: Runs, readable: Runs) -> Verdict:
    """Judge whether scores differ from those of directions for shuffled labels.

    A direction that does not tell the labels apart is no concept, and refutes nothing.
    """
    p = each(readable, lambda run: run.p_corrected.isel(step=-1).min())
    there = bool((p <= LEVEL).all())
    beyond = np.array([int((run.p_corrected <= LEVEL).sum()) for run in runs])
    single = each(runs, lambda run: (run.p_single <= LEVEL).mean())
    tested = int(np.isfinite(runs[0].p_corrected.values).sum())
    low, high = (
        np.median([float(run.random_score.quantile(q)) for run in runs])
        for q in (0.025, 0.975)
    )
    return Verdict(
        "TCAV shows that the concepts influence what the model predicts",
        unanimous(beyond > 0) if tested and (there or (beyond > 0).all()) else None,
        f"{_listed(beyond, 0)} of {tested} scores differ (corrected p ≤ {LEVEL}); uncorrected "
        f"{_listed(100 * single, 0)} %",
        f"{100 * LEVEL:.0f} % uncorrected by chance; directions for shuffled labels score between "
        f"{low:.2f} and {high:.2f}"
        + (
            ""
            if there
            else "; no labelled concept is readable in every seed, so none is tested"
        ),
        reason=Reason.CASES_DIFFER if tested and there else Reason.NOTHING_SCORED,
    )


def _noisier(runs: Runs) -> Verdict:
    """Judge whether scores vary more within the second window than within the first."""
    count = CountOfRises.of_scores(
        runs, list(_CONCEPTS), lambda table: table.late_sd - table.early_sd
    )
    return Verdict(
        "the scores are smooth in the first regime and noisy in the second",
        count.holds,
        f"the second window's standard deviation is larger in {count.own} of {count.of} layers, "
        "concepts and seeds",
        count.beside,
        reason=Reason.WITHIN_CHANCE,
    )


def _syntactic_gains(runs: Runs) -> Verdict:
    """Judge the sums of differences beside those of directions for shuffled labels."""
    sums = {name: np.array([_sum(run, name) for run in runs]) for name in _CONCEPTS}
    null = np.concatenate([_null_sums(run) for run in runs])
    gain = sums["syntactic"] - sums["semantic"]
    holds = unanimous(gain > 0, gain)
    width = (
        float(np.nanquantile(np.abs(null), 0.95)) if np.isfinite(null).any() else np.nan
    )
    inside = bool((np.abs(gain) <= width).any())
    return Verdict(
        "syntactic concepts gain from the second regime, semantic ones lose (ΣΔ)",
        holds if np.isfinite(width) and not inside else None,
        f"sum over layers of second minus first: syntactic {_listed(sums['syntactic'])}, semantic "
        f"{_listed(sums['semantic'])}",
        f"the same difference between two directions for shuffled labels: within ±{width:.2f} in "
        "95 % of the draws",
        reason=Reason.WITHIN_CHANCE if inside else Reason.CASES_DIFFER,
    )


def _improving(runs: Runs) -> Verdict:
    """Judge the count of layers whose score rises."""
    tables = [table for run in runs if (table := in_windows(run.score)) is not None]
    counts = {
        name: [int((table.difference.sel(concept=name) > 0).sum()) for table in tables]
        for name in _CONCEPTS
    }
    count = CountOfRises.of_scores(
        runs, list(_CONCEPTS), lambda table: table.difference
    )
    return Verdict(
        "scores rise in most layers (7 semantic and 6 syntactic of 11 in the report)",
        count.holds,
        "; ".join(f"{n} {' and '.join(map(str, c))}" for n, c in counts.items())
        + f", together {count.own} of {count.of} layers and seeds",
        f"{count.beside}; the report's 7 and 6 of 11 are what a coin gives or more with p = "
        f"{more_often(13, 22, 0.5)[1]:.2g}",
        reason=Reason.WITHIN_CHANCE,
    )


def _sum(run: xr.Dataset, name: str) -> float:
    table = in_windows(run.score.sel(concept=name))
    return np.nan if table is None else float(table.difference.sum(skipna=False))


def _null_sums(run: xr.Dataset) -> np.ndarray:
    """Return differences of ΣΔ between both concepts' directions for the same shuffles (draw,)."""
    table = in_windows(run.random_score)
    if table is None:
        return np.array([np.nan])
    sums = table.difference.sum("layer", skipna=False)
    semantic, syntactic = (sums.sel(concept=name).values for name in _CONCEPTS)
    return np.asarray(syntactic - semantic)


def _listed(values: np.ndarray, digits: int = 2) -> str:
    return (
        short(values)
        if len(values) > 3
        else " and ".join(f"{v:.{digits}f}" for v in values)
    )


def _sized(size: ConceptSize, sentences: int, checkpoints: int | None) -> LabelledSize:
    fields = {
        field.name: getattr(size, field.name) for field in dataclasses.fields(size)
    }
    return LabelledSize(
        **{**fields, "max_length": 32, "checkpoints": checkpoints}, sentences=sentences
    )


def _observables(n: int, m: int) -> tuple[ConceptDirections, TCAV]:
    draws, refits = (20, 4) if n <= 8 else (100, 20)
    how: dict[str, Any] = {"on": _CONCEPTS, "n_random": draws, "n_refits": refits}
    return (ConceptDirections("mlp", **how), TCAV("mlp", target="masked", **how))


_FULL, _QUICK = sizes(_observables)
RECIPES = (
    LabelledRecipe(
        "concepts-figure-10",
        "Labelled concepts and their TCAV scores",
        "TCAV scores of semantic and syntactic concepts are smooth, then noisy; syntactic concepts "
        "gain from the second regime, and semantic ones improve in more layers (Table 2).",
        "Bernas 2025, sec. 6.2, Fig. 10, Table 2",
        _sized(_FULL, 600, None),
        _sized(_QUICK, 200, 16),
        "influence of concepts: 20 shuffles and small models have little power. The report labels "
        "sentiment (SST-2) and acceptability (CoLA); here the labels come from the text itself, a "
        "topic with its word taken out and sentences with two words swapped.",
        judge=judge,
    ),
)
