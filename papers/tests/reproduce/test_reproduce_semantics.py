"""Recipes of the token-semantics paper: verdicts with their controls, text of the user's, pages."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers.paths import DATA, PAPERS
from ontogeny import semantics
from ontogeny.claims import Certainty, Kind, Reason
from ontogeny.cli.main import _run
from ontogeny.errors import ArgumentError
from ontogeny.study.progress import Silent
from ontogeny.words.page_claims import claims_of
from ontogeny_papers import reproduce
from ontogeny_papers.reproduce import Verdict
from ontogeny_papers.reproduce.semantics import (
    RECIPES,
    Materials,
    free_embeddings,
    imbalance,
    intervention,
    organisms,
    orthants,
    pretrained,
    transformer,
)
from ontogeny_papers.reproduce.verdicts import verdict_view

TINY = {
    "semantics-orthants": {
        "vocab_size": 40,
        "n_contexts": 120,
        "dims": 2,
        "n_draws": 19,
    },
    "semantics-free-embeddings": {
        "vocab_size": 20,
        "n_contexts": 60,
        "concepts": 4,
        "seeds": (0,),
        "controls": 3,
    },
    "semantics-transformer": {
        "vocab_size": 20,
        "n_contexts": 60,
        "concepts": 8,
        "steps": 6,
        "records": 4,
        "width": 8,
        "batch_size": 16,
        "shuffles": 2,
    },
    "semantics-intervention": {
        "vocab_size": 20,
        "n_contexts": 60,
        "concepts": 5,
        "advanced": 1,
        "steps": 6,
        "records": 4,
        "width": 8,
        "shuffles": 2,
    },
    "semantics-organisms": {
        "epochs": 20,
        "slow_epochs": 10,
        "width": 16,
        "n_draws": 19,
        "seeds": (0, 1),
    },
    "semantics-pretrained": {
        "vocab_size": 40,
        "width": 8,
        "steps": 4,
        "dims": (1, 2),
        "n_draws": 19,
        "seeds": (0, 1),
    },
    "semantics-imbalance": {
        "classes": 4,
        "per_majority": 20,
        "steps": 6,
        "seeds": (0,),
    },
}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A text with two classes of words, whose members follow contexts of their own."""
    rng = np.random.default_rng(0)
    months, numbers = (
        ["may", "june", "july", "march", "april"],
        ["two", "three", "four", "five", "six"],
    )
    lines = [
        f"in the month of {rng.choice(months)} we saw {rng.choice(numbers)} of the old dogs and "
        f"cats go to {rng.choice(['sea', 'town', 'work'])} ."
        for _ in range(400)
    ]
    path = tmp_path_factory.mktemp("text") / "months.txt"
    path.write_text("\n\n".join(lines), encoding="utf-8")
    return path


def shrunk(name):
    recipe = RECIPES[name]
    return replace(recipe, quick=replace(recipe.quick, **TINY[name]))


class Killed(BaseException):
    """Stands for Ctrl-C and signals: nothing between catches it."""


# What each recipe measures one of after another, and how many of them.
MEASURED = {
    "semantics-orthants": (orthants, ("_scores", "_lift", "semantics_page")),
    "semantics-free-embeddings": (free_embeddings, ("semantics.train_ufm", "_proxy")),
    "semantics-transformer": (transformer, ("_run",)),
    "semantics-organisms": (organisms, ("_run",)),
    "semantics-imbalance": (imbalance, ("_flow", "_digits")),
    "semantics-intervention": (intervention, ("_Experiment.run",)),
    "semantics-pretrained": (pretrained, ("_measured",)),
}


class Counted:
    """Counts the calls of functions, and dies in call number `last` + 1."""

    def __init__(self, monkeypatch, module, names, last):
        self.calls, self.last = 0, last
        for name in names:
            *path, attribute = name.split(".")
            place = getattr(module, path[0]) if path else module
            monkeypatch.setattr(
                place, attribute, self._counting(getattr(place, attribute))
            )

    def _counting(self, function):
        def counting(*arguments, **options):
            if self.calls == self.last:
                raise Killed
            self.calls += 1
            return function(*arguments, **options)

        return counting


