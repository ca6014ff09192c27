"""Concepts kept, turned, lost and new since the base, against planted ones."""

import json

import numpy as np
import pytest
import xarray as xr
from ontogeny.words.tuned import concept_changes_text

import ontogeny as og
from helpers.lookup_model import WIDTH, WORDS, LookupModel, lookup_texts
from ontogeny.errors import ArgumentError
from ontogeny.features.fine_tuning.concept_change import _called
from ontogeny.observables import ConceptChange, JointConcepts
from ontogeny.report.concepts.atlas import read_atlas
from ontogeny.report.first_screen.numbers import four_numbers
from ontogeny.words.content import read_content
from ontogeny.words.voice import OF_STEPS

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
        planted(request.param), lookup_texts(), [ConceptChange(**SHARED), joint], device="cpu",
        noise=0, control_runs={"mirrored 0": planted(False)},
    )  # fmt: skip
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
    assert counts.loc[20].to_dict() == {"kept": 2, "turned": 1, "lost": 1, "new": 1, "unclear": 0}
    kinds, called = data.change_kind.values[0], data.called.values[0]
    for kind, word in (("new", NEW), ("lost", LOST), ("turned", TURNED)):
        (name,) = called[kinds == kind]
        assert name == str(word) or name.partition("(")[2].split(",")[0].rstrip(")") == str(word)
    assert abs(float(data.turned_by.values[0][kinds == "turned"][0])) < 0.2


def test_concepts_without_a_name_are_called_by_tokens_in_words():
    """Bare marks in a list of tokens stood as (., , s, a)."""
    arrays = {"token_id": (("layer", "concept", "token"), [[[0, 1, 2, 3], [2, 9, 9, 9]]]),
              "name": (("layer", "concept"), [["", "the"]]),
              "piece_text": ("piece", [".", ",", " s", "."])}  # fmt: skip
    called = _called(xr.Dataset(arrays, {"piece": [0, 1, 2, 3]}), [1, 2])
    assert called.tolist() == [["C0 (full stop, comma, s)", "the"]]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A base and one model that was made of it, as a published adapter is."""
    joint = JointConcepts(n_concepts=8, n_active=1, **SHARED)
    study = og.Study(
        planted(True, (0, 1)), lookup_texts(), [ConceptChange(**SHARED), joint], device="cpu",
        noise=0, controls=2, control_kind="mirrored",
    )  # fmt: skip
    tree = study.run(tmp_path_factory.mktemp("pair") / "study")
    tree.attrs["trajectory"] = json.dumps({**json.loads(tree.attrs["trajectory"]), "base": True})
    return read_content(tree)


def test_a_base_and_one_model_are_enough(pair):
    data = {node.path: node.dataset for node in pair.nodes}["concept-change"]
    counts = data.concepts_since.sel(layer="out").to_pandas()
    assert counts.loc[1].to_dict() == {"kept": 2, "turned": 1, "lost": 1, "new": 1, "unclear": 0}
    assert data.concepts_since_control.sizes["run"] == 2
    assert " new, " in concept_changes_text(data).partition("(control runs: ")[2]


def test_the_page_of_a_pair_says_what_became_of_concepts_and_no_lives(pair):
    value, atlas = four_numbers(pair, None, None)[1], read_atlas(pair, None)
    assert (value.value, value.words) == (
        "3",
        "of 5 concepts 1 new, 1 lost and 1 turned since the base",
    )
    kinds = {card["number"]: card["kind"] for card in atlas.payload["concepts"]}
    assert sorted(kinds.values()) == ["kept", "kept", "lost", "new", "turned"]
    assert atlas.payload["one_code"] and atlas.kinds == ("kept", "lost", "new", "turned")
    (node,) = (node for node in pair.nodes if node.path == "joint-concepts")
    assert "Lives of concepts take at least three checkpoints." in node.statements
    assert not any("half" in text for each in pair.nodes for text in each.statements)


def test_counts_are_said_beside_control_runs(node):
    tuned, data, _ = node
    text = OF_STEPS.fill(concept_changes_text(data))
    ours = "2 kept, 1 turned, 1 lost, 1 new" if tuned else "4 kept, 0 turned, 0 lost, 0 new"
    assert f"{ours} and 0 unclear since step 0" in text
    assert "(the control run: 0 new, 0 lost, 0 turned)" in text
    assert (". New: “" in text) == (". Lost: “" in text) == tuned


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (JointConcepts(**SHARED | {"max_tokens": 9}), "max_tokens of concept-change must be that"),
        (JointConcepts(**SHARED | {"readable": 0.9}), "readable of concept-change must be that"),
        (og.observables.Loss(), "needs a node of joint concepts; 'joint-concepts' is of kind"),
    ],
)
def test_a_node_of_other_concepts_is_refused(other, message):
    with pytest.raises(ArgumentError, match=message):
        ConceptChange(**SHARED).check_nodes({"joint-concepts": other})
