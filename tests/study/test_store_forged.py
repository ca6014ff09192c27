"""Cells that are damaged or that somebody has forged: refused in one way, and computed again."""

import json
import struct

import numpy as np
import pytest
import xarray as xr

from ontogeny.errors import StoreError
from ontogeny.store import (
    Cell,
    _checksum,
    _seal,
    drop_numbers,
    read_cell,
    read_header,
    write_cell,
)
from ontogeny.study.cells.cache import check_cache

FINGERPRINT = {"weights": "abc", "reading": {"dtype": "float32"}}


def _cell():
    data = xr.Dataset(
        {
            "norm": (
                ("layer", "concept"),
                np.arange(6, dtype=np.float32).reshape(2, 3),
            ),
            "status": ("layer", np.array(["done", "done"], dtype=object)),
            "count": 7,
        },
        coords={"layer": ["é", "b"]},
        attrs={"note": "x"},
    )
    return Cell(
        data, fingerprint=FINGERPRINT, provenance={"created": "2026-01-01", "texts": []}
    )


@pytest.fixture
def path(tmp_path):
    write_cell(tmp_path / "8.safetensors", _cell())
    assert check_cache(tmp_path / "8.safetensors", FINGERPRINT).outcome == "done"
    return tmp_path / "8.safetensors"


def _parts(content):
    """Return length, layout, cell header and numbers of a file."""
    length = int.from_bytes(content[:8], "little")
    layout = json.loads(content[8 : 8 + length])
    return (
        length,
        layout,
        json.loads(layout["__metadata__"]["cell"]),
        content[8 + length :],
    )


def _joined(layout, header, numbers):
    """Return a file whose header is sealed as somebody would do who knows how."""
    text = json.dumps(header)
    layout["__metadata__"] = {"cell": text, "seal": _seal(text)}
    whole = json.dumps(layout).encode()
    return struct.pack("<Q", len(whole)) + whole + numbers


def test_every_flipped_bit_of_a_header_is_refused_and_the_cell_computed_again(path):
    content = path.read_bytes()
    length = _parts(content)[0]
    chosen = np.random.default_rng(0).choice(8 * (8 + length), 400, replace=False)
    assert {*range(64)} & {*chosen.tolist()}  # the length is hit as well
    for bit in map(int, chosen):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        for verify in (True, False):
            with pytest.raises(StoreError, match=r"cell|damaged"):
                read_cell(path, verify=verify)
        with pytest.raises(StoreError):
            read_header(path)
        assert check_cache(path, FINGERPRINT).outcome == "stale"


