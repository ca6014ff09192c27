"""Three studied seeds compared: their numbers are those of each study, on disk and on the page."""

import copy
import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import xarray as xr

import ontogeny as og
from helpers.command import call
from helpers.study_examples import tiny_inputs, tiny_model
from ontogeny.comparison.differences import kernel_differences
from ontogeny.comparison.rows import VERDICTS
from ontogeny.observables import AttentionEntropy, Loss

STEPS = (0, 1, 2, 4, 8, 16)
SEEDS = ("seed 0", "seed 1", "seed 2")


def models_of(seed, layers=2):
    """Weights go from a random model of this seed to another one, with a little noise."""
    first, last = (
        tiny_model(10 + seed, layers=layers),
        tiny_model(20 + seed, layers=layers),
    )
    found, generator = {}, torch.Generator().manual_seed(seed)
    for i, step in enumerate(STEPS):
        share, model = i / (len(STEPS) - 1), copy.deepcopy(first)
        with torch.no_grad():
            for a, b in zip(model.parameters(), last.parameters(), strict=True):
                noise = 0.01 * torch.randn(a.shape, generator=generator)
                a.copy_((1 - share) * a + share * b + noise * a.std(unbiased=False))
        found[step] = model
    return found


def studied(folder, seed, layers=2, inputs=None, **options):
    trajectory = og.Trajectory.from_models(models_of(seed, layers))
    observables = [Loss(), AttentionEntropy()]
    inputs = tiny_inputs(30) if inputs is None else inputs
    study = og.Study(trajectory, inputs, observables, device="cpu", **options)
    study.run(folder)
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("seeds")


@pytest.fixture(scope="module")
def folders(place):
    """Three seeds; the second has control runs."""
    return {
        name: studied(
            place / name.replace(" ", "-"), i, controls=2 * (i == 1), control_steps=3
        )
        for i, name in enumerate(SEEDS)
    }


@pytest.fixture(scope="module")
def compared(folders):
    return og.compare(folders)


def own_value(node, name, row, run=None):
    data = node if run is None else node.sel(run=run)
    places = np.flatnonzero(
        (data.row_quantity.values == row[0]) & (data.row_layer.values == row[1])
    )
    return data[name].values[places]


def test_curves_rows_and_verdicts_are_those_of_each_study(folders, compared):
    for run, folder in folders.items():
        result = og.open_study(folder).result
        for name in ("loss", "attention-entropy"):
            own, data = (
                result[name].to_dataset(),
                compared[name].to_dataset().sel(run=run),
            )
            for variable in (
                "loss",
                "loss_low",
                "loss_floor",
                "layer_entropy",
                "entropy",
            ):
                if variable in own:
                    same = data[variable].transpose(*own[variable].dims)
                    np.testing.assert_array_equal(same, own[variable])
            for quantity, layer in zip(
                own.row_quantity.values, own.row_layer.values, strict=True
            ):
                row = (quantity, layer)
                for variable in (*VERDICTS, "judgeable", "p_value", "half_step"):
                    np.testing.assert_array_equal(
                        own_value(compared[name].to_dataset(), variable, row, run),
                        own_value(own, variable, row),
                    )


def test_controls_of_a_run_stay_beside_it(folders, compared):
    own = og.open_study(folders["seed 1"]).result["loss"].to_dataset()
    data = compared["loss"].to_dataset()
    np.testing.assert_array_equal(
        data.loss_control.sel(run="seed 1").transpose("control", "step"),
        own.loss_control.transpose("run", "step"),
    )
    assert data.control.values.tolist() == own.run.values.tolist()
    assert np.isnan(data.loss_control.sel(run="seed 0")).all()
    last = og.comparison.summary_lines(compared)[-1]
    assert last.startswith("No control was run for seed 0 and seed 2")


def test_the_mean_is_over_runs_with_n_minus_one(compared):
    data = compared["loss"].to_dataset()
    np.testing.assert_allclose(data.loss_mean, data.loss.mean("run"))
    spread = data.loss.std("run", ddof=1)
    np.testing.assert_allclose(data.loss_mean_high - data.loss_mean, spread)
    figures = json.loads(compared["attention-entropy"].attrs["figures"])
    by_name = {figure["id"]: figure for figure in figures}
    assert by_name["layer-entropy"]["runs"] == "run"
    assert by_name["layer-entropy"]["series"] == "layer"


@pytest.mark.slow
def test_a_comparison_is_written_and_opened_like_a_study(compared, tmp_path):
    og.comparison.write_comparison(compared, tmp_path / "both")
    opened = og.open_study(tmp_path / "both")
    for name, child in compared.children.items():
        xr.testing.assert_identical(
            child.to_dataset().drop_attrs(), opened.tree[name].to_dataset().drop_attrs()
        )
    assert opened.report(tmp_path / "page.html").stat().st_size > 100_000
    og.comparison.write_comparison(compared, tmp_path / "both")  # replaces its like
    again = og.open_study(
        tmp_path / "both"
    ).result  # what was opened before is no longer there
    written = og.report.write_figures(again, tmp_path / "figures", ["png", "svg"])
    names = {path.name for path in written}
    assert {"half-change-steps.png", "half-change-steps.csv", "runs-table.tex"} <= names
    assert {"loss-loss.svg", "loss-loss-difference.svg"} <= names


