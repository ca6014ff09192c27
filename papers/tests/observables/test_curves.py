"""Observables of other nodes' curves: regimes, fits, signals."""

import json
import tomllib

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers.curve_nodes import PATHS, judged, node, words
from helpers.series_examples import LATE, planted
from helpers.study_examples import LAYERS, developing, tiny_inputs
from ontogeny.dynamics import compare_fits, compare_signals
from ontogeny.errors import ArgumentError
from ontogeny.observables import Fits, LearningDynamics, Regimes, Signals, make
from ontogeny_papers.dynamics.two_regimes import Regime
from ontogeny_papers.dynamics.two_regimes import Regimes as Found
from ontogeny_papers.observables.curves.regimes import _row


@pytest.fixture(scope="module")
def two_regimes():
    rng = np.random.default_rng(0)
    return planted("exponential", "independent", LATE, 4, 0.05, rng, 25, 8.0)


def test_regimes_of_layers_and_of_all(two_regimes):
    found = judged(
        Regimes("concepts-ica"), node(two_regimes), {"concepts-ica": xr.Dataset()}
    )
    assert abs(float(found.joint_boundary) - LATE[25]) <= 30_000
    assert found.joint_boundary_low <= found.joint_boundary <= found.joint_boundary_high
    assert float(found.joint_noise_ratio) > 4
    assert found.attrs["role"] == "regimes" and "smooth then noisy" in words(found)
    assert (found.noise_after > 3 * found.noise_before)[found.boundary.notnull()].all()
    assert (found.boundary_p <= 0.05)[found.boundary.notnull()].all()
    marks = json.loads(found.attrs["figures"])[0]["boundaries"]
    assert (
        marks[0]["step"] == "joint_boundary" and marks[0]["low"] == "joint_boundary_low"
    )
    assert np.isnan(found.residual.sel(step=int(LATE[-1]))).all()  # the reference


def test_without_a_change_of_noise_the_page_says_so():
    values = planted(
        "exponential", "independent", LATE, 4, 0.05, np.random.default_rng(3)
    )
    found = judged(Regimes("concepts-ica"), node(values), {})
    assert np.isnan(found.joint_boundary) and np.isnan(found.boundary).all()
    assert "does not visibly change" in words(found)
    assert found.noise_before.values == pytest.approx([0.05] * 4, rel=0.4)


def test_curves_without_noise_are_not_judged():
    values = planted("exponential", "none", LATE, 4, 0.0, np.random.default_rng(0))
    found = judged(Regimes("concepts-ica"), node(values), {})
    assert "no noise distinguishable" in words(found)


def test_fits_are_those_of_the_plain_function():
    rates = np.array([5e4, 1e5, 1.5e5, 2e5])
    values = np.exp(-LATE / rates[:, None]) + 0.3
    values += 0.01 * np.random.default_rng(0).normal(size=values.shape)
    found = judged(Fits("activation-decay"), node(values), {})
    alone = compare_fits(LATE, values[2], reference_index=49)
    assert float(found.rate[2]) == alone.fits["exponential"].rate
    assert found.rate.values == pytest.approx(-1 / rates, rel=0.15)
    assert found.half_time.values == pytest.approx(np.log(2) * rates, rel=0.15)
    assert found.weight.sum("model").values == pytest.approx(np.ones(4))
    assert found.fitted.sel(model="exponential").shape == (50, 4)
    assert "Exponential: 3 of 4 curves" in words(found)


def test_fits_of_a_window_see_nothing_else():
    values = np.tile(np.where(LATE <= 250_000, np.exp(-LATE / 5e4), 7.0), (4, 1))
    found = judged(Fits("x", first=20_000, last=250_000), node(values), {})
    assert found.rate.values == pytest.approx([-1 / 5e4] * 4, rel=1e-4)
    with pytest.raises(ArgumentError, match="first must be before last"):
        Fits("x", first=10, last=5)


def test_no_exponential_is_said():
    values = (1 + LATE / 2e4) ** -np.linspace(0.5, 1.5, 4)[:, None]
    values += 0.004 * np.random.default_rng(0).normal(size=values.shape)
    found = judged(Fits("x"), node(values), {})
    assert "Exponential: none of 4 curves of x" in words(found)
    assert "at least nine times as likely: a power law 4" in words(found)


