"""Frequencies of an embedding: planted ones, their null, and too many tokens."""

import numpy as np
import pytest
import torch
from torch import nn

import ontogeny as og
from ontogeny.errors import ArgumentError
from ontogeny.observables import EmbeddingFrequencies

N = 13


def run_of():
    """Return an embedding of noise that becomes one of two frequencies over two steps."""
    noise = torch.randn(N + 1, 6, generator=torch.Generator().manual_seed(0))
    angle = 2 * np.pi * np.arange(N + 1)[:, None] * np.array([2, 5]) / N
    waves = torch.from_numpy(
        np.hstack([np.cos(angle), np.sin(angle), 0 * angle])
    ).float()
    models = {}
    for step, share in ((0, 0.0), (1, 0.5), (2, 1.0)):
        models[step] = nn.Sequential(nn.Embedding(N + 1, 6))
        with torch.no_grad():
            models[step][0].weight.copy_((1 - share) * noise + 3 * share * waves)
    return og.Trajectory.from_models(models)


def test_planted_frequencies_are_found_and_random_orders_have_none(tmp_path):
    observable = EmbeddingFrequencies("0.weight", tokens=N)
    study = og.Study(
        run_of(), og.Inputs.from_tokens([[1, 2]]), [observable], device="cpu"
    )
    node = study.run(tmp_path)["embedding-frequencies"].to_dataset().isel(layer=0)
    assert float(node.frequencies[-1]) == pytest.approx(2, rel=1e-5)
    np.testing.assert_allclose(node.power.sel(frequency=[2, 5], step=2), 0.5, rtol=1e-5)
    assert (
        float(node.frequencies[0]) > 4 and float(node.frequencies_permuted_low[-1]) > 3
    )
    assert node.frequency.values.tolist() == [1, 2, 3, 4, 5, 6]


def test_more_tokens_than_rows_are_said(tmp_path):
    observable = EmbeddingFrequencies("0.weight", tokens=99)
    study = og.Study(
        run_of(), og.Inputs.from_tokens([[1, 2]]), [observable], device="cpu"
    )
    with pytest.raises(
        ArgumentError, match="tokens is 99, but the embedding has 14 rows"
    ):
        study.run(tmp_path)


def test_numbers_out_of_range_are_refused():
    with pytest.raises(ArgumentError, match="tokens"):
        EmbeddingFrequencies(tokens=3)
