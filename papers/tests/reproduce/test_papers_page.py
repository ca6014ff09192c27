"""The papers page says what the stored findings of the recipes say."""

import csv
import importlib
import json
import re

import numpy as np
import pytest
import xarray as xr

from helpers.paths import PAPERS
from ontogeny_papers import reproduce

EVIDENCE = PAPERS / "docs" / "evidence"
PAGE = (PAPERS / "docs" / "papers.md").read_text("utf-8")
MOST_WORDS = 25  # in a cell of a table
FAMILIES = ("concepts", "execution", "semantics")
HEADINGS = dict(zip(FAMILIES, re.split(r"^## ", PAGE, flags=re.M)[1:4], strict=True))
FILES = sorted(EVIDENCE.glob("*-*.json"))
VERDICTS = {"reproduces", "does not reproduce", "not shown", "holds", "does not hold"}
VERDICTS |= {"not shown here"}


def collector():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EVIDENCE)
        return importlib.import_module("collect")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_stored_finding_is_that_of_a_recipe(path):
    one = json.loads(path.read_text("utf-8"))
    assert path.stem == one["recipe"] + ("-quick" if one["setting"] == "quick" else "")
    assert one["source"] == reproduce.recipe(one["recipe"]).source
    assert one["seeds"] >= 1
    assert one["command"] == collector().command(
        one["recipe"], one["setting"] == "quick", one["seeds"]
    )
    claims = [verdict["claim"] for verdict in one["verdicts"]]
    assert claims and len(set(claims)) == len(claims)
    for verdict in one["verdicts"]:
        assert verdict["verdict"] in VERDICTS
        # A number, and its null or why none.
        assert verdict["measured"] and verdict["beside"]
        assert "nan" not in re.split(
            r"\W+", f"{verdict['measured']} {verdict['beside']}"
        )


def test_the_tables_are_those_of_the_stored_findings():
    found = collector()
    assert found.with_tables(PAGE, found.stored()) == PAGE


@pytest.mark.parametrize("family", FAMILIES)
def test_the_numbers_of_the_verdicts_are_those_of_the_stored_findings(family):
    text = (EVIDENCE / f"{family}.csv").read_text("utf-8")
    findings = collector().stored()
    assert text == collector().numbers(family, findings)
    rows = list(csv.DictReader(text.splitlines()))
    measured = " ".join(
        v["measured"] for one in findings.values() for v in one["verdicts"]
    )
    assert rows and all(row["measured"] in measured for row in rows)
    assert all(len(cell.split()) <= MOST_WORDS for row in rows for cell in row.values())
    shown = HEADINGS[family].count("\n| ") - 2  # without the head and its rule
    # Others go on with a long cell.
    assert sum(bool(row["verdict"]) for row in rows) == shown
    assert f"file: {family}.csv" in (EVIDENCE / "tables.md").read_text("utf-8")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_recipe_of_a_paper_has_a_finding_on_the_page(family):
    for name in reproduce.names():
        if name.startswith(f"{family}-"):
            assert re.search(
                rf"\(evidence/{name}(-quick)?\.json\)", HEADINGS[family]
            ), name


@pytest.mark.parametrize("family", FAMILIES)
def test_numbers_in_the_prose_are_measured_ones(family):
    stored = "".join(
        path.read_text("utf-8") for path in FILES if path.stem.startswith(family)
    )
    known = {number.lstrip("0") for number in re.findall(r"\d*\.\d+", stored)}
    prose = HEADINGS[family].split("<!--")[0]
    numbers = {
        number.lstrip("0")
        for number in re.findall(r"(?<![\w.])\d*\.\d+(?![\w.]*\d)", prose)
    }
    assert numbers - known == set()


@pytest.mark.parametrize(
    ("heading", "kinds"),
    [
        ("Concept dynamics", {"Figure": 17, "Table": 3, "Algorithm": 5}),
        ("Execution manifolds", {"Figure": 6}),
        ("Geometry of semantics", {"Figure": 25}),
    ],
)
def test_every_figure_has_a_recipe_or_a_reason(heading, kinds):
    where = PAGE.split("## Which figure is where")[1].split("\n## ")[0]
    rows = [
        row.split("|")[2:4]
        for row in where.splitlines()
        if row.startswith(f"| {heading}")
    ]
    for kind, last in kinds.items():
        covered = set()
        for what, recipes in rows:
            named = re.findall(r"`([\w-]+)`", recipes)
            assert set(named) <= set(reproduce.names()), recipes
            assert named or len(recipes.split()) > 3, (
                f"{what} has neither a recipe nor a reason"
            )
            for part in re.findall(rf"{kind}s? ([\d ,toand]+)", what):
                for first, _, end in re.findall(r"(\d+)( to (\d+))?", part):
                    covered |= set(range(int(first), int(end or first) + 1))
        assert covered == set(range(1, last + 1)), f"{kind}s {covered}"


@pytest.mark.parametrize(
    "path", sorted(PAPERS.glob("docs/**/*.md")), ids=lambda path: path.stem
)
def test_tables_can_be_read_and_guides_begin_with_what_one_wants(path):
    text = path.read_text("utf-8")
    rows = [line.strip("|") for line in text.splitlines() if line.startswith("|")]
    cells = [cell for row in rows for cell in re.split(r"(?<!\\)\|", row)]
    assert not [cell for cell in cells if len(cell.split()) > MOST_WORDS]
    if path.parent.name == "guides":
        assert "\n\nI want to " in text[:150], text[:150]


NUMBERS = sorted((EVIDENCE / "numbers").glob("*.json"))
WITHOUT_NUMBERS = 19  # may only fall


@pytest.mark.parametrize("path", NUMBERS, ids=lambda path: path.stem)
def test_stored_numbers_give_the_stored_sentences(path):
    found, one = collector(), json.loads((EVIDENCE / path.name).read_text("utf-8"))
    numbers = found.unpacked(json.loads(path.read_text("utf-8")))
    judge = reproduce.recipe(one["recipe"]).judge
    assert found.sentences(judge(*numbers)) == one["verdicts"]


def test_recipes_whose_numbers_are_not_stored_become_fewer():
    without = {path.stem for path in FILES} - {path.stem for path in NUMBERS}
    assert len(without) <= WITHOUT_NUMBERS, sorted(without)
    assert not {path.stem for path in NUMBERS} - {path.stem for path in FILES}


def test_numbers_are_stored_with_no_more_than_the_sentences_need():
    """Variables, labels and digits that no sentence rests on go; NaN and names come back."""
    found = collector()
    data = xr.Dataset(
        {"x": ("seed", [0.123456, np.nan, 3.0]), "unread": ("seed", [1.0, 2.0, 3.0])},
        {"seed": ["a", "b", "unread"]},
    )

    def judge(runs, least):
        values = runs["one"][0].x.values
        said = f"{values[0]:.2f} {values[1]} {runs['one'][0].seed.values[0]}"
        return [reproduce.Verdict("c", bool(values[0] > least), said, "none")]

    kept = json.loads(
        json.dumps(found.smallest(judge, [{"one": [data], "other": [data]}, 0.1]))
    )
    assert set(kept[0]) == {"one"} and set(kept[0]["one"][0]["variables"]) == {
        "x",
        "seed",
    }
    assert kept[0]["one"][0]["variables"]["x"][2] == [0.12, "nan"] and kept[1] == 0.1
    again = judge(*found.unpacked(kept))
    assert found.sentences(again) == found.sentences(judge({"one": [data]}, 0.1))
