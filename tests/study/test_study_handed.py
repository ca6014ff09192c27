"""What the estimate of a study has read is not read again, where it was read in the same way."""

from collections import Counter
from pathlib import Path

import pytest
import xarray as xr

from helpers.task_at_work import TaskAtWork
from helpers.text_models import text_run
from ontogeny.start import cost
from ontogeny.study import make_study

STEPS = (10, 20, 40, 80, 160, 320)  # without an initialisation
TEXTS = 12
CONTENT = {
    "trajectory": {"folder": "run"},
    "inputs": {"bundled": "english-and-python", "max_texts": TEXTS, "max_length": 16},
    "observables": [
        {"kind": "loss"},
        {
            "kind": "learned-concepts",
            "layers": "model.layers.*.mlp",
            "n_concepts": 3,
            "examples": 0,
        },
    ],
    "controls": {"kind": "turned", "count": 1, "steps": 3},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("handed")
    text_run(folder / "run", STEPS)
    return folder


@pytest.fixture(scope="module")
def handed(place):
    """What is handed on by the estimate."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        begun = cost.estimate(CONTENT, Path(), 0)
        return begun.keep(place / "begun")._handed


@pytest.fixture
def passes(place, monkeypatch):
    """How often each task has run all texts through a model's first block."""
    monkeypatch.chdir(place)
    study = make_study(CONTENT)
    block = type(study.trajectory[STEPS[0]].model().model.layers[0])
    forward = block.forward
    counts = Counter()
    at_work = TaskAtWork(monkeypatch)

    def counting(self, states, *given, **named):
        if len(states) == TEXTS and self.self_attn.layer_idx == 0:
            counts[at_work.label] += 1
        return forward(self, states, *given, **named)

    monkeypatch.setattr(block, "forward", counting)
    return counts


def test_the_steps_and_the_untrained_model_of_the_estimate_are_not_read_again(
    passes, tmp_path
):
    """Of SmolLM2 that was three passes of a study of 51."""
    alone = make_study(CONTENT).run(tmp_path / "alone", progress=False)
    whole = _of_run(passes)
    begun = cost.estimate(CONTENT, Path(), 0)
    estimated = _of_run(passes)
    result = begun.keep(tmp_path / "s").run(tmp_path / "s", progress=False)
    # A masked model reads its texts twice at a step. The first checkpoint of the two that are
    # estimated, with the norms of the other, is no part of the study.
    assert estimated == 2 * 2 + 1 + 1
    assert _of_run(passes) == whole - (estimated - 1)
    assert not len(result.problems())
    for node, cells in alone.tree.children.items():
        xr.testing.assert_identical(cells.to_dataset(), result.tree[node].to_dataset())


@pytest.mark.parametrize(
    ("options", "texts", "count"),
    [
        ({}, TEXTS, 4),
        ({"dtype": "float64"}, TEXTS, 0),
        ({"batch_size": 4}, TEXTS, 0),
        ({}, TEXTS - 1, 0),
        ({"reference": "first"}, TEXTS, 3),
    ],
)
def test_only_what_is_read_in_the_same_way_is_handed_on(
    place, monkeypatch, handed, tmp_path, options, texts, count
):
    monkeypatch.chdir(place)
    inputs = CONTENT["inputs"] | {"max_texts": texts}
    study = make_study(CONTENT | {"inputs": inputs})
    study = study.over(study.trajectory, **options)
    assert len(handed.fitting(study.parts(tmp_path)[0])) == count


def _of_run(passes):
    """Return how often the tasks of the run itself have run all texts, and forget it."""
    count = sum(n for label, n in passes.items() if label and "turned" not in label)
    passes.clear()
    return count
