"""Orthants of word embeddings of given models: planted classes, untrained models, refusals."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

import ontogeny as og
from ontogeny import semantics, tasks
from ontogeny.errors import ArgumentError, CheckpointError
from ontogeny_papers.reproduce.semantics import (
    RECIPES,
    Materials,
    groupings,
    pretrained,
)

SIZE = pretrained.PretrainedSize(dims=(1, 2), n_draws=39, seeds=(0,))
TEXT = (
    "in may june july march april we saw two three four five six dogs and cats under over with "
    "from into of the sea walked looked jumped asked called"
)


@pytest.fixture(scope="module")
def tokenizer():
    return tasks.train_tokenizer([TEXT] * 20, 420)


def saved(folder, tokenizer, planted, seed=0):
    """Save a model in which words of a class share a direction, or in which none do."""
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=16,
        n_layer=1,
        n_head=2,
        n_positions=8,
        bos_token_id=None,
        eos_token_id=None,
    )
    torch.manual_seed(seed)
    model = transformers.GPT2LMHeadModel(config)
    classes = semantics.word_classes(list(tokenizer.get_vocab()))
    names, rng = sorted(set(classes.values())), np.random.default_rng(seed)
    corners = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1.0]])
    with torch.no_grad():
        for token, i in tokenizer.get_vocab().items():
            where = (
                names.index(classes[token]) % 4 if token in classes else rng.integers(4)
            )
            noise = torch.from_numpy(rng.normal(size=16) * 0.01)
            if planted:
                model.transformer.wte.weight[i] = noise
                model.transformer.wte.weight[i, :2] += torch.from_numpy(
                    corners[where] * [1.3, 1]
                )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def judged(*sources):
    found = pretrained.measure_pretrained(SIZE, Materials(sources=sources))
    return pretrained.judge_pretrained(*found.numbers)


def test_planted_classes_are_found_and_untrained_embeddings_hold_none(
    tokenizer, tmp_path
):
    planted = saved(tmp_path / "planted", tokenizer, True)
    empty = saved(tmp_path / "empty", tokenizer, False)
    _, two, _ = judged(planted)
    assert two.holds and float(two.measured.split()[-1]) > 0.5
    assert not any(v.holds for v in judged(empty))
    assert judged(planted, empty)[1].holds is None  # runs that differ decide nothing


@pytest.mark.parametrize(
    ("value", "holds"), [(0.3, True), (0.07, None), (-0.01, False)]
)
def test_agreement_above_chance_that_nobody_would_see_is_not_shown(value, holds):
    score = semantics.Score(value, np.zeros(39), None)
    verdict = pretrained._of_depth(
        4, [semantics.Score(-0.02, np.zeros(39), None)], [score]
    )
    assert verdict.holds is holds and "0.1 at least counts" in verdict.beside
    assert groupings.of_groups("groups", score).holds is holds


def test_the_last_checkpoint_of_a_run_is_read_and_the_page_names_the_run(
    tokenizer, tmp_path
):
    saved(tmp_path / "run" / "step0", tokenizer, False)
    saved(tmp_path / "run" / "step5", tokenizer, True)
    recipe = replace(RECIPES["semantics-pretrained"], quick=SIZE)
    page = recipe.run(tmp_path / "out", quick=True, sources=[str(tmp_path / "run")])
    result = og.open_study(page.parent).result
    assert result.attrs["title"].startswith(
        "Orthants of a model's own word embeddings: run ("
    )
    assert result["verdict"].kind.values[1] == "reproduces"
    assert {"orthants-1", "orthants-2", "groupings"} <= set(result.children)
    assert "Recorded runs, not trained here: " in page.read_text(encoding="utf-8")


def test_only_whole_words_are_taken(tokenizer, tmp_path):
    folder = saved(tmp_path / "model", tokenizer, False)
    (_, words), (_, others) = pretrained.recorded_embeddings(folder).values()
    assert words == others and {"june", "three", "walked"} <= set(words)
    assert all(word.isalnum() for word in words) and len(set(words)) == len(words)


def test_a_piece_model_without_marks_takes_tokens_that_begin_a_word():
    class Pieces:
        def get_vocab(self):
            return {"june": 0, "##ly": 1, ".": 2}

    keep = pretrained.words_of(Pieces())
    assert [keep(token) for token in ("june", "##ly", ".")] == [True, False, False]


def test_what_cannot_be_read_is_refused_by_name(tokenizer, tmp_path):
    folder = tmp_path / "bare"
    saved(folder, tokenizer, False)
    for path in folder.glob("*token*"):
        path.unlink()
    with pytest.raises(ArgumentError, match=r"bare' has no tokenizer"):
        pretrained.recorded_embeddings(str(folder))
    (tmp_path / "none").mkdir()
    with pytest.raises(CheckpointError, match="holds no checkpoints"):
        pretrained.recorded_embeddings(str(tmp_path / "none"))
    text = tmp_path / "own.txt"
    text.write_text("a b", encoding="utf-8")
    with pytest.raises(ArgumentError, match="give sources or text"):
        pretrained.measure_pretrained(SIZE, Materials(text, sources=(str(folder),)))
