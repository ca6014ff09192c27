"""Figure 10 and Table 2: labelled concepts, how readable they are, and their TCAV scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ontogeny import dynamics
from ontogeny.claims import Reason
from ontogeny.inputs import Inputs
from ontogeny.trajectory import Trajectory

from ...observables.labelled.directions import ConceptDirections
from ...observables.labelled.tcav import TCAV
from ..recipe import Materials
from ..verdicts import LEVEL, Found, Verdict, more_often, short, unanimous
from .concept_recipe import ConceptRecipe, ConceptSize, sizes
from .labelled_texts import of_topic, of_word_order
from .masked_run import MaskedRun, recorded_texts
from .paths import the_runs
from .score_windows import CountOfRises, in_windows

_CONCEPTS = ("semantic", "syntactic")

# Table 2 as printed, layers 1 to 11: first mean, first SD, second mean, second SD.
_PRINTED = {
    "syntactic": (
        (0.597, 0.145, 0.440, 0.115),
        (0.514, 0.077, 0.594, 0.184),
        (0.543, 0.146, 0.480, 0.150),
        (0.385, 0.180, 0.341, 0.237),
        (0.483, 0.176, 0.506, 0.264),
        (0.342, 0.116, 0.574, 0.250),
        (0.606, 0.156, 0.484, 0.221),
        (0.541, 0.087, 0.337, 0.203),
        (0.501, 0.168, 0.725, 0.162),
        (0.512, 0.230, 0.619, 0.247),
        (0.593, 0.172, 0.657, 0.275),
    ),
    "semantic": (
        (0.571, 0.137, 0.581, 0.109),
        (0.535, 0.186, 0.635, 0.179),
        (0.329, 0.128, 0.339, 0.191),
        (0.423, 0.183, 0.577, 0.294),
        (0.441, 0.235, 0.367, 0.201),
        (0.308, 0.126, 0.528, 0.270),
        (0.650, 0.205, 0.277, 0.232),
        (0.502, 0.175, 0.541, 0.248),
        (0.663, 0.173, 0.572, 0.291),
        (0.684, 0.162, 0.491, 0.284),
        (0.606, 0.277, 0.678, 0.190),
    ),
}
_PRINTED_SUMS = {"syntactic": (0.142, 0.125), "semantic": (-0.127, -0.292)}


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
        recorded = None if trajectory.path is None else recorded_texts(trajectory.path)
        has_text = materials.text is not None and materials.sources
        texts = materials.texts if has_text or recorded is None else recorded
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
    """Judge Figure 10 and Table 2 beside shuffled labels; recompute what Table 2 prints."""
    scores = the_runs(results, "tcav")
    readable = the_runs(results, "cav")
    return [
        *(_readable(readable, name) for name in _CONCEPTS),
        _matters(scores, readable),
        _noisier(scores),
        _syntactic_gains(scores),
        _improving(scores),
        _printed_sums(),
        _printed_caption(),
    ]


def _readable(runs: Sequence[xr.Dataset], name: str) -> Verdict:
    """State whether a concept is learned: readable in the end, more so than at first."""
    accuracies = [
        run.accuracy.sel(concept=name).dropna("step", how="all") for run in runs
    ]
    first, last = (
        np.array([float(a.isel(step=i).max()) for a in accuracies]) for i in (0, -1)
    )
    p = np.array(
        [float(run.p_corrected.sel(concept=name).isel(step=-1).min()) for run in runs]
    )
    before = np.array(
        [float(run.p_corrected.sel(concept=name).isel(step=0).min()) for run in runs]
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


def _control_ends(runs: Sequence[xr.Dataset], name: str) -> np.ndarray:
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


def _matters(runs: Sequence[xr.Dataset], readable: Sequence[xr.Dataset]) -> Verdict:
    """Judge whether scores differ from those of directions for shuffled labels.

    A direction that does not tell the labels apart is no concept, and refutes nothing.
    """
    p = np.array([float(run.p_corrected.isel(step=-1).min()) for run in readable])
    there = bool((p <= LEVEL).all())
    beyond = np.array([int((run.p_corrected <= LEVEL).sum()) for run in runs])
    single = np.array([float((run.p_single <= LEVEL).mean()) for run in runs])
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


def _noisier(runs: Sequence[xr.Dataset]) -> Verdict:
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


def _syntactic_gains(runs: Sequence[xr.Dataset]) -> Verdict:
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


def _improving(runs: Sequence[xr.Dataset]) -> Verdict:
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


def printed_table(concept: str) -> xr.Dataset:
    """Return the regime table of the printed cells of one concept."""
    first, first_sd, second, second_sd = np.array(_PRINTED[concept]).T
    return dynamics.compare_regimes(first, first_sd, second, second_sd)


def rounding(concept: str) -> tuple[float, float]:
    """Return how far rounding to three decimals can move the two sums of the printed cells."""
    first, first_sd, second, second_sd = np.array(_PRINTED[concept]).T
    half = 0.0005
    change = np.abs(second - first)
    low = np.hypot(first_sd - half, second_sd - half)
    aware = (change + 2 * half) / low - change / np.hypot(first_sd, second_sd)
    return 2 * half * len(first), float(aware.sum())


def _printed_sums() -> Verdict:
    """Add up the cells of Table 2 again."""
    parts = []
    right = []
    reach = []
    for name, printed in _PRINTED_SUMS.items():
        table = printed_table(name)
        sums = float(table.sum_difference), float(table.sigma_aware_sum)
        limits = rounding(name)
        right += [
            abs(a - b) <= r for a, b, r in zip(sums, printed, limits, strict=True)
        ]
        parts.append(f"{name} {sums[0]:+.3f} and {sums[1]:+.3f}")
        reach.append(limits)
    texts = [f"{name} {a:+.3f} and {b:+.3f}" for name, (a, b) in _PRINTED_SUMS.items()]
    plain, aware = np.max(reach, axis=0)
    return Verdict(
        "the sums of Table 2 follow from its cells",
        all(right),
        f"ΣΔ and ΣωΔ of the printed cells: {', '.join(parts)}",
        f"printed: {', '.join(texts)}; rounding of the cells can move them by at most {plain:.3f} "
        f"and {aware:.3f}",
    )


def _printed_caption() -> Verdict:
    """Compare which concept the caption of Table 2 gives each sum."""
    signs = {name: float(printed_table(name).sum_difference) > 0 for name in _PRINTED}
    return Verdict(
        "its caption: ΣΔ is +0.142 for the semantic and −0.127 for the syntactic concept",
        signs["semantic"] and not signs["syntactic"],
        "from the cells the semantic sum is negative and the syntactic one positive",
        "the table itself has them so: the caption exchanges the two",
    )


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
