"""The atlas of several dictionaries: further lives, and concepts fitted to single steps."""

import json

import numpy as np
import pytest

from helpers import concept_trees as made
from ontogeny.report.concepts.atlas import MOST_FURTHER, read_atlas
from ontogeny.report.concepts.nodes import read_concepts
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.report.page.html import render_page
from ontogeny.words.content import read_content


def atlas_of(tree):
    content = read_content(tree)
    return read_atlas(content, read_concepts(content))


def two():
    """Lives, and concepts of every step with their tracks."""
    return made.tree(
        {"joint-concepts": made.joint_concepts(), **made.concepts_of_steps()},
        observables={
            "concepts-ica-tracks": {"kind": "concept-tracks", "of": "concepts-ica"}
        },
    )


def test_a_menu_leads_to_every_dictionary_the_first_screen_s_first():
    atlas = atlas_of(two())
    lives, *single = atlas.titles
    assert lives == "Concepts and their lives"
    assert (
        single[0] == "ICA concepts, step 512" and single[-1] == "ICA concepts, step 0"
    )
    assert atlas.payload["step"] is None
    assert all("keys" not in each and "strength" not in each for each in atlas.further)


def test_concepts_of_a_step_are_those_that_were_fitted_to_it():
    tree = two()
    data = tree["concepts-ica"].to_dataset()
    for each in atlas_of(tree).further:
        one = data.sel(step=each["step"])
        assert len(each["concepts"]) == one.sizes["layer"] * one.sizes["concept"]
        for card in each["concepts"]:
            here = one.isel(layer=card["layer"], concept=card["number"])
            assert card.get("name", "") == str(here["name"].item())
            assert card["sharp"] == pytest.approx(float(here.concentration), rel=0.01)
        assert f"fitted to step {each['step']} alone" in each["about"]


def test_concepts_of_a_step_say_how_far_they_can_be_followed():
    tree = two()
    tracks = (
        tree["concepts-ica-tracks"]
        .to_dataset()
        .track.transpose("layer", "step", "concept")
    )
    for each in atlas_of(tree).further:
        for card in each["concepts"]:
            of_layer = tracks.isel(layer=card["layer"])
            number = of_layer.sel(step=each["step"]).isel(concept=card["number"])
            known = of_layer.step.values[(of_layer == number).any("concept").values]
            assert card["followed"] == [int(known.min()), int(known.max())]


def test_addresses_of_different_fits_differ():
    atlas = atlas_of(two())
    starts = [
        layer["address"]
        for each in (atlas.payload, *atlas.further)
        for layer in each["layers"]
    ]
    assert len(set(starts)) == len(starts)
    assert "concept=concepts-ica@512/model.layers.0.mlp/" in starts


def test_further_dictionaries_share_their_room():
    atlas = atlas_of(made.tree(made.concepts_of_steps(layers=12, latents=40)))
    counts = [len(each["concepts"]) for each in (atlas.payload, *atlas.further)]
    assert sum(counts) <= MOST_FURTHER
    assert f"{counts[0]} concepts of 480 shown" in atlas.notices[0]


def test_without_lives_the_atlas_has_those_of_single_steps_alone():
    tree = made.tree({"loss": made.loss_story(), **made.concepts_of_steps()})
    assert first_screen(read_content(tree)).concepts is None
    atlas = atlas_of(tree)
    assert atlas.payload["step"] == made.STEPS[-1]
    assert "ICA concepts, step 512" in render_page(read_content(tree))


def test_a_second_node_with_lives_is_in_the_menu_with_its_path():
    nodes = {
        "joint-concepts": made.joint_concepts(),
        "joint-svd": made.joint_concepts(seed=1),
    }
    atlas = atlas_of(made.tree(nodes))
    title = "Concepts and their lives"
    assert atlas.titles == [title, f"{title} (joint-svd)"]
    assert "strength" in atlas.further[0]


def test_too_few_checkpoints_for_lives_are_said_and_names_stay():
    lost = ["concept_kind", "concept_born", "concept_born_after", "concept_born_before"]
    lost += ["concept_settled", "concept_gone"]
    data = made.joint_concepts().drop_vars(lost).isel(step=[0, -1])
    tree = made.tree({"loss": made.loss_story(), "joint-concepts": data})
    first = first_screen(read_content(tree))
    assert any("lives take at least 3" in line.text for line in first.sentences)
    assert not any("born" in each.words for each in first.numbers)
    atlas = atlas_of(tree)
    assert "lives take at least 3" in atlas.about and atlas.payload["step"] == 512


def test_a_comparison_of_runs_has_no_further_dictionaries():
    tree = two()
    tree.attrs["runs"] = json.dumps([{"name": "one"}, {"name": "other"}])
    assert atlas_of(tree).further == ()


def test_fits_that_failed_have_no_cards():
    nodes = made.concepts_of_steps()
    data = nodes["concepts-ica"]
    data["token_share"][-1, 0] = np.nan
    last = atlas_of(made.tree(nodes)).payload
    assert {card["layer"] for card in last["concepts"]} == {1}
