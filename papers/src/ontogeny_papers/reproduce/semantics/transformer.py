"""A transformer that learns the contexts of a corpus: which concepts come first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import xarray as xr

from ontogeny import semantics
from ontogeny.errors import ArgumentError
from ontogeny.features.wordspace.concepts import ConceptBasis
from ontogeny.features.wordspace.support import Support
from ontogeny.figures import Band, Curves, Scatter, Section
from ontogeny.quantities import Quantity

from .. import training
from ..averages import mean_of_seeds
from ..formats import joined
from ..recipe import Findings, Materials
from ..verdicts import LEVEL, Runs, RunsOf, Verdict, decided, each, unanimous
from .free_embeddings import first_lead

_LOSSES = {"square": "square loss", "cross_entropy": "cross-entropy"}
_K = 5
_NEARER = "the logits end nearer to the directions of S̃ than of P"


@dataclass(frozen=True)
class TransformerSize:
    """Words, contexts, concepts judged, training, shuffled corpora, and seeds."""

    vocab_size: int = 300
    n_contexts: int = 2000
    concepts: int = 100
    steps: int = 2400
    records: int = 100
    width: int = 128
    batch_size: int = 250
    shuffles: int = 20
    seeds: tuple[int, ...] = (0, 1)


@dataclass(frozen=True, eq=False)
class _Corpus:
    """Concepts of a corpus and of the same corpus with shuffled next words."""

    support: Support
    bases: list[ConceptBasis]
    directions: dict[str, np.ndarray]

    @property
    def names(self) -> list[str]:
        return ["corpus", *(f"shuffled {i}" for i in range(1, len(self.bases)))]

    def measure(self, logits: np.ndarray) -> xr.Dataset:
        """Return projections on every corpus' concepts and the overlap with S̃, P, shuffled S̃."""
        along = [np.sum(b.U * (logits @ b.V), axis=0) for b in self.bases]
        Q = semantics.leading_directions(logits, _K)
        overlap = [
            semantics.subspace_overlap(U, Q, [_K])[0] for U in self.directions.values()
        ]
        return xr.Dataset(
            {
                "projection": (("corpus", "concept"), along),
                "overlap": ("matrix", overlap),
            }
        )


def measure_transformer(size: TransformerSize, materials: Materials) -> Findings:
    """Return when a transformer learns each concept of a text, by loss and seed."""
    support = materials.support(size.vocab_size, size.n_contexts)
    corpus = _corpus(support, size)
    runs_of = {
        label: materials.of_seeds(
            loss, f"transformer, {label}", size.seeds, partial(_run, corpus, loss, size)
        )
        for loss, label in _LOSSES.items()
    }
    square, entropy = runs_of.values()
    numbers = (square, entropy, support.shape[0])
    nodes = {"order": _order_view(runs_of), "directions": _overlap_view(runs_of)}
    return Findings(nodes, numbers)


def judge_transformer(square: Runs, entropy: Runs, words: int) -> list[Verdict]:
    """Judge the order of learning and the directions of the logits, under each loss."""
    return [
        _of_order("square loss: larger singular values are learned first", square),
        _of_order("cross-entropy: larger singular values are learned first", entropy),
        _of_end(f"square loss: {_NEARER}", square, words),
        _of_end(f"cross-entropy: {_NEARER}", entropy, words),
        _of_start(entropy),
    ]


def _corpus(support: Support, size: TransformerSize) -> _Corpus:
    k = min(size.concepts, min(support.shape) - 1)
    shuffled = [semantics.shuffled_next_words(support, i) for i in range(size.shuffles)]
    bases = [semantics.svd_concepts(matrix, k) for matrix in (support, *shuffled)]
    # Shuffling a small text leaves fewer concepts.
    common = min(basis.k for basis in bases)
    if common < k:
        bases = [
            semantics.svd_concepts(matrix, common) for matrix in (support, *shuffled)
        ]
    probabilities = semantics.svd_concepts(support, _K, of="P")
    directions = {"S̃": bases[0].U, "centred P": probabilities.U}
    directions |= {f"shuffled {i}": b.U for i, b in enumerate(bases[1:], 1)}
    fewest = min(U.shape[1] for U in directions.values())
    if fewest < _K:
        raise ArgumentError(
            f"text must hold at least {_K} concepts that words differ in, also where its next "
            f"words are shuffled; this one has {fewest}. Give more text."
        )
    return _Corpus(support, bases, directions)


