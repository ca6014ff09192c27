"""The case of induction heads: its batches, its judge on planted rows, and a tiny run."""

import dataclasses

import numpy as np
import xarray as xr

import ontogeny as og
from ontogeny_papers.reproduce.known import KnownSize, induction
from ontogeny_papers.reproduce.known.induction import InductionRun

TINY = InductionRun(vocab_size=16, length=12, width=8, steps=2, batch_size=4, texts=4)


def test_batches_repeat_with_a_period_that_differs_and_follow_the_seed():
    draw = InductionRun().batches(0)
    periods = set()
    for step in range(40):
        ids = draw(step).numpy()
        fits = [p for p in range(1, 24) if (ids[:, p:] == ids[:, :-p]).all()]
        periods.add(min(fits))
    assert periods == set(range(8, 13))
    assert (draw(3) == InductionRun().batches(0)(3)).all()
    assert (draw(3) != InductionRun().batches(1)(3)).any()


def node(names, last, steps=(100, 90, 110), **variables):
    count = len(names)
    rows = dict(
        zip(("half_step", "half_step_low", "half_step_high"), steps, strict=True)
    )
    data = {name: ("row", np.full(count, float(value))) for name, value in rows.items()}
    return xr.Dataset(
        data
        | {
            "first_value": ("row", np.full(count, 0.05)),
            "row_name": ("row", [name for _, name in names]),
            "row_layer": ("row", [layer for layer, _ in names]),
            "last_value": ("row", np.asarray(last, float)),
            "beyond": ("row", np.full(count, True)),
            "control_last": (("row", "run"), np.full((count, 3), 0.05)),
            **variables,
        },
        coords={"row": [" · ".join(name) for name in names], "step": [0, 1000]},
    )


def planted(heads_at=(100, 90, 110), falls_at=(105, 95, 115), one_layer=0.1):
    kinds = ("previous-token", "induction")
    names = [
        (f"layers.{i}.self_attn", f"{kind} head") for i in (0, 1) for kind in kinds
    ]
    plain = {
        "strongest_score_unrepeated": (
            ("step", "layer", "score"),
            np.full((2, 2, 3), 0.1),
        )
    }
    series = {"score": ("step", [0.0, 2.0]), "score_short": ("step", [0.0, 0.0])}
    two = node(names, [0.9, 0.1, 0.1, 0.8], heads_at, **plain)
    one = node(names[:2], [0.2, one_layer], heads_at, **plain)
    learning = node([("", "in-context learning")], [-3.0], falls_at, **series)
    weaker = node([("", "in-context learning")], [-0.5], falls_at, **series)
    return {
        "attention-heads": {"two layers": [two] * 2, "one layer": [one] * 2},
        "in-context-learning": {
            "two layers": [learning] * 2,
            "one layer": [weaker] * 2,
        },
        "in-context-unrepeated": {"two layers": [learning] * 2},
    }


def answers(**how):
    return [verdict.holds for verdict in induction.judge(planted(**how))]


def test_the_judge_finds_what_is_planted_and_misses_what_is_not():
    assert answers() == [True] * 5 + [False]
    assert answers(falls_at=(800, 700, 900))[1] is False
    assert answers(one_layer=0.8)[3] is False
    assert answers(heads_at=[np.nan] * 3)[1:3] == [None, None]


def test_a_tiny_run_is_trained_studied_and_judged(tmp_path):
    size = KnownSize({"two layers": TINY}, (0,), 1, induction._observables(TINY))

    def judge(found):  # one layer as two, so that a single run is studied
        return induction.judge(
            {
                name: runs | {"one layer": runs["two layers"]}
                for name, runs in found.items()
            }
        )

    recipe = dataclasses.replace(induction.RECIPE, quick=size, controls=1, judge=judge)
    page = recipe.run(tmp_path, quick=True)
    text = page.read_text(encoding="utf-8")
    assert "turned runs end at" in text and "Olsson" in text
    verdict = og.open_study(page.parent).result["verdict"]
    assert verdict.sizes["claim"] == 6
    sure = (verdict.certainty == "sure") & (verdict.kind == "reproduces")
    assert not sure[:3].any()  # nothing forms in two steps
