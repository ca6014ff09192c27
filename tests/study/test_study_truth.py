"""Planted trajectories: what develops is found, what does not is not called development."""

from functools import cache

import numpy as np
import pytest

import ontogeny as og
from helpers.claimed import claims
from helpers.study_examples import (
    developing,
    jittering,
    observables,
    rotating,
    tiny_inputs,
)
from ontogeny.claims import Kind
from ontogeny.dynamics.reasons import Reason

MANY = (0, *np.unique(np.geomspace(1, 1000, 15).round().astype(int)).tolist())


def _rows(tree):
    """Return {label: (role, developed)} of all chart rows."""
    rows = {}
    for name, node in tree.children.items():
        assert "failed" not in node.attrs, (name, node.attrs["failed"])
        for label, developed in zip(node.row.values, node.changed.values, strict=True):
            rows[str(label)] = (node.attrs["role"], bool(developed))
    return rows


def _study(models, folder, **options):
    study = og.Study(
        og.Trajectory.from_models(models),
        tiny_inputs(60),
        observables(("pca", "ica")),
        device="cpu",
        **options,
    )
    return study.run(folder)


@pytest.mark.slow
def test_a_developing_run_moves_and_its_distances_alone_are_no_verdict(tmp_path):
    tree = _study(developing(MANY), tmp_path / "s")
    for name in ("activation-decay", "concepts-pca"):
        node = tree[name]
        assert node.moved.all() and np.isfinite(node.half_step).all()
        # A distance to the last of 16 checkpoints falls as it would in a run that only jitters.
        assert (
            node.only_memory | (node.p_value > 1e-3)
        ).all() and not node.learned.any()
    decay = tree["activation-decay"]
    assert decay.only_memory.all()
    assert {*decay.reason.values} == {Reason.REFERENCE}
    assert not claims(decay.to_dataset(), Kind.CHANGED)  # it is 0 there by definition


@pytest.fixture(scope="module")
def without_development(tmp_path_factory):
    """Return a function that gives the study of models in which nothing develops, made once."""
    folder = tmp_path_factory.mktemp("without")
    return cache(lambda plant: _study(plant(MANY), folder / plant.__name__))


@pytest.mark.slow
@pytest.mark.parametrize("plant", [jittering, rotating])
def test_jitter_and_rotation_are_no_development(without_development, plant):
    tree = without_development(plant)
    rows = _rows(tree)
    assert not [
        label for label, (role, dev) in rows.items() if dev and role != "motion"
    ]
    assert {*tree["concepts-ica"].reason.values} == {Reason.WITHIN}


@pytest.mark.slow
def test_rotation_moves_the_raw_distance_but_not_the_aligned_one(without_development):
    tree = without_development(rotating)
    decay = tree["activation-decay"]
    assert float(decay.relative.sel(step=0).min()) > 0.3
    assert float(decay.rotation_removed.max()) < 1e-5
    distance = tree["concepts-pca"].relative_distance.sel(distance="frobenius", step=0)
    assert float(distance.sel(alignment="matched").min()) > 0.3
    assert float(distance.sel(alignment="rotation removed").max()) < 1e-3


@pytest.mark.slow
def test_another_reference_is_left_out_as_well(tmp_path):
    rows = _rows(_study(jittering(MANY), tmp_path / "s", reference="first"))
    assert not [
        label for label, (role, dev) in rows.items() if dev and role != "motion"
    ]
