"""Concepts of a model's own corpus along training: planted truth, controls, and what is refused."""

import json

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.word_semantics_examples import (
    STEPS,
    BigramForCausalLM,
    corpus,
    drifting,
    learning,
    next_words,
    table_of,
)
from ontogeny import semantics
from ontogeny.errors import ArgumentError
from ontogeny.observables import WordSemantics

INPUTS = corpus()
OPTIONS = {"vocab_size": 100, "lengths": (1, 1), "n_concepts": 12, "n_draws": 6}


def node(models, folder, inputs=INPUTS, **changes):
    observable = WordSemantics(**{**OPTIONS, **changes})
    result = og.Study(og.Trajectory.from_models(models), inputs, [observable]).run(
        folder
    )
    assert json.loads(result.attrs["problems"]) == []
    return result["word-semantics"].to_dataset()


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    models, basis, support = learning(INPUTS)
    return node(models, tmp_path_factory.mktemp("planted")), basis, support


def test_projections_are_the_planted_closed_form(planted):
    data, basis, _ = planted
    theory = basis.sigma * semantics.closed_form(
        basis.sigma, 3.0, 0.02 * np.array(STEPS)
    )
    found = data.projection.sel(matrix="S").transpose("step", "concept").values
    assert np.allclose(found, theory, atol=1e-4 * basis.sigma[0])


def test_logits_of_the_corpus_concepts_overlap_fully_and_shuffled_ones_do_not(planted):
    data = planted[0].sel(of="logits", matrix="S").isel(step=slice(1, None))
    assert float(data.overlap.min()) > 0.999
    # Concept 1 is mostly word frequency, which shuffling keeps.
    assert float(data.overlap_shuffled_high.sel(k=[5, 10]).max()) < 0.7
    assert float(data.null_overlap.sel(k=1).mean()) > 0.4


def test_learning_steps_are_the_closed_forms_half_times(planted):
    data, basis, _ = planted
    steps = data.learned_at.sel(matrix="S").values
    expected = semantics.half_times(basis.sigma, 3.0) / 0.02
    # Between checkpoints that double, a straight line is off by up to a third.
    assert np.all(np.abs(steps / expected - 1) < 0.35)
    assert float(data.order.sel(matrix="S", top=12)) == 1
    assert float(data.order_p.sel(matrix="S", top=12)) < 0.001
    assert float(data.order_all_high.sel(matrix="S")) < 0.9
    # The axis of a figure, not the variable's name.
    assert data.order_all.attrs["long_name"]
    # Matrices of one scale in one figure.
    assert np.allclose(data.sigma_share.max("concept"), 1)


def test_the_matrix_that_drives_learning_is_told_from_the_others(tmp_path):
    data = (
        node(learning(INPUTS, matrix="P")[0], tmp_path)
        .sel(of="logits", k=5)
        .isel(step=-1)
    )
    assert data.overlap.idxmax("matrix") == "P"
    assert float(data.overlap.sel(matrix="S")) < 0.9


def test_random_drift_learns_no_order(tmp_path):
    data = node(drifting(INPUTS), tmp_path)
    assert np.isnan(data.order.sel(matrix="S")).all()
    assert "Too few concepts" in json.loads(data.attrs["statements"])[-1]
    later = data.sel(of="logits", matrix="S").isel(step=slice(1, None))
    inside = (later.overlap <= later.overlap_shuffled_high) | (later.overlap < 0.6)
    assert bool(inside.all())
    assert np.isnan(
        data.overlap.sel(of="logits").isel(step=0)
    ).all()  # all logits are 0 there


def test_noise_around_one_model_develops_nothing(tmp_path):
    support = next_words(INPUTS)
    S = support.S.toarray()
    rng = np.random.default_rng(0)
    models = {
        step: BigramForCausalLM(
            table_of(
                S + 0.05 * rng.standard_normal(S.shape), support, INPUTS.vocab_size
            )
        )
        for step in STEPS
    }
    data = node(models, tmp_path)
    assert not data.changed.any()
    assert np.isnan(data.order.sel(matrix="S")).all()


def test_a_stored_support_matrix_gives_the_numbers_of_its_corpus(tmp_path, planted):
    support = next_words(INPUTS)
    path = semantics.save_support(support, tmp_path / "support")
    models = learning(INPUTS)[0]
    found = node(models, tmp_path / "study", on=None, support=str(path), lengths=None)
    assert np.allclose(found.projection, planted[0].projection)
    assert np.allclose(found.overlap, planted[0].overlap, equal_nan=True)


def test_another_content_of_the_support_file_makes_cells_stale(tmp_path):
    support = next_words(INPUTS)
    path = semantics.save_support(support, tmp_path / "support")
    observable = WordSemantics(support=str(path), n_concepts=5, n_draws=3)
    before = observable.arguments()
    semantics.save_support(semantics.shuffled_next_words(support), path)
    assert observable.arguments()["support_digest"] != before["support_digest"]
    assert {**observable.arguments(), "support_digest": ""} == {
        **before,
        "support_digest": "",
    }