def test_signals_of_independent_decays_are_not_related_and_shared_ones_are():
    # In half of the seeds chance looks like a shared schedule.
    rng = np.random.default_rng(1)
    shared = 0.03 * rng.normal(size=(4, 50))
    first, second, third = (
        planted("exponential", "independent", LATE, 4, 0.01, rng) for _ in range(3)
    )
    other = node(second + shared, name="rotation_removed")
    observable = Signals("concepts-ica")
    together = judged(observable, node(first + shared), {"activation-decay": other})
    apart = judged(observable, node(third), {"activation-decay": other})
    assert float(together.joint_p) < 0.01 and "more than the trends explain" in words(
        together
    )
    assert float(apart.joint_p) > 0.05 and "no more than the trends explain" in words(
        apart
    )
    assert float(apart.mean_pearson) > 0.7
    alone = compare_signals(
        (first + shared)[1], (second + shared)[1], LATE, reference_index=49
    )
    assert float(together.pearson[1]) == pytest.approx(alone.pearson)
    assert float(together.fluctuation_pearson[1]) == pytest.approx(
        alone.fluctuation_pearson
    )
    assert np.allclose(together.standardised.mean("step"), 0)
    assert together.averaged.sizes == {"signal": 2, "step": 50}
    figures = {figure["id"]: figure for figure in json.loads(together.attrs["figures"])}
    assert {"overlay", "rolling", "scatter", "averaged"} <= set(figures)
    # What is drawn is what the numbers beside it are made of.
    for layer in range(4):
        means = together.rolling_standardised.isel(layer=layer, step=slice(-1)).values
        assert np.corrcoef(means)[0, 1] == pytest.approx(
            float(together.rolling_pearson[layer])
        )
        points = [
            together[figures["scatter"][axis]][:-1, layer].values for axis in "xy"
        ]
        assert np.corrcoef(points)[0, 1] == pytest.approx(
            float(together.pearson[layer])
        )


def test_signals_take_the_layers_that_both_have_and_that_vary():
    rng = np.random.default_rng(0)
    values = planted("exponential", "independent", LATE, 4, 0.01, rng)
    constant = values.copy()
    constant[3] = 0.5
    other = node(values, name="rotation_removed").isel(layer=[1, 2, 3])
    found = judged(Signals("x"), node(constant), {"activation-decay": other})
    assert found.layer.values.tolist() == PATHS[1:3]
    strange = other.assign_coords(layer=["a", "b", "c"])
    with pytest.raises(ArgumentError, match="no layer in common"):
        judged(Signals("x"), node(values), {"activation-decay": strange})
    with pytest.raises(ArgumentError, match="has no variable 'rotation_removed'"):
        judged(Signals("x"), node(values), {"activation-decay": xr.Dataset()})


def test_of_three_regimes_the_table_compares_the_two_beside_the_boundary():
    def regime(start, noise):
        return Regime(start, start + 10, 10, noise, 0.0, 1.0)

    low, middle, high = regime(0, 0.01), regime(10, 0.1), regime(20, 0.4)
    found = Found(
        boundary=10.0,
        interval=(9.0, 11.0),
        smooth=low,
        noisy=high,
        noise_ratio=40.0,
        noise_ratio_interval=(20.0, 80.0),
        spacing_ratio=1.0,
        regimes=(low, middle, high),
        boundaries=(10.0, 20.0),
        p_value=0.01,
        p_third=0.01,
        p_jumps=0.5,
        p_gradual=0.01,
        gradual_ratio=2.0,
        trend=np.ones(30),
        residuals=np.ones(30),
    )
    row = _row(found)
    assert row["noise_ratio"] == pytest.approx(row["noise_after"] / row["noise_before"])
    assert row["noise_ratio"] == pytest.approx(10.0) and np.isnan(
        row["noise_ratio_low"]
    )


def test_layers_that_cannot_be_judged_are_not_counted():
    rng = np.random.default_rng(3)
    values = planted("exponential", "independent", LATE, 4, 0.05, rng)
    values[:3] = np.exp(-LATE / 5e4)  # no noise
    found = judged(Regimes("x"), node(values), {})
    assert "In 0 of 1 layers judged alone" in words(found)


