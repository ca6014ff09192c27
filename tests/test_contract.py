"""The names, arguments and shapes that other people rely on, used as the contract writes them."""

import inspect

import numpy as np
import pytest
import torch
import xarray as xr

import ontogeny as og
from helpers.study_examples import LAYERS, developing, tiny_inputs
from ontogeny.errors import ArgumentError

_rng = np.random.default_rng(0)
A, Y = _rng.normal(size=(60, 12)), np.arange(60) % 2
W, V, U = (
    _rng.normal(size=(12, 4)),
    _rng.normal(size=(12, 4)),
    np.abs(_rng.normal(size=(60, 4))),
)
DISTANCES = (
    "frobenius",
    "spectral",
    "nuclear",
    "entrywise",
    "procrustes",
    "schatten",
    "matrix-log",
    "grassmann",
    "bures",
)
EXTRACTORS = (
    "nmf",
    "convex-nmf",
    "semi-nmf",
    "svd",
    "pca",
    "sparse-pca",
    "ica",
    "kmeans",
    "dictionary",
    "sae",
)


def takes(function, *names):
    """Say which of the promised argument names a function lacks."""
    return [
        name for name in names if name not in inspect.signature(function).parameters
    ]


def test_a_trajectory_in_memory_is_used_as_promised(tmp_path):
    models = developing((0, 2, 4))
    traj = og.Trajectory.from_models(models, tokenizer=None)
    assert traj.steps.tolist() == [0, 2, 4] and np.issubdtype(
        traj.steps.dtype, np.integer
    )
    assert traj.select(count=2, spacing="log").steps.tolist() == [0, 4]
    fresh = traj[4].model(device="cpu")
    assert not fresh.training and fresh is not traj[4].model(device="cpu")
    assert len(traj.audit()) == 0
    assert not takes(og.Trajectory.from_hub, "repo", "revisions")
    rec = og.Recorder(tmp_path / "run", every="log")
    for step, model in models.items():
        rec(step, model)
    assert og.Trajectory.from_folder(tmp_path / "run").steps.tolist() == [0, 2, 4]
    assert not takes(og.RecorderCallback, "folder", "every")


def test_a_model_is_read_as_promised():
    model, inputs = developing((4,))[4], tiny_inputs()
    assert not takes(og.Inputs.from_texts, "texts", "tokenizer", "max_length")
    assert (
        inputs.ids.shape == inputs.mask.shape
        and inputs.fingerprint
        and hasattr(inputs, "spans")
    )
    plain = {"input_ids": inputs.ids, "attention_mask": inputs.mask.astype(int)}
    for given in (inputs, plain):
        acts = og.capture.activations(
            model, given, layers=LAYERS, tokens="all", max_tokens=50
        )
        assert set(acts) and {a.shape[0] for a in acts.values()} == {50}
    entropy = og.capture.attention_entropy(model, inputs)
    assert isinstance(entropy, xr.DataArray) and entropy.dims == ("layer", "head")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_concepts_are_found_as_promised():
    assert og.concepts.names() == EXTRACTORS
    for name in EXTRACTORS:
        options = {"nonnegative": "relu"} if name == "nmf" else {}
        est = og.concepts.make(name, n_concepts=4, random_state=0, **options)
        codes = est.fit_transform(A)
        assert codes.shape == (60, 4) and est.components_.T.shape == (12, 4), name
        assert isinstance(est.reconstruction_error_, float) and est.n_iter_ >= 1
    for name in ("sparse-pca", "dictionary", "sae"):
        assert og.concepts.make(name, n_concepts=4, alpha=0.1).alpha == 0.1
    with pytest.raises(ArgumentError, match="nonnegative="):
        og.concepts.make("nmf", n_concepts=4).fit(A)
    assert og.concepts.CAV(l2=0.3).fit(A, Y).direction_.shape == (12,)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_distances_are_taken_as_promised(dtype):
    assert og.distances.names() == DISTANCES
    first, second, codes = (torch.tensor(x, dtype=dtype) for x in (W, V, U))
    assert isinstance(og.distances.distance("bures", first, second, eps=1e-6), float)
    assert list(og.distances.compare(first, second)) == [
        *DISTANCES,
        "columnwise",
        "optimal",
        "internal",
    ]
    assert "weighted" in og.distances.compare(first, second, U=codes)
    stack = torch.stack([first, second, first])
    assert og.distances.pairwise(stack).dims == ("distance", "step", "step_")
    for name in ("columnwise", "optimal", "internal"):
        assert 0 <= og.distances.correlation(name, first, second) <= 1
    assert 0 <= og.distances.correlation("weighted", first, second, U=codes) <= 1
    for under in ("permutation", "sign", "scaling", "rotation", "invertible"):
        aligned, transform = og.distances.align(first, second, under=under)
        assert (aligned.dtype, aligned.shape, transform.shape) == (
            dtype,
            first.shape,
            (4, 4),
        )


def test_geometry_is_measured_as_promised():
    rng = np.random.default_rng(1)
    snapshots = np.cumsum(rng.normal(size=(12, 50)), axis=0)
    found = og.geometry.two_nn(A)
    assert found.value > 0 and found.stderr > 0 and found.null > 0 and found.method
    assert og.geometry.variance_rank(snapshots, variance=0.9) >= 1
    for rank in ("effective_rank", "stable_rank", "participation_ratio"):
        assert isinstance(getattr(og.geometry, rank)(A), float)
    assert og.geometry.principal_angles(W, V).shape == (4,)
    null = og.geometry.random_walk_null(snapshots, n_draws=100, random_state=0)
    assert null.draws.shape == (100,)


