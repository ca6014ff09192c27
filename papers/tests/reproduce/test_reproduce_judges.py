"""Verdicts of the execution recipes: on planted series, and on tiny runs of every recipe."""

from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from ontogeny.observables import (
    Commutators,
    Orientation,
    Projection,
    ReadoutAccuracy,
    ReadoutAttention,
    SaeProbe,
    WeightRank,
)
from ontogeny_papers.reproduce import (
    MarkerRecipe,
    Scale,
    Verdict,
    attention_judges,
    comparison_judges,
    judges,
    update_judges,
    verdicts,
)
from ontogeny_papers.reproduce.execution import RECIPES
from ontogeny_papers.reproduce.tasks import MarkerTask
from ontogeny_papers.reproduce.training import MarkerRun

TASK = MarkerTask(length=8, modulus=4, markers=(1, 2), vocab_size=8)
RUN = MarkerRun(task=TASK, layers=2, width=16, heads=2, steps=6, batch_size=8)
STEPS = {"loss": "classification", "pairs": 2, "batch_size": 8}
OBSERVABLES = (
    WeightRank(("q", "k", "v", "o"), n_draws=4),
    Orientation(n_draws=20),
    ReadoutAccuracy(),
    ReadoutAttention(top=(1,)),
    Commutators(**STEPS),
    Projection(blocks=("q", "v"), k=1, **STEPS),
    SaeProbe((0,), n_latents=16, epochs=1, n_draws=2, variants=("topk",)),
)
KINDS = ["q_proj", "k_proj", "v_proj", "o_proj"]
BLOCKS = [f"layers.{i}.self_attn.{kind}.weight" for i in range(4) for kind in KINDS]
ARANGE = np.arange(0.0, 101, 10)


@pytest.fixture(scope="module")
def taken(tmp_path_factory):
    """What a tiny run gives of every observable, by node and label."""
    held = {}

    def judge(found):
        held.update(found)
        return [Verdict("a claim", None, "nothing", "nothing")]

    scale = Scale({"mixed": RUN}, (0, 1), 2, OBSERVABLES, texts=32)
    recipe = MarkerRecipe(
        "tiny", "Tiny", "c.", "Nobody 1900", scale, scale, "much else.", judge=judge
    )
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
    assert len({v.claim for v in verdicts}) == len(verdicts) >= 1
    assert all(v.measured and v.beside for v in verdicts) and recipe.limits
    same = [v for v in verdicts if "more dimensions" in v.claim or "MLP" in v.claim]
    assert not any(v.holds for v in same)  # equal runs differ in nothing


def test_the_quick_settings_are_a_few_small_runs():
    for recipe in RECIPES.values():
        runs = recipe.quick.runs.values()
        work = sum(r.steps * r.layers * r.task.length * r.width for r in runs)
        assert work * len(recipe.quick.seeds) <= 11e6  # at most about 40 s of training


def ranks(growing, shuffled=3.0):
    """Return the rank of the run so far at steps 0 to 100, the same for all 16 matrices."""
    series = np.broadcast_to(np.asarray(growing, float), (4, 11)).T
    null = np.broadcast_to(np.asarray(shuffled, float), (4, 11)).T
    dims = ("step_", "kind")
    whole = ["variance_rank", "shuffled_low", "shuffled_high", "walk_low", "walk_high"]
    ends = [
        f"growing_{each}_{end}_by_kind"
        for each in ("shuffled", "walk")
        for end in ("low", "high")
    ]
    return xr.Dataset(
        dict.fromkeys(whole, ("block", np.full(16, series[-1, 0])))
        | dict.fromkeys(ends, (dims, null))
        | dict.fromkeys(("net_drift_ratio", "p_lower"), ("block", np.ones(16)))
        | {"growing_rank_by_kind": (dims, series)},
        coords={"step_": ARANGE, "kind": KINDS, "block": BLOCKS},
    )


