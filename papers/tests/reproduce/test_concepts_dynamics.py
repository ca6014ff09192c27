"""Verdicts on learning dynamics: planted curves, and one tiny run from training to page."""

import dataclasses
import json

import numpy as np
import pytest
import xarray as xr

from helpers.hub_account import use_account
from helpers.hub_server import StandIn, folder_files
from ontogeny.claims import Reason
from ontogeny.errors import ArgumentError
from ontogeny.training.run import RunSettings
from ontogeny_papers.reproduce.concepts import (
    RECIPES,
    MaskedRun,
    approach,
    larger,
    latents,
    lipschitz,
    shapes,
    signals,
)
from ontogeny_papers.reproduce.concepts.agreement import (
    agreement,
    in_common,
    of_other_seeds,
)
from ontogeny_papers.reproduce.concepts.concept_recipe import GIVEN

STEPS = np.arange(0, 260, 10)
LAYERS = ["a", "b", "c"]
WAYS = ["as returned", "matched", "rotation removed"]


def node(curve, controls=None, stderr=0.01, beyond=True):
    """Return a node of concepts whose two distances are all ``curve(step)``."""
    values = np.broadcast_to(
        np.asarray(curve, dtype=float)[:, None, None, None], (len(STEPS), 3, 2, 3)
    )
    dims = ("step", "layer", "distance", "alignment")
    data = xr.Dataset(
        {
            "relative_distance": (dims, values.copy()),
            "relative_distance_stderr": (dims[1:], np.full((3, 2, 3), stderr)),
            "beyond": ("row", [beyond] * 3),
            "run_change": (("row", "run"), np.full((3, 2), -0.9)),
            "control_first": (("row", "run"), np.full((3, 2), 0.6)),
            "control_last": (("row", "run"), np.full((3, 2), 0.3)),
            "half_step": ("row", [100.0, 110.0, 120.0]),
            "control_half_step": (("row", "run"), np.full((3, 2), 20.0)),
        },
        {
            "step": STEPS,
            "layer": LAYERS,
            "distance": ["frobenius", "procrustes"],
            "alignment": WAYS,
            "run": ["turned 0", "turned 1"],
        },
        attrs={"reference_step": int(STEPS[-1])},
    )
    if controls is not None:
        table = np.full((2, len(STEPS), 3, 2, 3), np.nan)
        table[:, [0, 10, -1]] = np.array(controls)[None, :, None, None, None]
        data["relative_distance_control"] = (("run", *dims), table)
    return data


DECAY = np.exp(-STEPS / 60.0) * (STEPS[-1] > STEPS)
RISING_CONTROLS, FALLING_CONTROLS = (0.5, 0.6, 0.0), (0.6, 0.3, 0.0)


def test_distances_fall_only_where_controls_do_not():
    assert approach.falls([node(DECAY, RISING_CONTROLS)] * 2).holds is True
    judged = approach.falls([node(DECAY, FALLING_CONTROLS)] * 2)
    assert judged.holds is None and "24 of 24" in judged.beside
    assert approach.falls([node(DECAY)] * 2).holds is None  # nothing to compare with
    rising = np.append(np.linspace(0.2, 1.0, len(STEPS) - 1), 0.0)
    assert approach.falls([node(rising, RISING_CONTROLS)] * 2).holds is False
    assert (
        approach.falls([node(DECAY, RISING_CONTROLS, stderr=np.nan)] * 2).holds is None
    )


def test_further_needs_every_layer_of_every_seed():
    assert approach.further([node(DECAY)] * 2).holds is True
    assert approach.further([node(DECAY, beyond=False)] * 2).holds is None
    less = node(DECAY, beyond=False)
    less["run_change"] = less.run_change * 0.1
    assert approach.further([less] * 2).holds is False
    assert approach.further([node(DECAY), node(DECAY, beyond=False)]).holds is None


def regimes(
    boundary=np.nan, ratio=(np.nan, np.nan, np.nan), after=0.1, p=0.3, residual=0.0
):
    """Return a node of regimes; the residual alternates in sign, by layer."""
    size = np.broadcast_to(np.asarray(residual, dtype=float), (3,))
    values = size * (-1.0) ** np.arange(len(STEPS))[:, None]
    return xr.Dataset(
        {
            "joint_boundary": boundary,
            "joint_boundary_low": boundary - 20,
            "joint_boundary_high": boundary + 20,
            "joint_noise_ratio": ratio[0],
            "joint_noise_ratio_low": ratio[1],
            "joint_noise_ratio_high": ratio[2],
            "joint_noise_after": after,
            "joint_p": p,
            "joint_p_gradual": np.nan,
            "joint_gradual_ratio": np.nan,
            "residual": (("step", "layer"), values),
            "curve": (("step", "layer"), np.repeat(DECAY[:, None], 3, axis=1)),
        },
        {"step": STEPS, "layer": LAYERS},
    )


