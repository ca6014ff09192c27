"""Cards, tables and labels of concepts: right values, tidy text, safe HTML, clear messages."""

import json
import tomllib
from html.parser import HTMLParser

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers.described_concepts import described_node, described_result, written_result
from ontogeny.atlas import read_labels
from ontogeny.atlas.labels import add_label
from ontogeny.characters import END_OF_ISOLATE, ISOLATE
from ontogeny.cli import main
from ontogeny.errors import ArgumentError, StoreError
from ontogeny.inputs.sampling import TokenSample
from ontogeny.observables.fit_identity import code_sketch
from ontogeny.report.concepts.facts import Effect, Life

RTL_OVERRIDE = "\u202e"


@pytest.fixture(scope="module")
def result():
    og.study  # noqa: B018 - the accessor is there once the package is used
    return described_result()


@pytest.fixture
def folder(tmp_path):
    return written_result(tmp_path / "s")


class Markup(HTMLParser):
    """Collects tags, and the text inside them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text, self.open = [], "", []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_a_concept_holds_what_its_node_says(result):
    found = result.concept("joint-concepts", layer=3, index=0)
    node = described_node()
    assert (found.node, found.layer, found.index, found.step) == (
        "joint-concepts",
        "model.layers.3.mlp",
        0,
        40,
    )
    assert (
        found.name == found.title == "comma" and not found.labelled and not found.reason
    )
    assert [t.id for t in found.tokens] == node.token_id.values[1, 0].tolist()
    assert [t.piece for t in found.tokens] == [",", "<b>&", " the"]
    assert found.tokens[0].value == 0.5 and found.firing == 0.031
    assert found.enrichment == {
        "token": 0.7,
        "token before": 0.1,
        "token after": 0.0,
        "place": -0.01,
    }
    assert found.life == Life("born", 20, 10, 40)
    np.testing.assert_array_equal(found.strength, node.strength.values[:, 1, 0])
    assert [n.index for n in found.neighbours] == [1] and found.written_random == 0.4
    assert found.written_up[0].piece == "," and not found.written_down


def test_contexts_are_cut_at_the_ends_of_texts_and_know_their_strongest_token(result):
    found = result.concept(layer=3, index=0)
    own, shared = found.contexts[0], found.shared_contexts[0]
    assert own.tokens == shared.tokens == (" the", "<b>&", ",", "\n", "שלום")
    assert own.codes[own.peak] == np.float32(0.9) and shared.codes[shared.peak] == 1
    assert own.tokens[own.peak] == "," and (own.text, own.place) == (3, 4)
    assert str(own) == " the<b>&,\nשלום"


@pytest.mark.parametrize("layer", [3, -1, "model.layers.3.mlp", "layer 3", np.int64(3)])
def test_layers_are_found_by_number_path_and_short_name(result, layer):
    assert result.concept(layer=layer, index=-3).layer == "model.layers.3.mlp"


@pytest.mark.parametrize(
    ("step", "found"), [(-1, 40), (-4, 0), (10, 10), (np.int64(20), 20)]
)
def test_steps_are_training_steps_or_indexes_from_the_end(result, step, found):
    assert result.concept(layer=0, index=0, step=step).step == found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"node": "joint-concept", "layer": 3}, "Did you mean 'joint-concepts'"),
        ({"node": "loss", "layer": 3}, r"'loss' is not described \(examples=0\)"),
        ({"layer": 1}, "layer must be one of 'layer 0', 'layer 3'.*got 1"),
        ({"layer": "layer 33"}, "Did you mean 'layer 3'"),
        ({}, "layer must be one of"),
        ({"layer": True}, "layer must be one of.*got True"),
        ({"layer": 3, "index": 3}, "index must be a whole number from 0 to 2; got 3"),
        ({"layer": 3, "index": 0.5}, "index must be a whole number"),
        ({"layer": 3, "step": 12}, "4 steps, 0, 10, 20, 40.*got 12. The nearest is 10"),
        ({"layer": 3, "step": -5}, "an index from -4 to -1; got -5"),
        ({"layer": 3, "step": "last"}, "step must be one of"),
    ],
)
def test_what_there_is_not_is_said_with_what_there_is(result, given, message):
    with pytest.raises(ArgumentError, match=message):
        result.concept(**given)


def test_a_result_without_descriptions_says_what_would_describe():
    tree = xr.DataTree.from_dict({"loss": xr.Dataset({"loss": ("step", [1.0])})})
    with pytest.raises(ArgumentError, match=r"describes no concepts.*'joint-concepts'"):
        tree.concept("loss", layer=0)


def test_layers_of_the_same_block_ask_for_a_path():
    node = described_node().assign_coords(
        layer=["model.layers.3.mlp", "model.layers.3.self_attn"]
    )
    tree = xr.DataTree.from_dict({"joint-concepts": node})
    with pytest.raises(
        ArgumentError, match=r"layer 3 may be any of .*self_attn.*give its path"
    ):
        tree.concept(layer=3)


def test_a_concept_without_a_name_says_why_in_numbers(result):
    weak = result.concept(layer=0, index=1)
    assert weak.title == "not named" and "20 % of its squared code" in weak.reason
    assert "over 30 %" in weak.reason
    assert "no concept" in result.concept(layer=0, index=2).reason
    unknown = described_result(named=False).concept(layer=0, index=0)
    assert unknown.name == "" and "no step 0" in unknown.reason
    assert np.isnan(unknown.concentration_limit)


def test_a_card_is_tidy_text(result):
    text = str(result.concept(layer=3, index=0))
    lines = text.splitlines()
    assert lines[0].startswith(
        "comma  joint-concepts · model.layers.3.mlp · 0 · step 40"
    )
    assert max(map(len, lines)) <= 100 and not any(
        line != line.rstrip() for line in lines
    )
    assert "\x1b" not in text and RTL_OVERRIDE not in text
    assert "born by step 20 (after step 10, by step 40 at the latest)" in text
    assert "«,»" in text and "▁▂▆█" in text


def test_markup_and_controls_in_tokens_are_shown_and_never_obeyed(result):
    for index in range(3):
        found = result.concept(layer=3, index=index)
        html = found._repr_html_()
        page = Markup(html)
        assert set(page.tags) == {"pre", "span"} and "http" not in html
        assert "<b>&" in page.text and RTL_OVERRIDE not in html
    assert "u202eevil" in page.text


def test_names_with_markup_and_text_from_the_right_are_isolated(folder):
    concept = og.open_study(folder).result.concept
    found = concept.label(None, 3, 1, "<script>סוגר")
    html = found._repr_html_()
    assert f"{ISOLATE}&lt;script&gt;סוגר{END_OF_ISOLATE}" in html
    assert "script" not in Markup(html).tags
    assert "&lt;script&gt;" in concept.table()._repr_html_()


def test_a_card_as_plain_data_is_json(result):
    found = json.loads(
        json.dumps(described_result(joint=False).concept(layer=0, index=0).to_dict())
    )
    assert found["life"] is None and found["contexts"][0]["tokens"][2] == ","
    assert result.concept(layer=0, index=0).to_dict()["life"]["born"] == 20


def test_the_prompt_holds_every_token_with_its_level(result):
    text = result.concept(layer=3, index=0).prompt()
    assert "[ the|1][<b>&|1][,|9]" in text and "Strongest tokens" in text


def test_the_table_has_named_concepts_first_and_leaves_out_latents_that_are_none(
    result,
):
    table = result.concept.table("joint-concepts")
    assert [row["index"] for row in table] == [0, 1, 0, 1] and len(table) == 4
    (first, second, *_) = table
    assert (first["name"], first["born"], first["layer"]) == ("comma", 20, "layer 0")
    assert second["name"] == "" and second["born"] is None
    assert "4 concepts, 2 with a name" in str(table)
    assert table.data.sizes["row"] == 4
    only = result.concept.table(layer=3)
    assert {row["layer"] for row in only} == {"layer 3"}
    page = Markup(only._repr_html_())
    assert page.text.count("layer 3") == 2 and "<b>&" in page.text


def test_the_table_says_why_there_are_no_names():
    assert "No names from tokens: the run has no step 0" in str(
        described_result(named=False).concept.table()
    )


def test_a_label_wins_is_marked_and_is_kept(folder):
    concept = og.open_study(folder).result.concept
    assert not concept(layer=3, index=1).name
    named = concept.label(
        "joint-concepts", layer=3, index=1, name=' closing "bracket" \\ '
    )
    assert named.name == 'closing "bracket" \\' and named.labelled
    assert (
        "named by a person" in str(named) and "named by a person" in named._repr_html_()
    )
    again = og.open_study(folder).result.concept
    assert again(layer=3, index=1) == named
    assert again(layer=3, index=0).neighbours[0].name == named.name
    assert not again(layer=0, index=1).name
    concept.label(layer=3, index=0, name="a mark")
    assert concept(layer=3, index=0).name == "a mark"
    concept.label(layer=3, index=0, name="")
    assert (concept(layer=3, index=0).name, concept(layer=3, index=0).labelled) == (
        "comma",
        False,
    )


def test_a_label_of_another_fit_does_not_hold_and_that_is_said(folder):
    concept = og.open_study(folder).result.concept
    concept.label(layer=3, index=1, name="bracket")
    path = folder / "names.toml"
    path.write_text(path.read_text().replace('fit = "bb"', 'fit = "cc"'))
    found = concept(layer=3, index=1)
    assert (
        not found.name
        and "'bracket' is the name of this number in another fit" in found.note
    )
    assert "another fit" in str(found) and "another fit" in found._repr_html_()


def test_a_label_follows_its_concept_by_the_codes_into_another_fit(folder, tmp_path):
    """Another fit has the same concepts in another order, with noise; one of them is gone."""
    rng = np.random.default_rng(0)
    codes = rng.exponential(size=(400, 4))
    sample = TokenSample(np.repeat(np.arange(20), 20), np.tile(np.arange(20), 20))
    sketches = code_sketch(codes, sample)[1].astype(float)
    codes_again = np.stack(
        [codes[:, 2], codes[:, 0] + 0.01 * rng.normal(size=400)], axis=1
    )
    again = code_sketch(codes_again, sample)[1].astype(float)
    for number, name in enumerate(["a", "b", "c"]):
        add_label(tmp_path, ("n", "l", number, "first"), name, sketches[number])
    labels = read_labels(tmp_path)
    assert labels.given("n", "l", "first", sketches) == {0: "a", 1: "b", 2: "c"}
    assert labels.given("n", "l", "second", again) == {0: "c", 1: "a"}
    assert labels.given("n", "other", "second", again) == {}
    assert labels.given("n", "l", "second", None) == {}
    add_label(tmp_path, ("n", "l", 1, "second"), "")  # taken back in the new fit alone
    assert read_labels(tmp_path).given("n", "l", "second", again) == {0: "c"}
    path = tmp_path / "names.toml"
    path.write_text(path.read_text().replace("code = [", 'code = ["x", ', 1))
    with pytest.raises(StoreError, match="code must be a list of whole numbers"):
        read_labels(tmp_path)


def test_comments_in_the_file_of_names_stay(folder):
    concept = og.open_study(folder).result.concept
    path = folder / "names.toml"
    path.write_text("# mine\n")
    concept.label(layer=3, index=1, name="x")
    assert path.read_text().startswith("# mine\n")
    (entry,) = tomllib.loads(path.read_text())["name"]
    assert entry == {
        "node": "joint-concepts",
        "layer": "model.layers.3.mlp",
        "concept": 1,
        "fit": "bb",
        "name": "x",
    }


@pytest.mark.parametrize("name", ["two\nlines", "a" * 81, 5, None, "\x00", "\ud800"])
def test_a_label_must_be_one_short_line(folder, name):
    with pytest.raises(
        ArgumentError, match="name must be a text of at most 80 characters"
    ):
        og.open_study(folder).result.concept.label(layer=3, index=1, name=name)
    assert not (folder / "names.toml").exists()


def test_a_result_in_no_folder_keeps_no_names(result):
    with pytest.raises(ArgumentError, match="lies in no study folder"):
        result.concept.label(layer=3, index=1, name="x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[name]]\nnode = 3", "node must be a text; got 3"),
        ("[[name]]\nnode = 'a'\nlayers = 'b'", "no key 'layers'.*Did you mean 'layer'"),
        (
            "[[name]]\nnode='a'\nlayer='b'\nconcept=true\nfit=''\nname=''",
            "a whole number; got True",
        ),
        ("[names]\n", r"must hold \[\[name\]\] tables"),
        ("name = ", "cannot be read"),
    ],
)
def test_a_damaged_file_of_names_is_refused_and_left_alone(folder, text, message):
    path = folder / "names.toml"
    path.write_text(text)
    concept = og.open_study(folder).result.concept
    with pytest.raises(StoreError, match=message):
        concept(layer=3, index=1)
    with pytest.raises(StoreError, match=message):
        concept.label(layer=3, index=1, name="x")
    assert path.read_text() == text


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        main([str(a) for a in arguments])
    return stopped.value.code, *capsys.readouterr()


def test_the_command_prints_cards_and_tables_and_names_concepts(folder, capsys):
    code, out, _ = run(capsys, "concept", folder)
    assert code == 0 and "4 concepts, 2 with a name" in out and "\x1b" not in out
    code, out, _ = run(
        capsys, "concept", folder, "joint-concepts", "--layer", 3, "--index", 0
    )
    assert code == 0 and out.startswith("comma") and "step 40" in out
    code, out, _ = run(
        capsys, "concept", folder, "--layer", 3, "--index", 0, "--step", -4
    )
    assert code == 0 and "step 0" in out.splitlines()[0]
    code, out, _ = run(
        capsys, "concept", folder, "--layer", "layer 3", "--index", 1, "--name", "x"
    )
    assert code == 0 and out.startswith("x (named by a person)") and "names.toml" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--layer", 3, "--index", 9), "index must be a whole number from 0 to 2"),
        (("--layer=--3", "--index", 0), "layer must be one of"),
        (("--name", "x"), "--name needs --index"),
        (("losses",), "concepts are described in 'joint-concepts'"),
    ],
)
def test_mistakes_of_the_command_are_one_line(folder, capsys, options, message):
    code, out, err = run(capsys, "concept", folder, *options)
    assert code == 1 and not out and message in err and len(err.splitlines()) == 1


def test_a_folder_that_is_no_study_is_said(tmp_path, capsys):
    code, _, err = run(capsys, "concept", tmp_path)
    assert code == 1 and "no study folder" in err


def test_what_the_removal_of_a_concept_costs_is_found_in_its_own_node():
    shape = (4, 2, 3)
    effects = xr.Dataset(
        {
            "effect": (
                ("step", "layer", "concept"),
                np.arange(24.0).reshape(shape) / 100,
            ),
            "effect_random_low": (("step", "layer", "concept"), np.full(shape, -0.01)),
            "effect_random_high": (("step", "layer", "concept"), np.full(shape, 0.02)),
            "removed_concept": (("layer", "removal"), [[2.0], [0.0]]),
            "verdict": (
                ("layer", "removal"),
                np.array([["x"], ["matters"]], dtype=object),
            ),
        },
        described_node()[["step", "layer"]].coords,
    )
    tree = xr.DataTree.from_dict(
        {"joint-concepts": described_node(), "concept-effects": effects}
    )
    assert tree.concept(layer=3, index=0).effect is None  # nobody says of what they are
    of = {"observables": {"concept-effects": {"of": "joint-concepts"}}}
    tree.attrs["settings"] = json.dumps(of)
    found = tree.concept(layer=3, index=0)
    assert found.effect == Effect(0.21, -0.01, 0.02, "matters")
    assert "rises by +0.21 nats" in str(found) and "matters" in found._repr_html_()
    assert tree.concept(layer=0, index=0, step=0).effect == Effect(0.0, -0.01, 0.02, "")


def test_the_page_is_given_the_names_of_people_and_counts_them_apart(folder):
    result = og.open_study(folder).result
    assert og.atlas.with_labels(result) is result
    result.concept.label(layer=3, index=1, name="closing bracket")
    found = og.atlas.with_labels(result)["joint-concepts"]
    assert found["name_given"].values.tolist() == [
        ["", "", ""],
        ["", "closing bracket", ""],
    ]
    np.testing.assert_array_equal(
        found["name"].values, result["joint-concepts"]["name"].values
    )


def test_ids_without_pieces_are_apart():
    node = described_node()
    ids = [str(i) for i in node.piece.values]
    tree = xr.DataTree.from_dict(
        {"joint-concepts": node.assign(piece_text=("piece", ids))}
    )
    found = tree.concept(layer=3, index=0)
    assert found.contexts[0].tokens[:3] == ("5", "7", "6") and "« 6» 8 9" in str(found)
    assert found.name == "comma" and "5 7" in str(found.contexts[0])