@pytest.fixture(scope="module")
def whole(text, tmp_path_factory):
    """Return a function that runs a tiny recipe, once: its folder, its page and what it counted."""

    @cache
    def run(name):
        recipe, (module, names) = shrunk(name), MEASURED[name]
        folder = tmp_path_factory.mktemp(name)
        with pytest.MonkeyPatch.context() as patched:
            counted = Counted(patched, module, names, last=10**6)
            page = recipe.run(
                folder, quick=True, text=text if recipe.reads_text else None
            )
        return folder, page, counted.calls

    return run


@pytest.mark.parametrize(
    "name", TINY
)  # contexts of a decoder: test_semantics_contexts.py
def test_every_recipe_writes_verdicts_with_their_controls(name, whole):
    recipe, (folder, page, _) = shrunk(name), whole(name)
    assert page == folder / f"{name}-quick" / "report.html"
    result = og.open_study(page.parent).result
    assert json.loads(result.attrs["nodes"])[0] == "verdict"
    # Nothing was audited, so the page claims no audit.
    assert "findings" not in result.attrs
    verdict = result["verdict"]
    assert set(verdict.kind.values) <= {Kind.REPRODUCES.value, Kind.CONTRADICTS.value}
    is_open = np.isin(verdict.certainty, ["open", "not tested"])
    assert ((verdict.reason.values != "") == is_open).all()
    for column in (verdict.measured, verdict.beside):
        assert all(column.values) and not any("nan" in str(v) for v in column.values)
    said = json.loads(verdict.attrs["statements"])
    assert said[0] == f"The paper: {recipe.claim}" and recipe.limits in said[1]
    html = page.read_text(encoding="utf-8")
    sure = (verdict.certainty == "sure") & (verdict.kind == "reproduces")
    held = int((sure & verdict.of_paper).sum())
    asked = int(verdict.of_paper.sum())
    claims = "1 claim reproduces" if asked == 1 else f"{asked} claims reproduce"
    assert f">{held} of {claims}</a></h2>" in html
    assert ("The text: months.txt, 400 texts with " in said[-1]) == recipe.reads_text
    assert recipe.source in html and ("months.txt" in html) == recipe.reads_text


@pytest.mark.parametrize("name", RECIPES)
def test_the_full_setting_is_larger_and_has_no_such_limits(name):
    recipe = RECIPES[name]
    full, quick = recipe.full, recipe.quick
    sizes = [
        [
            np.size(v) if isinstance(v, tuple | dict) else v
            for v in vars(scale).values()
            if v
        ]
        for scale in (full, quick)
    ]
    assert all(a >= b for a, b in zip(*sizes, strict=True)) and sizes[0] != sizes[1]
    rows = [Verdict("a", True, "1", "0")]
    assert len(json.loads(verdict_view(rows, "c.", "s").attrs["statements"])) == 1


def test_verdicts_need_claims_each_once():
    for rows in ([], [Verdict("a", True, "1", "0")] * 2):
        with pytest.raises(ArgumentError, match="each once"):
            verdict_view(rows, "c.", "s")


def judged_orthants(size, materials):
    found = orthants.measure_orthants(size, materials)
    return orthants.judge_orthants(*found.numbers)


def test_planted_classes_of_words_reproduce_and_random_text_does_not(text, tmp_path):
    size = orthants.OrthantSize(40, 200, 3, 39)
    found = judged_orthants(size, Materials(text))[1]
    assert found.holds
    words = text.read_text(encoding="utf-8").split()
    np.random.default_rng(1).shuffle(words)
    shuffled = tmp_path / "shuffled.txt"
    shuffled.write_text(" ".join(words), encoding="utf-8")
    known = semantics.word_classes(set(words))
    assert len(set(known.values())) >= 2
    values = [
        abs(float(v.measured.split()[-1]))
        for v in (found, judged_orthants(size, Materials(shuffled))[1])
    ]
    assert values[1] < values[0] / 2


