"""Each sentence, tile and heading of a page leads to something that is there."""

import json
import re

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers import ability_nodes, compared_runs, report_kinds
from helpers import concept_trees as made
from helpers import report_examples as examples
from helpers.report_page import Page
from ontogeny.claims import Certainty
from ontogeny.report.concepts.atlas import read_atlas
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.report.page.html import render_page
from ontogeny.words.content import read_content


def abilities():
    courses = {"late": [0.5, 0.5, 0.5, 1], "early": [0.5, 1, 1, 1], "never": [0.5] * 4}
    node = ability_nodes.with_texts(ability_nodes.node(courses))
    return xr.DataTree.from_dict({"/pairs": node})


def failed():
    status = np.full((len(made.STEPS), 1), "failed: out of memory", dtype=object)
    coords = {"step": list(made.STEPS), "layer": ["model.layers.0.mlp"]}
    node = xr.Dataset({"status": (("step", "layer"), status)}, coords)
    return made.tree({"loss": made.loss_story(), "joint-concepts": node})


def alone():
    loss = made.loss_story([5.0], steps=made.STEPS[-1:], controls=(), learned=False)
    return made.tree({"loss": loss}, controls=(), steps=made.STEPS[-1:])


def told(tree, **attributes):
    tree.attrs |= attributes
    return tree


KINDS = {
    "developing": examples.developing_tree,
    "controlled": examples.controlled_tree,
    "random walk": lambda: examples.controlled_tree(learned=False),
    "no controls": lambda: examples.controlled_tree(controls=[]),
    "still": examples.still_tree,
    "many layers": lambda: examples.controlled_tree(layers=40),
    "formulas": examples.formula_tree,
    "hostile": examples.hostile_tree,
    "plain": examples.plain_tree,
    "odd": examples.odd_tree,
    "all figures": report_kinds.kinds_tree,
    "hostile figures": report_kinds.hostile_kinds_tree,
    "sparse figures": report_kinds.sparse_kinds_tree,
    "concepts": made.learned,
    "concepts without names": lambda: made.learned(names=False),
    "no loss": lambda: made.tree({"joint-concepts": made.joint_concepts()}),
    "no concept": lambda: made.tree({"loss": made.loss_story()}),
    "failed": failed,
    "abilities": abilities,
    "one model": alone,
    "characters": lambda: told(
        made.learned(), inputs=json.dumps([{"token_unit": "character"}])
    ),
    "epochs": lambda: told(made.learned(), clock="training epochs"),
    "runs": lambda: og.compare(compared_runs.seeds(3, controls=True)),
    "two runs": lambda: og.compare(compared_runs.seeds(2)),
}


@pytest.fixture(scope="module", params=KINDS)
def content(request):
    return read_content(KINDS[request.param]())


def test_every_link_of_the_page_leads_to_an_element(content):
    page = Page(render_page(content))
    ids = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    links = {
        attrs["href"] for _, attrs in page.tags if attrs.get("href", "").startswith("#")
    }
    # Scripts make the cards of concepts from the page's data, and open them at their address.
    first = first_screen(content)
    atlas = read_atlas(content, first.concepts if first else None)
    cards = atlas.addresses if atlas else set()
    assert links and {link[1:] for link in links} <= ids | cards
    folded = [attrs["data-folded"] for _, attrs in page.tags if "data-folded" in attrs]
    assert {place for places in folded for place in places.split()} <= ids


def test_what_is_sure_has_a_p_value_that_says_so(content):
    # A loss that fell as far as it rose in control runs was sure, beside p = 0.2.
    sure = [claim for claim in content.claims if claim.certainty is Certainty.SURE]
    assert [claim for claim in sure if claim.p_value > 0.05] == []


def test_every_lead_and_tile_has_evidence_and_is_short(content):
    screen = first_screen(content)
    if screen is None:
        assert not content.claims
        return
    assert len(screen.heading.split()) <= 12
    assert [line.lead for line in screen.sentences if len(line.lead.split()) > 20] == []
    assert all(line.link for line in screen.sentences)
    assert all(
        each.link and each.value not in ("0", "–", "-") for each in screen.numbers
    )
    assert [each.words for each in screen.numbers if len(each.words.split()) > 6] == []


def test_headings_of_the_chart_lead_to_the_section_of_their_first_row():
    content = read_content(examples.controlled_tree())
    html = render_page(content)
    headings = re.findall(r'<a href="#([^"]+)" tabindex="-1"><text class="group"', html)
    sections = {row.section for row in content.rows}
    assert len(headings) >= 4 and set(headings) <= sections
