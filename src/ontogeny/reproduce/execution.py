"""Recipes for "Low-Dimensional Execution Manifolds" (Xu 2026, arXiv:2602.10496)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..observables import (
    Commutators,
    Observable,
    Projection,
    ReadoutAccuracy,
    ReadoutAttention,
    SaeProbe,
    WeightRank,
)
from . import attention_judges, comparison_judges, judges, update_judges
from .marker_recipe import MarkerRecipe, Scale
from .tasks import MarkerTask
from .training import MarkerRun, OptimizerSettings

_FULL = MarkerRun()
_QUICK = MarkerRun.demo()
# Comparisons train several runs: half the width at a higher rate learns as much in half the time.
_SMALL = replace(_QUICK, width=64, optimizer=OptimizerSettings(learning_rate=3e-3))
_CLASSIFY = "classification"


def _scales(
    observables: tuple[Observable, ...],
    quick_observables: tuple[Observable, ...],
    full: Mapping[str, MarkerRun] | None = None,
    quick: Mapping[str, MarkerRun] | None = None,
    checkpoints: tuple[int | None, int | None] = (None, None),
    markers: tuple[int, ...] | None = None,
    seeds: int = 20,
    quick_texts: int = 512,
) -> dict[str, Scale]:
    return {
        "full": Scale(
            full or {"mixed": _FULL},
            tuple(range(seeds)),
            100,
            observables,
            checkpoints[0],
            markers,
        ),
        "quick": Scale(
            quick or {"mixed": _QUICK},
            (0, 1),
            20,
            quick_observables,
            checkpoints[1],
            markers,
            quick_texts,
        ),
    }


_RANK, _QUICK_RANK = WeightRank(("q", "k", "v", "o")), WeightRank(("q", "k", "v", "o"), draws=40)
_ACCURACY, _ATTENTION = ReadoutAccuracy(), ReadoutAttention()
_STEPS = {"loss": _CLASSIFY, "batch_size": 64}
_COMMUTATORS = Commutators(pairs=9, **_STEPS)  # type: ignore[arg-type]
_QUICK_COMMUTATORS = Commutators(pairs=5, **_STEPS)  # type: ignore[arg-type]
_PROJECTION = Projection(pairs=9, **_STEPS)  # type: ignore[arg-type]
_QUICK_PROJECTION = Projection(pairs=3, **_STEPS)  # type: ignore[arg-type]
_SAE = SaeProbe((0,))
_QUICK_SAE = SaeProbe((0,), n_latents=128, epochs=10, draws=5)


def _curriculum(run: MarkerRun) -> dict[str, MarkerRun]:
    return {"mixed": run, "curriculum": replace(run, curriculum=True)}


def _mlp(run: MarkerRun) -> dict[str, MarkerRun]:
    return {"attention only": run, "with MLP": replace(run, mlp=True)}


def _operations(run: MarkerRun) -> dict[str, MarkerRun]:
    return {
        "addition": run,
        "multiplication": replace(run, task=replace(run.task, operation="multiplication")),
    }


def _sizes(run: MarkerRun, depths: tuple[int, ...]) -> dict[str, MarkerRun]:
    """Return one run for each change of m, C and depth."""
    most = max(run.task.counts)
    runs = {
        f"m up to {m}": replace(run, task=replace(run.task, markers=tuple(range(1, m + 1))))
        for m in range(1, most + 1)
    }
    wide = MarkerTask(modulus=16, markers=run.task.markers, vocab_size=32)
    runs["C = 16"] = replace(run, task=wide)
    runs |= {
        f"{n} layers instead of {run.layers}": replace(run, layers=n)
        for n in depths
        if n != run.layers
    }
    return runs


def _stated(steps: int) -> dict[str, MarkerRun]:
    sgd = OptimizerSettings("sgd", 0.1, "constant")
    paper = replace(MarkerRun.paper(), steps=steps)
    return {"SGD 0.001, as stated": paper, "SGD 0.1": replace(paper, optimizer=sgd)}


_ALL = (
    MarkerRecipe(
        "execution-figure-1",
        "Variance rank of attention matrices over training",
        "all four attention matrices converge to effective ranks 3 to 5 within the first 20 to "
        "30 % of training, V and O lower than Q and K.",
        "Xu 2026, sec. 4.1, Fig. 1",
        **_scales((_RANK, _ACCURACY), (_QUICK_RANK, _ACCURACY)),
        judge=judges.low_ranks,
        limits="26 snapshots of 500 steps; ranks grow with the number of snapshots, so compare at "
        "equal ones.",
    ),
    MarkerRecipe(
        "execution-figure-2",
        "Attention entropy at the read-out over training",
        "entropy drops sharply and smoothly, and its timing correlates with the stabilisation of "
        "the weights' rank.",
        "Xu 2026, sec. 4.2, Fig. 2",
        **_scales((_ATTENTION, _ACCURACY, _RANK), (_ATTENTION, _ACCURACY, _QUICK_RANK)),
        judge=attention_judges.attention_and_rank,
        limits="a correlation over seeds needs five; two of an easy task show only whether times "
        "coincide.",
    ),
    MarkerRecipe(
        "execution-figure-3",
        "Commutators of gradient steps over training",
        "commutators remain large throughout training, with frequent spikes, despite convergence.",
        "Xu 2026, Fig. 3",
        **_scales((_COMMUTATORS, _ACCURACY), (_QUICK_COMMUTATORS, _ACCURACY), checkpoints=(41, 11)),
        judge=update_judges.commuting,
        limits="the spikes after thousands of steps: 500 steps end where training converges.",
    ),
    MarkerRecipe(
        "execution-figure-4",
        "Commutators projected onto the trajectory's directions",
        "the ratio of the projected commutator to the whole rapidly approaches zero.",
        "Xu 2026, sec. 3.3.2, Fig. 4",
        **_scales((_PROJECTION,), (_QUICK_PROJECTION,), checkpoints=(41, 11)),
        judge=update_judges.avoidance,
        limits="three pairs of batches on 11 snapshots; no interval of a median holds with so few.",
    ),
    MarkerRecipe(
        "execution-figure-5",
        "Commutators inside and outside the trajectory's directions",
        "the perpendicular component accounts for more than 95 % of the total magnitude.",
        "Xu 2026, Fig. 5",
        **_scales((_PROJECTION,), (_QUICK_PROJECTION,), checkpoints=(41, 11)),
        judge=update_judges.outside,
        limits="three pairs of batches on 11 snapshots; no interval of a median holds with so few.",
    ),
    MarkerRecipe(
        "execution-figure-6",
        "Sparse latents of the read-out's state and their removal",
        "3 to 5 latents correlate with the task's structure; removing them costs little, and most "
        "early in training.",
        "Xu 2026, sec. 4.4, Fig. 6",
        **_scales((_SAE,), (_QUICK_SAE,), checkpoints=(4, 4), seeds=5),
        judge=update_judges.latents,
        limits="when removal costs most: the task is solved between two of its four checkpoints.",
    ),
    MarkerRecipe(
        "execution-curriculum",
        "Mixed training against a curriculum",
        "a curriculum leads to catastrophic forgetting of small m, mixed training does not.",
        "Xu 2026, sec. 4.5",
        **_scales(
            (_ACCURACY, _RANK),
            (_ACCURACY, _QUICK_RANK),
            _curriculum(_FULL),
            _curriculum(_QUICK),
        ),
        judge=comparison_judges.forgetting,
        limits="forgetting over more than two stages of 250 steps.",
    ),
    MarkerRecipe(
        "execution-architecture",
        "Attention alone against attention with MLPs",
        "MLPs disrupt the low-dimensional structure and generalise worse.",
        "Xu 2026, sec. 4.5",
        **_scales((_ACCURACY, _RANK), (_ACCURACY, _QUICK_RANK), _mlp(_FULL), _mlp(_SMALL), seeds=5),
        judge=comparison_judges.architecture,
        limits="width 64 and 500 steps: the models end at different losses, and ranks go with the "
        "loss.",
    ),
    MarkerRecipe(
        "execution-multiplication",
        "Addition against multiplication",
        "multiplication needs 4 to 6 dimensions, addition 3 to 4.",
        "Xu 2026, sec. 4.6",
        **_scales(
            (_ACCURACY, _RANK, _COMMUTATORS),
            (_ACCURACY, _QUICK_RANK, _QUICK_COMMUTATORS),
            _operations(_FULL),
            _operations(_SMALL),
            checkpoints=(None, 11),
            seeds=5,
        ),
        judge=comparison_judges.equal_loss,
        limits="width 64, 11 snapshots and 500 steps: at equal loss the ranks are those of few "
        "snapshots.",
    ),
    MarkerRecipe(
        "execution-scaling",
        "Rank against m, C and depth; accuracy on m that was never trained on",
        "the dimension is stable for m up to 6 and grows with the complexity of the task.",
        "Xu 2026, sec. 4.1, 4.3",
        **_scales(
            (_ACCURACY, _RANK),
            (_ACCURACY, _QUICK_RANK),
            _sizes(_FULL, (2, 3, 4)),
            _sizes(replace(_SMALL, steps=400), (4,)),
            checkpoints=(None, 11),
            markers=(1, 2, 3, 4, 5, 6),
            seeds=5,
            quick_texts=128,
        ),
        judge=judges.sizes,
        limits="m up to 2, one greater depth, 400 steps of width 64, 128 examples of each m; "
        "C = 16 is not solved by then, so its rank is that of an unfinished run.",
    ),
    MarkerRecipe(
        "execution-stated-training",
        "The training that the paper states",
        "plain SGD at 0.001 with batches of 64 and sequences of 32 tokens.",
        "Xu 2026, sec. 3.2",
        **_scales(
            (_ACCURACY, _RANK),
            (_ACCURACY, _QUICK_RANK),
            _stated(20_000),
            _stated(200),
            seeds=3,
            quick_texts=256,
        ),
        judge=comparison_judges.stated,
        limits="whether it learns later: 200 of 20,000 steps.",
    ),
)
RECIPES = {recipe.name: recipe for recipe in _ALL}
"""The recipes by name."""
