"""Why something is not on a page stands on it; why the loss is not, on its first screen."""

import json

import numpy as np
import pytest

import ontogeny as og
from helpers.study_examples import (
    LAYERS,
    ActivationNorm,
    developing,
    record,
    tiny_inputs,
)
from ontogeny.errors import ArgumentError
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.study import read_study
from ontogeny.words.basis import basis
from ontogeny.words.content import read_content

WHY = "LastOnly returns no logits"


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    run = og.Trajectory.from_models(developing((0, 1, 2, 4)))
    left_out = {"loss": WHY, "predictions": WHY, "attention-entropy": "it gives none"}
    study = og.Study(
        run, tiny_inputs(), [ActivationNorm(LAYERS)], noise=0, left_out=left_out
    )
    folder = tmp_path_factory.mktemp("study") / "s"
    study.run(folder, progress=False)
    return folder


def test_the_first_screen_begins_with_why_there_is_no_loss(result):
    content = read_content(og.open_study(result))
    lines = first_screen(content).sentences
    assert (lines[0].lead, lines[0].text) == ("No loss was measured:", f"{WHY}.")
    sure = basis(content)
    assert "Left out: predictions, as the loss is." in sure
    assert "Left out: attention-entropy, because it gives none." in sure
    page = og.open_study(result).report(result / "page.html").read_text()
    assert page.count(WHY) == 1 + page[: page.index("<body")].count(WHY)
    assert 'id="life"' not in page  # there is nothing to draw


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('kinds = "loss"', "needs kinds and why"),
        ('kinds = ["loss"]\nwhy = 3', "why"),
        ('kind = "loss"\nwhy = "none"', "kind"),
    ],
)
def test_reasons_in_a_study_file_are_read_or_refused(tmp_path, entry, message):
    record(developing((0, 1)), tmp_path / "run")
    np.save(tmp_path / "ids.npy", np.arange(40).reshape(4, 10))
    head = """
[trajectory]
folder = "run"

[inputs]
tokens = "ids.npy"

[[observables]]
kind = "weight-norms"

[[left_out]]
"""
    file = tmp_path / "study.toml"
    file.write_text(head + entry)
    with pytest.raises(ArgumentError, match=message):
        read_study(file)
    file.write_text(head + f'kinds = ["loss", "answers"]\nwhy = "{WHY}"')
    read_study(file).run(tmp_path / "s", progress=False)
    left_out = og.open_study(tmp_path / "s").result.attrs["left_out"]
    assert json.loads(left_out) == {"loss": WHY, "answers": WHY}


def test_reasons_are_words():
    run = og.Trajectory.from_models(developing((0, 1)))
    for bad in ({"loss": 3}, {1: "why"}):
        with pytest.raises(ArgumentError, match="left_out must say in words"):
            og.Study(run, tiny_inputs(), [ActivationNorm(LAYERS)], left_out=bad)
