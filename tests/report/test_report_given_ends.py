"""Distances to the last checkpoint are 0 there by definition: they count in no verdict."""

import numpy as np
import pytest
import xarray as xr

from helpers import report_examples as examples
from ontogeny import compare
from ontogeny.claims import Claim, Kind, Subject, to_dataset
from ontogeny.claims.vocabulary import Certainty
from ontogeny.report.chart.groups import arrange
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.words.basis import basis
from ontogeny.words.catalogue.sentences import UNCOUNTED
from ontogeny.words.content import read_content
from ontogeny.words.formats import sentence_start
from ontogeny.words.page_claims import claims_of_result
from ontogeny.words.sections import mark, section_sentences
from ontogeny.words.sentences import OF_ROWS
from ontogeny.words.story import Story

NODE = "concepts-ica"
LAYERS = 6


def with_distances(to="reference", reference=None):
    """A run whose concepts are compared with a checkpoint, the last one unless another is given."""
    tree = examples.controlled_tree(layers=LAYERS)
    data = tree[NODE].to_dataset(inherit=False)
    step = int(data.step.values[-1]) if reference is None else reference
    texts = {
        name: ("row", np.full(data.sizes["row"], text, object))
        for name, text in (("row_to", to), ("row_compares", "distance"))
    }
    tree[NODE] = xr.DataTree(data.assign(texts).assign_attrs(reference_step=step))
    return tree


def on_rows(tree):
    return [
        c
        for c in claims_of_result(tree)
        if c.kind in OF_ROWS and c.subject.node == NODE
    ]


@pytest.fixture(scope="module")
def content():
    return read_content(with_distances())


def test_they_make_no_claim_unless_their_reference_is_another_checkpoint():
    steps = with_distances()[NODE].step.values
    assert not on_rows(with_distances())
    assert not on_rows(with_distances(to="last", reference=0))
    assert on_rows(with_distances(reference=int(steps[3])))
    assert on_rows(examples.controlled_tree(layers=LAYERS))


def test_claims_that_an_earlier_version_stored_of_them_are_not_read():
    tree = with_distances()
    quantity = str(tree[NODE].row_quantity.values[0])
    old = Claim(Kind.CHANGED, Subject(NODE, quantity), Certainty.SURE, first=1, last=0)
    own = Claim(Kind.CHANGED, Subject("loss", "loss"), Certainty.SURE, first=8, last=5)
    stored = xr.DataTree(to_dataset([old, own]), children=dict(tree.children))
    assert claims_of_result(stored) == [own]


def test_all_places_count_the_same_measures(content):
    counted = [row for row in content.rows if row.is_counted]
    assert len(counted) == 1 + LAYERS and len(content.rows) > len(counted) + LAYERS
    first = first_screen(content)
    assert any(f" of {LAYERS} other measures" in line.lead for line in first.sentences)
    words = " ".join(basis(content))
    assert f"{len(counted)} measures were tested" in words
    assert (
        f"{LAYERS} distances to the end" in words and "0 there by definition" in words
    )
    assert len({c.subject.key for c in content.claims if c.kind in OF_ROWS}) == len(
        counted
    )


def test_the_chart_folds_them_under_what_they_are(content):
    groups = {group.title: group for group in arrange(content.rows)}
    group = groups[sentence_start(UNCOUNTED["last"])]
    assert group.folded and {row.section for row in group.rows} == {f"section-{NODE}"}
    shown = [row for each in groups.values() if not each.folded for row in each.rows]
    assert all(row.is_counted for row in shown)


def test_their_section_says_what_they_are_and_no_verdict(content):
    node = next(node for node in content.nodes if node.path == NODE)
    assert mark(content, node) == ("motion", "distances to the end")
    assert not [one for one in section_sentences(content, node) if one.claims]


def test_alone_they_are_said_to_be_all_that_was_measured():
    tree = with_distances()
    alone = xr.DataTree.from_dict({NODE: tree[NODE].to_dataset(inherit=False)})
    alone.attrs.update({n: v for n, v in tree.attrs.items() if n != "controls"})
    assert Story(read_content(alone)).heading.text == (
        "Only distances to the end were measured"
    )


def test_runs_that_end_at_different_steps_have_none_among_their_rows(tmp_path):
    long = with_distances()
    short = with_distances()
    short[NODE] = xr.DataTree(
        short[NODE].to_dataset(inherit=False).isel(step=slice(None, -2))
    )
    short[NODE].attrs["reference_step"] = int(short[NODE].step.values[-1])
    compared = read_content(compare({"long": long, "short": short}))
    rows = [row for row in compared.rows if row.section == f"section-{NODE}"]
    assert rows and not any(row.is_counted for row in rows)