def test_prose_that_people_wrote_reproduces_what_planted_classes_do():
    path = DATA / "tinystories" / "v1-validation-sample.txt"
    if not path.is_file():
        pytest.skip(f"no {path.name} in {DATA}; set ONTOGENY_DATA")
    materials = Materials(path)
    *groups, axes, single, _, _, _, one_class, lift, _ = judged_orthants(
        orthants.OrthantSize(300, 2000, 4, 19), materials
    )
    assert len(groups) == 3 and all(v.holds for v in groups)
    assert single.holds and one_class.holds and lift.holds and axes.holds is None
    assert " texts with " in materials.description()


def test_text_of_too_few_concepts_is_refused(tmp_path):
    path = tmp_path / "small.txt"
    path.write_text("a b c a b d a c d b " * 9, encoding="utf-8")
    with pytest.raises(ArgumentError, match="text must hold at least 5 concepts"):
        shrunk("semantics-transformer").run(tmp_path / "out", quick=True, text=path)


def test_text_without_known_words_is_refused_by_name(tmp_path):
    path = tmp_path / "other.txt"
    path.write_text("kala mera suvi " * 50, encoding="utf-8")
    with pytest.raises(ArgumentError, match=r"English words.*other\.txt"):
        shrunk("semantics-orthants").run(tmp_path / "out", quick=True, text=path)


def test_the_papers_weights_reverse_the_order_and_the_right_ones_level_it():
    step = semantics.step_imbalance(6, 12)
    verdicts = imbalance._of_flow(
        {rule: imbalance._flow(step, rule) for rule in imbalance._RULES}
    )
    assert [v.holds for v in verdicts] == [True, False, True]
    assert "reversed order" in verdicts[1].measured


def test_half_times_are_in_the_time_of_the_weighted_loss():
    """Gradient flow on the weighted loss, written out with small Euler steps."""
    step = semantics.step_imbalance(4, 9)
    omega2 = step.reweighting("paper") ** 2
    U, _, Vt = np.linalg.svd(step.S_centred, full_matrices=False)
    W, H = np.exp(-8) * U[:, :3], np.exp(-8) * Vt[:3]
    eta, reached = 0.002, np.full(3, np.nan)
    for i in range(20_000):
        along = np.einsum("vk,vm,mk->k", step.U, W @ H, step.V)
        reached = np.where(
            np.isnan(reached) & (along > step.sigma / 2), i * eta, reached
        )
        error = (step.S_centred - W @ H) * omega2
        W, H = W + eta * error @ H.T, H + eta * W.T @ error
    found = imbalance._flow(step, "paper").half_time.values
    np.testing.assert_allclose(found, reached, rtol=0.03)


def test_a_question_answered_by_one_side_only_is_answered_half():
    true = np.array([True] * 9 + [False])
    assert imbalance._balanced(np.ones(10, bool), true, np.ones(10, bool)) == 0.5


def run_of(spearman, shuffled, p=0.001):
    return xr.Dataset(
        {
            "spearman": ("corpus", [spearman, *shuffled]),
            "p_value": p,
            "x": ("concept", [0.0] * 5),
        }
    )


def test_an_order_that_shuffled_corpora_have_too_does_not_reproduce():
    judge = transformer._of_order
    assert judge("c", [run_of(0.8, [0.1, 0.2])]).holds
    assert not judge("c", [run_of(0.8, [0.7, 0.9])]).holds
    assert not judge("c", [run_of(0.8, [0.1, 0.2], p=0.2)]).holds
    assert not judge("c", [run_of(0.8, [0.1, 0.2]), run_of(0.1, [0.1, 0.2])]).holds


def test_text_is_refused_where_none_is_read_and_where_there_is_none(tmp_path, text):
    for name in ("semantics-organisms", "execution-figure-1"):
        with pytest.raises(ArgumentError, match=f"{name} reads no text"):
            reproduce.recipe(name).run(tmp_path / "out", quick=True, text=text)
    with pytest.raises(ArgumentError, match="path of a text file"):
        reproduce.recipe("semantics-orthants").run(
            tmp_path / "out", text=tmp_path / "none.txt"
        )
    assert not (tmp_path / "out").exists()


