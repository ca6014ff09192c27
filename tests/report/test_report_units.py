"""A run whose checkpoints count epochs or tokens is told in these, from one place."""

import json
import re
from pathlib import Path

import pytest
import torch

import ontogeny as og
from helpers import report_examples as examples
from helpers.concept_trees import learned
from helpers.report_page import Page
from helpers.study_examples import developing, tiny_inputs, tiny_model
from ontogeny.report.notebook.summary import ResultSummary
from ontogeny.report.page.html import render_page
from ontogeny.report.style import STATIC
from ontogeny.words.content import read_content

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
    named = [attrs[n] for _, attrs in page.tags for n in ("aria-label", "title") if n in attrs]
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
    assert "half of this gain by epoch 16" in words and "leads from epoch 32" in words
    assert "epoch: better than word frequencies" in words
    assert str(ResultSummary(tree)).count("epoch") > 2
    assert not STEP.search(str(ResultSummary(tree)))


@pytest.mark.parametrize("path", sorted(STATIC.glob("*.js")), ids=lambda path: path.name)
def test_scripts_name_no_unit_themselves(path):
    text = re.sub(r"//.*", "", path.read_text())
    assert not re.search(r"[`\"][^`\"\n]*\b[Ss]tep \$\{", text)


@pytest.mark.parametrize(
    ("name", "clock"),
    [("epoch_{}.pt", "training epoch"), ("tokens_{}.pt", "training tokens"), ("step_{}.pt", None)],
)
def test_a_study_notes_what_its_checkpoints_count(tmp_path, name, clock):
    run = tmp_path / "run"
    run.mkdir()
    for step, model in developing((0, 1, 2)).items():
        torch.save(model.state_dict(), run / name.format(step))
    trajectory = og.Trajectory.from_folder(run, model=tiny_model)
    study = og.Study(trajectory, tiny_inputs(), [og.observables.Loss()], device="cpu", noise=0)
    tree = study.run(tmp_path / "s").tree
    assert tree.attrs.get("clock") == clock
    unit = (clock or "training step").removeprefix("training ").removesuffix("s")
    assert f"3, {unit}s 0 to 2" in repr(study) and f"3 checkpoints, {unit}s" in repr(trajectory)
    assert f"3 checkpoints, {unit}s 0 to 2" in str(ResultSummary(tree))
    assert json.loads(tree.attrs["steps"]) == [0, 1, 2] and Path(run).is_dir()
