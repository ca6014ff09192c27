"""Recipes for "Low-Dimensional Execution Manifolds" (Xu 2026, arXiv:2602.10496)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from ontogeny.claims import Reason
from ontogeny.observables import Observable

from ..observables.commutators import Commutators
from ..observables.matrix_orientation import Orientation, orientation_across_runs
from ..observables.projection import Projection
from ..observables.readout.accuracy import ReadoutAccuracy
from ..observables.readout.attention import ReadoutAttention
from ..observables.readout.sae_probe import SaeProbe
from ..observables.weight_rank import WeightRank
from . import attention_judges, comparison_judges, judges, update_judges
from .comparison_judges import by_kind
from .formats import spread
from .marker_recipe import MarkerRecipe, Scale
from .recipe import Findings, Materials
from .tasks import MarkerTask
from .training import MarkerRun, OptimizerSettings
from .verdicts import LEVEL, Found, Runs, Verdict, each, more_often, unanimous, why_open

_APART = 0.5  # mean squared cosine below which two subspaces count as turned against each other


@dataclass(frozen=True)
class OrientationRecipe(MarkerRecipe):
    """The marker task over seeds, whose paths are compared with each other too."""

    def measured(self, size: Any, materials: Materials) -> Findings:
        """Train and study every seed, and compare the directions of each matrix between them."""
        findings = super().measured(size, materials)
        ((label, run),) = size.runs.items()
        folder = self.runs_folder(label, run, size, materials)
        recorded = self.record(run, folder, size, materials)  # by now all are there
        paths = {
            f"seed {seed}": self.opened(run, path)
            for seed, path in zip(size.seeds, recorded, strict=True)
        }
        between = orientation_across_runs(paths)
        nodes = {**findings.nodes, "orientation-between-seeds": between}
        numbers = (*findings.numbers, between)
        return Findings(nodes, numbers, findings.attributes)


def layers_and_ranks(
    results: Found, between: xr.Dataset | None = None
) -> list[Verdict]:
    """Judge dimension and directions over seeds and layers; `between` seeds where it is given."""
    (ranks,) = results["weight-rank"].values()
    (directions,) = results["orientation"].values()
    varies = [] if between is None else [_varies(between)]
    return [*varies, _same_dimension(ranks), _shared(directions)]


def _varies(between: xr.Dataset) -> Verdict:
    """Judge whether a matrix takes other directions in other seeds.

    Hidden units have no order, so that chance is to be expected of equal solutions too: this cannot
    tell a turned solution from another one.
    """
    first, second = np.triu_indices(between.sizes["run"], 1)
    overlap = between.overlap.values[:, first, second]
    p_values = between.p_value.values[:, first, second].ravel()
    count = int((p_values < LEVEL).sum())
    tested = int(np.isfinite(p_values).sum())
    return Verdict(
        "the orientation of the subspace varies between seeds",
        unanimous(overlap < _APART, overlap),
        f"mean squared cosine of the principal angles {overlap.mean():.2g}, at most "
        f"{overlap.max():.2g}, over {tested} pairs of seeds and matrices",
        f"random subspaces {float(between.chance.mean()):.2g}; above them {count} of {tested} at "
        f"p < {LEVEL:g} (as many by chance: p = {more_often(count, tested, LEVEL)[1]:.2g}); hidden "
        "units have no order, so equal solutions would give chance too",
    )


_RANGE = 2.0  # dimensions between 3 and 5, which the paper calls consistent


def _same_dimension(runs: Runs) -> Verdict:
    """Judge whether ranks are as consistent as the paper's own range, 3 to 5, allows.

    Walks of as many steps have one rank, so that agreement as such shows nothing.
    """
    ranks = np.stack([by_kind(run).variance_rank.values for run in runs])
    between = float((ranks.max(axis=0) - ranks.min(axis=0)).max())
    layers = each(runs, _between_layers)
    return Verdict(
        "the dimension is the same over seeds and layers",
        unanimous([between <= _RANGE, bool((layers <= _RANGE).all())], between, layers),
        f"ranks of a kind of matrix differ by at most {between:.2f} between seeds, and by "
        f"{spread(layers)} between layers of a seed",
        f"the paper's 3 to 5 dimensions differ by {_RANGE:g}, and no more counts as the same; ranks "
        "of walks of the same steps agree as well",
        alike=True,
    )


def _between_layers(run: xr.Dataset) -> float:
    """Return the largest difference of ranks of one kind between the layers of a run."""
    kinds = [str(block).rsplit(".", 2)[-2] for block in run.block.values]
    grouped = (
        run.variance_rank.astype(float).assign_coords(block=kinds).groupby("block")
    )
    return float((grouped.max() - grouped.min()).max())


def _shared(runs: Runs) -> Verdict:
    """Judge whether matrices of one run share directions more than random subspaces do."""
    pairs = [run.p_value.values[np.triu_indices(run.sizes["block"], 1)] for run in runs]
    counts = np.array([int((p < LEVEL).sum()) for p in pairs])
    tested = np.array([int(np.isfinite(p).sum()) for p in pairs])
    shared = [
        more_often(c, t, LEVEL)[1] <= LEVEL for c, t in zip(counts, tested, strict=True)
    ]
    return Verdict(
        "matrices of one run share directions more than random subspaces do",
        all(shared) or None,
        f"{', '.join(f'{c} of {t}' for c, t in zip(counts, tested, strict=True))} pairs of "
        f"matrices at p < {LEVEL:g}, seed by seed",
        f"{LEVEL:.0%} by chance; layers share the coordinates of the residual stream, and noise "
        "that prefers some of them is enough",
        reason=why_open(shared, Reason.WITHIN_CHANCE),
        of_paper=False,
    )


_FULL = MarkerRun()
_QUICK = MarkerRun.demo()
# Comparisons train several runs: half the width at a higher rate learns as much in half the time.
_SMALL = replace(_QUICK, width=64, optimizer=OptimizerSettings(learning_rate=3e-3))
_STEPS = {"loss": "classification", "pairs": 9, "batch_size": 64}
_ACCURACY = ReadoutAccuracy()
_ATTENTION = ReadoutAttention()
_RANK = WeightRank(("q", "k", "v", "o"))
_COMMUTATORS = Commutators(**_STEPS)  # type: ignore[arg-type]
_PROJECTION = Projection(**_STEPS)  # type: ignore[arg-type]
_CHEAPER: dict[str, dict[str, Any]] = {
    "weight-rank": {"n_draws": 40},
    "commutators": {"pairs": 5},
    "projection": {"pairs": 3},
    "sae-probe": {"n_latents": 128, "epochs": 10, "n_draws": 5},
}


def _recipe(
    name: str,
    title: str,
    claim: str,
    source: str,
    judge: Callable[[Found], Sequence[Verdict]],
    observables: tuple[Observable, ...],
    *,
    limits: str,
    full: Mapping[str, MarkerRun] | None = None,
    quick: Mapping[str, MarkerRun] | None = None,
    checkpoints: tuple[int | None, int | None] = (None, None),
    markers: tuple[int, ...] | None = None,
    seeds: int = 20,
    quick_texts: int = 512,
    kind: type[MarkerRecipe] = MarkerRecipe,
) -> MarkerRecipe:
    """Return a recipe whose quick size has two seeds and cheaper forms of the observables."""
    whole = full or {"mixed": _FULL}
    small = quick or {"mixed": _QUICK}
    cheaper = tuple(replace(o, **_CHEAPER.get(o.kind, {})) for o in observables)
    return kind(
        name,
        title,
        claim,
        f"Xu 2026, {source}",
        Scale(whole, tuple(range(seeds)), 100, observables, checkpoints[0], markers),
        Scale(small, (0, 1), 20, cheaper, checkpoints[1], markers, quick_texts),
        limits,
        judge=judge,
    )


def _curriculum(run: MarkerRun) -> dict[str, MarkerRun]:
    return {"mixed": run, "curriculum": replace(run, curriculum=True)}


def _mlp(run: MarkerRun) -> dict[str, MarkerRun]:
    return {"attention only": run, "with MLP": replace(run, mlp=True)}


def _operations(run: MarkerRun) -> dict[str, MarkerRun]:
    multiplication = replace(run.task, operation="multiplication")
    return {"addition": run, "multiplication": replace(run, task=multiplication)}


def _sizes(run: MarkerRun, depths: tuple[int, ...]) -> dict[str, MarkerRun]:
    """Return one run for each change of m, C and depth."""
    largest = max(run.task.counts)
    runs = {
        f"m up to {m}": replace(
            run, task=replace(run.task, markers=tuple(range(1, m + 1)))
        )
        for m in range(1, largest + 1)
    }
    wide = MarkerTask(modulus=16, markers=run.task.markers, vocab_size=32)
    runs[f"C = {wide.modulus} instead of {run.task.modulus}"] = replace(run, task=wide)
    runs |= {
        f"{n} layers instead of {run.layers}": replace(run, layers=n)
        for n in depths
        if n != run.layers
    }
    return runs


_FULL_SIZES = _sizes(_FULL, (2, 3, 4))
_QUICK_SIZES = _sizes(replace(_SMALL, steps=400), (4,))


def _stated(steps: int) -> dict[str, MarkerRun]:
    sgd = OptimizerSettings("sgd", 0.1, "constant")
    paper = replace(MarkerRun.paper(), steps=steps)
    adamw = replace(
        paper, optimizer=OptimizerSettings(), steps=min(steps, MarkerRun.steps)
    )
    return {
        "SGD 0.001, as stated": paper,
        "SGD 0.1": replace(paper, optimizer=sgd),
        "AdamW 0.001": adamw,
    }


_ALL = (
    _recipe(
        "execution-figure-1",
        "Variance rank of attention matrices over training",
        "all four attention matrices converge to effective ranks 3 to 5 within the first 20 to "
        "30 % of training, V and O lower than Q and K.",
        "sec. 4.1, Fig. 1",
        judges.low_ranks,
        (_RANK, _ACCURACY),
        limits="26 snapshots of 500 steps; ranks grow with the number of snapshots, so compare at "
        "equal ones.",
    ),
    _recipe(
        "execution-orientation",
        "Directions of the weights' paths between seeds and layers",
        "the dimension is the same across seeds, and the orientation of the subspace varies.",
        "abstract, sec. 4.1",
        layers_and_ranks,
        (_RANK, Orientation()),
        kind=OrientationRecipe,
        seeds=5,
        quick_texts=64,
        limits="26 snapshots of 500 steps, two layers; hidden units have no order, so a turned "
        "solution and another one look alike.",
    ),
    _recipe(
        "execution-figure-2",
        "Attention entropy at the read-out over training",
        "entropy drops sharply and smoothly, and its timing correlates with the stabilisation of "
        "the weights' rank.",
        "sec. 4.2, Fig. 2",
        attention_judges.attention_and_rank,
        (_ATTENTION, _ACCURACY, _RANK),
        limits="a correlation over seeds needs five; two of an easy task show only whether times "
        "coincide.",
    ),
    _recipe(
        "execution-figure-3",
        "Commutators of gradient steps over training",
        "commutators remain large throughout training, with frequent spikes, despite convergence.",
        "Fig. 3",
        update_judges.commuting,
        (_COMMUTATORS, _ACCURACY),
        checkpoints=(41, 11),
        limits="the spikes after thousands of steps: 500 steps end where training converges.",
    ),
    _recipe(
        "execution-figure-4",
        "Commutators projected onto the trajectory's directions",
        "the ratio of the projected commutator to the whole rapidly approaches zero.",
        "sec. 3.3.2, Fig. 4",
        update_judges.avoidance,
        (_PROJECTION,),
        checkpoints=(41, 11),
        limits="three pairs of batches on 11 snapshots; no interval of a median holds with so few.",
    ),
    _recipe(
        "execution-figure-5",
        "Commutators inside and outside the trajectory's directions",
        "the perpendicular component accounts for more than 95 % of the total magnitude.",
        "Fig. 5",
        update_judges.outside,
        (_PROJECTION,),
        checkpoints=(41, 11),
        limits="three pairs of batches on 11 snapshots; no interval of a median holds with so few.",
    ),
    _recipe(
        "execution-figure-6",
        "Sparse latents of the read-out's state and their removal",
        "3 to 5 latents correlate with the task's structure; removing them costs little, and most "
        "early in training.",
        "sec. 4.4, Fig. 6",
        update_judges.latents,
        (SaeProbe((0,)),),
        checkpoints=(4, 4),
        seeds=5,
        limits="when removal costs most: the task is solved between two of its four checkpoints.",
    ),
    _recipe(
        "execution-curriculum",
        "Mixed training against a curriculum",
        "a curriculum leads to catastrophic forgetting of small m, mixed training does not.",
        "sec. 4.5",
        comparison_judges.forgetting,
        (_ACCURACY, _RANK),
        full=_curriculum(_FULL),
        quick=_curriculum(_QUICK),
        limits="forgetting over more than two stages of 250 steps.",
    ),
    _recipe(
        "execution-architecture",
        "Attention alone against attention with MLPs",
        "MLPs disrupt the low-dimensional structure and generalise worse.",
        "sec. 4.5",
        comparison_judges.architecture,
        (_ACCURACY, _RANK),
        full=_mlp(_FULL),
        quick=_mlp(_SMALL),
        seeds=5,
        limits="width 64 and 500 steps: the models end at different losses, and ranks go with the "
        "loss.",
    ),
    _recipe(
        "execution-multiplication",
        "Addition against multiplication",
        "multiplication needs 4 to 6 dimensions, addition 3 to 4.",
        "sec. 4.6",
        comparison_judges.equal_loss,
        (_ACCURACY, _RANK, _COMMUTATORS),
        full=_operations(_FULL),
        quick=_operations(_SMALL),
        checkpoints=(None, 11),
        seeds=5,
        limits="width 64, 11 snapshots and 500 steps: at equal loss the ranks are those of few "
        "snapshots.",
    ),
    _recipe(
        "execution-scaling",
        "Rank against m, C and depth; accuracy on m that was never trained on",
        "the dimension is stable for m up to 6 and grows with the complexity of the task.",
        "sec. 4.1, 4.3",
        partial(judges.sizes, scales=(_QUICK_SIZES, _FULL_SIZES)),
        (_ACCURACY, _RANK),
        full=_FULL_SIZES,
        quick=_QUICK_SIZES,
        checkpoints=(None, 11),
        markers=(1, 2, 3, 4, 5, 6),
        seeds=5,
        quick_texts=128,
        limits="m up to 2, one greater depth, 400 steps of width 64, 128 examples of each m; "
        "C = 16 is not solved by then, so its rank is that of an unfinished run.",
    ),
    _recipe(
        "execution-stated-training",
        "The training that the paper states",
        "plain SGD at 0.001 with batches of 64 and sequences of 32 tokens.",
        "sec. 3.2",
        comparison_judges.stated,
        (_ACCURACY, _RANK),
        full=_stated(20_000),
        quick=_stated(200),
        seeds=3,
        quick_texts=256,
        limits="whether it learns later: 200 of 20,000 steps, of 8,000 with AdamW.",
    ),
)
RECIPES = {recipe.name: recipe for recipe in _ALL}
"""The recipes by name."""
