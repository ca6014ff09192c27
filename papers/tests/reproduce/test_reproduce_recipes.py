"""Recipes: means over seeds, pages with claim and nulls, resumption, the command."""

import json
import shutil

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from ontogeny.cli.main import _run
from ontogeny.errors import ArgumentError
from ontogeny.observables import (
    Commutators,
    Projection,
    ReadoutAccuracy,
    ReadoutAttention,
    SaeProbe,
    WeightRank,
)
from ontogeny_papers import reproduce
from ontogeny_papers.reproduce import MarkerRecipe, Scale, execution
from ontogeny_papers.reproduce.averages import over_seeds
from ontogeny_papers.reproduce.tasks import MarkerTask
from ontogeny_papers.reproduce.training import MarkerRun

TASK = MarkerTask(length=8, modulus=4, markers=(1, 2), vocab_size=8)
RUN = MarkerRun(task=TASK, layers=2, width=16, heads=2, steps=6, batch_size=8)
STEPS = {"loss": "classification", "pairs": 2, "batch_size": 8}
OBSERVABLES = (
    WeightRank(("q", "v"), n_draws=4),
    ReadoutAccuracy(),
    ReadoutAttention(top=(1,)),
    Commutators(**STEPS),
    Projection(blocks=("q", "v"), k=1, **STEPS),
    SaeProbe((0,), n_latents=16, epochs=1, n_draws=2, variants=("topk",)),
)


def tiny(observables, runs=None):
    scale = Scale(runs or {"mixed": RUN}, (0, 1), 2, observables, texts=32)
    return MarkerRecipe(
        "tiny", "A tiny run", "the moon is a cheese.", "Nobody 1900", scale, scale
    )


def test_averages_are_means_and_sample_deviations_over_seeds():
    seeds = [
        xr.Dataset({"rank": ("kind", [a, b])}, coords={"kind": ["q", "v"]})
        for a, b in ((1.0, 5.0), (2.0, 5.0), (6.0, 8.0))
    ]
    data = over_seeds({"one": seeds})
    np.testing.assert_allclose(data["rank"], [3, 6])
    np.testing.assert_allclose(data["rank_sd"], [np.std([1, 2, 6], ddof=1), np.sqrt(3)])
    np.testing.assert_allclose(data["rank_high"] - data["rank"], data["rank_sd"])
    several = over_seeds({"one": seeds, "other": [seeds[0].sel(kind=["q"])]})
    assert several["rank"].sel(run="one", kind="q") == 3
    assert np.isnan(several["rank"].sel(run="other", kind="v"))
    # One seed has no deviation.
    assert np.isnan(several["rank_sd"].sel(run="other", kind="q"))
    assert several["rank_low"].sel(run="other", kind="q") == 1


def test_a_missing_value_of_one_seed_is_not_hidden_in_the_mean():
    seeds = [xr.Dataset({"x": value}) for value in (1.0, np.nan)]
    assert np.isnan(over_seeds({"one": seeds})["x"])


def test_a_recipe_draws_every_observable_as_the_mean_of_its_seeds(tmp_path):
    recipe = tiny(OBSERVABLES)
    page = recipe.run(tmp_path)
    assert page == tmp_path / "tiny" / "report.html"
    text = page.read_text(encoding="utf-8")
    assert "the moon is a cheese" in text and "over 2 seeds" in text
    result = og.open_study(tmp_path / "tiny").result
    assert json.loads(result.attrs["nodes"]) == [o.name for o in OBSERVABLES]
    parts = [
        og.open_study(tmp_path / "tiny" / "studies" / f"mixed-seed-{seed}").result
        for seed in (0, 1)
    ]
    accuracy = [
        part["readout-accuracy"].accuracy.sel({"set": "m=1"}).values for part in parts
    ]
    found = result["readout-accuracy"].accuracy.sel({"set": "m=1"})
    np.testing.assert_allclose(found, np.mean(accuracy, axis=0))
    ranks = [
        part["weight-rank"]
        .variance_rank.values[
            [".q_proj." in str(b) for b in part["weight-rank"].block.values]
        ]
        .mean()
        for part in parts
    ]
    rank = result["weight-rank"]
    assert float(rank.variance_rank.sel(block="q_proj")) == pytest.approx(
        np.mean(ranks)
    )
    assert float(rank.variance_rank_sd.sel(block="q_proj")) == pytest.approx(
        np.std(ranks, ddof=1)
    )
    for observable in OBSERVABLES:
        node, part = result[observable.name], parts[0][observable.name]
        drawn = {figure["id"] for figure in json.loads(node.attrs["figures"])}
        assert drawn >= {figure["id"] for figure in json.loads(part.attrs["figures"])}
        first, said, *_ = json.loads(node.attrs["statements"])
        assert (
            first == "The paper: the moon is a cheese."
            and "nan" not in said
            and ": " in said
        )
    before = {
        p: p.stat().st_mtime_ns for p in (tmp_path / "runs").rglob("*") if p.is_file()
    }
    cells = {
        p: p.stat().st_mtime_ns
        for p in (tmp_path / "tiny" / "studies").rglob("*.safetensors")
    }
    recipe.run(tmp_path)  # nothing is trained or measured again
    assert all(p.stat().st_mtime_ns == time for p, time in {**before, **cells}.items())


