"""Runs with known curves: aligned by step, tokens and loss, matched, counted and refused."""

import json

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers.compared_runs import STEPS, fallen, run, seeds
from ontogeny.claims import Certainty, Kind, Reason
from ontogeny.comparison.clock import first_crossings
from ontogeny.comparison.layers import match_layers
from ontogeny.comparison.orders import claims_of_orders, correlations
from ontogeny.dynamics.reasons import Reason as RowReason
from ontogeny.errors import ArgumentError
from ontogeny.trees import as_tree
from ontogeny.words.content import read_content
from ontogeny.words.formats import fine_step
from ontogeny.words.page_claims import claims_of_result
from ontogeny.words.phrases import Names
from ontogeny.words.row_words import standing_of
from ontogeny.words.runs import heading_of_runs, sentences_of_runs
from ontogeny.words.sentences import sentences
from ontogeny.words.voice import OF_STEPS


def told(tree, node):
    return [one.text for one in sentences_of_runs(read_content(tree), node)]


def headed(tree):
    return heading_of_runs(read_content(tree)).text


def test_equal_steps_stand_together_and_others_are_gaps():
    runs = {
        "even": run(20, 0, steps=(0, 10, 20, 30)),
        "odd": run(20, 1, steps=(0, 15, 30)),
    }
    loss = og.compare(runs)["loss"].loss
    assert loss.step.values.tolist() == [0, 10, 15, 20, 30]
    assert np.isnan(loss.sel(run="odd")).values.tolist() == [
        False,
        True,
        False,
        True,
        False,
    ]
    np.testing.assert_array_equal(
        loss.sel(run="odd", step=[0, 15, 30]), fallen((0, 15, 30), 20), strict=False
    )
    mean = og.compare(runs)["loss"].loss_mean
    assert np.isfinite(mean).values.tolist() == [True, False, False, False, True]


@pytest.mark.parametrize("more", [{}, {"align": "tokens", "tokens_per_step": 1000}])
def test_an_epoch_of_one_run_never_stands_beside_a_step_of_another(more):
    runs = {"a": run(20, 0), "b": run(20, 1)}
    runs["b"].attrs["clock"] = "training epoch"
    with pytest.raises(
        ArgumentError,
        match=r"training step in 'a'; training epoch in 'b'.* one another",
    ):
        og.compare(runs, **more)
    rates = {"a": 1000, "b": 2000}
    tree = og.compare(runs, align="tokens", tokens_per_step=rates)
    assert tree["loss"].loss.step.values[-1] == 2000 * STEPS[-1]
    assert og.compare(runs, align="loss").attrs["align"] == "loss"


def test_tokens_take_the_place_of_steps():
    runs = {"small": run(20, 0), "large": run(10, 1, steps=STEPS[:9])}
    tree = og.compare(
        runs, align="tokens", tokens_per_step={"small": 1000, "large": 2000}
    )
    data = tree["loss"].to_dataset()
    # Twice the tokens in half of the steps is the same curve over tokens.
    both = data.loss.dropna("step")
    assert both.step.values.tolist() == [0, *(1000 * 2**k for k in range(1, 9))]
    np.testing.assert_allclose(both.sel(run="small"), both.sel(run="large"), rtol=1e-10)
    half = data.half_step.sel(row="loss")
    np.testing.assert_allclose(half.sel(run="small"), half.sel(run="large"), rtol=0.02)
    assert tree.attrs["clock"] == "training tokens"
    dates = {
        c.subject.run: c.since
        for c in claims_of_result(as_tree(tree))
        if c.kind is Kind.CHANGED and c.subject.node == "loss"
    }
    low, high = sorted(dates[name] for name in runs)
    assert high > 1.9 * low  # each in its own steps, and said so
    assert (
        f". Half was there by step {fine_step(low)}–{fine_step(high)}"
        in told(tree, "loss")[0]
    )


