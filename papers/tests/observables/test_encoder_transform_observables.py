"""Encoder and transform dynamics in a study: stored numbers equal those made by hand."""

import json

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.study_examples import LAYERS, developing, rotating, tiny_inputs
from ontogeny.errors import ArgumentError
from ontogeny.features.concepts.noise import refit_transforms

STEPS = (0, 1, 2, 4, 8, 16, 32)
LAYER = "model.layers.1.mlp"


def _observables(**options):
    return [
        og.observables.Concepts("ica", n_concepts=3, layers=LAYERS),
        og.observables.TransformDynamics("concepts-ica"),
        og.observables.EncoderDynamics("ica", n_concepts=3, layers=LAYERS, **options),
    ]


def _run(models, folder, *, noise=5, **options):
    trajectory = og.Trajectory.from_models(models)
    study = og.Study(
        trajectory, tiny_inputs(40), _observables(**options), device="cpu", noise=noise
    )
    tree = study.run(folder)
    assert tree.attrs["problems"] == "[]", tree.attrs["problems"]
    for name, node in tree.children.items():
        assert "failed" not in node.attrs, (name, node.attrs["failed"])
    return tree


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    models = developing(STEPS)
    return models, _run(models, tmp_path_factory.mktemp("encoders") / "s")


def _activations(model):
    return og.capture.activations(model, tiny_inputs(40), LAYERS)[LAYER]


def test_a_stored_comparison_equals_an_encoder_by_hand(made):
    models, tree = made
    A, A_ref = _activations(models[4]), _activations(models[32])
    held = round(0.3 * len(A))
    extractor = og.concepts.make("ica", n_concepts=3, random_state=0)
    train = extractor.fit_transform(A_ref[:-held])
    found = og.dynamics.encode(
        A[:-held], A[-held:], train, extractor.transform(A_ref[-held:])
    )
    stored = tree["encoder-dynamics-ica"].comparison.sel(
        step=4, layer=LAYER, codes="train-fitted"
    )
    for metric in ("cross_entropy", "mse", "kl", "correlation"):
        assert float(stored.sel(metric=metric)) == pytest.approx(
            getattr(found, metric), rel=1e-3
        )
    shares = tree["encoder-dynamics-ica"].share.sel(step=4, layer=LAYER)
    assert float(shares.sum()) == pytest.approx(1)


def test_codes_are_read_better_as_the_run_comes_near_and_better_than_by_chance(made):
    node = made[1]["encoder-dynamics-ica"].to_dataset()
    kl = node.comparison.sel(metric="kl", codes="train-fitted", layer=LAYER)
    assert float(kl.sel(step=32)) < float(kl.sel(step=8)) < float(kl.sel(step=0))
    chance = node.comparison_shuffled_low.sel(
        metric="kl", codes="train-fitted", layer=LAYER
    )
    assert float(kl.sel(step=32)) < 0.5 * float(chance.sel(step=32))
    assert (node.converged == 1).all()
    own = node.comparison.sel(metric="kl", layer=LAYER, step=32)
    assert float(own.sel(codes="test-fitted")) > float(own.sel(codes="train-fitted"))


def test_a_stored_transform_equals_one_by_hand(made):
    models, tree = made
    fits = {}
    for step in (4, 32):
        extractor = og.concepts.make("ica", n_concepts=3, random_state=0)
        codes = extractor.fit_transform(_activations(models[step]))
        fits[step] = extractor.components_.T, codes
    found = og.dynamics.transform(*fits[4], *fits[32])
    node = tree["concepts-ica-transforms"].sel(layer=LAYER, step=4)
    assert float(node.log_det) == pytest.approx(found.log_det, rel=1e-3, abs=1e-4)
    assert float(node.condition) == pytest.approx(found.condition, rel=1e-3)
    for name, errors in (
        ("linear map", found.general),
        ("as returned", found.identity),
    ):
        stored = float(node.codes_error.sel(mapping=name))
        assert stored == pytest.approx(errors.codes / found.codes_norm, rel=1e-3)
    assert float(node.share.sum()) == pytest.approx(1)


def test_at_the_reference_nothing_is_left_and_the_path_adds_up(made):
    node = made[1]["concepts-ica-transforms"].to_dataset()
    own = node.sel(step=32, layer=LAYER)
    assert float(own.dictionary_error.max()) < 1e-4 and abs(float(own.log_det)) < 1e-4
    assert own.codes_error.isnull().all()  # zero by construction, left out
    np.testing.assert_allclose(own.transform, np.eye(3), atol=1e-4)
    np.testing.assert_allclose(
        node.velocity.fillna(0).cumsum("step").values,
        node.cumulative_change.values,
        rtol=1e-6,
    )
    assert float(node.normalised.sel(step=32).min()) == pytest.approx(1)
    assert (node.velocity_refit_low <= node.velocity_refit_high).all()


