"""Dimensions of concepts and of activations along a small study."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import xarray as xr

import ontogeny as og
from helpers import study_examples as examples
from ontogeny import dynamics, geometry
from ontogeny.errors import ArgumentError
from ontogeny.features.activations.dimensions import _isotropic, _measures
from ontogeny.features.dimension.averages import window_steps
from ontogeny.observables import Concepts, EffectiveDimensions, IntrinsicDimension
from ontogeny.observables.base import dataset
from ontogeny.summary import Units
from ontogeny.words.names import named

MEASURES = [q.name for q in EffectiveDimensions.quantities]


def measured(A, units=None):
    """The measures of activations whose rows are texts of their own, as variables of the cell."""
    return dataset(_measures(A, Units(np.arange(len(A)) if units is None else units)))


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
            EffectiveDimensions(examples.LAYERS),
        ],
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


def test_effective_dimensions_are_those_of_the_centred_matrix():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(500, 12)) @ np.diag(np.arange(1, 13.0)) + 3
    found = measured(torch.from_numpy(A))
    centred = A - A.mean(0)
    assert found["participation_ratio"] == pytest.approx(geometry.participation_ratio(centred))
    assert found["stable_rank"] == pytest.approx(geometry.stable_rank(centred))
    assert found["effective_rank"] == pytest.approx(geometry.effective_rank(centred))
    unit = A / np.linalg.norm(A, axis=1, keepdims=True)
    cosines = unit @ unit.T
    expected = (cosines.sum() - len(A)) / (len(A) * (len(A) - 1))
    assert found["anisotropy"] == pytest.approx(expected)


def measured_in_full(A):
    """The measures from the singular values and cosines of the matrix itself."""
    spectrum = np.linalg.svd(A - A.mean(0), compute_uv=False)
    unit = A / np.linalg.norm(A, axis=1, keepdims=True)
    off = ~np.eye(len(A), dtype=bool)
    ranks = (geometry.participation_ratio, geometry.stable_rank, geometry.effective_rank)
    return [*(rank(spectrum=spectrum) for rank in ranks), (unit @ unit.T)[off].mean()]


@pytest.mark.parametrize("shape", [(203, 30), (97, 97), (60, 150)])
def test_values_and_jackknife_are_those_of_ten_refits_in_full(shape):
    """More features than tokens go by the Gram matrix of the tokens."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=shape) / np.arange(1, shape[1] + 1) ** 0.7 + 0.2
    blocks = Units(np.arange(len(A))).blocks(10)
    left_out = [measured_in_full(np.delete(A, block, axis=0)) for block in blocks]
    error = np.sqrt(9 * np.var(left_out, axis=0))
    found = measured(torch.from_numpy(A))
    for name, value, stderr in zip(MEASURES, measured_in_full(A), error, strict=True):
        assert found[name] == pytest.approx(value, rel=1e-7)
        assert found[f"{name}_stderr"] == pytest.approx(stderr, rel=1e-5)


@pytest.mark.parametrize("shape", [(200, 30), (30, 200), (80, 80)])
def test_the_null_is_that_of_drawn_activations(shape):
    rng = np.random.default_rng(1)
    drawn = np.array([measured_in_full(rng.normal(size=shape)) for _ in range(30)])
    spread = drawn.std(axis=0, ddof=1) * np.sqrt(1 / 30 + 1 / 10)
    assert (np.abs(np.array(_isotropic(*shape)) - drawn.mean(axis=0)) < 4 * spread).all()


