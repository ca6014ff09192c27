"""Directions of the vocabulary in a study: planted lives in the rows of an embedding."""

import json

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from helpers.said import said_of
from ontogeny.errors import ArgumentError
from ontogeny.features.concepts.vocabulary_rows import Rows, chosen_ids
from planted_lives import planted_lives

V, WIDTH, TEXT = 1500, 24, 25


class Words(nn.Module):
    """An embedding, an unembedding that may be tied to it, and nothing else."""

    def __init__(self, rows, out=None):
        super().__init__()
        self.embed = nn.Embedding(*rows.shape)
        self.embed.weight = nn.Parameter(torch.as_tensor(rows, dtype=torch.float32))
        self.out = nn.Linear(*reversed(rows.shape), bias=False)
        if out is None:
            self.out.weight = self.embed.weight
        else:
            self.out.weight = nn.Parameter(torch.as_tensor(out, dtype=torch.float32))

    def forward(self, input_ids):
        return self.out(self.embed(input_ids))


def planted(seed=3):
    return planted_lives(
        n=V,
        m=WIDTH,
        steady=8,
        born=6,
        dying=3,
        turning=3,
        born_turning=0,
        random_state=seed,
    )


def start(seed=0):
    return 3 * np.random.default_rng(seed).standard_normal((V, WIDTH))


def inputs(n=V):
    rng = np.random.default_rng(0)
    ids = rng.permutation(n).reshape(-1, TEXT).tolist()
    return og.Inputs.from_tokens([*ids, [3] * TEXT], vocab_size=n)


def study(models, observable=None, **options):
    given = {
        "blocks": "embed.weight",
        "n_concepts": 24,
        "n_active": 1,
        "fit_steps": 10,
        "readable": 0.4,
        "max_tokens": None,
    }
    kinds = og.observables.VocabularyConcepts(**{**given, **options})
    return og.Study(
        og.Trajectory.from_models(models), inputs(), [observable or kinds], device="cpu"
    )


def node(folder, *arguments, **options):
    tree = study(*arguments, **options).run(folder)
    assert tree.attrs["problems"] == "[]"
    return tree["vocabulary-concepts"].to_dataset()


@pytest.fixture(scope="module")
def run():
    return planted()


@pytest.fixture(scope="module")
def models(run):
    rows = [np.zeros((V, WIDTH)), *run.activations]
    return {10 * t: Words(start() + each) for t, each in enumerate(rows)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, models):
    folder = tmp_path_factory.mktemp("vocabulary") / "s"
    node(folder, models)
    return folder


@pytest.fixture(scope="module")
def found(folder):
    return og.open_study(folder).result["vocabulary-concepts"].to_dataset()


def test_planted_births_are_found(run, found):
    one = found.sel(block="embed.weight")
    born = one.concept_born.values
    there = np.flatnonzero(np.isfinite(born))
    tokens = one.token_id.values[there]
    features = run.codes[tokens].mean(axis=1).argmax(axis=1)
    # Steady ones appear at the step after 0.
    planted = 10 * (np.maximum(run.born, 0) + 1)
    gone = run.kind[features] == "dying"
    assert (born[there] == planted[features])[~gone].all()
    late = set(np.flatnonzero(run.born > 0))
    assert len(late & set(features)) >= 5


def test_chance_gives_few_of_them(found):
    one = found.sel(block="embed.weight")
    assert int(one.n_concepts) >= 15
    assert one.null_concepts.sel(null="rows permuted").item() == 0
    assert one.null_born.sel(null="rows permuted").item() == 0
    assert one.null_concepts.sel(null="rows mixed").item() <= 3


@pytest.mark.slow
def test_a_matrix_that_stays_as_it_was_has_no_concepts(tmp_path, run):
    rows = start() + run.activations[-1]
    models = {10 * t: Words(rows, start(9) + t) for t in range(6)}
    same = node(tmp_path / "s", models, blocks=["embed.weight", "out.weight"])
    assert same.block.values.tolist() == ["embed.weight", "out.weight"]  # two matrices
    assert (same.n_concepts == 0).all()
    assert (
        same.concept_kind == "no concept"
    ).all() and not same.concept_born.notnull().any()
    assert (same.concepts_there == 0).all() and (same.explained == 0).all()