def attention(entropy):
    return xr.Dataset(
        {
            "layer_entropy": (("set", "layer", "step"), [[entropy, entropy]]),
            "layer_entropy_uniform": ("set", [2.8]),
        },
        coords={"step": ARANGE, "set": ["m=2"], "layer": ["layers.0", "layers.1"]},
    )


def accuracy(solved_at, loss=None):
    right = (solved_at <= ARANGE) * 1.0
    return xr.Dataset(
        {
            "accuracy": (("set", "step"), [right]),
            "loss": (("set", "step"), [right if loss is None else loss]),
            "accuracy_majority": (("set", "step"), [np.full(11, 0.1)]),
        },
        coords={"step": ARANGE, "set": ["m=2"]},
    )


FALL = np.r_[2.7, 2.7, 0.6, np.full(8, 0.5)]
SETTLES_AT_30 = [1, 2, 2, 5, 5, 5, 5, 5, 5, 5, 5]
SETTLES_AT_90 = [1, 2, 2, 2, 3, 3, 4, 4, 4, 5, 5]


def of_figure_2(entropy, growing, seeds=2):
    return attention_judges.attention_and_rank(
        {
            "readout-attention": {"mixed": [attention(entropy)] * seeds},
            "weight-rank": {"mixed": [ranks(growing)] * seeds},
            "readout-accuracy": {"mixed": [accuracy(40.0)] * seeds},
        }
    )


def test_entropy_and_rank_that_move_together_are_told_from_those_that_do_not():
    # Of one m, nothing is tested of every m.
    early = of_figure_2(FALL, SETTLES_AT_30)
    assert [v.holds for v in early] == [True, True, True, None, True]
    late = of_figure_2(FALL, SETTLES_AT_90)
    assert [v.holds for v in late] == [True, True, False, None, True]
    assert (
        "fallen at step 20 and 20" in late[2].measured
        and "settles at 90 and 90" in late[2].measured
    )
    assert "too few" in late[2].beside
    back = np.r_[FALL[:-1], 1.6]
    smooth = of_figure_2(back, SETTLES_AT_30)[1]
    assert (
        not smooth.holds
        and "50 ± 0 %" in smooth.measured
        and "step 40" in smooth.beside
    )


def test_with_many_seeds_the_correlation_over_seeds_counts():
    steps = [3, 4, 5, 6, 7, 8]
    fell = [np.r_[np.full(k, 2.7), np.full(11 - k, 0.5)] for k in steps]
    settle = [np.r_[np.full(k, 1.0), np.full(11 - k, 5.0)] for k in (1, 2, 3, 4, 5, 6)]

    def verdict(order):
        return attention_judges.attention_and_rank(
            {
                "readout-attention": {"mixed": [attention(e) for e in fell]},
                "weight-rank": {"mixed": [ranks(settle[i]) for i in order]},
                "readout-accuracy": {"mixed": [accuracy(40.0)] * 6},
            }
        )[2]

    assert (
        verdict(range(6)).holds
        and "correlation over seeds 1.00" in verdict(range(6)).measured
    )
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
        "weight-rank": {
            "addition": [ranks(np.full(11, 3.5))],
            "multiplication": [ranks(rising)],
        },
    }
    low = found["weight-rank"]["addition"][0]
    # 3.5 in random order as well.
    assert comparison_judges.equal_loss(found)[0].holds is None
    found["weight-rank"]["addition"] = [low.assign(shuffled_low=low.shuffled_low + 1)]
    at_step, at_loss = comparison_judges.equal_loss(found)[:2]
    assert at_step.holds and not at_loss.holds
    assert (
        "multiplication 3.5, addition 3.5" in at_loss.measured
        and "step 50" in at_loss.beside
    )
    found["weight-rank"]["addition"] = [ranks(np.full(11, 2.0))]
    assert comparison_judges.equal_loss(found)[1].holds


