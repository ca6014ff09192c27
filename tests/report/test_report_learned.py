"""Concepts beyond the token on the page: they lead it, beside controls, and can be refuted."""

import base64
import dataclasses
import json
import math
import re

import numpy as np
import pytest
import xarray as xr

from helpers import concept_trees as made
from helpers.learned_tree import STEPS, learned_concepts
from ontogeny.report.chart.canvas import NARROW, WIDE, text_width
from ontogeny.report.concepts.appeared import appeared
from ontogeny.report.concepts.atlas import read_atlas
from ontogeny.report.concepts.learned import (
    best_of_controls,
    control_words,
    found_words,
)
from ontogeny.report.concepts.lives import choice_words, marks_words
from ontogeny.report.concepts.nodes import read_concepts
from ontogeny.report.first_screen import screen
from ontogeny.report.first_screen.numbers import numbers_of
from ontogeny.report.page.html import render_page
from ontogeny.report.page.life import _brief, life_picture
from ontogeny.report.paper.contact_sheet import draw_contact_sheet
from ontogeny.report.style import STRENGTHS
from ontogeny.words.catalogue import learned_concepts as learned_words
from ontogeny.words.catalogue.concepts import LIVES, UNCONFIRMED
from ontogeny.words.content import read_content


def content_of(*, joint=True, **options):
    nodes = {"learned-concepts": learned_concepts(**options)}
    if joint:
        nodes["joint-concepts"] = made.joint_concepts(steps=STEPS)
    return read_content(made.tree(nodes, steps=STEPS))


@pytest.fixture(scope="module")
def content():
    return content_of()


@pytest.fixture(scope="module")
def concepts(content):
    return read_concepts(content)


@pytest.fixture(scope="module")
def payload(content, concepts):
    return read_atlas(content, concepts).payload


def test_they_lead_the_page_and_joint_concepts_follow_in_the_menu(content, concepts):
    atlas = read_atlas(content, concepts)
    assert concepts.node.path == "learned-concepts"
    assert [each["path"] for each in atlas.further] == ["joint-concepts"]
    assert not atlas.further[0]["learned"]


def test_what_a_layer_lacks_is_no_concept(concepts):
    assert len(concepts.every) == 5


def test_names_that_no_control_reaches_stand_first(concepts):
    names = [(concept.name, concept.beyond_controls) for concept in concepts.with_name]
    assert names == [
        ("word modal", True),
        ("after “the”", True),
        ("after “said”", False),
    ]


def test_counts_stand_beside_those_of_controls_in_one_line(content, concepts):
    line = appeared(content, concepts)
    assert line.lead == ("2 named concepts were born that no control reaches.")
    assert line.text.startswith(
        "In all, 3 of 5 concepts beyond the token were born (controls 0 of 2–4); 3 have a name "
        "(controls 0–2); an untrained model has 2. Such as: word modal; after “the”"
    )
    assert "No birth has a name" not in line.text


def test_births_are_bold_only_where_a_name_tells_them_from_those_of_controls(
    content, concepts
):
    assert appeared(content, concepts).sure
    alone = learned_concepts().drop_vars(
        [name for name in learned_concepts().variables if name.endswith("_control")]
    )
    for data in (alone, alone.assign(named_phi=alone.named_phi * 0)):
        told = read_content(made.tree({"learned-concepts": data}, steps=STEPS))
        assert not appeared(told, read_concepts(told)).sure


def test_births_without_a_name_are_said_to_be_no_proof():
    data = learned_concepts()
    unnamed = data.assign(
        named_phi=data.named_phi * 0, n_born_low=("layer", [1.0, 1.0])
    ).assign(n_born_high=("layer", [2.0, 3.0]))
    lead, births, *_ = found_words(unnamed)  # neither a zero leads nor such births
    assert lead == "3 of 5 concepts beyond the {token} have a name (controls 0–2)"
    assert births.startswith("3 were born (refits 2–5") and "controls 0" in births
    content = read_content(made.tree({"learned-concepts": unnamed}, steps=STEPS))
    line = appeared(content, read_concepts(content))
    assert "No birth has a name that no control run reaches." in line.text


