"""Planted trajectories hold what they promise, and the verdicts see it."""

import numpy as np
import pytest

import ontogeny as og
from ontogeny.errors import ArgumentError
from ontogeny.observables import ActivationDecay, Concepts
from planted_runs import PLANTED, planted


@pytest.mark.parametrize("kind", PLANTED)
def test_the_model_outputs_the_planted_activations(kind):
    run = planted(kind, random_state=3, n=50)
    step = int(run.trajectory.steps[4])
    model = run.trajectory[step].model()
    found = og.capture.activations(
        model, run.inputs, layers="layers.*", max_tokens=None
    )
    for k, A in enumerate(found.values()):
        assert np.array_equal(np.asarray(A), run.activations[4, k])


@pytest.mark.parametrize("kind", PLANTED)
def test_the_same_seed_gives_the_same_run_and_another_another(kind):
    one, same, other = (
        planted(kind, random_state=s, n=40).activations for s in (0, 0, 1)
    )
    assert np.array_equal(one, same) and not np.array_equal(one, other)


def test_where_nothing_happens_all_steps_are_equal_and_noise_is_of_the_stated_size():
    still = planted("nothing").activations
    assert (still == still[:1]).all()
    noisy = planted("noise", n=2000, noise=0.1).activations[:, 0]
    apart = (noisy[1:] - noisy[:-1]).std() / 2**0.5
    assert apart / noisy.std() == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
def test_noise_with_memory_is_stationary_and_remembers_as_planted(memory):
    run = planted("memory", n=2000, noise=0.1, memory=memory)
    clean = planted("nothing", n=2000, noise=0.0).activations[:, 0]
    noise = (run.activations[:, 0] - clean).reshape(len(clean), -1).astype(float)
    spread = noise.std(axis=1) / clean[0].std()
    np.testing.assert_allclose(spread, 0.1, rtol=0.05)
    for apart in (1, 3):
        found = np.mean(noise[apart:] * noise[:-apart]) / np.mean(noise**2)
        assert found == pytest.approx(memory**apart, abs=0.02)
    assert not run.develops


def test_the_walk_takes_independent_steps_of_the_stated_size():
    run = planted("walk", n=2000, noise=0.1)
    clean = planted("nothing", n=2000, noise=0.0).activations[0, 0]
    steps = np.diff(run.activations[:, 0].astype(float), axis=0).reshape(15, -1)
    np.testing.assert_allclose(steps.std(axis=1) / clean.std(), 0.1, rtol=0.05)
    assert np.abs(np.corrcoef(steps) - np.eye(15)).max() < 0.05
    assert not run.develops


@pytest.mark.parametrize("kind", ["basis", "rotation"])
def test_a_change_of_basis_keeps_all_inner_products(kind):
    run = planted(kind, noise=0.0, n=60)
    A = run.activations[:, 0].astype(float)
    gram = A @ A.transpose(0, 2, 1)
    assert np.allclose(gram, gram[-1], atol=1e-4)
    assert not np.allclose(A[0], A[-1], atol=0.1)


def test_the_born_concept_grows_from_nothing_and_the_others_stay():
    W = planted("birth").dictionaries[:, 0]
    strength = np.linalg.norm(W, axis=1)
    assert strength[0, 0] == pytest.approx(0) and strength[-1, 0] == pytest.approx(1)
    assert (np.diff(strength[:, 0]) > 0).all() and np.allclose(strength[:, 1:], 1)


def test_the_split_concepts_are_one_direction_at_first_and_two_at_last():
    run = planted("split")
    W = run.dictionaries[:, 0]
    assert np.allclose(W[0, :, 0], W[0, :, 1])
    assert np.linalg.norm(W[-1, :, 0] - W[-1, :, 1]) == pytest.approx(2)


def test_regimes_approach_smoothly_and_then_only_fluctuate():
    run = planted("regimes", n=500)
    index = int(np.flatnonzero(run.trajectory.steps == run.boundary)[0])
    W, A = run.dictionaries[:, 0], run.activations[:, 0]
    left = np.linalg.norm(W - W[-1], axis=(1, 2))
    assert (np.diff(left[:index]) < 0).all() and (left[index:] == 0).all()
    late = np.linalg.norm(np.diff(A[index:], axis=0), axis=(1, 2))
    assert late.std() / late.mean() < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["noise", "memory", "walk", "rotation", "drift"])
def test_concepts_and_activations_are_called_changed_where_they_are(kind, tmp_path):
    run = planted(kind, steps=range(0, 4000, 100), random_state=5)
    observables = [
        Concepts("svd", n_concepts=6, layers="layers.*"),
        ActivationDecay("layers.*"),
    ]
    result = og.Study(run.trajectory, run.inputs, observables=observables).run(
        tmp_path / "study"
    )
    for node in ("concepts-svd", "activation-decay"):
        assert result[node].changed.values.tolist() == [run.develops] * 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "chaos"}, "kind"),
        ({"kind": "noise", "steps": [0, 1]}, "at least six"),
        ({"kind": "noise", "steps": [0, 0.5, 1, 2, 3, 4, 5]}, "whole numbers"),
        ({"kind": "noise", "steps": "abcdef"}, "whole numbers"),
        ({"kind": "noise", "steps": [0, 1, 2, 3, 3, 4]}, "increasing"),
        ({"kind": "noise", "r": 40}, "r must lie"),
        ({"kind": "noise", "noise": 1.5}, "noise"),
        ({"kind": "memory", "memory": 1.0}, "memory must lie"),
    ],
)
def test_impossible_runs_are_refused(options, words):
    with pytest.raises(ArgumentError, match=words):
        planted(**options)
