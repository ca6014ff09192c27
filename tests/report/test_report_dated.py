"""Dated texts: since when tokens are predicted for good, against planted losses."""

import re

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from helpers import concept_trees as made
from helpers import example_texts as examples
from helpers import report_examples
from helpers.dated_texts import of_runs, one_model, planted_node, with_fires
from helpers.report_page import Page
from ontogeny import compare
from ontogeny.report.concepts.nodes import read_concepts
from ontogeny.report.concepts.tokens import Pieces
from ontogeny.report.page.html import render_page
from ontogeny.report.texts.beyond_bigrams import read_beyond_bigrams
from ontogeny.report.texts.dated import LEVEL, _controls_words, _surpasses, read_dated
from ontogeny.report.texts.dates import chosen, dates
from ontogeny.report.texts.example import text_of
from ontogeny.words.content import read_content

STEPS = np.array([1, 2, 4, 8, 16])


def planted(*tokens):
    """Losses (step, token) of courses in which 1 is predicted, 0 is not, beside a cost of 5."""
    return np.where(np.array(tokens).T == 1, 5 - np.log(2) - 1e-9, 5 - np.log(2) + 1e-9)


def test_a_date_is_the_first_step_from_which_it_holds_at_every_later_one():
    losses = planted([0, 1, 1, 1, 1], [1, 0, 1, 1, 1], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1])
    step, lasts = dates(STEPS, losses, np.full(4, 5.0))
    np.testing.assert_array_equal(step, [2, 4, np.nan, 1])
    assert lasts.tolist() == [True, True, False, True]


def test_what_holds_at_the_last_one_or_two_checkpoints_is_not_yet_for_good():
    losses = planted([0, 0, 1, 1, 1], [0, 0, 0, 1, 1], [0, 0, 0, 0, 1])
    step, lasts = dates(STEPS, losses, np.full(3, 5.0))
    assert step.tolist() == [4, 8, 16] and lasts.tolist() == [True, False, False]


def test_a_checkpoint_that_failed_is_left_out_and_does_not_count_as_a_later_one():
    losses = planted([0, 0, 1, 1, 1], [0, 1, 1, 1, 1])
    losses[3] = np.nan
    step, lasts = dates(STEPS, losses, np.full(2, 5.0))
    assert step.tolist() == [4, 2] and lasts.tolist() == [False, True]


def test_texts_with_most_words_are_chosen_and_not_those_with_most_signs():
    pieces = Pieces({0: ",", 1: " the", 2: "##ing", 3: "7", 4: "é"})
    ids = np.array([[0, 0, 3, 0], [1, 0, 0, 0], [1, 2, 4, -1], [1, 2, 4, 1]])
    predicted = ids >= 0
    assert chosen(pieces, ids, predicted).tolist() == [2, 3]
    predicted[3] = False  # nothing of it is predicted
    assert chosen(pieces, ids, predicted).tolist() == [1, 2]
    assert chosen(Pieces({}), ids, predicted).tolist() == [0, 1]


def test_bytes_without_a_character_are_no_words_and_do_not_turn_a_text():
    pieces = Pieces({0: "<0xD7>", 1: " the", 2: "<0x9F>", 3: "<0xA9>", 4: "ש"})
    ids = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [0, 3, 0, 3]])
    predicted = ids >= 0
    assert chosen(pieces, ids, predicted).tolist() == [1, 2]
    for tokens, direction in (
        ([0, 3, 0, 3], "rtl"),
        ([4, 0, 2, 2], "rtl"),
        ([1, 0], "ltr"),
    ):
        row = np.array(tokens)
        assert text_of(pieces, row, row >= 0, "").direction == direction


def dated(data):
    return read_dated(
        read_content(made.tree({"loss": made.loss_story(), "tokens": data}))
    )


def test_the_page_holds_the_dates_of_a_planted_node_and_counts_them():
    data = planted_node()
    found = dated(data)
    assert [line.text.name for line in found.lines] == ["text 4", "text 7"]
    for line, row in zip(found.lines, (0, 1), strict=True):
        predicted = data.token_loss.notnull().values[0, row]
        for place, token in enumerate(line.tokens):
            assert token.state == ("good" if predicted[place] else "given")
            assert token.step == (made.STEPS[place] if predicted[place] else None)
    total = int(data.token_loss.notnull().values[0, :2].sum())
    assert found.sentence.startswith(
        f"By step 512, {total} of {total} tokens are at least twice as likely as by "
        "frequency, for good."
    )
    assert len(found.sentence.split()) <= 20