@pytest.mark.parametrize("how", ["permuted", "jittered"])
def test_no_births_where_the_rows_share_nothing(tmp_path, run, how):
    changes = run.permuted() if how == "permuted" else run.jittered()
    rows = [np.zeros((V, WIDTH)), *changes]
    models = {10 * t: Words(start() + each) for t, each in enumerate(rows)}
    one = node(tmp_path / "s", models, nulls=0).isel(block=0)
    born = one.concept_born.values
    # What does not change from step 10 on was there then.
    late = born[np.isfinite(born)] > 10
    # Of ten other permuted runs one has a source of a single checkpoint that both halves find.
    assert late.sum() <= (how == "permuted")
    assert how == "jittered" or np.isfinite(born).sum() <= 1


@pytest.mark.slow
def test_noise_that_persists_is_no_more_than_the_null_of_mixed_rows(tmp_path):
    """Rows that drift at random: every step holds the noise of the ones before."""
    rng = np.random.default_rng(1)
    drift = np.cumsum(rng.standard_normal((8, V, WIDTH)), axis=0)
    models = {10 * t: Words(start() + each - drift[0]) for t, each in enumerate(drift)}
    one = node(tmp_path / "s", models, nulls=3).isel(block=0)
    readable = (one.readability >= 0.4).any("step").sum().item()
    assert readable >= 12  # it can be read from every step, and means nothing
    mixed = one.null_concepts.sel(null="rows mixed").item()
    # How many three draws hold together depends on the last digits of fits, and so on the
    # processor: six on one, none on another.
    assert int(one.n_concepts) <= min(mixed + 3, readable / 2)


def test_tied_matrices_are_counted_once(tmp_path, models):
    tied = {step: dict(model.state_dict()) for step, model in models.items()}
    assert {"embed.weight", "out.weight"} <= set(tied[0])
    two = node(tmp_path / "s", models_of(tied), blocks="*.weight", nulls=0)
    assert two.block.values.tolist() == ["embed.weight"]
    said = said_of(og.observables.VocabularyConcepts("*.weight"), two)
    assert (
        said[0]
        == "The matrix out.weight is the same as embed.weight, and is counted once."
    )


def models_of(states):
    return {
        step: Words(state["embed.weight"].clone(), state["out.weight"].clone())
        for step, state in states.items()
    }


def test_the_first_tokens_are_those_with_the_largest_codes(found, models):
    one = found.sel(block="embed.weight")
    share = one.token_share.values[one.firing.values > 0]
    assert (np.diff(share, axis=1) <= 1e-9).all() and (share > 0).all()
    assert (share.sum(axis=1) <= 1 + 1e-9).all()
    used = np.unique(one.token_id.values)
    assert found.piece.values.tolist() == used.tolist()
    assert found.piece_text.values.tolist() == [str(i) for i in used]


def test_a_direction_that_follows_frequency_is_called_that(tmp_path):
    rng = np.random.default_rng(0)
    common = np.arange(V) < 150
    rare = rng.uniform(size=V) < 0.1
    directions = np.linalg.qr(rng.standard_normal((WIDTH, 2)))[0].T
    size = np.array([0.0, 0.0, 0.3, 1, 1, 1, 1, 1])
    late = np.array([0.0, 0, 0, 0, 0, 1, 1, 1])
    rows = [
        a * np.outer(common * rng.uniform(3, 5, V), directions[0])
        + b * np.outer(rare * rng.uniform(3, 5, V), directions[1])
        + 0.3 * rng.standard_normal((V, WIDTH))
        for a, b in zip(size, late, strict=True)
    ]
    texts = (
        rng.integers(0, 150, (300, TEXT)).tolist()
        + np.arange(V).reshape(-1, TEXT).tolist()
    )
    kinds = og.observables.VocabularyConcepts(
        "embed.weight", n_concepts=2, n_active=1, nulls=0, max_tokens=None
    )
    trajectory = og.Trajectory.from_models(
        {5 * t: Words(each) for t, each in enumerate(rows)}
    )
    made = og.Study(trajectory, og.Inputs.from_tokens(texts), [kinds], device="cpu")
    one = made.run(tmp_path / "s")["vocabulary-concepts"].to_dataset().isel(block=0)
    order = np.argsort(one.concept_born.values)
    assert one.concept_born.values[order].tolist() == [15, 25]
    assert one.frequency.values[order[0]] > 0.9
    assert abs(one.frequency.values[order[1]]) < 0.2
    said = " ".join(said_of(kinds, one.expand_dims("block")))
    assert "follows the frequency of tokens, by 0.9" in said
    assert "2 of 2 concepts of embed.weight were born at step 20" in said