def test_isotropic_activations_equal_their_null_within_the_errors():
    A = torch.randn(2000, 16, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = measured(A)
    for name in ("participation_ratio", "anisotropy"):
        gap = abs(found[name] - found[f"{name}_null"])
        assert gap < 4 * found[f"{name}_stderr"] + 2e-3


def test_the_jackknife_error_is_the_spread_over_samples():
    scale = torch.linspace(1, 3, 10, dtype=torch.float64)
    found = [
        measured(
            torch.randn(300, 10, generator=torch.Generator().manual_seed(s), dtype=torch.float64)
            * scale
        )
        for s in range(60)
    ]
    spread = np.std([float(f["participation_ratio"]) for f in found])
    mean = np.mean([float(f["participation_ratio_stderr"]) for f in found])
    assert 0.7 < mean / spread < 1.4


def test_tokens_of_one_text_are_not_counted_as_independent():
    """Tokens that share two thirds of their variance within a text: the error is that of texts."""
    texts, tokens = 60, 12
    units = np.repeat(np.arange(texts), tokens)

    def draw(seed):
        rng = np.random.default_rng(seed)
        scale = np.linspace(1, 3, 10)
        shared = rng.normal(size=(texts, 10))[units]
        return torch.from_numpy((np.sqrt(2) * shared + rng.normal(size=(len(units), 10))) * scale)

    found = [(measured(draw(s), units), measured(draw(s))) for s in range(40)]
    spread = np.std([float(own.participation_ratio) for own, _ in found], ddof=1)
    by_text, by_token = (
        np.mean([float(each[i].participation_ratio_stderr) for each in found]) for i in (0, 1)
    )
    assert 0.7 < by_text / spread < 1.4
    # With ten blocks in order, tokens of their own are blocks of texts all but at their ends.
    assert by_token < 1.2 * by_text


def test_the_noise_of_one_text_is_unknown_and_not_zero():
    A = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    found = measured(A, np.zeros(50, int))
    assert np.isfinite(found.participation_ratio) and "participation_ratio_stderr" not in found


def test_few_tokens_and_dead_layers_are_said():
    with pytest.raises(ValueError, match="at least 20 tokens"):
        measured(torch.randn(10, 4))
    with pytest.raises(ValueError, match="do not vary"):
        measured(torch.ones(50, 4))


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1.0, 1e30, 1e200])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5])
def test_ranks_depend_on_neither_the_mean_nor_the_scale(offset, scale):
    A = torch.randn(400, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    A = A @ torch.diag(torch.arange(1, 9.0).double())
    plain, moved = measured(A), measured((A + offset) * scale)
    for name in ("participation_ratio", "stable_rank", "effective_rank"):
        for key in (name, f"{name}_stderr"):
            assert float(moved[key]) == pytest.approx(float(plain[key]), rel=1e-6)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e4 + 0.1])
def test_constant_activations_have_no_dimension_whatever_the_rounding(value):
    with pytest.raises(ValueError, match="do not vary"):
        measured(torch.full((50, 4), value))
    with pytest.raises(ValueError, match="NaN or infinity"):
        measured(torch.full((50, 4), float("nan")))


def test_activations_of_all_steps_are_measured(result):
    node = result["effective-dimensions"]
    assert np.isfinite(node.participation_ratio.values).all()
    assert set(node.row_layer.values) == set(node.layer.values)
    # No distance to the reference: the value there is as good as any, and the row's last.
    values, last = node.participation_ratio.values[:, 0], node.progress.values[0]
    assert last == pytest.approx((values - values[0]) / (values[-1] - values[0]))


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
    options = {"n_draws": 2, "averages": ("aligned",), "methods": ("likelihood",), **options}
    return IntrinsicDimension("concepts-ica", **options).observe(reading, None)


def test_windows_lie_before_and_after_the_boundary_that_was_found():
    reading = dictionaries(boundary=26)
    found = observed(reading, windows="found")
    assert float(found.boundary_found) == 1
    (low, cut), (after, high) = zip(found.window_low.values, found.window_high.values, strict=True)
    assert (low, high) == (0, 39_000) and after - cut == 1000
    assert abs(after - 26_000) <= 2000
    early = reading.data.dictionary.sel(step=slice(low, cut)).values.astype(float)
    cloud = dynamics.average_dictionary(early, reference=reading.data.dictionary.values[-1])
    assert float(found.early.item()) == pytest.approx(geometry.two_nn(cloud, "likelihood").value)


def test_without_a_boundary_the_checkpoints_are_halved_and_it_is_said():
    reading = dictionaries()
    found = observed(reading, windows="found")
    halves = observed(reading, windows="halves")
    assert float(found.boundary_found) == 0
    assert found.window_low.values.tolist() == [0, 20_000]
    assert found.early.values.tolist() == halves.early.values.tolist()
    layers = xr.concat([observed(dictionaries(26), windows="found"), found], dim="layer")
    observable = IntrinsicDimension("x", "found", averages=("aligned",), methods=("likelihood",))
    said = observable.summarise(layers.assign_coords(layer=["a", "b"]), {}).attrs["statements"]
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
    assert float(found.early.item()) > 2 * float(found.late.item())  # of averaged dictionaries
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
