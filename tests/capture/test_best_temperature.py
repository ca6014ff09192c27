"""The loss at the best temperature, against a search over temperatures."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from ontogeny.capture.renaming import INVERSE_TEMPERATURES, Calibration


def predictions(scale, words=60, places=1200, spread=2.0):
    """Logits, and words that were drawn by them at b = 1 / scale."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(places, words, generator=generator) * spread
    target = torch.multinomial(logits.softmax(-1), 1, generator=generator)
    return logits * scale, target[:, 0]


def calibration_of(logits, target, texts=8, parts=1):
    log_p, text = logits.log_softmax(-1), np.arange(len(logits)) % texts
    own = log_p.gather(1, target[:, None])[:, 0]
    found = Calibration(texts)
    for rows in np.array_split(np.arange(len(logits)), parts):
        found.add(text[rows], own[rows], log_p[rows].clone())
    return found, np.bincount(text, -own.double().numpy(), texts)


def cost(logits, target, b):
    return float(
        -(logits.double() * b).log_softmax(-1).gather(1, target[:, None]).sum()
    )


@pytest.mark.parametrize("spread", [0.3, 2.0, 3.5])
@pytest.mark.parametrize("scale", [0.25, 0.5, 0.93, 1.0, 1.7, 4.0])
def test_it_is_within_a_hundredth_of_the_spread_and_never_below_the_best(scale, spread):
    logits, target = predictions(scale, spread=spread)
    calibration, sums = calibration_of(logits, target)
    found = calibration.losses(sums).sum() / len(target)
    best = minimize_scalar(
        lambda b: cost(logits, target, b), bounds=(0.02, 8), method="bounded"
    )
    best = best.fun / len(target)
    assert best - 1e-6 <= found < best + 0.001 * max(1.0, spread**2 / 2)
    assert found <= sums.sum() / len(target)


def test_it_is_a_loss_at_a_temperature_that_was_computed_text_by_text():
    logits, target = predictions(2.6)
    calibration, sums = calibration_of(logits, target)
    b = calibration.inverse_temperature(sums)
    assert b in INVERSE_TEMPERATURES and b == pytest.approx(1 / 2.6, rel=0.04)
    log_p = (logits.double() * b).log_softmax(-1).gather(1, target[:, None])[:, 0]
    bare = np.bincount(np.arange(len(target)) % 8, -log_p.numpy())
    np.testing.assert_allclose(calibration.losses(sums), bare, rtol=1e-5)


def test_a_model_that_is_as_sure_as_it_may_be_keeps_its_loss():
    logits, target = predictions(1.0, places=20_000)
    calibration, sums = calibration_of(logits, target)
    assert calibration.inverse_temperature(sums) == 1.0
    np.testing.assert_array_equal(calibration.losses(sums), sums)


def test_parts_and_words_that_are_ruled_out_change_nothing():
    logits, target = predictions(1.6)
    logits[:, 7] = -np.inf
    kept = target != 7
    whole, parts = (calibration_of(logits[kept], target[kept], parts=n) for n in (1, 5))
    np.testing.assert_allclose(
        whole[0].losses(whole[1]), parts[0].losses(parts[1]), rtol=1e-9
    )
    bare = calibration_of(
        logits[kept][:, np.arange(60) != 7], target[kept] - (target[kept] > 7) * 1
    )
    np.testing.assert_allclose(
        whole[0].losses(whole[1]), bare[0].losses(bare[1]), rtol=1e-6
    )


def test_of_many_tokens_those_near_the_best_are_enough():
    logits, target = predictions(1.6, places=9000, words=40)
    every, _ = calibration_of(logits, target)
    most, sums = calibration_of(logits, target, parts=30)
    assert len(most._places) == 7
    assert most.inverse_temperature(sums) == every.inverse_temperature(sums)
    np.testing.assert_allclose(most.losses(sums), every.losses(sums), rtol=1e-6)


def test_texts_that_turn_out_otherwise_are_never_below_the_best():
    logits, target = predictions(1.0, places=9000, words=40)
    logits[:2500] *= 3
    calibration, sums = calibration_of(logits, target, parts=30)
    best = minimize_scalar(
        lambda b: cost(logits, target, b), bounds=(0.02, 8), method="bounded"
    )
    found = calibration.losses(sums).sum()
    assert best.fun * (1 - 1e-7) <= found <= sums.sum()