def test_tokens_are_read_from_the_checkpoints():
    def told_tokens(rate):
        revisions = {str(s): {"tokens": rate * s or None} for s in STEPS}
        digests = {str(s): f"{rate}-{s}" for s in STEPS}
        return json.dumps({"revisions": revisions, "digests": digests})

    runs = {
        f"{rate}": run(20, rate, trajectory=told_tokens(rate)) for rate in (100, 300)
    }
    steps = og.compare(runs, align="tokens")["loss"].step.values
    assert set(steps) == {rate * s for rate in (100, 300) for s in STEPS}
    runs["100"].attrs["trajectory"] = "{}"
    with pytest.raises(ArgumentError, match="'100' do not tell how many tokens"):
        og.compare(runs, align="tokens")


def test_first_crossings_are_exact_on_straight_lines():
    # 8 to 4 in four steps, with a rise in between: each level at its first time alone.
    losses = np.array([8.0, 6.0, 7.0, 5.0, 5.5, 4.0])
    levels = np.array([8.0, 7.0, 6.0, 5.5, 4.75, 4.0, 3.0])
    expected = [0.0, 0.5, 1.0, 2.75, 4.5, 5.0, np.nan]
    np.testing.assert_allclose(first_crossings(losses, levels), expected)


def test_curves_that_follow_the_loss_coincide_when_aligned_by_it():
    """A quantity that is 3 + 2 * loss in every run is that at every level, whatever the pace."""
    runs = {}
    for i, (half, steps) in enumerate(
        ((5, STEPS), (40, STEPS[:8]), (20, (0, 7, 33, 190)))
    ):
        tree = run(half, i, steps=steps)
        node = tree["loss"].to_dataset()
        extra = xr.Dataset({"x": 3 + 2 * node.loss, "count": ("layer", [1, 2])})
        runs[f"run {i}"] = xr.DataTree.from_dict({"loss": node, "extra": extra})
        runs[f"run {i}"].attrs = tree.attrs
    tree = og.compare(runs, align="loss")
    data = tree["extra"].to_dataset()
    levels = data.loss_level.values
    assert levels[0] == 8.0 and levels[-1] == pytest.approx(fallen([64], 40)[0])
    assert (np.diff(levels) < 0).all()
    for name in runs:
        # Two interpolations between numbers near 8: some roundings, and no small difference.
        np.testing.assert_allclose(data.x.sel(run=name), 3 + 2 * levels, rtol=1e-10)
    assert "loss_level" not in data["count"].dims
    # The first step at a level lies on the straight line between two checkpoints.
    at = tree["loss"].step_at_loss.sel(run="run 2").values
    steps = np.array([0, 7, 33, 190])
    np.testing.assert_allclose(
        np.interp(at, steps, fallen(steps, 20)), levels, rtol=1e-10
    )
    half = tree["loss"].half_loss.sel(row="loss")
    known = np.isfinite(half.values)
    assert known.any() and (half.values[known] < 8).all()
    low = tree["loss"].half_loss_low.sel(row="loss").values
    assert (low[known] <= half.values[known]).all()


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        (np.full(len(STEPS), 8.0), "does not fall by more than its noise"),
        (np.linspace(4, 8, len(STEPS)), "does not fall by more than its noise"),
        (np.linspace(8.0, 7.99, len(STEPS)), "does not fall by more than its noise"),
        (np.linspace(3.0, 2.0, len(STEPS)), "share no range"),
    ],
)
def test_what_cannot_be_aligned_by_loss_is_refused(losses, words):
    runs = {"falls": run(20, 0), "other": run(20, 1, loss=losses)}
    with pytest.raises(ArgumentError, match=words):
        og.compare(runs, align="loss")