def commutators(steps, loss, defect=None, norm=None, gradient_norm=None):
    """Return medians over pairs at each step; what is not given is as what is."""
    given = next(each for each in (norm, defect) if each is not None)
    own = {"norm": norm, "defect": defect, "gradient_norm": gradient_norm}
    medians = {
        f"{name}_over_pairs": (("statistic", "step"), [given if each is None else each])
        for name, each in own.items()
    }
    return xr.Dataset(
        medians | {"loss": (("step", "pair"), np.asarray(loss)[:, None])},
        coords={"step": steps, "statistic": ["median"]},
    )


def test_a_rank_that_has_settled_stays_within_a_tenth_of_its_last():
    settled = [
        attention_judges._settled(ranks(r).growing_rank_by_kind.mean("kind"))
        for r in (SETTLES_AT_90, [5.0] * 11)
    ]
    assert settled == [90.0, 0.0]


@pytest.mark.parametrize("shared", [True, False])
def test_commutators_that_rise_and_fall_with_the_loss_are_told_from_those_that_do_not(
    shared,
):
    rng = np.random.default_rng(0)
    steps = np.arange(0, 401, 10)
    runs = []
    for _ in range(3):
        noise, other = 0.3 * rng.normal(size=(2, len(steps)))
        loss = np.exp(-steps / 150 + noise)
        norm = 1e-4 * np.exp(-steps / 100 + (noise if shared else other))
        runs.append(commutators(steps, loss, norm=norm))
    *_, verdict = update_judges.commuting({"commutators": {"mixed": runs}})
    # What is shared may be a schedule.
    assert (verdict.holds is True) == (not shared), verdict
    few = [run.isel(step=slice(6)) for run in runs]
    *_, untold = update_judges.commuting({"commutators": {"mixed": few}})
    assert untold.holds is None and "10" in untold.beside


def projected(commutator, gradient, seeds=2):
    """Return shares inside over steps, of seeds that are alike, in both bases."""
    rho = np.array([commutator, gradient, gradient], float)
    run = xr.Dataset(
        {
            "rho_median": (("setting", "vector", "step"), np.stack([rho, rho])),
            "control": (("setting", "step"), np.full((2, rho.shape[1]), 0.013)),
        },
        coords={
            "vector": ["commutator", "gradient", "difference of gradients"],
            "setting": [update_judges._SO_FAR, update_judges._WHOLE],
        },
    )
    return {"projection": {"mixed": [run] * seeds}}


def test_commutators_that_project_like_gradients_are_nothing_special():
    alike = projected([np.nan, 0.05, 0.05], [np.nan, 0.05, 0.05])
    assert [v.holds for v in update_judges.avoidance(alike)] == [False] * 3
    avoiding = projected([np.nan, 0.05, 0.001], [np.nan, 0.05, 0.05])
    assert [v.holds for v in update_judges.avoidance(avoiding)] == [True] * 3
    assert [v.holds for v in update_judges.outside(alike)] == [None]


def test_nearly_all_outside_tells_of_commutators_only_where_gradients_are_inside():
    few = projected([0.05, 0.05], [0.5, 0.5])
    for run in few["projection"]["mixed"]:
        run.control[:] = 0.4
    assert [v.holds for v in update_judges.outside(few)] == [True]


def figure_1(growing, null=3.0, seeds=2):
    return judges.low_ranks({"weight-rank": {"mixed": [ranks(growing, null)] * seeds}})


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


def test_attention_that_begins_at_one_position_is_not_uniform_at_first():
    assert of_figure_2(FALL / 2, SETTLES_AT_30)[4].holds is False


def test_entropy_that_never_falls_is_not_said_to_fall_smoothly():
    sharply, smoothly, *_ = of_figure_2(np.linspace(2.7, 2.6, 11), SETTLES_AT_30)
    assert sharply.holds is False and smoothly.holds is None


