"""Example text: what the page holds of the losses of single tokens, and what it says of them."""

import base64
import json
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from helpers import concept_trees as made
from helpers import example_texts as examples
from helpers.report_page import Page
from ontogeny.report.colours import BASE, contrast, palettes
from ontogeny.report.page.html import render_page
from ontogeny.report.page.payload import json_script
from ontogeny.report.texts.example import MOST_TOKENS, read_example
from ontogeny.words.content import read_content
from ontogeny.words.voice import Voice


def example(data=None, **options):
    data = examples.losses(**options) if data is None else data
    return read_example(
        read_content(made.tree({"loss": made.loss_story(), "tokens": data}))
    )


def measure(found, key="loss"):
    """The payload of one measure."""
    return next(each for each in found.payload["measures"] if each["key"] == key)


def unpacked(array, parts):
    raw = np.frombuffer(base64.b64decode(array["bdata"]), np.uint8).reshape(
        array["shape"]
    )
    return np.where(raw == 255, np.nan, raw / parts)


def stored(found, key="loss", option=0):
    """Values of a measure as the page holds them, (step, text, place)."""
    one = measure(found, key)
    return unpacked(one["values"], one["parts"])[option]


def test_a_loss_is_kept_with_one_decimal_at_every_step():
    data = examples.losses()
    found = stored(example(data))
    np.testing.assert_allclose(found, data.token_loss, atol=0.05 + 1e-9)
    assert [f"{x:.1f}" for x in found[3, 0, 1:4]] == [
        f"{x:.1f}" for x in data.token_loss.values[3, 0, 1:4]
    ]


def test_means_are_over_the_predicted_tokens_of_a_text():
    data = examples.losses()
    payload = measure(example(data))
    np.testing.assert_allclose(
        payload["means"][0], data.token_loss.mean("place").T, atol=1e-4
    )
    assert payload["costs"] == [4.5, 4.5, 4.5]


def test_without_word_frequencies_none_are_given():
    assert measure(example(costs=False))["costs"] == [None] * 3
    bare = examples.losses().drop_vars(["token_loss_frequencies", "token_leads_from"])
    found = measure(example(bare))
    assert found["costs"] is found["references"] is found["lead"] is None


def test_of_characters_frequencies_are_those_of_characters():
    tree = made.tree({"loss": made.loss_story(), "tokens": examples.losses()})
    found = measure(
        read_example(replace(read_content(tree), voice=Voice(token_unit="character")))
    )
    assert found["beside"] == "; by character frequencies alone {}"
    assert found["reference"] == "nats by character frequencies"


def test_the_scale_ends_where_few_losses_lie_above_it():
    data = examples.losses(top=8.6)
    assert measure(example(data))["top"] == 9
    data.token_loss[0, 0, 1] = 60.0  # one of more than a hundred
    assert measure(example(data))["top"] == 9
    assert np.nanmax(stored(example(data))) == 25.0
    assert measure(example(examples.losses(top=0.01)))["top"] == 1


def test_steps_that_were_not_measured_are_left_out():
    data = examples.losses()
    data.token_loss[4] = np.nan
    data.token_loss[6, 0, 2] = np.nan
    found = example(data)
    assert measure(found)["steps"] == [
        s for s in examples.STEPS if s != examples.STEPS[4]
    ]
    # One that is missing at a single step alone.
    assert np.isnan(stored(found)[5, 0, 2])


def test_a_text_has_the_direction_of_its_predicted_tokens_and_ends_where_it_ends():
    plain, hebrew, short = example().texts
    assert [text.direction for text in (plain, hebrew, short)] == ["ltr", "rtl", "ltr"]
    assert [text.name for text in (plain, hebrew, short)] == [
        "text 4",
        "text 7",
        "text 30",
    ]
    assert "".join(token.text for token in hebrew.tokens) == (
        "<|bos|>" + "".join(examples.HEBREW) + " cat<|eos|>"
    )
    assert [token.has_value for token in short.tokens] == [False, True, True, False]
    names = {token.text: token.words for token in plain.tokens}
    assert (
        names["."] == "full stop"
        and names["  "] == "space × 2"
        and names["↵"] == "new line"
    )
    assert names[" cat"] == ""


