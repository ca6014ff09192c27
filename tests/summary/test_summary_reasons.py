"""Each sentence on a row that did not change names the test that decided, and no other."""

import numpy as np
import pytest
import xarray as xr

from helpers import report_examples as examples
from helpers.claimed import claims, spoken
from helpers.report_page import Page
from ontogeny.claims import Certainty, Kind
from ontogeny.dynamics import development
from ontogeny.dynamics.reasons import OPEN, Reason
from ontogeny.features.abilities.changes import p_on_these
from ontogeny.quantities import Quantity
from ontogeny.report.notebook.summary import ResultSummary
from ontogeny.report.page.html import render_page
from ontogeny.summary.noise import with_noise
from ontogeny.summary.rows import chart_rows
from ontogeny.words.catalogue import sentences as catalogue
from ontogeny.words.content import read_content
from ontogeny.words.row_claims import REASONS
from ontogeny.words.row_reading import read_rows
from ontogeny.words.row_words import state_words

LOSS = Quantity("x", "loss", "nats", rows="loss")
LAYERS = Quantity("x", "size", rows="{layer}")
DISTANCE = Quantity("x", "distance", rows="d", relative_to="reference")


def judged(values, error, quantity=LOSS, **attributes):
    """A node of series, with its rows judged among each other."""
    values = np.asarray(values, dtype=float)
    dims = ("layer", "step")[-values.ndim :]
    data = xr.Dataset({"x": (dims, values), "x_stderr": error}).assign_attrs(attributes)
    data = data.assign_coords(step=np.arange(values.shape[-1]))
    data = with_noise(data, quantity)
    return data.assign(chart_rows(data, [quantity]))


def first(reason, rows):
    """The first of drawn series that fails at one test."""
    steps = np.arange(rows.shape[1])
    return next(
        r for r in rows if development(steps, r, 0.01, n_draws=999).reason == reason
    )


def drawn(count, memory):
    """Forty series of noise that remembers so much of its last value."""
    noise = np.random.default_rng(0).standard_normal((40, count))
    for t in range(1, count):
        noise[:, t] += memory * noise[:, t - 1]
    return noise


def towards_the_last():
    points = np.random.default_rng(0).normal(size=(16, 2000)).cumsum(axis=0)
    return np.linalg.norm(points - points[-1], axis=1)


CASES = {
    Reason.UNMEASURED: lambda: (judged(np.linspace(8, 4, 12), np.nan), LOSS),
    Reason.FEW: lambda: (judged(np.linspace(8, 4, 5), 0.01), LOSS),
    Reason.MANY: lambda: (
        judged(np.tile(np.arange(7.0), (30, 1)), 0.01, LAYERS),
        LAYERS,
    ),
    Reason.WITHIN: lambda: (judged(np.linspace(8, 7.9, 12), 1.0), LOSS),
    Reason.ORDER: lambda: (judged(first(Reason.ORDER, drawn(12, 0.0)), 0.001), LOSS),
    Reason.SHORT: lambda: (judged(first(Reason.SHORT, drawn(16, 0.6)), 0.001), LOSS),
    Reason.SLOW: lambda: (judged(first(Reason.SLOW, drawn(24, 1.0)), 0.001), LOSS),
    Reason.REFERENCE: lambda: (
        judged(towards_the_last(), 0.01, DISTANCE, reference_step=15),
        DISTANCE,
    ),
}


def words_of(reason):
    """How the catalogue says why a row is open that failed at one test."""
    return catalogue.REASONS[REASONS[reason]].format(needed="", word="word")


@pytest.mark.parametrize("reason", list(CASES))
def test_the_claim_and_the_sentence_follow_the_test_that_decided(reason):
    data, _ = CASES[reason]()
    assert set(data.reason.values) == {reason} and not data.changed.any()
    assert (data.judgeable.values == (reason not in OPEN)).all()
    for claim in claims(data, Kind.CHANGED):
        assert (claim.certainty, claim.reason) == (Certainty.OPEN, REASONS[reason])
    if (
        reason is Reason.REFERENCE
    ):  # it is 0 at the end by definition, and counts in nothing
        assert not claims(data, Kind.CHANGED) and not spoken(data)
        return
    [sentence] = spoken(data)
    assert sentence.endswith(f" is open: {words_of(reason)}.")
    others = {words_of(other) for other in CASES} - {words_of(reason)}
    assert not any(words in sentence for words in others)
    stated = state_words(read_rows(data, "", "", "")[0])
    assert stated == f"open: {words_of(reason)}"


def test_a_row_that_changed_has_no_reason():
    data = judged(8 - 4 / (1 + np.exp(4 - np.arange(12.0))), 0.01)
    assert (
        data.reason.values.tolist() == [""]
        and data.changed.all()
        and data.judgeable.all()
    )


def with_loss(reason):
    """A result in which nothing changed, and the loss for this reason."""
    tree = examples.still_tree()
    said = {
        "reason": np.array([reason], dtype=object),
        "judgeable": np.array([reason not in OPEN]),
        "changed": np.array([False]),
        "moved": np.array([reason != Reason.WITHIN]),
        "noise_known": np.array([reason != Reason.UNMEASURED]),
        "only_memory": np.array([reason == Reason.REFERENCE]),
    }
    data = tree["loss"].to_dataset()
    tree["loss"] = xr.DataTree(
        data.assign({name: ("row", v) for name, v in said.items()})
    )
    return tree


@pytest.mark.parametrize("reason", list(CASES))
def test_page_notebook_and_terminal_say_it_of_the_loss(reason):
    """A loss that rose by 27 times its noise was called "an order that chance may give"."""
    tree = with_loss(reason)
    summary = ResultSummary(tree)
    page = " ".join(Page(render_page(read_content(tree))).text)
    words = words_of(reason)
    others = {words_of(other) for other in CASES} - {words, words_of(Reason.WITHIN)}
    for text in (page, str(summary), summary._repr_html_()):
        said = " ".join(text.split())
        assert words in said
        assert not any(other in said for other in others - {words})


@pytest.mark.parametrize(
    ("totals", "reason"),
    [
        ((0, 30, 60), Reason.FEW),
        ((20, 40, 60, 80), Reason.FEW),
        ((0, 105), Reason.NONE),
        ((0, 2, 1, 2), Reason.EXAMPLES),
        ((0, 10, 30, 50, 70, 80, 90, 100, 105), Reason.NONE),
    ],
)
def test_examples_that_turn_at_few_checkpoints_leave_a_change_open(totals, reason):
    right = np.array([[float(i < total) for i in range(120)] for total in totals])
    quantity = Quantity("x", "accuracy", rows="all", better="higher")
    values = xr.Dataset({"x": ("step", right.mean(axis=1)), "x_stderr": 0.02})
    data = with_noise(values.assign_coords(step=np.arange(len(totals))), quantity)
    data["x_p_changed"] = p_on_these(right)
    rows = chart_rows(data, [quantity])
    assert rows["reason"][1].tolist() == [reason]
    assert rows["judgeable"][1].tolist() == [reason not in OPEN]