def test_times_that_coincide_with_those_of_random_order_show_nothing():
    fall = np.r_[np.full(9, 2.7), 0.5, 0.5]
    runs = {
        "readout-attention": {"mixed": [attention(fall)] * 2},
        "weight-rank": {"mixed": [ranks(SETTLES_AT_90, SETTLES_AT_90)] * 2},
        "readout-accuracy": {"mixed": [accuracy(40.0)] * 2},
    }
    assert attention_judges.attention_and_rank(runs)[2].holds is None
    runs["weight-rank"]["mixed"] = [ranks(SETTLES_AT_90)] * 2
    assert attention_judges.attention_and_rank(runs)[2].holds is True


def setting(m=2, modulus=4, layers=3):
    """Return a run of `sizes`, whose label says nothing of what it is."""
    task = MarkerTask(modulus=modulus, markers=tuple(range(1, m + 1)), vocab_size=32)
    return MarkerRun(task=task, layers=layers)


M_1, M_2, M_3, WIDE, SHALLOW, DEEP = "abcdef"
SETTINGS = {
    M_1: setting(1),
    M_2: setting(2),
    M_3: setting(3),
    WIDE: setting(modulus=16),
    SHALLOW: setting(layers=2),
    DEEP: setting(layers=4),
}


def scaled(ranks_by_label, right=None):
    """Return runs of `sizes` with given ranks of their seeds, solved unless `right` says less."""
    labels = {M_1: [3.0, 3.0], M_2: [3.0, 3.0]} | ranks_by_label
    known = {label: accuracy(40.0) for label in labels}
    for label, value in (right or {}).items():
        known[label] = known[label].assign(accuracy=known[label].accuracy * value)
    return {
        "weight-rank": {
            k: [ranks([r] * 11) for r in each] for k, each in labels.items()
        },
        "readout-accuracy": {k: [one] * len(labels[k]) for k, one in known.items()},
    }


def verdict_on(what, found):
    return next(v for v in judges.sizes(found, [SETTINGS]) if what in v.claim)


def test_sizes_without_a_comparison_show_nothing():
    alone = judges.sizes(scaled({}), [SETTINGS])
    assert [v.holds for v in alone] == [None, None, None]
    three = scaled({M_3: [3.1, 3.2]})
    assert verdict_on("stable over m", three).holds
    assert not verdict_on("stable over m", scaled({M_3: [5.0, 5.0]})).holds


@pytest.mark.parametrize(
    ("right", "generalises"),
    [([0.5, 0.4], True), ([0.5, 0.15], None), ([0.1, 0.1], False)],
)
def test_generalising_to_larger_m_is_more_than_the_most_frequent_label_in_every_seed(
    right, generalises
):
    found = scaled({})
    one = accuracy(40.0)
    found["readout-accuracy"][M_2] = [
        xr.concat(
            [
                one,
                one.assign(
                    accuracy=one.accuracy * value, loss=one["loss"] * value
                ).assign_coords(set=["m=3"]),
            ],
            "set",
        )
        for value in right
    ]
    assert verdict_on("larger m", found).holds is generalises


@pytest.mark.parametrize(
    ("rank", "right", "grows"),
    [
        ([4.0, 4.2], 1.0, True),
        ([3.2, 3.3], 1.0, False),  # no more than half a dimension
        ([2.9, 5.0], 1.0, None),  # seeds disagree
        ([4.0, 4.2], 0.4, None),  # an unfinished run
    ],
)
def test_a_rank_grows_with_the_modulus_where_seeds_agree_and_both_runs_are_done(
    rank, right, grows
):
    found = scaled({WIDE: rank}, {WIDE: right})
    found_ = verdict_on("modulus", found)
    assert (
        found_.holds is grows
        and "C = 16: " in found_.measured
        and "C = 4: " in found_.measured
    )


@pytest.mark.parametrize(
    ("shallow", "deep", "grows"),
    [
        ([2.0, 2.0], [4.0, 4.0], True),
        ([4.0, 4.0], [2.0, 2.0], False),
        ([2.0, 2.0], [3.1, 3.1], None),
    ],
)
def test_a_rank_that_grows_with_depth_is_lower_in_shallower_models(
    shallow, deep, grows
):
    depths = {SHALLOW: shallow, DEEP: deep}
    assert verdict_on("depth", scaled(depths)).holds is grows