def test_a_run_without_a_loss_is_refused():
    runs = seeds(2)
    del runs["seed 1"]["loss"]
    with pytest.raises(ArgumentError, match="run 'seed 1' has no loss"):
        og.compare(runs, align="loss")
    tree = og.compare(runs)
    assert "loss" not in tree.children
    assert "'loss' is left out: only 'seed 0'" in tree.attrs["problems"]


def test_words_count_runs_and_name_their_steps():
    tree = og.compare(seeds(3, controls=True))
    assert (
        og.comparison.summary_lines(tree)[0]
        == headed(tree)
        == "Loss improved by learning in 3 of 3 runs"
    )
    half = tree["loss"].half_step.sel(row="loss").values
    [loss] = told(tree, "loss")
    assert loss.startswith("Loss improved by learning in 3 of 3 runs: from 8 to ")
    assert (
        f"Half was there by step {fine_step(half.min())}–{fine_step(half.max())}."
        in loss
    )
    assert loss in og.comparison.summary_lines(tree)
    beyond = told(tree, "attention-entropy")[0]
    assert beyond.startswith(
        "Attention entropy fell in all 3 layers in 3 of 3 runs beyond controls"
    )


def test_what_no_run_could_judge_is_said_once_and_is_not_called_unchanged():
    few = {f"seed {i}": run(20, i, controls=True, steps=(0, 16, 256)) for i in range(2)}
    tree = og.compare(few)
    words = " is open: too few checkpoints."
    lines = og.comparison.summary_lines(tree)[1:]
    assert len(lines) == 2 and all(line.endswith(words) for line in lines)
    rows = [row for row in read_content(tree).rows if row.role != "motion"]
    assert {standing_of(row).reason for row in rows} == {Reason.FEW_CHECKPOINTS}
    for name in few:
        node = few[name]["loss"].to_dataset()
        few[name]["loss"].dataset = node.assign(noise_known=("row", [False]))
    rows = read_content(og.compare(few)).rows
    loss = [standing_of(row).reason for row in rows if row.quantity == "loss"]
    assert loss == [Reason.NOISE_UNKNOWN]


def test_an_order_is_said_only_where_every_run_has_it():
    # Intervals reach to neighbours.
    dense = (0, *np.unique(np.geomspace(1, 256, 40).astype(int)))
    agreeing = seeds(3, controls=True, steps=dense)
    ordered = told(og.compare(agreeing), "attention-entropy")
    assert any(
        " before layer" in text.replace("\N{NO-BREAK SPACE}", " ") for text in ordered
    )
    turned = run(20, 7, controls=True, steps=dense)
    node = turned["attention-entropy"].to_dataset()
    names = ("half_step", "half_step_low", "half_step_high")
    turned["attention-entropy"] = xr.DataTree(
        node.assign({name: ("row", node[name].values[::-1]) for name in names})
    )
    tree = og.compare({**agreeing, "turned": turned})
    assert not any(" before " in text for text in told(tree, "attention-entropy"))


def test_distances_to_the_last_step_have_no_order():
    runs = seeds(3, controls=True)
    for tree in runs.values():
        node = tree["attention-entropy"].to_dataset()
        last = node.entropy.isel(step=-1)
        tree["attention-entropy"] = xr.DataTree(
            node.assign(entropy=node.entropy - last)
        )
    assert not any(
        "before" in text for text in told(og.compare(runs), "attention-entropy")
    )


def test_without_controls_nothing_is_called_learned():
    tree = og.compare(seeds(3))
    assert headed(tree) == "Loss changed in 3 of 3 runs"
    assert og.comparison.summary_lines(tree)[-1].startswith("No control was run")
    assert not any("learned" in text for text in og.comparison.summary_lines(tree))
    assert not tree["loss"].learned.any() and tree["loss"].changed.all()


