"""The step axis, numbers, names and colours of the page."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import report_examples as examples
from ontogeny.report.colours import (
    BASE,
    LAYERS,
    MARK_CONTRAST,
    PROGRESS,
    contrast,
    palettes,
    ramp,
)
from ontogeny.report.page.payload import json_script
from ontogeny.report.scales import ZERO_GAP, StepScale, pick_ticks
from ontogeny.words.content import read_content
from ontogeny.words.formats import (
    interval_text,
    mid_sentence,
    number,
    plain_text,
    sentence_start,
    step_text,
)
from ontogeny.words.labels import layer_groups, short_names, truncate

step_lists = st.lists(st.integers(0, 10**7), min_size=1, max_size=60, unique=True).map(
    sorted
)
kinds = st.sampled_from(["log", "linear"])


@given(step_lists, kinds)
def test_places_increase_with_the_step_and_fill_the_axis(steps, kind):
    places = StepScale(tuple(steps), kind).positions(steps)
    assert np.all(np.diff(places) > 0) and np.all(places >= 0) and np.all(places <= 1)
    if len(steps) > 2:
        assert places[0] == 0 and places[-1] == pytest.approx(1)


@given(step_lists, kinds)
def test_cells_hold_their_step_and_never_overlap(steps, kind):
    scale = StepScale(tuple(steps), kind)
    edges, places = scale.edges(steps), scale.positions(steps)
    assert np.all(edges[:, 0] < edges[:, 1])
    assert np.all(edges[:, 0] <= places) and np.all(places <= edges[:, 1])
    assert np.all(edges[1:, 0] >= edges[:-1, 1] - 1e-12)


def test_equal_ratios_are_equally_far_apart_on_the_logarithmic_axis():
    places = StepScale((0, 1, 10, 100, 1000)).positions([1, 10, 100, 1000])
    assert np.diff(places) == pytest.approx([(1 - ZERO_GAP) / 3] * 3)


def test_step_zero_stands_apart():
    scale = StepScale((0, 1, 10))
    edges = scale.edges([0, 1, 10])
    assert scale.breaks_at_zero and edges[1, 0] - edges[0, 1] > 0.01
    assert (
        not StepScale((1, 10)).breaks_at_zero
        and not StepScale((0, 1), "linear").breaks_at_zero
    )


@given(step_lists, kinds)
def test_ticks_lie_where_their_labels_say(steps, kind):
    scale = StepScale(tuple(steps), kind)
    for tick in scale.ticks():
        step = int(tick.label.replace(",", ""))
        assert tick.position == pytest.approx(scale.positions([step])[0])
        assert -1e-9 <= tick.position <= 1 + 1e-9


@given(step_lists, st.floats(20, 2000))
def test_kept_tick_labels_do_not_touch(steps, length):
    kept = pick_ticks(StepScale(tuple(steps)).ticks(), length, 6.0)
    for a, b in pairwise(kept):
        room = (b.position - a.position) * length
        assert room >= (len(a.label) + len(b.label)) * 3.0


def test_axis_without_round_numbers_still_has_ticks():
    labels = [t.label for t in StepScale((1100, 1200, 1300)).ticks()]
    assert len(labels) >= 2


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_numbers_keep_two_digits_of_their_uncertainty(value, uncertainty):
    shown = float(number(value, uncertainty).replace(",", ""))
    digit = 10.0 ** (math.floor(math.log10(uncertainty)) - 1)
    assert abs(shown - value) <= 0.5 * digit + 1e-9


@given(st.floats(allow_nan=True, allow_infinity=True, width=32))
def test_every_number_can_be_said(value):
    text = number(value)
    assert text and ("nan" not in text) and ("inf" not in text)


def test_steps_and_intervals_are_said_in_words():
    assert step_text(143000.0) == "143,000" and step_text(math.nan) == "never"
    assert interval_text(44.1, 44.3) == "" and interval_text(math.nan, 3) == ""


parts = st.sampled_from(["model", "layers", "0", "1", "2", "mlp", "attn", "weight"])
path = st.lists(parts, min_size=1, max_size=5).map(".".join)
paths = st.lists(path, min_size=1, max_size=12)


@given(paths)
def test_short_names_tell_apart_what_the_long_ones_do(names):
    short = short_names(names)
    assert len(short) == len(names) and all(short)
    pairs = set(zip(names, short, strict=True))
    assert len(pairs) == len(set(names)) == len(set(short))


@given(paths)
def test_layers_are_grouped_in_order_of_depth(names):
    groups = layer_groups(names)
    numbered = [int(label) for label in groups.labels if label.isdigit()]
    assert numbered == sorted(numbered)
    assert all(0 <= groups.of(name) < len(groups.labels) for name in names)
    assert groups.of("elsewhere") == -1


@given(st.text(max_size=40), st.integers(2, 20))
def test_cut_text_is_short_enough(text, length):
    assert len(truncate(text, length)) <= length


@given(st.text())
def test_json_in_a_script_reads_back_and_holds_no_markup(text):
    written = json_script({text: [text]})
    assert json.loads(written) == {text: [text]}
    assert "<" not in written and ">" not in written and written.isascii()


@given(st.text(st.characters(codec=None)))
def test_any_text_can_be_written(text):
    clean = plain_text(text)
    assert len(clean) == len(text) and clean.encode("utf-8").decode("utf-8") == clean
    assert not any(ord(c) < 32 and c not in "\t\n\r" for c in clean)


def test_sentences_start_and_continue_as_english_does():
    assert (
        sentence_start("loss") == "Loss"
        and mid_sentence("Loss of text") == "loss of text"
    )
    assert mid_sentence("ICA concepts") == "ICA concepts" and mid_sentence("") == ""


def lab(colour):
    """OKLab of a hex colour, by the published matrices."""
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(
        channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
    )
    cones = (
        np.array(
            [
                [0.4122214708, 0.5363325363, 0.0514459929],
                [0.2119034982, 0.6806995451, 0.1073969566],
                [0.0883024619, 0.2817188376, 0.6299787005],
            ]
        )
        @ linear
    )
    return np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    ) @ np.cbrt(cones)


@pytest.mark.parametrize("stops", [*PROGRESS.values(), *LAYERS.values()])
def test_ramps_are_even_and_ordered_by_lightness(stops):
    colours = np.array([lab(c) for c in ramp(stops, 25)])
    lightness = np.diff(colours[:, 0])
    assert np.all(lightness > 0) or np.all(lightness < 0), (
        "legible in grey and to the colour-blind"
    )
    distances = np.linalg.norm(np.diff(colours, axis=0), axis=1)
    assert distances.max() / distances.min() < 2.2


def luminance(colour):
    channels = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(
        channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
    )
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("name", ["ink", "ink-2", "ink-3", "accent", "warning"])
def test_text_colours_have_contrast(mode, name):
    one, two = sorted((luminance(BASE[mode][name]), luminance(BASE[mode]["paper"])))
    assert (two + 0.05) / (one + 0.05) >= 4.5, "WCAG 2.1 level AA"


def test_layer_groups_join_modules_and_weights_of_one_depth():
    groups = read_content(examples.developing_tree()).groups
    assert groups.labels == ("0", "1", "2", "3", "4", "5")
    assert groups.of("model.layers.3.self_attn") == groups.of("model.layers.3.mlp") == 3
    assert groups.of("model.layers.3.mlp.up_proj.weight") == 3


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("layers", [1, 6, 24])
def test_lines_and_points_stand_out_from_the_paper(mode, layers):
    palette = palettes(layers)[mode]
    colours = [
        *palette["layers"],
        *palette["marks"],
        *(BASE[mode][n] for n in ("null", "accent")),
    ]
    assert (
        min(contrast(colour, BASE[mode]["paper"]) for colour in colours)
        >= MARK_CONTRAST
    )
    for ink in ("ink", "ink-2", "ink-3"):
        assert contrast(BASE[mode][ink], BASE[mode]["paper"]) >= 5


@pytest.mark.parametrize("kind", ["log", "linear"])
def test_few_checkpoints_are_named_on_the_axis_their_ends_first(kind):
    scale = StepScale((0, 20, 43, 60), kind)
    assert [tick.label for tick in scale.ticks()] == ["0", "20", "43", "60"]
    assert [tick.label for tick in pick_ticks(scale.ticks(), 40.0)] == ["0", "60"]
