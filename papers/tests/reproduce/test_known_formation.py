"""When something formed, over seeds: overlap of intervals, its chance, and controls."""

import numpy as np
import pytest
import xarray as xr

from ontogeny.errors import ArgumentError
from ontogeny_papers.reproduce.known.formation import Formation


def planted(half, low, high, *, last=1.0, control=0.0, beyond=True):
    """Return a node with one row that changes from 0 to `last`, and a row that does not change."""
    rows = {
        "half_step": [half, np.nan],
        "half_step_low": [low, np.nan],
        "half_step_high": [high, np.nan],
        "first_value": [0.0, 0.0],
        "last_value": [last, 0.0],
        "beyond": [beyond, False],
        "row_name": ["head", "head"],
        "row_layer": ["a", "b"],
    }
    return xr.Dataset(
        {name: ("row", values) for name, values in rows.items()}
        | {"control_last": (("row", "run"), np.full((2, 3), control))},
        coords={"step": [0, 50, 99], "row": ["a · head", "b · head"]},
    )


def test_formations_coincide_where_their_intervals_overlap_in_every_seed():
    one = Formation.of([planted(20, 10, 30), planted(25, 20, 30)], "head")
    same = one.coincides(
        Formation.of([planted(35, 30, 40), planted(22, 20, 25)], "head")
    )
    assert same.holds is True and same.measured.startswith(
        "20 (10–30) and 25 (20–30) against"
    )
    never = one.coincides(
        Formation.of([planted(60, 50, 70), planted(60, 50, 70)], "head")
    )
    assert never.holds is False
    half = one.coincides(
        Formation.of([planted(60, 50, 70), planted(22, 20, 25)], "head")
    )
    assert half.holds is None  # seeds differ
    unknown = one.coincides(Formation.of([planted(*[np.nan] * 3)] * 2, "head"))
    assert unknown.holds is None and "never" in unknown.measured


def test_the_chance_of_an_overlap_is_that_of_random_intervals():
    drawn = np.random.default_rng(0)
    # 8/4 and 10/5: an octave each, of 100.
    one, other = (planted(5, 3, 7), planted(5, 4, 9))
    stated = (
        Formation.of([one], "head", "a")
        .coincides(Formation.of([other], "head", "a"))
        .chance
    )
    octave, whole = np.log(2), np.log(100)
    # Centres on a circle, so that no end is special.
    places = drawn.uniform(0, whole, (200_000, 2))
    apart = np.abs(places[:, 0] - places[:, 1])
    assert np.mean(np.minimum(apart, whole - apart) < octave) == pytest.approx(
        stated, abs=0.005
    )


def test_what_precedes_began_no_later():
    early, late = (
        Formation.of([planted(*at)], "head") for at in ((5, 4, 6), (20, 15, 30))
    )
    assert early.precedes(late) is True and late.precedes(early) is False
    assert Formation.of([planted(*[np.nan] * 3)], "head").precedes(late) is None


def test_the_row_that_changed_most_is_meant_and_controls_are_said():
    found = Formation.of(
        [planted(5, 4, 6, last=0.8, control=0.1, beyond=False)], "head"
    )
    assert found.last.tolist() == [0.8] and found.change == "from 0 to 0.8"
    assert "end at 0.1" in found.controls and "in 0 of 1 seeds" in found.controls
    with pytest.raises(ArgumentError, match=r"row must be one of head; got 'c'"):
        Formation.of([planted(5, 4, 6)], "c")
