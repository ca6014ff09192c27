"""The page as a file: self-contained, safe, complete, and honest about what changed."""

import base64
import hashlib
import json
import math
import re
import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

from helpers import report_examples as examples
from helpers.report_page import Page
from ontogeny import report
from ontogeny.claims import Certainty, Kind
from ontogeny.errors import ArgumentError
from ontogeny.figures import Curves, Section, attach
from ontogeny.report.page.html import render_page
from ontogeny.report.page.payload import build_payload
from ontogeny.words.content import read_content


def page_of(tree, **options):
    return Page(render_page(read_content(tree), **options))


def decoded(array):
    kind = {"f4": "<f4", "f8": "<f8", "i4": "<i4"}[array["dtype"]]
    return np.frombuffer(base64.b64decode(array["bdata"]), kind).reshape(array["shape"])


def drawn(page, tree, figure):
    """A figure's value as the page holds it and as the result does."""
    place = figure["arrays"][figure["value"]][0]
    array = page.data["nodes"][figure["node"]]["arrays"][place]
    variable = tree[page.data["nodes"][figure["node"]]["path"]][array["name"]]
    return decoded(array), variable


def test_write_returns_the_path_of_one_html_file(tmp_path):
    path = report.write(examples.developing_tree(), tmp_path / "new" / "report.html")
    assert path == tmp_path / "new" / "report.html"
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_nothing_in_the_page_is_fetched():
    page = page_of(examples.developing_tree())
    references = [
        attrs[name]
        for _, attrs in page.tags
        for name in ("src", "href", "srcset", "data", "action", "poster")
        if attrs.get(name)
    ]
    assert references and all(r.startswith("#") for r in references)
    assert not page.all("link") and not page.all("iframe")
    style = (
        render_page(read_content(examples.plain_tree()))
        .split("<style>")[1]
        .split("</style>")[0]
    )
    assert "@import" not in style and "url(" not in style


def test_content_policy_allows_exactly_the_scripts_of_the_page():
    page = page_of(examples.developing_tree())
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv"))
    assert "default-src 'none'" in policy
    allowed = set(re.findall(r"'(sha256-[^']+)'", policy))
    programs = [
        text for attrs, text in page.scripts if attrs.get("type") != "application/json"
    ]
    hashes = {
        "sha256-" + base64.b64encode(hashlib.sha256(t.encode()).digest()).decode()
        for t in programs
    }
    assert len(programs) == 2 and hashes == allowed
    assert "'unsafe-eval'" not in policy and "script-src 'unsafe-inline'" not in policy
    assert not [k for _, attrs in page.tags for k in attrs if k.startswith("on")]


def test_plotting_library_and_data_are_there_once():
    text = render_page(read_content(examples.developing_tree()))
    assert text.count("plotly.js (cartesian") == 1
    arrays = sum(len(node["arrays"]) for node in Page(text).data["nodes"].values())
    data = next(t for a, t in Page(text).scripts if a.get("id") == "data")
    assert data.count('"bdata"') == arrays + len(Page(text).data["rows"])
    names = [
        (n["path"], a["name"])
        for n in Page(text).data["nodes"].values()
        for a in n["arrays"]
    ]
    assert len(names) == len(set(names))


def test_arrays_equal_the_result_bit_for_bit():
    tree = examples.developing_tree()
    page = page_of(tree)
    compared = 0
    for node in page.data["nodes"].values():
        for array in node["arrays"]:
            variable = tree[node["path"]][array["name"]].transpose(*array["dims"])
            np.testing.assert_array_equal(decoded(array), variable.values)
            compared += 1
    assert compared > 20


def test_selection_of_a_figure_is_made_before_drawing():
    tree = examples.developing_tree()
    node = tree["concepts-ica"].to_dataset()
    figure = Curves(
        "p", "P", value="distance_to_last", select={"distance": "procrustes"}
    )
    changed = xr.DataTree.from_dict({"n": attach(node, Section("N", "n"), [figure])})
    page = page_of(changed)
    array = page.data["nodes"]["section-n"]["arrays"][0]
    assert array["dims"] == ["layer", "step"]
    expected = node["distance_to_last"].sel(distance="procrustes").values
    np.testing.assert_array_equal(decoded(array), expected)