def test_two_regimes_by_order_and_beyond_refits():
    nodes = [node(DECAY)] * 2
    smooth_then_noisy = regimes(100.0, (4.0, 2.0, 8.0), p=0.005)
    noisy_then_smooth = regimes(100.0, (0.25, 0.1, 0.5), p=0.005)

    def judged(found, of=nodes):
        return approach.two_regimes(of, found, "as returned")

    assert judged([smooth_then_noisy] * 2).holds is True
    assert judged([noisy_then_smooth] * 2).holds is False
    assert judged([smooth_then_noisy, noisy_then_smooth]).holds is None
    none = judged([regimes()] * 2)
    assert none.holds is None and "none (p = 0.3)" in none.measured
    # No seed has any: they do not differ.
    assert none.reason is Reason.WITHIN_NOISE
    one = judged([smooth_then_noisy, regimes()])
    assert one.holds is None and one.reason is Reason.CASES_DIFFER
    noisy_refits = [node(DECAY, stderr=0.5)] * 2
    assert judged([smooth_then_noisy] * 2, noisy_refits).holds is None
    short = judged([regimes(p=np.nan)])
    assert "too few" in short.measured and short.reason is Reason.FEW_CHECKPOINTS


def fits(exponential=1.0, ruled_out=0.0, r2=0.99, other=0.95):
    """Return a node of shapes, all layers alike."""
    return xr.Dataset(
        {
            "exponential": ("layer", [exponential] * 3),
            "ruled_out": ("layer", [ruled_out] * 3),
            "r2": ("layer", [r2] * 3),
            "r2_of": (("layer", "model"), [[r2, other]] * 3),
        },
        {"layer": LAYERS, "model": ["exponential", "power law"]},
    )


def test_exponential_where_others_are_told_apart():
    assert approach.exponential([fits()] * 2).holds is True
    assert approach.exponential([fits(0.0, 1.0)] * 2).holds is False
    assert approach.exponential([fits(0.0, 0.0)] * 2).holds is None
    assert approach.exponential([fits(r2=np.nan)] * 2).holds is None


@pytest.mark.parametrize(
    ("r2", "other", "holds"),
    [(0.99, 0.5, True), (0.99, 0.95, None), (0.5, 0.95, False)],
)
def test_r2_near_one_says_nothing_where_other_shapes_have_it(r2, other, holds):
    names = [
        "activation-decay-fits",
        *(f"concepts-{key}-fits" for key in signals.SIGNALS),
    ]
    found = {name: {"run": [fits(r2=r2, other=other)] * 2} for name in names}
    assert shapes.judge(found)[0].holds is holds


def test_convergence_is_refuted_or_not_shown():
    def dynamics(converged):
        return xr.Dataset(
            {
                "converged": ("layer", [converged] * 3),
                "quiet_since": ("layer", [200.0] * 3),
            },
            {"layer": LAYERS},
        )

    assert approach.converges([dynamics(0.0)] * 2).holds is False
    assert approach.converges([dynamics(1.0)] * 2).holds is None


def test_smoother_beyond_what_refits_give():
    quiet, rough = regimes(residual=0.01), regimes(residual=0.1)
    found = {"convex-nmf": [quiet] * 2, "ica": [rough] * 2}
    same = {key: [node(DECAY)] * 2 for key in found}
    assert approach.smoother("convex-nmf", same, found).holds is True
    refits = {"convex-nmf": [node(DECAY)] * 2, "ica": [node(DECAY, stderr=0.1)] * 2}
    assert approach.smoother("convex-nmf", refits, found).holds is None
    assert approach.smoother("ica", same, found).holds is False


def curves(*series):
    return [
        xr.DataArray(np.array(one)[:, None], dims=("step", "layer")) for one in series
    ]