FORGED = {
    "bad dtype": lambda layout, _: layout["norm"].update(dtype="C64"),
    "dtype of another kind": lambda layout, _: layout["norm"].update(dtype=["F32"]),
    "offsets as text": lambda layout, _: layout["norm"].update(data_offsets="04"),
    "offsets as texts": lambda layout, _: layout["norm"].update(
        data_offsets=["0", "24"]
    ),
    "negative offsets": lambda layout, _: layout["norm"].update(data_offsets=[-24, 0]),
    "shape beyond the file": lambda layout, _: layout["norm"].update(shape=[2**62, 8]),
    "negative shape": lambda layout, _: layout["norm"].update(shape=[-2, -3]),
    "shape that wraps around": lambda layout, _: layout["norm"].update(
        shape=[2**32, 2**32]
    ),
    "shape as text": lambda layout, _: layout["norm"].update(shape="23"),
    "a layout that is a list": lambda layout, _: layout.update(norm=[]),
    "no tensor": lambda layout, _: layout.pop("norm"),
    "a tensor too many": lambda layout, _: layout.update(more=layout["norm"]),
    "no checksum": lambda _, header: header.pop("checksum"),
    "no status": lambda _, header: header.pop("status"),
    "status as a number": lambda _, header: header.update(status=1),
    "no fingerprint": lambda _, header: header.pop("fingerprint"),
    "fingerprint as a list": lambda _, header: header.update(fingerprint=[]),
    "another format": lambda _, header: header.update(format="ontogeny-cell-3"),
    "variables as a list": lambda _, header: header.update(variables=[]),
    "dimensions as a number": lambda _, header: header["variables"]["norm"].update(
        dims=7
    ),
    "too many dimensions": lambda _, header: header["variables"]["norm"].update(
        dims=["a"] * 9
    ),
    "no dimensions": lambda _, header: header["variables"]["norm"].pop("dims"),
    "attributes as a list": lambda _, header: header["variables"]["norm"].update(
        attrs=[1]
    ),
    "strings as a number": lambda _, header: header["variables"]["status"].update(
        strings=1
    ),
    "dimensions that disagree": lambda _, header: header["variables"]["status"].update(
        strings=["done"] * 5
    ),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
def test_a_forged_cell_is_refused_as_a_damaged_one_is(path, forge):
    _, layout, header, numbers = _parts(path.read_bytes())
    forge(layout, header)
    path.write_bytes(_joined(layout, header, numbers))
    for verify in (True, False):
        with pytest.raises(StoreError, match=r"cell|damaged"):
            read_cell(path, verify=verify)
    assert check_cache(path, FINGERPRINT).outcome == "stale"


def _codes():
    """A cell of codes of which most are zero."""
    rng = np.random.default_rng(0)
    codes = np.where(rng.random((50, 60)) < 0.05, rng.normal(size=(50, 60)), 0)
    values = {
        "codes": (("token", "concept"), codes),
        "norm": ("token", rng.normal(size=50)),
    }
    return Cell(xr.Dataset(values), fingerprint=FINGERPRINT)


def test_numbers_that_are_mostly_zero_are_compressed_without_a_change(tmp_path):
    cell, path = _codes(), tmp_path / "8.safetensors"
    checksum = write_cell(path, cell)
    assert path.stat().st_size < cell.data.codes.nbytes / 4
    read = read_cell(path)
    xr.testing.assert_identical(read.data, cell.data)
    assert read.data.codes.values.tobytes() == cell.data.codes.values.tobytes()
    # The checksum is of the numbers and not of their compressed bytes: what reads it stays valid.
    header = read_header(path)
    values = {name: variable.values for name, variable in cell.data.variables.items()}
    assert checksum == header["checksum"] == _checksum(values, header)


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8", "<i1", "<i8", "<u4", "?"])
def test_compressed_numbers_keep_their_type_and_every_bit(tmp_path, dtype):
    values = np.zeros((40, 300), dtype)
    values[3, :7] = 1
    if dtype[1:2] == "f":
        values[4, :3] = [np.nan, -0.0, -np.inf]
    path = tmp_path / "8.safetensors"
    write_cell(path, Cell(xr.Dataset({"x": (("a", "b"), values)})))
    read = read_cell(path).data.x.values
    assert read.dtype == values.dtype and read.tobytes() == values.tobytes()
    assert path.stat().st_size < values.nbytes and read.flags.writeable


def test_numbers_that_shrink_by_a_quarter_are_compressed_by_bytes(tmp_path):
    rng = np.random.default_rng(0)
    values = (
        rng.normal(size=(2, 100, 100)) * (rng.random((2, 100, 100)) < 0.6)
    ).astype("<f4")
    path = tmp_path / "8.safetensors"
    write_cell(path, Cell(xr.Dataset({"x": (("a", "b", "c"), values)})))
    assert 0.5 * values.nbytes < path.stat().st_size < 0.75 * values.nbytes
    assert read_cell(path).data.x.values.tobytes() == values.tobytes()


def test_a_cell_without_its_numbers_holds_none_and_says_so(tmp_path):
    checksum = write_cell(tmp_path / "8.safetensors", _codes())
    drop_numbers(tmp_path / "8.safetensors")
    for verify in (True, False):
        cell = read_cell(tmp_path / "8.safetensors", verify=verify)
        assert (
            cell.checksum == checksum
            and cell.status == "dropped"
            and not cell.data.variables
        )


def test_large_numbers_stay_as_they_are_to_be_mapped(tmp_path, monkeypatch):
    monkeypatch.setattr("ontogeny.store._MOST_PACKED", 50 * 60 * 8 - 1)
    write_cell(tmp_path / "8.safetensors", _codes())
    assert not read_header(tmp_path / "8.safetensors")["packed"]


PACKED = {
    "another shape": lambda header, _: header["packed"]["codes"].__setitem__(
        1, [50, 61]
    ),
    "a terabyte": lambda header, _: header["packed"]["codes"].__setitem__(
        1, [2**20, 2**20]
    ),
    "objects": lambda header, _: header["packed"]["codes"].__setitem__(0, "|O"),
    "a negative shape": lambda header, _: header["packed"]["codes"].__setitem__(
        1, [-50, -60]
    ),
    "what is not there": lambda header, _: header["packed"].update(more=["<f8", [2]]),
    "what is not compressed": lambda header, _: header["packed"].update(
        norm=["<f8", [50]]
    ),
    "more bytes than there are": lambda _, numbers: numbers.__setitem__(
        slice(12, 16), (2**31 - 1).to_bytes(4, "little")
    ),
    "a size that is not its own": lambda _, numbers: numbers.__setitem__(
        slice(4, 8), (2**31 - 1).to_bytes(4, "little")
    ),
}


@pytest.mark.parametrize("forge", PACKED.values(), ids=PACKED.keys())
def test_forged_compressed_numbers_are_refused(tmp_path, forge):
    path = tmp_path / "8.safetensors"
    write_cell(path, _codes())
    _, layout, header, numbers = _parts(path.read_bytes())
    begin = layout["codes"]["data_offsets"][0]
    codes = bytearray(numbers[begin:])
    forge(header, codes)
    path.write_bytes(_joined(layout, header, numbers[:begin] + bytes(codes)))
    for verify in (True, False):
        with pytest.raises(StoreError, match="cell"):
            read_cell(path, verify=verify)


def test_a_flipped_bit_of_compressed_numbers_changes_none_without_a_word(tmp_path):
    path = tmp_path / "8.safetensors"
    write_cell(path, _codes())
    content, refused = path.read_bytes(), 0
    for place in range(1, 400, 7):
        flipped = bytearray(content)
        flipped[-place] ^= 4
        path.write_bytes(flipped)
        try:
            xr.testing.assert_identical(read_cell(path).data, _codes().data)
        except StoreError:
            refused += 1
    assert refused > 50  # a few bits are of no consequence


@pytest.mark.parametrize(
    "content",
    [
        struct.pack("<Q", 2**63) + b"{}",
        struct.pack("<Q", 2**40) + b"{}",
        struct.pack("<Q", 200_000) + b"[" * 200_000,
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 4) + b"null",
        b"",
        b"\x80\x04.",
    ],
    ids=["length bomb", "a terabyte", "deep", "list", "null", "empty", "pickle"],
)
def test_what_is_no_cell_is_refused(path, content):
    path.write_bytes(content)
    for read in (read_cell, read_header):
        with pytest.raises(StoreError, match="cell"):
            read(path)


def test_a_folder_in_the_place_of_a_cell_is_said_before_anything_is_computed(path):
    path.unlink()
    path.mkdir()
    with pytest.raises(StoreError, match="is not a readable cell"):
        read_cell(path)
    with pytest.raises(StoreError, match=r"is a folder.* Move it away"):
        check_cache(path, FINGERPRINT)


def test_a_deep_header_is_refused(path):
    _, layout, _, numbers = _parts(path.read_bytes())
    text = "[" * 100_000
    layout["__metadata__"] = {"cell": text, "seal": _seal(text)}
    whole = json.dumps(layout).encode()
    path.write_bytes(struct.pack("<Q", len(whole)) + whole + numbers)
    with pytest.raises(StoreError, match="RecursionError"):
        read_cell(path)
