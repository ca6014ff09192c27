"""Births of concepts beside the corpus: planted orders, orders of frequency alone, a tiny run."""

import numpy as np
import pytest
import xarray as xr

from ontogeny.features.wordspace.support import WordStream, support_of
from ontogeny_papers.reproduce.semantics import births

CLASSES, MEMBERS = 8, 8


@pytest.fixture(scope="module")
def support():
    """A text whose class c stands in 2 (c + 1) contexts; word w is of class w mod 8.

    So words of all classes are about as frequent, and their singular values differ.
    """
    ids = []
    words = CLASSES * MEMBERS
    for c in range(CLASSES):
        for context in range(2 * (c + 1)):
            for member in range(MEMBERS):
                times = 40 // (c + 1)
                marker = words + 100 * c + context
                ids += [marker, c + CLASSES * member, -1] * times
    stream = WordStream(np.array(ids), [f"w{i}" for i in range(words + 100 * CLASSES)])
    return support_of(stream, words + 2 * CLASSES * (CLASSES + 1), 500, 1)


def node(order):
    """Return two concepts of each class in each of two layers, born in an order of the classes."""
    rng = np.random.default_rng(1)
    ids = np.stack(
        [
            rng.choice(MEMBERS, 5, replace=False) * CLASSES + c
            for c in np.repeat(range(CLASSES), 2)
        ]
    )
    born = np.repeat(np.asarray(order, float), 2) * 10 + 10
    two = ("layer", "concept")
    return xr.Dataset(
        {
            **{
                name: (two, np.stack([born, born]))
                for name in (
                    "concept_born",
                    "concept_born_after",
                    "concept_born_before",
                )
            },
            "token_id": ((*two, "rank"), np.stack([ids, ids])),
            "token_share": ((*two, "rank"), np.full((2, len(ids), 5), 0.15)),
            "name": (two, np.stack([[f"class {i // 2}" for i in range(len(ids))]] * 2)),
            "piece_text": ("piece", [f"w{i}" for i in range(CLASSES * MEMBERS)]),
        },
        {"step": [0, 100], "layer": ["a", "b"], "piece": np.arange(CLASSES * MEMBERS)},
    )


def judged(order, support):
    table = births.beside_corpus(node(order), support, 99)
    return table, births.judge_births([table, table])


def test_births_in_the_order_of_the_corpus_are_seen_and_others_are_not(support):
    table, (order, orthants) = judged(np.arange(CLASSES)[::-1], support)
    assert table.sizes["concept"] == 4 * CLASSES
    assert float(table["order"]) > 0.95 and order.holds and orthants.holds
    _, (reversed_, _) = judged(np.arange(CLASSES), support)
    assert reversed_.holds is False
    _, (mixed, _) = judged([3, 0, 6, 1, 7, 2, 5, 4], support)
    assert mixed.holds is not True


def test_too_few_births_give_no_verdict_and_an_empty_picture(support):
    few = node(np.arange(CLASSES)).isel(concept=slice(2), layer=[0])
    table = births.beside_corpus(few, support, 9)
    verdicts = births.judge_births([table])
    assert [v.holds for v in verdicts] == [None, None]
    assert (
        "fewer than 5" in verdicts[0].beside
        and "2 concepts born" in verdicts[0].measured
    )
    none = births.beside_corpus(
        few.assign(concept_born=few.concept_born * np.nan), support, 9
    )
    assert births._view(none).sizes["concept"] == 0


def test_births_at_one_step_have_no_order_and_no_number_that_is_none(support):
    _, verdicts = judged(np.zeros(CLASSES), support)
    assert verdicts[0].holds is None and "at one step" in verdicts[0].beside
    assert not any("nan" in text for v in verdicts for text in (v.measured, v.beside))


def test_words_are_exchanged_for_words_of_their_frequency_only():
    words = births._exchanged(100, np.random.default_rng(0))
    assert sorted(words) == list(range(100)) and abs(words - np.arange(100)).max() < 16
