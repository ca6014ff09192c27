"""Texts that come with the package: their number, their length and their order."""

import pytest

from ontogeny.errors import ArgumentError
from ontogeny.tasks import bundled_texts


def test_the_novel_is_cut_into_short_passages_in_order():
    passages = bundled_texts("moby-dick")
    assert passages[0].startswith("Call me Ishmael.")
    assert 4500 < len(passages) < 5100 and max(map(len, passages)) < 700
    assert sum(len(passage.encode()) for passage in passages) <= 1_000_000


def test_a_text_that_there_is_not_is_refused():
    with pytest.raises(ArgumentError, match="moby-dick"):
        bundled_texts("moby dick")