@pytest.mark.parametrize("verdict", ["learned", "can_learn", "judgeable"])
def test_learning_is_neither_claimed_nor_denied_where_it_is_not_shown(verdict):
    runs = seeds(2, controls=True)
    for tree in runs.values():
        node = tree["loss"].to_dataset()
        tree["loss"] = xr.DataTree(
            node.assign({v: node[v] & False for v in ("learned", verdict)})
        )
    tree = og.compare(runs)
    learned = [c for c in claims_of_result(as_tree(tree)) if c.kind is Kind.LEARNED]
    unsettled = (Certainty.OPEN, Certainty.NOT_TESTED)
    assert all(claim.certainty in unsettled for claim in learned)
    assert bool(learned) == (verdict != "can_learn")
    assert "learn" not in headed(tree) and " not " not in headed(tree)


def test_a_row_that_moved_and_did_not_change_has_an_open_mark_and_no_sentence():
    runs = seeds(2)
    node = runs["seed 1"]["loss"].to_dataset()
    node["changed"].values[:] = False
    runs["seed 1"]["loss"].dataset = node
    tree = og.compare(
        {name: xr.DataTree.from_dict({"loss": t["loss"]}) for name, t in runs.items()}
    )
    data = tree["runs"].to_dataset().isel(row=0)
    assert np.isfinite(data.half_step).all() and data.marked.values.tolist() == [
        True,
        False,
    ]
    assert any(
        text.startswith("Loss fell in 1 of 2 runs") for text in told(tree, "loss")
    )
    assert headed(tree) == "Loss changed in 1 of 2 runs"


def test_rank_correlations_leave_out_what_did_not_change():
    half = np.array([[1, 4.0], [2, 3], [3, 2], [4, 1], [5, np.nan]])
    half = np.vstack([half, [9, 9]])
    rows = xr.Dataset({"half_step": (("row", "run"), half)})
    rows["changed"] = rows.half_step < 9
    assert correlations(rows) == [(4, -1.0)]
    assert correlations(rows.isel(row=slice(3))) == []


def test_a_rank_correlation_says_how_many_rows_it_is_of():
    half = np.array(
        [[1, 1, 4], [2, 2, 3], [3, 3, 2], [4, 4, 1], [5, 5, 5], [6, 6, 6.0]]
    )
    rows = xr.Dataset({"half_step": (("row", "run"), half)})
    rows["changed"] = rows.half_step < 6

    def text_of(rows):
        (one,) = sentences(claims_of_orders(rows), OF_STEPS, Names())
        return one.text

    assert text_of(rows) == (
        "Between runs the order in which measures changed correlates by 0.333 (0 to 1), over 5 "
        "measures or more."
    )
    some = text_of(rows.assign(changed=rows.half_step < [6, 6, 5]))
    assert some.endswith(", over 4 measures or more.")
    assert "correlates by 1, over" in text_of(rows.isel(run=[0, 1]))
    opposed = rows.isel(run=[0, 1]).copy(deep=True)
    opposed["half_step"][:4, 1] = [4, 3, 2, 1]
    assert "correlates by −1," in text_of(opposed.isel(row=slice(4)))


def test_what_one_run_of_several_reaches_by_chance_is_no_difference_between_them():
    """As readable latents of three seeds, with p-values of .009, .010 and .023."""
    runs = seeds(3, controls=True)
    for name, tree in runs.items():
        node = tree["attention-entropy"].to_dataset()
        flags = {v: node[v] & False for v in ("beyond", "learned")}
        flags["changed"] = (node.changed | True) & (name == "seed 0")
        reason = np.where(flags["changed"], "", str(RowReason.WITHIN)).astype(object)
        node = node.assign(flags | {"reason": ("row", reason)})
        tree["attention-entropy"] = xr.DataTree(node)
    content = read_content(og.compare(runs))
    stands = {
        standing_of(row) for row in content.rows if "entropy" in row.quantity.lower()
    }
    [only] = stands
    assert (only.kind, only.reason) == (Kind.CHANGED, Reason.WITHIN_NOISE)