@pytest.mark.parametrize(
    ("rank", "walk", "holds"),
    [
        (3.0, 6.0, True),
        (3.0, 5.0, None),
        (2.0, 5.0, False),
        (np.nan, 6.0, None),
        (7.0, 7.0, False),
    ],
)
def test_ranks_of_three_to_five_show_nothing_where_random_walks_have_them(
    rank, walk, holds
):
    run = ranks([3.0] * 11)
    run["variance_rank"] = ("block", np.full(16, rank))
    run["walk_low"] = run["walk_high"] = ("block", np.full(16, walk))
    assert judges.low_ranks({"weight-rank": {"mixed": [run] * 2}})[0].holds is holds


@pytest.mark.parametrize(
    ("below", "holds"), [(0, False), (1, False), (3, None), (16, True)]
)
def test_a_matrix_or_two_of_many_below_random_order_confine_nothing(below, holds):
    run = ranks([3.0] * 11)
    run["p_lower"] = ("block", np.where(np.arange(16) < below, 0.01, 1.0))
    confined = judges.low_ranks({"weight-rank": {"mixed": [run] * 2}})[1]
    assert confined.holds is holds, confined
    assert f"{2 * below} of 32" in confined.measured  # 16 matrices in each of two seeds


@pytest.mark.parametrize(
    ("by_order", "holds"),
    [([3.0] * 4, True), ([5.0, 5.0, 3.0, 4.0], False), ([3, 3, 5, 5], True)],
)
def test_v_and_o_are_lower_only_by_more_than_in_random_order(by_order, holds):
    run = ranks([3.0] * 11)
    run["variance_rank"] = ("block", [5.0, 5.0, 3.0, 4.0] * 4)
    run["shuffled_low"] = run["shuffled_high"] = (
        "block",
        np.tile(by_order, 4).astype(float),
    )
    assert judges.low_ranks({"weight-rank": {"mixed": [run] * 2}})[2].holds is holds


def test_a_fall_that_random_paths_show_too_is_no_collapse():
    falling = [1, 6, 5, 3, 3, 3, 3, 3, 3, 3, 3]
    assert figure_1(falling)[3].holds is True
    assert figure_1(falling, null=falling)[3].holds is None


@pytest.mark.parametrize(
    ("rank", "by_order", "holds"),
    [(4.4, 5.0, [True, False]), (4.4, 4.4, [None, False]), (2.6, 5.0, [True, True])],
)
def test_a_mean_rank_is_judged_in_every_range_that_the_paper_has(rank, by_order, holds):
    run = ranks([3.0] * 11)
    run["variance_rank"] = ("block", np.full(16, rank))
    run["shuffled_low"] = run["shuffled_high"] = ("block", np.full(16, by_order))
    found = judges.low_ranks({"weight-rank": {"mixed": [run] * 2}})[4:]
    assert [v.holds for v in found] == holds
    other = run.assign(variance_rank=run.variance_rank + 2)
    differ = judges.low_ranks({"weight-rank": {"mixed": [run, other]}})[4]
    assert differ.holds is None


def test_entropy_falls_for_every_m_only_where_every_m_is_read():
    some, none = attention(FALL), attention(np.full(11, 2.7))
    both = xr.concat([some.assign_coords(set=["m=1"]), some], "set")
    one = xr.concat([some.assign_coords(set=["m=1"]), none], "set")
    judge = attention_judges._of_every_m
    assert judge([both] * 2).holds is True
    assert judge([none] * 2).holds is False and judge([some, none]).holds is None
    assert judge([one] * 2).holds is False and judge([both, one]).holds is None
    alone = judge([some] * 2)
    assert alone.certainty.value == "not tested" and "m=2" in alone.measured