def test_agreement_beside_other_seeds():
    def pearson(x, y):
        return np.corrcoef(x, y)[0, 1]

    rng = np.random.default_rng(0)
    own = curves(*rng.standard_normal((2, 40)))
    assert (
        in_common(agreement(own, own, pearson), of_other_seeds(own, own, pearson))[0]
        is True
    )
    decays = curves(DECAY, DECAY**2)
    held, alike, _ = in_common(
        agreement(decays, decays, pearson), of_other_seeds(decays, decays, pearson)
    )
    assert held and alike  # any two decays
    unlike = agreement(own, own[::-1], pearson)
    assert in_common(unlike, np.array([0.1]))[0] is False
    assert in_common(agreement(own[:1], own[:1], pearson), np.array([]))[0] is None
    assert in_common(np.array([np.nan]), np.array([0.1]))[0] is None
    high = np.array([0.9, 0.95])
    # One pair has as much in common.
    assert in_common(high, np.array([0.7, 0.92]))[:2] == (True, True)
    assert in_common(high, np.array([0.7, 0.85]))[:2] == (True, False)


def test_latents_found_again_up_to_sign():
    first = xr.DataArray(np.eye(4), dims=("feature", "concept"))
    half = first.isel(concept=[1, 0]) * -2
    assert latents._share_again(first, half) == pytest.approx(0.5)
    assert latents._share_again(half, first) == pytest.approx(1.0)
    assert latents._share_again(first * 0, first) == 0


def test_a_boundary_whose_noise_has_no_interval_says_so():
    node = xr.Dataset({"joint_boundary": 220.0, "joint_boundary_low": 140.0})
    node = node.assign(joint_boundary_high=300.0, joint_noise_ratio=3.5)
    unknown = node.assign(joint_noise_ratio_low=np.nan, joint_noise_ratio_high=np.nan)
    known = node.assign(joint_noise_ratio_low=2.0, joint_noise_ratio_high=5.0)
    assert approach.regime_words(unknown).endswith(
        "3.5 times that before (interval unknown)"
    )
    assert approach.regime_words(known).endswith("3.5 times that before (2–5)")


def test_roughest_layer_must_coincide_more_often_than_by_chance():
    late = regimes(residual=[0.01, 0.1, 0.01])
    early = regimes(residual=[0.1, 0.01, 0.01])
    assert signals._same_layer([late] * 5, [late] * 5).holds is True
    assert signals._same_layer([late] * 5, [early] * 5).holds is False
    # One of five does not rule out half of them.
    assert signals._same_layer([late] * 5, [late] + [early] * 4).holds is None
    # One in nine by chance.
    assert signals._same_layer([late] * 2, [late] * 2).holds is None


def test_sizes_at_the_same_pace_and_irregular_layers():
    slow = node(DECAY).assign(half_step=("row", [240.0] * 3))
    assert (
        larger._same_pace({"small": [node(DECAY)] * 2, "large": [slow] * 2}).holds
        is False
    )
    alike = larger._same_pace({"small": [node(DECAY)] * 2, "large": [node(DECAY)] * 2})
    assert alike.holds is None  # turned runs keep the same pace
    apart = node(DECAY).assign(
        control_half_step=(("row", "run"), np.full((3, 2), 200.0))
    )
    found = larger._same_pace({"small": [node(DECAY)] * 2, "large": [apart] * 2})
    assert found.holds is True
    middle = regimes(residual=[0.01, 0.1, 0.01])
    assert larger._middle("small", [middle] * 5).holds is True
    assert larger._middle("small", [middle] * 2).holds is None


def test_no_second_size_where_recorded_runs_are_given():
    found = {
        "concepts-ica": {GIVEN: [node(DECAY)]},
        "concepts-ica-regimes": {GIVEN: [regimes()]},
    }
    first = larger.judge(found)[0]
    assert first.holds is None and "no second size" in first.measured


def test_a_constant_ratio_needs_controls_that_are_none():
    flat, steep = curves(np.full(26, 2.0))[0], curves(np.linspace(1, 9, 26))[0]
    judge = lipschitz._steady
    assert judge("x", [flat] * 2, [steep] * 2).holds is True
    assert judge("x", [flat] * 2, [flat] * 2).holds is None
    unknown = judge("x", [flat] * 2, [None] * 2)
    assert unknown.holds is None and unknown.reason is Reason.NO_CONTROLS
    assert judge("x", [steep] * 2, [flat] * 2).holds is False
    assert judge("x", [flat, steep], [steep] * 2).holds is None


