"""A fit that its machine cannot hold is refused with the numbers, before anything is computed."""

import numpy as np
import pytest
import torch

from ontogeny import concepts
from ontogeny.concepts import tensors
from ontogeny.errors import ArgumentError

OPTIONS = {"nmf": {"nonnegative": "split"}}
A = np.random.default_rng(0).normal(size=(40, 12)).astype(np.float32)


def _made(name, **options):
    return concepts.make(name, 3, **{**OPTIONS.get(name, {}), **options})


@pytest.mark.parametrize("name", concepts.names())
def test_too_large_a_fit_is_refused_before_it_begins(name, monkeypatch):
    made = _made(name)
    needed = made.memory_needed(*A.shape)
    monkeypatch.setattr(tensors, "SMALL", 0)
    monkeypatch.setattr(tensors, "free_memory", lambda: needed - 1)
    monkeypatch.setattr(type(made), "_solve", lambda *_: pytest.fail("it was computed"))
    kind = type(made).__name__
    with pytest.raises(
        ArgumentError, match=f"{kind} of 40 x 12 activations holds at least .* GB"
    ):
        made.fit(A)
    with pytest.raises(ArgumentError, match="fit fewer samples or concepts"):
        made.fit(torch.from_numpy(A))


@pytest.mark.parametrize("free", ["as needed", None])
def test_exactly_the_memory_is_enough_and_what_is_not_known_refuses_nothing(
    free, monkeypatch
):
    made = _made("pca")
    needed = made.memory_needed(*A.shape)
    monkeypatch.setattr(tensors, "SMALL", 0)
    monkeypatch.setattr(tensors, "free_memory", lambda: free and needed)
    assert made.fit(A).n_iter_ == 1


@pytest.mark.parametrize("name", concepts.names())
def test_what_is_needed_grows_with_every_size_and_twice_with_float64(name):
    made = _made(name)
    sizes = [(500, 300), (1000, 300), (1000, 600)]
    needed = [made.memory_needed(*size) for size in sizes]
    assert needed == sorted(needed) and needed[0] < needed[-1]
    assert made.memory_needed(500, 300, itemsize=8) == 2 * needed[0]
    # At least the codes and the dictionary, which are given back.
    assert needed[0] >= 4 * 3 * 800


def test_the_gram_matrix_of_the_multiplicative_rule_counts_and_landmarks_make_it_smaller():
    assert (
        _made("convex-nmf", variant="multiplicative").memory_needed(20_000, 8)
        == 4 * 20_000**2
    )
    few = _made("convex-nmf", variant="multiplicative", landmarks=100)
    assert few.memory_needed(20_000, 8) == 4 * 20_000 * 100
    assert _made("convex-nmf").memory_needed(20_000, 8) == 4 * 2 * 20_000 * 8


def test_a_concept_count_that_was_mistyped_is_refused():
    with pytest.raises(ArgumentError, match=r"holds at least .* GB beside"):
        concepts.make("sae", 10**13).fit(A)
