"""What a notebook and a terminal show of a study and its parts: short, useful and escaped."""

import re

import pytest

import ontogeny as og
from helpers import report_examples as examples
from helpers.study_examples import developing, tiny_inputs
from ontogeny.study import StudyResult
from ontogeny.trajectory.findings import Finding, Findings

BAD = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def study():
    trajectory = og.Trajectory.from_models(developing((0, 1, 2, 4, 8, 16, 32)))
    observables = [og.observables.Loss(), og.observables.AttentionEntropy()]
    return og.Study(
        trajectory,
        tiny_inputs(),
        observables,
        device="cpu",
        noise=0,
        title=BAD,
        controls=2,
        control_steps=3,
    )


@pytest.fixture(scope="module")
def folder(study, tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies") / "s"
    study.run(folder)
    return folder


def test_a_trajectory_lists_some_of_its_checkpoints(study):
    trajectory = study.trajectory
    assert repr(trajectory).endswith("7 checkpoints, steps 0 to 32)")
    html = trajectory._repr_html_()
    assert "7 checkpoints, steps 0 to 32" in html and "6 of 7 checkpoints" in html
    assert re.findall(r"<tr><td>(\d+)</td>", html) == ["0", "1", "2", "4", "8", "32"]


def test_inputs_say_how_many_texts_and_tokens_there_are():
    html = tiny_inputs()._repr_html_()
    assert "<b>24 texts</b>" in html and "<th>ordinary</th>" in html
    assert "<th>duplicates</th>" not in html  # there are none


def test_findings_are_a_table():
    assert Findings([])._repr_html_() == "<p>no findings</p>"
    html = Findings([Finding("identical", "certain", (100, 2000), BAD)])._repr_html_()
    assert (
        "<td>100, 2,000</td>" in html and "&lt;script&gt;" in html and BAD not in html
    )


def test_a_study_says_what_it_observes_on_what_beside_what(study):
    lines = repr(study).splitlines()
    assert lines[0] == f"Study {BAD!r}"
    assert lines[1:] == [
        "  checkpoints: 7, steps 0 to 32",
        "  inputs: text (24 texts)",
        "  observables: loss, attention-entropy",
        "  control runs: 2 turned",
        "  device: cpu",
    ]
    assert "<td>2 turned</td>" in study._repr_html_() and BAD not in study._repr_html_()


def test_a_plan_is_shown_as_it_is_printed(study, folder):
    for plan in (study.plan(), study.plan(folder)):
        assert repr(plan) == str(plan)
        html = plan._repr_html_()
        shown = re.sub(r"<[^>]+>", " ", html)
        for line in str(plan).splitlines():
            assert all(part in shown for part in re.split(r":? ", line.strip())), line


def test_a_result_lists_its_nodes_in_their_order(folder):
    result = og.open_study(folder)
    assert repr(result).splitlines()[:4] == [
        f"StudyResult {BAD!r}, no problems in 14 cells",
        "node               what                 sizes            figures",
        "loss               Loss on fixed texts  step 7           1",
        "attention-entropy  Attention entropy    step 7, layer 2  2",
    ]
    html = result._repr_html_()
    assert (
        "<td>attention-entropy</td>" in html
        and BAD not in html
        and "&lt;script&gt;" in html
    )


@pytest.mark.parametrize("held", ["[broken", "7", '{"title": 3}', "", 5])
def test_a_result_with_attributes_of_another_kind_is_shown(held):
    tree = examples.controlled_tree()
    tree.attrs["nodes"] = held
    tree["loss"].attrs |= {"section": held, "figures": held}
    assert "\nloss " in repr(StudyResult(tree)) and StudyResult(tree)._repr_html_()


def test_a_result_says_first_what_failed():
    tree = examples.controlled_tree()
    tree["loss"].attrs["failed"] = "no"
    result = StudyResult(tree)
    assert "1 of 26 cells failed" in repr(result).splitlines()[0]
    assert re.search(r"^loss .* failed ", repr(result), re.MULTILINE)
    assert "1 of 26 cells failed" in result._repr_html_()
