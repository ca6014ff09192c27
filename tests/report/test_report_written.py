"""What a run writes on the page, in a notebook and in a terminal: the same planted texts."""

import re

import pytest

from helpers import concept_trees as made
from helpers.dated_texts import of_runs, one_model
from helpers.report_page import Page
from helpers.written_texts import tree, written
from ontogeny import compare
from ontogeny.errors import ArgumentError
from ontogeny.report.notebook.texts import ResultTexts
from ontogeny.report.page.html import render_page
from ontogeny.report.texts.dated import read_dated
from ontogeny.report.texts.written import read_written
from ontogeny.words.content import read_content


def test_the_page_holds_what_every_step_writes():
    shown = read_written(read_content(tree()))
    assert shown.step == "512"
    assert shown.payload["steps"] == list(made.STEPS)
    words = [" The", " cat", " sat", " mat"]
    for number, texts in enumerate(shown.payload["texts"]):
        likeliest, drawn = texts[0]
        assert likeliest == 3 * words[number % 4]
        assert drawn == "<b>& The"
    first, second = shown.prompts
    assert (first.before, first.follows) == (" The cat", " mat sat")
    assert (second.before, second.follows) == (" sat", "")


def test_tokens_are_escaped_and_special_ones_before_a_prompt_are_left_out():
    html = render_page(read_content(tree()))
    page = Page(html)
    assert "<b>&amp; The" not in html
    assert "What it writes at step" in page.words
    assert "<s> The" not in page.words


def test_the_node_is_shown_once():
    html = render_page(read_content(tree()))
    assert html.count('class="written"') == 1
    assert 'id="written"' not in html  # the table of the section, which would repeat it


def test_steps_that_wrote_nothing_are_left_out():
    data = written()
    data["written_id"][3] = -1
    nodes = {"loss": made.loss_story(), "writing": data}
    shown = read_written(read_content(made.tree(nodes)))
    assert shown.payload["steps"] == [s for s in made.STEPS if s != made.STEPS[3]]


def test_a_terminal_and_a_notebook_show_the_same_texts():
    texts = ResultTexts(tree(), step=5)
    plain = str(texts)
    page = Page(texts._repr_html_())
    for said in ("What it writes at step 4", "mat mat mat", ", for good"):
        assert said in plain
        assert said in page.words
    assert "<b>&amp; The" in texts._repr_html_().replace("&lt;b&gt;", "<b>")
    key = texts._repr_html_().partition("for good from step")[2].partition("dim:")[0]
    papers = re.findall(r"background:(#\w+)", key)
    assert len(papers) == len(set(papers)) > 1  # each shade with its first step


def test_a_terminal_without_colours_lists_the_tokens_of_each_step():
    from rich.console import Console

    texts = ResultTexts(tree())
    lines = read_dated(read_content(tree())).lines
    dated = [d for line in lines for d in line.tokens if d.state == "good"]
    listed = [line.split() for line in str(texts).splitlines() if "from step" in line]
    assert listed == [
        ["from", "step", str(d.step), d.token.text.strip()] for d in dated
    ]
    console = Console(
        force_terminal=True, color_system="truecolor", record=True, file=None
    )
    with console.capture() as captured:
        console.print(texts)
    assert "48;2;" in captured.get()  # a background of 24 bits
    assert "for good from step" in captured.get()


def test_what_cannot_be_shown_is_said():
    with pytest.raises(ArgumentError, match="token-losses"):
        ResultTexts(made.tree({"loss": made.loss_story()}))
    late = written(steps=made.STEPS[2:])
    nodes = {"loss": made.loss_story(), "writing": late}
    with pytest.raises(ArgumentError, match="step must be at least 2"):
        ResultTexts(made.tree(nodes), step=1)


def test_of_several_runs_each_line_has_its_name_and_its_own_dates():
    shown = compare(of_runs([0, 6])).texts()
    plain = str(shown)
    assert plain.startswith("By step 512, ") and plain.count("\nfull\n") == 2
    first = plain.split("\nLoRA\n")[0]
    assert f"from step {made.STEPS[1]} " in first
    assert (
        f"from step {made.STEPS[1]} "
        not in plain.split("\nLoRA\n")[1].split("\nfull\n")[0]
    )
    assert shown._repr_html_().count("<b>LoRA</b>") == 2


def test_of_one_model_tokens_stand_by_their_gain_in_nats():
    _, tree = one_model()
    shown = ResultTexts(tree)
    assert str(shown).startswith("9 of 11 tokens are at least twice as likely as by ")
    assert "from 0.9 nats  cat" in str(shown)  # it gains 1 nat
    assert "less than twice as likely" in shown._repr_html_()
