"""The intrinsic dimension of dictionaries along a small study."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers import study_examples as examples
from ontogeny import dynamics, geometry
from ontogeny.errors import ArgumentError
from ontogeny.observables import Concepts, IntrinsicDimension
from ontogeny.words.names import named
from ontogeny_papers.dynamics.averages import window_steps


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    trajectory = og.Trajectory.from_models(examples.developing())
    study = og.Study(
        trajectory,
        examples.tiny_inputs(),
        observables=[
            Concepts("ica", n_concepts=8, layers=examples.LAYERS),
            Concepts("pca", n_concepts=8, layers=examples.LAYERS),
            IntrinsicDimension("concepts-ica", n_draws=4),
            IntrinsicDimension("concepts-pca", n_draws=4),
        ],
        noise=0,
    )
    return study.run(tmp_path_factory.mktemp("dimensions") / "study")


def test_the_table_holds_what_two_nn_says_of_the_averaged_dictionaries(result):
    node, concepts = result["concepts-ica-dimension"], result["concepts-ica"]
    layer = str(node.layer.values[0])
    W = concepts.dictionary.sel(layer=layer).dropna("feature", how="all")
    W = W.transpose("step", "feature", "concept").values.astype(float)
    early = W[: len(W) // 2]
    cloud = dynamics.average_dictionary(early, "unaligned")
    expected = geometry.two_nn(cloud, "likelihood", n_draws=0).value
    found = node.early.sel(layer=layer, average="unaligned", estimator="likelihood")
    assert float(found) == pytest.approx(expected, rel=1e-9)
    assert (node.early_null.values > 0).all() and (node.early_stderr.values > 0).all()


def test_an_orthonormal_dictionary_is_refused_with_the_reason(result):
    statuses = result["concepts-pca-dimension"].status.values.ravel()
    assert all("undefined" in str(s) for s in statuses)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"windows": "thirds"}, "windows"),
        ({"windows": ((0, 1),)}, "two pairs"),
        ({"averages": ()}, "averages must name at least 1"),
        ({"methods": ("mle",)}, "methods"),
        ({"n_draws": 1}, "n_draws"),
        ({"n_draws": 2.5}, "n_draws must be a whole number"),
    ],
)
def test_wrong_options_are_named(options, words):
    with pytest.raises(ArgumentError, match=words):
        IntrinsicDimension("concepts-ica", **options)


def test_a_window_without_steps_is_said():
    with pytest.raises(ArgumentError, match="holds none of the steps"):
        window_steps([0, 10], (20, 30))
    with pytest.raises(ArgumentError, match="a pair of steps"):
        window_steps([0, 10], (1, 2, 3))


def test_the_reports_average_is_that_of_neighbouring_concepts():
    W = np.random.default_rng(0).normal(size=(6, 5, 8))
    rows = np.concatenate([w.T for w in W])
    found = dynamics.average_dictionary(W, "report-code", group=12)
    assert np.allclose(found, rows.reshape(4, 12, 5).mean(1))
    with pytest.raises(ArgumentError, match="two groups"):
        dynamics.average_dictionary(W, "report-code", group=40)


def dictionaries(boundary=None, count=40):
    """One layer's dictionaries that approach the last one, noisier from `boundary` on."""
    rng = np.random.default_rng(0)
    last, apart = rng.normal(size=(2, 24, 16))
    size = np.where(np.arange(count) < (boundary or 0), 0.002, 0.04)
    left = 0.5 + np.exp(-np.arange(count) / 10) + size * rng.normal(size=count)
    left[-1] = 0.0  # the reference
    W = last + left[:, None, None] * apart
    steps = 1000 * np.arange(count)
    data = xr.Dataset(
        {"dictionary": (("step", "feature", "concept"), W.astype(np.float32))},
        coords={"step": steps},
    )
    return SimpleNamespace(layer="mlp", reference_step=int(steps[-1]), data=data)


def observed(reading, **options):
    options = {
        "n_draws": 2,
        "averages": ("aligned",),
        "methods": ("likelihood",),
        **options,
    }
    return IntrinsicDimension("concepts-ica", **options).observe(reading, None)


