"""Concepts over the runs of a comparison: what they share, resumed, priced, and on the page."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import xarray as xr
from transformers import GPT2Config, GPT2LMHeadModel

import ontogeny as og
from helpers.command import call
from helpers.word_tables import (
    PRIVATE,
    SHARED,
    WIDTH,
    WORDS,
    Table,
    models_of,
    rows_of_run,
)
from ontogeny.claims import Certainty, Kind, Reason
from ontogeny.comparison.claims import _shared
from ontogeny.comparison.concepts import fitting, views
from ontogeny.comparison.concepts.fitting import LayerConcepts, order_agreement
from ontogeny.comparison.concepts.node import node_of
from ontogeny.comparison.concepts.shared import price_of_concepts
from ontogeny.comparison.concepts.views import studies_of
from ontogeny.errors import ArgumentError, StoreError
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.study.cells import models
from ontogeny.study.cells.cache import DigestCache
from ontogeny.words.content import read_content
from ontogeny.words.runs import sentences_of_shared
from ontogeny.words.sections import section_sentences
from ontogeny.words.voice import OF_STEPS


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    share = np.full(WORDS, 1.0)
    share[2 * (SHARED + 2 * PRIVATE) :] = 6.0
    return og.Inputs.from_tokens(
        [rng.choice(WORDS, 25, p=share / share.sum()).tolist() for _ in range(60)]
    )


@pytest.fixture(scope="module")
def studied(tmp_path_factory, texts):
    place, studies = tmp_path_factory.mktemp("shared"), {}
    for seed in range(2):
        concepts = og.observables.JointConcepts(
            "layer", n_concepts=20, n_active=1, examples=1
        )
        run = og.Trajectory.from_models(models_of(seed))
        studies[f"seed {seed}"] = og.Study(
            run, texts, [concepts], device="cpu", noise=0
        )
        studies[f"seed {seed}"].run(place / f"seed {seed}", progress=False)
    return {name: place / name for name in studies}, studies


@pytest.fixture(scope="module")
def compared(studied):
    folders, studies = studied
    return og.compare(folders, concepts=studies, progress=False)


REASONS = {
    Certainty.OPEN: Reason.WITHIN_CHANCE,
    Certainty.NOT_TESTED: Reason.NO_CONTROLS,
}


def test_word_classes_of_all_runs_are_shared_and_those_of_one_are_not(compared):
    node = compared[views.FOLDER].to_dataset().isel(layer=0)
    assert int(node.in_all) == SHARED
    assert int(node.in_one) == 2 * PRIVATE
    assert int(node.by_chance) == 0
    born = node.concept_birth.values  # (concept, run)
    assert (born >= 0).all(axis=1).sum() >= 3
    assert (born[:, 0] == born[:, 1]).all()
    assert float(node.births_meet) == float(node.born_in_all)
    words = [
        {int(word) for word in str(label).split()}
        for label in node.concept_label.values
    ]
    assert all(
        len({word // 2 for word in found if word < 2 * SHARED}) == 1 for found in words
    )


def test_the_page_leads_with_what_runs_share(compared, tmp_path):
    assert json.loads(compared.attrs["nodes"])[:2] == [views.FOLDER, "runs"]
    content = read_content(compared)
    node = next(node for node in content.nodes if node.path == views.FOLDER)
    said = section_sentences(content, node)
    kinds = [claim.kind for one in said for claim in one.claims]
    assert {*kinds} == {Kind.SHARED, Kind.BORN}
    kinds = [f["kind"] for f in json.loads(compared[views.FOLDER].attrs["figures"])]
    assert kinds == ["marks", "heatmap", "table", "table", "table"]
    page = og.report.write(compared, tmp_path / "page.html").read_text()
    assert all(one.text in page for one in said)


@pytest.mark.parametrize("certainty", Certainty)
def test_the_first_screen_tells_what_is_surely_shared(certainty, compared):
    content = read_content(compared)
    shared = [
        dataclasses.replace(claim, certainty=certainty, reason=REASONS.get(certainty))
        for claim in content.claims
        if claim.kind is Kind.SHARED
    ]
    others = [claim for claim in content.claims if claim.kind is not Kind.SHARED]
    content = dataclasses.replace(content, claims=[*shared, *others])
    (one,) = sentences_of_shared(content)
    told = [line.lead for line in first_screen(content).sentences]
    assert (one.lead in told) == (certainty is Certainty.SURE)


def test_the_terminal_tells_what_is_shared(compared):
    told = og.comparison.summary_lines(compared)
    assert {one.text for one in sentences_of_shared(read_content(compared))} <= {*told}


@pytest.mark.slow
def test_what_was_stopped_goes_on_and_what_is_done_is_not_read_again(
    studied, monkeypatch
):
    folders, studies = studied
    for path in folders.values():
        for file in (path / views.FOLDER).glob("*.safetensors"):
            file.unlink()
    reads, whole = [], models.read_needs

    def counted(job, trajectory, step, *needs):
        reads.append(step)
        return whole(job, trajectory, step, *needs)

    def broken(*_):
        raise KeyboardInterrupt

    def fails(*_):
        raise ValueError("it cannot be fitted")

    monkeypatch.setattr(models, "read_needs", counted)
    monkeypatch.setattr("ontogeny.comparison.concepts.shared.of_layer", broken)
    given = studies_of(folders, studies)
    assert "10 checkpoints" in price_of_concepts(given)
    with pytest.raises(KeyboardInterrupt):
        og.compare(folders, concepts=studies, progress=False)
    assert len(reads) == 10
    monkeypatch.setattr("ontogeny.comparison.concepts.shared.of_layer", fails)
    with pytest.raises(StoreError, match="it cannot be fitted"):
        og.compare(folders, concepts=studies, progress=False)
    monkeypatch.undo()
    monkeypatch.setattr(models, "read_needs", counted)
    first = og.compare(folders, concepts=studies, progress=False)
    assert len(reads) == 10
    assert not list(folders["seed 0"].glob(f"{views.FOLDER}/views*"))
    assert "nothing is to be read" in price_of_concepts(given)
    again = og.compare(folders, concepts=studies, progress=False)
    assert len(reads) == 10
    xr.testing.assert_identical(
        first[views.FOLDER].to_dataset(), again[views.FOLDER].to_dataset()
    )


def test_a_tuned_run_says_what_it_made_of_its_base(studied, texts, tmp_path):
    folders, studies = studied
    rows, rng = rows_of_run(0)[-1], np.random.default_rng(9)
    later = rows.copy()
    later[0:2] = 0  # the first class is lost
    later[2:4] = 3 * rng.normal(size=WIDTH)  # the second is written elsewhere
    later[30:32] = 3 * rng.normal(size=WIDTH)  # two words that were alike with others
    tables = {0: rows, 5: later, 10: later}
    models = {
        step: Table(torch.tensor(r, dtype=torch.float32)) for step, r in tables.items()
    }
    observables = studies["seed 0"].observables
    tuned = og.Study(
        og.Trajectory.from_models(models), texts, observables, device="cpu", noise=0
    )
    tuned.run(tmp_path / "tuned", progress=False)
    both = og.compare(
        {"base": folders["seed 0"], "tuned": tmp_path / "tuned"},
        concepts={"base": studies["seed 0"], "tuned": tuned},
        progress=False,
    )
    node = both[views.FOLDER].to_dataset()
    counts = {
        kind: int(node[kind][0])
        for kind in ("kept", "unclear", "turned", "lost", "new")
    }
    classes = SHARED + PRIVATE
    assert counts == {
        "kept": classes - 2,
        "unclear": 0,
        "turned": 1,
        "lost": 1,
        "new": 1,
    }
    lost = node.changed_concept_label.values[node.changed_concept_kind.values == "lost"]
    assert {name.split()[0] for name in lost} <= {"0", "1"}
    content = read_content(both)
    (section,) = (each for each in content.nodes if each.path == views.FOLDER)
    told = [one.text for one in section_sentences(content, section)]
    assert "tuned starts from base at step 80." in told
    page = og.report.write(both, tmp_path / "page.html").read_text()
    assert "What tuned made of the concepts of base" in page


def test_a_run_begins_at_the_step_of_its_base_that_it_was_given(tmp_path):
    model = GPT2LMHeadModel(
        GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=9, n_positions=4)
    )
    for name in ("base/checkpoint-3", "base/checkpoint-7", "run/checkpoint-2"):
        torch.nn.init.normal_(model.lm_head.weight)
        model.save_pretrained(tmp_path / name)
    whole = DigestCache(None).whole
    runs = {
        "base": og.Trajectory.from_folder(tmp_path / "base"),
        "tuned": og.Trajectory.from_folder(
            tmp_path / "run", base=tmp_path / "base" / "checkpoint-7"
        ),
    }
    digests = {name: {int(c.step): whole(c) for c in run} for name, run in runs.items()}
    graph = SimpleNamespace(digests=SimpleNamespace(whole=whole))
    parts = {
        name: SimpleNamespace(trajectory=run, graph=graph) for name, run in runs.items()
    }
    base, tuned = (
        SimpleNamespace(name=n, part=parts[n], digests=digests[n]) for n in runs
    )
    assert views.began_at([base, tuned], digests) == 7
    assert views.began_at([tuned, base], digests) is None
    assert views.began_at([base, tuned, base], digests) is None


def concepts(births, present=None, chance=0.0):
    births = np.asarray(births, dtype=float)
    present = np.ones(births.shape, bool) if present is None else np.asarray(present)
    low, high = births - 5, births + 5
    life = {
        f"r{i}": (np.arange(3), np.ones((3, births.shape[1])))
        for i in range(len(births))
    }
    label = [f"word {i}" for i in range(births.shape[1])]
    return LayerConcepts(present, births, low, high, life, label, chance)


def claims_on(node):
    """Claims of a node by their kind and layer."""
    return {(claim.kind, claim.subject.layer): claim for claim in _shared(node)}


def test_claims_say_what_is_shown_and_no_more():
    one = concepts([[10, 20, 40, 80, 160, 320], [10, 30, 41, 90, 170, 300]])
    node = node_of({"h": (one, [])}, ["r0", "r1"])
    for claim in claims_on(node).values():
        assert claim.value == 6
        assert (claim.certainty, claim.reason) == (
            Certainty.NOT_TESTED,
            Reason.NO_CONTROLS,
        )
    assert node.order_p < 0.05
    for claim in claims_on(node_of({"h": (one, [one])}, ["r0", "r1"])).values():
        assert claim.certainty is Certainty.AS_CONTROLS  # mere motion
        assert [beside.value for beside in claim.beside] == [6]
    few = concepts([[10, 20], [20, 10]], [[True, True], [True, False]], 1.0)
    node = node_of({"h": (few, [one])}, ["r0", "r1"])
    assert (node.in_all, node.in_one, node.by_chance) == (1, 1, 1) and np.isnan(
        node.order_p
    )
    assert claims_on(node)[Kind.SHARED, "h"].subject.label == "2 concepts"


def test_more_than_controls_by_chance_is_open_and_not_called_no_more():
    """Two beside none are one in four by chance."""
    two, none = concepts([[10, 20], [20, 10]]), concepts([[-1, -1], [-1, -1]])
    born = claims_on(node_of({"h": (two, [none])}, ["r0", "r1"]))[Kind.BORN, "h"]
    assert born.value == 2 > born.beside[0].value == 0
    assert (born.certainty, born.reason) == (Certainty.OPEN, Reason.WITHIN_CHANCE)
    assert born.p_value == 0.25


def test_the_steps_that_control_runs_were_read_at_stand_in_the_result():
    one, runs = concepts([[10, 20], [10, 20]]), ["r0", "r1"]
    life = {
        run: (np.arange(n), np.ones((n, 2)))
        for run, n in zip(runs, (2, 1), strict=True)
    }
    node = node_of({"layer 1": (one, [dataclasses.replace(one, life=life)])}, runs)
    assert node.control_steps_read.values.tolist() == [2, 1]
    assert node.steps_read.values.tolist() == [3, 3]


def test_tables_and_claims_count_the_same_and_say_what_they_leave_out():
    unclear = np.nan  # in the run, and neither there from the start nor born
    births = [[-1, 24, 24, 10], [-1, 56, 56, unclear]]
    one = concepts(births)
    one = dataclasses.replace(one, low=one.birth - 16, high=one.birth + 16)
    node = node_of({"h": (one, [])}, ["r0", "r1"])
    found = claims_on(node)
    assert found[Kind.SHARED, "h"].value == 4 and node.from_start == 1
    assert found[Kind.BORN, "h"].value == 2 and node.births_meet == 0  # meet at 40
    assert node.sizes["concept"] == 4 - 1
    table = json.loads(node.attrs["figures"])[-1]
    assert table["title"] == "In all runs, but not from the start of each"
    assert node.concept_in_1.values.tolist().count("no clear birth") == 1
    drawn = [
        OF_STEPS.fill(node[name].attrs["long_name"])
        for name in ("birth", "birth_low", "birth_high")
    ]
    assert drawn == [
        "step of the birth",
        "first step of its interval",
        "last step of its interval",
    ]


def test_births_of_several_layers_are_corrected_over_them():
    five = concepts([[10, 20, 40, 80, 160], [10, 30, 41, 90, 170]])
    none = concepts([[-1] * 5, [-1] * 5])
    alone = claims_on(node_of({"h.0": (five, [none])}, ["r0", "r1"]))[Kind.BORN, "h.0"]
    assert alone.certainty is Certainty.SURE and alone.p_value == pytest.approx(1 / 32)
    layers = {f"h.{i}": (five, [none]) for i in range(2)}
    found = claims_on(node_of(layers, ["r0", "r1"]))
    for layer in layers:
        born = found[Kind.BORN, layer]
        assert born.certainty is Certainty.OPEN and born.corrected_over == 2


def test_orders_agree_by_chance_at_the_stated_rate():
    rng = np.random.default_rng(0)
    fitting_draws, fitting.DRAWS = fitting.DRAWS, 100
    try:
        p = [
            order_agreement(rng.permuted(np.tile(range(8), (3, 1)), axis=1))[1]
            for _ in range(200)
        ]
    finally:
        fitting.DRAWS = fitting_draws
    assert 0.01 <= np.mean(np.array(p) <= 0.05) <= 0.1
    assert order_agreement(np.tile(np.arange(8), (3, 1)))[1] < 0.02
    assert np.isnan(order_agreement(np.ones((3, 8)))[0])
    assert np.isnan(order_agreement(np.ones((3, 2)))[0])


def test_what_cannot_be_compared_is_refused(studied, texts, tmp_path):
    folders, studies = studied
    with pytest.raises(ArgumentError, match="needs the folder of each study"):
        og.compare(
            {"a": og.open_study(folders["seed 0"]), "b": folders["seed 1"]},
            concepts=True,
        )
    with pytest.raises(ArgumentError, match="there is no study file"):
        og.compare(folders, concepts=True)
    with pytest.raises(ArgumentError, match="must hold the Study of each run"):
        og.compare(folders, concepts={"seed 0": studies["seed 0"]})
    run = og.Trajectory.from_models(models_of(0))
    fewer = og.Inputs.from_tokens(
        [[i % WORDS for i in range(k, k + 25)] for k in range(60)]
    )
    other = og.Study(run, fewer, studies["seed 0"].observables, device="cpu", noise=0)
    other.run(tmp_path / "other", progress=False)
    with pytest.raises(ArgumentError, match="reads other texts than 'seed 0'"):
        og.compare(
            {"seed 0": folders["seed 0"], "b": tmp_path / "other"},
            concepts={**studies, "b": other},
            allow=["inputs", "checkpoints"],
        )
    without = og.Study(run, texts, [og.observables.WeightRank()], device="cpu")
    with pytest.raises(
        ArgumentError, match="has neither learned-concepts nor joint-concepts"
    ):
        views.views_of({"a": (without, tmp_path)})


def test_the_layers_of_learned_concepts_are_taken_where_no_joint_ones_are(
    texts, tmp_path
):
    learned = og.observables.LearnedConcepts("layer", examples=0, random_state=3)
    run = og.Trajectory.from_models(models_of(0))
    study = og.Study(run, texts, [learned], device="cpu", noise=0)
    (views_of_run,) = views.views_of({"a": (study, tmp_path)})[0].values()
    joint = views_of_run.observable
    assert (joint.kind, joint.layers, joint.random_state) == (
        "joint-concepts",
        "layer",
        3,
    )
    assert joint.max_tokens == views.MOST_TOKENS < learned.max_tokens
    assert views_of_run.layers == ("layer",)


def test_the_command_says_which_study_file_is_missing(studied, capsys):
    folders, _ = studied
    code, _, error = call(capsys, "compare", *folders.values(), "--concepts")
    assert code and "there is no study file" in error