def test_special_tokens_and_padding_are_neither_words_nor_context(tmp_path):
    rows = np.where(INPUTS.mask, INPUTS.ids, 0)
    bos, pad = 30, 31
    ids = np.full((len(rows), rows.shape[1] + 3), pad)
    ids[:, 0], ids[:, 1:-2] = bos, rows
    mask = ids != pad
    with_special = og.Inputs.from_tokens(
        ids, mask=mask, special_ids=[bos], vocab_size=32
    )
    models = learning(INPUTS)[0]
    wider = {
        s: BigramForCausalLM(np.pad(m.table.weight.numpy(), (0, 2)))
        for s, m in models.items()
    }
    plain, special = (
        node(models, tmp_path / "a"),
        node(wider, tmp_path / "b", with_special),
    )
    assert np.allclose(plain.projection, special.projection, atol=1e-6)


def test_masked_models_fill_gaps_between_neighbours(tmp_path):
    from helpers.study_examples import tiny_inputs, tiny_model

    models = {0: tiny_model(0), 10: tiny_model(1)}
    inputs = tiny_inputs(texts=60)
    data = node(models, tmp_path, inputs, lengths=(2, 2), n_concepts=5, n_draws=3)
    assert list(data["of"].values) == ["logits", "decoder", "input"]
    observable_support = semantics.cloze_support(
        np.where(inputs.ordinary, inputs.ids, -1), 100, 5000, (2, 2), exclude=()
    )
    basis = semantics.svd_concepts(observable_support.support, 5)
    model = models[10]
    ids = observable_support.support.word_ids[observable_support.support.contexts.ids]
    logits = []
    for left, right in ids:
        with torch.no_grad():
            out = model(torch.tensor([[left, 1, right]])).logits[0, 1]
        logits.append(out[observable_support.support.word_ids].numpy())
    expected = np.sum(basis.U * (np.array(logits).T @ basis.V), axis=0)
    assert np.allclose(data.projection.sel(step=10, matrix="S"), expected, atol=1e-3)


def test_a_file_of_next_words_is_refused_for_a_masked_model(tmp_path):
    from helpers.study_examples import tiny_inputs, tiny_model

    path = semantics.save_support(next_words(INPUTS), tmp_path / "support")
    study = og.Study(
        og.Trajectory.from_models({0: tiny_model()}),
        tiny_inputs(),
        [WordSemantics(support=str(path), n_concepts=5, n_draws=3)],
    )
    result = study.run(tmp_path / "study")
    assert "predicts masked ones" in result.attrs["problems"]


@pytest.mark.parametrize("steps", [(0,), (0, 5)])
def test_logits_that_are_all_alike_are_said_to_have_no_directions(tmp_path, steps):
    flat = np.zeros((INPUTS.vocab_size, INPUTS.vocab_size))
    data = node({step: BigramForCausalLM(flat) for step in steps}, tmp_path)
    assert data.overlap.isnull().all() and data.learned_at.isnull().all()
    assert "no directions" in data.attrs["statements"]
    assert og.open_study(tmp_path).report(tmp_path / "page.html").exists()


def test_the_page_draws_the_node_with_its_figures(tmp_path):
    models = learning(INPUTS)[0]
    og.Study(og.Trajectory.from_models(models), INPUTS, [WordSemantics(**OPTIONS)]).run(
        tmp_path
    )
    page = (
        og.open_study(tmp_path)
        .report(tmp_path / "page.html")
        .read_text(encoding="utf-8")
    )
    for words in (
        "Overlap of the logits",
        "Which matrix",
        "When each concept is learned",
        "shuffled next words",
    ):
        assert words in page


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"n_concepts": 2}, "n_concepts"),
        ({"n_draws": 1}, "n_draws"),
        ({"n_contexts": 0}, "n_contexts"),
        ({"vocab_size": 10.5}, "vocab_size"),
        ({"lengths": (3, 1)}, "lengths"),
        ({"objective": "both"}, "objective"),
        ({"on": "text", "support": "a.npz"}, "input set"),
    ],
)
def test_impossible_arguments_are_refused(arguments, word):
    with pytest.raises(ArgumentError, match=word):
        WordSemantics(**arguments)


def test_a_missing_support_file_is_said(tmp_path):
    with pytest.raises(
        ArgumentError, match=r"support must be a file; .*'nowhere\.npz'"
    ):
        WordSemantics(support="nowhere.npz")
    path = tmp_path / "gone.npz"
    path.touch()
    observable = WordSemantics(support=str(path))
    path.unlink()
    with pytest.raises(ArgumentError, match=r"gone\.npz cannot be read"):
        observable.arguments()