def test_runs_are_compared_side_by_side_and_shared_between_recipes(tmp_path):
    observables = (
        ReadoutAccuracy(),
        WeightRank(("q",), n_draws=4),
        ReadoutAttention(top=(1,)),
    )
    runs = {"addition": RUN, "2 layers & MLP": MarkerRun(**{**vars(RUN), "mlp": True})}
    page = tiny(observables, runs).run(tmp_path, quick=True)
    assert page.parent.name == "tiny-quick"
    result = og.open_study(page.parent).result
    assert result["readout-accuracy"].run.values.tolist() == list(runs)
    folders = sorted(p.name for p in (tmp_path / "runs").iterdir())
    tiny(observables[:1], {"called otherwise": RUN}).run(tmp_path)
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == folders


def test_a_study_with_problems_gives_no_mean(tmp_path, monkeypatch):
    def fail(self, reading, state):
        raise ValueError("no")

    monkeypatch.setattr(ReadoutAccuracy, "observe", fail)
    with pytest.raises(ArgumentError, match="no mean over seeds"):
        tiny((ReadoutAccuracy(),)).run(tmp_path)


@pytest.mark.parametrize("name", execution.RECIPES)
def test_every_recipe_is_sized_as_it_says(name):
    recipe = reproduce.recipe(name)
    for scale in (recipe.full, recipe.quick):
        for run in scale.runs.values():
            assert max(scale.markers or (0,)) * 2 <= run.task.length
    work = [
        sum(r.steps * r.layers for r in s.runs.values()) * len(s.seeds)
        for s in (recipe.full, recipe.quick)
    ]
    assert work[1] * 10 < work[0]
    assert len(recipe.quick.seeds) >= 2  # a deviation over seeds needs two


def test_a_folder_with_other_files_is_left_alone(tmp_path):
    place = tmp_path / "execution-figure-1-quick"
    place.mkdir()
    (place / "report.html").write_text("mine")
    with pytest.raises(ArgumentError, match=r"other files \(report\.html\)"):
        reproduce.recipe("execution-figure-1").run(tmp_path, quick=True)
    assert [p.name for p in tmp_path.iterdir()] == [place.name]


def test_the_shipped_default_is_the_one_that_learns():
    run = reproduce.recipe("execution-figure-1").full.runs["mixed"]
    assert (run.layers, run.task.length, run.task.vocab_size, run.steps) == (
        4,
        16,
        24,
        8000,
    )
    assert run.task.counts == (1, 2, 3, 4) and run.optimizer.schedule == "cosine"
    stated = execution.RECIPES["execution-stated-training"].full.runs[
        "SGD 0.001, as stated"
    ]
    assert (stated.optimizer.kind, stated.optimizer.learning_rate) == ("sgd", 1e-3)
    assert (stated.task.length, stated.batch_size) == (32, 64)


def test_the_command_lists_runs_and_refuses(tmp_path, monkeypatch, capsys):
    assert _run(["reproduce"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in reproduce.names())
    assert _run(["reproduce", "execution-figure-9", "--output", str(tmp_path)]) == 1
    assert "Did you mean 'execution-figure-" in capsys.readouterr().err
    monkeypatch.setitem(execution.RECIPES, "tiny", tiny((ReadoutAccuracy(),)))
    assert (
        _run(["reproduce", "tiny", "--quick", "--quiet", "--output", str(tmp_path)])
        == 0
    )
    assert capsys.readouterr().out.strip().endswith("report.html")
    shutil.rmtree(tmp_path / "runs")
