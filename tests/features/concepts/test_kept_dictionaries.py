"""Dictionaries of all steps stored whole, in half the bytes, or not at all."""

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.study_examples import LAYERS, developing, tiny_inputs
from ontogeny.errors import ArgumentError
from ontogeny.observables.extractor_fits import as_kept, dictionary_array

LARGE = ("dictionary", "refit_dictionary", "code_coordinates")


def _concepts(kept):
    return og.observables.Concepts(
        "pca", n_concepts=3, layers=LAYERS, keep_dictionaries=kept, label=kept
    )


@pytest.mark.slow
def test_half_precision_and_none_change_no_distance(tmp_path):
    trajectory = og.Trajectory.from_models(developing((0, 4, 16)))
    chosen = [_concepts(kept) for kept in ("float32", "float16", "none")]
    of_half = og.observables.ConceptDistances("float16")
    study = og.Study(
        trajectory, tiny_inputs(), [*chosen, of_half], device="cpu", noise=1
    )
    tree = study.run(tmp_path / "s")
    assert tree.attrs["problems"] == "[]"
    whole, half, none = (tree[o.name].to_dataset().drop_attrs() for o in chosen)
    for name in LARGE:
        assert half[name].dtype == np.float16 and name not in none
        np.testing.assert_allclose(half[name], whole[name], rtol=1e-3, atol=1e-6)
    for node in (half, none):
        rest = set(node.data_vars) - set(LARGE)
        assert rest == set(whole.data_vars) - set(LARGE)
        for name in rest:
            np.testing.assert_array_equal(node[name].values, whole[name].values)
    assert np.isfinite(tree["float16-distances"].between).all()


def test_what_reads_dictionaries_refuses_a_node_without_them():
    trajectory = og.Trajectory.from_models(developing((0, 16)))
    chosen = [_concepts("none"), og.observables.ConceptTracks("none")]
    with pytest.raises(ArgumentError, match="give that keep_dictionaries='float32'"):
        og.Study(trajectory, tiny_inputs(), chosen, device="cpu")


def test_numbers_beyond_half_precision_are_refused_and_not_infinite():
    found = {"dictionary": dictionary_array(1e5 * torch.ones(2, 2))}
    with pytest.raises(
        ArgumentError, match=r"1e\+05, which is too large .* take 'float32'"
    ):
        as_kept(found, "float16")
    with pytest.raises(ArgumentError, match="keep_dictionaries must be one of"):
        _concepts("float8")
