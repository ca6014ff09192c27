"""From coarse to fine: what a model knows of classes of words, and since when."""

import json

import numpy as np
import pytest
import torch
import xarray as xr

import ontogeny as og
from helpers.said import said_of
from ontogeny.capture.predictor import Predictor
from ontogeny.errors import ArgumentError
from ontogeny.features.wordspace import text_statistics
from ontogeny.features.wordspace.class_costs import ClassCosts
from ontogeny.observables import TextStatistics
from ontogeny.report.page.html import render_page
from ontogeny.words.content import read_content

WORDS = np.array([2, 3, 4, 5])
CODES = np.array([[0, 1, 2, 3], [1, 0, 2, 3]])


class OfToken(torch.nn.Module):
    """Logits that depend on the token alone."""

    def __init__(self, table):
        super().__init__()
        self.table = torch.nn.Parameter(torch.as_tensor(table, dtype=torch.float32))

    def forward(self, input_ids):
        return self.table[input_ids]


@pytest.fixture(scope="module")
def inputs():
    rng = np.random.default_rng(0)
    return og.Inputs.from_tokens(
        [rng.integers(1, 7, 8) for _ in range(6)], vocab_size=7
    )


def test_costs_of_classes_are_sums_of_probabilities_in_a_plain_loop(inputs):
    table = np.random.default_rng(1).normal(size=(7, 7))
    costs = ClassCosts(WORDS, CODES, 2, inputs)
    found = Predictor(OfToken(table), "causal").reduced(inputs, costs)
    information = costs.information(found)
    p = np.exp(table) / np.exp(table).sum(axis=1, keepdims=True)
    places = list(zip(found["text"], found["column"], strict=True))
    for g, codes in enumerate(CODES):
        for q in (1, 2):
            group = {w: c & (2**q - 1) for w, c in zip(WORDS, codes, strict=True)}
            of = np.array([group.get(z, -1) for z in range(7)])
            each = np.array([p[inputs.ids[t, c - 1]] for t, c in places])
            own = of[[inputs.ids[t, c] for t, c in places]]
            shares = np.array([[row[of == k].sum() for k in own] for row in each])
            expected = np.log(np.diag(shares)) - np.log(shares.mean(axis=0))
            assert information[g, q - 1] == pytest.approx(expected, abs=1e-5)


def test_predictions_that_do_not_depend_on_the_context_know_nothing(inputs):
    table = np.tile(np.random.default_rng(2).normal(size=7), (7, 1))
    costs = ClassCosts(WORDS, CODES, 2, inputs)
    found = Predictor(OfToken(table), "causal").reduced(inputs, costs)
    assert costs.information(found) == pytest.approx(0, abs=1e-5)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A model of planted bigrams: broad classes follow each other early, single words late."""
    rng = np.random.default_rng(3)
    # Two classes of four words; the class changes at every token, and words come in fixed pairs.
    rows = []
    for _ in range(60):
        word, row = int(rng.integers(8)), []
        for _ in range(24):
            row.append(word + 1)
            other = 4 * (word < 4)
            word = other + (word % 4 if rng.random() < 0.9 else int(rng.integers(4)))
        rows.append(row)
    inputs = og.Inputs.from_tokens(rows, vocab_size=9)
    coarse, fine = np.zeros((9, 9)), np.zeros((9, 9))
    for z in range(8):
        coarse[z + 1, [5 + i if z < 4 else 1 + i for i in range(4)]] = 1
        fine[z + 1, (z + 4) % 8 + 1] = 1
    steps = [0, 10, 20, 40, 80, 160]
    models = {
        s: OfToken(4 * min(s / 20, 1) * coarse + 4 * (s >= 160) * fine) for s in steps
    }
    observable = TextStatistics(depth=3, loss="loss", n_draws=4, objective="causal")
    trajectory = og.Trajectory.from_models(models)
    run = og.Study(
        trajectory, inputs, [og.observables.Loss(objective="causal"), observable]
    )
    return run.run(tmp_path_factory.mktemp("statistics"))


@pytest.fixture(scope="module")
def study(whole):
    return whole["text-statistics"].to_dataset()


def test_planted_broad_classes_come_before_single_words(study):
    steps = study.reached_step
    names = study.statistic.values.tolist()
    assert names[:3] == [f"classes of depth {q}" for q in (1, 2, 3)] or names[1:4] == [
        f"classes of depth {q}" for q in (1, 2, 3)
    ]
    assert float(steps.sel(statistic="classes of depth 1")) <= 20
    end = study.class_information.isel(step=-1)
    assert float(end[0]) == pytest.approx(np.log(2), abs=0.05)
    share = study.class_information.sel(step=80) / end
    assert float(share[0]) > 0.95 and float(share[2]) < 0.8
    assert float(study.class_information.isel(step=0).max()) == pytest.approx(
        0, abs=1e-6
    )


def test_the_panel_has_a_dot_a_row_and_the_null_beside_it(study):
    figures = {each["id"]: each for each in json.loads(study.attrs["figures"])}
    assert figures["reached"]["rows"] == "statistic"
    assert figures["reached"]["interval"] == ["reached_step_low", "reached_step_high"]
    assert {
        "reached_random_low",
        "reached_random_high",
        "class_information_random",
    } <= set(study)


def test_what_is_known_is_told_beside_random_classes_and_in_its_order(study):
    known, exchanged, order = said_of(TextStatistics(depth=3), study)
    assert known.startswith("It knows of a token’s class: 0.69")
    assert known.count("by chance") == 3 and "another class" in exchanged
    assert order.startswith(f"Half of {study.statistic.values[0]} is there at step")


def test_no_value_of_the_result_holds_a_mark(whole):
    """Who selected by "word frequencies" in Python found nothing: the result held a mark."""
    for node in whole.tree.subtree:
        for name, variable in node.variables.items():
            if variable.dtype.kind in "OUT":
                assert not [
                    text for text in variable.values.ravel() if "{" in str(text)
                ], name
    names = whole["text-statistics"].statistic.values.tolist()
    assert (
        "word frequencies" in names
        and "random" in whole.tree.beside_name.values.tolist()
    )


def test_names_of_statistics_hold_no_mark_and_are_shown_in_the_words_of_the_run():
    values = {"reached_step": ("statistic", [3.0, 5.0])}
    names = ("statistic", ["word frequencies", "classes of depth 1"])
    shown = {"labels": text_statistics._SHOWN}
    data = xr.Dataset(values).assign_coords(statistic=(*names, shown), step=[0, 9])
    figure = og.figures.NullComparison("r", "r", value="reached_step", rows="statistic")
    data = og.figures.attach(data, og.figures.Section("s", "d"), [figure])
    inputs = json.dumps([{"name": "text", "token_unit": "character"}])
    tree = xr.DataTree.from_dict({"statistics": data})
    tree.attrs.update(inputs=inputs)
    page = render_page(read_content(tree))
    assert "character frequencies" in page and "{word}" not in page
    assert float(data.reached_step.sel(statistic="word frequencies")) == 3


def test_other_nodes_than_the_loss_are_refused():
    observable = TextStatistics(loss="calibration")
    with pytest.raises(ArgumentError, match="kind 'loss'"):
        observable.check_nodes({"calibration": og.observables.Calibration()})
    with pytest.raises(ArgumentError, match="depth"):
        TextStatistics(depth=0)
