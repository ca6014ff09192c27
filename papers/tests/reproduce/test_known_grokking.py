"""The case of grokking: its pairs, its judge on planted rows, and a tiny run."""

import dataclasses

import numpy as np
import pytest
import xarray as xr

from ontogeny.concepts import JointDictionary
from ontogeny_papers.reproduce.known import KnownSize, grokking
from ontogeny_papers.reproduce.known.grokking import Waves, wave_shares
from ontogeny_papers.reproduce.known.modular_run import ModularRun

STEPS = np.array([0, 100, 200, 1000, 2000])


def test_a_pair_and_its_mirror_are_on_one_side_and_all_pairs_are_there():
    run = ModularRun(modulus=11)
    both = (run.pairs(trained)[0].tolist() for trained in (True, False))
    sides = [{tuple(pair[:2]) for pair in pairs} for pairs in both]
    assert len(sides[0] | sides[1]) == 121 and not sides[0] & sides[1]
    for side in sides:
        assert {(b, a) for a, b in side} == side
    assert len(sides[0]) / 121 == pytest.approx(0.8, abs=0.03)


def rows(labels, steps, last):
    half = np.array(steps, float)
    return {
        "half_step": ("row", half),
        "half_step_low": ("row", 0.9 * half),
        "half_step_high": ("row", 1.1 * half),
        "row_name": ("row", labels),
        "row_layer": ("row", [""] * len(labels)),
        "first_value": ("row", np.zeros(len(labels))),
        "last_value": ("row", np.array(last, float)),
        "beyond": ("row", np.full(len(labels), True)),
        "control_last": (("row", "run"), np.zeros((len(labels), 3))),
    }, {"row": labels, "step": STEPS}


def dictionary(waves=True, numbers=29):
    """Return a joint dictionary whose codes are cut waves of frequencies 2 and 5, or noise."""
    angle = 2 * np.pi * np.outer(np.arange(numbers), [2, 2, 5, 5]) / numbers
    codes = np.maximum(np.cos(angle + np.array([0, 1, 0, 1])), 0)
    if not waves:
        codes = np.random.default_rng(0).permutation(codes)
    codes = np.vstack([codes, np.ones(4)])  # the last token is no number
    return xr.Dataset(
        {
            "codes": (("block", "token", "concept"), codes[None]),
            "readability": (("block", "step", "concept"), [np.tri(5, 4, -1)]),
        },
        {"token": np.arange(numbers + 1), "step": STEPS},
    )


def planted(
    held_out_at=1000, frequencies_at=1000, kept=3.0, without=0.1, peak=3, waves=True
):
    labels = ["trained · accuracy", "held out · accuracy"]
    accuracy, coords = rows(labels, [50, held_out_at], [1.0, 1.0])
    course = [0.0, 0.05, 0.08, 0.5, 1.0]
    sets = {"set": ["trained", "held out"]}
    right = xr.Dataset(
        accuracy | {"accuracy": (("set", "step"), [np.ones(5), course])}, coords | sets
    )
    plain = right.assign(accuracy=(("set", "step"), [np.ones(5), np.full(5, without)]))
    changes, coords = rows(["frequencies"], [frequencies_at], [kept])
    counts = np.array([[14.0, 14.0, 12.0, 8.0, kept]])
    frequencies = xr.Dataset(
        changes
        | {
            "frequencies": (("layer", "step"), counts),
            "frequencies_permuted_low": (("layer", "step"), np.full((1, 5), 13.0)),
            "power": (("layer", "step", "frequency"), np.full((1, 5, 14), 1 / 14)),
        },
        coords,
    )
    matrices = ["variance_rank", "shuffled_low", "shuffled_high", "p_lower"]
    rank = xr.Dataset({name: ("block", np.full(4, 0.5)) for name in matrices})
    defect = np.ones(5)
    defect[peak] = 4.0
    commutators = xr.Dataset(
        {"defect_over_pairs": (("statistic", "step"), defect[None])},
        {"statistic": ["median"], "step": STEPS},
    )
    return {
        "readout-accuracy": {
            "weight decay": [right] * 2,
            "no weight decay": [plain] * 2,
        },
        "embedding-frequencies": {"weight decay": [frequencies] * 2},
        "vocabulary-concepts": {"weight decay": [dictionary(waves)] * 2},
        "weight-rank": {"weight decay": [rank] * 2, "no weight decay": [rank] * 2},
        "commutators": {"weight decay": [commutators] * 2},
    }


