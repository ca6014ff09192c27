"""What a run counts and what a token is, everywhere in its units; names of models and users "
"stay."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import ontogeny
import ontogeny as og
from helpers import ability_nodes, compared_runs
from helpers import report_examples as examples
from helpers.concept_trees import learned
from helpers.dated_texts import attached, planted_node
from helpers.report_page import Page
from ontogeny.figures import Section
from ontogeny.observables.registry import kinds
from ontogeny.quantities import Quantity
from ontogeny.report.notebook.summary import ResultSummary
from ontogeny.report.page.html import render_page
from ontogeny.report.page.live import Live
from ontogeny.words.content import read_content
from ontogeny.words.voice import Voice

CLOCKS = ("training step", "training epoch", "training tokens")
TOKENS = ("word", "character", "move", "amino acid")
NAMES = (
    "step.mlp",
    "word.mlp",
    "token.mlp",
    "epoch.mlp",
    "multi step reasoning",
    "many words",
)
MARK = re.compile(r"\{(?:step|checkpoint|point|word)\}", re.IGNORECASE)
STEP = re.compile(r"(?<![\w-])steps?\b(?! lengths?)", re.IGNORECASE)


def told(tree, **options):
    """All that a page says: its text without code, words on hover, texts in its data."""
    html = render_page(read_content(tree), **options)
    page = Page(re.sub(r"(?s)<(code|style)\b.*?</\1>", " ", html))
    named = [
        attrs[n]
        for _, attrs in page.tags
        for n in ("aria-label", "title")
        if n in attrs
    ]
    return [page.words, *named, *texts_of(page.data)]


def texts_of(data):
    if isinstance(data, dict):
        return [text for value in data.values() for text in texts_of(value)]
    if isinstance(data, list):
        return [text for value in data for text in texts_of(value)]
    whole = isinstance(data, str) and " " in data and not data.startswith("import ")
    return [data] if whole else []


def of_names(clock, token="word", seed=0, controls=True):
    """A run with modules and abilities that are called as the house calls steps and words."""
    steps = ability_nodes.STEPS
    runs = compared_runs.run(
        steps=compared_runs.STEPS, layers=4, seed=seed, controls=controls, name="{}.mlp"
    )
    of_layers = runs["attention-entropy"].to_dataset()
    short = dict(zip((f"{i}.mlp" for i in range(4)), NAMES, strict=False))
    rows = [str(row) for row in of_layers.row.values]
    for number, name in short.items():
        rows = [row.replace(number, name) for row in rows]
    of_layers = of_layers.assign_coords(
        layer=list(short.values()), row=np.array(rows, dtype=object)
    ).assign(
        row_layer=("row", np.array([short[str(p)] for p in of_layers.row_layer.values]))
    )
    halves = {"multi step reasoning": [0.5, 0.5, 1, 1], "many words": [0.5, 1, 1, 1]}
    nodes = {
        "loss": runs["loss"].to_dataset(),
        "attention-entropy": of_layers,
        "pairs": ability_nodes.with_texts(ability_nodes.node(halves, seed=seed)),
        "token-losses": attached(planted_node()),
    }
    tree = xr.DataTree.from_dict({"/": xr.Dataset(), **nodes})
    tree.attrs = runs.attrs | {"clock": clock, "steps": json.dumps(compared_runs.STEPS)}
    inputs = json.loads(tree.attrs["inputs"])
    tree.attrs["inputs"] = json.dumps([{**inputs[0], "token_unit": token}])
    assert set(steps) - set(compared_runs.STEPS)  # steps of both nodes are on the axis
    return tree


def without_names(text):
    for name in NAMES:
        text = text.replace(name, "")
    # The last part of a module's path is its short name in the chart.
    for name in ("attention entropy step", "· step", "step · attention", "align step"):
        text = re.sub(name.replace(" ", r"\s"), "", text)
    return text


def counts(texts):
    return [sum(text.count(name) for text in texts) for name in NAMES]


@pytest.mark.parametrize("clock", CLOCKS)
def test_modules_and_abilities_keep_their_names_on_every_clock(clock):
    texts = told(of_names(clock))
    assert counts(texts) == counts(told(of_names("training step")))
    assert min(counts(texts)) > 0
    summary = str(ResultSummary(of_names(clock)))
    said = [without_names(text) for text in [*texts, summary]]
    unit = Voice(clock).unit
    assert any(re.search(rf"\b{unit}s? \d", text) for text in said)
    if unit != "step":
        assert [text[:200] for text in said if STEP.search(text)] == []


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_comparison_names_the_same_and_counts_the_same(clock):
    runs = {f"step {i}": of_names(clock, seed=i) for i in (1, 2)}
    tree = og.compare(runs).tree
    texts = [text.replace("step 1", "").replace("step 2", "") for text in told(tree)]
    assert counts(texts) == counts(
        text.replace("step 1", "").replace("step 2", "")
        for text in told(
            og.compare(
                {k: of_names("training step", seed=i + 1) for i, k in enumerate(runs)}
            ).tree
        )
    )
    stored = [
        str(value)
        for node in tree.subtree
        for attrs in (node.attrs, *(v.attrs for v in node.variables.values()))
        for value in attrs.values()
    ]
    assert [text[:200] for text in [*texts, *stored] if MARK.search(text)] == []
    unit = Voice(clock).unit
    assert any(re.search(rf"\b{unit}s? \d", text) for text in texts)
    if unit != "step":
        assert [
            text[:200] for text in map(without_names, texts) if STEP.search(text)
        ] == []


def test_runs_that_count_different_things_are_compared_by_their_tokens():
    runs = {"a": of_names("training epoch"), "b": of_names("training step", seed=1)}
    rates = {"a": 1000, "b": 10}
    tree = og.compare(runs, align="tokens", tokens_per_step=rates).tree
    assert tree.attrs["clock"] == "training tokens"


def test_a_token_of_inputs_that_have_different_tokens_is_a_token():
    units = [{"token_unit": "character"}, {"token_unit": "word"}]
    assert Voice.of("", units).word == "token"
    assert Voice.of("", units[:1] * 2).word == "character"
    assert Voice.of("", []).word == "word"


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("clock", CLOCKS)
def test_tokens_are_called_what_they_are(clock, token):
    tree = learned()
    tree.attrs |= {
        "clock": clock,
        "inputs": json.dumps([{"name": "x", "token_unit": token}]),
    }
    texts = told(tree)
    assert any(f"{token} frequencies" in text for text in texts)
    if token != "word":
        assert not any("word frequencies" in text.lower() for text in texts)
    assert [text[:200] for text in texts if MARK.search(text)] == []


TREES = {
    "developing": examples.developing_tree,
    "controlled": examples.controlled_tree,
    "not learned": lambda: examples.controlled_tree(learned=False),
    "still": examples.still_tree,
    "hostile": examples.hostile_tree,
    "concepts": learned,
}


@pytest.mark.parametrize("name", TREES)
def test_no_mark_is_left_on_a_page(name):
    tree = TREES[name]()
    texts = [*told(tree, live=Live(400, 60)), str(ResultSummary(tree))]
    assert [text[:200] for text in texts if MARK.search(text)] == []


# Observables that speak of steps of another kind: of a gradient, a sampler, a walk, a refit.
OTHER_STEPS = {"commutators", "learning-coefficient", "lipschitz", "projection"}
OTHER_STEPS |= {"transform-dynamics"}


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_what_an_observable_says_leaves_open_what_a_run_counts(kind):
    """Texts of results hold marks in the place of steps; questions and prices are of no run."""
    of_class = [value for value in vars(kinds()[kind]).values() if not callable(value)]
    said = []
    for value in of_class:
        if isinstance(value, Section):
            said += list(vars(value).values())
        if isinstance(value, tuple) and value and isinstance(value[0], Quantity):
            said += [text for each in value for text in _texts_of_quantity(each)]
    wrong = [
        text
        for text in said
        if isinstance(text, str) and STEP.search(MARK.sub("", text))
    ]
    assert bool(wrong) == (kind in OTHER_STEPS), wrong


def _texts_of_quantity(quantity):
    texts = [quantity.title, quantity.units, quantity.rows, quantity.heading]
    return [*texts, quantity.caption, quantity.shade, *quantity.nulls.values()]


def test_marks_are_filled_and_nothing_else():
    voice = Voice("training epoch", "move")
    assert (
        voice.fill("{Step} 3, {checkpoint}s, {x}, step 3")
        == "Epoch 3, checkpoints, {x}, step 3"
    )
    data = xr.Dataset(
        {"x": ("step", [1.0], {"long_name": "at {step} 1", "n": 3})}, {"step": [1]}
    )
    figures = [{"title": "{Word}s", "select": {"which": "{step}"}}]
    data = data.assign_attrs(figures=json.dumps(figures), mark="{step} [1]")
    filled = voice.filled_node(data)
    assert filled.x.attrs == {"long_name": "at epoch 1", "n": 3}
    assert json.loads(filled.attrs["figures"]) == [
        {"title": "Moves", "select": {"which": "{step}"}}
    ]
    assert filled.attrs["mark"] == "epoch [1]"
    assert data.x.attrs["long_name"] == "at {step} 1"  # what was given stays


# Rooms that write what people read of results, and where regular expressions may stand in them.
ROOMS = (
    "words",
    "report",
    "comparison",
    "atlas",
    "summary",
    "claims",
    "problems",
    "features",
)
MAY = {
    "claims/expectations.py": "a file of expectations",
    "words/formats.py": "characters that no file of a page can hold",
    "words/labels.py": "names of modules",
    "report/concepts/layers.py": "names of modules, for links",
    "report/figures/drawable.py": "names of files",
    "report/page/html.py": "HTML",
    "report/style.py": "style sheets",
    "comparison/layers.py": "names of modules",
    "features/abilities/choice_forms.py": "texts of published tasks",
    "features/abilities/contrasts.py": "words of texts that are measured",
    "features/concepts/describe/row_words.py": "words of texts that are measured",
    "features/learned_concepts/letters.py": "words of texts that are measured",
    "features/learned_concepts/places.py": "words of texts that are measured",
    "features/predictions/gaps.py": "a file of gaps",
    "features/predictions/word_gaps.py": "words of texts that are measured",
}


def test_no_regular_expression_touches_a_sentence():
    root = Path(ontogeny.__file__).parent
    users = {
        path.relative_to(root).as_posix()
        for room in (*ROOMS, "trajectory/audit")
        for path in (root / room).rglob("*.py")
        if any(
            _names_re(node)
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )
    }
    assert users == set(MAY)


def _names_re(node):
    if isinstance(node, ast.ImportFrom):
        return node.module == "re"
    return isinstance(node, ast.Import) and any(
        alias.name == "re" for alias in node.names
    )
