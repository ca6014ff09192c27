"""Tables: digits as far as they are known, the better cell shaded, the same numbers as files."""

import csv
import json
import math
import re
import shutil
import subprocess

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from helpers import report_kinds as kinds
from ontogeny import report
from ontogeny.errors import ArgumentError
from ontogeny.figures import Column, Footer, Pair, Section, Table, attach
from ontogeny.report.figures.tables import escaped, latex_table
from ontogeny.report.kinds import read_drawables
from ontogeny.words.content import read_content


def read(dataset):
    """The first figure of a node as the report reads it."""
    tree = xr.DataTree.from_dict({"node": dataset})
    tree.attrs = {"steps": "[0, 10]"}
    return read_drawables(read_content(tree))[0]


def table_of(dataset):
    drawable = read(dataset)
    assert not drawable.problem, drawable.problem
    return drawable.table


def attached(data, coords=None, **options):
    section = Section("T", "A table.")
    return attach(xr.Dataset(data, coords), section, [Table("t", "T", **options)])


def column(table, k):
    return [line.cells[k].text for line in table.lines]


def test_digits_follow_the_standard_deviation():
    data = {
        "m": ("item", [0.51234, 123.456, 0.5]),
        "s": ("item", [0.012, 3.4, math.nan]),
    }
    table = table_of(attached(data, columns=[Column("m", sd="s")], rows="item"))
    assert column(table, 0) == ["0.512", "123.5", "0.5000"]
    assert [line.cells[0].spread for line in table.lines] == ["(0.012)", "(3.4)", ""]


def test_numbers_of_like_uncertainty_share_their_decimals():
    data = {"m": ("item", [0.006, 0.004]), "s": ("item", [0.00012, 0.0011])}
    table = table_of(attached(data, columns=[Column("m", sd="s")], rows="item"))
    assert column(table, 0) == ["0.00600", "0.00400"]
    assert [line.cells[0].spread for line in table.lines] == ["(0.00012)", "(0.00110)"]


def test_only_what_is_better_by_more_than_error_is_shaded():
    data = {
        "a": ("item", [1.0, 1.0]),
        "a_sd": ("item", [0.3, 0.3]),
        "b": ("item", [1.4, 1.5]),
        "b_sd": ("item", [0.3, 0.3]),
    }
    columns = [Column("a", sd="a_sd"), Column("b", sd="b_sd")]
    table = table_of(
        attached(data, columns=columns, rows="item", pairs=[Pair("a", "b", "lower")])
    )
    shaded = [[cell.shaded for cell in line.cells] for line in table.lines]
    assert shaded == [[False, False], [True, False]]


def test_numbers_without_uncertainty_share_their_decimals():
    data = {"a": ("item", [12.3456, 0.51234]), "b": ("item", [1000.0, 1e-5])}
    columns = [Column("a"), Column("b")]
    table = table_of(attached(data, columns=columns, rows="item"))
    assert column(table, 0) == ["12.35", "0.51"]
    assert column(table, 1) == ["1,000", "1.000e-05"]  # shared decimals would leave 0.0


def test_infinity_is_written_and_not_a_gap():
    data = {
        "a": ("item", [math.inf, 2.5, -math.inf, math.nan, 1.0]),
        "b": ("item", [1.0] * 5),
    }
    table = table_of(attached(data, columns=[Column("a"), Column("b")], rows="item"))
    assert column(table, 0) == ["∞", "2.500", "-∞", "", "1.000"]
    sorts = [line.cells[0].sort for line in table.lines]
    assert sorts == ["Infinity", "2.5", "-Infinity", "", "1.0"]
    assert [row.split(",")[1] for row in table.csv.splitlines()[1:4]] == [
        "inf",
        "2.5",
        "-inf",
    ]
    assert r"$\infty$" in latex_table(table)


def test_whole_numbers_have_no_decimals():
    data = {"a": ("item", [30.0, math.nan, 12000.0]), "b": ("item", [30.5, 1.0, 2.0])}
    table = table_of(attached(data, columns=[Column("a"), Column("b")], rows="item"))
    assert column(table, 0) == ["30", "", "12,000"]
    assert column(table, 1) == ["30.50", "1.00", "2.00"]


