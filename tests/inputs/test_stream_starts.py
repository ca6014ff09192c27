"""Texts of a long stream begin where words do, without a token in two of them."""

from types import SimpleNamespace

import numpy as np
import pytest

from ontogeny.inputs.pieces import pieces_of
from ontogeny.inputs.token_files import open_tokens
from ontogeny.study.token_tables import inputs_of_tokens
from ontogeny.tasks import bundled_texts, train_tokenizer

LENGTH = 16


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stream")
    tokenizer = train_tokenizer(bundled_texts(), 300)  # most words are several tokens
    ids = [i for text in bundled_texts() for i in tokenizer(text)["input_ids"]]
    np.save(folder / "ids.npy", np.array(ids))
    np.save(folder / "labels.npy", np.where(np.arange(len(ids)) % 3, ids, -100))
    return folder, tokenizer, np.array(ids)


class Run:
    """A run of which only the tokenizer is asked."""

    def __init__(self, tokenizer):
        self.tokenizer = lambda: tokenizer
        self.checkpoints = [SimpleNamespace(configuration=lambda: {"vocab_size": 300})]


def read(place, tokenizer, count, **options):
    table = {"tokens": "ids.npy", "max_length": LENGTH, "max_texts": count}
    size = {"vocab_size": 300}
    return inputs_of_tokens(table | size | options, place[0], Run(tokenizer))


def test_texts_begin_at_words_where_there_is_room(place):
    _, tokenizer, ids = place
    inputs = read(place, tokenizer, 20)
    plain = open_tokens(place[0] / "ids.npy").starts(LENGTH, 20)
    pieces = pieces_of(tokenizer)
    at = {tuple(ids[i : i + LENGTH]): i for i in range(len(ids) - LENGTH + 1)}
    starts = [at[tuple(row)] for row in inputs.ids.tolist()]
    assert (np.diff(starts) >= LENGTH).all()  # no token stands in two texts
    moved = np.array(starts) - plain
    assert moved.sum() > 0 and (moved >= 0).all() and (moved <= 32).all()
    begins = [
        not start
        or pieces[ids[start]][0].isspace()
        or pieces[ids[start - 1]][-1].isspace()
        for start in starts
    ]
    assert np.mean(begins) > 0.9


def test_labels_beside_a_stream_stay_beside_their_tokens(place):
    _, tokenizer, ids = place
    inputs = read(place, tokenizer, 20, token_labels="labels.npy")
    at = {tuple(ids[i : i + LENGTH]): i for i in range(len(ids) - LENGTH + 1)}
    for row, scored in zip(inputs.ids.tolist(), inputs.answers, strict=True):
        places = at[tuple(row)] + np.flatnonzero(scored)
        assert (places % 3 != 0).all() and len(places) >= LENGTH // 2


def test_a_stream_that_is_read_whole_or_without_a_tokenizer_is_cut_as_before(place):
    _, tokenizer, ids = place
    whole = len(ids) // LENGTH
    every = ids[: whole * LENGTH].reshape(whole, LENGTH)
    inputs = read(place, tokenizer, None)
    assert (
        inputs.ids[:-1] == every[:-1]
    ).all()  # the last has what is left as its room
    some = read(place, None, 20).ids
    starts = open_tokens(place[0] / "ids.npy").starts(LENGTH, 20)
    assert (some == ids[starts[:, None] + np.arange(LENGTH)]).all()