def test_layers_whose_jumps_look_like_noise_have_no_boundary():
    rng = np.random.default_rng(1)
    place = rng.integers(10, 30, 4)[:, None]
    values = 0.5 * (np.arange(50) < place) + 0.5 * (np.arange(50) < place + 6)
    found = judged(Regimes("x"), node(values + 0.003 * rng.normal(size=(4, 50))), {})
    assert (found.boundary_p <= 0.05).any() and np.isnan(found.boundary).all()
    assert "several jumps of the trend look like noise" in words(found)
    assert "In 0 of" in words(found) or "judged alone" not in words(found)


def test_few_checkpoints_earn_no_shape():
    values = np.tile(np.exp(-np.arange(6) / 2.0), (4, 1))
    found = judged(Fits("x"), node(values, np.arange(6) * 10), {})
    assert words(found) == (
        "No curve of x could be judged: 5 values are too few to compare all shapes."
    )


def test_the_step_where_the_other_curve_is_zero_by_construction_is_left_out():
    rng = np.random.default_rng(0)
    first, second = (
        planted("exponential", "independent", LATE, 4, 0.01, rng) for _ in range(2)
    )
    data = node(first)
    data["curve"] = (("step", "layer"), first.T)  # an ordinary value at the reference
    other = node(second, name="rotation_removed")
    found = judged(Signals("x"), data, {"activation-decay": other})
    alone = compare_signals(first[1], second[1], LATE, reference_index=49)
    assert float(found.pearson[1]) == pytest.approx(alone.pearson)
    assert found.standardised.isel(step=-1).isnull().all()


def test_a_study_carries_them_from_cells_to_the_page(tmp_path):
    steps = (0, *np.unique(np.geomspace(1, 1000, 17).round().astype(int)).tolist())
    observables = [
        og.observables.ActivationDecay(LAYERS),
        og.observables.Concepts("pca", n_concepts=3, layers=LAYERS, max_tokens=150),
        Regimes("concepts-pca", n_draws=19),
        Fits("activation-decay", "relative"),
        Signals("concepts-pca", n_draws=19),
        LearningDynamics("concepts-pca", select={"distance": "frobenius"}),
    ]
    trajectory = og.Trajectory.from_models(developing(steps))
    study = og.Study(trajectory, tiny_inputs(), observables, device="cpu")
    tree = study.run(tmp_path / "s")
    for observable in observables[2:]:
        found = tree[observable.name]
        assert "failed" not in found.attrs, found.attrs
        assert json.loads(found.attrs["statements"])
        assert (found.status == "done").all()
    curves = tree["concepts-pca"].relative_distance.sel(
        distance="procrustes", alignment="rotation removed"
    )
    ours = tree["concepts-pca-regimes"].curve.transpose(*curves.dims)
    assert np.array_equal(ours.values, curves.values)
    page = tmp_path / "page.html"
    og.open_study(tmp_path / "s").report(page)
    text = page.read_text(encoding="utf-8")
    assert "Regimes (concepts-pca)" in text and "Shape of the decay" in text


def test_the_loss_has_a_curve_without_layers(tmp_path):
    steps = (0, *np.unique(np.geomspace(1, 1000, 17).round().astype(int)).tolist())
    observables = [
        og.observables.Loss(),
        og.observables.ActivationDecay(LAYERS),
        Regimes("loss", "loss", n_draws=19),
        Fits("loss", "loss"),
        LearningDynamics("loss", "loss"),
        Signals(
            "activation-decay",
            "rotation_removed",
            against="loss",
            against_variable="loss",
            n_draws=19,
        ),
        Fits("loss", "los", label="misspelt"),
    ]
    trajectory = og.Trajectory.from_models(developing(steps))
    study = og.Study(trajectory, tiny_inputs(), observables, device="cpu")
    tree = study.run(tmp_path / "s")
    loss = tree["loss"].loss.values
    for observable in observables[2:5]:
        found = tree[observable.name]
        assert "failed" not in found.attrs, found.attrs
        assert found.layer.values.tolist() == ["model"]
        assert np.array_equal(found.curve.sel(layer="model").values, loss)
    assert np.isfinite(tree["loss-learning-dynamics"].noise.values).all()
    signals = tree["activation-decay-signals"]
    assert signals.sizes["layer"] == 2 and np.isfinite(signals.pearson.values).all()
    assert np.array_equal(signals.other.isel(layer=0).values, loss)
    assert "has no variable 'los'" in tree["misspelt"].attrs["failed"]
    assert "Did you mean 'loss'" in json.loads(tree.attrs["problems"])[0]
    assert study.plan(tmp_path / "s").forwards == 0  # nothing is read again
    page = tmp_path / "page.html"
    og.open_study(tmp_path / "s").report(page)
    assert "Regimes (loss)" in page.read_text(encoding="utf-8")


