"""The heading of a comparison: what every run's own page says, and nothing else."""

import pytest

import ontogeny as og
from helpers import concept_trees as made
from ontogeny.words.content import read_content
from ontogeny.words.overview import overview


def headed(*losses):
    runs = {f"seed {i}": made.tree({"loss": loss}) for i, loss in enumerate(losses)}
    return overview(read_content(og.compare(runs, allow=["checkpoints", "inputs"]))).heading


def test_runs_that_say_the_same_have_its_words_for_a_heading():
    words = headed(made.loss_story(), made.loss_story(), made.loss_story())
    assert words == "Each of 3 runs learned word frequencies first, then context"


@pytest.mark.parametrize(
    "other",
    [
        made.loss_story(context=False, halves=((8.0, 16.0), (float("nan"),) * 2)),
        made.loss_story(halves=((8.0, 64.0), (32.0, 64.0))),
        made.loss_story(context=None),
    ],
)
def test_runs_that_differ_have_no_landmarks_together(other):
    assert "occur" not in headed(made.loss_story(), other)