# ---- from training to page ----------------------------------------------------------------------

TEXTS = "\n\n".join(
    f"the small cat number {i} sat on the mat beside dog {i * 7 % 13} and looked at it"
    for i in range(60)
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Return a tiny recipe, its output folder and the page of one run of it."""
    folder = tmp_path_factory.mktemp("recipe")
    (folder / "text.txt").write_text(TEXTS)
    settings = RunSettings(
        steps=40, tokens_per_step=64, length=16, vocab_size=270, layers=1, width=16
    )
    recipe = RECIPES["concepts-figure-5"]
    observables = [
        dataclasses.replace(each, n_draws=19) if hasattr(each, "n_draws") else each
        for each in recipe.quick.observables
    ]
    small = dataclasses.replace(observables[0], n_concepts=3, max_tokens=60)
    size = dataclasses.replace(
        recipe.quick,
        runs={"EuroBERT": MaskedRun(settings, checkpoints=8)},
        seeds=(0,),
        observables=(small, *observables[1:]),
        texts=4,
        control_steps=3,
    )
    recipe = dataclasses.replace(recipe, quick=size, controls=1)
    page = recipe.run(folder / "out", quick=True, text=folder / "text.txt")
    return recipe, folder, page


def verdicts(page):
    return xr.open_datatree(page.parent / "result.zarr", engine="zarr")[
        "verdict"
    ].to_dataset()


def test_a_tiny_run_reaches_the_page(tiny):
    _, _, page = tiny
    found = verdicts(page)
    assert found.sizes["claim"] == 6
    # One layer, few steps: nothing is shown.
    assert (
        not (found.certainty == "sure").where(found.kind == "reproduces", False).any()
    )
    assert "text.txt" in page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def given(tiny):
    """Return the recorded run of the tiny recipe, and the page of the recipe on it."""
    recipe, folder, _ = tiny
    (recorded,) = (folder / "out" / "runs").glob("*/seed-0")
    text = folder / "text.txt"
    return recorded, recipe.run(
        folder / "given", quick=True, text=text, sources=[str(recorded)]
    )


def test_recorded_runs_stand_in_for_trained_ones(tiny, given):
    recipe, folder, _ = tiny
    _, page = given
    assert verdicts(page).sizes["claim"] == 6
    assert json.loads((page.parent / "study.json").read_text())["recipe"] == recipe.name
    assert not (folder / "given" / "runs").exists()


def test_checkpoints_on_the_hub_give_the_numbers_of_the_same_folder(
    tiny, given, tmp_path, monkeypatch
):
    recipe, folder, _ = tiny
    recorded, local = given
    tokenizer = folder_files(recorded)
    revisions = {
        f"step{place.name.rpartition('-')[2]}": {**tokenizer, **folder_files(place)}
        for place in recorded.glob("checkpoint-*")
    }
    name = "EuroBERT/EuroBERT-210m"
    with StandIn({name: revisions}) as hub:
        use_account(monkeypatch, hub.url, tmp_path, token=None)
        text = folder / "text.txt"
        page = recipe.run(tmp_path / "remote", quick=True, text=text, sources=[name])
        assert hub.calls["get"] > len(revisions)
    assert (
        verdicts(page).measured.values.tolist()
        == verdicts(local).measured.values.tolist()
    )
    assert name in page.read_text(encoding="utf-8")


def test_a_wrong_source_is_refused(tiny):
    recipe, folder, _ = tiny
    with pytest.raises(ArgumentError, match="nowhere"):
        recipe.run(folder / "wrong", quick=True, sources=[str(folder / "nowhere")])


def test_layers_without_surrogates_are_not_counted_as_untied():
    """A number below none is not above it."""
    tied = np.r_[np.ones(6), np.full(14, np.nan)]
    names = ("dtw", "mutual_information")
    values = {"dtw": 0.5, "mutual_information": 2.0}
    node = xr.Dataset(
        {name: ("layer", np.full(20, values[name])) for name in names}
        | {f"{name}_surrogates": ("layer", tied) for name in names}
    )
    found = signals._warped([node])
    assert found.holds is True and "6 of 6 layers" in found.measured
    untied = node.assign(dtw=node.dtw * 4, mutual_information=node.dtw)
    assert signals._warped([untied]).holds is False
    without = signals._warped([node * np.nan])
    assert without.certainty.value == "open"
    assert without.reason.value == "noise unknown"