def of_unnamed_births(controls=True, others=True):
    """Return a node whose births have no name, as those of words in random order."""
    data = learned_concepts()
    has_name = (data.concept_kind != "born") & others
    if not controls:
        data = data.drop_vars([name for name in data if "run" in data[name].dims])
    return data.assign(
        name=data["name"].where(has_name, ""),
        named_phi=data.named_phi.where(has_name, 0.0),
        n_named=("layer", [float(others), 0.0]),
    )


@pytest.mark.parametrize(
    ("options", "lead", "tile"),
    [
        ({}, "1 of 5 concepts beyond the token has a name (controls 0–2).", "1"),
        ({"controls": False}, "1 of 5 concepts beyond the token has a name.", "1"),
        (
            {"others": False},
            "None of 5 concepts beyond the token has a name (controls 0–2).",
            "",
        ),
        (
            {"others": False, "controls": False},
            "None of 5 concepts beyond the token has a name.",
            "",
        ),
    ],
)
def test_no_number_of_births_without_a_name_is_bold(options, lead, tile):
    """A run on words in random order had 29: a reader takes the number for concepts."""
    nodes = {"learned-concepts": of_unnamed_births(**options)}
    content = read_content(made.tree(nodes, steps=STEPS))
    concepts = read_concepts(content)
    line = appeared(content, concepts)
    assert line.lead == lead
    assert "3 were born" in line.text
    figures = [
        each for each in numbers_of(content, None, concepts) if "concepts" in each.words
    ]
    assert [each.value for each in figures] == ([tile] if tile else [])
    assert not any(each.words.startswith("concepts born") for each in figures)
    assert read_atlas(content, concepts).payload["about"].count("were born") <= 1


def test_births_without_a_control_run_are_said_to_be_no_proof():
    data = learned_concepts()
    alone = data.drop_vars([name for name in data if "run" in data[name].dims])
    content = read_content(made.tree({"learned-concepts": alone}, steps=STEPS))
    line = appeared(content, read_concepts(content))
    assert line.lead == "3 of 5 concepts beyond the token were born."
    assert line.text.endswith(learned_words.BIRTHS)


def test_a_zero_stands_with_its_controls_in_the_section_at_least():
    data = learned_concepts()
    none = data.assign(
        name=data["name"].where(False, ""),
        concept_kind=data.concept_kind.where(False, "grows"),
        concept_born=data.concept_born * np.nan,
        **{name: data[name] * 0 for name in ("n_born", "n_named")},
    )
    nodes = {"loss": made.loss_story(steps=STEPS), "learned-concepts": none}
    content = read_content(made.tree(nodes, steps=STEPS))
    first = screen.first_screen(content)
    assert not any("born" in line.lead for line in first.sentences)
    assert (
        read_atlas(content, first.concepts)
        .payload["about"]
        .startswith(
            "0 of 5 concepts beyond the token were born (controls 0 of 2–4); 0 have a name "
            "(controls 0–2); an untrained model has 2. "
        )
    )


def test_without_a_concept_the_line_leads_to_its_section():
    data = learned_concepts()
    none = data.assign(
        again=data.again * np.nan,
        concept_kind=data.concept_kind.where(False, ""),
        **{name: data[name] * 0 for name in ("n_again", "n_born", "n_named")},
    )
    content = read_content(made.tree({"learned-concepts": none}, steps=STEPS))
    concepts = read_concepts(content)
    line = appeared(content, concepts)
    assert line.lead.startswith("No concept beyond the token is found")
    assert read_atlas(content, concepts) is None
    assert line.link != "#atlas"
    assert f'id="{line.link[1:]}"' in render_page(content)


def test_a_layer_that_failed_leaves_the_page():
    data = learned_concepts()
    failed = data.assign(
        n_untrained=data.n_untrained.where(data.layer == "layers.0"),
        n_again=data.n_again.where(data.layer == "layers.0"),
        again=data.again.where(data.layer == "layers.0"),
    )
    assert len(control_words(failed, 0)) == 3 and len(control_words(failed, 1)) == 2


