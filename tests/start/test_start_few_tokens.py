"""Models of few tokens, as of chains of two states: what cannot be is left out before the start."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.model_facts import plain_facts
from helpers.own_model import write_own
from ontogeny.capture.vocabulary_map import Readout
from ontogeny.features.concepts.described import WRITTEN, vocabulary
from ontogeny.observables.registry import make
from ontogeny.start import draft
from ontogeny.start.places import of_places
from ontogeny.start.presets import PRESETS, fitted, preset_named
from ontogeny.study.file import make_sources

FACTS = plain_facts(width=8, layers=("a", "b"))


@pytest.mark.parametrize(("tokens", "top"), [(2, 2), (5, None), (None, None)])
def test_no_more_answers_are_kept_than_there_are_tokens(tokens, top):
    tables, left_out = fitted(
        preset_named("circuits"), replace(FACTS, tokens=tokens), 9
    )
    (table,) = [entry for entry in tables if entry["kind"] == "predictions"]
    assert table.get("top") == top
    is_few = tokens is not None
    assert ("text-statistics" in left_out) == is_few
    assert ("attention-heads" in left_out) == is_few
    assert not is_few or left_out["attention-heads"].startswith(f"Chain has {tokens} ")


@pytest.mark.parametrize(
    ("tokens", "is_even", "is_had"), [(3, 1, 1), (500, 1, 0), (3, 0, 0)]
)
def test_long_rows_of_few_kinds_of_tokens_get_the_loss_by_place(
    tokens, is_even, is_had
):
    """What a Markov chain teaches in context shows there; of language a preset has it."""
    rows = np.random.default_rng(0).integers(0, tokens, (30, 64)).tolist()
    inputs = og.Inputs.from_tokens(rows if is_even else [*rows, [0, 1, 2]])
    asked = of_places({"observables": []}, inputs, preset_named("quick"), FACTS)
    assert [entry["kind"] for entry in asked] == ["place-losses"] * is_had


def test_concepts_of_a_small_vocabulary_have_as_many_places_as_any():
    data = vocabulary(np.eye(4), Readout(torch.eye(4)[:2], (), True), 0)
    assert data["written_up_id"].dims == ("concept", "rank")
    ids = data["written_up_id"].values
    assert ids.shape == (4, WRITTEN)
    assert all(np.isfinite(values).all() for values in data.values())
    assert (ids[:, 2:] == -1).all() and (ids[:, :2] >= 0).all()


def test_places_are_proposed_on_training_texts_where_there_are_some(monkeypatch):
    asked = []
    monkeypatch.setattr(
        draft, "proposed_places", lambda run, texts: asked.append(texts)
    )
    for sets in ({"text": "held-out", "training": "training"}, {"text": "held-out"}):
        assert draft._scored_places(None, sets, lambda line: True) == ({}, [])
    assert asked == ["training", "held-out"]


def test_rows_that_look_padded_are_named_and_end_where_the_study_says(tmp_path):
    own = write_own(tmp_path)
    ids = np.full((30, 6), 9)
    ids[:, :2] = np.random.default_rng(0).integers(0, 8, size=(30, 2))
    np.save(tmp_path / "games.npy", ids)
    content = {
        "trajectory": {
            "folder": str(own / "out"),
            "model": str(own / "model.py:build"),
        },
        "inputs": {"tokens": str(Path(tmp_path / "games.npy"))},
        "observables": [],
    }
    (texts,) = make_sources(content, tmp_path)[1].values()
    assert texts.mask.all()
    assert "--set inputs.pad_token_id=9" in texts.warnings[0]
    content["inputs"]["pad_token_id"] = 9
    (texts,) = make_sources(content, tmp_path)[1].values()
    assert texts.lengths.tolist() == [2] * 30 and not texts.notes


@pytest.mark.parametrize(
    "rows", [[[3, 4, 5, 6, 7]] * 30, [[3, 4, 5] * 20], [[3, 4]] * 8], ids=len
)
@pytest.mark.parametrize("score", ["all", "last:1"])
@pytest.mark.parametrize("name", list(PRESETS))
def test_a_preset_asks_nothing_that_its_texts_cannot_answer(name, rows, score):
    """`--preset everything` on sums of ten tokens ended in an error about an argument of its own."""
    inputs = og.Inputs.from_tokens(rows, score=score)
    tables, left_out = fitted(preset_named(name), replace(FACTS, tokens=500), 9)
    kept = draft._readable(tables, {"text": inputs}, left_out)
    for table in kept:
        make(**table).check_inputs({"text": inputs})
    for table in tables:
        assert table in kept or left_out[table["kind"]]
    asked = {table["kind"] for table in tables}
    if "in-context-learning" in asked and score != "all":
        assert "in-context-learning" in left_out
