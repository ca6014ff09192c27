"""The atlas of concepts: what the page holds of each, in how much room, and where it is empty."""

import base64
import math
import re

import numpy as np
import pytest
import xarray as xr

from helpers import concept_trees as made
from helpers import counted_reads as reading
from helpers import report_examples as examples
from helpers.report_page import Page
from ontogeny.report.chart.canvas import NARROW, WIDE
from ontogeny.report.concepts.atlas import FEWER, KEYFRAMES, MOST, read_atlas
from ontogeny.report.concepts.contexts import FULL, LEVELS, MISSING
from ontogeny.report.concepts.lives import FEW
from ontogeny.report.concepts.nodes import read_concepts
from ontogeny.report.concepts.tokens import Pieces
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.report.page.html import render_page
from ontogeny.report.page.life import life_picture
from ontogeny.report.page.payload import json_script
from ontogeny.report.texts.cloze import read_cloze
from ontogeny.words.catalogue import concepts as say
from ontogeny.words.content import read_content


def atlas_of(tree):
    content = read_content(tree)
    return read_atlas(content, read_concepts(content))


def life_of(tree):
    """Return what the caption of the life lines says, and the concepts that have one."""
    content = read_content(tree)
    atlas = read_atlas(content, read_concepts(content))
    layouts = [WIDE, NARROW]
    picture = life_picture(content, first_screen(content), layouts, atlas.addresses)
    layers = atlas.payload["layers"]
    known = {
        f"{layers[each['layer']]['address']}{each['number']}": each
        for each in atlas.payload["concepts"]
    }
    drawn = [re.findall(r'data-line="([^"]+)"', one) for one in picture.drawings]
    assert drawn[0] == drawn[1]
    return picture.caption, [known[address] for address in drawn[0]]


def unpacked(array):
    kind = {"u1": "u1", "u2": "<u2"}[array["dtype"]]
    return np.frombuffer(base64.b64decode(array["bdata"]), kind).reshape(array["shape"])


@pytest.fixture(scope="module")
def tree():
    return made.learned()


@pytest.fixture(scope="module")
def payload(tree):
    return atlas_of(tree).payload


def where_readable(payload):
    bits = np.unpackbits(unpacked(payload["readable"]), axis=1)
    return bits[:, : len(payload["steps"])] == 1


def context_tokens(payload):
    contexts = payload["contexts"]
    return unpacked(contexts["lines"])[unpacked(contexts["line"])]


def places(payload):
    return [(each["layer"], each["number"]) for each in payload["concepts"]]


def test_every_concept_has_a_card_and_what_is_none_has_not(tree, payload):
    kinds = tree["joint-concepts"]["concept_kind"].values
    assert sorted(places(payload)) == sorted(
        map(tuple, np.argwhere(kinds != "no concept"))
    )


def test_strengths_are_shares_of_the_peak_to_half_a_percent(tree, payload):
    data = tree["joint-concepts"].to_dataset()
    strength = data.strength.transpose("layer", "concept", "step").values
    wanted = np.array(
        [strength[place] / strength[place].max() for place in places(payload)]
    )
    np.testing.assert_allclose(
        unpacked(payload["strength"]) / FULL, wanted, atol=0.5 / FULL
    )
    readable = data.readability.transpose("layer", "concept", "step").values
    wanted = np.array([readable[place] >= 0.5 for place in places(payload)])
    np.testing.assert_array_equal(where_readable(payload), wanted)


def test_a_step_without_a_value_is_missing_and_not_zero():
    data = made.joint_concepts()
    data["strength"][4] = math.nan
    data["readability"][4] = math.nan
    payload = atlas_of(made.tree({"joint-concepts": data})).payload
    assert (unpacked(payload["strength"])[:, 4] == MISSING).all()
    assert not where_readable(payload)[:, 4].any()
    assert (unpacked(payload["strength"])[:, 3] != MISSING).all()


def test_contexts_are_those_of_the_keyframes(tree, payload):
    data = tree["joint-concepts"].to_dataset()
    words = dict(
        zip(data.piece.values.tolist(), data.piece_text.values.tolist(), strict=True)
    )
    keys, tokens = unpacked(payload["keys"]), context_tokens(payload)
    ids = data.context_id.transpose("layer", "concept", "step", ...).values
    for i, place in enumerate(places(payload)):
        assert list(keys[i]) == sorted(keys[i]) and keys[i][0] == 0
        for k, step in enumerate(keys[i]):
            wanted = [
                "" if token < 0 else words[token].replace("\n", "↵")
                for token in ids[place][step][0]
            ]
            shown = [payload["pieces"][t - 1] if t else "" for t in tokens[i, k, 0]]
            assert [w if w.strip() else "␣" * len(w) for w in wanted] == shown
    assert tokens.shape[1:] == (KEYFRAMES, 4, 13)


def test_keyframes_hold_the_birth_and_the_settling(payload):
    keys = unpacked(payload["keys"])
    for concept, own in zip(payload["concepts"], keys, strict=True):
        shown = {payload["steps"][k] for k in own}
        wanted = {
            concept.get(name) for name in ("born", "settled", "readable_from")
        } - {None}
        assert wanted | {0, payload["steps"][-1]} <= shown


