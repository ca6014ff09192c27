"""What follows from the smallest declaration, and what is said of a missing quantity."""

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers.study_examples import LAYERS, developing, tiny_inputs
from ontogeny import needs
from ontogeny.figures import Section
from ontogeny.observables import Observable, by_layer
from ontogeny.quantities import Measured, Quantity
from ontogeny.summary.summarise import summarise


@dataclass(frozen=True)
class Norm(Observable):
    kind: ClassVar[str] = "norm"
    quantities: ClassVar = (Quantity("norm", "mean norm"),)
    layers: str = LAYERS

    def needs(self):
        return [needs.Activations(self.layers)]

    def observe(self, reading, state):
        (need,) = self.needs()
        texts = reading.units(need)
        return by_layer(
            reading[need],
            lambda _, A: {"norm": Measured.mean(A.norm(dim=1).numpy(), texts)},
        )


@dataclass(frozen=True)
class Features(Norm):
    """Values along a dimension without labels."""

    kind: ClassVar[str] = "features"
    quantities: ClassVar = (Quantity("norm", "mean", rows="{layer} · {feature}"),)

    def observe(self, reading, state):
        return by_layer(
            reading[self.needs()[0]],
            lambda _, A: {
                "norm": Measured(("feature", A.mean(0)[:3].numpy()), stderr=0.001)
            },
        )


@dataclass(frozen=True)
class Missing(Norm):
    kind: ClassVar[str] = "missing"
    quantities: ClassVar = (
        *Norm.quantities,
        Quantity("mean", "mean activation"),
        Quantity("median", "median activation", optional=True),
    )


@dataclass(frozen=True)
class Plain(Norm):
    """Variables without a quantity or a figure."""

    kind: ClassVar[str] = "plain"
    quantities: ClassVar = ()
    variables: ClassVar = {"norm": ("mean norm", "activation units")}

    def observe(self, reading, state):
        def one(_, A):
            norms = A.norm(dim=1).double()
            error = float(norms.std() / len(norms) ** 0.5)
            ends = {
                "norm_low": norms.mean() - 2 * error,
                "norm_high": norms.mean() + 2 * error,
            }
            squares = ("feature", A.pow(2).mean(0).numpy())
            return {"norm": float(norms.mean()), **ends, "squares": squares}

        found = by_layer(reading[self.needs()[0]], one)
        return found.assign(largest=found.norm.max(), rose=found.norm.mean() > 1)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    run = og.Trajectory.from_models(developing())
    study = og.Study(
        run, tiny_inputs(20), [Norm(), Features(), Missing(), Plain()], device="cpu"
    )
    folder = tmp_path_factory.mktemp("smallest") / "study"
    return study.run(folder), og.open_study(folder).report(
        folder / "page.html"
    ).read_text("utf-8")


def test_a_name_and_a_title_give_a_figure_an_interval_and_a_section(study):
    node, page = study[0]["norm"], study[1]
    (figure,) = json.loads(node.attrs["figures"])
    assert figure["title"] == "Mean norm" and figure["interval"] == [
        "norm_low",
        "norm_high",
    ]
    assert (node.norm_low < node.norm).all() and (node.norm < node.norm_high).all()
    section = json.loads(node.attrs["section"])
    assert section["title"] == "Norm" and section["definition"] == "Mean norm."
    assert (
        node.norm.attrs["long_name"] == "mean norm" and node.norm.attrs["units"] == "1"
    )
    assert "Mean norm" in page


def test_a_dimension_without_labels_is_numbered(study):
    node = study[0]["features"]
    assert "feature" not in node.coords
    assert node.sizes["row"] == 3 * node.sizes["layer"]
    assert str(node.row.values[-1]).endswith(" · 2") and node.noise_known.all()


def test_what_is_in_no_cell_is_said_unless_it_is_optional(study):
    claims = study[0].claims()
    lost = claims[(claims.kind == "measured") & (claims.certainty == "not tested")]
    assert lost[["node", "quantity"]].values.tolist() == [["missing", "mean"]]
    assert "The result lacks mean activation: it could not be computed." in study[1]


def test_variables_over_steps_and_layers_are_drawn_where_nothing_else_is(
    study, tmp_path
):
    result = study[0]
    figures = {
        each["id"]: each for each in json.loads(result["plain"].attrs["figures"])
    }
    assert set(figures) == {"norm", "largest"}  # neither ends of intervals nor verdicts
    assert (
        figures["norm"]["title"] == "Mean norm" and figures["norm"]["series"] == "layer"
    )
    assert figures["norm"]["interval"] == ["norm_low", "norm_high"]
    assert figures["largest"]["series"] is None
    assert 'id="plain/norm"' in study[1]
    found = result.figure("plain/norm").data
    assert found.columns.tolist() == ["step", "layer", "norm", "norm_low", "norm_high"]
    written = og.report.write_figures(result, tmp_path, formats=[])
    assert "plain-largest.csv" in {path.name for path in written}


def test_a_value_without_steps_or_labels_is_kept_and_not_drawn():
    data = xr.Dataset({"x": ("head", np.ones(2))}, coords={"step": [0, 1]})
    found = summarise(data, [Quantity("x", "value", rows="{head}")], Section("S", "D."))
    assert "row" not in found and json.loads(found.attrs["figures"]) == []


def test_rows_that_name_an_unknown_dimension_are_refused():
    data = xr.Dataset(
        {"x": (("step", "head"), np.ones((2, 2)))}, coords={"step": [0, 1]}
    )
    with pytest.raises(og.errors.ArgumentError, match="rows of 'x' names 'layer'"):
        summarise(data, [Quantity("x", "value", rows="{layer}")], Section("S", "D."))
