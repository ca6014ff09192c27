"""A run whose checkpoints count epochs or tokens is told in these, from one place."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr

import ontogeny as og
from helpers import report_examples as examples
from helpers import tiny_models
from helpers.concept_trees import learned
from helpers.report_page import Page
from helpers.study_examples import developing, tiny_inputs, tiny_model
from ontogeny import report
from ontogeny.figures import Band, Column, Curves, Section, Table, attach
from ontogeny.report.notebook.summary import ResultSummary
from ontogeny.report.page.html import render_page
from ontogeny.words.content import read_content

SCRIPTS = Path(report.__file__).parent / "scripts"

STEP = re.compile(r"(?<![\w-])steps?\b(?! lengths?)", re.IGNORECASE)


def counted(tree, clock):
    tree.attrs["clock"] = clock
    return tree


def texts_of(data):
    """All sentences in the page's data; keys and code are none."""
    if isinstance(data, dict):
        return [text for value in data.values() for text in texts_of(value)]
    if isinstance(data, list):
        return [text for value in data for text in texts_of(value)]
    whole = isinstance(data, str) and " " in data and not data.startswith("import ")
    return [data] if whole else []


def told(tree):
    """What a page says: its text without code, names for a screen reader, sentences in its data."""
    html = render_page(read_content(tree))
    page = Page(re.sub(r"(?s)<(code|bdi|style)\b.*?</\1>", " ", html))
    named = [
        attrs[n]
        for _, attrs in page.tags
        for n in ("aria-label", "title")
        if n in attrs
    ]
    return [page.words, *named, *texts_of(page.data)]


@pytest.mark.parametrize("make", [learned, examples.controlled_tree])
@pytest.mark.parametrize("clock", ["training epoch", "training tokens"])
def test_no_sentence_of_a_page_says_step_where_another_unit_is_counted(make, clock):
    assert any(STEP.search(text) for text in told(make()))
    wrong = [(text, STEP.search(text)) for text in told(counted(make(), clock))]
    assert [text[max(m.start() - 40, 0) :][:100] for text, m in wrong if m] == []


def test_numbers_have_the_unit_and_names_stay():
    tree = counted(learned(), "training epoch")
    words = told(tree)[0]
    assert "12 checkpoints, epochs 0 to 512" in words
    assert "was there by epoch 16" in words and "leads from epoch 32" in words
    assert "epoch: below word frequencies" in words
    assert str(ResultSummary(tree)).count("epoch") > 2
    assert not STEP.search(str(ResultSummary(tree)))


@pytest.mark.parametrize(
    "path", sorted(SCRIPTS.glob("*.js")), ids=lambda path: path.name
)
def test_scripts_name_no_unit_themselves(path):
    text = re.sub(r"//.*", "", path.read_text())
    assert not re.search(r"[`\"][^`\"\n]*\b[Ss]tep \$\{", text)


@pytest.mark.parametrize(
    ("name", "clock"),
    [
        ("epoch_{}.pt", "training epoch"),
        ("tokens_{}.pt", "training tokens"),
        ("step_{}.pt", None),
    ],
)
def test_a_study_notes_what_its_checkpoints_count(tmp_path, name, clock):
    run = tmp_path / "run"
    run.mkdir()
    for step, model in developing((0, 1, 2)).items():
        torch.save(model.state_dict(), run / name.format(step))
    trajectory = og.Trajectory.from_folder(run, model=tiny_model)
    study = og.Study(
        trajectory, tiny_inputs(), [og.observables.Loss()], device="cpu", noise=0
    )
    tree = study.run(tmp_path / "s").tree
    assert tree.attrs.get("clock") == clock
    unit = (clock or "training step").removeprefix("training ").removesuffix("s")
    assert f"3, {unit}s 0 to 2" in repr(study) and f"3 checkpoints, {unit}s" in repr(
        trajectory
    )
    assert f"3 checkpoints, {unit}s 0 to 2" in str(ResultSummary(tree))
    assert json.loads(tree.attrs["steps"]) == [0, 1, 2] and Path(run).is_dir()