def test_births_are_counted_that_the_steps_of_controls_can_show(content, concepts):
    # Controls are read at steps 0, 8 and 64; a birth lies between 2 and 8.
    assert concepts.born_seen == 3
    said = {each.words: each.value for each in numbers_of(content, None, concepts)}
    assert said["named births beyond controls; 3 born"] == "2"


def test_no_control_run_is_said_only_where_none_was_read():
    data = learned_concepts()
    unnamed = data.assign(named_phi=data.named_phi * 0).drop_vars("n_born_control")
    content = read_content(made.tree({"learned-concepts": unnamed}, steps=STEPS))
    words = [each.words for each in numbers_of(content, None, read_concepts(content))]
    assert "named concepts; no control run" not in words
    assert any(each.startswith("named concepts (controls") for each in words)


def test_births_that_controls_cannot_show_are_said():
    data = learned_concepts()
    late = data.assign(concept_born_before=data.concept_born_before * 8)  # step 64
    content = read_content(made.tree({"learned-concepts": late}, steps=STEPS))
    line = appeared(content, read_concepts(content))
    seen = "Control runs were read at 3 steps, where 0 of the births can be seen."
    assert seen in line.text


def test_a_card_can_be_refuted(payload):
    (card,) = [each for each in payload["concepts"] if each.get("name") == "word modal"]
    detected, beside = card["told"]
    assert detected == (
        "Its name holds at 90 %, 60 % and <1 % of its strongest, middle and all other places "
        "(other texts; AUC 0.80, 0.70–0.90)"
    )
    assert beside == "No control run names this as well"
    assert card["half"] == 0.9 and card["refits"] == 0.9
    assert card["of_learned"].endswith("does not predict: correlation 0.50")
    assert card["histogram"] == [90, 7, 3] and card["words"] == ["said", "the"]
    assert "sharp" not in card
    direction = payload["layers"][card["layer"]]["direction"]
    direction = direction.replace("{number}", str(card["number"]))
    lines = direction.splitlines()
    assert len(lines) == 2 and "layer='layers.0', step=64" in lines[0]
    compile(direction, "direction", "exec")


def test_a_card_without_a_name_tells_of_its_rule(payload):
    cards = [each for each in payload["concepts"] if not each.get("name")]
    assert len(cards) == 2
    assert all(each["told"][0].startswith("The best rule, ") for each in cards)
    assert all(len(each["told"]) == 1 for each in cards)


def test_a_rule_that_tells_nothing_is_not_shown():
    node = learned_concepts()
    node["name_auc"] = node.name_auc.where(node["name"] != "", 0.51)
    content = read_content(made.tree({"learned-concepts": node}, steps=STEPS))
    cards = read_atlas(content, read_concepts(content)).payload["concepts"]
    (told,) = next(each["told"] for each in cards if not each.get("name"))
    assert told.startswith(
        "No rule is shown to say what it is; the best holds at 90 %, "
    )


def test_cards_without_a_name_stand_by_rules_that_tell_and_by_the_tails_of_their_codes():
    node = learned_concepts()
    node["name"] = node["name"].copy(data=np.full(node["name"].shape, "", object))
    node["named_phi"] = node.named_phi * 0
    tails = np.array([[2.0, 30.0, 7.0], [15.0, 1.0, np.nan]])
    node["sharpness"] = (("layer", "concept"), tails)
    content = read_content(made.tree({"learned-concepts": node}, steps=STEPS))
    order = [concept.tails for concept in read_concepts(content).every]
    assert order == [30, 15, 7, 2, 1]
    # An AUC of .8 says something where chance is outside of its interval.
    node["name_auc_low"] = node.name_auc_low.where(node.sharpness < 20, 0.49)
    content = read_content(made.tree({"learned-concepts": node}, steps=STEPS))
    order = [concept.tails for concept in read_concepts(content).every]
    assert order == [15, 7, 2, 1, 30]