def test_entropy_that_falls_late_does_not_drop_sharply():
    late = np.r_[np.linspace(2.7, 2.4, 9), 0.5, 0.4]
    assert of_figure_2(late, SETTLES_AT_30)[0].holds is False


@pytest.mark.parametrize(
    ("right", "learned"), [(0.95, True), (0.5, None), (0.12, False), (np.nan, None)]
)
def test_a_task_is_learned_where_nearly_all_is_right(right, learned):
    one = accuracy(0.0)
    found = {
        "readout-accuracy": {"SGD": [one.assign(accuracy=one.accuracy * right)] * 2},
        "weight-rank": {"SGD": [ranks([3.0] * 11)] * 2},
    }
    assert comparison_judges.stated(found)[0].holds is learned


def test_seeds_that_disagree_show_nothing():
    assert verdicts.exceeds([3.0, 4.0], [2.0, 2.0], 0.5) is True
    assert verdicts.exceeds([2.2, 2.2], [2.0, 2.0], 0.5) is False
    assert verdicts.exceeds([1.9, 6.0], [2.0, 2.0], 0.5) is None
    # One seed does, though the mean does not.
    assert verdicts.exceeds([1.0, 2.9], [2.0, 2.0], 0.5) is None
    assert verdicts.exceeds([np.nan, 6.0], [2.0, 2.0], 0.5) is None
    assert verdicts.unanimous([True, False]) is None
    assert verdicts.unanimous([True, True], [np.nan]) is None


def of_figure_6(lost, followed=4.0, largest=0.2, strength=0.7):
    """Return verdicts where removal costs `lost` (share of accuracy) at four steps."""
    most = np.full(4, largest)
    ablations = {"count": lost, "random": np.zeros(4), "matched": lost, "largest": most}
    run = xr.Dataset(
        {
            "accuracy_lost": (
                ("step", "variant", "ablation"),
                np.stack(list(ablations.values()), axis=-1)[:, None],
            ),
            "latents_above_null": (("step", "variant"), np.full((4, 1), followed)),
            "count_correlation": (
                ("step", "variant", "latent"),
                np.tile(np.where(np.arange(50) < followed, strength, 0.1), (4, 1, 1)),
            ),
            "accuracy": ("step", [0.1, 0.5, 0.9, 0.9]),
        },
        coords={"step": [0, 1, 2, 3], "variant": ["topk"], "ablation": list(ablations)},
    )
    return [v.holds for v in update_judges.latents({"sae-probe": {"mixed": [run] * 2}})]


def test_what_removal_costs_is_read_at_all_stages_and_early_against_late():
    assert of_figure_6(np.array([0.0, 0.015, 0.001, 0.001])) == [True, True, True]
    assert of_figure_6(np.array([0.0, 0.001, 0.1, 0.001])) == [True, False, False]
    assert of_figure_6(np.zeros(4), followed=40.0) == [False, True, False]
    # Not even the largest.
    assert of_figure_6(np.zeros(4), largest=0.001)[1:] == [None, None]
    # Beyond shuffled texts, and no strong one.
    weak = of_figure_6(np.zeros(4), strength=0.3)
    assert weak == [False, True, False]
    # Before training nothing can be lost.
    untrained = np.array([0.5, 0.015, 0.001, 0.001])
    assert of_figure_6(untrained) == [True, True, True]


def test_commutators_whose_norm_falls_do_not_stay_large_though_their_defect_does():
    fall = np.exp(-ARANGE / 20)
    run = commutators(
        ARANGE, fall, defect=np.ones(11), norm=fall**2, gradient_norm=fall
    )
    norm, defect, *_ = update_judges.commuting({"commutators": {"mixed": [run] * 2}})
    assert norm.holds is False and defect.holds is True
    low_once = commutators(ARANGE, fall, defect=np.r_[np.ones(8), 0.1, 1, 1])
    assert (
        update_judges.commuting({"commutators": {"mixed": [low_once]}})[1].holds is True
    )


