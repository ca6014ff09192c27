"""Orthants of a model's own word embeddings: recorded runs, or a small one (Figs 7, 15 to 17)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch

from ontogeny import capture, semantics
from ontogeny.claims import Reason
from ontogeny.errors import ArgumentError, CheckpointError
from ontogeny.start.source import names_of, open_source
from ontogeny.training.loop import train
from ontogeny.trajectory import Trajectory, UnknownRevisionError
from ontogeny.trajectory.checkpoint import Checkpoint
from ontogeny.trajectory.opening import Catalogue
from ontogeny.trajectory.untrained import untrained_like
from ontogeny.trajectory.weights.folders import find_weights

from ...observables.words.views.clouds import orthants_view
from .. import training
from ..recipe import Findings, Materials
from ..verdicts import Runs, Verdict, unanimous
from .groupings import (
    AGREEMENT,
    as_dataset,
    groupings_of_models,
    known_classes,
    of_rotation,
    orthant_scores,
    recognised,
    score_of,
    spread,
)

_LENGTH = 16  # words of a crop
_LEARNING_RATE = 3e-3
_MARKS = ("Ġ", "▁")  # of tokens that begin a word
_STATES = ("untrained", "trained")

Embedded: TypeAlias = Mapping[str, tuple[np.ndarray, tuple[str, ...]]]
"""Word embeddings (V, d) and their words, of the untrained and the trained model."""


@dataclass(frozen=True)
class PretrainedSize:
    """Training where no run is given, concepts of the orthants, draws of each null, seeds."""

    vocab_size: int = 1000
    width: int = 128
    steps: int = 2000
    dims: tuple[int, ...] = (4, 5, 6)
    n_draws: int = 100
    seeds: tuple[int, ...] = (0, 1, 2)


def measure_pretrained(size: PretrainedSize, materials: Materials) -> Findings:
    """Return orthants of word embeddings beside random groups, rotated axes and untrained models.

    Raises
    ------
    ArgumentError
        If a recorded run has no tokenizer, its tokens or the text are not of English words, or both
        runs and a text are given.
    """
    embedded: dict[str, Callable[[], Embedded]]
    if materials.sources:
        if materials.text is not None:
            raise ArgumentError(
                "give sources or text: recorded runs are not trained on the text."
            )
        names = names_of(materials.sources)
        pairs = zip(names, materials.sources, strict=True)
        embedded = {
            name: partial(recorded_embeddings, source) for name, source in pairs
        }
    else:
        embedded = {
            f"seed {seed}": partial(_trained, seed, size, materials)
            for seed in size.seeds
        }
    runs = {}
    for name, read in embedded.items():
        materials.progress.note(f"{name}: orthants of word embeddings")
        runs[name] = materials.pieces.piece_nodes(
            f"run-{name.replace(' ', '-')}", partial(_measured, name, read, size)
        )
    scores = {name: nodes.pop("scores") for name, nodes in runs.items()}
    view = groupings_of_models(
        scores,
        "Orthants of each model's word embeddings, trained and untrained.",
        "A new model of the same kind and size stands for the untrained one. Tokens that begin a "
        "word may be pieces of one, as “strugg” is: they take part in the concepts, and no "
        "piece is scored, as only words of the classes are.",
    )
    first = next(iter(runs.values()))
    numbers = (list(scores.values()), list(size.dims))
    return Findings({"groupings": view, **first}, numbers)


def _measured(
    name: str, read: Callable[[], Embedded], size: PretrainedSize
) -> dict[str, Any]:
    """Return the scores of one model's orthants, and the words of each orthant."""
    all_scores: dict[str, semantics.Score] = {}
    nodes = {}
    for state, (W, words) in read().items():
        basis = semantics.embedding_concepts(W, k=max(size.dims), words=words)
        labels = known_classes(words, name)
        scores = orthant_scores(basis, labels, size.dims, size.n_draws)
        all_scores |= {
            f"{grouping}, {state}": score for grouping, score in scores.items()
        }
    for p in size.dims:  # of the trained model, which comes last
        title = f"Orthants of {p} concepts: {name}"
        nodes[f"orthants-{p}"] = orthants_view(
            semantics.orthants(basis, p), title=title
        )
    return {"scores": as_dataset(all_scores), **nodes}


def judge_pretrained(runs: Runs, dims: Sequence[int]) -> list[Verdict]:
    """Judge orthants of the first p concepts, for each p of `dims`, and their axes."""
    scores = {
        p: {
            state: [score_of(run, f"orthants of {p} concepts, {state}") for run in runs]
            for state in _STATES
        }
        for p in dims
    }
    return [
        *(_of_depth(p, *scores[p].values()) for p in dims),
        of_rotation([score for p in dims for score in scores[p]["trained"]]),
    ]


