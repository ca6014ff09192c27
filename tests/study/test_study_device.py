"""A whole study on a device waits for it a bounded number of times, and never in an iteration."""

from collections import Counter

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.fake_device import NAME, FakeDevice
from helpers.study_examples import LAYERS, ActivationNorm, developing, tiny_inputs
from ontogeny.observables.variables import dataset

STEPS = (0, 1)
# Dictionaries are compared on the host. Where the rotation of the features is removed, each is
# taken to the rotation and back; products that find it are the device's.
ROTATIONS = ("distances/features.py", "distances/rotations.py")


LAYER, ITERATIONS = LAYERS.replace("*", "0"), 20


def _on_activations():
    options = {"layers": LAYER, "max_tokens": 40}
    return [
        og.observables.ActivationDecay(**options),
        og.observables.EffectiveDimensions(**options),
        ActivationNorm(LAYER),  # a user's, which returns tensors of the device
    ]


def _of_concepts():
    options = {"layers": LAYER, "max_tokens": 40}
    return [
        og.observables.JointConcepts(n_concepts=4, n_active=1, examples=0, **options),
        og.observables.Concepts("ica", 2, options={"max_iter": ITERATIONS}, **options),
    ]


@pytest.fixture(scope="module")
def studied(tmp_path_factory):
    """The results on the device and on the CPU, and the waits by line of the library."""
    folder = tmp_path_factory.mktemp("device")
    trajectory = og.Trajectory.from_models(developing(STEPS))

    def run(device, observables):
        options = {"device": device, "noise": 1}
        study = og.Study(trajectory, tiny_inputs(), observables, **options)
        return study.run(folder / device, progress=False)

    with FakeDevice() as device:
        there = run(NAME, [*_on_activations(), *_of_concepts()])
    return there, run("cpu", _on_activations()), device.waits


def _by_folder(waits):
    counts = Counter()
    for line, count in waits.items():
        counts[line.split("/")[0]] += count
    return counts


@pytest.mark.slow
def test_geometry_distances_and_joint_dictionaries_do_not_wait(studied):
    waits = studied[2]
    loops = ("geometry/", "dynamics/", "concepts/joint/", "distances/")
    found = {
        k: n
        for k, n in waits.items()
        if k.startswith(loops) and not k.startswith(ROTATIONS)
    }
    assert found == {}


@pytest.mark.slow
def test_waits_are_bounded_by_cells_and_fits(studied):
    there, _, waits = studied
    cells = len(STEPS) * 4
    # Two of the dry run, the state, and one a step; at the step with noise floors, of three other
    # texts, of three other seeds, in float64, of tokens in another order, and of two halves.
    fits = 2 + 1 + len(STEPS) + 7 + 3
    by_folder = _by_folder(waits)
    asked = sum(
        n for line, n in waits.items() if line.startswith("concepts/tensors.py")
    )
    # Once in ten iterations, and at the end.
    assert asked <= fits * (ITERATIONS / 10 + 1)
    assert by_folder["concepts"] - asked <= 14 * fits
    assert (
        by_folder["observables"] <= 10 * cells and by_folder["distances"] <= 8 * cells
    )
    assert len(there.problems()) == 0


@pytest.mark.slow
def test_the_numbers_are_those_of_the_cpu(studied):
    there, here, _ = studied
    for node, name in (
        ("activation-decay", "distance"),
        ("effective-dimensions", "participation_ratio"),
        ("activation-norm", "norm"),
    ):
        np.testing.assert_allclose(
            there.tree[node][name].values,
            here.tree[node][name].values,
            rtol=1e-4,
            atol=1e-6,
        )


def test_lists_of_numbers_of_the_device_are_taken_too():
    with FakeDevice():
        norms = [torch.full((3,), x, device=NAME).norm() for x in (1.0, 2.0)]
        data = dataset({"norm": ("layer", norms)})
    np.testing.assert_allclose(data.norm.values, [3**0.5, 12**0.5], rtol=1e-6)