def test_contexts_of_the_shared_code_do_not_follow_the_slider():
    payload = atlas_of(made.learned(contexts="shared")).payload
    assert (
        payload["contexts"]["follow"] is False and payload["contexts"]["shared"] is True
    )
    assert context_tokens(payload).shape[1:] == (1, 4, 13)


def test_codes_of_contexts_are_kept_to_a_thirtieth(tree, payload):
    data = tree["joint-concepts"].to_dataset()
    halves = unpacked(payload["contexts"]["codes"])
    levels = np.stack([halves >> 4, halves & 15], axis=-1).reshape(
        *halves.shape[:-1], -1
    )
    codes = data.context_code.transpose("layer", "concept", "step", ...).values
    keys = unpacked(payload["keys"])
    for i, place in enumerate(places(payload)):
        wanted = codes[place][keys[i]]
        np.testing.assert_allclose(
            levels[i, ..., :13] / LEVELS, wanted, atol=0.5 / LEVELS + 1e-6
        )


def births(concepts):
    return [
        -1 if c["kind"] == "from the start" else c.get("born", math.inf)
        for c in concepts
    ]


def test_the_few_life_lines_are_births_from_the_whole_run():
    tree = made.tree({"joint-concepts": made.joint_concepts(4, 20)})
    payload = atlas_of(tree).payload
    words, shown = life_of(tree)
    assert len(shown) == FEW and all(c.get("name") and "born" in c for c in shown)
    assert births(shown) == sorted(births(shown))
    born = sorted(
        c["born"] for c in payload["concepts"] if c.get("name") and "born" in c
    )
    cut = np.array_split(born, FEW)
    for one, part in zip(shown, cut, strict=True):
        assert part[0] <= one["born"] <= part[-1]
    assert (
        f"{FEW} of 68 named concepts, of 76 in all: {FEW} of their 60 births" in words
    )


def test_where_few_were_born_the_sharpest_of_the_others_fill_the_lines():
    data = made.joint_concepts()
    kind = data.concept_kind.values
    kept = np.argwhere((kind == "born") & (data["name"].values != ""))[:3]
    lost = kind == "born"
    lost[tuple(kept.T)] = False
    kind[lost] = "grows"
    for name in (
        "concept_born",
        "concept_born_after",
        "concept_born_before",
        "concept_settled",
    ):
        data[name] = data[name].where(~lost)
    tree = made.tree({"joint-concepts": data})
    words, shown = life_of(tree)
    assert sum("born" in c for c in shown) == 3
    others = [c["sharp"] for c in shown if "born" not in c]
    lines = [(c["layer"], c["number"]) for c in shown]
    rest = [
        c["sharp"]
        for c in atlas_of(tree).payload["concepts"]
        if c.get("name") and (c["layer"], c["number"]) not in lines
    ]
    assert min(others) >= max(rest)
    assert "the 3 of them born during the run, and the sharpest of the others" in words


def test_a_run_without_births_says_so():
    data = made.joint_concepts()
    data["concept_kind"] = data.concept_kind.where(data.concept_kind != "born", "grows")
    data["concept_born"] = data.concept_born * math.nan
    words, _ = life_of(made.tree({"joint-concepts": data}))
    assert "none was seen to be born during the run" in words


def test_the_choice_says_where_no_concept_has_a_name(tree):
    words, lines = life_of(made.learned(named=0))
    assert words == "22 concepts can be read; none has a name."
    assert lines == []


def test_a_large_run_stays_under_a_megabyte():
    steps = [0, *range(1, 154)]
    words = [f"token {i}" for i in range(4000)]
    data = made.joint_concepts(24, 21, steps=steps, words=words)
    payload = atlas_of(made.tree({"joint-concepts": data}, steps=steps)).payload
    assert len(payload["concepts"]) == 480
    assert unpacked(payload["keys"]).shape[1] == FEWER
    assert len(json_script(payload)) < 1_000_000, len(json_script(payload))


def test_every_variable_is_read_once():
    data = made.joint_concepts(3, 40)
    counted = reading.counted(data)
    atlas_of(made.tree({"joint-concepts": counted.dataset}))
    # Whole, and those over steps once more at the last of them.
    assert counted.reads["context_id"] == 1 and max(counted.reads.values()) <= 2


