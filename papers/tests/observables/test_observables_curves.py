"""Learning dynamics, an observable of other nodes' curves."""

import numpy as np
import pytest
import xarray as xr

from helpers.curve_nodes import PATHS, judged, node, noisy, words
from helpers.series_examples import EARLY, LATE, planted
from ontogeny.dynamics import learning_progress, recurrence
from ontogeny.errors import ArgumentError
from ontogeny.observables import LearningDynamics, make
from ontogeny.words.voice import OF_STEPS
from ontogeny_papers.observables.curves.base import (
    chosen,
    curve_reference,
    curves_of,
    floor_of,
)


def test_learning_dynamics_use_the_other_nodes_noise_floor():
    values = np.tile(np.exp(-LATE / 1e5), (4, 1))
    floor = noisy("relative_distance", [0.0, 0.01, 0.05, 0.9])
    found = judged(LearningDynamics("x"), node(values), {"x": floor})
    assert found.progressed.values.tolist() == [1, 1, 1, 0]
    assert found.converged.values.tolist() == [0, 1, 1, 0]
    alone = learning_progress(
        LATE, values[1], found.noise[1].item(), reference_index=49
    )
    assert (float(found.since[1]), float(found.bound[1])) == (alone.since, alone.bound)
    assert (
        float(found.slope[1]) == recurrence(values[1], LATE, reference_index=49).slope
    )
    assert (
        "fell for good in 3 of 4 layers, as seen up to step 490,000"
        in OF_STEPS.fill(words(found))
    )
    assert "X (relative distance) fell" in words(found)
    assert "learned nothing may look the same" in words(found)
    own = judged(LearningDynamics("x", noise=0.95), node(values), {"x": floor})
    assert not own.progressed.any()


def test_a_curve_is_one_label_of_each_dimension():
    values = xr.DataArray(
        np.arange(8.0).reshape(2, 2, 2),
        dims=("step", "distance", "alignment"),
        coords={
            "distance": ["frobenius", "procrustes"],
            "alignment": ["as returned", "matched"],
        },
        name="relative_distance",
    )
    # Procrustes, first alignment.
    assert chosen(values, {}).values.tolist() == [2.0, 6.0]
    assert (
        chosen(values, {"distance": "frobenius", "alignment": "matched"}).values[0]
        == 1.0
    )
    with pytest.raises(ArgumentError, match="must be one of"):
        chosen(values, {"distance": "bures"})
    with pytest.raises(ArgumentError, match="select names 'head'"):
        chosen(values, {"head": 0})


def test_only_curves_that_vanish_at_the_reference_lose_it():
    values = planted("exponential", "none", EARLY, 4, 0.0, np.random.default_rng(0))
    data = node(values, EARLY)
    assert curve_reference(data, data.curve.values) == len(EARLY) - 1
    assert curve_reference(data, values.T) is None


def test_the_noise_of_a_curve_is_that_of_its_own_standard_errors():
    layers = {"layer": PATHS}
    table = (("step", "layer"), np.full((3, 4), 0.1))
    errors = xr.Dataset({"stable_rank_stderr": table}, coords=layers)
    expected = pytest.approx(np.full(4, 1.96 * np.sqrt(2) * 0.1))
    assert floor_of(errors, "stable_rank", {}, PATHS) == expected
    assert floor_of(
        noisy("distance", np.full(4, 0.3)), "distance", {}, PATHS
    ) == pytest.approx(0.3)
    loss = xr.Dataset({"loss_stderr": ("step", np.full(3, 0.1))})
    assert floor_of(loss, "loss", {}, ["model"]) == pytest.approx(
        [1.96 * np.sqrt(2) * 0.1]
    )


def test_the_noise_of_one_variable_is_not_taken_for_another():
    node = noisy("relative_distance", np.full(4, 0.1))
    assert np.isnan(floor_of(node, "reconstruction_error", {}, PATHS)).all()
    assert np.isnan(floor_of(node, "distance", {}, PATHS)).all()  # in other units
    assert np.isnan(floor_of(xr.Dataset(), "relative_distance", {}, PATHS)).all()


def test_one_step_of_progress_is_no_range_of_steps():
    values = np.tile(np.exp(-LATE / 1e5), (4, 1))
    found = judged(LearningDynamics("x", noise=0.01), node(values), {})
    assert "below the first value from step 20,000 on." in OF_STEPS.fill(words(found))


def test_curves_that_never_moved_do_not_read_as_restless():
    values = np.tile(np.exp(-LATE / 1e5), (4, 1))
    values[0] = 0.3
    found = judged(LearningDynamics("x", noise=0.01), node(values), {})
    assert "In 1 of 4 layers no change exceeded the noise: nothing moved." in words(
        found
    )
    assert "to the end in 3 of 3 other layers" in words(found)
    still = judged(LearningDynamics("x", noise=2.0), node(values), {})
    assert "In 4 of 4 layers no change" in words(still) and "to the end" not in words(
        still
    )


def test_noise_that_was_not_measured_is_said():
    values = np.tile(np.exp(-LATE / 1e5), (4, 1))
    partly = noisy("relative_distance", [0.1, np.nan, 0.1, 0.1])
    found = judged(LearningDynamics("x"), node(values), {"x": partly})
    # Unknown, not "any change".
    assert np.isnan(found.progressed[1]) and np.isnan(found.converged[1])
    assert "not measured in 1 of 4 layers" in words(found)
    assert found.noise.isnull().values.tolist() == [False, True, False, False]
    given = judged(LearningDynamics("x", noise=0.1), node(values), {"x": xr.Dataset()})
    assert "not measured" not in words(given)


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("regimes", {"level": 2}, "level"),
        ("fits", {"criterion": "aic"}, "Did you mean 'aicc'"),
        ("signals", {"n_draws": 1}, "n_draws"),
        (
            "learning-dynamics",
            {"noise": -1.0},
            "noise must be a finite number of at least 0",
        ),
        ("regimes", {"select": "procrustes"}, "select must"),
    ],
)
def test_bad_arguments_are_named(kind, options, said):
    with pytest.raises(ArgumentError, match=said):
        make(kind, of="concepts-pca", **options)


def test_what_is_no_number_at_every_step_is_no_curve():
    data = xr.Dataset(
        {"status": ("step", ["done", "done"]), "total": ("layer", [1.0])},
        coords={"step": [0, 1], "layer": ["a"]},
    )
    for name in data:
        with pytest.raises(ArgumentError, match="must be a number at every step"):
            curves_of(data, "x", str(name), {})


def test_controls_that_fall_as_well_are_counted():
    values = np.tile(np.exp(-LATE / 1e5), (4, 1))
    controls = np.stack([node(values).curve.values] * 2)
    controls[1] = 1.0  # this one stays
    controls[:, 1::2] = np.nan  # not read at every step
    beside = xr.Dataset(
        {"relative_distance_control": (("run", "step", "layer"), controls)},
        coords={
            "run": ["turned 0", "turned 1"],
            "step": LATE.astype(np.int64),
            "layer": PATHS,
        },
    )
    found = judged(LearningDynamics("x", noise=0.01), node(values), {"x": beside})
    assert "Of 2 controls" in words(found) and "4 of 8 curves fell" in words(found)
    assert "may look the same" not in words(found)
