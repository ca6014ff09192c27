"""What observables say of concepts: right names of planted words, contexts, reasons, controls."""

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.lookup_model import PLANTED, STEPS, WIDTH, lookup_run, lookup_texts
from helpers.said import said_of
from ontogeny import describe, needs
from ontogeny.capture.vocabulary_map import Readout
from ontogeny.features.concepts.described import EMPTY, vocabulary
from ontogeny.features.concepts.dictionaries_described import claims_of_names
from ontogeny.store import read_cell
from ontogeny.study.folder.layout import state_path

JOINT = {
    "n_concepts": 12,
    "n_active": 1,
    "fit_steps": 6,
    "readable": 0.4,
    "max_tokens": None,
}


def joint(**options):
    return og.observables.JointConcepts("out", **{**JOINT, "examples": 3, **options})


def per_step(**options):
    given = {"n_concepts": 8, "layers": "out", "max_tokens": None, "examples": 2}
    return og.observables.Concepts("ica", **{**given, **options})


def studied(folder, observables, run=None, **options):
    run = lookup_run() if run is None else run
    study = og.Study(run, lookup_texts(), observables, device="cpu", noise=0, **options)
    tree = study.run(folder)
    assert tree.attrs["problems"] == "[]"
    return tree


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("described") / "s"
    studied(folder, [joint(), per_step()], controls=2, control_steps=3)
    return folder


@pytest.fixture(scope="module")
def result(folder):
    return og.open_study(folder).result


@pytest.fixture(scope="module")
def node(result):
    return result["joint-concepts"].to_dataset().load()


@pytest.fixture(scope="module")
def codes(folder):
    return read_cell(state_path(folder, "joint-concepts")).data.codes.values[0]


def test_planted_words_get_their_names_and_nothing_else_gets_one(node):
    """Each planted word is born at the step at which it was planted, and has its name."""
    names, born = node.name.values[0].tolist(), node.concept_born.values[0].tolist()
    found = {int(name): step for name, step in zip(names, born, strict=True) if name}
    assert found == {word: STEPS[min(i + 1, 4)] for i, word in enumerate(PLANTED)}
    assert node.named.values.tolist() == [len(PLANTED)]


def test_what_is_kept_is_what_the_functions_on_arrays_give(node, codes):
    texts = lookup_texts()
    sample = texts.sample()
    tokens = describe.strongest_tokens(codes, texts, sample)
    np.testing.assert_array_equal(node.token_id.values[0], tokens.token_id.values)
    np.testing.assert_allclose(node.firing.values[0], tokens.firing.values, rtol=1e-6)
    contexts = describe.contexts(codes, texts, sample, 3)
    for part in ("id", "text", "place", "code"):
        np.testing.assert_allclose(
            node[f"shared_context_{part}"].values[0],
            contexts[f"context_{part}"].values,
            rtol=1e-6,
        )
    np.testing.assert_allclose(
        node.concentration.values[0],
        describe.concentration(codes, texts, sample),
        rtol=1e-6,
    )


def test_contexts_at_a_step_know_nothing_of_the_codes(result, node):
    """Before a word is there, its concept cannot be read, so that its contexts are others."""
    born = np.isfinite(node.concept_born.values[0]) & (node.name.values[0] != "")
    assert born.any()
    for index in np.flatnonzero(born).tolist():
        word = int(node.name.values[0, index])
        last = result.concept("joint-concepts", index=index)
        assert {c.tokens[c.peak] for c in last.contexts} == {str(word)}
        first = result.concept("joint-concepts", index=index, step=0)
        assert {c.tokens[c.peak] for c in first.contexts} != {str(word)}
        assert first.shared_contexts == last.shared_contexts


def test_only_concepts_have_names_and_contexts_and_only_used_pieces_are_kept(node):
    concept = ~np.isin(node.concept_kind.values[0], ["", "no concept"])
    assert (node.name.values[0][~concept] == "").all()
    assert (node.context_id.values[:, 0, ~concept] == -1).all()
    assert (node.context_text.values[:, 0, concept] >= -1).all()
    used = {
        int(i)
        for n in node.data_vars
        if str(n).endswith("_id") and n != "fit_id"
        for i in np.unique(node[n].values)
    } - {-1}
    assert set(node.piece.values.tolist()) == used
    assert node.piece_text.values.tolist() == [str(i) for i in node.piece.values]


