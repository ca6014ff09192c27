"""A world of organisms: are broad classes learned before fine ones? (Fig. 3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import xarray as xr
from scipy.stats import rankdata
from torch import nn

from ontogeny import semantics
from ontogeny.claims import Reason
from ontogeny.features.wordspace.concepts import ConceptBasis
from ontogeny.figures import Section
from ontogeny.quantities import Quantity

from ...capture.embeddings import word_embeddings
from ...observables.words.views.clouds import tree_view
from ...observables.words.views.maps import concepts_view
from ...observables.words.views.training import confusion_view
from .. import tasks, training
from ..averages import mean_of_seeds
from ..formats import joined
from ..recipe import Findings, Materials
from ..verdicts import LEVEL, Runs, RunsOf, Verdict, decided, each, unanimous, why_open
from .organism_embeddings import embeddings_view, judge_embeddings, measure_embeddings
from .organism_geometry import Geometry, count_concepts, judge_concepts, p_value

_ENTROPY = "cross_entropy"
_RUNS = {
    "Adam 1e-3": (_ENTROPY, 1e-3),
    "Adam 1e-4": (_ENTROPY, 1e-4),
    "square loss": ("square", 5e-4),
}
_OF_ENTROPY = [label for label, (loss, _) in _RUNS.items() if loss == _ENTROPY]


@dataclass(frozen=True)
class OrganismSize:
    """Epochs at the faster and the slower learning rates, width, draws of the null, seeds."""

    epochs: int = 80
    slow_epochs: int = 300
    width: int = 128
    n_draws: int = 999
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)


def measure_organisms(size: OrganismSize, materials: Materials) -> Findings:
    """Return what a small transformer learns of a built-in hierarchy, and in which order."""
    world = tasks.organism_world()
    basis = semantics.svd_concepts(world.S, 6)
    readable_basis = ConceptBasis(
        basis.U,
        basis.sigma,
        basis.V,
        world.subjects,
        tuple(tuple(c.split()) for c in world.contexts),
        basis.source,
    )
    runs_of: dict[str, list[xr.Dataset]] = {}
    for label, (loss, rate) in _RUNS.items():
        runs_of[label] = materials.of_seeds(
            f"{loss}-{rate:g}",
            f"transformer, {label}",
            size.seeds,
            partial(_run, world, basis, loss, rate, size),
        )
    first = runs_of[next(iter(_RUNS))][0]
    geometry = Geometry(world, basis, size.n_draws)
    confusion = first[["confusion", "exact", "superset"]].sel(
        step=training.spaced_steps(size.epochs, 7)
    )
    nodes = {
        "learning": _view(runs_of),
        "confusion": confusion_view(
            confusion, care="One seed; the largest sets come for free."
        ),
        "embeddings": embeddings_view(geometry, first),
        "concepts": concepts_view(readable_basis),
        "refinement": tree_view(semantics.refinement_tree(readable_basis, 3)),
    }
    of_runs = {
        label: [run.drop_vars(["W", "H"]) for run in runs]
        for label, runs in runs_of.items()
    }
    of_concepts = measure_embeddings(geometry, runs_of, _OF_ENTROPY)
    numbers = (count_concepts(geometry), of_concepts, of_runs)
    return Findings(nodes, numbers)


def judge_organisms(
    concepts: dict[str, Any], embeddings: dict[str, Any], runs_of: RunsOf
) -> list[Verdict]:
    """Judge what concepts distinguish, where networks put words, and the order of learning."""
    return [
        *judge_concepts(concepts),
        *judge_embeddings(embeddings, _OF_ENTROPY),
        *_of_runs(runs_of),
    ]


def _run(
    world: tasks.OrganismWorld,
    basis: ConceptBasis,
    loss: str,
    rate: float,
    size: OrganismSize,
    seed: int,
) -> xr.Dataset:
    """Train one transformer; return its confusion, the test of its order, and ranks of concepts."""
    targets = world.P if loss == "cross_entropy" else world.S - world.S.mean(axis=0)
    task = training.ContextTask(world.context_ids, targets, loss)
    model = training.context_model(
        len(world.words),
        world.context_ids.shape[1],
        width=size.width,
        random_state=seed,
    )
    epochs = size.epochs if rate == 1e-3 else size.slow_epochs
    untrained = _embeddings(model, task)
    data = training.record_logits(
        model, task, epochs, at=range(epochs + 1), learning_rate=rate, random_state=seed
    )
    logits = data.logits.values
    table = semantics.support_confusion(
        logits, world.S, loss=loss, words=world.subjects
    )
    table = table.assign_coords(step=data.step)
    table = table.assign(
        exact=table.exact.astype(float), superset=table.superset.astype(float)
    )
    assert basis.V is not None  # of a support matrix
    along = np.einsum("vk,tvm,mk->kt", basis.U, logits, basis.V)
    sigma = basis.sigma.copy()
    # One concept: its mean does not depend on the basis of the plane.
    for plane in basis.planes:
        along[plane] = along[plane].mean(axis=0)
        sigma[plane] = sigma[plane].mean()
    last = np.where(along[:, -1] > 0, along[:, -1], np.nan)
    learned = semantics.first_crossing(data.step, along, last / 2, lasting=True)
    table = table.assign(learned=("concept", learned), sigma=("concept", sigma))
    embedded = xr.concat([untrained, _embeddings(model, task)], dim="state")
    table = table.merge(embedded.assign_coords(state=["untrained", "trained"]))
    if loss == "cross_entropy":
        # The same random classes for all seeds, which are tested together.
        test = semantics.coarse_before_fine(
            data.step.values, logits, world.S, n_draws=size.n_draws
        )
        table = table.assign(advantage=test.advantage, null=("draw", test.null))
    return table


def _embeddings(model: nn.Module, task: training.ContextTask) -> xr.Dataset:
    """Return the rows W of the vocabulary map that are subjects, and the contexts' states H."""
    W = word_embeddings(model).W[: len(task.targets)].copy()
    return xr.Dataset(
        {
            "W": (("subject", "width"), W),
            "H": (("width", "attribute"), task.states(model)),
        }
    )


