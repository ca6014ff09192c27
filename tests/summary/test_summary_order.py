"""Which layer came before which: said where layers that change together would not give it."""

import math
from types import SimpleNamespace

import numpy as np

from ontogeny.words.order import apart, first_and_last


def row(step, low, high, quantity="norm", layer="h.0"):
    """A row whose half-change step and interval are known."""
    return SimpleNamespace(
        half_step=step,
        half_step_low=low,
        half_step_high=high,
        quantity=quantity,
        layer=layer,
        section="s",
        own_value=True,
        within_null=False,
        changed=True,
        beyond=True,
        learned=False,
        lost=False,
        can_learn=False,
        controls=(),
        change=1.0,
        change_floor=0.1,
        first_value=0.0,
        last_value=1.0,
        units="1",
        p_value=0.001,
        p_control=0.001,
    )


def together(rng, layers=12, quantities=4, noise=0.1):
    """Rows of layers that change at one step, as far as it can be known."""
    for quantity in range(quantities):
        for layer, log in enumerate(rng.normal(5.0, noise, layers)):
            ends = (log, log - 1.96 * noise, log + 1.96 * noise)
            yield row(*map(math.expm1, ends), f"q{quantity}", f"h.{layer}")


def test_layers_that_change_together_are_put_in_no_order():
    rng = np.random.default_rng(0)
    pages = [list(together(rng)) for _ in range(400)]
    assert np.mean([bool([*first_and_last(page)]) for page in pages]) <= 0.05
    # Disjoint intervals alone would have put them in order far more often.
    halves = [[r for r in page if r.quantity == "q0"] for page in pages]
    disjoint = [
        max(r.half_step_low for r in h) > min(r.half_step_high for r in h)
        for h in halves
    ]
    assert np.mean(disjoint) > 0.1


def test_layers_that_change_apart_are_put_in_order():
    rows = [
        row(100, 90, 110),
        row(150, 140, 165, layer="h.1"),
        row(300, 270, 330, layer="h.2"),
    ]
    [ends] = first_and_last(rows)
    assert [r.layer for r in ends] == ["h.0", "h.2"]


def test_more_pairs_take_a_larger_difference():
    rows = [row(100, 91, 110), row(122, 111, 134, layer="h.1")]
    assert apart(rows, 1) and not apart(rows, 10_000)
    assert not apart(rows[:1], 1) and not apart([rows[0], row(math.nan, 1, 2)], 1)
