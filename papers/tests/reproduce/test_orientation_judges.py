"""Judges of directions between seeds and layers, on planted overlaps and ranks."""

import numpy as np
import pytest
import xarray as xr

from ontogeny.claims import Certainty
from ontogeny_papers.reproduce import execution

KINDS, LAYERS = ("q_proj", "v_proj"), (0, 1)
BLOCKS = [
    f"layers.{layer}.attention.{kind}.weight" for layer in LAYERS for kind in KINDS
]


def between(overlap, p_value):
    shape, seeds = (len(BLOCKS), 3, 3), ("block", "run", "other")
    return xr.Dataset(
        {
            "overlap": (seeds, np.full(shape, overlap)),
            "p_value": (seeds, np.full(shape, p_value)),
            "chance": ("block", np.full(len(BLOCKS), 0.05)),
        }
    )


@pytest.mark.parametrize(("overlap", "holds"), [(0.05, True), (0.9, False)])
def test_turned_subspaces_vary_between_seeds_and_equal_ones_do_not(overlap, holds):
    verdict = execution._varies(between(overlap, 0.5))
    assert verdict.holds is holds and "above them 0 of 12" in verdict.beside


def test_subspaces_that_are_turned_in_some_seeds_decide_nothing():
    mixed = between(0.05, 0.5)
    mixed.overlap[0, 0, 1] = 0.9
    assert execution._varies(mixed).holds is None


def ranks(by_layer):
    values = [by_layer[layer] for layer in LAYERS for _ in KINDS]
    return xr.Dataset(
        {"variance_rank": ("block", np.array(values, float))}, {"block": BLOCKS}
    )


@pytest.mark.parametrize(
    ("seeds", "holds"),
    [(((3, 5), (3.4, 5)), True), (((3, 6), (6, 9)), False), (((3, 6), (3, 6)), None)],
)
def test_ranks_are_as_consistent_as_3_to_5_or_not(seeds, holds):
    """Walks agree as well, so that what holds is as controls."""
    verdict = execution._same_dimension([ranks(layers) for layers in seeds])
    assert (verdict.certainty is Certainty.AS_CONTROLS) == (holds is True)
    assert verdict.holds is (False if holds is False else None)


@pytest.mark.parametrize(("p_value", "holds"), [(0.001, True), (0.5, None)])
def test_layers_that_share_directions_do_so_more_often_than_by_chance(p_value, holds):
    run = xr.Dataset({"p_value": (("block", "other"), np.full((4, 4), p_value))})
    verdict = execution._shared([run, run])
    assert verdict.holds is holds and "5% by chance" in verdict.beside


def test_seeds_are_compared_where_their_directions_are_given():
    results = {
        "weight-rank": {"m": [ranks((3, 3)), ranks((3, 3))]},
        "orientation": {
            "m": [xr.Dataset({"p_value": (("block", "other"), np.full((4, 4), 0.5))})]
        },
    }
    alone = execution.layers_and_ranks(results)
    beside = execution.layers_and_ranks(results, between(0.05, 0.5))
    assert [v.claim for v in beside[1:]] == [v.claim for v in alone] and beside[0].holds
