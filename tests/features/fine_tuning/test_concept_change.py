"""Concepts kept, turned, lost and new since the base, against planted ones."""

import json

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers.lookup_model import WIDTH, WORDS, LookupModel, lookup_texts
from ontogeny.claims import Certainty, Kind
from ontogeny.errors import ArgumentError
from ontogeny.features.fine_tuning.change_claims import claims_of_changes
from ontogeny.features.fine_tuning.concept_change import _called
from ontogeny.observables import ConceptChange, JointConcepts
from ontogeny.report.concepts.atlas import read_atlas
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.words.content import read_content
from ontogeny.words.sections import section_sentences
from ontogeny.words.sentences import said
from ontogeny.words.subjects import Names
from ontogeny.words.voice import Voice

DIMS = ("step", "change", "layer")
KEPT, TURNED, LOST, NEW = (3, 5), 7, 9, 12
SHARED = {"layers": "out", "max_tokens": None, "readable": 0.5}


def planted(changes, steps=(0, 10, 20)):
    """A base that writes four words, and further steps, which are another model."""
    axes = np.eye(WIDTH)
    models = {}
    for step in steps:
        rows = np.zeros((WORDS, WIDTH))
        tuned = changes and step > 0
        places = {KEPT[0]: 0, KEPT[1]: 1, TURNED: 5 if tuned else 2}
        places |= {NEW: 4} if tuned else {LOST: 3}
        for word, axis in places.items():
            rows[word] = 4.0 * axes[axis]
        models[step] = LookupModel(rows)
    return og.Trajectory.from_models(models)


@pytest.fixture(scope="module", params=[True, False], ids=["tuned", "unchanged"])
def node(request, tmp_path_factory):
    joint = JointConcepts(n_concepts=8, n_active=1, fit_steps=3, **SHARED)
    study = og.Study(
        planted(request.param),
        lookup_texts(),
        [ConceptChange(**SHARED), joint],
        device="cpu",
        noise=0,
        control_runs={"mirrored 0": planted(False)},
    )
    tree = study.run(tmp_path_factory.mktemp("changes") / "study")
    return request.param, tree["concept-change"].to_dataset(), tree


def test_planted_concepts_are_kept_turned_lost_and_new(node):
    tuned, data, _ = node
    counts = data.concepts_since.sel(layer="out").to_pandas()
    assert counts.loc[0, ["turned", "lost", "new", "unclear"]].sum() == 0
    if not tuned:
        assert counts.loc[20].to_dict() == counts.loc[0].to_dict()
        assert counts.loc[20, "kept"] == 4
        return
    assert counts.loc[20].to_dict() == {
        "kept": 2,
        "turned": 1,
        "lost": 1,
        "new": 1,
        "unclear": 0,
    }
    kinds, called = data.change_kind.values[0], data.called.values[0]
    for kind, word in (("new", NEW), ("lost", LOST), ("turned", TURNED)):
        (name,) = called[kinds == kind]
        assert name == str(word) or name.partition("(")[2].split(",")[0].rstrip(
            ")"
        ) == str(word)
    assert abs(float(data.turned_by.values[0][kinds == "turned"][0])) < 0.2