def test_windows_lie_before_and_after_the_boundary_that_was_found():
    reading = dictionaries(boundary=26)
    found = observed(reading, windows="found")
    assert float(found.boundary_found) == 1
    (low, cut), (after, high) = zip(
        found.window_low.values, found.window_high.values, strict=True
    )
    assert (low, high) == (0, 39_000) and after - cut == 1000
    assert abs(after - 26_000) <= 2000
    early = reading.data.dictionary.sel(step=slice(low, cut)).values.astype(float)
    cloud = dynamics.average_dictionary(
        early, reference=reading.data.dictionary.values[-1]
    )
    assert float(found.early.item()) == pytest.approx(
        geometry.two_nn(cloud, "likelihood").value
    )


def test_without_a_boundary_the_checkpoints_are_halved_and_it_is_said():
    reading = dictionaries()
    found = observed(reading, windows="found")
    halves = observed(reading, windows="halves")
    assert float(found.boundary_found) == 0
    assert found.window_low.values.tolist() == [0, 20_000]
    assert found.early.values.tolist() == halves.early.values.tolist()
    layers = xr.concat(
        [observed(dictionaries(26), windows="found"), found], dim="layer"
    )
    observable = IntrinsicDimension(
        "x", "found", averages=("aligned",), methods=("likelihood",)
    )
    said = observable.summarise(layers.assign_coords(layer=["a", "b"]), {}).attrs[
        "statements"
    ]
    assert "boundary was found in 1 of 2 layers; the others are cut in halves" in said


def test_checkpoints_of_one_dimension_neither_fall_nor_rise_whatever_their_average_does():
    rng = np.random.default_rng(0)
    plane = rng.normal(size=(20, 3, 40))
    plane[10:] = plane[10] + 0.02 * rng.normal(size=(10, 3, 40))  # the late ones agree
    spaces = np.linalg.qr(rng.normal(size=(20, 24, 3)))[0]
    spaces[10:] = spaces[10]
    reading = dictionaries(count=20)
    reading.data = xr.Dataset(
        {"dictionary": (("step", "feature", "concept"), spaces @ plane)},
        coords={"step": 1000 * np.arange(20)},
    )
    found = observed(reading)
    # Of averaged dictionaries.
    assert float(found.early.item()) > 2 * float(found.late.item())
    assert float(found.p_change) > 0.05
    observable = IntrinsicDimension("x", averages=("aligned",), methods=("likelihood",))
    node = observable.summarise(found.expand_dims(layer=["a"]), {})
    assert "falls in 0 of 1 layers and rises in 0" in node.attrs["statements"]
    few = observed(reading, windows=((0, 2000), (10_000, 19_000)))
    node = observable.summarise(few.expand_dims(layer=["a"]), {})
    assert "cannot be judged in 1 layers" in node.attrs["statements"]


def test_orthogonal_concepts_have_no_verdict():
    reading = dictionaries(count=20)
    spectra = np.abs(np.random.default_rng(0).normal(size=(20, 16))) + 0.1
    reading.data.dictionary.values[:] = np.eye(24, 16) * spectra[:, None]
    found = observed(reading)
    assert np.isnan(found.p_change) and np.isfinite(found.early.item())


def test_one_checkpoint_without_a_dimension_does_not_take_the_layer_with_it():
    reading = dictionaries(count=20)
    reading.data.dictionary.values[3] = np.eye(24, 16)  # all neighbours equally far
    found = observed(reading)
    assert np.flatnonzero(np.isnan(found.step_dimension)).tolist() == [3]
    assert np.isfinite(found.early.item())


def test_a_single_finished_step_is_refused_by_name():
    with pytest.raises(ArgumentError, match="at least two finished steps; got 1"):
        observed(dictionaries(count=1), windows=((0, 100), (200, 300)))


def test_standard_errors_are_named_so():
    names = IntrinsicDimension("concepts-ica").names()
    error = named(xr.Dataset({"early_stderr": 0.1}), names).early_stderr
    said = "early window, averaged dictionaries, standard error"
    assert error.attrs == {"long_name": said, "units": "dimensions"}
    assert not any(name.endswith("_sd") for name in names)