def test_without_a_tokenizer_numbers_are_shown_and_it_is_said():
    tree = examples.tree(tokenizer=False)
    found = read_example(read_content(tree))
    assert found.numbers and found.texts[0].tokens[1].text == "102"
    assert "The run holds no tokenizer; tokens are shown by number." in render_page(
        read_content(tree)
    )
    assert not example().numbers


def test_nothing_is_drawn_without_losses():
    assert example(examples.losses().drop_vars("token_loss")) is None


@pytest.mark.parametrize("lacking", ["token_id", "text_number"])
def test_where_no_token_was_kept_it_is_said(lacking):
    data = examples.losses().drop_vars(lacking)
    assert example(data).texts == ()
    tree = made.tree({"loss": made.loss_story(), "tokens": data})
    page = Page(render_page(read_content(tree)))
    assert "Only counts of tokens were kept for these inputs." in "".join(page.text)
    assert page.data["example"] is None


def test_nothing_is_drawn_where_nothing_was_measured_or_there_is_no_node():
    data = examples.losses()
    assert example(data.assign(token_loss=data.token_loss * np.nan)) is None
    page = Page(render_page(read_content(made.tree({"loss": made.loss_story()}))))
    assert not [a for _, a in page.tags if a.get("id") == "example-text"]
    assert page.data["example"] is None


def test_control_runs_stand_beside_the_mean():
    assert example(controls=(8.541, 8.77)).measures[0].controls == (
        "In 2 control runs the mean over these texts ends at 8.54–8.77 nats."
    )
    assert example().measures[0].controls == ""
    # One that ends trained is drawn, and judges nothing.
    runs = {"run": ["turned 0", "line"]}
    data = examples.losses(controls=(8.541, 3.0)).assign_coords(runs)
    assert example(data).measures[0].controls == (
        "In the control run the mean over these texts ends at 8.54 nats."
    )


def test_long_texts_are_cut_and_it_is_said():
    data = examples.losses()
    long = xr.concat([data] * 40, dim="place", data_vars="minimal", coords="minimal")
    found = example(long)
    assert max(len(text.tokens) for text in found.texts) <= MOST_TOKENS
    assert found.notices == (
        f"The first {MOST_TOKENS} of {long.sizes['place']} tokens of each text are shown.",
    )


def test_the_budget_of_three_texts_and_many_steps_is_kept():
    steps = tuple(range(154))
    data = examples.losses(steps=steps)
    wide = xr.concat([data] * 8, dim="place", data_vars="minimal", coords="minimal")
    wide = wide.isel(place=slice(64))
    assert len(json_script(example(wide).payload)) < 60_000


def test_markup_in_tokens_stays_text():
    page = Page(render_page(read_content(examples.tree(hostile=True))))
    assert "<script>alert(1)</script>" in "".join(page.text)
    assert len(page.scripts) == 3 and not page.all("img")
    json.dumps(page.data["example"], allow_nan=False)


@pytest.mark.parametrize(("mode", "least"), [("light", 7), ("dark", 5)])
def test_words_stand_out_from_the_strongest_tint(mode, least):
    values = palettes(1)[mode]["values"]
    tint, paper = values[len(values) // 2], BASE[mode]["paper"]
    mixed = "#" + "".join(
        f"{round(0.62 * int(tint[i : i + 2], 16) + 0.38 * int(paper[i : i + 2], 16)):02x}"
        for i in (1, 3, 5)
    )
    assert contrast(BASE[mode]["ink"], mixed) > least
    assert contrast(BASE[mode]["ink-2"], BASE[mode]["shade"]) > 4.5
