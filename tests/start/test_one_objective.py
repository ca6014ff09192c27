"""What an own model predicts is found once and written once, for every observable of its file."""

import tomllib

import numpy as np
import pytest

from helpers.own_model import write_own
from helpers.study_examples import Counting
from ontogeny.errors import ArgumentError
from ontogeny.start import Wishes, propose
from ontogeny.start.written import study_text
from ontogeny.study import make_study


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    return write_own(tmp_path_factory.mktemp("own"))


def proposed(own, preset, model="model.py:build"):
    wishes = Wishes(
        str(own / "out"), preset, texts=[str(own / "val.bin")], model=str(own / model)
    )
    return propose(wishes, own)


@pytest.mark.parametrize("preset", ["standard", "circuits", "everything"])
def test_every_observable_of_the_file_has_it_and_the_file_is_read(own, preset):
    proposal = proposed(own, preset)
    text = study_text(proposal, "ontogeny run")
    content = tomllib.loads(text)
    assert content["trajectory"]["objective"] == "causal"
    assert text.count('objective = "causal"') == 1
    study = make_study(content, own)
    asked = [o for o in study.observables if hasattr(type(o), "objective")]
    assert len(asked) > 2 and {o.objective for o in asked} == {"causal"}


def test_one_of_an_observable_is_stronger_and_another_word_is_refused(own):
    content = dict(proposed(own, "quick").content)
    content["observables"] = [{"kind": "loss", "objective": "masked"}]
    (loss,) = make_study(content, own).observables
    assert loss.objective == "masked"
    content["trajectory"] = {**content["trajectory"], "objective": "next"}
    with pytest.raises(ArgumentError, match=r"\[trajectory\] objective must be"):
        make_study(content, own)


def test_an_observable_that_is_added_to_the_file_needs_no_objective(own):
    """`answers` was refused: the file said of the loss alone what the model predicts."""
    proposal = proposed(own, "quick")
    added = [{"kind": kind} for kind in ("calibration", "place-losses")]
    content = {**proposal.content, "observables": [{"kind": "loss"}, *added]}
    assert not make_study(content, own).plan().refused


def test_what_is_odd_with_the_texts_is_said_once(own, tmp_path):
    """That texts repeat stood on the screen twice: as a warning, and again before the run."""
    rows = np.random.default_rng(0).integers(0, 50, (30, 20))
    np.save(tmp_path / "ids.npy", np.concatenate([rows, rows[:3]]))
    texts = [str(tmp_path / "ids.npy")]
    wishes = Wishes(str(own / "out"), "quick", texts, model=str(own / "model.py:build"))
    proposal = propose(wishes, tmp_path)
    assert sum("count as one" in line for line in proposal.texts) == 1
    study = make_study(proposal.content, tmp_path)
    assert any("count as one" in line for line in study.plan().notes)
    (tmp_path / "computed").mkdir()
    study.begin(tmp_path / "study", tmp_path / "computed")
    progress = Counting()
    study._announce([], study.examination.bare(), {}, progress)
    assert progress.notes == []
