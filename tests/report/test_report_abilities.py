"""Abilities of a page: one order over all nodes, verdicts corrected over the page."""

import numpy as np
import pytest
import xarray as xr

from ontogeny.features.abilities.changes import group_changes
from ontogeny.features.abilities.groups import with_courses
from ontogeny.words.abilities import abilities_of
from ontogeny.words.content import read_content

STEPS = np.array([0, 10, 20, 40])


def node(courses, dim="pair", pairs=24, control=None, seed=0):
    """Return a node whose groups are right in as large a share of examples as given."""
    rng = np.random.default_rng(seed)
    right, of_example = [], []
    for name, shares in courses.items():
        luck = rng.permutation(pairs) / pairs
        right.append([(luck < share).astype(float) for share in shares])
        of_example += [name] * pairs
    right = np.concatenate(right, axis=1)
    group = xr.DataArray(np.array(of_example, dtype=object), dims=dim)
    accuracy = np.stack([right[:, of == np.array(of_example)].mean(1) for of in courses], 1)
    data = xr.Dataset(
        {"accuracy": (("step", "group"), accuracy), f"group_of_{dim}": group},
        {"step": STEPS, "group": np.array([*courses], dtype=object)},
    )
    if control is not None:
        values = np.full((2, 4, len(courses)), control)
        data["accuracy_control"] = (("run", "step", "group"), values)
    return with_courses(data, right, group, np.full(right.shape[1], 0.5), dim=dim)


def content(**nodes):
    return read_content(xr.DataTree.from_dict({f"/{name}": data for name, data in nodes.items()}))


@pytest.fixture(scope="module")
def two():
    pairs = node({"late": [0.5, 0.5, 0.5, 1], "early": [0.5, 1, 1, 1], "lost": [1, 1, 0.5, 0.5]})
    other = node({"never": [0.5, 0.5, 0.5, 0.6]}, dim="choice", control=0.45)
    return abilities_of(content(pairs=pairs, choices=other).nodes)


def test_groups_of_all_nodes_stand_in_the_order_in_which_they_leave_chance(two):
    assert [each.name for each in two] == ["early", "late", "never", "lost"]
    assert [each.above for each in two] == [True, True, False, False]
    assert two[0].above_from == 10 and two[1].above_from == 40
    assert np.isnan(two[2].above_from)


def test_what_is_gained_and_lost_is_paired_and_names_what_is_sure(two):
    assert [each.gained for each in two] == [True, True, False, False]
    assert [each.lost for each in two] == [False, False, False, True]
    assert two[0].change_low > 0 > two[3].change_high
    assert two[2].change_low < 0 < two[2].change_high


def test_controls_are_those_of_the_node(two):
    assert two[2].controls == (0.45, 0.45) and two[0].controls == ()


def test_verdicts_are_corrected_over_the_page():
    border = {"border": [0.5, 0.5, 0.5, 0.75]}  # 18 of 24: p = .011
    alone = abilities_of(content(pairs=node(border)).nodes)
    more = {f"group {i}": [0.5] * 4 for i in range(8)}
    among = abilities_of(content(pairs=node(border), choices=node(more, dim="choice")).nodes)
    assert alone[0].above and not any(each.above for each in among)


def test_groups_of_other_examples_are_not_compared():
    data = node({"tense": [0.5, 1, 1, 1]})
    fewer = node({"tense": [0.5, 1, 1, 1]}, pairs=12)
    assert group_changes(data.isel(step=0), fewer.isel(step=-1)) == []
    (change,) = group_changes(data.isel(step=0), node({"tense": [0, 0, 0, 1]}).isel(step=-1))
    assert change.gained and not change.lost


def test_examples_of_one_contrast_count_as_one():
    data = node({"likes a word": [0.5, 1, 1, 1]}).assign(contrast=("pair", np.arange(24) % 2))
    turned = np.where(np.arange(24) % 2, [[0.0], [1.0]], 0.0)
    states = data.isel(step=[0, 1]).assign(right=(("step", "pair"), turned))
    (change,) = group_changes(states.isel(step=0), states.isel(step=1))
    assert change.after == 0.5 and change.p_value > 0.5