def of_a_user(clock):
    """A node whose labels, names and words say step: of the axis, and of something else."""
    names = {
        "gain": (
            ("step", "which"),
            np.ones((3, 2)),
            "gain since the first {checkpoint}",
            "1",
        ),
        "rate": ("layer", [1.0, 2.0], "rate of the exponential", "per {step}"),
        "half": ("layer", [10.0, 20.0], "{checkpoint} of half the way", "{step}s"),
        "size": ("step", [1.0, 2.0, 3.0], "optimizer step size", "1"),
    }
    data = xr.Dataset(
        {
            name: (dims, values, {"long_name": words, "units": units})
            for name, (dims, values, words, units) in names.items()
        },
        {"step": [10, 20, 30], "layer": ["a", "b"], "which": ["first step", "other"]},
    )
    band = [Band("size", "size", "as at {step} 10")]
    figures = [
        Curves(
            "c",
            "Gain by {step} 20",
            "gain",
            series=None,
            select={"which": "first step"},
        ),
        Curves(
            "s",
            "Size",
            "size",
            "From {step} 10, not “step 3”.",
            series=None,
            bands=band,
        ),
        Table("t", "Rates", columns=[Column("rate", "optimizer step"), Column("half")]),
    ]
    data = attach(
        data,
        Section("Gain at {step} 10", "Per {step}."),
        figures,
        ["By {step} 20, not “step 3”."],
    )
    root = {"title": "step 3", "steps": "[10, 20, 30]", "clock": clock}
    return xr.DataTree.from_dict({"/": xr.Dataset(attrs=root), "/own": data})


def test_labels_and_names_of_users_stay_where_epochs_are_counted():
    content = read_content(of_a_user("training epoch"))
    (node,) = content.nodes
    (gain, why), (size, _), (rates, _) = node.figures
    assert gain.select == {"which": "first step"} and why == ""
    gain.check(node.dataset)
    assert "cannot be drawn" not in render_page(content)
    named = {
        name: tuple(v.attrs.values()) for name, v in node.dataset.data_vars.items()
    }
    assert named["size"] == ("optimizer step size", "1")
    assert rates.columns[0].label == "optimizer step"
    assert named["rate"] == ("rate of the exponential", "per epoch")
    assert named["half"] == ("checkpoint of half the way", "epochs")
    assert named["gain"] == ("gain since the first checkpoint", "1")
    assert gain.title == "Gain by epoch 20" and size.bands[0].label == "as at epoch 10"
    assert size.caption == "From epoch 10, not “step 3”."
    assert node.statements == ["By epoch 20, not “step 3”."]
    assert (node.title, node.section["definition"]) == (
        "Gain at epoch 10",
        "Per epoch.",
    )


def test_findings_of_runs_aligned_by_tokens_keep_the_steps_that_they_count(tmp_path):
    torch.manual_seed(0)
    runs = {}
    for name in ("a", "b"):
        models = {step: tiny_models.gpt2() for step in (10, 20, 30)}
        trajectory = og.Trajectory.from_models(models)
        study = og.Study(
            trajectory, tiny_inputs(), [og.observables.Loss()], device="cpu", noise=0
        )
        runs[name] = study.run(tmp_path / name)
    content = read_content(og.compare(runs, align="tokens", tokens_per_step=1000).tree)
    assert content.voice.unit == "token" and content.steps == (10_000, 20_000, 30_000)
    assert {f.steps for f in content.findings} == {(20_000,), (30_000,)}
    for finding in content.findings:
        assert "of step " in finding.message and "token" not in finding.message
    assert not re.search(r"\btokens? [123]0\b(?!,)", render_page(content))


def test_a_result_without_marks_opens_as_it_was_written():
    """One of an earlier version, or of a third party, says what its texts say."""
    data = xr.Dataset({"x": ("step", [1.0], {"units": "steps"})}, {"step": [1]})
    data = attach(data, Section("Gain at step 10", "Per step."), [], ["By step 20."])
    root = xr.Dataset(attrs={"steps": "[1]", "clock": "training epoch"})
    (node,) = read_content(xr.DataTree.from_dict({"/": root, "/own": data})).nodes
    assert (node.title, node.statements) == ("Gain at step 10", ["By step 20."])
    assert node.dataset.x.attrs["units"] == "steps"