def test_tokens_that_are_never_or_just_predicted_are_not_counted():
    data = planted_node()
    data.token_loss[-1, 0, 1] = 5.0
    data.token_loss[-3, 0, 2] = 5.0
    states = [token.state for token in dated(data).lines[0].tokens]
    assert states[:4] == ["given", "never", "late", "good"]
    fewer, total = (
        int(dated(each).sentence.split()[3]) for each in (data, planted_node())
    )
    assert fewer == total - 2


def test_step_0_gives_no_date():
    data = planted_node()
    data.token_loss[:, 0, 1] = 1.0  # from the first weights on
    assert made.STEPS[0] == 0 and dated(data).lines[0].tokens[1].step == made.STEPS[1]


def test_a_rare_token_that_costs_what_a_blind_guess_costs_is_not_predicted():
    data = planted_node()
    data.token_loss[:, 0, 1] = 6.0
    data.token_loss_frequencies[0, 1] = 10.0
    loss = made.loss_story().assign(loss_uniform=6.0)
    found = read_dated(read_content(made.tree({"loss": loss, "tokens": data})))
    assert found.blind and found.lines[0].tokens[1].state == "never"
    unknown = made.loss_story().drop_vars("loss_uniform", errors="ignore")
    found = read_dated(read_content(made.tree({"loss": unknown, "tokens": data})))
    assert not found.blind and found.lines[0].tokens[1].state == "good"


def test_only_tokens_that_a_masked_model_had_hidden_are_dated():
    data = planted_node().assign(masked=((), np.int8(1)))
    data.token_loss[:, 0, 3] = np.nan
    found = dated(data)
    assert found.masked and found.lines[0].tokens[3].state == "given"


def test_controls_are_counted_and_the_first_one_stands_beside_the_run_at_its_steps():
    data, read = planted_node(), [0, 4, 6, 8, -1]
    losses = np.full((2, *data.token_loss.shape), np.nan)
    there = data.token_loss.notnull().values[0]
    for run in range(2):
        losses[run, read] = np.where(there, 5.0, np.nan)
    losses[1][np.ix_(read, [0], [3])] = 1.0
    data = data.assign_coords(run=["walk 0", "walk 1"])
    data = data.assign(token_loss_control=(("run", "step", "text", "place"), losses))
    found = dated(data)
    assert found.sentence.endswith("(control runs 0–1).")
    (_, control), (_, own) = found.beside.lines
    assert {t.state for line in control for t in line.tokens} == {"given", "never"}
    assert any(t.leads for line in own for t in line.tokens)
    assert not any(t.leads for line in control for t in line.tokens)
    steps = np.array(made.STEPS)[read[1:]]
    assert own[0].tokens[3].step == steps[steps >= made.STEPS[3]][0]
    assert dated(planted_node()).beside is None
    page = render_page(
        read_content(made.tree({"loss": made.loss_story(), "tokens": data}))
    )
    assert (
        "<h4>A control run</h4>" in page and page.count('class="dated-line"') == 2 + 2
    )


@pytest.mark.parametrize(
    "data",
    [
        examples.losses(costs=False),
        examples.losses().drop_vars("token_loss"),
        examples.losses().drop_vars("token_id"),
        examples.losses().isel(step=slice(0, 3)),
    ],
    ids=["no frequencies", "no losses", "no tokens", "two steps"],
)
def test_without_what_it_needs_there_is_no_figure(data):
    assert dated(data) is None


def test_a_page_with_token_losses_has_the_figure_and_another_has_none():
    page = render_page(read_content(examples.tree(hostile=True)))
    figure = re.search(r'<figure class="dated.*?</figure>', page, re.DOTALL)[0]
    assert (
        "&lt;script&gt;alert(1)" in figure
        and "<script" not in figure
        and "<img" not in figure
    )
    assert 'dir="rtl"' in figure and figure.index(", for good") < figure.index("<p ")
    assert (
        page.index('id="life"')
        < page.index('class="dated')
        < page.index('<div class="columns">')
    )
    Page(page)
    assert '<figure class="dated' not in render_page(
        read_content(report_examples.developing_tree())
    )


