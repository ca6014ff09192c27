"""Calibration error against a loop over bins, and predictions of known calibration."""

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from ontogeny.errors import ArgumentError
from ontogeny.features.circuits.calibration import calibration_error
from ontogeny.observables import Calibration

VOCABULARY = 12


class Sure(nn.Module):
    """Says that token t is followed by t + 1, as sure as `logit` says."""

    def __init__(self, logit):
        super().__init__()
        self.logit = nn.Parameter(torch.tensor(float(logit)))

    def forward(self, input_ids):
        after = (input_ids + 1) % VOCABULARY
        return self.logit * nn.functional.one_hot(after, VOCABULARY).float()


def texts(share, count=60, length=30):
    """Texts in which a token is followed by the next id with a given probability."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, VOCABULARY, (count, length))
    for place in range(1, length):
        right = rng.random(count) < share
        rows[right, place] = (rows[right, place - 1] + 1) % VOCABULARY
    return og.Inputs.from_tokens(
        rows, np.ones(rows.shape, dtype=bool), vocab_size=VOCABULARY
    )


def test_the_error_equals_a_loop_over_bins():
    rng = np.random.default_rng(0)
    sure, right = rng.random(500), rng.random(500) < 0.4
    expected = 0.0
    for low in np.arange(10) / 10:
        inside = (sure > low) & (sure <= low + 0.1)
        expected += inside.mean() * abs(sure[inside].mean() - right[inside].mean())
    assert calibration_error(sure, right, 10) == pytest.approx(expected, abs=1e-12)


def test_what_is_right_as_often_as_it_is_sure_has_no_error_and_certainty_that_is_wrong_has_one():
    assert calibration_error(np.full(10, 0.5), np.arange(10) % 2 == 0) == 0.0
    assert calibration_error(np.ones(10), np.zeros(10)) == 1.0
    assert calibration_error(np.ones(10), np.ones(10)) == 0.0


def observed(logit, share):
    observable, inputs = Calibration(objective="causal"), texts(share)
    values = og.capture.read(Sure(logit), observable.needs(), {"text": inputs})
    return observable.observe(values, None)


def test_a_sure_model_is_off_by_what_it_is_too_sure_and_a_calibrated_one_by_chance():
    share = 0.5
    right = share + (1 - share) / VOCABULARY
    calibrated = np.log(right * (VOCABULARY - 1) / (1 - right))
    data = observed(calibrated, share)
    assert float(data.calibration_error) <= float(
        data.calibration_error_calibrated.max()
    )
    assert float(data.accuracy) == pytest.approx(right, abs=0.03)
    assert float(data.accuracy_confidence) == pytest.approx(right, abs=1e-5)
    sure = observed(9.0, share)
    assert float(sure.calibration_error) == pytest.approx(
        1 - float(data.accuracy), abs=5e-3
    )
    assert float(sure.margin) == pytest.approx(
        9.0 * (2 * float(sure.accuracy) - 1), abs=1e-4
    )


def test_the_margin_is_positive_where_the_first_answer_is_right():
    data = observed(2.0, 1.0)
    assert float(data.margin) == pytest.approx(2.0, abs=1e-5)
    assert float(data.accuracy) == 1.0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: Calibration(bins=1), "bins must be a whole number of at least 2"),
        (lambda: calibration_error([0.1], [True, False]), "must have the same length"),
        (lambda: calibration_error([1.5], [True]), "must hold probabilities"),
        (lambda: calibration_error([np.nan], [True]), "must hold probabilities"),
    ],
)
def test_what_is_no_prediction_is_refused(wrong, words):
    with pytest.raises(ArgumentError, match=words):
        wrong()


def test_the_node_has_noise_null_and_bins(tmp_path):
    run = og.Trajectory.from_models(
        {s: Sure(logit) for s, logit in enumerate((0.0, 1.0, 4.0))}
    )
    chosen = Calibration(objective="causal", bins=5)
    data = og.Study(run, texts(0.6), chosen, device="cpu", noise=0).run(tmp_path)[
        "calibration"
    ]
    data = data.to_dataset()
    assert data.bin.values.tolist() == [0.0, 0.2, 0.4, 0.6, 0.8]
    assert np.isfinite(data.calibration_error_floor).all()
    np.testing.assert_allclose(data.bin_share.sum("bin"), 1.0)
    assert "confidence_from" not in data
