"""A study within a time: controls stay, checkpoints go, then texts; the least is refused."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.text_models import text_run
from ontogeny.errors import ArgumentError
from ontogeny.features.abilities.token_texts import TokenTexts
from ontogeny.observables.registry import make
from ontogeny.start import budget
from ontogeny.start.cost import Cost, estimate
from ontogeny.start.opened import Opened
from ontogeny.start.sampled import FEW, MORE, samples_of, with_samples
from ontogeny.start.wishes import Wishes
from ontogeny.study import make_study

STEPS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
CONTENT = {
    "trajectory": {"folder": "run"},
    "inputs": {"bundled": "english-and-python", "max_texts": 100, "max_length": 32},
    "observables": [{"kind": "loss"}],
    "controls": {"kind": "turned", "count": 3, "steps": 6},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("budget")
    text_run(folder / "run", STEPS)
    return folder


@pytest.fixture
def billed(monkeypatch):
    """Ten seconds a checkpoint for 100 texts, and a fifth of it for each of three controls there."""
    seen = []

    def estimate(content, folder, fetched, sampled=False):
        study = make_study(content, folder)
        seen.append(study)
        texts = _texts(study)

        def of(steps):
            seconds = texts / 10 * (steps + 0.6 * min(6, steps))
            return Cost(
                steps,
                0,
                1_000_000,
                seconds,
                1,
                "cpu",
                fewer=of,
                keep=lambda _, other: other,
            )

        return replace(of(len(study.trajectory)), texts=texts)

    monkeypatch.setattr(budget, "estimate", estimate)
    return seen


def within(place, seconds, content=CONTENT):
    return budget.within(content, place, 0, seconds, lambda cost: 1)


def test_what_fits_is_left_as_it_is(place, billed):
    found = within(place, 177)
    assert found.content == CONTENT and found.lines == []
    assert found.cost.checkpoints == len(STEPS) and found.cost.texts == 100


def test_checkpoints_go_first_and_the_time_holds(place, billed):
    found = within(place, 145)
    assert found.cost.seconds_with(1) <= 145 < found.cost.seconds_with(1) + 10
    assert found.content["trajectory"]["select"] == {"count": 8, "spacing": "log"}
    assert found.content["controls"] == CONTENT["controls"]
    assert found.lines == ["8 of 12 checkpoints; all controls"]
    # The checkpoint that was timed is not computed again.
    begun = found.cost.keep(place / "begun")
    assert begun is not billed[-1]
    assert len(begun.trajectory) == found.cost.checkpoints == 8


def test_few_texts_are_timed_before_all_of_them(place, billed):
    """The trial of all texts of a large model took longer than the time that was given."""
    many = CONTENT | {"inputs": CONTENT["inputs"] | {"max_texts": 300}}
    found = within(place, 100, many)
    texts = [_texts(study) for study in billed]
    assert texts[0] == 20 and max(texts) <= found.cost.texts < 100


@pytest.mark.parametrize("fixed", [0.0, 30.0])
def test_texts_grow_until_no_more_fit(place, monkeypatch, fixed):
    """What a trial takes is a fixed part and one for each text."""
    tried = []

    def estimate(content, folder, fetched, sampled=False):
        tried.append(_texts(make_study(content, folder)))
        return Cost(1, 0, 0, fixed + tried[-1], 1, "cpu", texts=tried[-1])

    monkeypatch.setattr(budget, "estimate", estimate)
    many = CONTENT | {"inputs": CONTENT["inputs"] | {"max_texts": 310}}
    found = within(place, 20 + 250, many)
    assert 0.8 * (250 - fixed) <= found.cost.texts <= 250 - fixed
    assert tried[0] == 20 and len(tried) <= 4
    assert within(place, 20 + 400, many).cost.texts == 310


def _texts(study):
    return len(next(iter(study.inputs.values())))


def test_texts_go_next_and_are_timed_again(place, billed):
    found = within(place, 80)
    assert found.cost.seconds_with(1) <= 80 and len(billed) > 1
    assert found.cost.checkpoints == budget.FEWEST_STEPS
    assert found.content["inputs"]["max_texts"] == found.cost.texts >= 20
    assert f"8 of 12 checkpoints and {found.cost.texts} of 100 texts" in found.lines[0]


def test_weights_alone_take_no_time_at_one_checkpoint_and_have_fewer(place):
    alone = CONTENT | {"observables": [{"kind": "vocabulary-concepts"}]}
    cost = estimate(alone, place, 0)
    assert cost.at_one == 0 and cost.fewer(8).seconds < cost.seconds
    with pytest.raises(ArgumentError, match="8 checkpoints and 20 texts"):
        within(place, 1, alone)


def test_the_rest_of_a_selection_stays(place, billed):
    select = {"count": 11, "spacing": "linear", "start": 1}
    found = within(
        place, 145, CONTENT | {"trajectory": {"folder": "run", "select": select}}
    )
    assert found.content["trajectory"]["select"] == {**select, "count": 8}


def test_steps_that_were_named_stay(place, billed):
    named = {"folder": "run", "select": {"steps": list(STEPS)}}
    found = within(place, 120, CONTENT | {"trajectory": named})
    assert found.content["trajectory"] == named and found.cost.texts < 100


def test_the_least_is_refused_with_how_long_it_takes(place, billed):
    with pytest.raises(
        ArgumentError,
        match=r"8 checkpoints and 20 texts take about 1 minute; give more, another --preset\.$",
    ):
        within(place, 30)
    many = CONTENT | {"controls": {"kind": "turned", "count": 10, "steps": 6}}
    with pytest.raises(
        ArgumentError, match=r"or fewer controls \(--set controls.count=4\)"
    ):
        within(place, 30, many)


def test_what_was_not_timed_is_left_to_be_said(place, monkeypatch):
    failed = Cost(12, 0, 0, 0.0, 0.0, "cpu", why_not="it fails")
    monkeypatch.setattr(budget, "estimate", lambda *_, **__: failed)
    assert within(place, 30).cost is failed


@pytest.mark.slow
def test_a_trial_asks_samples_of_the_pairs_and_says_what_all_of_them_take(
    place, monkeypatch, tmp_path
):
    """Pairs do not become fewer with the texts: they were most of what a trial read."""
    asked = Counter()
    scores = TokenTexts.scores

    def counting(self, predictor):
        asked[len(self)] += self.scored.sum()
        return scores(self, predictor)

    monkeypatch.setattr(TokenTexts, "scores", counting)
    pairs = CONTENT | {
        "observables": [*CONTENT["observables"], {"kind": "minimal-pairs"}]
    }
    whole = estimate(pairs, place, 0)
    of_all = asked.total()
    asked.clear()
    sampled = estimate(pairs, place, 0, sampled=True)
    groups = 23
    assert set(asked) == {2 * FEW * groups, 2 * MORE * groups}
    assert asked.total() < of_all / 3
    assert sampled.kept < sampled.at_one and whole.kept == whole.at_one
    # Of all pairs nothing is there yet.
    study = sampled.keep(tmp_path / "s")
    to_do = {
        entry.node: entry.key
        for entry in study.plan(tmp_path / "s").entries
        if entry.to_do
    }
    assert "minimal-pairs" in to_do and set(to_do) <= {"loss", "minimal-pairs"}
    plan = study.plan(tmp_path / "s")
    assert not plan.changes()
    assert sum(e.to_do for e in plan.entries if e.node == "loss" and not e.run) < len(
        STEPS
    )


def test_samples_have_some_of_each_group(tmp_path):
    rows = [
        {"right": f"it {verb}s {n}", "wrong": f"it {verb} {n}", "group": verb}
        for verb in ("run", "see", "eat")
        for n in range(20)
    ]
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    pairs = make("minimal-pairs", examples=[str(file)])
    (sample,) = samples_of([make("loss"), pairs], tmp_path / "samples")
    length = [len(json.dumps(row)) for row in rows]
    of_each = [length[:20], length[20:40], length[40:]]
    few, more, whole = sample.sizes
    assert few == sum(sum(of[:FEW]) for of in of_each)
    assert more == sum(sum(of[:MORE]) for of in of_each)
    assert whole == sum(length)
    for observable, count in ((sample.few, FEW), (sample.more, MORE)):
        examples, _ = observable.read()
        assert Counter(e.group for e in examples) == dict.fromkeys(
            ("run", "see", "eat"), count
        )
        assert Path(observable.examples[0]).stem == "pairs"
    names = [o.name for o in with_samples([pairs, make("loss")], [sample])]
    assert names == ["loss", "minimal-pairs-few", "minimal-pairs"]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows[::5]))
    assert samples_of([pairs], tmp_path / "samples") == []


@pytest.mark.parametrize(
    ("wished", "says"),
    [
        ({"budget": "soon"}, "--budget must be a time above zero .* got 'soon'"),
        ({"budget": "0h"}, "got '0h'"),
        ({"sets": ["options.device=cuda:7"]}, "one that is here: cpu.*got 'cuda:7'"),
        ({"sets": ['options.device = "cuda:7"']}, "got 'cuda:7'"),
    ],
)
def test_a_time_that_is_none_and_a_device_that_is_not_here_are_refused_first(
    place, monkeypatch, wished, says
):
    def opened(*_, **__):
        raise AssertionError("the run was opened")

    monkeypatch.setattr("ontogeny.start.opened.open_source", opened)
    with pytest.raises(ArgumentError, match=says):
        Opened.of(Wishes(str(place / "run"), **wished))


@pytest.mark.parametrize(("rate", "trials"), [(0.01, 2), (0.5, 1)])
def test_trials_take_a_tenth_of_the_budget_and_the_rest_is_scaled(
    place, monkeypatch, rate, trials
):
    """With all 541 texts of a large model, they took two thirds of ten minutes."""
    clock = [0.0]
    tried = []
    fixed = 40.0
    each = 0.5

    def estimate(content, folder, fetched, sampled=False):
        texts = _texts(make_study(content, folder))
        tried.append(texts)
        clock[0] += rate * texts

        def of(steps):
            taken = fixed + each * texts
            share = fixed / taken
            return Cost(
                steps, 0, 0, steps * taken / 12, 1, "cpu", fewer=of, fixed=share
            )

        return replace(of(12), texts=texts, keep=lambda *_: None)

    monkeypatch.setattr(budget, "estimate", estimate)
    monkeypatch.setattr(budget.time, "perf_counter", lambda: clock[0])
    many = CONTENT | {"inputs": CONTENT["inputs"] | {"max_texts": 310}}
    found = within(place, 140, many)
    assert len(tried) == trials
    assert clock[0] <= 0.1 * 140
    is_scaled = found.cost.texts not in tried
    assert is_scaled is (trials == 1) is (found.cost.keep is None)
    assert ("scaled from 20 texts" in "".join(found.lines)) is is_scaled
    assert found.content["inputs"]["max_texts"] == found.cost.texts > 20
    steps = found.cost.checkpoints
    takes = steps * (fixed + each * found.cost.texts) / 12 + 20
    assert 140 / 1.3 < takes <= 140
    assert takes == pytest.approx(found.cost.seconds_with(1))


def test_a_study_of_one_model_fills_its_budget_by_what_its_trial_took(
    place, monkeypatch
):
    """What the trial had computed was left out of the rates: it stayed at 20 texts."""
    clock = [0.0]

    def estimate(content, folder, fetched, sampled=False):
        texts = _texts(make_study(content, folder))
        clock[0] += 60.0
        taken = 50.0 + 1.0 * texts
        # The cells of texts are there already, those of all examples are not.
        return Cost(
            1,
            0,
            0,
            1.2 * taken - 1.2 * texts,
            taken,
            "cpu",
            texts=texts,
            kept=1.0 * texts,
            fixed=50.0 / taken,
        )

    monkeypatch.setattr(budget, "estimate", estimate)
    monkeypatch.setattr(budget.time, "perf_counter", lambda: clock[0])
    many = CONTENT | {"inputs": CONTENT["inputs"] | {"max_texts": 310}}
    found = within(place, 300, many)
    assert clock[0] == 60.0
    takes = 1.2 * (50.0 + found.cost.texts) + 20
    assert 300 / 1.3 < takes <= 300
    assert takes == pytest.approx(found.cost.seconds_with(1))
