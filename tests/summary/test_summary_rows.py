"""The shared judgement of series: noise, gaps, sentences."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import ontogeny as og
from helpers.claimed import claims, spoken
from helpers.study_examples import developing, tiny_inputs
from ontogeny.claims import Certainty, Kind, Reason
from ontogeny.quantities import Measured, Quantity
from ontogeny.summary.noise import (
    MEASURABLE,
    Z,
    change_floor,
    mean_stderr,
    null_bands,
    with_noise,
)
from ontogeny.summary.rows import _after_half, chart_rows
from ontogeny.words.names import named

TRIALS = 300  # of which 23 may be wrong: 5 %, within what chance gives
LOSS = Quantity("x", "loss", rows="loss")
CONCEPTS = Quantity(
    "x",
    "distance",
    rows="{layer} · concepts",
    relative_to="reference",
    settled_by="refit",
    nulls={"refit": "refitting alone"},
)


def series(values, **more):
    values = np.asarray(values, dtype=float)
    dims = ("layer", "step") if values.ndim == 2 else ("step",)
    coords = {"step": np.arange(values.shape[-1])}
    if values.ndim == 2:
        coords["layer"] = [f"layers.{i}" for i in range(len(values))]
    return xr.Dataset({"x": (dims, values), **more}, coords=coords)


def of_texts(table, weights=None):
    table = np.asarray(table, dtype=float)
    counted = np.ones(table.shape[1]) if weights is None else np.asarray(weights, float)
    mean = np.nansum(table * counted, axis=1) / counted.sum()
    mean[np.isnan(table[:, counted > 0]).any(axis=1)] = np.nan
    data = series(mean, x_of_text=(("step", "text"), table))
    return data if weights is None else data.assign(x_weights=("text", counted))


def judged(data, quantity=LOSS):
    data = with_noise(data, quantity)
    return data.assign(chart_rows(data, [quantity]))


def test_the_error_equals_the_textbook_formula():
    values = np.random.default_rng(0).normal(size=200)
    expected = values.std(ddof=1) / np.sqrt(200)
    assert mean_stderr(values, np.full(200, 3)) == pytest.approx(expected, rel=1e-10)


def test_pairing_takes_out_what_texts_have_in_common():
    rng = np.random.default_rng(1)
    level = 10 * rng.normal(size=100)  # texts differ much more than steps do
    table = level + np.array([[0.0], [0.5]]) + 0.01 * rng.normal(size=(2, 100))
    data = of_texts(table)
    assert change_floor(data, LOSS)[1] < 0.01 < with_noise(data, LOSS).x_stderr[1]


@pytest.mark.slow
@pytest.mark.parametrize("texts", [2, 3, 4, 10, 60])
def test_noise_of_few_texts_holds_the_truth_in_95_percent(texts):
    """Of 300 runs without a change at most 23 change, and at most 23 intervals miss."""
    rng = np.random.default_rng(texts)
    level = rng.normal(5, 1, (TRIALS, 1, texts))
    tables = level + rng.normal(0, 0.3, (TRIALS, 2, texts))
    changed = 0
    missed = 0
    for table in tables:
        data = with_noise(of_texts(table), LOSS)
        changed += abs(data.x[1] - data.x[0]) > change_floor(data, LOSS)[1]
        missed += not data.x_low[0] <= 5 <= data.x_high[0]
    assert changed <= 23 and missed <= 23


def test_what_is_still_learned_late_is_not_hidden_by_the_noise_of_the_first_change():
    """Texts differ by much in what they gain, and by little in what the last steps add."""
    rng = np.random.default_rng(2)
    level, gain = 8 + rng.normal(size=100), 3 + rng.normal(size=100)
    course = np.array([0, 0.1, 0.4, 0.8, 0.9, 0.93, 0.95, 0.97, 0.99, 1.0])[:, None]
    table = level - course * gain + 0.01 * rng.normal(size=(10, 100))
    data = of_texts(table)
    late = change_floor(data, LOSS, to_last=True)
    paired = (table[-2] - table[-1]).std(ddof=1) / 10
    student = stats.t.ppf(0.975, 99)
    assert late[-2] == pytest.approx(student * paired, rel=1e-9) and late[-1] == 0
    assert change_floor(with_noise(data, LOSS), LOSS, to_last=True)[
        -2
    ] == pytest.approx(late[-2])
    assert 10 * late[-2] < change_floor(data, LOSS)[-2]
    assert np.isnan(judged(data, LOSS).settled_step.item())


def test_texts_without_tokens_do_not_count():
    table = np.array([[1.0, 3.0, np.nan], [2.0, 5.0, np.nan]])
    found = change_floor(of_texts(table, [2, 1, 0]), LOSS)
    np.testing.assert_allclose(
        found, change_floor(of_texts(table[:, :2], [2, 1]), LOSS)
    )


def test_a_missing_step_has_no_floor_and_spoils_no_other():
    floor = change_floor(of_texts([[1.0, 3.0], [np.nan, np.nan], [2.0, 5.0]]), LOSS)
    assert floor[0] == 0 and np.isnan(floor[1]) and floor[2] > 0


def test_the_first_step_that_is_there_is_what_changes_are_counted_from():
    """Step 0 missing, and a change from .28 to .95: it is a change (defect 2 of the house)."""
    rise = [
        0.28,
        0.29,
        0.3,
        0.41,
        0.5,
        0.61,
        0.7,
        0.8,
        0.86,
        0.9,
        0.92,
        0.94,
        0.95,
        0.95,
    ]
    accuracy = np.array([np.nan, *rise])
    data = series(
        accuracy, x_stderr=("step", np.where(np.isnan(accuracy), np.nan, 0.02))
    )
    found = judged(data)
    assert found.changed.item() and found.half_step.item() == pytest.approx(
        6.0, abs=0.5
    )


def test_noise_of_a_single_text_is_unknown_and_gives_no_verdict():
    data = judged(of_texts(np.linspace(9, 1, 8)[:, None]))
    assert not data.noise_known.item() and not data.changed.item()
    assert np.isnan(data.x_floor.values).all()
    [claim] = claims(data, Kind.CHANGED)
    assert (claim.certainty, claim.reason) == (Certainty.OPEN, Reason.NOISE_UNKNOWN)
    assert spoken(data) == ["Whether loss changed is open: noise unknown."]


@pytest.mark.parametrize("noise", ["stderr", "of_text", "replicates"])
def test_noise_that_is_missing_never_becomes_zero(noise):
    """Whatever way noise is given, one without a value for it is not judged."""
    values = np.linspace(9, 1, 8)
    parts = {
        "stderr": ("step", np.full(8, np.nan)),
        "of_text": (("step", "text"), values[:, None]),
        "replicates": (("step", "refit"), np.full((8, 3), np.nan)),
    }
    data = judged(series(values, **{f"x_{noise}": parts[noise]}))
    assert not data.noise_known.item() and not data.changed.item()


def test_replicates_give_the_spread_of_the_noisiest_kind():
    rng = np.random.default_rng(0)
    values = np.linspace(5, 1, 400)
    found = np.stack([values + 0.3 * rng.normal(size=400) for _ in range(3)], axis=1)
    still = np.repeat(values[:, None], 3, axis=1)
    labels = [f"texts {i}" for i in range(3)] + [f"seed {i}" for i in range(3)]
    data = series(values, x_replicates=(("step", "refit"), np.hstack([found, still])))
    error = with_noise(data.assign_coords(refit=labels), LOSS).x_stderr
    assert float(error) == pytest.approx(0.3, rel=0.1)


def test_few_replicates_are_stretched():
    """95 % of the next replicates lie within the interval, however few there were."""
    three, new = np.split(np.random.default_rng(1).normal(size=(4000, 4)), [3], axis=1)
    mean = three.mean(axis=1, keepdims=True)
    data = series(mean, x_replicates=(("layer", "step", "refit"), three[:, None]))
    error = with_noise(data, replace(LOSS, rows="{layer}")).x_stderr.values
    assert error.shape == (4000,)
    inside = np.abs(new - mean)[:, 0] / np.sqrt(1 + 1 / 3) < Z * error
    assert np.mean(inside) == pytest.approx(0.95, abs=0.01)


def test_exact_quantities_have_no_noise_but_rounding():
    exact = Quantity("x", "distance of the weights", rows="weights", noise="exact")
    data = judged(series(np.linspace(0, 10, 8)), exact)
    assert data.changed.item() and "x_stderr" not in data
    still = judged(series(10 + 1e-5 * np.arange(8) / 8), exact)
    assert not still.changed.item() and MEASURABLE < 1e-4


def test_claims_say_when_nothing_rose_above_its_null():
    values = np.random.default_rng(2).normal(size=(2, 20))
    quantity = Quantity("x", "x", rows="{layer}")
    still = judged(series(values, x_stderr=2.0), quantity)
    assert not still.moved.any()
    assert [c.reason for c in claims(still, Kind.CHANGED)] == [Reason.WITHIN_NOISE] * 2
    assert spoken(still) == [
        "Whether X in both layers changed is open: noise gives as much."
    ]
    moved = judged(series(values, x_stderr=0.2), quantity)
    assert moved.moved.all() and not moved.changed.any()
    assert [c.reason for c in claims(moved, Kind.CHANGED)] == [Reason.ORDER] * 2
    words = "chance gives such an order of checkpoints too"
    assert spoken(moved) == [f"Whether X in both layers changed is open: {words}."]


def test_a_change_that_noise_may_give_is_not_said_to_be_no_change():
    values = np.array([8.0, 8.0, 8.0, 7.9, 6.0, 5.0])
    data = judged(series(values, x_stderr=0.05), LOSS)
    assert data.moved.item() and not data.changed.item() and data.judgeable.item()
    [claim] = claims(data, Kind.CHANGED)
    assert (claim.certainty, claim.reason) == (Certainty.OPEN, Reason.SHORT_MEMORY)
    assert (claim.first, claim.last, claim.p_value) == (8.0, 5.0, data.p_value.item())
    words = "noise between checkpoints draws such curves too"
    assert spoken(data) == [f"Whether loss changed is open: {words}."]


def test_settling_is_judged_by_refits():
    distance = np.array([[9, 8, 7, 6, 5, 4, 3, 2, 1.5, 0.0]])
    data = series(distance, x_stderr=0.03).assign_attrs(reference_step=9)
    data = data.assign(x_refit_high=(("layer", "step"), np.full((1, 10), 3.5)))
    assert judged(data, CONCEPTS).settled_step.item() == 6


def test_rows_stand_layer_by_layer_within_further_dimensions():
    values = np.arange(40.0).reshape(2, 2, 10)
    data = xr.Dataset(
        {"x": (("layer", "set", "step"), values), "x_stderr": 0.1},
        coords={"layer": ["a", "b"], "set": ["m=1", "m=2"], "step": np.arange(10)},
    )
    found = judged(data, Quantity("x", "x", rows="{layer} · {set}"))
    assert found.row.values.tolist() == ["a · m=1", "b · m=1", "a · m=2", "b · m=2"]
    of_rows = {c.subject: (c.first, c.last) for c in claims(found, Kind.CHANGED)}
    assert len(of_rows) == 4, "no two rows share a subject"
    assert sorted(of_rows.values()) == [(0, 9), (10, 19), (20, 29), (30, 39)]


def test_a_text_too_short_to_mask_does_not_spoil_the_loss(tmp_path):
    inputs = tiny_inputs()
    special = inputs.special.copy()
    special[0] = True  # nothing ordinary to predict in the first text
    odd = og.Inputs.from_tokens(
        inputs.ids,
        mask=inputs.mask,
        special=special,
        mask_token_id=inputs.mask_token_id,
    )
    steps = (0, 1, 2, 4, 8, 16)
    study = og.Study(
        og.Trajectory.from_models(developing(steps)),
        odd,
        [og.observables.Loss(), og.observables.AttentionEntropy()],
        device="cpu",
    )
    tree = study.run(tmp_path / "s")
    assert (
        np.isfinite(tree["loss"].loss).all()
        and np.isfinite(tree["loss"].loss_stderr).all()
    )
    assert np.isfinite(tree["attention-entropy"].entropy).all()
    assert (
        "failed" not in tree["loss"].attrs
        and "failed" not in tree["attention-entropy"].attrs
    )


@pytest.mark.parametrize(
    "label", ["{x}", "{layer}", "{reason}", "{0}", "{{set}}", "<b>"]
)
@pytest.mark.parametrize("last", [4.0, 8.0])
def test_labels_and_titles_may_hold_braces(label, last):
    values = np.broadcast_to(np.linspace(8.0, last, 10), (2, 2, 10))
    data = xr.Dataset(
        {"x": (("set", "layer", "step"), values), "x_stderr": 0.03},
        coords={"set": [label, "b"], "layer": [label, "c"], "step": np.arange(10)},
    )
    quantity = Quantity("x", "loss of {t}", rows="{set}", nulls={"null": "a null {n}"})
    data = named(data, quantity.names())
    alone = judged(data.isel(layer=0, drop=True).isel(set=[0]), quantity)
    assert label.lower() in " ".join(spoken(alone)).lower()
    of_layers = replace(quantity, rows="{layer}")
    words = " ".join(spoken(judged(data.isel(set=0, drop=True), of_layers)))
    assert ("from 8 to 4" in words) == (last == 4) and "both layers" in words
    data = named(xr.Dataset({"x_null_low": 1.0}), quantity.names())
    assert data.x_null_low.attrs["long_name"] == "loss of {t}: a null {n}, lower end"


def test_texts_that_count_at_some_steps_only_are_resampled_where_they_do():
    """Two halves of the texts in turn: each step has its own noise, and nothing is paired."""
    rng = np.random.default_rng(3)
    table = rng.normal(size=(3, 40)) + np.array([[8.0], [8.0], [5.0]])
    counts = np.ones((3, 40))
    counts[:2, 20:] = counts[2, :20] = 0
    # Whatever stands in for texts that do not count.
    texts = np.where(counts > 0, table, 0.0)
    data = series(
        (texts * counts).sum(1) / counts.sum(1),
        x_of_text=(("step", "text"), texts),
        x_weights=(("step", "text"), counts),
    )
    halves = [table[0, :20], table[1, :20], table[2, 20:]]
    errors = [mean_stderr(half, np.ones(20)) for half in halves]
    of_20, of_40 = stats.t.ppf(0.975, [19, 39])
    found = with_noise(data, LOSS)
    np.testing.assert_allclose(found.x_stderr, errors)
    np.testing.assert_allclose(found.x_high - found.x, of_20 * np.array(errors))
    np.testing.assert_allclose(
        found.x_floor[1], of_20 * mean_stderr(halves[1] - halves[0], 1)
    )
    # n / (n - 1) is that of all texts: 40 of them instead of 20 in either half.
    expected = of_40 * np.hypot(errors[0], errors[2]) * np.sqrt(40 / 39 * 19 / 20)
    np.testing.assert_allclose(found.x_floor[2], expected)


def test_texts_of_a_value_with_more_dimensions_are_its_noise_everywhere():
    table = np.random.default_rng(4).normal(size=(4, 10))
    data = series(np.ones((2, 4)), x_of_text=(("step", "text"), table))
    found = with_noise(data, LOSS)
    assert found.x_floor.dims == ("layer", "step") and (found.x_floor[:, 1:] > 0).all()


@pytest.mark.parametrize("last", [4.0, 8.0])
def test_rows_that_are_no_layers_are_called_measures(last):
    values = np.broadcast_to(np.linspace(8.0, last, 10), (2, 2, 10))
    data = xr.Dataset(
        {"x": (("set", "layer", "step"), values), "x_stderr": 0.03},
        coords={"set": ["s", "t"], "layer": ["a", "b"], "step": np.arange(10)},
    )
    both = Quantity("x", "loss", rows="{set} · {layer}")
    sets = Quantity("x", "loss", rows="{set}")
    layers = Quantity("x", "loss", rows="{layer}")
    for quantity, own, words in (
        (both, data, "in all 4 measures"),
        (sets, data.isel(layer=0, drop=True), "in both measures"),
        (layers, data.isel(set=0, drop=True), "in both layers"),
    ):
        assert words in " ".join(spoken(judged(own, quantity)))


@pytest.mark.filterwarnings("error")
def test_a_null_of_many_draws_may_be_missing_at_steps():
    draws = np.random.default_rng(0).normal(size=(4, 30))
    draws[[0, 2]] = np.nan
    data = series(np.ones(4), x_null=(("step", "draw"), draws))
    found = null_bands(data, Quantity("x", "loss", nulls={"null": "chance"}))
    assert (
        np.isfinite(found.x_null_low).all()
        and (found.x_null_low < found.x_null_high).all()
    )


@pytest.mark.parametrize(
    ("values", "texts"), [([1.0, 2.0], [0]), ([], []), ([[1.0]], [[0]])]
)
def test_a_mean_needs_one_text_for_each_row(values, texts):
    with pytest.raises(og.errors.ArgumentError, match="one number for each row"):
        Measured.mean(values, texts)


def test_a_row_settles_no_earlier_than_half_of_its_change_is_surely_over():
    """A half-change step of 118 (90 to 400) stood beside "settled from 160 on" of 400 steps."""
    steps, unknown = np.array([0, 100, 200, 400]), np.nan
    usable = np.ones((6, 4), dtype=bool)
    usable[5, 3] = False  # nothing was measured after step 200
    settled = _after_half(
        steps,
        usable,
        np.array([100.0, 100.0, 100.0, 200.0, unknown, 100.0]),
        np.array([90.0, 150.0, 400.0, unknown, 50.0, 150.0]),
    )
    np.testing.assert_array_equal(settled, [100, 200, unknown, 200, unknown, unknown])