def test_the_better_of_a_pair_is_shaded_and_ties_and_gaps_are_not():
    data = {
        "a": ("item", [1.0, 2.0, 3.0, math.nan]),
        "b": ("item", [2.0, 2.0, 1.0, 5.0]),
    }
    for better, expected in (
        ("higher", [(0, 1), (0, 0), (1, 0), (0, 0)]),
        ("lower", [(1, 0), (0, 0), (0, 1), (0, 0)]),
    ):
        pairs = [Pair("a", "b", better)]
        columns = [Column("a"), Column("b")]
        table = table_of(attached(data, columns=columns, rows="item", pairs=pairs))
        shaded = [
            tuple(int(cell.shaded) for cell in line.cells) for line in table.lines
        ]
        assert shaded == expected


def test_groups_heads_units_and_kinds_of_cells():
    table = table_of(kinds.sizes_node())
    assert table.row_heads == ("extractor", "step")
    assert [line.labels for line in table.lines] == [
        ("ica", "0"),
        ("ica", "1,000"),
        ("pca", "0"),
        ("pca", "1,000"),
    ]
    assert [line.starts for line in table.lines] == [True, False, True, False]
    assert table.heads[0].unit == "nats" and table.heads[1].unit == ""
    assert column(table, 1) == ["1,200", "3", "10,000", "0"]
    assert column(table, 2) == ["yes", "no", "yes", "yes"]
    assert table.lines[0].cells[0].spread == "[12.10, 12.60]"
    assert table.lines[3].cells[0].missing and table.lines[3].cells[3].missing


def test_rows_without_anything_are_left_out():
    data = {"a": ("item", [math.nan, 1.0]), "t": ("item", np.array(["", "x"]))}
    columns = [Column("a"), Column("t")]
    table = table_of(
        attached(data, {"item": ["none", "some"]}, columns=columns, rows="item")
    )
    assert [line.labels for line in table.lines] == [("some",)]