def test_how_rows_of_runs_stand_names_no_control_run_that_was_read_as_missing():
    """Of runs with controls the page said "changed; not tested against controls in some runs"."""
    runs = seeds(3, controls=True)
    for name in ("seed 1", "seed 2"):
        node = runs[name]["attention-entropy"].to_dataset()
        off = {v: node[v] & False for v in ("beyond", "learned")}
        runs[name]["attention-entropy"] = xr.DataTree(node.assign(off))
    rows = read_content(og.compare(runs)).rows
    stands = {
        standing_of(row).heading for row in rows if "entropy" in row.quantity.lower()
    }
    assert stands == {"Changed beyond controls in some runs"}


def with_settings(tree, **changes):
    settings = json.loads(tree.attrs["settings"]) | changes
    tree.attrs["settings"] = json.dumps(settings)
    return tree


def test_layers_are_no_argument_that_differs_where_the_models_do():
    def of_model(size, pattern):
        observables = {"loss": {"kind": "loss", "layers": pattern}}
        model = json.dumps({"class": "Model", "parameters": size})
        return with_settings(run(20, size, model=model), observables=observables)

    one = of_model(1, "transformer.h.*")
    tree = og.compare({"one": one, "other": of_model(2, "model.layers.*")})
    assert "transformer.h" not in tree.attrs["problems"]
    with pytest.raises(ArgumentError, match="with other values of layers"):
        og.compare({"one": one, "same": of_model(1, "model.layers.*")})


def test_an_objective_left_to_the_class_is_the_one_that_the_class_shows():
    def of_model(size, cls, objective):
        observables = {"loss": {"kind": "loss", "objective": objective}}
        model = json.dumps({"class": cls, "parameters": size})
        return with_settings(run(20, size, model=model), observables=observables)

    left = of_model(1, "GPT2LMHeadModel", "auto")
    og.compare({"left": left, "given": of_model(2, "GPT2LMHeadModel", "causal")})
    og.compare({"left": left, "other": of_model(2, "LlamaForCausalLM", "auto")})
    for other in (
        of_model(2, "GPT2LMHeadModel", "masked"),
        of_model(2, "BertForMaskedLM", "auto"),
        of_model(2, "Unknown", "auto"),
    ):
        with pytest.raises(ArgumentError, match="with other values of objective"):
            og.compare({"left": left, "other": other})
    unknown = of_model(1, "Unknown", "auto")
    og.compare({"one": unknown, "other": of_model(2, "Unknown", "auto")})


def test_other_lengths_are_not_called_another_tokenizer():
    def cut(tokens, **at):
        entry = {"name": "text", "texts": 40, "texts_digest": "t", "vocabulary": 50}
        entry |= {"tokens": tokens, "fingerprint": str(tokens), **at}
        return run(20, tokens, inputs=json.dumps([entry]))

    one = cut(2560, cut_at=64)
    for other, words in ((cut(640, cut_at=16), "16 tokens"), (cut(3000), "whole")):
        with pytest.raises(ArgumentError, match="cut at other lengths") as refused:
            og.compare({"a": one, "b": other})
        assert f"64 tokens in 'a'; {words} in 'b'" in str(refused.value)
        assert "tokenizer" not in str(refused.value)


