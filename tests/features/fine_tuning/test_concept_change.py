"""Concepts kept, turned, lost and new since the base, against planted ones."""

import numpy as np
import pytest

import ontogeny as og
from helpers.lookup_model import WIDTH, WORDS, LookupModel, lookup_texts
from ontogeny.errors import ArgumentError
from ontogeny.observables import ConceptChange, JointConcepts
from ontogeny.words.tuned import concept_changes_text

KEPT, TURNED, LOST, NEW = (3, 5), 7, 9, 12
SHARED = {"layers": "out", "max_tokens": None, "readable": 0.5}


def planted(changes):
    """A base that writes four words, and two further steps of which the last is another model."""
    axes = np.eye(WIDTH)
    models = {}
    for step in (0, 10, 20):
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


def test_counts_are_said_beside_control_runs(node):
    tuned, data, _ = node
    text = concept_changes_text(data)
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