def test_of_a_base_the_text_says_what_it_predicts_and_what_was_lost():
    losses = planted([1, 1, 1, 1, 1], [0, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0])
    data = examples.losses(steps=tuple(STEPS))
    data["token_loss_frequencies"] = data.token_loss_frequencies * 0 + 5
    predicted = np.argwhere(np.isfinite(data.token_loss.values[0]))
    texts, places = predicted[predicted[:, 0] == 0][:4].T
    data.token_loss[:, :] = np.where(np.isfinite(data.token_loss), 9.0, np.nan)
    data.token_loss.values[:, texts, places] = losses
    tree = made.tree(
        {"loss": made.loss_story(steps=tuple(STEPS)), "tokens": data},
        steps=tuple(STEPS),
        trajectory='{"base": true}',
    )
    shown = read_dated(read_content(tree))
    states = [d.state for d in shown.lines[0].tokens if d.state != "given"]
    assert states[:4] == ["good", "good", "lost", "never"]
    assert " 2 of 11 tokens" in shown.sentence
    assert "The base predicts 1 of these, and 1 more that are lost" in shown.sentence


def test_the_base_alone_says_what_it_predicts_also_beside_a_control():
    steps = (0, *STEPS)
    own = planted([1, 0, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1], [0, 1, 0, 0, 0, 0])
    data = examples.losses(steps=steps)
    data["token_loss_frequencies"] = data.token_loss_frequencies * 0 + 5
    predicted = np.argwhere(np.isfinite(data.token_loss.values[0]))
    texts, places = predicted[predicted[:, 0] == 0][:3].T
    data.token_loss[:, :] = np.where(np.isfinite(data.token_loss), 9.0, np.nan)
    data.token_loss.values[:, texts, places] = own
    control = data.token_loss.values[None].copy()
    control[0, 0] = np.nan
    data = data.assign_coords(run=["walk 0"])
    data = data.assign(token_loss_control=(("run", "step", "text", "place"), control))

    def read():
        nodes = {"loss": made.loss_story(steps=steps), "tokens": data}
        base = '{"base": true}'
        return read_dated(read_content(made.tree(nodes, steps=steps, trajectory=base)))

    # The first one is lost for a step and comes back; the third one holds at step 1, not before.
    assert "The base predicts 1 of these, and 0 more" in read().sentence
    (_, lines), _ = read().beside.lines
    states = [d.state for d in lines[0].tokens if d.state != "given"]
    assert states[:3] == ["good", "good", "never"]
    data.token_loss[0] = np.nan
    assert "base" not in read().sentence


def test_texts_of_two_runs_have_a_line_for_each_with_its_name_on_one_axis():
    compared = compare(of_runs([0, 6]))
    found = read_dated(read_content(compared))
    assert [line.of for line in found.lines] == ["full", "LoRA"] * 2
    assert [line.text.name for line in found.lines] == ["text 4"] * 2 + ["text 7"] * 2
    full, late = found.lines[:2]
    for place, (one, other) in enumerate(zip(full.tokens, late.tokens, strict=True)):
        if one.state == "given":
            assert other.state == "given"
        elif place + 6 < len(made.STEPS) - 2:
            # Both are predicted from step 0 on, which is no date, or from their own step.
            assert one.step == made.STEPS[max(place, 1)]
            assert other.step == made.STEPS[place + 6]
    counts = [
        sum(
            t.state == "good"
            for line in found.lines
            if line.of == name
            for t in line.tokens
        )
        for name in ("full", "LoRA")
    ]
    asked = sum(t.state != "given" for line in found.lines[::2] for t in line.tokens)
    assert found.sentence == (
        f"By step 512, {counts[0]} (full) and {counts[1]} (LoRA) of {asked} tokens are at "
        "least twice as likely as by frequency, for good."
    )
    assert counts[0] > counts[1] and not found.apart
    page = render_page(read_content(compared))
    assert page.count('class="dated-run"') == 4 and 'data-of="LoRA"' in page
    Page(page)


