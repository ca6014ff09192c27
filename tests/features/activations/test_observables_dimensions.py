"""Effective dimensions of activations along a small study."""

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers import study_examples as examples
from helpers.said import said_of
from ontogeny import geometry
from ontogeny.errors import ArgumentError
from ontogeny.features.activations.dimensions import _isotropic, _measures
from ontogeny.observables import EffectiveDimensions
from ontogeny.observables.variables import dataset
from ontogeny.summary import Units

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
        observables=[EffectiveDimensions(examples.LAYERS)],
    )
    return study.run(tmp_path_factory.mktemp("dimensions") / "study")


def test_effective_dimensions_are_those_of_the_centred_matrix():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(500, 12)) @ np.diag(np.arange(1, 13.0)) + 3
    found = measured(torch.from_numpy(A))
    centred = A - A.mean(0)
    assert found["participation_ratio"] == pytest.approx(
        geometry.participation_ratio(centred)
    )
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
    ranks = (
        geometry.participation_ratio,
        geometry.stable_rank,
        geometry.effective_rank,
    )
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
    assert (
        np.abs(np.array(_isotropic(*shape)) - drawn.mean(axis=0)) < 4 * spread
    ).all()


def test_isotropic_activations_equal_their_null_within_the_errors():
    A = torch.randn(
        2000, 16, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    found = measured(A)
    for name in ("participation_ratio", "anisotropy"):
        gap = abs(found[name] - found[f"{name}_null"])
        assert gap < 4 * found[f"{name}_stderr"] + 2e-3


def test_the_jackknife_error_is_the_spread_over_samples():
    scale = torch.linspace(1, 3, 10, dtype=torch.float64)
    found = [
        measured(
            torch.randn(
                300, 10, generator=torch.Generator().manual_seed(s), dtype=torch.float64
            )
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
        return torch.from_numpy(
            (np.sqrt(2) * shared + rng.normal(size=(len(units), 10))) * scale
        )

    found = [(measured(draw(s), units), measured(draw(s))) for s in range(40)]
    spread = np.std([float(own.participation_ratio) for own, _ in found], ddof=1)
    by_text, by_token = (
        np.mean([float(each[i].participation_ratio_stderr) for each in found])
        for i in (0, 1)
    )
    assert 0.7 < by_text / spread < 1.4
    # With ten blocks in order, tokens of their own are blocks of texts all but at their ends.
    assert by_token < 1.2 * by_text


def test_the_noise_of_one_text_is_unknown_and_not_zero():
    A = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    found = measured(A, np.zeros(50, int))
    assert (
        np.isfinite(found.participation_ratio)
        and "participation_ratio_stderr" not in found
    )


def test_few_tokens_and_dead_layers_are_said():
    with pytest.raises(ValueError, match="at least 20 tokens"):
        measured(torch.randn(10, 4))
    with pytest.raises(ValueError, match="do not vary"):
        measured(torch.ones(50, 4))


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1.0, 1e30, 1e200])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5])
def test_ranks_depend_on_neither_the_mean_nor_the_scale(offset, scale):
    A = torch.randn(
        400, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
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


@pytest.mark.parametrize("drop", [False, True])
def test_attention_sinks_are_counted_and_left_out_where_that_is_asked(drop):
    """The first token of every text is 300 times as long, and alone makes a direction."""
    rows, rng = 40 * 5, np.random.default_rng(0)
    A = rng.normal(size=(rows, 8))
    A[::5] = 300 * np.eye(8)[0] + 0.01 * rng.normal(size=(rows // 5, 8))
    units = np.repeat(np.arange(rows // 5), 5)
    observable = EffectiveDimensions(outliers="drop" if drop else "keep")
    found = dataset(observable._beside_outliers(torch.from_numpy(A), units))
    inner = np.delete(A, np.arange(0, rows, 5), axis=0)
    alone = geometry.participation_ratio(inner - inner.mean(0))
    assert int(found.outliers) == rows // 5
    assert float(found.without_outliers) == pytest.approx(alone) and alone > 7
    assert float(found.participation_ratio) == pytest.approx(
        alone if drop else 1.0, rel=1e-3
    )
    (said,) = said_of(observable, found.expand_dims(layer=["mlp"], step=[3]))
    ratio = f"{alone:.3g}"
    assert said == (
        f"Outlying tokens of mlp, left out: 40; the participation ratio is {ratio}."
        if drop
        else f"Outlying tokens of mlp: 40; the participation ratio is 1 with them, {ratio} without."
    )
    with pytest.raises(ArgumentError, match="outliers must be"):
        EffectiveDimensions(outliers="clip")


def test_without_outliers_nothing_is_said_or_changed():
    A = torch.randn(200, 8, generator=torch.Generator().manual_seed(0))
    values = [
        EffectiveDimensions(outliers=o)._beside_outliers(A, np.arange(200))
        for o in ("keep", "drop")
    ]
    kept, dropped = map(dataset, values)
    assert kept.equals(dropped) and int(kept.outliers) == 0
    assert kept.without_outliers == kept.participation_ratio
    told = said_of(EffectiveDimensions(), kept.expand_dims(layer=["mlp"], step=[3]))
    assert told == []
