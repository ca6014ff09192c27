"""A new observable from the guide: a null, a verdict, a row and a figure in at most 30 lines."""

import json
import re
import sys
import tomllib

import numpy as np
import pytest

import ontogeny as og
from helpers.claimed import spoken
from helpers.paths import GUIDES
from helpers.study_examples import LAYERS, developing, jittering, tiny_inputs
from ontogeny.errors import ArgumentError


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    blocks = re.findall(
        r"```python\n(.*?)```", (GUIDES / "observables.md").read_text("utf-8"), re.S
    )
    (block,) = [b for b in blocks if "class NeighbourCosine" in b]
    folder = tmp_path_factory.mktemp("guide")
    (folder / "neighbour_cosine.py").write_text(block, encoding="utf-8")
    sys.path.insert(0, str(folder))
    try:
        yield block, __import__("neighbour_cosine").NeighbourCosine
    finally:
        sys.path.remove(str(folder))


def test_it_takes_at_most_thirty_lines(example):
    body = example[0].partition("@dataclass")[2].splitlines()
    assert len([line for line in body if line.strip()]) + 1 <= 30


def test_its_layers_are_checked(example):
    with pytest.raises(ArgumentError, match=r"^layers must be a pattern"):
        example[1](layers="!")


def test_it_has_a_null_a_verdict_a_row_and_a_figure(example, tmp_path):
    study = og.Study(
        og.Trajectory.from_models(developing()),
        tiny_inputs(40),
        [example[1](LAYERS)],
        device="cpu",
    )
    tree = study.run(tmp_path / "study")
    node = tree["neighbour-cosine"]
    assert (node.status == "done").all()
    assert (node.cosine_low < node.cosine).all() and (
        node.cosine < node.cosine_high
    ).all()
    assert (node.cosine_shuffled_low < node.cosine_shuffled_high).all()
    assert node.sizes["row"] == node.sizes["layer"] and np.isfinite(node.p_value).all()
    (figure,) = json.loads(node.attrs["figures"])
    assert figure["interval"] == ["cosine_low", "cosine_high"] and figure["bands"]
    assert spoken(node.to_dataset())
    assert node.cosine.attrs["long_name"] == "cosine of neighbouring tokens"
    page = (
        og.open_study(tmp_path / "study")
        .report(tmp_path / "page.html")
        .read_text("utf-8")
    )
    assert "Cosine of neighbouring tokens" in page and "tokens out of order" in page


def test_its_verdict_is_not_given_to_noise(example, tmp_path):
    study = og.Study(
        og.Trajectory.from_models(jittering()),
        tiny_inputs(40),
        [example[1](LAYERS)],
        device="cpu",
    )
    assert not study.run(tmp_path / "study")["neighbour-cosine"].changed.any()


def test_the_guide_asks_a_model_what_it_predicts(tmp_path, monkeypatch):
    text = (GUIDES / "observables.md").read_text("utf-8")
    (block,) = [
        b
        for b in re.findall(r"```python\n(.*?)```", text, re.S)
        if "class LastToken" in b
    ]
    (tmp_path / "last_token.py").write_text(block, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    last_token = __import__("last_token").LastToken()
    trajectory = og.Trajectory.from_models(developing((0, 1, 2)))
    node = og.Study(trajectory, tiny_inputs(), [last_token], device="cpu").run(
        tmp_path / "study"
    )["last-token"]
    assert ((node.right > 0) & (node.right < 1)).all() and (node.right_stderr > 0).all()


def test_the_sentences_of_the_guide_are_read():
    text = (GUIDES / "observables.md").read_text("utf-8")
    (block,) = [
        b for b in re.findall(r"```toml\n(.*?)```", text, re.S) if "sentences" in b
    ]
    tables = tomllib.loads(block)["observables"]
    made = [og.observables.make(**table) for table in tables]
    assert [each.kind for each in made] == ["predictions", "token-losses"]
    assert len(made[0].sentences) == 6