def test_what_differs_is_refused_by_name_and_marked_where_allowed():
    def other(**entry):
        base = {"name": "text", "texts": 40, "tokens": 338}
        return run(20, 1, inputs=json.dumps([{**base, **entry}]))

    one = run(
        20,
        0,
        inputs=other(fingerprint="a", texts_digest="t", vocabulary=50).attrs["inputs"],
    )
    cases = {
        "inputs": (other(fingerprint="b", texts_digest="u"), "different texts"),
        "tokenizers": (
            other(fingerprint="b", texts_digest="t", tokens=400, vocabulary=70),
            "different tokenizers",
        ),
        "arguments": (
            with_settings(
                run(20, 1, inputs=one.attrs["inputs"]),
                observables={"loss": {"kind": "loss", "objective": "masked"}},
            ),
            "'loss' was measured with other values of objective",
        ),
        "settings": (
            with_settings(run(20, 1, inputs=one.attrs["inputs"]), dtype="bfloat16"),
            "in different dtypes",
        ),
        "checkpoints": (
            run(20, 0, inputs=one.attrs["inputs"]),
            "are the same checkpoints",
        ),
    }
    for kind, (tree, words) in cases.items():
        with pytest.raises(ArgumentError, match=words) as refused:
            og.compare({"one": one, "other": tree})
        assert f'allow=["{kind}"]' in str(refused.value)
        marked = og.compare({"one": one, "other": tree}, allow=kind)
        assert words in marked.attrs["problems"]
        assert any(words in t for t in json.loads(marked.attrs["notes"]))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda one: [one], "runs must be a mapping"),
        (lambda one: {"one": one}, "at least two runs"),
        (lambda one: {"one": one, "": one}, "names of runs must be texts"),
        (lambda one: {"one": one, "two": 3}, "run 'two' must be a result of Study.run"),
        (lambda one: {"one": one, "two": xr.DataTree()}, "must hold at least one node"),
        (
            lambda one: {"one": one, "two": "nowhere"},
            "run 'two': nowhere is no study folder",
        ),
        (
            lambda one: {"one": one, "two": og.compare(seeds(2))},
            "is itself a comparison",
        ),
    ],
)
def test_what_is_no_run_is_refused(make, words):
    runs = make(run())
    with pytest.raises(og.errors.OntogenyError, match=words):
        og.compare(runs)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"align": "time"}, "align must be one of"),
        ({"align": "step", "tokens_per_step": 5}, "is used with align"),
        ({"align": "tokens", "tokens_per_step": -1}, "must be a number above 0"),
        (
            {"align": "tokens", "tokens_per_step": {"seed 0": 5}},
            "do not tell how many tokens",
        ),
        ({"allow": ["texts"]}, "allow must be one of"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, words):
    with pytest.raises(ArgumentError, match=words):
        og.compare(seeds(2), **options)


def test_runs_that_share_no_node_are_refused():
    one, two = run(20, 0), run(20, 1)
    del one["loss"], two["attention-entropy"]
    with pytest.raises(ArgumentError, match="share no node"):
        og.compare({"one": one, "two": two})


def test_a_run_that_failed_to_measure_a_layer_has_no_row_of_it():
    runs = seeds(3, controls=True)
    node = runs["seed 1"]["attention-entropy"].to_dataset()
    runs["seed 1"]["attention-entropy"] = xr.DataTree(node.isel(row=[0, 2]))
    data = og.compare(runs)["attention-entropy"].to_dataset()
    present = data.present.transpose("row", "run").values
    assert present.tolist() == [[True] * 3, [True, False, True], [True] * 3]
    assert np.isnan(data.half_step.sel(run="seed 1").values[1])


def test_layers_of_several_kinds_are_matched_kind_by_kind():
    small = ["h.0.attn", "h.0.mlp", "h.1.attn", "h.1.mlp"]
    large = [f"h.{i}.{kind}" for i in range(4) for kind in ("attn", "mlp")]
    found = match_layers([small, large])
    assert [large[i] for i in found.places[1]] == [
        "h.0.attn",
        "h.2.attn",
        "h.0.mlp",
        "h.2.mlp",
    ]
    assert match_layers([small, ["h.0.attn"]]) is None
    renamed = match_layers([["a.0", "a.1"], ["b.0", "b.1"]])
    assert (
        renamed.labels == ("a.0", "a.1") and "compared in their order" in renamed.words
    )


def test_many_runs_are_summed_up():
    tree = og.compare(seeds(8, controls=True))
    assert (
        og.comparison.summary_lines(tree)[0]
        == "Loss improved by learning in 8 of 8 runs"
    )
