"""The papers page says what the stored findings of the recipes say."""

import csv
import html
import importlib
import json
import re

import pytest

from helpers.paths import PAPERS
from ontogeny.claims import Certainty, Kind, Reason
from ontogeny.errors import ArgumentError
from ontogeny_papers import PUBLIC, reproduce
from ontogeny_papers.reproduce.concepts.extractors import CONVEX
from ontogeny_papers.reproduce.stored_claims import CLAIMS, listed

EVIDENCE = PAPERS / "docs" / "evidence"
PAGE = (PAPERS / "docs" / "papers.md").read_text("utf-8")
MOST_WORDS = 25  # in a cell of a table
FAMILIES = ("concepts", "execution", "semantics")
HEADINGS = dict(zip(FAMILIES, re.split(r"^## ", PAGE, flags=re.M)[1:4], strict=True))
FILES = sorted(EVIDENCE.glob("*-*.json"))
KINDS = {Kind.REPRODUCES.value, Kind.CONTRADICTS.value}
# Of convex NMF there are several solvers, and its numbers are those of one.
SOLVERS = ("(accelerated)", "(multiplicative)", "(as printed)")


def of_evidence(name):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EVIDENCE)
        return importlib.import_module(name)


def collector():
    return of_evidence("collect")


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
        assert verdict["kind"] in KINDS and Certainty(verdict["certainty"])
        is_open = verdict["certainty"] in ("open", "not tested")
        assert bool(verdict["reason"]) == is_open
        if is_open:
            assert Reason(verdict["reason"])
        # Nothing is sure beside a number that nobody knows.
        if verdict["certainty"] in ("sure", "as controls"):
            assert "unknown" not in f"{verdict['measured']} {verdict['beside']}"
        # A number, and its null or why none.
        assert verdict["measured"] and verdict["beside"]
        assert "nan" not in re.split(
            r"\W+", f"{verdict['measured']} {verdict['beside']}"
        )


def test_the_counts_are_those_of_the_stored_findings():
    found = collector()
    assert found.with_counts(PAGE, found.stored()) == PAGE
    assert PAGE.count("<!-- count of ") == len(FAMILIES)


def test_the_site_gets_a_row_for_every_claim_with_its_files():
    made = of_evidence("claims_table")
    heads, rule, *lines = made.table().splitlines()
    rows = list(csv.DictReader(CLAIMS.read_text("utf-8").splitlines()))
    assert PAGE.count(made.MARK) == 1 and len(lines) == len(rows) > 150
    assert {line.count(" | ") for line in (heads, rule, *lines)} == {4}
    for line, row in zip(lines, rows, strict=True):
        links = re.findall(r"\]\((\S+?)\)", line)
        assert len(links) == (2 if row["numbers"] else 1), line
        assert all((PAPERS / "docs" / link).exists() for link in links), line
        assert row["command"] in line and row["certainty"] in line
        claim = html.unescape(re.search(r"<summary>(.*?)</summary>", line)[1])
        not_claimed = "" if row["of_paper"] == "yes" else " (not claimed)"
        assert claim == f"{row['claim']}{not_claimed}"
        assert row["measured"] in html.unescape(line)


def test_nothing_in_a_claim_is_markup():
    text = of_evidence("claims_table")._text("a|b *c* _d_ `e` <i> [f](g) mean |r|")
    assert not set("|*_`<>[]()") & set(text)
    assert html.unescape(text) == "a|b *c* _d_ `e` <i> [f](g) mean |r|"


def test_the_table_in_the_package_is_that_of_the_stored_findings():
    found = collector().stored()
    text = CLAIMS.read_text("utf-8")
    assert text == collector().claims_csv(found)
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == sum(len(one["verdicts"]) for one in found.values())
    assert all((EVIDENCE / row["findings"]).exists() for row in rows)
    assert all((EVIDENCE / row["numbers"]).exists() for row in rows if row["numbers"])


def unnamed(claim):
    """Whether a claim on convex NMF leaves out by which solver."""
    return "convex NMF" in claim and not any(name in claim for name in SOLVERS)


def test_a_row_on_convex_nmf_names_its_solver():
    claims = [
        v["claim"] for one in collector().stored().values() for v in one["verdicts"]
    ]
    assert not list(filter(unnamed, claims))
    assert sum("convex NMF" in claim for claim in claims) > 10
    assert unnamed("convex NMF is Lipschitz") and not unnamed(f"{CONVEX} is Lipschitz")
    rows = csv.DictReader(CLAIMS.read_text("utf-8").splitlines())
    of_one = [row["claim"] for row in rows if row["recipe"] == "concepts-figure-1"]
    assert of_one and all("convex NMF" in claim for claim in of_one)


def test_the_list_in_the_terminal_is_in_the_order_of_a_column():
    heads, rows = listed("certainty")
    column = [row[heads.index("certainty")] for row in rows]
    assert column == sorted(column) and len(rows) == len(listed()[1])
    assert {word.split(":")[0] for word in column} == {c.value for c in Certainty}
    with pytest.raises(ArgumentError, match="--by must be"):
        listed("colour")


def test_the_terminal_says_what_the_site_says():
    heads, rows = listed()
    made = of_evidence("claims_table")
    assert heads == made.HEADS
    for line, row in zip(made.table().splitlines()[2:], rows, strict=True):
        cells = re.sub(r"\[(.*?)\]\(\S+\)", r"\1", line).strip("| ").split(" | ")
        claim = re.search(r"<summary>(.*?)</summary>", cells[1])[1]
        assert (cells[0], html.unescape(claim), *cells[2:]) == row


@pytest.mark.parametrize("family", FAMILIES)
def test_every_recipe_of_a_paper_has_a_finding_on_the_page(family):
    table = of_evidence("claims_table").table()
    for name in reproduce.names():
        if name.startswith(f"{family}-"):
            stored = re.search(rf"\(evidence/{name}(-quick)?\.json\)", table)
            assert stored or f"| `{name}` judges it" in PAGE, name


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


def test_the_reference_lists_every_public_name():
    page = (PAPERS / "docs" / "reference.md").read_text("utf-8")
    listed = re.findall(r"^   ontogeny_papers\.([a-z_.]+\.\w+)$", page, re.M)
    names = [
        f"{module}.{name}"
        for modules in PUBLIC.values()
        for module, found in modules.items()
        for name in found
    ]
    rooms = ["reproduce.tasks", "reproduce.training"]
    assert sorted(listed) == sorted(names + rooms)