def _of_runs(runs_of: RunsOf) -> list[Verdict]:
    fast, slow, square = runs_of.values()
    both = {"1e-3": fast, "1e-4": slow}
    advantage = {rate: each(runs, lambda r: r.advantage) for rate, runs in both.items()}
    null = {
        rate: np.mean([r.null for r in runs], axis=0) for rate, runs in both.items()
    }
    p_values = {
        rate: p_value(null[rate], float(a.mean())) for rate, a in advantage.items()
    }
    ends = [float(r.exact[-1]) for r in (*fast, *slow)]
    starts = [float(r.exact[0]) for r in (*fast, *slow)]
    return [
        Verdict(
            "the network learns the support set of every context",
            unanimous(np.equal(ends, 1.0)),
            f"exact in the end {min(ends):.2f} to {max(ends):.2f} of the contexts",
            f"untrained {max(starts):.2f} at most",
        ),
        Verdict(
            "its set or a larger one is predicted before its very set (Fig. 3)",
            None,
            f"all contexts from epoch {_epochs(fast, 'superset')} and {_epochs(fast, 'exact')} "
            "(Adam 1e-3)",
            "it cannot be otherwise: the first contains the second",
            reason=Reason.NO_CONTROLS,
        ),
        Verdict(
            "classes are learned ahead of random classes of their size and frequency",
            max(p_values.values()) <= LEVEL or None,
            "advantage in octaves of epochs "
            + "; ".join(f"Adam {rate}: {joined(a)}" for rate, a in advantage.items()),
            "the same random classes for all seeds, 95 % of the means: "
            + "; ".join(
                f"{np.quantile(draws, 0.025):.2f} to {np.quantile(draws, 0.975):.2f} "
                f"(p = {p_values[rate]:.2g})"
                for rate, draws in null.items()
            ),
            reason=why_open(
                [p <= LEVEL for p in p_values.values()], Reason.WITHIN_CHANCE
            ),
        ),
        Verdict(
            "classes are learned at earlier epochs than the sets within them",
            unanimous([a > 0 for a in advantage.values()], *advantage.values()),
            "; ".join(
                f"Adam {rate}: in {int((a > 0).sum())} of {len(a)} seeds"
                for rate, a in advantage.items()
            ),
            "0 octaves: at the same time",
        ),
        _of_order("square loss: larger singular values are learned first", square),
        _of_order(
            "cross-entropy: larger singular values are learned first", [*fast, *slow]
        ),
    ]


def _of_order(claim: str, runs: Runs) -> Verdict:
    values, p = _order(runs[0].sigma.values, np.stack([r.learned.values for r in runs]))
    return Verdict(
        claim,
        decided(p <= LEVEL and (values > 0).all(), (values <= 0).all()),
        f"rank correlations {joined(values)}",
        f"one random order of the six concepts for all seeds: p = {p:.2g}",
    )


def _order(sigma: np.ndarray, learned: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the rank correlations (seeds,) of learning steps (seeds, k), and their p-value.

    Seeds share the world, so an order that has nothing to do with σ would come out in all of them
    alike: concepts are exchanged in all seeds at once, in every possible way.
    """
    early = rankdata(-np.where(np.isfinite(learned), learned, np.inf), axis=1)
    early = early - early.mean(axis=1, keepdims=True)
    large = rankdata(sigma) - (len(sigma) + 1) / 2
    norms = np.linalg.norm(early, axis=1) * np.linalg.norm(large)
    correlations = early @ large / np.where(norms > 0, norms, 1.0)
    mean = (early / np.where(norms > 0, norms, 1.0)[:, None]).mean(axis=0)
    draws = large[np.array(list(permutations(range(len(sigma)))))] @ mean
    return correlations, float((draws >= large @ mean - 1e-12).mean())


def _epochs(runs: Runs, name: str) -> str:
    since = [
        float(semantics.first_crossing(r.step, r[name], 1.0, lasting=True))
        for r in runs
    ]
    finite = [s for s in since if np.isfinite(s)]
    return (
        f"{min(finite):.0f} to {max(finite):.0f}"
        if len(finite) == len(since)
        else "never"
    )


def _view(runs_of: RunsOf) -> xr.Dataset:
    share = "share of the contexts"
    quantities = (
        Quantity("exact", share, heading="the very set is predicted"),
        Quantity("superset", share, heading="that set or a larger one is predicted"),
    )
    taken = {
        label: [r[["exact", "superset"]] for r in runs]
        for label, runs in runs_of.items()
    }
    section = Section(
        "Learning the organisms",
        "A transformer of two layers learns which organisms can follow 13 attributes: under the "
        "cross-entropy at two rates of Adam, and under the square loss at 5e-4.",
        care="A larger set than the right one is predicted for free: an untrained model predicts "
        "the largest.",
    )
    data = mean_of_seeds(taken, quantities, section)
    data.step.attrs.update(long_name="epoch")
    return data
