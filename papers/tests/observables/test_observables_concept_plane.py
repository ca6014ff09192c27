"""The concepts of all steps in one plane, beside refits on the same axes."""

import json

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers.study_examples import LAYERS, developing, tiny_inputs
from ontogeny.errors import ArgumentError
from ontogeny_papers.observables.concepts import plane as concept_plane

STEPS = (0, 1, 2, 4, 8, 16)
PATH = "model.layers.1.mlp"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plane") / "s"
    chosen = [
        og.observables.Concepts("ica", n_concepts=3, layers=LAYERS, max_tokens=120),
        og.observables.ConceptPlane("concepts-ica"),
    ]
    trajectory = og.Trajectory.from_models(developing(STEPS))
    tree = og.Study(trajectory, tiny_inputs(), chosen, device="cpu", noise=3).run(
        folder
    )
    assert tree.attrs["problems"] == "[]"
    og.open_study(folder).report(folder / "page.html")
    return tree


def test_positions_are_the_principal_components_of_all_aligned_concepts(tree):
    node, one = tree["concepts-ica-plane"], tree["concepts-ica"].sel(layer=PATH)
    W = one.dictionary.transpose("step", "feature", "concept").values.astype(np.float64)
    stack = np.stack(
        [og.distances.align(W[-1], w, under="signed-permutation").aligned for w in W]
    )
    points = np.swapaxes(stack, 1, 2).reshape(-1, stack.shape[1])
    left, sizes, _ = np.linalg.svd(points - points.mean(0), full_matrices=False)
    found = node.sel(layer=PATH)
    for i, name in enumerate(("first", "second")):
        places = found[name].transpose("step", "concept").values.reshape(-1)
        expected = left[:, i] * sizes[i]
        expected *= np.sign(expected @ places)
        np.testing.assert_allclose(places, expected, atol=1e-5)
    share = sizes[:2] ** 2 / (sizes**2).sum()
    np.testing.assert_allclose(found.explained_variance.values, share, rtol=1e-5)


def test_a_refit_stands_on_the_same_axes_at_the_noise_steps_only(tree):
    node, one = tree["concepts-ica-plane"], tree["concepts-ica"]
    noisy = json.loads(tree.attrs["settings"])["noise_steps"]
    known = np.isfinite(node.refit_first).all(("layer", "concept"))
    assert node.step.values[known.values].tolist() == noisy
    # the place of a refitted concept, computed from what is stored, whichever concept it is
    step = noisy[0]
    refit = (
        one.refit_dictionary.sel(step=step, layer=PATH)
        .transpose("feature", "concept")
        .values
    )
    plane = node.sel(layer=PATH)
    centre, direction = (
        plane.centre.values,
        plane.direction.transpose("axis", "feature").values,
    )
    both = {
        tuple(np.round(direction @ (s * w - centre), 4))
        for w in refit.T
        for s in (1, -1)
    }
    drawn = plane.sel(step=step)
    for pair in zip(drawn.refit_first.values, drawn.refit_second.values, strict=True):
        assert min(np.abs(np.subtract(pair, each)).max() for each in both) < 1e-3


def test_the_page_draws_both_and_says_how_far_refitting_moves_a_concept(tree):
    attrs = tree["concepts-ica-plane"].attrs
    assert [figure["id"] for figure in json.loads(attrs["figures"])] == [
        "plane",
        "refits",
    ]
    assert any(
        "from its refit in its plane" in s for s in json.loads(attrs["statements"])
    )


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_steps_that_are_refits_of_each_other_do_not_move_further_than_refits(scale):
    rng = np.random.default_rng(0)
    # Every step and its refit: independent draws.
    W, R = rng.normal(size=(2, 2, 40, 12, 6))
    W[1], R[1] = scale * W[1], scale * R[1]  # layers have scales of their own
    dims = ("layer", "step", "feature", "concept")
    step, layers = np.arange(40), ["a", "b"]
    names = {"dictionary": (dims, W), "refit_dictionary": (dims, R)}
    of = xr.Dataset(
        names, coords={"step": step, "layer": layers, "feature": np.arange(12)}
    )
    plane = og.observables.ConceptPlane("of")
    each = []
    for i in range(2):
        reading = type(
            "Reading", (), {"data": of.isel(layer=i, drop=True), "reference_step": 39}
        )
        each.append(plane.observe(reading, None))
    data = xr.concat(each, dim=xr.Variable("layer", layers)).assign_attrs(
        reference_step=39
    )
    data = plane.summarise(data, {"of": of})
    moves, refits = concept_plane._lengths(data)
    # a tenth less, since the plane is fitted to the steps; matched to their own steps, 0.78
    assert 0.85 < np.median(refits / moves) < 1.05
    assert "80 layers and {checkpoint}s" in data.attrs["statements"]


def test_without_noise_steps_there_are_no_refits(tree):
    of = tree["concepts-ica"].to_dataset().drop_vars("refit_dictionary")
    bare = tree["concepts-ica-plane"].to_dataset()
    bare = bare.drop_vars(["refit_first", "refit_second"])
    data = og.observables.ConceptPlane("concepts-ica").summarise(
        bare, {"concepts-ica": of}
    )
    assert [figure["id"] for figure in json.loads(data.attrs["figures"])] == ["plane"]
    assert isinstance(data, xr.Dataset)


def test_a_plane_of_what_reads_no_layers_is_refused_when_the_study_is_planned():
    chosen = [og.observables.Loss(), og.observables.ConceptPlane(of="loss")]
    study = og.Study(
        og.Trajectory.from_models(developing((0, 1))),
        tiny_inputs(),
        chosen,
        device="cpu",
        noise=0,
    )
    with pytest.raises(
        ArgumentError, match=r"loss-plane needs .* of activations; 'loss' has no"
    ):
        study.plan()
