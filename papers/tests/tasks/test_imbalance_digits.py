"""Imbalanced digits and the small network that learns them."""

import numpy as np
import pytest
import torch

from ontogeny import semantics
from ontogeny.errors import ArgumentError
from ontogeny_papers.reproduce import tasks, training


def test_digits_are_those_asked_for():
    data = tasks.imbalanced_digits((7, 4), (1, 0), per_majority=50, ratio=5)
    assert data.digits == (7, 4, 1, 0)
    assert np.bincount(data.labels).tolist() == [50, 50, 10, 10]
    assert data.images.shape == (120, 1, 8, 8) and data.images.dtype == np.float32
    assert data.images.min() >= 0 and data.images.max() == 1
    assert len(np.unique(data.images.reshape(120, -1), axis=0)) == 120  # nothing twice


def test_their_support_is_the_step_imbalance():
    data = tasks.imbalanced_digits(per_majority=20, ratio=20)
    step = semantics.step_imbalance(4, 20)
    assert np.array_equal(data.S, step.S)


@pytest.mark.parametrize("pairs", [((0, 1), (2, 3)), ((2, 3), (0, 1))])
def test_a_network_learns_the_minorities_last_whichever_digits_they_are(pairs):
    data = tasks.imbalanced_digits(*pairs, per_majority=40)
    model = training.digit_network(4, width=6)
    found = training.record_logits(
        model, training.DigitTask(data), 100, at=range(0, 101, 4), learning_rate=5e-3
    )
    right = found.logits.values.argmax(axis=1) == data.labels
    majority, minority = (
        right[:, c].mean(axis=1) for c in (data.labels < 2, data.labels >= 2)
    )
    assert majority[-1] == minority[-1] == 1
    last_wrong = [np.flatnonzero(share < 0.95)[-1] for share in (majority, minority)]
    assert last_wrong[0] < last_wrong[1]


def test_the_loss_is_the_mean_cross_entropy():
    data = tasks.imbalanced_digits(per_majority=20)
    model = training.digit_network(4, width=4)
    task = training.DigitTask(data)
    value = task.loss(model, task.sample(torch.Generator())).item()
    z = task.logits(model).astype(np.float64)
    each = np.log(np.exp(z).sum(axis=0)) - (data.S * z).sum(axis=0)
    assert value == pytest.approx(each.mean(), rel=1e-5)


def test_more_images_than_there_are_are_refused():
    with pytest.raises(ArgumentError, match="more than"):
        tasks.imbalanced_digits(per_majority=500)
