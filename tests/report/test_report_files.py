"""The figures as files: every number, in long form, under names that fit a file system."""

import csv
import re

import numpy as np
import pytest
import xarray as xr

from helpers import report_examples as examples
from helpers.paths import GUIDES
from ontogeny import report
from ontogeny.errors import ArgumentError


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def column(table, name):
    return np.array([float(row[name]) if row[name] else np.nan for row in table])


def test_every_figure_is_written_and_named(tmp_path):
    written = report.write_figures(
        examples.developing_tree(), tmp_path / "figures", formats=[]
    )
    assert [p.name for p in written] == [
        "chart.csv",
        "half-change-steps.csv",
        "loss-loss.csv",
        "concepts-ica-distance.csv",
        "concepts-pca-distance.csv",
        "attention-entropy-mean.csv",
        "attention-entropy-heads.csv",
        "matrix-between.csv",
        "variance-rank-rank.csv",
        "displacement-moved.csv",
    ]
    assert sorted(p.name for p in (tmp_path / "figures").iterdir()) == sorted(
        p.name for p in written
    )


def test_numbers_read_back_as_the_result(tmp_path):
    tree = examples.developing_tree()
    report.write_figures(tree, tmp_path, formats=[])
    table = read(tmp_path / "concepts-ica-distance.csv")
    node = tree["concepts-ica"].to_dataset()
    value = node["distance_to_last"]
    assert list(table[0]) == [
        *value.dims,
        "distance_to_last",
        "distance_relative",
        "low",
        "high",
        "floor_low",
        "floor_high",
    ]
    assert len(table) == value.size
    for name in ("distance_to_last", "low", "floor_high"):
        expected = (
            node[name].broadcast_like(value).transpose(*value.dims).values.ravel()
        )
        np.testing.assert_array_equal(
            column(table, name).astype(expected.dtype), expected
        )
    assert [row["layer"] for row in table[: len(examples.STEPS)]] == [
        "model.layers.0.mlp"
    ] * 26


def test_chart_rows_read_back_as_the_result(tmp_path):
    tree = examples.developing_tree()
    report.write_figures(tree, tmp_path, formats=[])
    table = read(tmp_path / "chart.csv")
    label = "model.layers.2.mlp · ICA concepts"
    mine = [row for row in table if row["row"] == label]
    row = tree["concepts-ica"].to_dataset().sel(row=label)
    np.testing.assert_array_equal(column(mine, "progress"), row["progress"].values)
    np.testing.assert_array_equal(column(mine, "step"), row["step"].values)
    assert {r["half_step"] for r in mine} == {repr(float(row["half_step"]))}


def test_hostile_names_make_plain_file_names(tmp_path):
    written = report.write_figures(examples.hostile_tree(), tmp_path, formats=["svg"])
    assert all(
        p.parent == tmp_path
        and set(p.name)
        <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.")
        for p in written
    )
    table = read(tmp_path / "a-b-heat.csv")
    assert {row["distance"] for row in table} == set(examples.HOSTILE[1:3])


def test_equal_names_do_not_overwrite_each_other(tmp_path):
    node = examples.plain_tree()["plain"].to_dataset()
    tree = xr.DataTree.from_dict({"a-b": node, "a b": node})
    names = [p.name for p in report.write_figures(tree, tmp_path, formats=["svg"])]
    assert len(names) == len(set(names)) == 3 + 2 * 2 * 3


def test_results_that_are_none_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match="tree must be"):
        report.write_figures(xr.Dataset(), tmp_path)


def test_the_guide_runs(tmp_path, monkeypatch, capsys):
    guide = GUIDES / "report.md"
    code = re.findall(
        r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    monkeypatch.chdir(tmp_path)
    exec("\n".join(code), {"__name__": "guide"})
    promised = re.findall(r"print\(.*\)  # (.*)", "\n".join(code))
    assert len(promised) == 5 and capsys.readouterr().out.splitlines() == promised


def test_no_text_in_a_file_is_a_formula_for_a_spreadsheet(tmp_path):
    report.write_figures(examples.formula_tree(), tmp_path, formats=[])
    table = read(tmp_path / "concepts-ica-distance.csv")
    assert {row["layer"][:2] for row in table} == {"'=", "'@"}
    assert (column(table, "distance_to_last") >= 0).any()  # numbers are numbers
    for path in tmp_path.glob("*.csv"):
        for line in csv.reader(path.read_text(encoding="utf-8").splitlines()):
            assert not any(re.match(r"[=@+\t]", cell) for cell in line), path.name