@pytest.mark.parametrize(
    ("best", "last", "forgets"),
    [(1.0, 0.7, True), (1.0, 0.95, False), (0.2, 0.1, None)],
)
def test_what_was_never_learned_is_not_forgotten(best, last, forgets):
    learned = accuracy(0.0)
    forgotten = learned.assign(
        accuracy=learned.accuracy * np.r_[np.full(10, best), last]
    )
    found = {
        "readout-accuracy": {"mixed": [learned] * 2, "curriculum": [forgotten] * 2},
        "weight-rank": {
            label: [ranks([3.0] * 11)] * 2 for label in ("mixed", "curriculum")
        },
    }
    assert comparison_judges.forgetting(found)[0].holds is forgets


@pytest.mark.parametrize(
    ("right", "by_order", "tells"),
    [
        (1.0, (3.0, 3.0), True),
        (1.0, (2.0, 4.0), None),
        (1.0, (np.nan, np.nan), None),
        (0.5, (3.0, 3.0), None),
    ],
)
def test_ranks_tell_a_curriculum_apart_beyond_step_lengths_and_where_all_was_learned(
    right, by_order, tells
):
    one = accuracy(0.0)
    runs = [ranks([rank] * 11) for rank in (2.0, 4.0)]
    for run, null in zip(runs, by_order, strict=True):
        run["shuffled_low"] = run["shuffled_high"] = ("block", np.full(16, null))
    found = {
        "readout-accuracy": {
            "mixed": [one] * 2,
            "curriculum": [one.assign(accuracy=one.accuracy * right)] * 2,
        },
        "weight-rank": {"mixed": runs[1:] * 2, "curriculum": runs[:1] * 2},
    }
    assert comparison_judges.forgetting(found)[1].holds is tells
    # Equal ranks: only of what was learned.
    found["weight-rank"]["curriculum"] = runs[1:] * 2
    assert comparison_judges.forgetting(found)[1].holds is (
        False if right > 0.9 else None
    )


@pytest.mark.parametrize(
    ("defect", "explodes"),
    [
        (np.r_[1.0, np.full(10, 50.0)], False),  # all of it before convergence
        (np.r_[np.full(8, 1.0), 2.0, 30.0, 5.0], True),
    ],
)
def test_an_explosion_after_convergence_is_measured_from_convergence(defect, explodes):
    loss = np.r_[2.0, 1.0, 0.5, np.full(8, 0.1)]
    run = commutators(ARANGE, loss, defect=defect)
    assert (
        update_judges.commuting({"commutators": {"mixed": [run]}})[2].holds is explodes
    )
    late = commutators(ARANGE, np.r_[np.full(10, 2.0), 0.1], defect=defect)
    assert update_judges.commuting({"commutators": {"mixed": [late]}})[2].holds is None


def test_a_weak_correlation_needs_runs_that_could_show_a_strong_one():
    rng = np.random.default_rng(3)
    steps = np.arange(0, 241, 10)

    def runs(seeds):
        for _ in range(seeds):
            noise = np.exp(0.3 * rng.normal(size=(2, len(steps))))
            yield commutators(steps, noise[1] * np.exp(-steps / 100), norm=noise[0])

    *_, one = update_judges.commuting({"commutators": {"mixed": list(runs(1))}})
    *_, many = update_judges.commuting({"commutators": {"mixed": list(runs(8))}})
    assert one.holds is not True and many.holds is True


def test_a_correlation_that_chance_gives_too_is_neither_weak_nor_shown(monkeypatch):
    values = np.linspace(2.0, 1.0, 11)
    run = commutators(ARANGE, values, norm=values)

    def verdict(p):
        found = SimpleNamespace(joint_pearson=0.4, joint_p=p, pearson=0.4, n=11)
        monkeypatch.setattr(update_judges, "compare_signals", lambda *_: found)
        return update_judges.commuting({"commutators": {"mixed": [run]}})[3].holds

    assert verdict(0.3) is None and verdict(0.01) is False