def sure_of(tree):
    """How many rows surely changed, and whether anything is surely beyond controls or learned."""
    claims = [c for c in read_content(tree).claims if c.certainty is Certainty.SURE]
    strong = [c for c in claims if c.kind in (Kind.LEARNED, Kind.BEYOND_MOTION)]
    return sum(c.kind is Kind.CHANGED for c in claims), len(strong)


@pytest.mark.parametrize(
    ("tree", "heading", "changed"),
    [
        (examples.developing_tree(), "not tested against controls", 17),
        (examples.still_tree(), "Whether loss on held-out text changed is open", 0),
        (examples.plain_tree(), "Nothing was claimed", 0),
    ],
)
def test_a_page_without_controls_says_what_changed_and_no_more(tree, heading, changed):
    assert sure_of(tree) == (changed, 0)
    text = render_page(read_content(tree))
    assert heading in text and Page(text).one(id="verdict")


def test_motion_of_the_weights_never_counts_in_the_verdict():
    tree = examples.still_tree()
    assert bool(tree["displacement"]["changed"].all())
    assert sure_of(tree) == (0, 0)
    words = page_of(tree).words
    assert "Not counted: distance from start changed in 4 of 4 measures" in words
    assert "does not say what the model does" in words


def test_sentences_carry_their_uncertainty():
    words = page_of(examples.controlled_tree()).words
    assert "half by step 72 (62–85)" in words
    facts = page_of(examples.controlled_tree()).data["rows"][0]["facts"]
    assert "after step 840 any further change is too small to measure" in facts


def test_statements_findings_and_notes_of_the_result_are_in_the_page():
    page = page_of(examples.developing_tree())
    for expected in (
        "Loss went from 8.30 to 4.20 nats per token.",
        "Steps 550 and 600 hold identical weights.",
        "The raw Frobenius distance measures mostly order, sign and rotation.",
        "Algorithm 2; Definition 8.5",
        "EuroBertForMaskedLM, 1.81 million parameters",
        "26 checkpoints, steps 0 to 1,000",
        "250 texts, 31,204 tokens",
        "observables.concepts.n_concepts",
    ):
        assert expected in page.words


def test_every_figure_has_data_pictures_code_and_definition():
    tree = examples.developing_tree()
    page = page_of(tree)
    figures = page.data["figures"]
    assert (
        len([a for a in page.all("figure") if "data-figure" in a]) == len(figures) == 8
    )
    actions = [a["data-action"] for a in page.all("button") if "data-action" in a]
    assert sorted(set(actions)) == ["csv", "png", "svg"]
    assert len(actions) == 3 * (len(figures) + 1)
    assert (
        "tree['concepts-ica'].to_dataset()[['distance_to_last', 'low', 'high']]"
        in page.words
    )
    assert "tree['variance-rank']['variance_rank']" in page.words


def test_hostile_names_stay_text():
    text = render_page(read_content(examples.hostile_tree()))
    page = Page(text)
    assert [a.get("type") for a, _ in page.scripts] == [
        "application/json",
        "text/plain",
        None,
    ]
    assert not page.all("img")
    first, *leads = page.all("b")
    assert first == {"id": "now-step"} and leads, "and the sentences"
    assert all(lead in ({}, {"class": "unsure"}) for lead in leads)
    assert not [k for _, attrs in page.tags for k in attrs if k.startswith("on")]
    assert examples.HOSTILE[0] in page.words and examples.HOSTILE[1] in page.words
    data = next(t for a, t in page.scripts if a.get("id") == "data")
    assert "<" not in data and "\u2028" not in data
    assert page.data["title"] == examples.HOSTILE[0]
    assert "\x00" not in text


def test_large_run_stays_under_the_budget():
    tree = examples.huge_tree()
    text = render_page(read_content(tree))
    assert len(text.encode()) < 15e6
    assert tree["attention-entropy"].sizes == {
        "row": 32,
        "step": 154,
        "layer": 32,
        "head": 32,
    }
    page = Page(text)
    maps = [f["id"] for f in page.data["figures"] if f["id"].endswith("-map")]
    assert len(maps) == 4 and len(page.data["figures"]) == 7 + 4


