"""What changed of groups of examples: on these, beyond them, and what only wanders."""

import numpy as np
import pytest
import xarray as xr
from scipy.stats import binomtest

from ontogeny.claims import Certainty, Kind, Reason
from ontogeny.features.abilities.changes import group_changes, p_on_these
from ontogeny.features.abilities.groups import group_figures, with_courses
from ontogeny.features.abilities.intervals import p_turned, p_wandering
from ontogeny.observables import MinimalPairs
from ontogeny.summary import with_verdicts
from ontogeny.summary.summarise import summarise
from ontogeny.words.abilities import abilities_of
from ontogeny.words.content import read_content
from ontogeny.words.row_words import facts, state_words
from ontogeny.words.sections import section_sentences

STEPS = np.array([0, 10, 20, 40])


def rising(totals, number=120):
    """Return which of some examples are right, the first ones."""
    return np.array([[float(i < total) for i in range(number)] for total in totals])


def node(right, words=None, groups=("words",)):
    """Return a node of pairs with these answers, whose words are of one contrast by default."""
    number = right.shape[1]
    words = words or [("is", "are")] * number
    of_pair = np.repeat(np.array(groups, dtype=object), number // len(groups))
    steps = STEPS[: len(right)] if len(right) <= len(STEPS) else np.arange(len(right))
    accuracy = np.stack(
        [right[:, of_pair == name].mean(axis=1) for name in groups], axis=1
    )
    data = xr.Dataset(
        {
            "accuracy": (("step", "group"), accuracy),
            "word_right": ("pair", np.array([one for one, _ in words], dtype=object)),
            "word_wrong": (
                "pair",
                np.array([other for _, other in words], dtype=object),
            ),
            "group_of_pair": ("pair", of_pair),
        },
        {"step": steps, "group": np.array(groups, dtype=object)},
    )
    return with_courses(data, right, data.group_of_pair, np.full(number, 0.5))


def able_of(page):
    return abilities_of({node.path: node.dataset for node in page.nodes})


def content(data):
    data = summarise(data, MinimalPairs.quantities, MinimalPairs.section)
    return read_content(xr.DataTree.from_dict(with_verdicts({"pairs": data})))


@pytest.mark.parametrize(
    "totals", [(0, 105), (0, 30, 70, 105), (0, 0, 105, 105), (2, 1, 101, 105)]
)
def test_from_0_to_105_of_120_is_changed_on_these_items_in_row_sentence_and_table(
    totals,
):
    data = node(rising(totals))
    page = content(data)
    (row,) = [row for row in page.rows if row.variable == "accuracy"]
    assert row.changed and not row.learned
    assert state_words(row).startswith("changed on these examples (exact test)")
    assert any(
        text.startswith("p on these examples (exact test) < ") for text in facts(row)
    )
    (able,) = able_of(page)
    assert able.on_these and not able.gained and not able.above
    [here, above] = [c for c in page.claims if c.subject.label == "words"]
    assert (above.kind, above.reason, above.needed) == (
        Kind.ABOVE_CHANCE,
        Reason.FEW_CONTRASTS,
        5,
    )
    assert (here.kind, here.certainty) == (Kind.CHANGED_ON_ITEMS, Certainty.SURE)
    told = [one.text for one in section_sentences(page, page.nodes[0])]
    assert any("“words” changed on these items, from" in text for text in told)
    assert any("5 would do" in text for text in told)


def test_a_row_that_is_not_changed_names_the_same_test():
    (row,) = [
        r
        for r in content(node(rising((60, 52, 66, 63)))).rows
        if r.variable == "accuracy"
    ]
    assert not row.changed
    assert (
        state_words(row)
        == "open on these examples (exact test): chance turns as many items"
    )


def test_a_contrast_that_stands_both_ways_is_gained_beyond_these_examples():
    words = [("is", "are"), ("are", "is")] * 60
    before = np.array([1.0, 0.0] * 60)  # a liking, which turns into an ability
    (able,) = able_of(content(node(np.stack([before, before, np.ones(120)]), words)))
    assert able.gained and able.above and not able.on_these and able.needs == 0
    (other,) = able_of(content(node(np.stack([before, before, 1 - before]), words)))
    assert not other.gained and not other.lost and not other.above


def test_the_exact_test_of_the_same_examples_is_that_of_scipy():
    rng = np.random.default_rng(0)
    for _ in range(20):
        change = rng.choice([-1, 0, 1], 30, p=[0.2, 0.5, 0.3])
        up, turned = int((change > 0).sum()), int((change != 0).sum())
        expected = binomtest(up, turned).pvalue if turned else 1.0
        assert p_turned(change) == pytest.approx(expected)


def test_a_run_that_wanders_does_not_change_by_its_first_and_last_checkpoint():
    rng, false, draws = np.random.default_rng(0), 0, 200
    for _ in range(draws):
        level = 0.5 * rng.normal(size=(10, 1)) + rng.normal(size=120)
        level = level + 0.5 * rng.normal(size=(10, 120))
        false += p_on_these((level > 0).astype(float)) <= 0.05
    assert false <= 0.1 * draws
    ends = rising([40, 70, 45, 75, 42, 72])
    assert p_turned(ends[-1] - ends[0]) < 1e-6 < 0.05 < p_wandering(ends)


@pytest.mark.parametrize("checkpoints", [2, 3, 4, 5])
@pytest.mark.parametrize("memory", [0.0, 0.5])
def test_few_checkpoints_that_come_in_order_are_no_change_at_one_percent(
    checkpoints, memory
):
    rng, false = np.random.default_rng(checkpoints), 0
    for _ in range(200):
        noise = rng.normal(size=checkpoints)
        for i in range(1, checkpoints):
            noise[i] += memory * noise[i - 1]
        level = 0.5 * noise[:, None] + 0.5 * rng.normal(size=(checkpoints, 120))
        false += p_on_these((level + rng.normal(size=120) > 0).astype(float)) <= 0.01
    assert false <= 4  # by the first and the last alone 30 to 130


def test_many_checkpoints_that_come_in_order_are_a_change():
    assert p_on_these(rising([0, 20, 40, 60, 80, 100, 105])) < 0.001


def test_independent_flips_between_checkpoints_are_no_change():
    rng, false, draws = np.random.default_rng(1), 0, 200
    for _ in range(draws):
        right = [rng.integers(0, 2, 60)]
        for _ in range(7):
            right.append(np.where(rng.random(60) < 0.1, 1 - right[-1], right[-1]))
        false += p_on_these(np.array(right, dtype=float)) <= 0.05
    assert false <= 0.1 * draws


def test_two_states_say_what_changed_on_these_examples_alone():
    data = node(rising((0, 105)))
    (group,) = group_changes(data.isel(step=0), data.isel(step=-1))
    assert group.on_these and not group.gained and np.isnan(group.change.low)
    many = [(f"a{i}", f"b{i}") for i in range(12) for _ in range(10)]
    data = node(rising((0, 105)), many)
    (group,) = group_changes(data.isel(step=0), data.isel(step=-1))
    assert group.gained and not group.on_these and group.change.low > 0.3


def test_words_that_join_contrasts_of_one_group_leave_those_of_another_apart():
    words = [("a", "b")] * 10 + [("c", "d")] * 10 + [("b", "c")] * 20
    data = node(np.ones((2, 40)), words, groups=("apart", "between")).set_coords(
        "group"
    )
    assert dict(zip(data.group.values, data.clusters.values.tolist(), strict=True)) == {
        "apart": 2,
        "between": 1,
    }


def test_chances_that_are_equal_but_for_rounding_are_one_middle_of_the_map():
    def drawn(chance):
        variables = {"accuracy_chance": ("group", chance), "step": [0, 1]}
        (figure,) = group_figures(xr.Dataset(variables))
        return figure.middle

    thirds = [np.full(count, 1 / 3).mean() for count in range(1, 12)]
    assert len(set(thirds)) > 1 and drawn(thirds) == pytest.approx(1 / 3)
    assert drawn([*thirds, 1 / 2]) is None