def test_refits_have_the_transforms_that_were_planted():
    rng = np.random.default_rng(0)
    W_ref, W = (torch.from_numpy(rng.normal(size=(9, 3))) for _ in range(2))
    T = torch.from_numpy(rng.normal(size=(3, 3)))
    turn = torch.linalg.qr(torch.eye(3).double() + 0.1 * T).Q
    turn = turn * torch.sign(torch.diagonal(turn))
    outside = torch.from_numpy(np.linalg.svd(W.numpy(), full_matrices=True)[0][:, 3:6])
    others = {
        "map": W_ref @ T,
        "turned": W @ turn,
        "away": W + 1e-2 * outside,
        "same": W.clone(),
    }
    found = refit_transforms(W, W_ref, others)
    _, log_det = np.linalg.slogdet(T.numpy())
    assert float(found["refit_log_det"].sel(refit="map")) == pytest.approx(log_det)
    condition = float(found["refit_condition"].sel(refit="map"))
    assert condition == pytest.approx(np.linalg.cond(T.numpy()))
    share = found["refit_share"].transpose("refit", "share_of")
    assert share.sel(refit="turned").values == pytest.approx([1, 0, 0], abs=1e-9)
    assert share.sel(refit="away").values == pytest.approx([0, 0, 1], abs=1e-3)
    # Rounding has no direction.
    assert share.sel(refit="same").values.tolist() == [0, 0, 0]


def test_bands_of_transforms_hold_what_refits_give(made):
    node, concepts = (
        made[1][n].to_dataset() for n in ("concepts-ica-transforms", "concepts-ica")
    )
    for name, of in (("log_det", "refit_log_det"), ("condition", "refit_condition")):
        low = concepts[of].min("refit").sel(step=0)
        assert np.array_equal(node[f"{name}_refit_low"].sel(step=0), low)
        assert (node[f"{name}_refit_low"] <= node[f"{name}_refit_high"]).all()
    walked = node.velocity_refit_high.isel(step=slice(1, None)).sum("step")
    expected = walked / node.cumulative_change.isel(step=-1)
    assert np.allclose(
        node.normalised_refit_high.isel(step=-1).transpose(*expected.dims), expected
    )
    assert (node.normalised_refit_high.isel(step=0) == 0).all()
    figures = json.loads(node.attrs["figures"])
    without = [f["id"] for f in figures if not f["bands"]]
    assert without == ["codes-error"] and "there is no band" in figures[0]["caption"]


def test_what_shuffled_codes_leave_on_the_train_rows_stands_under_the_error(made):
    node = made[1]["encoder-dynamics-ica"].to_dataset()
    drawn = node.train_error_shuffled.sel(step=32)
    assert np.array_equal(node.train_error_shuffled_low.sel(step=32), drawn.min("draw"))
    assert (
        node.train_error.sel(step=32) < node.train_error_shuffled_low.sel(step=32)
    ).all()


def test_an_encoder_does_not_see_a_rotation_and_the_matched_path_does(tmp_path):
    tree = _run(rotating(STEPS), tmp_path / "s")
    node = tree["encoder-dynamics-ica"].to_dataset()
    kl = node.comparison.sel(metric="kl", codes="train-fitted")
    assert float(abs(kl - kl.sel(step=32)).max()) < 1e-4
    assert not node.changed.any()
    assert (
        set(node.reason.values) == {"too few checkpoints"} or not node.judgeable.any()
    )
    moved = tree["concepts-ica-transforms"].dictionary_error
    assert float(moved.sel(mapping="matched only", step=0).min()) > 0.1


def test_it_runs_without_noise_and_with_test_rows_of_their_own(tmp_path):
    models = developing(STEPS[::3])
    inputs = {"train": tiny_inputs(40), "test": tiny_inputs(20, seed=1)}
    observable = og.observables.EncoderDynamics(
        "pca", n_concepts=3, layers=LAYERS, test_on="test", norm="l1", intercept=True
    )
    study = og.Study(
        og.Trajectory.from_models(models), inputs, [observable], device="cpu", noise=0
    )
    node = study.run(tmp_path / "s")["encoder-dynamics-pca"]
    assert "failed" not in node.attrs and "comparison_shuffled" not in node
    own = node.comparison.sel(metric="correlation", codes="train-fitted", step=32)
    # With an intercept PCA's codes are linear in activations.
    assert float(own.min()) > 0.999


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"extractor": "icaa"}, "Did you mean 'ica'"),
        ({"norm": "l2"}, "norm must be one of"),
        ({"test_fraction": 1.0}, "test_fraction"),
        ({"ridge": -1.0}, "ridge"),
        ({"temperature": 0.0}, "temperature"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        og.observables.EncoderDynamics(**arguments)
    with pytest.raises(ArgumentError, match="max_condition"):
        og.observables.TransformDynamics("concepts-ica", max_condition=0.1)


def test_a_short_run_is_described_without_placeholders_and_its_reference_is_not_its_first(
    tmp_path,
):
    trajectory = og.Trajectory.from_models(developing((0, 16)))
    encoders = og.observables.EncoderDynamics("ica", n_concepts=3, layers=LAYERS)
    study = og.Study(trajectory, tiny_inputs(), [encoders], device="cpu", reference=0)
    words = study.run(tmp_path / "s")["encoder-dynamics-ica"].attrs["statements"]
    assert "{" not in words.replace("{checkpoint}", "").replace("{step}", "")
    assert "first checkpoint" not in words


def test_a_run_without_change_is_not_split_into_shares(tmp_path):
    trajectory = og.Trajectory.from_models(
        {step: developing((0,))[0] for step in (0, 1, 2)}
    )
    chosen = [
        og.observables.Concepts("pca", n_concepts=3, layers=LAYERS),
        og.observables.TransformDynamics("concepts-pca"),
    ]
    study = og.Study(trajectory, tiny_inputs(), chosen, device="cpu", noise=0)
    words = study.run(tmp_path / "s")["concepts-pca-transforms"].attrs["statements"]
    assert "squared change" not in words and "nan" not in words