def test_the_command_reads_a_text_of_the_users(tmp_path, text, monkeypatch, capsys):
    monkeypatch.setitem(RECIPES, "semantics-orthants", shrunk("semantics-orthants"))
    output = ["--output", str(tmp_path / "out"), "--quiet"]
    assert (
        _run(
            ["reproduce", "semantics-orthants", "--quick", "--text", str(text), *output]
        )
        == 0
    )
    assert capsys.readouterr().out.strip().endswith("report.html")
    assert _run(["reproduce", "semantics-imbalance", "--text", str(text), *output]) == 1
    assert "reads no text" in capsys.readouterr().err


def test_the_papers_page_names_every_recipe():
    page = (PAPERS / "docs" / "papers.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in RECIPES)


def test_seeds_that_share_an_arbitrary_order_do_not_count_as_independent():
    rng = np.random.default_rng(0)
    sigma = np.arange(6.0, 0, -1)
    orders = [rng.permutation(6) * 1.0 for _ in range(400)]
    p = [organisms._order(sigma, np.tile(order, (10, 1)))[1] for order in orders]
    assert np.mean(np.array(p) <= 0.05) < 0.08  # Fisher's combination of ten: about 0.2
    one = semantics.learning_order(sigma, orders[0], n_draws=20_000)
    correlations, exact = organisms._order(sigma, orders[0][None])
    assert np.isclose(correlations[0], one.spearman) and abs(exact - one.p_value) < 0.02
    never = np.where(orders[0] > 3, np.nan, orders[0])
    found = organisms._order(sigma, never[None])[0]
    assert np.isclose(found[0], semantics.learning_order(sigma, never).spearman)


def test_embeddings_of_few_dimensions_hold_the_largest_concepts_alone():
    run = xr.Dataset(
        {
            "singular_value": ("concept", [2.0, 1.01]),
            "sigma": ("concept", [2.0, 1.0]),
            "complement_norm": 0.01,
            "logit_norm": 2.2,
        }
    )
    judge = free_embeddings._of_few_dimensions
    # 3 words: 2 dimensions are all.
    assert judge([run], 10).holds and judge([run], 3).holds is None
    short = run.assign(singular_value=run.singular_value * 0.8)
    assert judge([run, short], 10).holds is None
    assert judge([run.assign(singular_value=run.singular_value / 3)], 10).holds is False


def learned_at(exponent):
    sigma = np.array([9.0, 5.0, 3.0, 2.0, 1.0])
    half = np.where(sigma == 1, np.nan, 4 * sigma**exponent)
    return xr.Dataset({"sigma": ("concept", sigma), "half_time": ("concept", half)})


def test_times_go_as_one_over_sigma_only_with_that_exponent():
    aligned, one, half = map(learned_at, (-0.95, -1.02, -0.5))
    inverse = free_embeddings._of_times(aligned, [one, one])
    assert inverse.holds is True and "-0.95" in inverse.beside
    assert free_embeddings._of_times(aligned, [half, half]).holds is False
    assert free_embeddings._of_times(aligned, [one, half]).holds is None
    never = one.assign(half_time=one.half_time * np.nan)
    assert free_embeddings._of_times(aligned, [one, never]).holds is None
    assert free_embeddings._of_times(aligned, [never, never]).holds is None


@pytest.mark.parametrize(
    ("first", "last", "holds"),
    [(0.9, 0.001, True), (0.9, 0.5, False), (1e-6, 1e-7, None)],
)
def test_what_was_small_from_the_first_does_not_go_to_zero(first, last, holds):
    """The logits' norm goes from 1 to 5."""
    outer = [[first, 5 * last]] * 2
    norms = xr.Dataset(
        {
            "complement_norm": (("seed", "time"), outer),
            "logit_norm": (("seed", "time"), [[1.0, 5.0]] * 2),
        }
    )
    assert free_embeddings._of_outside(norms).holds is holds


def test_a_random_start_of_the_organisms_ends_within_their_concepts():
    norms = free_embeddings.measure_outside([0])
    share = (norms.complement_norm / norms.logit_norm).values[0]
    assert share[0] > 0.5 and share[1] < 1e-6


@pytest.mark.parametrize(
    ("after", "holds"), [(10, True), (9, None), (5, None), (1, False), (0, False)]
)
def test_an_order_that_half_of_the_runs_have_is_neither_shown_nor_refuted(after, holds):
    few = np.where(np.arange(10) < after, 9.0, 1.0)
    since = np.stack([np.full(10, 5.0), few - 1, few, few, few], axis=1)
    runs = [xr.Dataset({"since": ("question", row)}) for row in since]
    found = imbalance._of_digits({"a": runs[:5], "b": runs[5:], "even": runs[:2]})
    assert found[1].holds is holds


@pytest.mark.parametrize(
    ("value", "draws", "holds"), [(0.05, 400, True), (0.3, 400, False), (0.3, 20, None)]
)
def test_one_single_concept_that_people_recognise_is_enough(value, draws, holds):
    best = semantics.Score(value, np.linspace(-0.02, 0.02, draws))
    assert orthants._of_single(best, 5).holds is holds


@pytest.mark.parametrize(
    ("shares", "holds"),
    [([0.9, 0.9, 0.9, 0.4], True), ([0.9] * 4, True), ([0.4] * 4, None)],
)
def test_single_orthants_are_of_one_class_where_random_groups_are_not(shares, holds):
    random = np.random.default_rng(0).uniform(0.3, 0.5, (40, 4))
    data = xr.Dataset(
        {"share": ("orthant", shares), "random": (("draw", "orthant"), random)}
    )
    assert orthants._of_shares(data).holds is holds
    assert orthants._of_shares(data.isel(orthant=slice(0))).holds is None


@pytest.mark.parametrize(("early", "leads"), [(True, True), (False, False)])
def test_a_matrix_that_leads_late_does_not_lead_first(early, leads):
    sooner, later = [0.1, 0.9, 0.5, 0.2], [0.1, 0.2, 0.5, 0.95]
    P, S = (sooner, later) if early else (later, sooner)
    overlap = xr.DataArray(
        [S, P], dims=("matrix", "step"), coords={"matrix": ["S̃", "centred P"]}
    )
    run = xr.Dataset({"overlap": overlap, "shuffled_high": ("step", [0.15] * 4)})
    assert transformer._of_start([run]).holds is leads


def result_of(page):
    tree = og.open_study(page.parent).result.load()
    for name in ("created", "provenance"):
        tree.attrs.pop(name, None)
    return tree


@pytest.mark.parametrize("name", MEASURED)
def test_a_recipe_that_was_killed_goes_on_where_it_was(
    name, text, whole, tmp_path, monkeypatch
):
    recipe, (module, names) = shrunk(name), MEASURED[name]
    options = {"quick": True, "text": text if recipe.reads_text else None}
    _, expected, everything = whole(name)
    assert everything >= 2
    last = everything // 2
    with monkeypatch.context() as patched:
        Counted(patched, module, names, last)
        with pytest.raises(Killed):
            recipe.run(tmp_path, **options)
    assert not list(tmp_path.rglob("report.html"))
    counted = Counted(monkeypatch, module, names, last=10**6)
    page = recipe.run(tmp_path, **options)
    assert counted.calls == everything - last
    xr.testing.assert_identical(result_of(page), result_of(expected))


def test_pieces_of_another_text_or_size_are_measured_again(text, tmp_path, monkeypatch):
    recipe = shrunk("semantics-transformer")
    recipe.run(tmp_path, quick=True, text=text)
    other = tmp_path / "other.txt"
    other.write_text(text.read_text(encoding="utf-8") * 2, encoding="utf-8")
    larger = replace(recipe, quick=replace(recipe.quick, width=16))
    said = []

    class Heard(Silent):
        def note(self, message):
            said.append(message)

    counted = Counted(monkeypatch, transformer, ("_run",), last=10**6)
    recipe.run(tmp_path, quick=True, text=text)
    assert counted.calls == 0
    recipe.run(tmp_path, quick=True, text=other, progress=Heard())
    assert counted.calls == 4 and any("measured again: text: " in line for line in said)
    larger.run(tmp_path, quick=True, text=other, progress=Heard())
    assert counted.calls == 8 and any("size.width: 8 -> 16" in line for line in said)
    replace(larger, version=2).run(tmp_path, quick=True, text=other, progress=Heard())
    assert counted.calls == 12 and any("version: 1 -> 2" in line for line in said)


def test_a_damaged_piece_is_measured_again(text, tmp_path, monkeypatch):
    recipe = shrunk("semantics-transformer")
    page = recipe.run(tmp_path, quick=True, text=text)
    whole = result_of(page)
    first, second, *_ = sorted((page.parent / "pieces").glob("*.safetensors"))
    first.write_bytes(first.read_bytes()[:-3])
    second.unlink()
    counted = Counted(monkeypatch, transformer, ("_run",), last=10**6)
    recipe.run(tmp_path, quick=True, text=text)
    assert counted.calls == 2
    xr.testing.assert_identical(result_of(page), whole)


def counted(view):
    """How many claims of a page are sure to reproduce, and how many there are."""
    claims = claims_of({"claims": view}, {})
    sure = [
        c for c in claims if c.kind is Kind.REPRODUCES and c.certainty is Certainty.SURE
    ]
    return len(sure), len(claims)


def test_what_no_paper_claims_is_counted_where_no_paper_claims_anything():
    rows = [Verdict("a", True, "1", "0"), Verdict("b", False, "1", "0")]
    rows += [Verdict("c", True, "1", "0", of_paper=False)]
    view = verdict_view(rows, "c.", "s", material="The text: none.")
    assert view.kind.values.tolist() == ["reproduces", "contradicts", "reproduces"]
    assert json.loads(view.attrs["statements"])[-1] == "The text: none."
    assert counted(view) == (1, 2)
    rows = [rows[2], Verdict("d", None, "1", "0", of_paper=False)]
    alone = verdict_view(rows, "c.", "s")
    assert counted(alone) == (1, 2)


def test_what_is_not_shown_is_as_controls_open_or_not_tested():
    alike = Verdict("a", True, "1", "1", alike=True)
    assert alike.holds is None and alike.certainty is Certainty.AS_CONTROLS
    assert Verdict("a", False, "1", "1", alike=True).kind is Kind.CONTRADICTS
    untested = Verdict("a", None, "1", "none", reason=Reason.NO_CONTROLS)
    assert untested.certainty is Certainty.NOT_TESTED
    # A null whose number is missing is not one that has it as well.
    unknown = Verdict("a", True, "1", "unknown", alike=None)
    assert unknown.holds is None and unknown.certainty is Certainty.NOT_TESTED
    assert unknown.reason is Reason.NO_CONTROLS
    refuted = Verdict("a", False, "1", "unknown", alike=None)
    assert refuted.holds is False and refuted.certainty is Certainty.SURE
    claims = claims_of(
        {"c": verdict_view([alike, replace(untested, claim="b")], "c.", "s")}, {}
    )
    assert [c.reason for c in claims] == [None, Reason.NO_CONTROLS]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("A dog ran.\n\nA cat sat.\n \nThe end.\n\n", "3 texts with 11 words."),
        (
            "A dog ran.\nA cat sat.\n",
            "one text with 8 words; no blank line splits it, so contexts",
        ),
    ],
)
def test_a_page_says_how_its_text_was_split(content, said, tmp_path):
    path = tmp_path / "own.txt"
    path.write_text(content, encoding="utf-8")
    assert said in Materials(path).description()


@pytest.mark.parametrize(("mean", "answer"), [(0.5, True), (-0.5, False), (0.01, None)])
def test_an_effect_whose_interval_holds_nothing_is_not_shown(mean, answer):
    values = xr.DataArray(mean + np.random.default_rng(0).normal(0, 0.1, 12))
    assert intervention._is_positive(values) is answer
