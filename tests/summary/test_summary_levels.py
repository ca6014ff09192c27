"""The level of a verdict stands in one place: results carry it, and what speaks of it reads it."""

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers.compared_runs import ENTROPY, LOSS
from ontogeny.errors import ArgumentError
from ontogeny.figures import Section
from ontogeny.report import write
from ontogeny.report.notebook.summary import ResultSummary
from ontogeny.study.cells import merge
from ontogeny.summary import verdicts
from ontogeny.summary.summarise import summarise
from ontogeny.words.levels import Levels

STEPS = np.arange(12)


UNSURE = np.array(
    [2.86, 2.94, 2.64, 2.55, 3.85, 3.27, 2.58, 2.48, 2.41, 1.93, 2.22, 1.8]
)
"""Noise with short memory gives such a course in more than 1 % and in less than 5 % of cases."""


def judged_alone():
    """Return a node of three rows, of which two surely change."""
    falling = np.linspace(8, 4, len(STEPS))
    return summarise(
        xr.Dataset(
            {
                "loss": ("step", falling),
                "loss_stderr": 0.02,
                "entropy": (("step", "layer"), np.stack([UNSURE, falling / 8], axis=1)),
                "entropy_stderr": 0.02,
            },
            {"step": STEPS, "layer": ["h.0", "h.1"]},
        ),
        [LOSS, ENTROPY],
        Section("Loss", "Mean loss."),
        role="track",
    )


def result():
    """Return a result as a study merges it."""
    nodes = verdicts.with_verdicts({"loss": judged_alone()})
    root = xr.Dataset(attrs=verdicts.LEVELS.attributes())
    return xr.DataTree.from_dict({"/": root, **nodes})


@pytest.fixture
def change_levels(monkeypatch):
    return lambda **levels: monkeypatch.setattr(verdicts, "LEVELS", Levels(**levels))


def everything(tmp_path):
    """Return what page, terminal and comparison say, as one text each."""
    tree = result()
    page = write(tree, tmp_path / "page.html").read_text()
    both = og.compare({"a": tree, "b": tree})
    compared = write(both, tmp_path / "both.html").read_text()
    return tree["loss"], {
        "page": page,
        "summary": str(ResultSummary(tree)),
        "both": compared,
    }


def test_a_level_is_changed_in_one_place_and_found_in_every_other(
    change_levels, tmp_path
):
    usual, texts = everything(tmp_path)
    p_value = float(usual.p_value[1])
    assert 0.01 < p_value < 0.05 and usual.changed.values.tolist() == [
        True,
        False,
        True,
    ]
    assert all("α = 0.01" in " ".join(text.split()) for text in texts.values())
    change_levels(change=0.05, control=0.2)
    lenient, texts = everything(tmp_path)
    assert lenient.changed.all() and float(lenient.p_value[1]) == p_value
    for name, text in texts.items():
        assert "α = 0.05" in " ".join(text.split()) and "α = 0.01" not in text, name
    assert "at α = 0.05, and at 0.2 against control runs" in texts["both"]


def test_a_result_that_states_no_level_is_not_given_one():
    tree = result()
    for node in tree.subtree:
        node.attrs.pop("levels", None)
    summary = str(ResultSummary(tree))
    assert "were tested" in summary and "α" not in summary


def test_runs_that_were_judged_at_different_levels_are_told_apart(change_levels):
    runs = {"a": result()}
    change_levels(change=0.05, control=0.05)
    runs["b"] = result()
    with pytest.raises(
        ArgumentError, match=r"levels .*: α = 0.01 in 'a'; α = 0.05 in 'b'"
    ):
        og.compare(runs)
    both = og.compare(runs, allow=["settings"])
    assert (
        "levels of the tests differ" in both.attrs["problems"]
        and "α" not in both["runs"].attrs["section"]
    )


def test_what_a_study_merges_states_its_levels():
    assert Levels.of(merge.merge("", [], {})) == verdicts.LEVELS
