"""Distances between the concepts of all pairs of steps."""

import itertools
import json

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers.study_examples import LAYERS, Counting, developing, tiny_inputs
from ontogeny.errors import ArgumentError

STEPS = (0, 1, 2, 4, 8, 16)


def _study(trajectory, *more):
    concepts = og.observables.Concepts(
        "pca", n_concepts=3, layers=LAYERS, max_tokens=150
    )
    pairs = og.observables.ConceptDistances(
        "concepts-pca", measures=("procrustes", "optimal")
    )
    return og.Study(trajectory, tiny_inputs(), [concepts, pairs, *more], device="cpu")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    trajectory = og.Trajectory.from_models(developing(STEPS))
    folder = tmp_path_factory.mktemp("pairs") / "s"
    return trajectory, folder, _study(trajectory).run(folder)


def test_every_pair_equals_the_distance_of_its_dictionaries(made):
    _, _, tree = made
    between = tree["concepts-pca-distances"].between
    W = (
        tree["concepts-pca"]
        .dictionary.sel(layer="model.layers.1.mlp")
        .astype(np.float64)
    )
    for s, t in [(0, 16), (2, 4), (8, 8)]:
        a = W.sel(step=s).transpose("feature", "concept").values
        b = W.sel(step=t).transpose("feature", "concept").values
        expected = og.distances.distance("procrustes", a, b) / np.hypot(
            np.linalg.norm(a), np.linalg.norm(b)
        )
        found = between.sel(
            layer="model.layers.1.mlp", distance="procrustes", step=s, step_=t
        )
        assert float(found) == pytest.approx(expected, rel=1e-6, abs=1e-7)


def test_the_previous_step_is_the_diagonal_beside(made):
    data = made[2]["concepts-pca-distances"]
    assert np.isnan(data.to_previous.sel(step=0)).all()
    for before, step in itertools.pairwise(STEPS):
        xr.testing.assert_equal(
            data.to_previous.sel(step=step, drop=True),
            data.between.sel(step=step, step_=before, drop=True),
        )


def test_a_correlation_stands_over_its_refits_where_the_concepts_have_it():
    step, layer, refit = [0, 1], ["a"], ["x", "y"]
    # Measure, alignment, refit, layer, step.
    found = np.arange(8.0).reshape(1, 2, 2, 1, 2) / 8
    coords = {
        "alignment": ["as returned", "matched"],
        "refit": refit,
        "layer": layer,
        "step": step,
    }
    dims = ("alignment", "refit", "layer", "step")
    concepts = xr.Dataset(
        {
            "relative_distance_refit": (("distance", *dims), found),
            "correlation_to_reference_refit": (("correlation", *dims), 1 - found),
        },
        coords={**coords, "distance": ["procrustes"], "correlation": ["optimal"]},
    )
    measures = ("optimal", "procrustes", "bures")
    previous = xr.DataArray(
        np.zeros((3, 2, 1)),
        dims=("distance", "step", "layer"),
        coords={"distance": list(measures), "step": step, "layer": layer},
    )
    between = previous.expand_dims(step_=step)
    data = xr.Dataset({"between": between, "to_previous": previous})
    node = og.observables.ConceptDistances("c", measures=measures).summarise(
        data, {"c": concepts}
    )
    band = node.sel(layer="a", step=0)
    assert band.to_previous_refit_low.sel(
        distance=["optimal", "procrustes"]
    ).values.tolist() == [0.25, 0.5]
    assert band.to_previous_refit_high.sel(
        distance=["optimal", "procrustes"]
    ).values.tolist() == [0.5, 0.75]
    bands = [
        len(f["bands"])
        for f in json.loads(node.attrs["figures"])
        if f["kind"] == "curves"
    ]
    assert bands == [1, 1, 0]


def test_it_is_computed_once_and_again_when_a_cell_behind_it_changes(made):
    trajectory, folder, tree = made
    progress = Counting()
    again = _study(trajectory).run(folder, progress=progress)
    assert progress.planned == 0
    xr.testing.assert_identical(
        again["concepts-pca-distances"].to_dataset(),
        tree["concepts-pca-distances"].to_dataset(),
    )
    (folder / "cells" / "concepts-pca" / "4.safetensors").unlink()
    pairs = list((folder / "cells" / "concepts-pca-distances").iterdir())
    written = [pair.stat().st_mtime_ns for pair in pairs]
    progress = Counting()
    _study(trajectory).run(folder, progress=progress)
    # the lost cell comes back with the same bits, so the pairs behind it still stand
    assert "step 4" in progress.labels
    assert pairs and [pair.stat().st_mtime_ns for pair in pairs] == written


def test_a_source_that_is_not_there_is_refused():
    with pytest.raises(ArgumentError, match="concepts-pcaa"):
        _study(
            og.Trajectory.from_models(developing(STEPS)),
            og.observables.ConceptDistances("concepts-pcaa"),
        )


def test_an_unknown_measure_is_refused():
    with pytest.raises(ArgumentError, match="procrustes"):
        og.observables.ConceptDistances("concepts-pca", measures=("procustes",))
