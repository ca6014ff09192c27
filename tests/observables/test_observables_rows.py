"""The shared judgement of series: paired floors, gaps, sentences."""

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers.study_examples import developing, tiny_inputs
from ontogeny.observables.rows import development_rows, paired_floor, paired_stderr, statement


def test_paired_error_equals_the_textbook_formula():
    rng = np.random.default_rng(0)
    values = rng.normal(size=200)
    expected = values.std(ddof=1) / np.sqrt(200)
    assert paired_stderr(values, np.full(200, 3)) == pytest.approx(expected, rel=1e-12)


def test_pairing_takes_out_what_texts_have_in_common():
    rng = np.random.default_rng(1)
    level = 10 * rng.normal(size=100)  # texts differ much more than steps do
    series = level + np.array([[0.0], [0.5]]) + 0.01 * rng.normal(size=(2, 100))
    assert paired_floor(series, np.ones(100))[1] < 0.01


def test_texts_without_tokens_do_not_count():
    values = np.array([[1.0, 3.0, np.nan], [2.0, 5.0, np.nan]])
    with_gap = paired_floor(values, np.array([2, 1, 0]))
    np.testing.assert_array_equal(with_gap, paired_floor(values[:, :2], np.array([2, 1])))


def test_a_missing_step_has_no_floor_and_spoils_no_other():
    values = np.array([[1.0, 3.0], [np.nan, np.nan], [2.0, 5.0]])
    floor = paired_floor(values, np.ones(2))
    assert np.isfinite(floor).all() and floor[1] == 0 and floor[2] > 0


def test_one_text_says_nothing_of_its_error():
    steps = np.arange(8)
    floor = paired_floor(np.linspace(9, 1, 8)[:, None], np.ones(1))
    rows = development_rows(["loss"], [""], steps, np.linspace(9, 1, 8)[None], floor=floor[None])
    assert not rows["developed"][1][0]


def test_sentences_say_when_nothing_rose_above_its_null():
    rng = np.random.default_rng(2)
    steps = np.arange(20)
    rows = development_rows(["a", "b"], ["x", "y"], steps, rng.normal(size=(2, 20)), floor=0.5)
    data = xr.Dataset(coords={"step": steps}).assign(rows)
    assert statement(data, "The concepts of {layer}") == [
        "The concepts: no change above the noise floor and chance in any of 2 layers."
    ]


def test_settling_is_judged_by_refits():
    steps = np.arange(10)
    distance = np.array([[9, 8, 7, 6, 5, 4, 3, 2, 1.5, 0.0]])
    rows = development_rows(
        ["a"],
        ["x"],
        steps,
        distance,
        floor=0.1,
        reference_index=9,
        settled=np.full((1, 10), 3.5),
    )
    assert rows["settled_step"][1][0] == 6


def test_a_text_too_short_to_mask_does_not_spoil_the_loss(tmp_path):
    inputs = tiny_inputs()
    special = inputs.special.copy()
    special[0] = True  # nothing ordinary to predict in the first text
    odd = og.Inputs.from_tokens(
        inputs.ids, mask=inputs.mask, special=special, mask_token_id=inputs.mask_token_id
    )
    steps = (0, 1, 2, 4, 8, 16)
    study = og.Study(
        og.Trajectory.from_models(developing(steps)),
        odd,
        [og.observables.Loss(), og.observables.AttentionEntropy()],
        device="cpu",
    )
    tree = study.run(tmp_path / "s")
    assert np.isfinite(tree["loss"].loss).all() and np.isfinite(tree["loss"].stderr).all()
    assert np.isfinite(tree["attention-entropy"].entropy).all()
    assert "failed" not in tree["loss"].attrs and "failed" not in tree["attention-entropy"].attrs