def test_the_direction_is_read_from_the_node_by_its_own_name():
    nodes = {"of my layers": learned_concepts()}
    content = read_content(made.tree(nodes, steps=STEPS))
    atlas = read_atlas(content, read_concepts(content))
    direction = atlas.payload["layers"][0]["direction"]
    assert "open_study(\"STUDY\")['of my layers']" in direction


def test_contexts_come_in_bands_around_their_own_place(payload):
    contexts = payload["contexts"]
    assert len(contexts["bands"]) == 4 and contexts["middle"] == 10
    shape = contexts["line"]["shape"]
    assert shape == [5, 1, 8]
    line = np.frombuffer(base64.b64decode(contexts["line"]["bdata"]), "<u2")
    lines = np.frombuffer(base64.b64decode(contexts["lines"]["bdata"]), "<u2")
    tokens = lines.reshape(contexts["lines"]["shape"])[line.reshape(shape)]
    assert (tokens[:, :, :6] > 0).all() and not tokens[:, :, 6:].any()


def test_controls_are_told_of_each_layer(payload):
    told = payload["layers"][0]["control_words"]
    assert "untrained model has 1 component" in told[0] and "(controls 1–2)" in told[0]
    assert told[-1].startswith("Control runs move as far")
    data = learned_concepts()
    alone = data.drop_vars([name for name in data if "run" in data[name].dims])
    assert "control" not in " ".join(control_words(alone, 0)).lower()


@pytest.mark.parametrize(
    ("blocks", "told"),
    [(0, []), (1, []), (30, ["Asked: 1 layer, of a model of 30 blocks, "])],
)
def test_blocks_that_were_not_asked_are_told(blocks, told):
    data = learned_concepts()
    data = data.isel(layer=slice(1))
    model = {"class": "Model", "parameters": 1, "blocks": blocks}
    tree = made.tree({"learned-concepts": data}, steps=STEPS)
    tree.attrs["model"] = json.dumps(model)
    content = read_content(tree)
    words = read_atlas(content, read_concepts(content)).payload["layers"][0]
    asked = [each for each in words["control_words"] if "Asked" in each]
    assert len(asked) == len(told) and all(map(str.startswith, asked, told))


def test_controls_that_end_trained_judge_nothing():
    data = learned_concepts().assign_coords(run=["turned 0", "line 0"])
    named = data.named_phi_control.where(data.run == "turned 0", 1.0)
    about = data.named_about_control.where(data.run == "turned 0", 1.0)
    told = data.assign(named_phi_control=named, named_about_control=about)
    named, born = found_words(told)[:2]
    assert named.startswith("2 named concepts were born")
    assert born.endswith(
        "3 of 5 concepts beyond the {token} were born (controls 0 of 2)"
    )
    alone = told.assign_coords(run=["line 0", "line 1"])
    assert "control" not in "; ".join(found_words(alone))
    content = read_content(made.tree({"learned-concepts": alone}, steps=STEPS))
    assert not read_concepts(content).named_controls


def test_without_controls_nothing_is_beside_the_counts():
    content = content_of(joint=False, control=False)
    concepts = read_concepts(content)
    assert "controls" not in appeared(content, concepts).lead
    words = [each.words for each in numbers_of(content, None, concepts)]
    assert "concepts born; no control run" in words
    assert not any(concept.beyond_controls for concept in concepts.every)
    cards = read_atlas(content, concepts).payload["concepts"]
    assert all(len(card["told"]) == 1 for card in cards)


def test_of_one_model_there_are_cards_and_nothing_of_births():
    content = content_of(joint=False, lives=False, control=False)
    assert read_concepts(content) is None
    atlas = read_atlas(content, None)
    assert len(atlas.payload["concepts"]) == 5 and not atlas.kinds
    assert "born" not in atlas.about
    line = appeared(content, None)
    assert (
        line.lead.startswith("It holds 5 concepts beyond the token")
        and "born" not in line.lead
    )


def test_the_heading_leads_to_the_line_that_says_it(monkeypatch):
    monkeypatch.setattr(
        screen, "unseen_start", lambda content: "The start is not known."
    )
    told = screen.first_screen(content_of(joint=False))
    assert told.heading.startswith("2 named concepts were born")
    assert told.sentences[0].link == "#verdict" and told.link == "#atlas"


