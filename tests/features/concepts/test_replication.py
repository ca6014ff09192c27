"""What of a dictionary another fit finds again: planted concepts, chance, and one number."""

import numpy as np
import pytest
import torch
import xarray as xr

from ontogeny import concepts
from ontogeny.features.concepts.noise import claims_of_replication, replication, shares
from ontogeny.units import Units
from ontogeny.words.sentences import sentences
from ontogeny.words.subjects import Names
from ontogeny.words.voice import OF_STEPS

CHANGES = ("rounding", "seed", "order of tokens", "half of texts")
TEXTS = Units(np.repeat(np.arange(40), 20))


def measured(A, extractor, r, **options):
    def fit(B, seed=0):
        made = concepts.make(extractor, r, seed, **options)
        return made.fit_transform(B), made.transform

    others = {"seed 1": fit(A, 1)[0], "float64": fit(A.double())[0]}
    return replication(A, fit(A)[0], others, fit, TEXTS, 0)


def planted(seed=0, size=6, noise=0.02):
    generator = torch.Generator().manual_seed(seed)
    codes = torch.rand(800, size, generator=generator) ** 12  # sparse, and so found
    dictionary = torch.linalg.qr(torch.randn(16, size, generator=generator))[0]
    return codes @ dictionary.T + noise * torch.randn(800, 16, generator=generator)


def test_planted_concepts_are_found_again_whatever_changes():
    found = measured(planted(), "ica", 6)
    assert found["found_again"].change.values.tolist() == list(CHANGES)
    np.testing.assert_array_equal(found["found_again"], 1)
    assert float(found["code_likeness"]) < 0.3


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_in_noise_rounding_alone_finds_the_same():
    noise = torch.randn(800, 16, generator=torch.Generator().manual_seed(1))
    found = measured(noise, "kmeans", 12)["found_again"]
    assert float(found.sel(change="rounding")) > 0.9
    assert float(found.sel(change=list(CHANGES[1:])).max()) < 0.4


def test_signs_and_concepts_that_are_never_active_do_not_count():
    U = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
    other = torch.cat([-U[:, [2, 0]], torch.zeros(50, 2)], dim=1)
    assert shares(U, other)[0] == 0.5
    assert shares(torch.cat([U, torch.zeros(50, 1)], dim=1), U)[0] == 1
    assert shares(torch.zeros(5, 2), U[:5]) == (0, 0)


def test_too_few_rows_leave_halves_untried_and_no_seed_none():
    A = planted()[:30]
    made = concepts.make("pca", 16)
    found = replication(
        A,
        made.fit_transform(A),
        {},
        lambda B: (made.fit_transform(B), made.transform),
        Units(np.arange(30)),
        0,
    )
    assert found["found_again"].change.values.tolist() == ["order of tokens"]
    assert found["found_again"].item() == 1


def test_the_sentence_is_of_the_last_step_with_a_noise_floor_and_says_that_codes_repeat():
    again = [[[0.9, 0.5, 0.25, 0.1]], [[1, 0.5, np.nan, 0.04]], [[np.nan] * 4]]
    data = xr.Dataset(
        {
            "found_again": (("step", "layer", "change"), again),
            "code_likeness": (("step", "layer"), [[0.1], [0.97], [np.nan]]),
        },
        {"step": [0, 10, 20], "change": list(CHANGES)},
    )
    claims = [*claims_of_replication("concepts", data)]
    assert {claim.subject.step for claim in claims} == {10}
    first, second = (one.text for one in sentences(claims, OF_STEPS, Names()))
    assert first == (
        "Concepts are found again: 100 % with another rounding, 50 % with another seed and "
        "4 % with another half of texts."
    )
    assert "codes repeat: half of them correlate by 0.97 or more" in second
    assert not [*claims_of_replication("concepts", data.isel(step=[2]))]
    assert not [*claims_of_replication("concepts", xr.Dataset())]