def test_of_three_runs_one_text_is_shown_and_one_of_other_texts_is_named():
    names = ("full", "LoRA", "fro\x07zen")
    runs = of_runs([0, 1, 2], names)
    found = read_dated(read_content(compare(runs)))
    shown = [line.of for line in found.lines]
    assert shown[:2] == ["full", "LoRA"] and "\x07" not in shown[2] and found.texts == 1
    other = runs["LoRA"]["token-losses"].to_dataset()
    runs["LoRA"]["token-losses"] = xr.DataTree(
        other.assign(token_id=other.token_id + 1)
    )
    found = read_dated(read_content(compare(runs)))
    assert [line.of for line in found.lines] == [shown[0], shown[2]]
    assert found.apart == ("LoRA",)
    assert "Not shown: LoRA." in render_page(read_content(compare(runs)))
    del runs[names[2]]
    assert read_dated(read_content(compare(runs))) is None


def test_runs_are_compared_up_to_the_end_of_the_shortest():
    runs = of_runs([0, 2])
    steps = made.STEPS[:6]
    parts = {
        name: runs["LoRA"][name].to_dataset().isel(step=slice(len(steps)))
        for name in ("loss", "token-losses")
    }
    runs["LoRA"] = made.tree(parts, steps=steps)
    found = read_dated(read_content(compare(runs)))
    full = [t.step for line in found.lines[::2] for t in line.tokens if t.step]
    assert found.sentence.startswith(f"By step {steps[-1]}, ")
    assert max(full) <= steps[-1]


def test_a_run_of_fewer_texts_warns_of_nothing(recwarn):
    runs = of_runs([0, 2])
    few = runs["LoRA"]["token-losses"].to_dataset().isel(text=slice(1))
    runs["LoRA"]["token-losses"] = xr.DataTree(few)
    assert read_dated(read_content(compare(runs))) is None
    assert not recwarn.list


def test_controls_of_each_run_are_counted_with_it():
    runs = of_runs([0, 0])
    data = runs["LoRA"]["token-losses"].to_dataset()
    there = data.token_loss.notnull().values[0]
    losses = np.full((2, *data.token_loss.shape), np.nan)
    losses[:, -1] = np.where(there, 5.0, np.nan)
    losses[1, -1, 0, 2] = 1.0
    data = data.assign_coords(run=["walk 0", "walk 1"])
    control = (("run", "step", "text", "place"), losses)
    runs["LoRA"]["token-losses"] = xr.DataTree(data.assign(token_loss_control=control))
    sentence = read_dated(read_content(compare(runs))).sentence
    assert (
        sentence.count("control runs") == 1
        and "(control runs of LoRA 0–1)." in sentence
    )


def test_controls_of_a_longer_run_count_no_later_than_the_end_of_the_shortest():
    runs = of_runs([0, 2])
    steps = made.STEPS[:6]
    long = runs["full"]["token-losses"].to_dataset()
    losses = np.full((1, *long.token_loss.shape), np.nan)
    losses[:, 5:] = np.where(long.token_loss.notnull().values[0], 1.0, np.nan)
    losses[:, 5] += 4  # predicted by the control only after the other run has ended
    control = (("run", "step", "text", "place"), losses)
    long = long.assign_coords(run=["walk 0"]).assign(token_loss_control=control)
    runs["full"]["token-losses"] = xr.DataTree(long)
    parts = {
        name: runs["LoRA"][name].to_dataset().isel(step=slice(len(steps)))
        for name in ("loss", "token-losses")
    }
    runs["LoRA"] = made.tree(parts, steps=steps)
    sentence = read_dated(read_content(compare(runs))).sentence
    assert sentence.startswith(f"By step {steps[-1]}, ")
    assert "(control runs of full 0)" in sentence


def test_tokens_of_one_model_are_coloured_by_their_gain_over_bigrams():
    _, tree = one_model()
    found = read_beyond_bigrams(read_content(tree))
    assert read_dated(read_content(tree)) is None
    edges = [gain for gain, _ in found.key]
    assert edges[0] == 0.7 and edges == sorted(edges)
    for line in found.lines:
        for place, token in enumerate(line.tokens):
            gain = 0.5 * place
            if token.state == "given":
                continue
            assert (token.state == "good") == (gain >= np.log(2))
            if token.state == "good":
                assert edges[token.shade] <= round(gain + 0.05, 1)
                assert token.shade == 11 or gain < edges[token.shade + 1] + 0.05
    good = sum(t.state == "good" for line in found.lines for t in line.tokens)
    assert found.sentence.startswith(f"{good} of ")
    assert found.sentence.endswith("twice as likely as by bigrams of the other texts.")
    page = render_page(read_content(tree))
    assert 'class="dated beyond' in page and "less than twice as likely" in page
    Page(page)


