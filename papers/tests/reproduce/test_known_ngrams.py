"""The case of n-grams: its batches, and its judge on planted courses."""

import numpy as np
import xarray as xr

from ontogeny.tasks import bundled_texts
from ontogeny_papers.reproduce.known import text
from ontogeny_papers.reproduce.known.text import TextRun

STEPS = np.array([0, 1, 10, 100, 1000])
NAMES = ["unigrams", "bigrams", "trigrams"]


def agreement(closest, last, control=2.0):
    """Return divergences that are smallest, 0.2 nats, at given steps, and end at `last`."""
    values = np.ones((5, 3))
    for n, step in enumerate(closest):
        values[-1, n] = last[n]
        values[np.flatnonzero(step == STEPS)[0], n] = 0.2
    ends = {"closest_step": 1.0, "closest_step_low": 0.9, "closest_step_high": 1.1}
    return xr.Dataset(
        {
            "divergence": (("step", "ngram"), values),
            "divergence_other": (("step", "ngram"), values + 1),
            "divergence_control": (
                ("run", "step", "ngram"),
                np.full((2, 5, 3), control),
            ),
            **{
                name: ("ngram", by * np.array(closest, float))
                for name, by in ends.items()
            },
        },
        {"step": STEPS, "ngram": NAMES},
    )


def context(step):
    rows = {
        "half_step": step,
        "half_step_low": 0.9 * step,
        "half_step_high": 1.1 * step,
    }
    return xr.Dataset(
        {name: ("row", [value]) for name, value in rows.items()}
        | {
            "row_name": ("row", ["in-context learning"]),
            "row_layer": ("row", [""]),
            "first_value": ("row", [0.0]),
            "last_value": ("row", [-0.5]),
            "beyond": ("row", [True]),
            "control_last": (("row", "run"), np.zeros((1, 2))),
            "score_short": ("step", np.zeros(5)),
        },
        {"row": ["in-context learning"], "step": STEPS},
    )


def answers(closest=(1, 10, 100), last=(1.0, 1.0, 0.3), helps_at=500.0):
    found = {
        "ngram-agreement": {"language model": [agreement(closest, last)] * 2},
        "in-context-learning": {"language model": [context(helps_at)] * 2},
    }
    return [verdict.holds for verdict in text.judge(found)]


def test_the_judge_finds_what_is_planted_and_misses_what_is_not():
    assert answers() == [True] * 5
    assert answers(closest=(10, 1, 100))[0] is False
    assert answers(closest=(1, 100, 100))[1] is False
    assert answers(last=(0.25, 1.0, 0.3))[2:4] == [False, True]
    assert answers(helps_at=5.0)[4] is False
    assert answers(helps_at=np.nan)[4] is None


def test_crops_are_of_the_training_text_and_follow_the_seed(monkeypatch):
    # Short, and quickly read.
    monkeypatch.setattr(text, "python_documentation", bundled_texts)
    run = TextRun(characters=4001, length=8, batch_size=3)
    train, held_out = run.streams()
    windows = {tuple(train[i : i + 8]) for i in range(len(train) - 7)}
    batch = run.batches(0)(5)
    assert batch.shape == (3, 8) and all(
        tuple(row) in windows for row in batch.tolist()
    )
    assert (batch == run.batches(0)(5)).all() and (batch != run.batches(1)(5)).any()
    assert len(held_out) and max(train.max(), held_out.max()) < run.vocab_size
    assert set(run.inputs()) == {"held out", "train"}