def test_concepts_without_a_name_are_called_by_tokens_in_words():
    """Bare marks in a list of tokens stood as (., , s, a)."""
    arrays = {
        "token_id": (("layer", "concept", "token"), [[[0, 1, 2, 3], [2, 9, 9, 9]]]),
        "name": (("layer", "concept"), [["", "the"]]),
        "piece_text": ("piece", [".", ",", " s", "."]),
    }
    called = _called(xr.Dataset(arrays, {"piece": [0, 1, 2, 3]}), [1, 2])
    assert called.tolist() == [["C0 (full stop, comma, s)", "the"]]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A base and one model that was made of it, as a published adapter is."""
    joint = JointConcepts(n_concepts=8, n_active=1, **SHARED)
    study = og.Study(
        planted(True, (0, 1)),
        lookup_texts(),
        [ConceptChange(**SHARED), joint],
        device="cpu",
        noise=0,
        controls=2,
        control_kind="mirrored",
    )
    tree = study.run(tmp_path_factory.mktemp("pair") / "study")
    tree.attrs["trajectory"] = json.dumps(
        {**json.loads(tree.attrs["trajectory"]), "base": True}
    )
    return read_content(tree)


def test_a_base_and_one_model_are_enough(pair):
    data = {node.path: node.dataset for node in pair.nodes}["concept-change"]
    counts = data.concepts_since.sel(layer="out").to_pandas()
    assert counts.loc[1].to_dict() == {
        "kept": 2,
        "turned": 1,
        "lost": 1,
        "new": 1,
        "unclear": 0,
    }
    assert data.concepts_since_control.sizes["run"] == 2
    found = claims_on(data)
    assert all(len(claim.beside) == 2 for claim in found.values())


def test_the_page_of_a_pair_says_what_became_of_concepts_and_no_lives(pair):
    atlas = read_atlas(pair, None)
    # Not shown beyond controls: no number in large type says so.
    assert [one for one in first_screen(pair).numbers if "turned" in one.words] == []
    counts = {
        c.kind: c.value for c in pair.claims if c.subject.node == "concept-change"
    }
    assert counts == {Kind.KEPT: 2, Kind.TURNED: 1, Kind.FADED: 1, Kind.BORN: 1}
    kinds = {card["number"]: card["kind"] for card in atlas.payload["concepts"]}
    assert sorted(kinds.values()) == ["kept", "kept", "lost", "new", "turned"]
    assert atlas.payload["one_code"] and atlas.kinds == (
        "kept",
        "lost",
        "new",
        "turned",
    )
    (node,) = (node for node in pair.nodes if node.path == "joint-concepts")
    said = [one.text for one in section_sentences(pair, node)]
    assert "Lives of concepts are not tested: too few checkpoints (3 would do)." in said
    told = (one.text for each in pair.nodes for one in section_sentences(pair, each))
    assert not any("half" in text for text in told)


def claims_on(data):
    return {claim.kind: claim for claim in claims_of_changes("concept-change", data)}


def test_counts_are_claimed_beside_control_runs(node):
    tuned, data, tree = node
    found = claims_on(data)
    ours = (2, 1, 1, 1) if tuned else (4, 0, 0, 0)
    kinds = (Kind.KEPT, Kind.TURNED, Kind.FADED, Kind.BORN)
    assert tuple(found[kind].value for kind in kinds) == ours
    for kind in kinds[1:]:
        assert [beside.value for beside in found[kind].beside] == [0]
        # One concept beside none is what mere motion gives every second time.
        expected = Certainty.OPEN if tuned else Certainty.AS_CONTROLS
        assert found[kind].certainty is expected
    content = read_content(tree)
    [of_changes] = [one for one in content.nodes if one.path == "concept-change"]
    texts = [one.text for one in section_sentences(content, of_changes)]
    turned = (
        "1 of 5 concepts turned (controls 0), not shown to be more than in controls"
    )
    assert any(text.startswith(turned) for text in texts) == tuned


def test_fewer_than_controls_is_not_said_to_be_as_in_controls():
    """12 concepts that faded beside 30 and 40 were "as in controls"."""
    counts = xr.DataArray([[[9.0], [0], [0], [0]], [[5], [0], [4], [0]]], dims=DIMS)
    counts = counts.assign_coords(step=[0, 1], change=["kept", "turned", "lost", "new"])
    beside = xr.concat(
        [counts + 3, counts + 5], xr.DataArray(["a", "b"], dims="run", name="run")
    )
    data = xr.Dataset({"concepts_since": counts, "concepts_since_control": beside})
    faded = claims_on(data)[Kind.FADED]
    assert faded.certainty is Certainty.AS_CONTROLS
    words = "4 of 9 concepts faded by the end (controls 7–9), no more than in controls."
    assert said([faded], Voice(), Names()).text == words
    ends_trained = data.assign_coords(run=["line 0", "line 1"])
    assert claims_on(ends_trained)[Kind.FADED].certainty is Certainty.NOT_TESTED


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            JointConcepts(**SHARED | {"max_tokens": 9}),
            "max_tokens of concept-change must be that",
        ),
        (
            JointConcepts(**SHARED | {"readable": 0.9}),
            "readable of concept-change must be that",
        ),
        (
            og.observables.Loss(),
            "needs a node of kind joint-concepts; 'joint-concepts' is of kind",
        ),
    ],
)
def test_a_node_of_other_concepts_is_refused(other, message):
    with pytest.raises(ArgumentError, match=message):
        ConceptChange(**SHARED).check_nodes({"joint-concepts": other})