def test_a_uniform_guess_and_frequencies_stand_where_bigrams_cost_more_or_are_unknown():
    data, tree = one_model(bigrams=30.0)
    costs = {
        t.cost
        for line in read_beyond_bigrams(read_content(tree)).lines
        for t in line.tokens
        if t.state != "given"
    }
    assert costs == {8.0}
    tree["token-losses"] = xr.DataTree(data.drop_vars("token_loss_bigrams"))
    found = read_beyond_bigrams(read_content(tree))
    assert "by their frequencies in the other texts" in found.sentence
    several = made.tree({"loss": made.loss_story(), "tokens": planted_node()})
    assert read_beyond_bigrams(read_content(several)) is None


@pytest.mark.parametrize("masked", [False, True])
def test_a_concept_stands_below_with_its_birth_and_the_tokens_after_its_places(masked):
    places = [2, 4]
    data, tree = with_fires(places, masked=masked)
    content = read_content(tree)
    (row,) = read_dated(content, read_concepts(content)).concepts
    assert row.birth == (64, 32, 128)
    assert row.at[1] < row.at[0] < row.at[2]
    # Token k is predicted for good from the k-th step on.
    at = [place + (not masked) for place in places]
    predicted = data.token_loss.notnull().values[0, :2]
    expected = {made.STEPS[k]: int(predicted[:, k].sum()) for k in at}
    found = {square.step: square.count for square in row.squares}
    assert found == {step: count for step, count in expected.items() if count}
    assert row.total == sum(expected.values()) == row.count
    page = render_page(content)
    assert f'href="{row.link}"' in page and 'class="birth-dot"' in page
    atlas = Page(page).data["atlas"]
    links = [
        f"#{atlas['layers'][c['layer']]['address']}{c['number']}"
        for c in atlas["concepts"]
    ]
    assert row.link in links


def test_places_are_found_by_the_number_of_the_text_where_fewer_have_losses():
    _, tree = with_fires([2, 4])
    last = tree["tokens"].to_dataset().isel(text=[1])
    tree["tokens"] = xr.DataTree(last)
    content = read_content(tree)
    (row,) = read_dated(content, read_concepts(content)).concepts
    assert row.total == int(last.token_loss.notnull().values[0, 0, [3, 5]].sum()) > 0


def test_concepts_that_are_strong_in_other_texts_or_nowhere_have_no_row():
    _, tree = with_fires([])
    content = read_content(tree)
    assert read_dated(content, read_concepts(content)).concepts == ()
    _, tree = with_fires([2])
    concepts = tree["joint-concepts"].to_dataset()
    moved = concepts.assign(shown_token_id=concepts.shown_token_id + 1)
    tree["joint-concepts"] = xr.DataTree(moved)
    content = read_content(tree)
    assert read_dated(content, read_concepts(content)).concepts == ()
    plain = concepts.drop_vars("shown_fires")
    tree["joint-concepts"] = xr.DataTree(plain)
    content = read_content(tree)
    assert read_dated(content, read_concepts(content)).concepts == ()


@pytest.mark.parametrize(
    ("count", "in_controls", "sure"),
    [
        (6, [1, 4], False),
        (4, [0], False),
        (5, [0], True),
        (83, [4, 7], True),
        (0, [], True),
    ],
)
def test_a_count_that_control_runs_may_reach_is_not_said_to_be_more(
    count, in_controls, sure
):
    # Beside scipy's exact test; a random walk had 6 tokens, its control runs 1 to 4.
    assert _surpasses(count, in_controls) == sure
    if in_controls:
        every = count + max(in_controls)
        oracle = (
            stats.binomtest(count, every, alternative="greater").pvalue if every else 1
        )
        assert (oracle <= LEVEL) == sure
    said = _controls_words(count, in_controls)
    assert ("is not shown" in said) == (not sure)
