"""Matchings and their chance level, concept tracks."""

import numpy as np
import pytest
import torch

from ontogeny import distances
from ontogeny.errors import ArgumentError


def test_unrelated_dictionaries_match_at_their_chance_level():
    first, second = np.random.default_rng(3).standard_normal((2, 100, 10))
    level = distances.matching_level(first, second, n_shuffles=200)
    assert level.chance_interval[0] <= level.score <= level.chance_interval[1]
    assert level.p_value > 0.05
    assert np.isnan(level.ceiling)


def test_a_kept_dictionary_is_above_chance_and_below_its_refit():
    rng = np.random.default_rng(4)
    # Of one sign: the cosines are large by chance.
    first = np.abs(rng.standard_normal((100, 10)))
    near = first[:, ::-1] + 0.05 * rng.standard_normal(first.shape)
    far = first[:, ::-1] + 0.5 * rng.standard_normal(first.shape)
    level = distances.matching_level(first, far, reseeded=near, n_shuffles=99)
    assert 0.5 < level.chance < level.score < level.ceiling < 1
    assert level.p_value == pytest.approx(0.01)


def test_tracks_follow_a_permuted_and_flipped_dictionary():
    rng = np.random.default_rng(5)
    first = rng.standard_normal((80, 6))
    orders = [np.arange(6)] + [rng.permutation(6) for _ in range(4)]
    signs = [np.ones(6)] + [rng.choice([-1.0, 1.0], 6) for _ in range(4)]
    stack = np.stack(
        [
            first[:, o] * s + 0.1 * rng.standard_normal(first.shape)
            for o, s in zip(orders, signs, strict=True)
        ]
    )
    found = distances.tracks(stack, steps=[0, 1, 10, 100, 1000])
    np.testing.assert_array_equal(found["track"], orders)
    np.testing.assert_array_equal(found["sign"], signs)
    assert (found["start"][1:] == "continued").all()
    assert (found["end"][-1] == "last").all() and (
        found["end"][:-1] == "continued"
    ).all()
    assert (found["cosine"][1:] > 0.95).all() and np.isnan(found["cosine"][0]).all()


def test_birth_death_split_and_merge_are_told_apart():
    E = np.eye(40)
    first = E[:, :4]
    second = first.copy()
    second[:, 0] = E[:, 20]  # concept 0 dies, another is born
    second[:, 1] = E[:, 1] + 0.3 * E[:, 10]
    second[:, 2] = E[:, 1] - 0.4 * E[:, 10]  # concept 1 splits; concept 2 dies
    found = distances.tracks(np.stack([first, second]), threshold=0.6)
    assert found["start"].values[1].tolist() == [
        "birth",
        "continued",
        "split",
        "continued",
    ]
    assert found["end"].values[0].tolist() == [
        "death",
        "continued",
        "death",
        "continued",
    ]
    assert found["track"].values[1].tolist() == [4, 1, 5, 3]
    assert found["parent"].values[1].tolist() == [-1, -1, 1, -1]
    back = distances.tracks(np.stack([second, first]), threshold=0.6)
    assert back["end"].values[0].tolist() == [
        "death",
        "continued",
        "merge",
        "continued",
    ]
    assert back["heir"].values[0].tolist() == [-1, -1, 1, -1]


def test_unrelated_steps_start_new_tracks():
    stack = np.random.default_rng(6).standard_normal((4, 200, 10))
    found = distances.tracks(stack, level=0.01, n_shuffles=30)
    assert (found["start"][1:] == "continued").mean() < 0.1
    assert len(np.unique(found["track"])) > 30
    again = distances.tracks(torch.tensor(stack), level=0.01, n_shuffles=30)
    assert again.identical(found)


def test_tracks_refuse_a_single_step_and_wrong_levels():
    W, V = np.random.default_rng(11).standard_normal((2, 8, 4))
    with pytest.raises(ArgumentError, match="T at least 2"):
        distances.tracks(W)
    with pytest.raises(ArgumentError, match="level must be between"):
        distances.tracks(np.stack([W, V]), level=2)
    with pytest.raises(ArgumentError, match="steps must name the 2 steps"):
        distances.tracks(np.stack([W, V]), steps=[1])
