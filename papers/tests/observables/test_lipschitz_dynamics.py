"""Lipschitz ratios and local constants: closed forms, and along a small study."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import ontogeny as og
from helpers.study_examples import LAYERS, developing, tiny_inputs
from ontogeny import dynamics
from ontogeny.errors import ArgumentError
from planted_runs import planted


@settings(max_examples=25)
@given(st.floats(0.01, 50), st.integers(0, 10**6))
def test_a_linear_map_keeps_its_ratios_below_its_largest_singular_value(scale, seed):
    rng = np.random.default_rng(seed)
    M = scale * rng.normal(size=(5, 4))
    x = rng.normal(size=(8, 4))
    inputs = np.linalg.norm(x - x[-1], axis=1)
    outputs = np.linalg.norm((x - x[-1]) @ M.T, axis=1)
    found = dynamics.lipschitz_ratios(np.arange(8), outputs, inputs)
    bound = np.linalg.norm(M, 2)
    assert np.isnan(found.ratio[-1]) and found.largest <= bound * (1 + 1e-9)
    assert found.largest == np.nanmax(found.ratio)
    assert found.ratio[int(found.at_step)] == found.largest
    right = np.linalg.svd(M)[2]
    local = dynamics.local_constants(
        lambda v: {"y": (M @ v)[None], "z": v[None]}, x[0], [right[0], -right[-1]]
    )
    np.testing.assert_allclose(local["y"], np.linalg.svd(M)[1][[0, -1]], rtol=1e-6)
    np.testing.assert_allclose(local["z"], 1, rtol=1e-9)


def test_a_jump_shows_as_a_ratio_that_grows_like_one_over_the_radius():
    def jump(v):
        return {"y": torch.sign(v)[None]}

    x = torch.tensor([1e-9, 1.0], dtype=torch.float64)
    large, small = (
        float(
            dynamics.local_constants(jump, x, [[-1.0, 0.0]], relative_radius=r)["y"][0]
        )
        for r in (1e-2, 1e-4)
    )
    assert small == pytest.approx(100 * large)


def test_series_without_movement_or_with_gaps():
    gone = dynamics.lipschitz_ratios(
        [0, 1, 2], [[0.0, 0, 0], [1, np.nan, 2]], [[0, 0, 0], [1, 1, 1]]
    )
    assert np.isnan(gone.ratio[0]).all() and np.isnan(gone.largest[0])
    assert gone.largest[1] == 2 and gone.at_step[1] == 2 and np.isnan(gone.ratio[1, 1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [1.0, -1.0], [1.0, 1.0]), "negative"),
        (([0, 1], [1.0, 1.0], [1.0]), "shape"),
        (([0, 1], [[1.0, 1.0]] * 2, [[1.0, 1.0]] * 3), "input_ must have shape"),
    ],
)
def test_bad_series_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        dynamics.lipschitz_ratios(*arguments)


def test_bad_points_are_refused():
    def same(v):
        return {"y": v[None]}

    for x, ways, radius, message in [
        (np.zeros(2), [np.ones(2)], 1e-3, "x must not be zero"),
        (np.ones(2), [], 1e-3, "there must be a direction"),
        (np.ones(2), [np.zeros(2)], 1e-3, "direction must be finite"),
        (np.ones(2), [np.ones(2)], 0.0, "relative_radius"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            dynamics.local_constants(same, x, ways, relative_radius=radius)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    models = developing((0, 1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96))
    arguments = {"n_concepts": 3, "layers": LAYERS}
    chosen = [
        og.observables.Concepts("pca", **arguments),
        og.observables.Lipschitz("concepts-pca", extractor="pca", **arguments),
    ]
    study = og.Study(
        og.Trajectory.from_models(models), tiny_inputs(), chosen, device="cpu", noise=3
    )
    tree = study.run(tmp_path_factory.mktemp("lipschitz") / "s")
    assert tree.attrs["problems"] == "[]", tree.attrs["problems"]
    return models, tree


def test_stored_distances_and_ratios_equal_those_by_hand(made):
    models, tree = made
    node = tree["concepts-pca-lipschitz"].to_dataset()
    assert "failed" not in node.attrs, node.attrs.get("failed")
    flat = {
        s: torch.cat([p.detach().reshape(-1) for p in models[s].parameters()])
        for s in (4, 96)
    }
    apart = float((flat[4] - flat[96]).norm())
    assert float(node.parameter_distance.sel(step=4)) == pytest.approx(apart, rel=1e-5)
    layer = "model.layers.1.mlp"
    acts = [
        og.capture.activations(models[s], tiny_inputs(), LAYERS)[layer] for s in (4, 96)
    ]
    moved = float((acts[0] - acts[1]).norm())
    assert float(node.activation_distance.sel(step=4, layer=layer)) == pytest.approx(
        moved, rel=1e-4
    )
    ratio = float(node.activations_per_parameters.sel(step=4, layer=layer))
    assert ratio == pytest.approx(moved / apart, rel=1e-4)
    concepts = tree["concepts-pca"].distance_to_reference.sel(
        distance="procrustes", alignment="matched", step=4, layer=layer
    )
    found = node.concepts_per_activations.sel(
        distance="procrustes", alignment="matched", step=4, layer=layer
    )
    assert float(found) == pytest.approx(float(concepts) / moved, rel=1e-4)
    assert np.isnan(node.concepts_per_activations.sel(step=96)).all()


def test_ratios_stand_over_refits_chance_and_random_directions(made):
    models, tree = made
    node, concepts = (
        tree[n].to_dataset() for n in ("concepts-pca-lipschitz", "concepts-pca")
    )
    layer = "model.layers.1.mlp"
    acts = [
        og.capture.activations(models[s], tiny_inputs(), LAYERS)[layer] for s in (0, 96)
    ]
    squares = (acts[0].double() - acts[1].double()).square().sum(1).numpy()
    inputs = tiny_inputs()
    squares = np.bincount(np.nonzero(inputs.mask & ~inputs.special)[0], weights=squares)
    drawn = np.random.default_rng(0).integers(0, len(squares), (4000, len(squares)))
    spread = np.sqrt(squares[drawn].sum(1)).std()  # what resampling texts gives
    error = float(node.activation_distance_stderr.sel(step=0, layer=layer))
    assert error == pytest.approx(spread, rel=0.1)
    here = {"step": 0, "layer": layer, "distance": "procrustes", "alignment": "matched"}
    for kind in ("refit", "chance"):
        for end in ("low", "high"):
            apart = float(concepts[f"distance_to_reference_{kind}_{end}"].sel(here))
            moved = float(node.activation_distance.sel(step=0, layer=layer))
            found = node[f"concepts_per_activations_{kind}_{end}"]
            assert float(found.sel(here)) == pytest.approx(apart / moved)
            assert np.isnan(found.sel(step=96)).all()
    inside = node.layer_random.sel(step=0, layer=layer)
    assert float(
        node.activations_per_parameters_random_low.sel(step=0, layer=layer)
    ) == float(inside.min())
    bands = {f["id"]: len(f["bands"]) for f in json.loads(node.attrs["figures"])}
    assert bands["procrustes"] == 2
    assert bands["activations-per-parameters"] == 1


def test_local_constants_stand_at_the_noise_steps_only(made):
    tree = made[1]
    node = tree["concepts-pca-lipschitz"].to_dataset()
    measured = node.layer_random.dropna("step", how="all").step.values.tolist()
    assert len(measured) == 3 and measured[0] == 0 and measured[-1] == 96
    assert (node.layer_random.sel(step=measured) > 0).all()
    assert node.layer_towards.sel(step=96).isnull().all()
    assert float(node.layer_towards.sel(step=0).min()) > 0
    # matching can only bring a perturbed dictionary nearer
    raw, aligned = (
        node.extractor_random.sel(matching=m) for m in ("as returned", "matched")
    )
    assert (aligned <= raw * (1 + 1e-9)).sum() == raw.notnull().sum()
    assert (
        "permuted over tokens" in node.attrs["statements"]
        and "Spearman" in node.attrs["statements"]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"extractor": "icaa"}, "Did you mean 'ica'"),
        ({"extractor": "ica", "distance": "procustes"}, "Did you mean 'procrustes'"),
        ({"extractor": "ica", "relative_radius": 0.0}, "relative_radius"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        og.observables.Lipschitz("concepts-ica", **arguments)


def test_a_run_in_which_nothing_happens_has_no_direction_towards_its_end(tmp_path):
    from ontogeny.observables import Concepts, Lipschitz

    run = planted("nothing", steps=range(0, 800, 100), n=60)
    chosen = {"n_concepts": 4, "layers": "layers.*"}
    observables = [
        Concepts("svd", **chosen),
        Lipschitz("concepts-svd", "svd", **chosen),
    ]
    result = og.Study(run.trajectory, run.inputs, observables=observables).run(
        tmp_path / "study"
    )
    assert result.attrs["problems"] == "[]"
    words = result["concepts-svd-lipschitz"].attrs["statements"]
    assert "towards" not in words and "nan" not in words


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            {"extractor": "svd"},
            "extractor of concepts-lipschitz must be that of concepts, 'pca'",
        ),
        (
            {"layers": "model.layers.0.mlp"},
            "layers of concepts-lipschitz must be that of",
        ),
        ({"n_concepts": 4}, "n_concepts of"),
        ({"max_tokens": 100}, "max_tokens of"),
        ({"distance": "bures"}, "distance of concepts-lipschitz must be one of"),
    ],
)
def test_concepts_of_another_kind_are_refused_when_the_study_is_made(other, message):
    """Ratios would mix two fits (defect 7 of the house)."""
    shared = {"extractor": "pca", "n_concepts": 3, "layers": LAYERS}
    chosen = [
        og.observables.Concepts(**shared, label="concepts"),
        og.observables.Lipschitz("concepts", **{**shared, **other}),
    ]
    trajectory = og.Trajectory.from_models(developing((0, 1)))
    with pytest.raises(ArgumentError, match=message):
        og.Study(trajectory, tiny_inputs(), chosen)


def test_ratios_of_what_is_no_concepts_are_refused():
    chosen = [og.observables.Loss(), og.observables.Lipschitz("loss", "pca")]
    with pytest.raises(ArgumentError, match="'loss' is of kind 'loss'"):
        og.Study(og.Trajectory.from_models(developing((0, 1))), tiny_inputs(), chosen)