def test_the_picture_tints_by_the_share_of_the_peak(content):
    first = screen.first_screen(content)
    drawn = life_picture(content, first, [WIDE, NARROW]).drawings[0]
    # Strength rises evenly over eight steps, and can be read at the last three.
    levels = {round(share * STRENGTHS) for share in (5 / 7, 6 / 7, 1)}
    assert {
        int(level) for level in re.findall(r'class="shade s(\d+)"', drawn)
    } == levels


def test_the_contact_sheet_has_the_strongest_context_of_each(content, concepts):
    figure = draw_contact_sheet(content, concepts)
    said = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert len(said) == 3 and all("[ said]" in text for text in said)


def test_the_page_is_made_of_them(content):
    page = render_page(content)
    assert "Concept atlas" in page and "best names first" in page


def test_results_that_number_components_of_controls_as_the_runs_are_read():
    """Earlier versions kept of a control run as many components as the run has."""
    data = learned_concepts()
    names = [f"named_{name}_control" for name in ("phi", "about")]
    (own,) = set(data[names[0]].dims) - {"layer", "run"}
    earlier = {
        name: (
            ("layer", "run", "concept"),
            data[name].transpose("layer", "run", own).values,
        )
        for name in names
    }
    assert data.sizes[own] == data.sizes["concept"]
    old = data.drop_vars(names).assign(earlier)
    np.testing.assert_array_equal(best_of_controls(old), best_of_controls(data))


def test_what_was_found_leads_and_no_birth_is_told_behind_it():
    numbers = {"n_again": 5.0, "n_born": 0.0, "n_named": 2.0, "n_untrained": 7.0}
    assert found_words(xr.Dataset(numbers)) == [
        "2 of 5 concepts beyond the {token} have a name",
        "none was born",
        "an untrained model has 7",
    ]


def test_the_key_of_life_lines_explains_what_is_drawn_and_no_more(concepts):
    born = list(concepts.born)
    grows = [dataclasses.replace(born[0], kind="grows", born=math.nan)]
    assert "Grows: weaker at first" in marks_words(grows + born)
    assert marks_words(grows).startswith("Grows") and "Dot" not in marks_words(grows)
    assert (
        marks_words(born) == "Dot: birth; bar: the checkpoints between which it lies."
    )
    assert marks_words([]) == ""


def test_none_is_best_named_where_none_has_a_name():
    data = learned_concepts()
    unnamed = data.assign(name=data["name"].where(False, ""))
    content = read_content(made.tree({"learned-concepts": unnamed}, steps=STEPS))
    words = choice_words(read_concepts(content), 2)
    assert "none has a name" in words and "named" not in words


def test_what_cannot_be_read_at_the_end_does_not_grow():
    # On the page of words in random order a hatched end was said to grow.
    data = learned_concepts()
    data["concept_kind"] = data.concept_kind.where(data.concept_kind != "born", "grows")
    data["concept_born"] = data.concept_born * np.nan
    lost = data.assign(
        readability=data.readability.where(data.step < data.step[-1], 0.0)
    )
    for shown, course in ((data, "grows"), (lost, "not at the end")):
        found = read_concepts(
            read_content(made.tree({"learned-concepts": shown}, steps=STEPS))
        )
        growing = [one for one in found.every if one.kind == "grows"]
        assert growing and {one.life for one in growing} == {course}
        assert course in marks_words(growing).lower()


@pytest.mark.parametrize("at_end", [True, False])
@pytest.mark.parametrize("kind", [*learned_words.KINDS, *LIVES, UNCONFIRMED])
def test_a_phone_has_room_for_what_became_of_every_concept(concepts, kind, at_end):
    # "in the learned part alone" left the screen.
    shown = dataclasses.replace(
        concepts.every[0], kind=kind, born=math.nan, readable_at_end=at_end
    )
    assert NARROW.font * text_width(_brief(shown)) <= NARROW.right
