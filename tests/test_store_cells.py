import json

import numpy as np
import pytest
import xarray as xr

from ontogeny.errors import StoreError
from ontogeny.store import Cell, difference, read_cell, read_header, write_cell


def _cell(value=1.5):
    data = xr.Dataset(
        {
            "distance": (("layer", "concept"), np.full((2, 3), value, np.float32), {"units": "1"}),
            "status": ("layer", np.array(["done", "failed: NaN é <b>"], dtype=object)),
            "count": 7,
            "flag": ("layer", np.array([True, False])),
            "empty": ("none", np.zeros(0)),
        },
        coords={"layer": ["layers.0", "layers.1"]},
        attrs={"note": "x"},
    )
    return Cell(data, fingerprint={"weights": "abc", "inputs": {"text": "d"}})


def test_cell_comes_back_as_it_was_written(tmp_path):
    path = tmp_path / "a" / "b.safetensors"
    checksum = write_cell(path, _cell())
    cell = read_cell(path)
    xr.testing.assert_identical(cell.data, _cell().data)
    assert cell.data.distance.dtype == np.float32 and cell.data.flag.dtype == bool
    assert cell.checksum == checksum == read_header(path)["checksum"]
    assert cell.fingerprint == {"weights": "abc", "inputs": {"text": "d"}}


def test_writing_again_replaces_and_leaves_no_temporary_file(tmp_path):
    path = tmp_path / "c.safetensors"
    write_cell(path, _cell(1.0))
    write_cell(path, _cell(2.0))
    assert float(read_cell(path).data.distance[0, 0]) == 2.0
    assert [p.name for p in tmp_path.iterdir()] == ["c.safetensors"]


@pytest.mark.parametrize("keep", [0, 4, 40, -1])
def test_truncated_cell_is_refused(tmp_path, keep):
    path = tmp_path / "c.safetensors"
    write_cell(path, _cell())
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(StoreError, match="cell"):
        read_cell(path)


def test_one_flipped_bit_is_noticed(tmp_path):
    path = tmp_path / "c.safetensors"
    write_cell(path, _cell())
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(StoreError, match="checksum"):
        read_cell(path)


def test_checksum_does_not_depend_on_provenance(tmp_path):
    cell = _cell()
    a = write_cell(tmp_path / "a.safetensors", cell)
    b = write_cell(tmp_path / "b.safetensors", Cell(cell.data, provenance={"created": "later"}))
    assert a == b


def test_difference_names_what_changed_what_came_and_what_went():
    old = {"inputs": {"text": "a"}, "batch_size": 8, "gone": 1}
    new = {"inputs": {"text": "b"}, "batch_size": 8, "came": json.dumps([1])}
    assert difference(old, new) == [
        "came: absent -> [1]",
        "gone: 1 -> absent",
        "inputs.text: a -> b",
    ]