def answers(**how):
    return [verdict.holds for verdict in grokking.judge(planted(**how))]


def test_the_judge_finds_what_is_planted_and_misses_what_is_not():
    assert answers() == [True] * 5 + [True, None, True]
    assert answers(held_out_at=100)[0] is False
    assert answers(without=0.9)[1] is False
    assert answers(kept=9.0)[2] is False
    assert answers(frequencies_at=100)[3] is False
    assert answers(peak=4)[-1] is False
    assert answers(waves=False)[5] is False


def test_concepts_that_are_waves_are_told_from_the_same_rows_in_another_order():
    power = np.zeros(14)
    power[[1, 4]] = 0.5  # frequencies 2 and 5
    found = Waves.of(dictionary(), power, 29)
    assert found.beyond_chance and found.share == pytest.approx(0.84, abs=0.01)
    assert sorted(found.frequencies) == [2, 2, 5, 5] and found.readable_from == 200
    assert found.permuted < np.median(found.random) < found.share
    assert not Waves.of(dictionary(waves=False), power, 29).beyond_chance


def test_an_embedding_without_concepts_has_no_waves():
    node = dictionary()
    found = Waves.of(
        node.assign(readability=0 * node.readability), np.ones(14) / 14, 29
    )
    assert (
        not found.beyond_chance
        and np.isnan(found.share)
        and np.isnan(found.readable_from)
    )


def test_a_joint_dictionary_finds_waves_planted_in_113_rows():
    rows, rng = 113, np.random.default_rng(2)
    start, end = rng.normal(size=(rows, 64)), np.zeros((rows, 64))
    for k in (5, 7, 8, 11, 14):
        angle = 2 * np.pi * k * np.arange(rows)[:, None] / rows
        end += np.cos(angle) * rng.normal(size=64) + np.sin(angle) * rng.normal(size=64)
    shares = np.r_[np.zeros(3), np.linspace(0, 1, 14), np.ones(5)]
    latents = grokking._LATENTS
    fitted = JointDictionary(latents, n_active=latents, max_tokens=None, n_draws=0)
    fitted.fit([(1 - s) * start + s * end / 5**0.5 for s in shares])
    found, frequencies = wave_shares(fitted.codes_[:, fitted.is_concept_])
    assert np.median(found) > 0.7  # random directions: .34
    assert set(frequencies) == {5, 7, 8, 11, 14}
    shuffled = rng.permutation(fitted.codes_[:, fitted.is_concept_])
    assert np.median(wave_shares(shuffled)[0]) < 0.2


def test_what_begins_before_is_a_share_of_the_change():
    found = planted()
    shares = grokking._begun(
        found["readout-accuracy"]["weight decay"],
        found["embedding-frequencies"]["weight decay"],
    )
    np.testing.assert_allclose(shares, 2 / 11)  # 14 to 12 of 14 to 3, up to step 200


def test_a_tiny_run_is_trained_studied_and_judged(tmp_path):
    run = ModularRun(modulus=5, width=8, heads=2, steps=4)
    accuracy, frequencies, concepts, rank, commutators = grokking._observables(5, 6)
    rank = dataclasses.replace(rank, blocks=("q",), n_draws=4)
    commutators = dataclasses.replace(commutators, batch_size=4, dtype="float32")
    observables = (accuracy, frequencies, concepts, rank, commutators)
    size = KnownSize({"weight decay": run}, (0,), 1, observables)

    def judge(found):
        return grokking.judge(
            {
                name: runs | {"no weight decay": runs["weight decay"]}
                for name, runs in found.items()
            }
        )

    recipe = dataclasses.replace(grokking.RECIPE, quick=size, controls=1, judge=judge)
    text = recipe.run(tmp_path, quick=True).read_text(encoding="utf-8")
    assert "Nanda" in text and "turned runs end at" in text