def test_names_are_counted_beside_the_control_runs(node):
    assert node.named_control.sizes == {"run": 2, "layer": 1}
    claims = claims_of_names("joint-concepts", node)
    (claim,) = (claim for claim in claims if claim.subject.quantity == "named")
    controls = [each for each in claim.beside if each.role == "control"]
    known = np.isfinite(node.n_concepts_control[:, 0].values)
    counts = node.named_control[:, 0].values[known].tolist()
    assert [each.value for each in controls] == counts
    (sentence,) = (w for w in said_of(joint(), node) if "got a name" in w)
    assert sentence.startswith(
        f"{int(node.named[0])} of {int(node.n_concepts[0])} concepts of out"
    )
    assert "controls" in sentence


def test_concepts_of_each_step_are_described_too(result):
    found = result["concepts-ica"].to_dataset()
    assert found.name.sizes == {"step": len(STEPS), "layer": 1, "concept": 8}
    assert (
        found.named.sizes == {"step": len(STEPS), "layer": 1}
        and "named_control" in found
    )
    assert found.named.values[:, 0].tolist() == [0, 1, 2, 3, 5, 5]
    card = result.concept("concepts-ica", index=0)
    assert card.life is None and len(card.contexts) == 2 and not card.shared_contexts
    assert len({str(fit) for fit in found.fit_id.values[:, 0]}) > 1


def test_a_label_of_a_concept_of_one_step_holds_at_that_step(folder):
    concept = og.open_study(folder).result.concept
    concept.label("concepts-ica", index=2, name="mine", step=160)
    assert concept("concepts-ica", index=2).name == "mine"
    assert concept("concepts-ica", index=2, step=0).name != "mine"


def test_neighbours_are_other_concepts(node):
    near, cosine = node.near.values[:, 0], node.near_cosine.values[:, 0]
    assert (near != np.arange(12)[:, None]).all() and (np.abs(cosine) <= 1 + 1e-5).all()


def test_where_no_untrained_model_can_be_made_one_with_exchanged_weights_stands_for_it(
    tmp_path,
):
    run = lookup_run(STEPS[1:4], resettable=False)
    tree = studied(tmp_path / "s", [joint(), per_step()], run)
    data = tree["joint-concepts"].to_dataset()
    assert np.isfinite(data.concentration_untrained.values).any()
    assert data.unnamed_because.values.tolist() == [""]
    assert "no reset_parameters()" in str(data.stands_in_because.values[0])
    (sentence,) = (w for w in said_of(joint(), data) if "shuffled weights" in w)
    assert sentence.startswith("Names are judged beside this model with shuffled")
    assert "no initialisation" in sentence and ".." not in sentence
    assert "no reset_parameters()" in str(
        tree["concepts-ica"]["stands_in_because"].values.ravel()
    )


@pytest.mark.parametrize("options", [{"examples": 0}, {"tokens": "mean"}])
def test_nothing_is_described_where_nothing_is_asked_for_or_there_are_no_tokens(
    options,
):
    for observable in (joint(**options), per_step(**options)):
        assert len(observable.needs()) <= 2
    with pytest.raises(
        og.errors.ArgumentError, match="examples must be a whole number"
    ):
        joint(examples=-1)


def test_latents_of_the_untrained_model_that_never_fire_do_not_lower_the_limit():
    """Activations of few directions leave latents without codes, and so without tokens."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(lookup_texts().sample().text.size, 3)) @ rng.normal(
        size=(3, WIDTH)
    )
    observable = joint(n_concepts=12)
    codes = observable.untrained_codes(torch.from_numpy(rows).float())
    assert codes.shape[1] == 12 and codes.any(axis=0).sum() == 3

    class Run:
        def untrained(self):
            return {
                observable.needs()[0]: {"out": torch.from_numpy(rows).float()},
                needs.InputSet(None): lookup_texts(),
            }

    found = observable._describer.untrained(Run(), observable.untrained_codes)
    assert found.by_layer["out"].shape == (3,) and (found.by_layer["out"] > 0).all()
    none = observable._describer.untrained(Run(), lambda A: np.zeros((len(A), 12)))
    assert "out" not in none.by_layer and "none of its latents fires" in none.because(
        "out"
    )


def test_a_vocabulary_smaller_than_the_list_of_tokens_written_is_shown_whole():
    readout = Readout(torch.eye(4)[:3], (), True)
    found = vocabulary(np.eye(4)[:2], readout, 0)
    assert (found["written_up_id"] >= 0).sum("rank").values.tolist() == [3, 3]
    assert (found["written_up_id"][:, 3:] == EMPTY).all()
