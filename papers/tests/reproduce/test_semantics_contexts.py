"""Contexts of a decoder: planted signs, untrained models, judges, what is refused."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
import xarray as xr

import ontogeny as og
from ontogeny import semantics, tasks
from ontogeny.errors import ArgumentError
from ontogeny_papers.reproduce.semantics import RECIPES, Materials, contexts

SIZE = contexts.ContextsSize(windows=40, dims=(1, 2), n_draws=19)
MONTHS, PAST = ("may", "june", "july", "april"), ("walked", "looked", "jumped", "asked")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    rng = np.random.default_rng(0)
    lines = [
        " ".join(w for _ in range(9) for w in (rng.choice(MONTHS), rng.choice(PAST)))
        for _ in range(60)
    ]
    path = tmp_path_factory.mktemp("text") / "months.txt"
    path.write_text("\n\n".join(lines), encoding="utf-8")
    return path


def saved(folder, text, planted):
    """Save a decoder that puts months and past forms on two sides of an axis, or one that does not.

    Its states are read from the last token alone, of the other class than the one that follows.
    """
    tokenizer = tasks.train_tokenizer([text.read_text("utf-8")] * 2, 300)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=8,
        n_layer=1,
        n_head=1,
        n_positions=16,
        bos_token_id=None,
        eos_token_id=None,
        tie_word_embeddings=False,
    )
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config)
    if planted:
        classes = semantics.word_classes(list(tokenizer.get_vocab()))
        with torch.no_grad():
            for parameter in model.transformer.h.parameters():
                parameter.zero_()
            model.transformer.wpe.weight.zero_()
            for token, i in tokenizer.get_vocab().items():
                side = {"month": 1.0, "past": -1.0}.get(classes.get(token), 0.0)
                model.lm_head.weight[i] *= 0.1
                model.lm_head.weight[i, 0] = side
                model.transformer.wte.weight[i, 0] = -side
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def test_planted_signs_are_seen_and_those_of_an_untrained_decoder_are_not(
    text, tmp_path
):
    def judged(source):
        found = contexts.measure_contexts(SIZE, Materials(text, sources=(source,)))
        return contexts.judge_contexts(*found.numbers)

    one, _, alike, *_ = judged(saved(tmp_path / "planted", text, True))
    assert one.holds and alike.holds, (one, alike)
    assert not any(v.holds for v in judged(saved(tmp_path / "empty", text, False)))


def lifts(value, exchanged, untrained):
    scores = {
        "4, untrained": semantics.Score(untrained, np.full(39, 1.0), np.ones(2)),
        "4, trained": semantics.Score(value, np.full(39, exchanged), np.ones(2)),
    }
    return contexts.as_dataset(scores).assign(share=("grouping", [0.1, 0.7]))


@pytest.mark.parametrize(
    ("value", "exchanged", "untrained", "holds"),
    [
        (3.0, 1.0, 1.0, True),
        (3.0, 2.0, 1.0, None),
        (0.9, 1.0, 0.8, False),
        (3.0, 1.0, 4.0, False),
    ],
)
def test_a_lift_counts_beyond_that_of_exchanged_words(
    value, exchanged, untrained, holds
):
    verdict = contexts._of_lift(4, [lifts(value, exchanged, untrained)])
    assert (
        verdict.holds is holds and "fullest orthant 70% of contexts" in verdict.beside
    )
    differing = [lifts(3.0, 1.0, 1.0), lifts(0.9, 1.0, 0.8)]
    assert contexts._of_lift(4, differing).holds is None


@pytest.mark.parametrize(
    ("last", "following", "holds"),
    [(0.3, 0.0, True), (0.0, 0.07, None), (-0.01, -0.02, False)],
)
def test_contexts_are_alike_by_the_word_that_agrees_better(last, following, holds):
    none = np.zeros(39)
    scores = contexts.as_dataset(
        {
            f"orthants of 4 concepts, {side}, {state}": semantics.Score(
                value, none, none
            )
            for state in ("untrained", "trained")
            for side, value in (
                ("last word", -0.03 if state == "untrained" else last),
                ("next word", -0.04 if state == "untrained" else following),
            )
        }
    )
    verdict = contexts._of_classes(4, [scores])
    assert verdict.holds is holds and "0.1 at least counts" in verdict.beside


def test_the_page_of_a_run_names_it_and_shows_its_contexts(text, tmp_path):
    source = saved(tmp_path / "tiny-decoder", text, True)
    recipe = replace(RECIPES["semantics-contexts"], quick=SIZE)
    page = recipe.run(tmp_path / "out", quick=True, text=text, sources=[source])
    result = og.open_study(page.parent).result.load()  # it is written anew below
    assert result.attrs["title"].startswith(
        "Contexts of a pretrained decoder: tiny-decoder ("
    )
    assert {"orthants-1", "orthants-2", "groupings"} <= set(result.children)
    words = set(MONTHS + PAST)
    shown = " ".join(result["orthants-1"].context.values.ravel()).split()
    assert words & set(shown)
    xr.testing.assert_identical(  # goes on where it was
        og.open_study(
            recipe.run(tmp_path / "out", quick=True, text=text, sources=[source]).parent
        )
        .result["verdict"]
        .to_dataset(),
        result["verdict"].to_dataset(),
    )


def test_what_cannot_be_read_is_refused_by_name(text, tmp_path, monkeypatch):
    monkeypatch.setattr(contexts, "PACKAGE", "no_such_package")
    with pytest.raises(
        ArgumentError, match=r"none is there: pip install .* or name one"
    ):
        RECIPES["semantics-contexts"].run(tmp_path / "out", quick=True)
    short = tmp_path / "short.txt"
    short.write_text("in may", encoding="utf-8")
    source = saved(tmp_path / "model", text, False)
    with pytest.raises(
        ArgumentError, match="text must hold two windows of 11 tokens; it has 0"
    ):
        contexts.measure_contexts(SIZE, Materials(short, sources=(source,)))


def test_an_installed_decoder_is_the_file_of_the_package(tmp_path, monkeypatch):
    (tmp_path / "some_decoder").mkdir()
    (tmp_path / "some_decoder" / "__init__.py").touch()
    (tmp_path / "some_decoder" / "small.gguf").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(contexts, "PACKAGE", "some_decoder")
    assert contexts.installed_decoder() == str(tmp_path / "some_decoder" / "small.gguf")