def test_dynamics_are_described_as_promised():
    steps = np.arange(1, 41) * 10
    values = np.exp(-steps / 100) + 0.01 * np.random.default_rng(1).normal(size=40)
    found = og.dynamics.regimes(steps, values)
    assert all(
        hasattr(found, name) for name in ("boundary", "interval", "smooth", "noisy")
    )
    fit = og.dynamics.fit_exponential(steps, values)
    assert fit.amplitude > 0 > fit.rate and abs(fit.offset) < 0.1 and fit.r2 > 0.9
    assert og.dynamics.rolling_mean(values, half_window=2).shape == (40,)
    signals = og.dynamics.compare_signals(values, values[::-1])
    for name in (
        "pearson",
        "pearson_p",
        "spearman",
        "spearman_p",
        "dtw",
        "mutual_information",
    ):
        assert isinstance(getattr(signals, name), float)
    coded = og.dynamics.encode(A[:40], A[40:], U[:40], U[40:], norm="fro")
    for name in ("mse", "cross_entropy", "kl", "correlation"):
        assert isinstance(getattr(coded, name), float)
    carried = og.dynamics.transform(W, U, V, U)
    assert (
        carried.matrix.shape == (4, 4) and carried.error >= 0 and carried.condition >= 1
    )
    assert isinstance(carried.log_det, float)


def test_semantics_are_built_as_promised():
    rng = np.random.default_rng(2)
    tokens = rng.integers(0, 50, 4000)
    support = og.semantics.support_matrix(
        tokens, vocab_size=40, n_contexts=500, lengths=(2, 6)
    )
    assert support.S.shape == (len(support.words), len(support.contexts))
    basis = og.semantics.svd_concepts(support, k=10)
    assert (
        basis.U.shape == (40, 10)
        and basis.sigma.shape == (10,)
        and basis.V.shape == (500, 10)
    )
    orthant = og.semantics.orthants(basis, dims=5)[0]
    assert len(orthant.signature) == 5 and len(orthant.typicality) == len(orthant.words)
    assert orthant.contexts is not None
    assert og.semantics.closed_form(basis.sigma, 8.0, [0.0, 1.0]).shape == (2, 10)
    step = og.semantics.step_imbalance(4, 3)
    run = og.semantics.train_ufm(
        step.S_centred, 4, loss="square", records=5, step_size=0.1
    )
    assert isinstance(run, xr.Dataset)


def test_updates_are_measured_as_promised():
    model = torch.nn.Linear(3, 2)
    batches = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0))
    found = og.updates.commutator(
        model, lambda m, x: m(x).square().mean(), *batches, 1e-2
    )
    assert set(found.delta) == {"weight", "bias"}
    assert all(isinstance(v, float) for v in (found.norm, found.defect, found.cosine))


def test_a_study_runs_and_is_opened_as_promised(tmp_path):
    traj = og.Trajectory.from_models(developing((0, 2, 4)))
    chosen = [
        og.observables.Concepts("pca", n_concepts=3, layers=LAYERS, max_tokens=100),
        og.observables.WeightRank("**.q_proj.weight", n_draws=4),
    ]
    study = og.Study(traj, tiny_inputs(), observables=chosen, device="cpu", noise=0)
    plan = study.plan()
    assert plan.to_do > 0 and plan.done == 0 and plan.forwards > 0
    result = study.run(tmp_path / "s", executor=None)
    assert isinstance(result.tree, xr.DataTree) and set(result) == {
        o.name for o in chosen
    }
    assert result["concepts-pca"].attrs["role"] and "reference_step" in result.attrs
    assert len(result.problems()) == 0
    page = og.open_study(tmp_path / "s").report(tmp_path / "report.html")
    assert page.stat().st_size > 1000
    assert study.plan(tmp_path / "s").to_do == 0


def test_results_of_several_runs_are_compared_by_their_labels_and_drawn(tmp_path):
    runs = {"one": (0, 1, 2, 4, 8, 16), "other": (0, 1, 2, 4, 8, 32)}
    for name, steps in runs.items():
        chosen = og.observables.Concepts(
            "pca", n_concepts=3, layers=LAYERS, max_tokens=100
        )
        trajectory = og.Trajectory.from_models(developing(steps))
        og.Study(trajectory, tiny_inputs(), [chosen], device="cpu", noise=0).run(
            tmp_path / name
        )
    trees = [
        xr.open_datatree(tmp_path / name / "result.zarr", engine="zarr")
        for name in runs
    ]
    nodes = [tree["concepts-pca"].to_dataset().drop_vars("status") for tree in trees]
    both = xr.concat(
        nodes,
        dim=xr.Variable("run", list(runs)),
        join="outer",
        combine_attrs="drop_conflicts",
        data_vars="all",
    )
    assert both.half_step.dims == ("run", "row") and both.step.values.tolist()[-2:] == [
        16,
        32,
    ]
    one = both.relative_distance.sel(run="one")
    assert one.sel(step=32).isnull().all() and one.sel(step=8).notnull().all()
    tree = xr.DataTree.from_dict({"concepts-pca": both.drop_dims("row")})
    tree.attrs["title"] = "Two runs"
    page = og.report.write(tree, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Not drawn." not in page and '"other"' in page