def test_more_concepts_than_it_holds_are_cut_layer_by_layer_with_a_notice():
    atlas = atlas_of(
        made.tree({"joint-concepts": made.joint_concepts(3, 200, contexts="")})
    )
    counts = np.bincount([each["layer"] for each in atlas.payload["concepts"]])
    assert counts.tolist() == [MOST // 3] * 3
    assert "480 concepts of 597 shown" in atlas.notices[0]


def test_without_a_name_the_atlas_says_so():
    about = atlas_of(made.learned(named=0)).about
    assert (
        "None got a name: each is no sharper than in the untrained model or by chance"
        in about
    )


def test_names_that_were_not_measured_are_not_called_missing():
    atlas = atlas_of(made.learned(names=False))
    assert atlas.payload["naming"] == "absent"
    assert "untrained" not in atlas.about and "not named" in atlas.about


def test_layers_that_could_get_no_names_are_named_with_the_reason():
    data = made.joint_concepts()
    reasons = np.array(
        ["", "there is no untrained model to compare with"], dtype=object
    )
    data = data.assign(unnamed_because=("layer", reasons))
    atlas = atlas_of(made.tree({"joint-concepts": data}))
    assert atlas.notices == (
        "In layer 1 no name could be given: there is no untrained model to compare with.",
    )
    reasons[0] = reasons[1]
    atlas = atlas_of(
        made.tree({"joint-concepts": data.assign(unnamed_because=("layer", reasons))})
    )
    assert (
        not atlas.notices
        and "No name could be given: there is no untrained" in atlas.about
    )


def test_without_a_tokenizer_numbers_are_said_to_be_numbers():
    notices = atlas_of(made.learned(tokenizer=False)).notices
    assert notices == ("The run holds no tokenizer; tokens are shown by number.",)
    assert not atlas_of(made.learned()).notices


def test_cards_without_contexts_are_told_once_above_them():
    atlas = atlas_of(made.learned(contexts=""))
    assert atlas.payload["contexts"] is None and atlas.notices == (say.NO_CONTEXTS,)


def test_cards_say_what_a_removal_costs_where_it_was_judged():
    effects = xr.Dataset(
        {
            "removed_concept": (("layer", "removal"), [[3.0, 5.0, np.nan]]),
            "verdict": (
                ("layer", "removal"),
                [["matters", "removal costs nothing", ""]],
            ),
            "judged_removed": (("layer", "removal"), [[0.052, 0.001, np.nan]]),
            "judged_random": (("layer", "removal"), [[0.004, 0.003, np.nan]]),
            "judged_other": (("layer", "removal"), [[0.01, np.nan, np.nan]]),
            "judged_step": 512.0,
        },
        coords={"layer": ["model.layers.1.mlp"], "step": list(made.STEPS)},
    )
    tree = made.tree(
        {"joint-concepts": made.joint_concepts(), "concept-effects": effects}
    )
    found = {
        (each["layer"], each["number"]): each["removed"]
        for each in atlas_of(tree).payload["concepts"]
        if "removed" in each
    }
    assert found == {
        (1, 3): {
            "step": 512,
            "verdict": "matters",
            "removed": 0.052,
            "random": 0.004,
            "other": 0.01,
        },
        (1, 5): {
            "step": 512,
            "verdict": "removal costs nothing",
            "removed": 0.001,
            "random": 0.003,
            "other": None,
        },
    }


def test_a_result_without_concepts_has_no_atlas():
    assert atlas_of(examples.developing_tree()) is None
    page = Page(render_page(read_content(examples.developing_tree())))
    assert not [a for a in page.all("section") if a.get("id") == "atlas"]


def test_tokens_that_hold_markup_stay_text():
    page = Page(render_page(read_content(made.learned(hostile=True))))
    assert "<script>alert(1)</script>" in page.data["atlas"]["pieces"]
    assert not page.all("img")
    assert (
        sum(
            "alert" in text for attrs, text in page.scripts if attrs.get("id") != "data"
        )
        == 0
    )


def test_pieces_are_never_empty():
    pieces = Pieces({1: "", 2: " ", 3: "a"})
    assert [pieces.text(i) for i in (1, 2, 3, 4)] == ["∅", "␣", "a", "4"]


def test_the_table_of_gaps_holds_the_first_answers():
    tree = made.learned()
    data = tree["predictions"].to_dataset()
    cloze = read_cloze(read_content(tree))
    words = dict(
        zip(data.piece.values.tolist(), data.piece_text.values.tolist(), strict=True)
    )
    for g, gap in enumerate(cloze.gaps):
        for column, step in zip(gap.answers, cloze.steps, strict=True):
            one = data.sel(step=int(step.replace(",", ""))).isel(gap=g, rank=0)
            token = words[int(one.answer_id)]
            assert column.token == token
            assert column.right == (int(one.answer_id) == int(data.right_id[g]))
            assert column.share == float(one.answer_probability)
    assert cloze.same[0] == 6 and cloze.steps[0] == "0" and cloze.steps[-1] == "512"
    assert cloze.payload["same"][-1] == 1


def test_the_name_of_a_person_goes_before_and_is_not_counted():
    tree = made.learned()
    plain = read_concepts(read_content(tree))
    data = tree["joint-concepts"].to_dataset()
    last = next(each for each in plain.every if not each.name)
    given = np.full(data.concept_kind.shape, "", dtype=object)
    given[last.place] = "closing bracket"
    tree["joint-concepts"] = data.assign(name_given=(("layer", "concept"), given))
    found = read_concepts(read_content(tree))
    assert found.named == plain.named == len(found.with_name)
    (card,) = [c for c in atlas_of(tree).payload["concepts"] if c.get("given")]
    assert (card["name"], card["number"]) == ("closing bracket", last.number)