ATTENTION = """
[[observables]]
kind = "attention-entropy"
[[observables]]
kind = "regimes"
of = "attention-entropy"
variable = "entropy"
jointly = "head"
n_draws = 19
[[observables]]
kind = "fits"
of = "attention-entropy"
variable = "entropy"
select = { head = 1 }
[[observables]]
kind = "learning-dynamics"
of = "attention-entropy"
variable = "layer_entropy"
[[observables]]
kind = "weight-rank"
n_draws = 8
[[observables]]
kind = "fits"
of = "weight-rank"
variable = "to_last"
[[observables]]
kind = "regimes"
of = "attention-entropy-learning-dynamics"
variable = "change"
n_draws = 19
"""


def test_attention_weights_and_derived_curves_are_sources(tmp_path):
    steps = (0, *np.unique(np.geomspace(1, 1000, 17).round().astype(int)).tolist())
    observables = [make(**entry) for entry in tomllib.loads(ATTENTION)["observables"]]
    trajectory = og.Trajectory.from_models(developing(steps))
    study = og.Study(trajectory, tiny_inputs(), observables, device="cpu")
    tree = study.run(tmp_path / "s")
    assert json.loads(tree.attrs["problems"]) == []
    of_heads = tree["attention-entropy"].entropy.transpose("step", "layer", "head")
    judged_heads = tree["attention-entropy-regimes"].curve
    assert judged_heads.dims == of_heads.dims and np.array_equal(judged_heads, of_heads)
    assert np.array_equal(tree["attention-entropy-fits"].curve, of_heads.isel(head=1))
    noise = tree["attention-entropy-learning-dynamics"].noise
    assert (noise > 0).all() and (noise < 1).all()  # measured over texts
    weights = tree["weight-rank"]
    assert (
        tree["weight-rank-fits"].layer.values.tolist() == weights.block.values.tolist()
    )
    change = tree["attention-entropy-learning-dynamics"].change
    assert np.array_equal(
        tree["attention-entropy-learning-dynamics-regimes"].curve,
        change,
        equal_nan=True,
    )
    assert study.plan(tmp_path / "s").forwards == 0


def test_noise_of_many_coordinates_is_judged_together():
    rng = np.random.default_rng(0)
    walk = np.exp(-LATE / 2e5)[:, None] * rng.normal(size=(1, 8))
    noise = (
        rng.normal(size=(50, 2, 8))
        * np.where(np.arange(50) < 25, 0.01, 0.05)[:, None, None]
    )
    data = xr.Dataset(
        {"path": (("step", "layer", "coordinate"), walk[:, None] + noise)},
        coords={"step": LATE.astype(np.int64), "layer": PATHS[:2]},
    )
    found = judged(Regimes("x", "path", jointly="coordinate"), data)
    assert (abs(found.boundary - LATE[25]) <= 20_000).all()
    assert found.residual.dims == ("step", "layer", "coordinate")
    assert found.noise_ratio.values == pytest.approx([5, 5], rel=0.4)
    shown = json.loads(found.attrs["figures"])
    assert [figure["id"] for figure in shown] == ["noise", "layers"]
    with pytest.raises(
        ArgumentError, match="jointly must be a dimension of 'path'; got 'head'"
    ):
        judged(Regimes("x", "path", jointly="head"), data)
