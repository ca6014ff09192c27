"""The case of a curriculum switch: its judge on planted courses of accuracy and similarity."""

import numpy as np
import xarray as xr

from ontogeny_papers.reproduce.known import curriculum

STEPS = np.arange(0, 101, 10)


def accuracy(first, second):
    sets = {"set": ["m=1", "m=2"], "step": STEPS}
    return xr.Dataset(
        {
            "accuracy": (("set", "step"), np.array([first, second], float)),
            "accuracy_majority": (("set", "step"), np.full((2, 11), 0.125)),
            "accuracy_control": (("run", "set", "step"), np.full((3, 2, 11), 0.12)),
        },
        sets,
    )


def similarity(early, late):
    values = np.zeros((2, 11, 11))
    values[:, 5, -1] = early, late
    data = dict.fromkeys(
        ("between", "between_shuffled"), (("layer", "step", "step_"), values)
    )
    layers = ["layers.0", "layers.1"]
    return xr.Dataset(data, {"layer": layers, "step": STEPS, "step_": STEPS})


def answers(first, *, mixed=1.0, early=0.9, late=0.2):
    learned = [0.1] * 3 + [1.0] * 8
    later = [0.1] * 7 + [1.0] * 4
    found = {
        "readout-accuracy": {
            "switch": [accuracy(first, later)] * 2,
            "mixed": [accuracy([mixed] * 11, learned)] * 2,
        },
        "step-similarity": {
            "switch": [similarity(early, late)] * 2,
            "mixed": [similarity(0.9, 0.9)] * 2,
        },
    }
    return [verdict.holds for verdict in curriculum.judge(found)]


def test_the_judge_finds_what_is_planted_and_misses_what_is_not():
    # At step 60, the first after the switch at 50.
    forgotten = [0.1] * 3 + [1.0] * 3 + [0.3] * 5
    assert answers(forgotten) == [True] * 3
    later = [0.1] * 3 + [1.0] * 5 + [0.3] * 3
    assert answers(later)[:2] == [True, False]
    assert answers([1.0] * 11)[0] is False
    assert answers([0.1] * 11)[:2] == [None, None]  # never learned
    assert answers(forgotten, mixed=0.5)[0] is False
    assert answers(forgotten, late=0.85)[2] is False


def test_the_settings_have_two_stages_and_three_controls():
    recipe = curriculum.RECIPE
    for size in (recipe.full, recipe.quick):
        assert [m for _, m in size.runs["switch"].stages()] == [1, 2]
        assert (
            size.runs["mixed"].stages() == []
            and size.runs["switch"].steps % (2 * size.every) == 0
        )
    assert recipe.controls == 3