def _run(corpus: _Corpus, loss: str, size: TransformerSize, seed: int) -> xr.Dataset:
    support = corpus.support
    S = support.S.toarray()
    task = training.ContextTask(
        support.contexts.ids,  # type: ignore[attr-defined]
        S - S.mean(axis=0) if loss == "square" else support.P.toarray(),
        loss,
        batch_size=size.batch_size,
    )
    model = training.context_model(
        len(S), task.ids.shape[1], width=size.width, random_state=seed
    )
    run = training.record_logits(
        model,
        task,
        size.steps,
        at=training.spaced_steps(size.steps, size.records),
        measure=corpus.measure,
        random_state=seed,
    )
    series = run.projection.transpose("corpus", "concept", "step").values
    last = np.where(series[..., -1] > 0, series[..., -1], np.nan)
    learned = semantics.first_crossing(run.step, series, last / 2)
    order = [
        semantics.learning_order(
            basis.sigma, learned_at, n_draws=999, random_state=seed
        )
        for basis, learned_at in zip(corpus.bases, learned, strict=True)
    ]
    names = list(corpus.directions)
    overlap = run.overlap.assign_coords(matrix=names)
    control = overlap.isel(matrix=slice(2, None))
    return xr.Dataset(
        {
            "learned": ("concept", learned[0]),
            "sigma": ("concept", corpus.bases[0].sigma),
            "spearman": ("corpus", [comparison.spearman for comparison in order]),
            "p_value": order[0].p_value,
            "overlap": overlap.isel(matrix=slice(0, 2)),
            "shuffled_low": control.quantile(0.025, "matrix", skipna=False).drop_vars(
                "quantile"
            ),
            "shuffled_high": control.quantile(0.975, "matrix", skipna=False).drop_vars(
                "quantile"
            ),
        },
        coords={"concept": np.arange(1, len(learned[0]) + 1), "corpus": corpus.names},
    )


def _of_order(claim: str, runs: Runs) -> Verdict:
    mine = each(runs, lambda run: run.spearman[0])
    others = np.concatenate([run.spearman.values[1:] for run in runs])
    low, high = np.nanquantile(others, [0.025, 0.975])
    p = max(float(run.p_value) for run in runs)
    return Verdict(
        claim,
        decided(p <= LEVEL and (mine > high).all(), (mine <= 0).all()),
        f"rank correlation of σₖ and minus the step of half the last projection, "
        f"{runs[0].sizes['concept']} concepts: {joined(mine)}",
        f"shuffled next words' concepts, 95 %: {low:.2f} to {high:.2f}; random orders p = {p:.1g}",
    )


def _of_end(claim: str, runs: Runs, words: int) -> Verdict:
    ends = [run.overlap.isel(step=-1) for run in runs]
    mine, other = (
        np.array([float(e.sel(matrix=name)) for e in ends])
        for name in ("S̃", "centred P")
    )
    high = max(float(run.shuffled_high[-1]) for run in runs)
    return Verdict(
        claim,
        unanimous((mine > high) & (mine > other)),
        f"overlap at k = {_K}: {joined(mine)}",
        f"centred P {joined(other)}; shuffled next words at most {high:.2f}, chance "
        f"{_K / (words - 1):.2f}",
    )


def _of_start(runs: Runs) -> Verdict:
    """Judge what free embeddings show: centred P leads first."""
    rows = []
    for run in runs:
        P, S = (run.overlap.sel(matrix=name).values for name in ("centred P", "S̃"))
        early = first_lead(P, S)
        rows.append((P[early], S[early], float(run.shuffled_high[early])))
    first, beside, high = np.array(rows).T
    return Verdict(
        "cross-entropy: centred P leads first, as in free embeddings",
        unanimous((first > beside) & (first > high)),
        f"overlap with centred P at k = {_K} where one of the two is first half-way to its "
        f"highest: {joined(first)}",
        f"S̃ at the same step {joined(beside)}; shuffled next words at most {high.max():.2f}",
        of_paper=False,
    )


def _order_view(runs_of: RunsOf) -> xr.Dataset:
    quantities = (
        Quantity("sigma", "singular value", symbol="σₖ", figure=False),
        Quantity("learned", "step at which half is learned", "steps", figure=False),
    )
    figure = Scatter(
        "order",
        "When each concept is learned",
        x="sigma",
        y="learned",
        points="concept",
        facet="run",
        x_scale="log",
        y_scale="log",
        caption="Each point is a concept; mean over the seeds. Concepts that one seed does not "
        "learn are left out.",
    )
    section = Section(
        "Order of learning",
        "Step at which the logits' projection on a concept reaches half of its last value.",
        null="Concepts of corpora with shuffled next words, measured on the same logits.",
        care="Cross-entropy logits grow without end, so half of the last value depends on when "
        "one stops.",
    )
    taken = {
        label: [r[["learned", "sigma"]] for r in runs]
        for label, runs in runs_of.items()
    }
    return mean_of_seeds(taken, quantities, section, figures=[figure])


def _overlap_view(runs_of: RunsOf) -> xr.Dataset:
    overlap = Quantity(
        "overlap",
        "overlap of the leading directions",
        symbol="‖UₖᵀQₖ‖²/k",
        figure=False,
    )
    figure = Curves(
        "overlap",
        f"Which matrix's {_K} leading directions the logits have",
        value="overlap",
        series="matrix",
        facet="run",
        bands=[Band("shuffled_low", "shuffled_high", "shuffled next words, 95 %")],
    )
    section = Section(
        "Directions of the logits",
        "Share of the logits' leading directions that lies in those of the support matrix, or of "
        "the conditional probabilities.",
        null="Support matrices of the same words and contexts with shuffled next words.",
        care="Word frequency alone gives far more than chance.",
    )
    names = ["overlap", "shuffled_low", "shuffled_high"]
    taken = {label: [run[names] for run in runs] for label, runs in runs_of.items()}
    return mean_of_seeds(taken, [overlap], section, figures=[figure])
