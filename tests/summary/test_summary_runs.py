"""Runs and controls as one more dimension of the same quantities."""

import json

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers.study_examples import developing, jittering, tiny_inputs
from ontogeny.figures import Section
from ontogeny.observables import AttentionEntropy, Loss
from ontogeny.quantities import Quantity
from ontogeny.summary import along_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same two observables of a run that develops and of one that only jitters."""
    found = {}
    for name, models in (("real", developing()), ("control", jittering())):
        study = og.Study(
            og.Trajectory.from_models(models),
            tiny_inputs(40),
            [Loss(), AttentionEntropy()],
            device="cpu",
        )
        found[name] = study.run(tmp_path_factory.mktemp(name) / "study")
    return found


@pytest.mark.parametrize("observable", [Loss(), AttentionEntropy()], ids=lambda o: o.name)
def test_a_control_stands_beside_every_curve_without_a_line_in_the_observable(runs, observable):
    nodes = {name: tree[observable.name].to_dataset() for name, tree in runs.items()}
    data = along_runs(nodes, observable.quantities, observable.section)
    assert data.run.values.tolist() == ["real", "control"]
    for name, node in nodes.items():
        for quantity in observable.quantities:
            for end in ("", "_low", "_high", "_floor"):
                if quantity.name + end in node:
                    own = data[quantity.name + end].sel(run=name)
                    own = own.transpose(*node[quantity.name + end].dims)
                    np.testing.assert_allclose(own, node[quantity.name + end], rtol=1e-12)
    assert data.sizes["row"] == 2 * nodes["real"].sizes["row"]
    figures = json.loads(data.attrs["figures"])
    assert figures and all(figure["series"] == "run" for figure in figures)


def test_each_run_is_judged_by_its_own_noise():
    rng, steps = np.random.default_rng(0), np.arange(12)
    falling, still = np.linspace(8, 4, 12), 8 + 0.1 * rng.normal(size=12)
    nodes = {
        "real": xr.Dataset({"x": ("step", falling), "x_stderr": 0.1}, {"step": steps}),
        "noisy": xr.Dataset({"x": ("step", falling), "x_stderr": 5.0}, {"step": steps}),
        "control": xr.Dataset({"x": ("step", still), "x_stderr": 0.1}, {"step": steps}),
    }
    quantity = Quantity("x", "loss", rows="loss", subject="The loss")
    data = along_runs(nodes, [quantity], Section("Loss", "Mean loss."))
    assert data.developed.values.tolist() == [True, False, False]
    assert any(
        sentence.startswith("The loss (control): no change")
        for sentence in json.loads(data.attrs["statements"])
    )