def test_thinning_keeps_the_ends_and_says_so():
    tree = examples.developing_tree(steps=range(0, 2000, 10))
    text = render_page(read_content(tree), budget=30_000)
    page = Page(text)
    total = sum(
        math.prod(a["shape"]) for n in page.data["nodes"].values() for a in n["arrays"]
    )
    assert total <= 30_000 < tree["matrix"]["between"].size
    noticed = 0
    for figure in page.data["figures"]:
        values, variable = drawn(page, tree, figure)
        if values.size < variable.size:
            noticed += 1
            assert figure["notice"] and figure["notice"] in page.words
            node = page.data["nodes"][figure["node"]]
            for dimension, axis in node["axes"].items():
                assert axis["values"][0] == variable[dimension].values[0]
                assert axis["values"][-1] == variable[dimension].values[-1]
        else:
            np.testing.assert_array_equal(values, variable.values)
    assert 1 <= noticed < len(page.data["figures"])  # small nodes keep all


@pytest.mark.parametrize(
    "tree",
    [
        examples.plain_tree(steps=[0]),
        examples.plain_tree(steps=[7]),
        examples.plain_tree(steps=[0, 3]),
        examples.plain_tree(layers=1),
        examples.plain_tree(fill=math.nan),
        examples.plain_tree(fill=2.0),
        examples.plain_tree(steps=range(1000)),
        examples.developing_tree(steps=[0]),
        examples.developing_tree(layers=2, steps=range(0, 1000, 10)),
    ],
)
def test_small_long_and_empty_results_are_drawn(tree):
    page = page_of(tree)
    assert page.data["figures"] and "nan" not in page.words.lower().split()
    assert report.chart_svg(tree).startswith("<svg")


def test_figures_that_cannot_be_drawn_say_why():
    node = examples.plain_tree()["plain"].to_dataset()
    figures = [
        {"kind": "cloud", "value": "value"},
        {"kind": "curves", "value": "nothing", "x": "step"},
        {"kind": "heatmap", "value": "value", "x": "step", "y": "head"},
        {"kind": "curves", "value": "value", "x": "step", "select": {"layer": "no"}},
    ]
    node.attrs["figures"] = json.dumps(figures)
    page = page_of(xr.DataTree.from_dict({"plain": node}))
    assert page.data["figures"] == []
    for expected in (
        "the figure's kind is 'cloud'.",
        "The result has no variable 'nothing'.",
        "'value' has no dimension 'head'",
        "The selection {'layer': 'no'} is not in 'value'.",
    ):
        assert expected in page.words


def test_leftover_dimensions_become_choices():
    page = page_of(examples.developing_tree())
    matrix = next(f for f in page.data["figures"] if f["node"] == "section-matrix")
    assert matrix["choose"] == ["extractor"]
    null = next(
        f for f in page_of(examples.plain_tree()).data["figures"] if f["kind"] == "null"
    )
    assert null["choose"] == ["step"]


def test_bands_in_relative_form_are_taken_where_the_result_has_them():
    node = examples.developing_tree()["concepts-ica"].to_dataset()
    node["floor_high_relative"] = node["floor_high"] / 30
    page = page_of(xr.DataTree.from_dict({"n": node}))
    arrays = page.data["nodes"]["section-n"]["arrays"]
    (figure,) = page.data["figures"]
    absolute, relative = figure["arrays"][figure["bands"][0]["upper"]]
    assert (arrays[absolute]["name"], arrays[relative]["name"]) == (
        "floor_high",
        "floor_high_relative",
    )
    assert figure["arrays"][figure["bands"][0]["lower"]][1] is None


def test_reasons_of_missing_cells_are_in_the_data():
    page = page_of(examples.developing_tree())
    status = page.data["nodes"]["section-concepts-ica"]["status"]
    assert status["dims"] == ["step", "layer"]
    assert status["cells"] == {"9,1": "failed: ICA did not converge in 400 iterations"}


