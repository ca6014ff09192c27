"""Bare files of token ids: what is said is taken, a guess has one answer or names all of them."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import torch

from ontogeny.errors import ArgumentError
from ontogeny.inputs import Inputs, read_tokens
from ontogeny.inputs.id_formats import (
    DTYPES,
    SeveralReadingsError,
    fitting_readings,
    reading_of,
)
from ontogeny.inputs.token_files import open_tokens

NARROW = ("uint16", "uint16-be")


def zipf(vocab_size, count=20_000, exponent=1.2):
    """Return ids as texts have them: small ones are frequent."""
    return np.random.default_rng(0).zipf(exponent, count) % vocab_size


def written(folder, ids, dtype):
    path = folder / "val.bin"
    np.asarray(ids).astype(DTYPES[dtype]).tofile(path)
    return path


def with_blanks(ids):
    """Return words with the blank, 0, after each: in 16 bits the bytes of words in 32."""
    return np.stack([ids, np.zeros_like(ids)], axis=1).ravel()


@pytest.mark.parametrize("dtype", [name for name in DTYPES if name != "uint8"])
@pytest.mark.parametrize("vocab_size", [65, 50_257])
def test_what_is_said_is_taken(tmp_path, dtype, vocab_size):
    ids = zipf(vocab_size)
    path = written(tmp_path, ids, dtype)
    for known in (None, vocab_size):
        read = read_tokens(path, max_length=8, dtype=dtype, vocab_size=known)
        assert read.ravel().tolist() == ids.tolist()
        assert reading_of(path, dtype, known).words == f"{dtype}, as was said"


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_what_is_said_is_taken_where_another_type_fits_as_well(tmp_path, dtype):
    """A file of words and blanks in 16 bits was called one of 32 bits, though 16 were said."""
    path = written(tmp_path, with_blanks(1 + zipf(31, 400)), "uint16")
    read = read_tokens(path, max_length=8, dtype=dtype)
    assert (read[:, 1::2] == 0).all() == (dtype == "uint16")
    with pytest.raises(SeveralReadingsError) as caught:
        read_tokens(path, max_length=8, vocab_size=32)
    assert caught.value.dtypes == ("uint16", "uint32")
    assert "--set inputs.dtype=uint16 or --set inputs.dtype=uint32" in str(caught.value)
    assert "ids 1, 0," in str(caught.value) or ", 0, " in str(caught.value)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("known", [{}, {"vocab_size": 50_257}, {"bound": 60_000}])
def test_ids_of_16_bits_are_found_in_either_order_of_bytes(tmp_path, dtype, known):
    for vocab_size in (65, 50_257):
        ids = zipf(vocab_size)
        assert reading_of(written(tmp_path, ids, dtype), **known).dtype == dtype


@pytest.mark.parametrize("stored", ["uint32", "int64", "uint32-be", "int64-be"])
@pytest.mark.parametrize("vocab_size", [65, 50_257, 150_000])
def test_wide_ids_are_never_read_as_narrow_ones_in_silence(
    tmp_path, stored, vocab_size
):
    path = written(tmp_path, zipf(vocab_size, exponent=1.1), stored)
    for known in ({}, {"vocab_size": vocab_size}, {"bound": vocab_size}):
        found = [reading.dtype for reading in fitting_readings(path, **known)]
        assert stored in found
        if len(found) > 1:
            with pytest.raises(SeveralReadingsError, match=rf"inputs\.dtype={stored}"):
                reading_of(path, **known)
    if vocab_size > 2**16 and "32" in stored:  # 16 bits hold no such vocabulary
        assert reading_of(path, vocab_size=vocab_size).dtype == stored


@pytest.mark.parametrize("ids", [np.zeros(400, int), np.full(400, 5), np.arange(9)])
def test_odd_texts_of_16_bits_are_read_as_such(tmp_path, ids):
    assert reading_of(written(tmp_path, ids, "uint16")).dtype == "uint16"
    rng = np.random.default_rng(0)
    for high in (2, 8, 300, 65_535):
        path = written(tmp_path, rng.integers(0, high, 4000), "uint16")
        assert reading_of(path).dtype == "uint16"


def test_bytes_are_found_by_their_vocabulary(tmp_path):
    path = written(tmp_path, zipf(65), "uint8")
    assert reading_of(path, vocab_size=65).dtype == "uint8" == reading_of(path).dtype
    with pytest.raises(ArgumentError, match="does not hold ids below 300"):
        reading_of(written(tmp_path, zipf(60_000), "uint16"), vocab_size=300)


@pytest.mark.parametrize(
    ("stored", "said", "message"),
    [
        ("uint16", "uint32", "not of uint32, as was said.*uint16 fits"),
        ("uint16", "int64", "not of int64, as was said.*uint16 fits"),
        ("uint16", "float32", "dtype must be one of"),
    ],
)
def test_what_is_said_and_cannot_be_is_refused(tmp_path, stored, said, message):
    with pytest.raises(ArgumentError, match=message):
        read_tokens(written(tmp_path, zipf(50_257), stored), max_length=8, dtype=said)


def test_an_odd_number_of_bytes_is_refused_whatever_is_said(tmp_path):
    path = tmp_path / "val.bin"
    path.write_bytes(b"\xff" * 4001)
    with pytest.raises(
        ArgumentError, match="4001 bytes, which are no whole numbers of uint16"
    ):
        read_tokens(path, dtype="uint16")
    with pytest.raises(ArgumentError, match="no whole numbers of 16 or 32 bits"):
        read_tokens(path, vocab_size=65)
    path.write_bytes(b"")
    with pytest.raises(ArgumentError, match="0 bytes"):
        read_tokens(path)


@pytest.mark.parametrize(
    ("stored", "separator", "message"),
    [
        ("uint16", 65_535, "1 % outside, all of them 65535"),
        ("int32", -1, "all of them -1"),
    ],
)
def test_a_separator_that_is_no_token_is_named(tmp_path, stored, separator, message):
    ids = zipf(50_257)
    ids[::100] = separator
    with pytest.raises(ArgumentError, match=message):
        read_tokens(written(tmp_path, ids, stored), vocab_size=50_257)


@pytest.mark.parametrize(
    ("magic", "version", "dtype"), [(20240520, 1, "uint16"), (20240801, 7, "uint32")]
)
def test_a_header_says_the_type_and_is_no_text(tmp_path, magic, version, dtype):
    ids, path = zipf(50_000, 4000), tmp_path / "val.bin"
    header = np.zeros(256, np.int32)
    header[:3] = magic, version, len(ids)
    stored = ids.astype(DTYPES[dtype]).tobytes()
    path.write_bytes(header.tobytes() + stored)
    for said in (None, dtype):
        assert read_tokens(path, 8, dtype=said).ravel().tolist() == ids.tolist()
    other = "uint32" if dtype == "uint16" else "uint16"
    with pytest.raises(ArgumentError, match=f"is of {dtype}, by the header"):
        read_tokens(path, 8, dtype=other)
    path.write_bytes(header.tobytes() + stored[:-8])
    with pytest.raises(ArgumentError, match="announces 4,000: is it cut off"):
        read_tokens(path, 8)


def test_the_index_of_megatron_says_the_type(tmp_path):
    ids = zipf(50_000, 4000)
    path = written(tmp_path, ids, "int32")
    path.with_suffix(".idx").write_bytes(
        b"MMIDIDX\x00\x00" + struct.pack("<QB", 1, 4) + b"rest"
    )
    assert read_tokens(path, 8).ravel().tolist() == ids.tolist()
    with pytest.raises(ArgumentError, match="is of int32, by the index of Megatron"):
        read_tokens(path, 8, dtype="uint16")


@pytest.mark.parametrize("suffix", [".npy", ".bin"])
def test_arrays_say_their_type_themselves(tmp_path, suffix):
    path = tmp_path / f"val{suffix}"
    with path.open("wb") as file:
        np.save(file, np.arange(64, dtype=np.int32))
    assert read_tokens(path, 8, dtype="int32").shape == (8, 8)
    with pytest.raises(
        ArgumentError, match="says itself that it holds int32; dtype=uint16"
    ):
        read_tokens(path, 8, dtype="uint16")


def test_a_long_file_is_looked_at_all_over(tmp_path):
    """One whose first ids are small: as 16 bits and as 32 until late."""
    ids = np.concatenate([with_blanks(zipf(900, 300_000)), zipf(900, 300_000)])
    assert (
        reading_of(written(tmp_path, ids, "uint16"), vocab_size=1000).dtype == "uint16"
    )


def test_what_is_cut_off_a_table_is_counted(tmp_path):
    np.save(tmp_path / "rows.npy", np.arange(40).reshape(4, 10))
    assert open_tokens(tmp_path / "rows.npy").cut(6, 2) == [4, 4]
    np.save(tmp_path / "stream.npy", np.arange(40))
    assert open_tokens(tmp_path / "stream.npy").cut(6, 3) == [0, 0, 0]


@pytest.mark.parametrize("counts", ["ids", "bytes"])
@pytest.mark.parametrize("kind", ["<u4", ">u4", "<u8", ">u8"])
@pytest.mark.parametrize("dtype", ["uint16", "uint32", "int64", "uint16-be"])
def test_a_count_before_the_ids_is_no_id(tmp_path, dtype, kind, counts):
    body = zipf(50_000).astype(DTYPES[dtype])
    number = np.array([len(body) if counts == "ids" else body.nbytes], kind)
    path = tmp_path / "val.bin"
    path.write_bytes(number.tobytes() + body.tobytes())
    for said in (None, dtype):
        with pytest.raises(
            ArgumentError, match=r"begins with . bytes that are no ids"
        ) as caught:
            reading_of(path, said, vocab_size=128_000)
        assert f"offset={number.nbytes})" in str(caught.value)
    np.fromfile(path, body.dtype, offset=number.nbytes).tofile(path)  # as it advises
    assert reading_of(path, dtype).dtype == dtype


@pytest.mark.parametrize("numbers", [(7, 1, 20_000), (20240520, 9, 20_000), (1,)])
def test_a_header_of_no_known_format_is_no_text(tmp_path, numbers):
    header = np.zeros(256, "<i4")
    header[: len(numbers)] = numbers
    path = tmp_path / "val.bin"
    path.write_bytes(header.tobytes() + zipf(50_000).astype("<u2").tobytes())
    with pytest.raises(ArgumentError, match=r"begins with 1024 bytes .* nothing but 0"):
        reading_of(path, "uint16")
    np.zeros(2000, "<u2").tofile(path)  # padding is ids
    assert reading_of(path, "uint16").dtype == "uint16"


def test_text_is_not_read_as_ids_of_16_bits(tmp_path):
    path = tmp_path / "val.bin"
    path.write_bytes(b"The cat sat on the mat.\n" * 50)
    with pytest.raises(ArgumentError, match=r"holds text, not ids: .*dtype=uint8"):
        reading_of(path, vocab_size=50_257)
    assert (
        reading_of(path, "uint8").dtype
        == reading_of(path, vocab_size=256).dtype
        == "uint8"
    )


@pytest.mark.parametrize("dtype", ["int32", "int64", "int64-be"])
@pytest.mark.parametrize("known", [True, False])
def test_labels_are_not_taken_for_ids_and_it_is_said_of_what_they_are(
    tmp_path, dtype, known
):
    ids = zipf(50_257)
    ids[3::50] = -100
    path = written(tmp_path, ids, dtype)
    with pytest.raises(
        ArgumentError, match=r"-100 marks places without a loss in labels"
    ):
        reading_of(path, vocab_size=50_257 if known else None)
    np.save(tmp_path / "val.npy", ids)
    with pytest.raises(
        ArgumentError, match=r"-100 marks places without a loss in labels"
    ):
        Inputs.from_tokens(read_tokens(tmp_path / "val.npy"))


def test_saved_tokens_leave_their_padding_out(tmp_path, caplog):
    mask = np.arange(8) < np.array([[8], [5], [3]])
    table = {
        "input_ids": torch.arange(24).view(3, 8),
        "attention_mask": torch.tensor(mask),
    }
    torch.save({**table, "labels": table["input_ids"]}, tmp_path / "val.pt")
    file = open_tokens(tmp_path / "val.pt")
    texts = file.texts(6)
    assert [text.tolist() for text in texts] == [
        [*range(6)],
        [*range(8, 13)],
        [16, 17, 18],
    ]
    assert file.cut(6, 3) == [2, 0, 0]
    assert "score='labels' is of its labels alone" in caplog.text
    with pytest.raises(ArgumentError, match=r"several lengths, by its attention_mask"):
        read_tokens(tmp_path / "val.pt", max_length=6)
    assert read_tokens(tmp_path / "val.pt", max_length=3).shape == (3, 3)
    torch.save({**table, "attention_mask": torch.ones(3)}, tmp_path / "val.pt")
    with pytest.raises(ArgumentError, match="of another shape"):
        open_tokens(tmp_path / "val.pt")


def test_rows_that_end_alike_are_warned_of_whatever_they_end_in():
    ids = np.where(
        np.arange(9) < np.array([[9], [6], [4]]), 5 + np.arange(27).reshape(3, 9), 3
    )
    with pytest.warns(
        UserWarning, match=r"2 of 3 texts end in several tokens 3, .*ids != 3"
    ):
        Inputs.from_tokens(ids)