def _of_depth(
    p: int, untrained: list[semantics.Score], trained: list[semantics.Score]
) -> Verdict:
    holds = [
        recognised(mine) if mine.value > before.value else False
        for mine, before in zip(trained, untrained, strict=True)
    ]
    return Verdict(
        f"orthants of {p} concepts of word embeddings are groups that people recognise",
        None if None in holds else unanimous([bool(each) for each in holds]),
        "adjusted mutual information with word classes "
        + ", ".join(f"{s.value:.2f}" for s in trained),
        f"random groups of the same sizes {', '.join(spread(s.permuted) for s in trained)}; "
        f"untrained {', '.join(f'{round(s.value, 2) + 0.0:.2f}' for s in untrained)}; "
        f"{AGREEMENT:g} at least counts",
        reason=Reason.SMALL if None in holds else Reason.CASES_DIFFER,
    )


# ---- word embeddings of recorded runs and of a small model --------------------------------------


def recorded_embeddings(source: str) -> Embedded:
    """Return the word embeddings of the last checkpoint of a run, and of a new model like it.

    Only tokens that are whole words are taken: those that begin a word, where the tokenizer marks
    them, and consist of letters and digits.

    Parameters
    ----------
    source
        A folder or file, or OWNER/NAME on the Hub; one model counts as a run of one checkpoint.

    Raises
    ------
    ArgumentError
        If it has no tokenizer, or none of its tokens is a word.
    CheckpointError
        If there are no weights.
    """
    model, tokenizer = opened_model(source)
    of = "input" if model.get_output_embeddings() is None else "decoder"
    keep = words_of(tokenizer)
    both = {"untrained": untrained_like(model), "trained": model}
    embeddings = {
        state: capture.word_embeddings(state_model, tokenizer, of=of, keep=keep)
        for state, state_model in both.items()
    }
    return {state: (one.W, plain_words(one.words)) for state, one in embeddings.items()}


def opened_model(source: str) -> tuple[Any, Any]:
    """Return the model of the last checkpoint of a run, and its tokenizer.

    Raises
    ------
    ArgumentError
        If it has no tokenizer.
    CheckpointError
        If there are no weights.
    """
    trajectory = _opened(source)
    tokenizer = trajectory.tokenizer()
    if tokenizer is None:
        raise ArgumentError(
            f"source {source!r} has no tokenizer, so the words of its embeddings are not known."
        )
    return trajectory.checkpoints[-1].model(), tokenizer


def _opened(source: str) -> Trajectory:
    """Return the trajectory of a source; that of one checkpoint where it is one model."""
    try:
        return open_source(source)
    except UnknownRevisionError:
        return Trajectory.from_hub(source, lambda name: 0 if name == "main" else None)
    except CheckpointError:
        folder = Path(source).expanduser().resolve()
        if not (folder / "config.json").is_file():
            raise
        one = Checkpoint(0, folder.name, folder, find_weights(folder), None)
        return Trajectory((one,), folder.name, Catalogue((0,)), folder)


def plain_words(tokens: Iterable[str]) -> tuple[str, ...]:
    """Return tokens without the marks that begin a word."""
    return tuple(token.lstrip("".join(_MARKS)) for token in tokens)


def words_of(tokenizer: Any) -> Callable[[str], bool]:
    """Return which tokens are whole words."""
    marked = any(token.startswith(_MARKS) for token in tokenizer.get_vocab())

    def is_word(token: str) -> bool:
        return (
            token.startswith(_MARKS) == marked
            and token.lstrip("".join(_MARKS)).isalnum()
        )

    return is_word


def _trained(seed: int, size: PretrainedSize, materials: Materials) -> Embedded:
    """Train a small causal language model on the text's most frequent words."""
    stream = materials.words
    counts = np.bincount(stream.ids[stream.ids >= 0], minlength=len(stream.words))
    word_rows = np.argsort(-counts, kind="stable")[: size.vocab_size]
    ids = training.rows_of(stream.ids, word_rows, len(stream.words))
    task = training.RunningTask(ids, np.array([[0]]), len(word_rows), length=_LENGTH)
    model = training.context_model(
        len(word_rows) + 1, _LENGTH, width=size.width, random_state=seed
    )
    words = tuple(stream.words[i] for i in word_rows)

    def embeddings() -> tuple[np.ndarray, tuple[str, ...]]:
        return capture.word_embeddings(model).W[: len(word_rows)].copy(), words

    untrained = embeddings()
    optimizer = torch.optim.Adam(model.parameters(), lr=_LEARNING_RATE)
    train(
        model,
        task.sample,
        task.loss,
        size.steps,
        optimizer=optimizer,
        random_state=seed,
        progress=materials.training,
    )
    return {"untrained": untrained, "trained": embeddings()}