def test_of_very_many_rows_the_page_shows_the_first_and_says_so(tmp_path):
    data = {"a": ("item", np.arange(1000.0))}
    tree = kinds.tree_of(
        {"n": attached(data, columns=[Column("a")], rows="item")}, [0], "T"
    )
    page = report.write(tree, tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count('class="label"') < 500
    assert "The first 400 of 1,000 rows; the files hold all." in page
    report.write_figures(tree, tmp_path, formats=[])
    assert len((tmp_path / "n-t.csv").read_text().splitlines()) == 1001


def test_heads_above_heads_span_their_columns():
    table = table_of(kinds.scores_node())
    assert table.spans == [("semantic", 2), ("syntactic", 2)]
    assert [line.labels[0] for line in table.footer] == [
        "sum of differences",
        "sigma-aware sum",
    ]
    assert [cell.text for cell in table.footer[0].cells] == ["", "-0.480", "", "+0.560"]


def test_csv_holds_the_numbers_bit_for_bit(tmp_path):
    node = kinds.scores_node()
    tree = kinds.tree_of({"scores": node}, [0, 10], "T")
    report.write_figures(tree, tmp_path, formats=[])
    with (tmp_path / "scores-windows.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["layer"] for row in rows[:4]] == list(node["layer"].values)
    for name in ("semantic_early", "semantic_early_sd", "syntactic_late"):
        read_back = [float(row[name]) if row[name] else math.nan for row in rows[:4]]
        np.testing.assert_array_equal(read_back, node[name].values)
    assert rows[4]["layer"] == "sum of differences"
    assert float(rows[4]["semantic_late"]) == node["semantic_sum"].item()
    assert rows[4]["semantic_early"] == ""


def test_page_and_files_have_the_same_csv_and_latex(tmp_path):
    tree = kinds.kinds_tree()
    report.write_figures(tree, tmp_path, formats=[])
    page = report.write(tree, tmp_path / "page.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])
    assert set(data["tables"]) == {"scores/windows", "sizes/sizes"}
    for table in data["tables"].values():
        for kind in ("csv", "tex"):
            path = tmp_path / f"{table['file']}.{kind}"
            assert path.read_text(encoding="utf-8") == table[kind]


def test_latex_has_as_many_cells_in_every_row_and_shades_the_better():
    text = latex_table(table_of(kinds.scores_node()))
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    layer_rows = [row for row in rows if re.match(r"layer \d", row)]
    assert len(layer_rows) == 4 and all(row.count("&") == 4 for row in layer_rows)
    assert layer_rows[0].count(r"\cellcolor") == 2
    assert (
        r"\multicolumn{2}{c}{semantic}" in text
        and r"\cmidrule(lr){2-3}\cmidrule(lr){4-5}" in text
    )
    assert "$-$0.480" in text and "+0.560" in text


@given(st.text(max_size=30))
def test_escaped_latex_has_no_bare_special_character(text):
    rest = re.sub(
        r"\\(textbackslash|textasciicircum|textasciitilde)\{\}|\$\\infty\$|\\[{}$&#_%]",
        "",
        escaped(text),
    )
    assert not re.search(r"[\\{}$&#^_%~\n]", rest)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not in PATH")
def test_latex_compiles(tmp_path):
    body = latex_table(table_of(kinds.sizes_node()))
    source = (
        "\\documentclass{article}\\usepackage[table]{xcolor}\\usepackage{booktabs}"
        f"\\begin{{document}}{body}\\end{{document}}"
    )
    (tmp_path / "t.tex").write_text(source, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)


def test_reopened_store_gives_the_same_tables(tmp_path):
    tree = kinds.kinds_tree()
    tree.to_zarr(tmp_path / "result.zarr", zarr_format=2, consolidated=True)
    again = xr.open_datatree(tmp_path / "result.zarr", engine="zarr")
    first, second = (
        {d.id: d.table for d in read_drawables(read_content(t)) if d.table is not None}
        for t in (tree, again)
    )
    assert len(first) == 2 and first == second


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": []}, "must not be empty"),
        (
            {"columns": [Column("a")], "pairs": [Pair("a", "b")]},
            "must be one of 'a'; got 'b'",
        ),
        ({"columns": [Column("a")], "footer": [Footer("sum", {"b": "a"})]}, "got 'b'"),
        ({"columns": [Column("lost")]}, r"names \['lost'\]"),
        ({"columns": [Column("wide")]}, r"has dimensions \['step'\]"),
        (
            {"columns": [Column("a")], "footer": [Footer("sum", {"a": "a"})]},
            r"dimensions \['item'\]",
        ),
    ],
)
def test_tables_that_cannot_be_are_refused_at_the_door(options, words):
    data = {"a": ("item", [1.0]), "wide": (("item", "step"), [[1.0]])}
    with pytest.raises(ArgumentError, match=words):
        attached(data, rows="item", **options)


def test_pairs_and_roles_are_checked():
    with pytest.raises(ArgumentError, match="better must be one of 'higher', 'lower'"):
        Pair("a", "b", "best")
    data = xr.Dataset({"a": ("item", [1.0])})
    with pytest.raises(ArgumentError, match="role must be one of"):
        attach(data, Section("T", "t"), [], role="regime")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows": "nothing"}, "The result has no dimension 'nothing'."),
        ({"columns": [{"value": "nothing"}]}, "The result has no variable 'nothing'."),
        ({"columns": [{"label": "x"}]}, "Its specification lacks 'value'."),
        (
            {
                "columns": [{"value": "t", "sd": "t"}],
                "pairs": [{"first": "t", "second": "t"}],
            },
            "must both hold numbers",
        ),
        ({"columns": [{"value": "a", "sd": "t"}]}, "'t' holds no numbers."),
    ],
)
def test_tables_of_other_writers_that_cannot_be_drawn_say_why(change, words):
    node = attached(
        {"a": ("item", [1.0]), "t": ("item", np.array(["x"]))},
        columns=[Column("a")],
        rows="item",
    )
    figure = json.loads(node.attrs["figures"])[0] | change
    node.attrs["figures"] = json.dumps([figure])
    assert words in read(node).problem


def test_rows_named_in_short_tell_their_whole_path_on_hover(tmp_path):
    blocks = [f"model.layers.{i}.self_attn.q_proj.weight" for i in (0, 1)]
    data = xr.Dataset({"rank": ("block", [3.0, 4.0])}, coords={"block": blocks})
    table = Table("ranks", "Ranks", rows="block", columns=[Column("rank")])
    tree = xr.DataTree.from_dict({"ranks": attach(data, Section("Ranks", ""), [table])})
    tree.attrs = {"steps": "[0]"}
    page = report.write(tree, tmp_path / "page.html").read_text(encoding="utf-8")
    assert all(f'title="{block}"' in page for block in blocks)
    steps = data.rename(block="step").assign_coords(step=[0, 1000])
    table = Table("ranks", "Ranks", rows="step", columns=[Column("rank")])
    tree["ranks"] = xr.DataTree(attach(steps, Section("Ranks", ""), [table]))
    tree.attrs["steps"] = "[0, 1000]"
    assert 'title="1000"' not in report.write(tree, tmp_path / "p.html").read_text(
        encoding="utf-8"
    )
