"""Losses, concepts and entropies of the same tokens: matched, checked, stored and told."""

import base64

import numpy as np
import pytest

from helpers import concept_trees as made
from helpers import example_texts as examples
from helpers.report_page import Page
from ontogeny.report.concepts.lives import line_names
from ontogeny.report.concepts.nodes import read_concepts
from ontogeny.report.page.html import render_page
from ontogeny.report.page.payload import json_script
from ontogeny.report.texts.example import read_example
from ontogeny.words.content import read_content


def example(**nodes):
    named = {name.replace("_", "-"): data for name, data in nodes.items()}
    return read_example(read_content(made.tree({"loss": made.loss_story(), **named})))


def keys(found):
    return [each["key"] for each in found.payload["measures"]]


def unpacked(found, key, name="values"):
    """Numbers of a measure in its unit, NaN where there are none."""
    one = next(each for each in found.payload["measures"] if each["key"] == key)
    raw = np.frombuffer(base64.b64decode(one[name]["bdata"]), np.uint8).reshape(
        one[name]["shape"]
    )
    return np.where(raw == found.payload["missing"], np.nan, raw / one["parts"])


def measure(found, key):
    return next(each for each in found.measures if each.key == key)


@pytest.fixture(scope="module")
def whole():
    return read_example(read_content(examples.full_tree()))


def test_what_the_result_holds_can_be_chosen_and_nothing_else(whole):
    assert keys(whole) == ["loss", "concept", "entropy"]
    assert keys(example(tokens=examples.losses())) == ["loss"]
    assert keys(example(attention=examples.entropies())) == ["entropy"]
    assert keys(example(joint_concepts=examples.codes())) == ["concept"]


def test_entropies_are_those_of_the_node_with_the_mean_of_all_layers_first(whole):
    data = examples.entropies()
    found = unpacked(whole, "entropy")
    values = data.shown_entropy.values
    np.testing.assert_allclose(found[1:], values, atol=0.05 + 1e-6)
    np.testing.assert_allclose(found[0], values.mean(axis=0), atol=0.05 + 1e-6)
    options = [name for _, name in measure(whole, "entropy").options]
    assert options == ["mean of all layers", "layer 0", "layer 1"]
    np.testing.assert_allclose(
        unpacked(whole, "entropy", "references")[0],
        data.shown_entropy_uniform,
        atol=0.05,
    )


def test_small_entropies_are_kept_with_two_decimals():
    data = examples.entropies()
    data["shown_entropy"] = data.shown_entropy / 4
    found = unpacked(example(attention=data), "entropy")
    np.testing.assert_allclose(found[1:], data.shown_entropy.values, atol=0.005 + 1e-6)


def test_codes_are_those_of_the_concepts_in_the_menu(whole):
    data = examples.codes()
    concepts = read_concepts(read_content(examples.full_tree())).every
    found, options = unpacked(whole, "concept"), measure(whole, "concept").options
    assert [name for _, name in options] == line_names(concepts)
    assert {group for group, _ in options} == {"named", "not named"}
    for place, concept in enumerate(concepts):
        layer, number = concept.place
        wanted = data.shown_code.values[:, layer, number].astype(float)
        np.testing.assert_array_equal(
            found[place], np.where(wanted == 255, np.nan, wanted)
        )
        shared = data.shown_shared_code.values[layer, number].astype(float)
        references = unpacked(whole, "concept", "references")[place]
        np.testing.assert_array_equal(
            references, np.where(shared == 255, np.nan, shared)
        )


def test_the_concept_that_is_shown_first_is_named_and_fires_in_the_first_text(whole):
    one = next(each for each in whole.payload["measures"] if each["key"] == "concept")
    assert measure(whole, "concept").options[one["option"]][0] == "named"
    assert np.nansum(unpacked(whole, "concept")[one["option"], -1, 0]) > 0


def test_texts_are_matched_by_number_and_tokens_not_by_place():
    turned = examples.entropies().isel(shown_text=[2, 0, 1], shown_place=slice(5))
    found = unpacked(example(tokens=examples.losses(), attention=turned), "entropy")
    wanted = examples.entropies().shown_entropy.values
    np.testing.assert_allclose(found[1:, ..., :5], wanted[..., :5], atol=0.05 + 1e-6)
    assert np.isnan(found[..., 5:]).all()


@pytest.mark.parametrize("change", ["number", "token"])
def test_other_texts_are_never_taken_for_the_same(change):
    other = examples.entropies()
    if change == "number":
        other.shown_text_number[1] = 99
    else:
        other.shown_token_id[1, 2] = 113
    found = example(tokens=examples.losses(), attention=other)
    values = unpacked(found, "entropy")
    assert np.isnan(values[:, :, 1]).all() and not np.isnan(values[:, :, [0, 2]]).all()
    other.shown_text_number[:] = 99
    assert keys(example(tokens=examples.losses(), attention=other)) == ["loss"]


def test_each_measure_says_what_the_model_saw(whole):
    assert "of a masked model" in measure(whole, "loss").care  # the result does not say
    said = {}
    for masked in (0, 1):
        data = examples.losses().assign(masked=((), np.int8(masked)))
        said[masked] = example(tokens=data).measures[0].care
    assert said[0] == "The model sees what stands before the token."
    assert said[1].startswith("Each token is masked in a pass of its own")
    for key in ("concept", "entropy"):
        assert "no token is masked" in measure(whole, key).care


def test_control_runs_stand_beside_each_measure(whole):
    assert measure(whole, "entropy").controls == (
        "In 2 control runs the mean over all texts and layers ends at 3.10–3.30 nats."
    )
    assert "in 2 control runs" in measure(whole, "concept").controls
    assert measure(example(attention=examples.entropies()), "entropy").controls == ""


def test_steps_that_a_layer_lacks_are_left_out_of_the_mean_alone():
    data = examples.entropies()
    data.shown_entropy[1, 3] = np.nan
    found = unpacked(example(attention=data), "entropy")
    assert np.isnan(found[[0, 2], 3]).all() and not np.isnan(found[1, 3]).all()


def test_without_a_tokenizer_tokens_of_other_nodes_are_shown_by_number():
    found = example(attention=examples.entropies(tokenizer=False))
    assert found.numbers and found.texts[0].tokens[1].text == "102"
    assert [
        text.direction for text in example(attention=examples.entropies()).texts
    ] == ["ltr", "rtl", "ltr"]


def test_pages_hold_no_more_than_their_share_of_a_long_run_with_many_layers():
    steps = tuple(range(154))
    nodes = (
        examples.losses(steps=steps),
        examples.entropies(steps=steps, layers=24),
        examples.codes(steps=steps, layers=4, latents=60, contexts=""),
    )
    wide = [
        data.isel(
            {d: np.arange(64) % data.sizes[d] for d in data.dims if d.endswith("place")}
        )
        for data in nodes
    ]
    found = example(tokens=wide[0], attention=wide[1], joint_concepts=wide[2])
    assert keys(found) == ["loss", "concept", "entropy"]
    assert "In the menu: the" in measure(found, "concept").controls
    assert len(json_script(found.payload)) < 1_700_000


def test_the_page_has_a_segment_for_each_and_a_menu_with_groups():
    page = Page(render_page(read_content(examples.full_tree(hostile=True))))
    assert [a["label"] for a in page.all("optgroup")] == ["named", "not named"]
    assert len(page.scripts) == 3 and not page.all("img")
