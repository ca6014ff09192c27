"""Runs and controls as one more dimension of the same quantities."""

import json
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers.claimed import claims
from helpers.study_examples import developing, jittering, tiny_inputs
from ontogeny.claims import Kind, Reason
from ontogeny.figures import Curves, Heatmap, NullComparison, Scatter, Section, Table
from ontogeny.figures.tables import Column
from ontogeny.observables import AttentionEntropy, Loss
from ontogeny.quantities import Quantity
from ontogeny.summary.figures import figure_of_runs
from ontogeny.summary.runs import stack_runs
from ontogeny.summary.summarise import summarise
from ontogeny_papers.reproduce.averages import mean_of_seeds


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


def along_runs(nodes, quantities, section):
    """Return the same node of several runs as one that is judged along ``run``."""
    stored = [name for quantity in quantities for name in quantity.stored()]
    data = stack_runs(
        {run: node[[n for n in stored if n in node]] for run, node in nodes.items()}
    )
    of_runs = [
        replace(q, rows=f"{q.rows} ({{run}})") if q.rows else q for q in quantities
    ]
    return summarise(data, of_runs, section)


@pytest.mark.parametrize(
    "observable", [Loss(), AttentionEntropy()], ids=lambda o: o.name
)
def test_a_control_stands_beside_every_curve_without_a_line_in_the_observable(
    runs, observable
):
    nodes = {name: tree[observable.name].to_dataset() for name, tree in runs.items()}
    data = along_runs(nodes, observable.quantities, observable.section)
    assert data.run.values.tolist() == ["real", "control"]
    for name, node in nodes.items():
        for quantity in observable.quantities:
            for end in ("", "_low", "_high", "_floor"):
                if quantity.name + end in node:
                    own = data[quantity.name + end].sel(run=name)
                    own = own.transpose(*node[quantity.name + end].dims)
                    np.testing.assert_allclose(
                        own, node[quantity.name + end], rtol=1e-10
                    )
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
    quantity = Quantity("x", "loss", rows="loss")
    data = along_runs(nodes, [quantity], Section("Loss", "Mean loss."))
    assert data.changed.values.tolist() == [True, False, False]
    found = {claim.subject.label: claim for claim in claims(data, Kind.CHANGED)}
    [still] = [claim for label, claim in found.items() if "control" in label]
    assert still.reason is Reason.WITHIN_NOISE


@pytest.mark.parametrize(
    ("figure", "uses"),
    [
        (Curves("a", "A", value="x"), {"series": "run", "facet": "layer"}),
        (Curves("a", "A", value="x", facet="set"), {"series": "run", "facet": "set"}),
        (NullComparison("a", "A", value="x"), {"rows": "run", "facet": "block"}),
        (Heatmap("a", "A", value="x"), {"facet": "run", "y": "layer"}),
        (Scatter("a", "A", x="x", y="y"), {"facet": "run"}),
        (Table("a", "A", columns=[Column("x")]), {"group": "run", "rows": "layer"}),
        (Curves("a", "A", value="x", facet="run"), {"series": "layer", "facet": "run"}),
    ],
)
def test_figures_of_every_kind_show_runs_side_by_side(figure, uses):
    found = figure_of_runs(figure)
    assert {name: getattr(found, name) for name in uses} == uses


def test_means_of_seeds_are_drawn_as_quantities_are_with_the_spread_over_seeds_as_shade():
    def seed(shift):
        data = {
            "x": (("step", "set"), [[1.0 + shift], [3.0 + shift]]),
            "x_chance": ("set", [0.5]),
            "rank": ("set", [4.0 + shift]),
        }
        return xr.Dataset(data, {"step": [0, 9], "set": ["m=1"]})

    quantity = Quantity(
        "x",
        "accuracy",
        nulls={"chance": "chance"},
        rows="{set}",
        shade="score interval",
    )
    dots = NullComparison("dots", "Ranks", value="rank", rows="set")
    seeds = [seed(0.0), seed(2.0)]
    section = Section("Accuracy", "Right answers.", care="Careful.")
    for runs in ({"one": seeds}, {"one": seeds, "other": seeds[:1]}):
        data = mean_of_seeds(runs, [quantity], section, figures=[dots])
        one = data.sel(run="one") if "run" in data.dims else data
        assert one.x.values.ravel().tolist() == [2.0, 4.0] and "row" not in data.dims
        np.testing.assert_allclose(one.x_high - one.x, np.sqrt(2))
        curves, drawn = json.loads(data.attrs["figures"])
        assert curves["interval"] == ["x_low", "x_high"]
        assert drawn["interval"] == ["rank_low", "rank_high"]
        assert curves["bands"][0]["label"] == "chance" and not curves["shade"]
        assert (curves["series"] == drawn["rows"] == "run") == (len(runs) > 1)
        care = json.loads(data.attrs["section"])["care"]
        assert care == "Careful. Shade: mean ± SD over 2 seeds."


@pytest.mark.parametrize("dtype", [object, np.dtypes.StringDType()])
def test_a_text_that_a_run_lacks_is_an_empty_one(dtype):
    def run(steps):
        texts = np.array([f"at {step}" for step in steps], dtype=dtype)
        return xr.Dataset({"said": ("step", texts)}, {"step": steps})

    said = stack_runs({"a": run([0, 2]), "b": run([0, 1])}).said
    assert said.values.tolist() == [["at 0", "", "at 2"], ["at 0", "at 1", ""]]
