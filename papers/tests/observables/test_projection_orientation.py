"""Orientation of trajectories between layers and between runs: planted, and by chance."""

import json

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from ontogeny import geometry
from ontogeny.errors import ArgumentError, LayerMatchError
from ontogeny.observables import Orientation, orientation_across_runs

STEPS = tuple(range(12))
SIZE = 20


class Matrices(nn.Module):
    def __init__(self, values):
        super().__init__()
        for name, value in values.items():
            layer = nn.Linear(value.shape[1], value.shape[0], bias=False)
            layer.weight = nn.Parameter(torch.as_tensor(value, dtype=torch.float32))
            setattr(self, name, layer)

    def forward(self, input_ids):
        return input_ids.float()


def planted(seed, shared=None):
    """Paths in three directions: ``a`` and ``b`` own ones or `shared` ones, ``wide`` a larger."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.normal(size=(len(STEPS), 3)), axis=0)

    def path(shape, basis=None):
        basis = rng.normal(size=(3, *shape)) if basis is None else basis
        return rng.normal(size=shape) + np.einsum("tk,kij->tij", times, basis)

    values = {
        "a": path((SIZE, SIZE), shared),
        "b": path((SIZE, SIZE), shared),
        "c": path((SIZE, SIZE)),
        "wide": path((SIZE, 2 * SIZE)),
        "still": np.broadcast_to(
            rng.normal(size=(SIZE, SIZE)), (len(STEPS), SIZE, SIZE)
        ).copy(),
    }
    return values, og.Trajectory.from_models(
        {s: Matrices({n: v[i] for n, v in values.items()}) for i, s in enumerate(STEPS)}
    )


SHARED = np.random.default_rng(99).normal(size=(3, SIZE, SIZE))


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    values, trajectory = planted(0, SHARED)
    study = og.Study(
        trajectory,
        og.Inputs.from_tokens([[1, 2]]),
        [Orientation("*.weight")],
        device="cpu",
    )
    folder = tmp_path_factory.mktemp("orientation") / "s"
    tree = study.run(folder)
    assert json.loads(tree.attrs["problems"]) == []
    return values, tree["orientation"].to_dataset(), folder


def overlap(data, first, second):
    return data.sel(block=f"{first}.weight", block_=f"{second}.weight")


def test_shared_directions_are_found_and_others_are_chance(node):
    data = node[1]
    assert float(overlap(data, "a", "b").overlap) == pytest.approx(1, abs=1e-5)
    assert float(overlap(data, "a", "b").p_corrected) < 0.05
    assert float(overlap(data, "a", "c").p_corrected) > 0.05
    assert float(overlap(data, "a", "c").chance) == pytest.approx(3 / SIZE**2)
    assert any("In 1 of 3 pairs" in s for s in json.loads(data.attrs["statements"]))


def test_numbers_are_those_of_principal_angles(node):
    values, data, _ = node
    bases = [geometry.principal_basis(values[name], 3) for name in ("b", "c")]
    expected = np.mean(np.cos(geometry.principal_angles(*bases)) ** 2)
    found = overlap(data, "b", "c").overlap
    assert float(found) == pytest.approx(expected, rel=1e-3)
    assert float(found) == float(overlap(data, "c", "b").overlap)


def test_other_sizes_and_matrices_at_rest_are_not_compared(node):
    data = node[1]
    assert np.isnan(data.overlap.sel(block="wide.weight")).all()
    assert np.isnan(data.overlap.sel(block="still.weight")).all()
    assert np.isnan(np.diag(data.overlap)).all()
    assert int(data.directions.sel(block="still.weight")) == 0
    assert "basis" not in data and "coordinate" not in data.dims


def test_the_report_draws_it(node, tmp_path):
    og.open_study(node[2]).report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "cannot be drawn" not in text and "Overlap of principal directions" in text


def test_runs_with_shared_directions_are_found_and_seeds_are_chance():
    runs = {
        "one": planted(1, SHARED)[1],
        "two": planted(2, SHARED)[1],
        "own": planted(3)[1],
    }
    found = orientation_across_runs(runs, ["a.weight", "c.weight"])
    a = found.sel(block="a.weight")
    assert float(a.overlap.sel(run="one", run_="two")) == pytest.approx(1, abs=1e-5)
    assert float(a.p_corrected.sel(run="one", run_="two")) < 0.05
    assert float(a.angle.sel(run="one", run_="two").max()) < 0.01
    assert float(a.p_corrected.sel(run="one", run_="own")) > 0.05
    assert (
        found.p_corrected.sel(block="c.weight").stack(p=("run", "run_")).dropna("p")
        > 0.05
    ).all()
    assert np.isnan(np.diag(a.overlap)).all()


def test_a_trajectory_lies_as_it_lies():
    run = planted(1)[1]
    found = orientation_across_runs({"x": run, "y": run}, "c.weight", k=2)
    assert float(found.overlap.sel(run="x", run_="y").item()) == pytest.approx(
        1, abs=1e-6
    )


def test_runs_that_cannot_be_compared_are_refused():
    run = planted(0)[1]
    with pytest.raises(ArgumentError, match="at least two"):
        orientation_across_runs({"one": run}, "a.weight")
    with pytest.raises(LayerMatchError):
        orientation_across_runs({"one": run, "two": run}, "nothing")
    other = og.Trajectory.from_models(
        {s: Matrices({"a": np.eye(5)}) for s in (0, 1, 2)}
    )
    with pytest.raises(ArgumentError, match="another number of entries"):
        orientation_across_runs({"one": run, "two": other}, "a.weight")
    for bad in (0, 2.0, True):
        with pytest.raises(ArgumentError, match="k must be"):
            Orientation("a.weight", k=bad)
        with pytest.raises(ArgumentError, match="draws must be"):
            orientation_across_runs({"one": run, "two": run}, "a.weight", n_draws=bad)
    single = og.Trajectory.from_models({0: Matrices({"a": np.eye(5)})})
    with pytest.raises(ArgumentError, match="at least 2 steps; two has 1"):
        orientation_across_runs({"one": run, "two": single}, "a.weight")


def test_a_single_step_has_no_direction_and_says_so(tmp_path):
    run = og.Trajectory.from_models({0: Matrices({"a": np.eye(5), "b": np.eye(5)})})
    study = og.Study(
        run, og.Inputs.from_tokens([[1, 2]]), [Orientation("*.weight")], device="cpu"
    )
    problems = " ".join(json.loads(study.run(tmp_path / "s").attrs["problems"]))
    assert "the directions of a path need at least 2 snapshots; there is 1" in problems