def test_loss_comes_first_and_motion_last_whatever_the_order_of_the_store():
    nodes = examples.developing_tree()
    mixed = xr.DataTree.from_dict(
        {k: nodes[k].to_dataset() for k in sorted(nodes.children)}
    )
    order = [node.path for node in read_content(mixed).nodes]
    assert order[0] == "loss" and set(order[-2:]) == {"displacement", "variance-rank"}


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        (xr.Dataset(), "tree must be a result of Study.run or open_study"),
        (xr.DataTree(), "at least one node with data"),
        (
            xr.DataTree.from_dict({"a": xr.Dataset({"v": ("x", [1.0])})}),
            "training steps",
        ),
    ],
)
def test_results_that_are_none_are_refused(tree, words, tmp_path):
    with pytest.raises(ArgumentError, match=words):
        report.write(tree, tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


def test_attribute_that_is_no_json_is_named():
    tree = examples.plain_tree(findings="[broken")
    with pytest.raises(ArgumentError, match="'findings' of the root must hold JSON"):
        report.chart_svg(tree)


def test_folder_as_path_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="it is a folder"):
        report.write(examples.plain_tree(), tmp_path)


def test_interrupted_writing_leaves_the_old_page(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(path), "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        report.write(examples.plain_tree(), path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.slow
def test_reopened_store_gives_the_same_figures(tmp_path):
    tree = examples.developing_tree()
    tree.to_zarr(tmp_path / "result.zarr", zarr_format=2, consolidated=True)
    again = xr.open_datatree(tmp_path / "result.zarr", engine="zarr")
    one, two = page_of(tree).data, page_of(again).data
    assert {f["id"] for f in one["figures"]} == {f["id"] for f in two["figures"]}
    assert one["nodes"] == two["nodes"]


def test_room_opens_without_models_or_plotting():
    code = (
        "import sys, ontogeny.report; "
        "print([m for m in ('torch', 'transformers', 'sklearn') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_places_that_links_name_are_there_once_and_do_not_depend_on_order():
    tree = examples.developing_tree()
    page = page_of(tree)
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    named = {f["id"] for f in page.data["figures"]} | {
        r["id"] for r in page.data["rows"]
    }
    assert named | {"verdict", "audit", "chart", "section-loss"} <= set(ids)
    shuffled = xr.DataTree.from_dict(
        {n: tree[n].to_dataset() for n in reversed(list(tree))}
    )
    assert {f["id"] for f in page_of(shuffled).data["figures"]} == {
        f["id"] for f in page.data["figures"]
    }
    links = [a["data-link"] for a in page.all("button") if "data-link" in a]
    assert sorted(links) == sorted([*(f["id"] for f in page.data["figures"]), "chart"])


def test_audit_is_a_section_with_a_table():
    tree = examples.developing_tree()
    steps = list(range(0, 14_000, 1000))
    more = examples.finding(steps, "Fourteen revisions hold two payloads.", "suspected")
    tree.attrs["findings"] = json.dumps(
        [examples.finding([550, 600], "Identical."), more]
    )
    page = page_of(tree)
    assert page.one(id="audit")
    assert (
        "identical suspected 0, 1,000, 2,000" in page.words and "13,000" in page.words
    )
    assert "2 findings of the audit" in " ".join(page.words.split())


def test_audit_without_findings_says_so_and_no_audit_says_nothing():
    clean = page_of(examples.plain_tree(findings="[]"))
    assert clean.one(id="audit") and "Nothing was found." in clean.words
    assert not [
        a
        for a in page_of(examples.plain_tree()).all("section")
        if a.get("id") == "audit"
    ]


def test_the_page_names_rows_and_level():
    words = page_of(examples.developing_tree()).words
    assert "19 measures were tested against chance at α = 0.01" in words
    tree = examples.developing_tree()
    node = tree["concepts-ica"].to_dataset()
    node["p_value"][:] = 0.04  # tested at another level, which the result does not name
    words = page_of(xr.DataTree.from_dict({"concepts-ica": node})).words
    assert "6 measures were tested" in words and "α" not in words


def test_statements_stand_in_their_section_alone_and_as_they_are():
    tree = examples.developing_tree()
    text = "model.layers.2.mlp is half-way first."
    tree["concepts-ica"].attrs["statements"] = json.dumps([text])
    assert page_of(tree).words.count(text) == 1


@pytest.mark.parametrize("make", [examples.developing_tree, examples.plain_tree])
def test_page_opens_at_the_last_step(make):
    content = read_content(make())
    assert build_payload(content, [], {})["start"] == len(content.steps) - 1