def test_rows_of_no_token_and_special_tokens_are_left_out():
    counts = np.array([0, 0, 5, 9, 0, 1])
    special = np.array([True, False, False, True, False, False])
    assert chosen_ids(counts, special, 8, None).tolist() == [1, 2, 4, 5, 6, 7]
    # By count, then by id.
    assert chosen_ids(counts, special, 8, 3).tolist() == [1, 2, 5]
    assert chosen_ids(counts, special, 6, 4).tolist() == [1, 2, 4, 5]
    with pytest.raises(ArgumentError, match="6 rows and the texts hold the token id 7"):
        chosen_ids(np.eye(8)[7].astype(int), np.zeros(8, bool), 6, None)


class _Matrix:
    steps = np.array([0, 5, 9])

    def __init__(self, values):
        self.values = values

    def rows(self, step, rows):
        return self.values[self.steps.tolist().index(step)][rows]


def test_mixed_rows_keep_what_persists_and_lose_what_is_sparse():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((3, 400, 6))
    values[:, :20, 0] += 20  # twenty tokens stand out at all steps
    rows = Rows(_Matrix(values), np.arange(400))
    mixed = rows.mixed(0)
    for i in range(3):
        for j in range(3):
            first, second = (
                rows[i] - rows[i].mean(axis=0),
                rows[j] - rows[j].mean(axis=0),
            )
            np.testing.assert_allclose(
                mixed[i].T @ mixed[j], first.T @ second, atol=2e-2
            )
    sharp = [
        ((each[0][:, 0] / each[0][:, 0].std()) ** 4).mean() for each in (rows, mixed)
    ]
    assert sharp[0] > 10 and 2.3 < sharp[1] < 3.7
    again = rows.mixed(0)
    np.testing.assert_array_equal(mixed[1], again[1])
    permuted = rows.permuted(0)
    np.testing.assert_allclose(np.sort(permuted[2], axis=0), np.sort(rows[2], axis=0))
    assert not np.allclose(permuted[0], rows[0])


def test_without_a_step_0_rows_are_read_as_they_are(tmp_path, run):
    models = {10 * t + 10: Words(each) for t, each in enumerate(run.activations)}
    one = node(tmp_path / "s", models, nulls=0).isel(block=0)
    assert not one.start_subtracted
    late = one.concept_born.values[np.isfinite(one.concept_born.values)] / 10 - 1
    assert set(late) <= set(run.born[run.born >= 0]) and len(late) >= 5
    failed = study(models, start="subtracted").run(tmp_path / "t")
    assert (
        "step of 0" in failed.attrs["problems"] or "step 0" in failed.attrs["problems"]
    )


def test_what_is_no_vocabulary_is_refused_and_the_rest_is_kept(tmp_path, models):
    class More(Words):
        def __init__(self, rows):
            super().__init__(rows)
            self.other = nn.Linear(4, 9, bias=False)

    wider = {step: More(model.embed.weight.detach()) for step, model in models.items()}
    tree = study(wider, blocks=["embed.weight", "other.weight"], nulls=0).run(
        tmp_path / "s"
    )
    assert "no matrix with one row a token" in tree.attrs["problems"]
    found = tree["vocabulary-concepts"].to_dataset()
    assert int(found.n_concepts.sel(block="embed.weight")) >= 15
    assert (found.token_id.sel(block="other.weight") == -1).all()
    assert found.concept_kind.sel(block="other.weight").values.tolist() == [""] * 24


def test_too_few_checkpoints_say_so(tmp_path):
    models = {10 * t: Words(start(t)) for t in range(3)}
    tree = study(models).run(tmp_path / "s")
    assert "at least 4 checkpoints; there are 3" in tree.attrs["problems"]


def test_what_the_page_draws_and_says(folder, found):
    figures = {figure["id"]: figure for figure in json.loads(found.attrs["figures"])}
    assert {"concepts-there", "explained", "lives", "newborn"} <= set(figures)
    assert figures["lives"]["facet"] == "block"
    words = " ".join(said_of(og.observables.VocabularyConcepts("embed.weight"), found))
    assert " were born " in words and "(rows permuted 0; rows mixed " in words
    og.open_study(folder).report(folder / "page.html")


def test_another_run_computes_nothing(folder, models):
    plan = study(models).plan(folder)
    assert plan.to_do == 0


def test_bad_arguments_are_refused():
    make = og.observables.VocabularyConcepts
    for name, value in {
        "n_concepts": 0,
        "n_active": 101,
        "fit_steps": 0,
        "readable": 1.5,
        "start": "no",
        "max_tokens": 3,
        "nulls": -1,
        "method": "kmeans",
    }.items():
        with pytest.raises(ArgumentError, match=name):
            make(**{name: value})
