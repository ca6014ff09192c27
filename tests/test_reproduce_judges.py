"""Verdicts of the execution recipes: on planted series, and on tiny runs of every recipe."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from ontogeny.observables import (
    Commutators,
    Projection,
    ReadoutAccuracy,
    ReadoutAttention,
    SaeProbe,
    WeightRank,
)
from ontogeny.reproduce import MarkerRecipe, Scale, Verdict, judges, update_judges
from ontogeny.reproduce.execution import RECIPES
from ontogeny.tasks import MarkerTask
from ontogeny.training import MarkerRun

TASK = MarkerTask(length=8, modulus=4, markers=(1, 2), vocab_size=8)
RUN = MarkerRun(task=TASK, layers=2, width=16, heads=2, steps=6, batch_size=8)
STEPS = {"loss": "classification", "pairs": 2, "batch_size": 8}
OBSERVABLES = (
    WeightRank(("q", "k", "v", "o"), draws=4),
    ReadoutAccuracy(),
    ReadoutAttention(top=(1,)),
    Commutators(**STEPS),
    Projection(blocks=("q", "v"), k=1, **STEPS),
    SaeProbe((0,), n_latents=16, epochs=1, draws=2, variants=("topk",)),
)
KINDS = ["q_proj", "k_proj", "v_proj", "o_proj"]
ARANGE = np.arange(0.0, 101, 10)


@pytest.fixture(scope="module")
def taken(tmp_path_factory):
    """What a tiny run gives of every observable, by node and label."""
    held = {}

    def judge(found):
        held.update(found)
        return [Verdict("a claim", None, "nothing", "nothing")]

    scale = Scale({"mixed": RUN}, (0, 1), 1, OBSERVABLES, texts=32)
    recipe = MarkerRecipe("tiny", "Tiny", "c.", "Nobody 1900", scale, scale, judge, "much else.")
    page = recipe.run(tmp_path_factory.mktemp("judged"), quick=True)
    assert "much else." in page.read_text(encoding="utf-8")
    return held


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_judges_each_claim_beside_a_control(name, taken):
    recipe = RECIPES[name]
    labels = list(recipe.quick.runs)
    found = {
        node: dict.fromkeys(labels, runs["mixed"])
        for node, runs in taken.items()
        if node in {observable.name for observable in recipe.quick.observables}
    }
    verdicts = recipe.judge(found)
    assert len({v.claim for v in verdicts}) == len(verdicts) >= 2
    assert all(v.measured and v.beside for v in verdicts) and recipe.limits
    same = [v for v in verdicts if "more dimensions" in v.claim or "MLP" in v.claim]
    assert not any(v.holds for v in same)  # equal runs differ in nothing


def test_the_quick_settings_are_a_few_small_runs():
    for recipe in RECIPES.values():
        runs = recipe.quick.runs.values()
        work = sum(r.steps * r.layers * r.task.length * r.width for r in runs)
        assert work * len(recipe.quick.seeds) <= 11e6  # at most about 40 s of training


def ranks(growing, shuffled=3.0):
    """Return the rank of the run so far at steps 0 to 100, the same for all matrices."""
    series = np.broadcast_to(np.asarray(growing, float), (4, 11)).T
    null = np.broadcast_to(np.asarray(shuffled, float), (4, 11)).T
    dims = ("steps_so_far", "kind")
    whole = ["variance_rank", "shuffled_from", "shuffled_to"]
    return xr.Dataset(
        dict.fromkeys(whole, ("kind", series[-1]))
        | {
            "growing": (dims, series),
            "growing_shuffled_from": (dims, null),
            "growing_shuffled_to": (dims, null),
        },
        coords={"steps_so_far": ARANGE, "kind": KINDS},
    )


def attention(entropy):
    return xr.Dataset(
        {"entropy": (("set", "step"), [entropy]), "uniform": ("set", [2.8])},
        coords={"step": ARANGE, "set": ["m=2"]},
    )


def accuracy(solved_at, loss=None):
    right = (solved_at <= ARANGE) * 1.0
    return xr.Dataset(
        {
            "accuracy": (("set", "step"), [right]),
            "loss": (("set", "step"), [right if loss is None else loss]),
            "majority": ("set", [0.1]),
        },
        coords={"step": ARANGE, "set": ["m=2"]},
    )


FALL = np.r_[2.7, 2.7, 0.6, np.full(8, 0.5)]
SETTLES_AT_30 = [1, 2, 2, 5, 5, 5, 5, 5, 5, 5, 5]
SETTLES_AT_90 = [1, 2, 2, 2, 3, 3, 4, 4, 4, 5, 5]


def of_figure_2(entropy, growing, seeds=2):
    return judges.attention_and_rank(
        {
            "readout-attention": {"mixed": [attention(entropy)] * seeds},
            "weight-rank": {"mixed": [ranks(growing)] * seeds},
            "readout-accuracy": {"mixed": [accuracy(40.0)] * seeds},
        }
    )


def test_entropy_and_rank_that_move_together_are_told_from_those_that_do_not():
    assert [v.holds for v in of_figure_2(FALL, SETTLES_AT_30)] == [True, True, True]
    late = of_figure_2(FALL, SETTLES_AT_90)
    assert [v.holds for v in late] == [True, True, False]
    assert "fallen at step 20, 20" in late[2].measured and "settles at 90, 90" in late[2].measured
    assert "too few" in late[2].beside
    back = np.r_[FALL[:-1], 1.6]
    smooth = of_figure_2(back, SETTLES_AT_30)[1]
    assert not smooth.holds and "50 %" in smooth.measured and "step 40" in smooth.beside


def test_with_many_seeds_the_correlation_over_seeds_counts():
    steps = [3, 4, 5, 6, 7, 8]
    fell = [np.r_[np.full(k, 2.7), np.full(11 - k, 0.5)] for k in steps]
    settle = [np.r_[np.full(k, 1.0), np.full(11 - k, 5.0)] for k in (1, 2, 3, 4, 5, 6)]

    def verdict(order):
        return judges.attention_and_rank(
            {
                "readout-attention": {"mixed": [attention(e) for e in fell]},
                "weight-rank": {"mixed": [ranks(settle[i]) for i in order]},
                "readout-accuracy": {"mixed": [accuracy(40.0)] * 6},
            }
        )[2]

    assert verdict(range(6)).holds and "correlation over seeds 1.00" in verdict(range(6)).measured
    assert not verdict([5, 4, 3, 2, 1, 0]).holds


def test_at_equal_loss_the_run_that_is_ahead_is_read_where_it_had_the_others_loss():
    ahead = np.linspace(2.0, 0.0, 11)  # has 1.0 at step 50
    behind = np.linspace(2.0, 1.0, 11)
    rising = np.linspace(1.0, 6.0, 11)  # 3.5 at step 50
    found = {
        "readout-accuracy": {
            "addition": [accuracy(40.0, behind)],
            "multiplication": [accuracy(40.0, ahead)],
        },
        "weight-rank": {"addition": [ranks(np.full(11, 3.5))], "multiplication": [ranks(rising)]},
    }
    at_step, at_loss = judges.equal_loss(found)[:2]
    assert at_step.holds and not at_loss.holds
    assert "multiplication 3.50, addition 3.50" in at_loss.measured and "step 50" in at_loss.beside
    found["weight-rank"]["addition"] = [ranks(np.full(11, 2.0))]
    assert judges.equal_loss(found)[1].holds


def test_a_rank_that_has_settled_stays_within_a_tenth_of_its_last():
    settled = [judges._settled(ranks(r).growing.mean("kind")) for r in (SETTLES_AT_90, [5.0] * 11)]
    assert settled == [90.0, 0.0]


@pytest.mark.parametrize("shared", [True, False])
def test_commutators_that_rise_and_fall_with_the_loss_are_told_from_those_that_do_not(shared):
    rng = np.random.default_rng(0)
    steps = np.arange(0, 401, 10)
    runs = []
    for _ in range(3):
        noise, other = 0.3 * rng.normal(size=(2, len(steps)))
        loss = np.exp(-steps / 150 + noise)
        norm = 1e-4 * np.exp(-steps / 100 + (noise if shared else other))
        own = {"norm": norm, "training_loss": loss, "defect": norm, "gradient_norm": norm}
        runs.append(xr.Dataset({k: ("step", v) for k, v in own.items()}, coords={"step": steps}))
    *_, verdict = update_judges.commuting({"commutators": {"mixed": runs}})
    assert verdict.holds == (not shared), verdict
    few = [run.isel(step=slice(6)) for run in runs]
    *_, untold = update_judges.commuting({"commutators": {"mixed": few}})
    assert untold.holds is None and "10" in untold.beside


def test_commutators_that_project_like_gradients_are_nothing_special():
    def found(commutator):
        return {
            "projection": {
                "mixed": [
                    xr.Dataset(
                        {
                            "rho_median": (
                                ("setting", "vector", "step"),
                                [[[commutator], [0.05], [0.05]]],
                            ),
                            "control": (("setting", "step"), [[0.013]]),
                        },
                        coords={"vector": ["commutator", "gradient", "difference of gradients"]},
                    )
                ]
            }
        }

    assert [v.holds for v in update_judges.avoidance(found(0.05))] == [False, False]
    assert [v.holds for v in update_judges.avoidance(found(0.001))] == [True, True]
    assert [v.holds for v in update_judges.outside(found(0.05))] == [True, False]


def figure_1(growing):
    run = ranks(growing)
    four = xr.DataArray(np.ones(4), dims="kind")
    others = ("net_drift_ratio", "walk_from", "walk_to", "below_chance")
    run = run.assign(dict.fromkeys(others, four))
    return judges.low_ranks({"weight-rank": {"mixed": [run] * 2}})


@pytest.mark.parametrize(
    ("growing", "collapses"),
    [
        ([1, 6, 5, 3, 3, 3, 3, 3, 3, 3, 3], True),
        ([1, 2, 3, 4, 4, 5, 5, 5, 5, 5, 5], False),
        ([1, 5, 5, 5, 5, 4, 4, 3, 3, 3, 3], False),  # falls after 30 %
        ([1, 6, 5, 3, 3, 3, 4, 4, 5, 6, 6], False),  # rises again
        ([1, 6, 5, 3, 3, 3, 3, 3, 3, 3, np.nan], None),
    ],
)
def test_a_rank_collapses_early_only_if_it_falls_before_30_percent(growing, collapses):
    assert figure_1(growing)[3].holds is collapses


def test_entropy_that_never_falls_is_not_said_to_fall_smoothly():
    sharply, smoothly, _ = of_figure_2(np.linspace(2.7, 2.6, 11), SETTLES_AT_30)
    assert sharply.holds is False and smoothly.holds is None


def test_times_that_coincide_with_those_of_random_order_show_nothing():
    fall = np.r_[np.full(9, 2.7), 0.5, 0.5]
    runs = {
        "readout-attention": {"mixed": [attention(fall)] * 2},
        "weight-rank": {"mixed": [ranks(SETTLES_AT_90, SETTLES_AT_90)] * 2},
        "readout-accuracy": {"mixed": [accuracy(40.0)] * 2},
    }
    assert judges.attention_and_rank(runs)[2].holds is None
    runs["weight-rank"]["mixed"] = [ranks(SETTLES_AT_90)] * 2
    assert judges.attention_and_rank(runs)[2].holds is True


def test_sizes_without_a_comparison_show_nothing():
    found = {
        "weight-rank": {"m up to 2": [ranks([3.0] * 11)]},
        "readout-accuracy": {"m up to 2": [accuracy(40.0)]},
    }
    assert [v.holds for v in judges.sizes(found)] == [None, None, None]
    found["weight-rank"]["C = 16"] = [ranks([3.2] * 11)]  # no more than half a dimension
    assert judges.sizes(found)[1].holds is False


@pytest.mark.parametrize(
    ("best", "last", "forgets"), [(1.0, 0.7, True), (1.0, 0.95, False), (0.2, 0.1, None)]
)
def test_what_was_never_learned_is_not_forgotten(best, last, forgets):
    learned = accuracy(0.0)
    forgotten = learned.assign(accuracy=learned.accuracy * np.r_[np.full(10, best), last])
    found = {
        "readout-accuracy": {"mixed": [learned] * 2, "curriculum": [forgotten] * 2},
        "weight-rank": {label: [ranks([3.0] * 11)] * 2 for label in ("mixed", "curriculum")},
    }
    assert judges.forgetting(found)[0].holds is forgets


@pytest.mark.parametrize(
    ("defect", "explodes"),
    [
        (np.r_[1.0, np.full(10, 50.0)], False),  # all of it before convergence
        (np.r_[np.full(8, 1.0), 2.0, 30.0, 5.0], True),
    ],
)
def test_an_explosion_after_convergence_is_measured_from_convergence(defect, explodes):
    loss = np.r_[2.0, 1.0, 0.5, np.full(8, 0.1)]
    names = ("defect", "norm", "gradient_norm")
    run = xr.Dataset(dict.fromkeys(names, ("step", defect)), coords={"step": ARANGE})
    run = run.assign(training_loss=("step", loss))
    assert update_judges.commuting({"commutators": {"mixed": [run]}})[1].holds is explodes
    late = run.assign(training_loss=("step", np.r_[np.full(10, 2.0), 0.1]))
    assert update_judges.commuting({"commutators": {"mixed": [late]}})[1].holds is None


def test_a_weak_correlation_needs_runs_that_could_show_a_strong_one():
    rng = np.random.default_rng(3)
    steps = np.arange(0, 241, 10)

    def runs(seeds):
        for _ in range(seeds):
            noise = np.exp(0.3 * rng.normal(size=(2, len(steps))))
            own = dict.fromkeys(("norm", "defect", "gradient_norm"), ("step", noise[0]))
            loss = {"training_loss": ("step", noise[1] * np.exp(-steps / 100))}
            yield xr.Dataset(own | loss, coords={"step": steps})

    *_, one = update_judges.commuting({"commutators": {"mixed": list(runs(1))}})
    *_, many = update_judges.commuting({"commutators": {"mixed": list(runs(8))}})
    assert one.holds is not True and many.holds is True


def test_a_correlation_that_chance_gives_too_is_neither_weak_nor_shown(monkeypatch):
    steps = np.arange(0.0, 101, 10)
    values = ("step", np.linspace(2.0, 1.0, 11))
    names = ("norm", "training_loss", "defect", "gradient_norm")
    run = xr.Dataset(dict.fromkeys(names, values), coords={"step": steps})

    def verdict(p):
        found = SimpleNamespace(joint_pearson=0.4, joint_p=p, pearson=0.4, n=11)
        monkeypatch.setattr(update_judges, "compare_signals", lambda *_: found)
        return update_judges.commuting({"commutators": {"mixed": [run]}})[2].holds

    assert verdict(0.3) is None and verdict(0.01) is False
