"""A run is ahead of another at the stated rate, on few texts and among many runs."""

import numpy as np
import pytest
import xarray as xr

from ontogeny.claims import Certainty, Kind, Reason
from ontogeny.comparison.claims import claims_of_runs
from ontogeny.comparison.sources import Run

TRIALS = 300  # of which 23 may be called ahead: 5 %, within what chance gives


def run_of(name, of_text):
    arrays = {
        "loss": ("step", [of_text.mean()]),
        "loss_of_text": (("step", "text"), of_text[None]),
        "loss_weights": (("step", "text"), np.ones((1, len(of_text)))),
    }
    data = xr.Dataset(arrays, {"step": [0]}).assign_attrs(role="track")
    return Run(name, xr.DataTree.from_dict({"loss": data}))


def ahead_of(losses):
    runs = [run_of(f"r{i}", of_text) for i, of_text in enumerate(losses)]
    [claim] = [c for c in claims_of_runs(runs, {}) if c.kind is Kind.AHEAD]
    return claim


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "texts"), [(2, 2), (2, 4), (2, 40), (5, 4)])
def test_runs_that_are_as_good_are_ahead_at_the_stated_rate(runs, texts):
    rng = np.random.default_rng(0)
    hard = rng.normal(5, 1, (TRIALS, 1, texts))
    all_losses = hard + rng.normal(0, 0.3, (TRIALS, runs, texts))
    sure = [ahead_of(losses).certainty is Certainty.SURE for losses in all_losses]
    assert sum(sure) <= 23


def test_a_run_that_is_plainly_better_on_four_texts_is_ahead():
    rng = np.random.default_rng(0)
    hard = rng.normal(5, 1, (TRIALS, 1, 4))
    better = np.array([[-1.0], [0.0]])
    all_losses = hard + better + rng.normal(0, 0.15, (TRIALS, 2, 4))
    claims = [ahead_of(losses) for losses in all_losses]
    sure = [c.certainty is Certainty.SURE and c.subject.label == "r0" for c in claims]
    assert sum(sure) >= 277


def test_one_text_cannot_tell_which_run_is_ahead():
    claim = ahead_of([np.array([4.0]), np.array([6.0])])
    assert (claim.certainty, claim.reason) == (Certainty.OPEN, Reason.FEW_TEXTS)
