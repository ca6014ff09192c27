"""Concepts as an observable: every extractor, both starts, floors and chance."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import xarray as xr

import ontogeny as og
from helpers.study_examples import LAYERS, Counting, developing, record, tiny_inputs
from ontogeny.dynamics.reasons import Reason
from ontogeny.errors import ArgumentError
from ontogeny.features.concepts.noise import Fitted, beside_refits, cold_starts
from ontogeny.needs import Activations
from ontogeny.needs.derived import Reference
from ontogeny.observables.rotations import Rotations
from ontogeny.summary import Units

STEPS = (0, 1, 2, 4, 8, 16)
OPTIONS = {"nmf": {"nonnegative": "split"}, "sae": {"epochs": 5}}


@pytest.fixture(scope="module")
def trajectory():
    return og.Trajectory.from_models(developing(STEPS))


def _run(trajectory, folder, *chosen, noise=0):
    tree = og.Study(trajectory, tiny_inputs(), chosen, device="cpu", noise=noise).run(
        folder
    )
    assert tree.attrs["problems"] == "[]"
    return tree


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_extractor_runs_as_an_observable(trajectory, tmp_path):
    chosen = [
        og.observables.Concepts(
            name,
            n_concepts=3,
            layers="model.layers.1.mlp",
            max_tokens=120,
            options=OPTIONS.get(name, {}),
        )
        for name in og.concepts.names()
    ]
    assert len(chosen) == 10
    tree = _run(trajectory.select(steps=[4, 16]), tmp_path / "s", *chosen, noise=1)
    for observable in chosen:
        node = tree[observable.name]
        assert "failed" not in node.attrs, (observable.name, node.attrs.get("failed"))
        assert (
            node.relative_distance.sel(step=16).max() < 0.05
        ) or observable.extractor == "sae"
        assert np.isfinite(node.reconstruction_error).all()


def test_dictionary_and_distance_equal_a_fit_by_hand(trajectory, tmp_path):
    chosen = og.observables.Concepts("pca", n_concepts=3, layers=LAYERS)
    tree = _run(trajectory.select(steps=[4, 16]), tmp_path / "s", chosen)
    fits = {}
    for step in (4, 16):
        acts = og.capture.activations(trajectory[step].model(), tiny_inputs(), LAYERS)
        estimator = og.concepts.make("pca", n_concepts=3, random_state=0)
        fits[step] = estimator.fit(acts["model.layers.0.mlp"]).components_.T
    node = tree["concepts-pca"].sel(layer="model.layers.0.mlp", step=4)
    np.testing.assert_allclose(
        np.abs(node.dictionary.values), np.abs(fits[4].numpy()), rtol=1e-3, atol=1e-5
    )
    expected = og.distances.distance("frobenius", fits[16], fits[4])
    found = float(
        node.distance_to_reference.sel(distance="frobenius", alignment="as returned")
    )
    assert found == pytest.approx(expected, rel=1e-4)


def test_matching_never_increases_a_distance_and_chance_lies_above_refits(
    trajectory, tmp_path
):
    chosen = og.observables.Concepts("ica", n_concepts=3, layers=LAYERS)
    few = trajectory.select(steps=[0, 4, 16])
    node = _run(few, tmp_path / "s", chosen, noise=3)["concepts-ica"].to_dataset()
    frobenius = node.relative_distance.sel(distance="frobenius")
    gain = frobenius.sel(alignment="as returned") - frobenius.sel(alignment="matched")
    assert float(gain.min()) > -1e-6
    matched = node.sel(distance="procrustes", alignment="matched")
    assert float(matched.relative_distance_chance.mean()) > float(
        matched.relative_distance_refit.mean()
    )
    # Three resamples, three other seeds, another precision.
    assert node.sizes["refit"] == 7


def test_the_last_of_its_distances_is_judged():
    for distances in (("frobenius", "procrustes"), ("frobenius",)):
        svd = og.observables.Concepts(
            "svd", n_concepts=3, layers=LAYERS, distances=distances
        )
        assert svd.quantities[0].at["distance"] == distances[-1]


def test_starting_from_the_reference_is_another_study(trajectory, tmp_path):
    seeded, warm = (
        og.observables.Concepts(
            "ica", n_concepts=3, layers=LAYERS, init=init, label=init
        )
        for init in ("seeded", "reference")
    )
    tree = _run(trajectory.select(steps=[0, 4, 16]), tmp_path / "s", seeded, warm)
    warm_fits, cold_fits = tree["reference"].iterations, tree["seeded"].iterations
    assert (
        warm_fits.sel(step=16) <= cold_fits.sel(step=16)
    ).all()  # it starts at its solution
    assert not np.array_equal(warm_fits, cold_fits)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"extractor": "icaa"}, "Did you mean 'ica'"),
        (
            {"extractor": "ica", "distances": ("procustes",)},
            "Did you mean 'procrustes'",
        ),
        ({"extractor": "ica", "distances": ()}, "distances must name at least 1"),
        (
            {"extractor": "ica", "distances": ("bures",) * 2},
            "must not name anything twice",
        ),
        ({"extractor": "ica", "init": "chained"}, "init must be one of"),
        ({"extractor": "ica", "options": {"funn": "exp"}}, "Did you mean 'fun'"),
        ({"extractor": "ica", "tokens": "some"}, "tokens must be one of"),
        ({"extractor": "ica", "max_tokens": 1}, "max_tokens"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        og.observables.Concepts(**arguments)


def test_a_chain_starts_each_fit_from_its_neighbour(trajectory, tmp_path):
    chained, seeded = (
        og.observables.Concepts(
            "ica", n_concepts=3, layers=LAYERS, init=init, label=init
        )
        for init in ("chain", "seeded")
    )
    tree = _run(trajectory, tmp_path / "s", chained, seeded)
    node = tree["chain"].to_dataset().sel(layer="model.layers.1.mlp")
    last = tree["seeded"].dictionary.sel(layer="model.layers.1.mlp", step=16)
    # The reference is cold.
    np.testing.assert_array_equal(node.dictionary.sel(step=16), last)
    start = None
    for step in (16, 8, 4):
        acts = og.capture.activations(trajectory[step].model(), tiny_inputs(), LAYERS)
        estimator = og.concepts.make("ica", n_concepts=3, random_state=0)
        estimator.fit(acts["model.layers.1.mlp"], init_dictionary=start)
        start = estimator.components_.T
        found = node.dictionary.sel(step=step).values
        np.testing.assert_allclose(found, start.numpy(), rtol=1e-4, atol=1e-6)
    progress = Counting()
    study = og.Study(
        trajectory, tiny_inputs(), [chained, seeded], device="cpu", noise=0
    )
    again = study.run(tmp_path / "s", progress=progress)
    assert progress.planned == 0
    np.testing.assert_array_equal(again["chain"].dictionary, tree["chain"].dictionary)


def test_another_checkpoint_in_the_chain_makes_the_chain_anew(tmp_path):
    observable = og.observables.Concepts(
        "ica", n_concepts=3, layers=LAYERS, init="chain"
    )
    models = developing((0, 4, 16))
    _run(og.Trajectory.from_models(models), tmp_path / "s", observable)
    models[4] = developing((0, 4, 8, 16))[4]
    progress = Counting()
    study = og.Study(
        og.Trajectory.from_models(models),
        tiny_inputs(),
        [observable],
        device="cpu",
        noise=0,
    )
    study.run(tmp_path / "s", progress=progress)
    assert {"states", "step 0", "step 4"} <= set(progress.labels)


def test_a_chain_from_the_middle_goes_both_ways(trajectory, tmp_path):
    observable = og.observables.Concepts(
        "ica", n_concepts=3, layers=LAYERS, init="chain"
    )
    few = trajectory.select(steps=[0, 2, 4, 8, 16])
    study = og.Study(
        few, tiny_inputs(), [observable], device="cpu", reference=4, noise=0
    )
    tree = study.run(tmp_path / "s")
    assert tree.attrs["problems"] == "[]"
    warm = tree["concepts-ica"].iterations
    assert int(warm.notnull().sum()) == warm.size


def test_noise_floors_can_be_switched_off(trajectory, tmp_path):
    concepts = og.observables.Concepts("pca", n_concepts=3, layers=LAYERS)
    pairs = og.observables.ConceptDistances("concepts-pca")
    study = og.Study(
        trajectory, tiny_inputs(), [concepts, pairs], device="cpu", noise=0
    )
    tree = study.run(tmp_path / "s")
    node = tree["concepts-pca"]
    assert "failed" not in node.attrs and "relative_distance_refit" not in node
    assert "bands" in node.attrs["figures"] and "refitting" not in node.attrs["figures"]
    assert {*node.reason.values} == {Reason.UNMEASURED}
    assert not node.changed.any() and not node.noise_known.any()
    assert "failed" not in tree["concepts-pca-distances"].attrs


def test_refits_are_cold_named_and_hold_another_precision(trajectory, tmp_path):
    observable = og.observables.Concepts(
        "ica", n_concepts=3, layers=LAYERS, init="reference"
    )
    few = trajectory.select(steps=[4, 16])
    node = _run(few, tmp_path / "s", observable, noise=2)["concepts-ica"].to_dataset()
    names = [
        *(f"texts {i}" for i in (1, 2, 3)),
        *(f"seed {i}" for i in (1, 2, 3)),
        "float64",
    ]
    assert node.refit.values.tolist() == names
    matched = node.relative_distance_refit.sel(
        alignment="matched", distance="procrustes"
    )
    known = matched.dropna("step", how="all")
    assert (
        0
        < float(known.sel(refit="float64").max())
        < float(known.sel(refit="texts 1").max())
    )


def test_stored_code_coordinates_keep_every_norm_of_the_codes(trajectory, tmp_path):
    observable = og.observables.Concepts("ica", n_concepts=3, layers=LAYERS)
    node = _run(trajectory.select(steps=[4, 16]), tmp_path / "s", observable)[
        "concepts-ica"
    ]
    codes = {}
    for step in (4, 16):
        acts = og.capture.activations(trajectory[step].model(), tiny_inputs(), LAYERS)
        estimator = og.concepts.make("ica", n_concepts=3, random_state=0)
        codes[step] = estimator.fit_transform(acts["model.layers.0.mlp"]).numpy()
    table = node.code_coordinates.sel(layer="model.layers.0.mlp", step=4)
    here, there = table.sel(side="here").values, table.sel(side="reference").values
    X = np.random.default_rng(0).normal(size=(3, 3))
    found = np.linalg.norm(here - there @ X)
    assert found == pytest.approx(np.linalg.norm(codes[4] - codes[16] @ X), rel=1e-4)


@pytest.mark.parametrize("broken", [0, 1, 2])
def test_one_layer_that_fails_leaves_the_labelled_results_of_the_others(broken):
    def one(path, value):
        if path == broken:
            raise ValueError("no")
        return {
            "d": xr.DataArray(
                [1.0, 2.0], dims="distance", coords={"distance": ["a", "b"]}
            )
        }

    found = og.observables.by_layer(dict.fromkeys(range(3)), one)
    assert int(found.d.notnull().sum()) == 4
    assert [str(s).startswith("failed") for s in found.status.values].index(
        True
    ) == broken


@pytest.mark.parametrize("init", ["chain", "reference"])
def test_a_run_of_one_checkpoint_has_its_reference_alone(trajectory, tmp_path, init):
    observable = og.observables.Concepts("pca", n_concepts=3, layers=LAYERS, init=init)
    node = _run(trajectory.select(steps=[16]), tmp_path / "s", observable)[
        "concepts-pca"
    ]
    assert float(node.relative_distance.max()) < 1e-6


def test_a_checkpoint_with_nan_costs_a_chain_that_step_alone(tmp_path):
    models = developing(STEPS)
    with torch.no_grad():
        models[4].model.layers[0].mlp.down_proj.weight[0, 0] = float("nan")
    observable = og.observables.Concepts(
        "pca", n_concepts=3, layers=LAYERS, init="chain"
    )
    study = og.Study(
        og.Trajectory.from_models(models),
        tiny_inputs(),
        [observable],
        device="cpu",
        noise=0,
    )
    node = study.run(tmp_path / "s")["concepts-pca"]
    known = node.reconstruction_error.notnull().all("layer")
    assert node.step[~known].values.tolist() == [4]


def test_layers_of_different_widths_stand_side_by_side(trajectory, tmp_path):
    layers = (LAYERS, "model.layers.1.mlp.up_proj")
    chosen = [
        og.observables.Concepts("pca", n_concepts=3, layers=layers, init="chain"),
        og.observables.ConceptDistances("concepts-pca"),
        og.observables.TransformDynamics("concepts-pca"),
    ]
    tree = _run(trajectory.select(steps=[0, 4, 8, 16]), tmp_path / "s", *chosen)
    widths = (
        tree["concepts-pca"].dictionary.isel(concept=0, step=0).notnull().sum("feature")
    )
    assert widths.values.tolist() == [16, 16, 24]
    assert tree["concepts-pca-transforms"].transform.notnull().all()
    assert tree["concepts-pca-distances"].between.notnull().all()


def test_the_reference_step_is_its_own_reference_however_the_others_start(
    trajectory, tmp_path
):
    # Far from converged: starting at its solution would go on from there.
    options = {"max_iter": 3}
    observable = og.observables.Concepts(
        "semi-nmf", n_concepts=3, layers=LAYERS, init="reference", options=options
    )
    node = _run(trajectory.select(steps=[4, 16]), tmp_path / "s", observable)[
        "concepts-semi-nmf"
    ]
    assert float(node.relative_distance.sel(step=16).max()) < 1e-6


def test_activations_of_zeros_are_named(tmp_path):
    models = developing(STEPS)
    for step in (4, 16):  # a step and the reference
        with torch.no_grad():
            models[step].model.layers[int(step == 16)].mlp.down_proj.weight.zero_()
    observable = og.observables.Concepts("pca", n_concepts=3, layers=LAYERS)
    study = og.Study(
        og.Trajectory.from_models(models),
        tiny_inputs(),
        [observable],
        device="cpu",
        noise=0,
    )
    status = study.run(tmp_path / "s")["concepts-pca"].status
    assert "activations are 0" in status.sel(step=4, layer="model.layers.0.mlp").item()
    assert "activations are 0" in status.sel(step=2, layer="model.layers.1.mlp").item()
    assert status.sel(step=2, layer="model.layers.0.mlp").item() == "done"


def test_every_concept_curve_stands_over_what_refitting_gives(trajectory, tmp_path):
    observable = og.observables.Concepts("ica", n_concepts=3, layers=LAYERS)
    few = trajectory.select(steps=[0, 16])
    node = _run(few, tmp_path / "s", observable, noise=2)["concepts-ica"].to_dataset()
    figures = json.loads(node.attrs["figures"])
    assert {f["kind"] for f in figures} == {"curves"}
    assert {"frobenius", "procrustes", "reconstruction-error"} <= {
        f["id"] for f in figures
    }
    for figure in (f for f in figures if f["id"] != "found-again"):  # refits themselves
        assert "refitting alone" in [band["label"] for band in figure["bands"]], figure[
            "name"
        ]
        for band in figure["bands"]:
            assert (node[band["lower"]] <= node[band["upper"]]).all()
    # A step's absolute distances are the relative ones in the norms of the fit and of the refit.
    first = node.isel(step=0).sel(distance="procrustes", alignment="matched")
    norms = [
        (W**2).sum(("feature", "concept"))
        for W in (first.dictionary, first.refit_dictionary)
    ]
    relative = first.relative_distance_refit.sel(refit="seed 1")
    absolute = first.distance_to_reference_refit.sel(refit="seed 1")
    np.testing.assert_allclose(absolute, relative * np.sqrt(sum(norms)), rtol=1e-4)
    errors = first.reconstruction_error_refit
    np.testing.assert_array_equal(
        first.reconstruction_error_refit_low, errors.min("refit")
    )
    assert (np.abs(errors - first.reconstruction_error) < 0.2).all()


def test_a_checkpoint_that_went_away_costs_a_chain_that_step_alone(tmp_path):
    run = record(developing(STEPS), tmp_path / "run")
    weights = tmp_path / "run" / "checkpoint-4" / "model.safetensors"
    whole = weights.read_bytes()
    weights.unlink()  # after the trajectory was listed, as a failed download would
    observable = og.observables.Concepts(
        "pca", n_concepts=3, layers=LAYERS, init="chain"
    )
    node = og.Study(run, tiny_inputs(), [observable], device="cpu", noise=0).run(
        tmp_path / "s"
    )
    known = node["concepts-pca"].reconstruction_error.notnull().all("layer")
    assert node["concepts-pca"].step[~known].values.tolist() == [4]

    # It came back: the chain goes through it, from it on anew.
    weights.write_bytes(whole)
    progress = Counting()
    again = og.Trajectory.from_folder(tmp_path / "run")
    study = og.Study(again, tiny_inputs(), [observable], device="cpu", noise=0)
    node = study.run(tmp_path / "s", progress=progress)
    assert node["concepts-pca"].reconstruction_error.notnull().all()
    assert {"states", "step 2", "step 4"} <= set(progress.labels)


def test_correlations_equal_those_of_the_stored_dictionaries_and_codes(
    trajectory, tmp_path
):
    names = ("columnwise", "optimal", "internal", "weighted")
    chosen = og.observables.Concepts(
        "ica",
        n_concepts=3,
        layers=LAYERS,
        max_tokens=120,
        correlations=names,
        keep_codes=True,
    )
    node = _run(trajectory.select(steps=[0, 4, 16]), tmp_path / "s", chosen)[
        "concepts-ica"
    ]
    one = node.sel(layer="model.layers.1.mlp")
    W, U = one.dictionary.astype(float), one.codes.astype(float)
    assert dict(U.sizes) == {"step": 3, "token": 120, "concept": 3}
    for step in (0, 4):
        here, there = W.sel(step=step).values, W.sel(step=16).values
        expected = {
            "columnwise": og.distances.correlation("columnwise", there, here),
            "optimal": og.distances.correlation("optimal", there, here),
            "internal": og.distances.correlation("internal", here),
            "weighted": og.distances.correlation(
                "weighted", there, here, U=U.sel(step=16).values
            ),
        }
        raw = one.correlation_to_reference.sel(step=step, alignment="as returned")
        internal = float(one.internal_correlation.sel(step=step))
        assert internal == pytest.approx(expected.pop("internal"), abs=1e-5)
        for name in expected:
            assert float(raw.sel(correlation=name)) == pytest.approx(
                expected[name], abs=1e-5
            ), name
    at_reference = one.correlation_to_reference.sel(step=16)
    np.testing.assert_allclose(at_reference.values, 1, atol=1e-5)
    # order does not move the optimal one, and what it was weighted by is what was stored
    optimal = node.correlation_to_reference.sel(correlation="optimal")
    np.testing.assert_allclose(
        optimal.sel(alignment="matched").values,
        optimal.sel(alignment="as returned").values,
        atol=1e-5,
    )


@pytest.mark.slow
def test_correlations_stand_over_refits_and_chance(trajectory, tmp_path):
    names = ("optimal", "internal")
    plain = og.observables.Concepts("ica", n_concepts=3, layers=LAYERS, max_tokens=120)
    more = og.observables.Concepts(
        "ica",
        n_concepts=3,
        layers=LAYERS,
        max_tokens=120,
        correlations=names,
        label="more",
    )
    tree = _run(trajectory.select(steps=[0, 16]), tmp_path / "s", plain, more, noise=1)
    for name in [
        f"relative_distance{end}" for end in ("", "_refit", "_chance", "_replicates")
    ]:
        xr.testing.assert_equal(tree["more"][name], tree["concepts-ica"][name])
    figures = {
        figure["id"]: figure for figure in json.loads(tree["more"].attrs["figures"])
    }
    bands = {band["label"] for band in figures["optimal"]["bands"]}
    assert bands == {"refitting alone", "chance"}
    assert {b["label"] for b in figures["internal-correlation"]["bands"]} == {
        "refitting alone"
    }
    optimal = tree["more"].sel(correlation="optimal", alignment="as returned")
    assert (
        optimal.correlation_to_reference_chance_high
        < optimal.correlation_to_reference_refit_high
    ).all()
    assert not {"correlation_to_reference", "codes"} & set(
        tree["concepts-ica"].data_vars
    )
    og.open_study(tmp_path / "s").report(tmp_path / "page.html")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"correlations": ("optimal", "optimal")}, "must not name anything twice"),
        ({"correlations": ("optimum",)}, "optimal"),
        ({"correlations": ("internal",), "n_concepts": 1}, "two concepts"),
    ],
)
def test_bad_correlations_are_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        og.observables.Concepts("pca", **arguments)


def test_refits_resample_whole_texts_and_not_their_tokens():
    """With tokens of a text that agree, resampling tokens would halve the spread (defect 3)."""
    units = Units(np.repeat(np.arange(30), 10))
    A = torch.arange(300.0)[:, None]
    names, drawn = [], []
    for name, rows, _ in cold_starts(A, 0, seeded=False, units=units):
        names.append(name)
        drawn.append(rows[:, 0].numpy().astype(int))
    assert names == ["texts 1", "texts 2", "texts 3", "float64"]
    for rows in drawn[:3]:
        assert len(rows) == 300 and len(np.unique(rows)) < 250
        times = np.bincount(rows, minlength=300).reshape(30, 10)
        assert (
            times == times[:, :1]
        ).all()  # a text with all of its tokens, or none of them


def test_a_single_text_leaves_the_noise_unknown(trajectory, tmp_path):
    ids = np.arange(4, 18)[None]
    one = og.Inputs.from_tokens(np.tile(ids, 3).reshape(1, -1), mask_token_id=1)
    observable = og.observables.Concepts("ica", n_concepts=2, layers=LAYERS)
    node = og.Study(trajectory, one, [observable], device="cpu").run(tmp_path / "s")[
        "concepts-ica"
    ]
    assert node.refit.values.tolist() == ["seed 1", "seed 2", "seed 3", "float64"]
    assert "relative_distance_refit" in node and "relative_distance_stderr" not in node
    assert not node.changed.any() and {*node.reason.values} == {Reason.UNMEASURED}


def test_chance_takes_tokens_out_of_order_where_the_rotation_is_removed():
    """Whatever the order of the alignments: it was chosen by position (defect 11)."""
    rng = np.random.default_rng(0)
    A, B = (torch.from_numpy(rng.normal(size=(50, 4))) for _ in range(2))
    W, V = A[:3].T, B[:3].T
    labels = ["rotation removed", "matched", "as returned"]

    def compare(X, other, turn):
        table = [float(turn is not None)] * 3
        return xr.Dataset(
            {"d": ("alignment", table), "own": 1.0}, coords={"alignment": labels}
        )

    here, reference = Fitted(W, A @ W), Fitted(V, B @ V)
    alone = SimpleNamespace(
        step=0, reference_step=1, shared=lambda need, key, make: make()
    )
    rotations = Rotations(alone, Reference(Activations("mlp")), "mlp", A, B)
    found = beside_refits(here, reference, {"texts 1": W}, compare, rotations, 0)
    assert (found["d"].nulls["chance"] == [1, 0, 0]).all()
    # What no alignment changes has no chance level.
    assert set(found["own"].nulls) == {"refit"}