def test_a_study_is_never_overwritten(compared, folders, tmp_path):
    with pytest.raises(og.errors.StoreError, match="is the folder of a study"):
        og.comparison.write_comparison(compared, folders["seed 0"])
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(og.errors.StoreError, match="files that are no comparison"):
        og.comparison.write_comparison(compared, tmp_path)
    with pytest.raises(og.errors.ArgumentError, match="what compare returns"):
        og.comparison.write_comparison(
            og.open_study(folders["seed 0"]).result, tmp_path / "new"
        )


def test_models_of_other_depths_are_compared_at_the_same_relative_depth(folders, place):
    deep = studied(place / "deep", 3, layers=4)
    tree = og.compare({"two": folders["seed 0"], "four": deep})
    data = tree["attention-entropy"].to_dataset()
    assert data.layer.values.tolist() == ["25 % of the depth", "75 % of the depth"]
    own = og.open_study(deep).result["attention-entropy"].to_dataset()
    np.testing.assert_array_equal(
        data.layer_entropy.sel(run="four").transpose("step", "layer"),
        own.layer_entropy.isel(layer=[0, 2]).transpose("step", "layer"),
    )
    assert data.row_layer.values.tolist() == data.layer.values.tolist()
    assert "2 and 4 layers; those at the same relative depth" in tree.attrs["problems"]


def test_other_texts_are_refused_and_marked_where_allowed(folders, place):
    other = studied(place / "other", 4, inputs=tiny_inputs(25, seed=9))
    runs = {"one": folders["seed 0"], "other": other}
    with pytest.raises(
        og.errors.ArgumentError, match="studied on different texts"
    ) as refused:
        og.compare(runs)
    assert "30 texts" in str(refused.value) and "25 texts" in str(refused.value)
    assert 'allow=["inputs"]' in str(refused.value)
    tree = og.compare(runs, allow=["inputs"])
    assert "studied on different texts" in tree.attrs["problems"]
    assert any(
        "different texts" in t for t in json.loads(tree["runs"].attrs["statements"])
    )


@pytest.mark.slow
def test_other_versions_of_libraries_are_no_obstacle_and_are_said(folders):
    trees = {name: og.open_study(folder).tree for name, folder in folders.items()}
    provenance = json.loads(trees["seed 0"].attrs["provenance"])
    versions = provenance["libraries"]
    assert (
        versions["torch"]
        and "versions of libraries" not in og.compare(trees).attrs["problems"]
    )
    other = trees["seed 0"].copy()
    other.attrs["provenance"] = json.dumps(
        {**provenance, "libraries": {**versions, "torch": "9"}}
    )
    (line,) = json.loads(og.compare({**trees, "seed 0": other}).attrs["problems"])
    assert line.startswith(
        f"The runs were computed with different versions of libraries: torch 9 in 'seed 0'; torch "
        f"{versions['torch']} in "
    )


def test_other_kernels_are_no_obstacle_and_are_told(folders):
    trees = {name: og.open_study(folder).result for name, folder in folders.items()}
    kernels = json.loads(trees["seed 0"].attrs["provenance"])["kernels"]
    assert kernels["instructions"]
    assert "kernels" not in og.compare(trees).attrs["problems"]
    other = trees["seed 0"].copy()
    other.attrs["provenance"] = json.dumps(
        {"kernels": {**kernels, "instructions": "arm64"}}
    )
    told = json.loads(og.compare({**trees, "seed 0": other}).attrs["problems"])
    assert any(
        "different kernels: instructions arm64 in 'seed 0'" in line for line in told
    )


@pytest.mark.slow
def test_the_command_writes_the_page_and_a_line_for_each_quantity(
    folders, tmp_path, capsys
):
    page = tmp_path / "page.html"
    names = ("--names", "a,b,c")
    code, out, err = call(capsys, "compare", *folders.values(), "-o", page, *names)
    assert (code, err) == (0, "") and page.stat().st_size > 100_000
    lines = out.splitlines()
    assert lines[0] == f"page: {page}"
    assert lines[-1].startswith("No control was run for a and c")
    for quantity in ("attention entropy", "loss"):
        assert any(quantity in line.lower() for line in lines[1:-1])
    assert any("of 3 runs" in line for line in lines[1:-1])
    kept = ("--folder", tmp_path / "kept")
    options = ("--align", "tokens", "--tokens-per-step", "512")
    code, _, err = call(
        capsys, "compare", *folders.values(), "-o", page, *kept, *options
    )
    assert (code, err) == (0, "")
    steps = og.open_study(tmp_path / "kept").result["loss"].step.values
    assert steps.tolist() == [512 * step for step in STEPS]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--names", "a,b"), "--names must hold 3 different names"),
        (("--align", "time"), "align must be one of"),
        (("--align", "tokens"), "tokens_per_step"),
        (("--allow", "everything"), "allow must be one of"),
        (
            ("--tokens-per-step", "1,2", "--align", "tokens"),
            "--tokens-per-step must hold one",
        ),
    ],
)
def test_the_command_refuses_in_one_line(folders, tmp_path, capsys, arguments, words):
    page = ("-o", tmp_path / "page.html")
    code, out, err = call(capsys, "compare", *folders.values(), *page, *arguments)
    assert code == 1 and words in err and len(err.splitlines()) == 1 and not out


def test_an_entry_that_only_a_later_run_has_is_named():
    def run(name, **kernels):
        recorded = {"kernels": {"BLAS": "one", **kernels}, "libraries": {}}
        return SimpleNamespace(name=name, attribute=lambda *_: recorded)

    (line,) = kernel_differences([run("a"), run("b", GPU="H100")])
    assert "GPU none in 'a'; GPU H100 in 'b'" in line
