import errno
import json
import os
import signal
import time

import numpy as np
import pytest
import safetensors.numpy
import xarray as xr

from ontogeny import store
from ontogeny.errors import StoreError
from ontogeny.store import Cell, difference, read_cell, read_header, write_cell
from ontogeny.whole_files import sweep, temporary, write_whole


def _cell(value=1.5):
    data = xr.Dataset(
        {
            "distance": (
                ("layer", "concept"),
                np.full((2, 3), value, np.float32),
                {"units": "1"},
            ),
            "status": ("layer", np.array(["done", "failed: NaN é <b>"], dtype=object)),
            "count": 7,
            "flag": ("layer", np.array([True, False])),
            "empty": ("none", np.zeros(0)),
        },
        coords={"layer": ["layers.0", "layers.1"]},
        attrs={"note": "x"},
    )
    return Cell(data, fingerprint={"weights": "abc", "inputs": {"text": "d"}})


@pytest.fixture(params=["read at once", "mapped"])
def _either_size(request, monkeypatch):
    """The numbers of a large cell are mapped."""
    if request.param == "mapped":
        monkeypatch.setattr(store, "_SMALL", -1)


either_size = pytest.mark.usefixtures("_either_size")


@either_size
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


@either_size
@pytest.mark.parametrize("keep", [0, 4, 40, -1])
def test_truncated_cell_is_refused(tmp_path, keep):
    path = tmp_path / "c.safetensors"
    write_cell(path, _cell())
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(StoreError, match="cell"):
        read_cell(path)


@either_size
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
    b = write_cell(
        tmp_path / "b.safetensors", Cell(cell.data, provenance={"created": "later"})
    )
    assert a == b


def test_difference_names_what_changed_what_came_and_what_went():
    old = {"inputs": {"text": "a"}, "batch_size": 8, "gone": 1}
    new = {"inputs": {"text": "b"}, "batch_size": 8, "came": json.dumps([1])}
    assert difference(old, new) == [
        "came: absent -> [1]",
        "gone: 1 -> absent",
        "inputs.text: a -> b",
    ]


FORKED = pytest.mark.skipif(not hasattr(os, "fork"), reason="a child process is forked")
# It ends at once.
OF_THREADS = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def _in_a_child(work):
    """Do something in a process of its own, which ends at once, and return how it ended."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1]


def _killed_writer(folder):
    """Write a cell in another process that is killed before its rename; return the file left."""

    def killed():
        os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        write_whole(folder / "loss" / "8.safetensors", b"half")

    assert os.WTERMSIG(_in_a_child(killed)) == signal.SIGKILL
    (left,) = (folder / "loss").iterdir()
    return left


@FORKED
@OF_THREADS
def test_the_file_of_a_killed_writer_is_swept_and_those_of_the_living_are_not(tmp_path):
    dead = _killed_writer(tmp_path)
    place, process, token, _ = (
        dead.name.removeprefix(".8.safetensors.").replace("-", ".").split(".")
    )
    alive = dead.with_name(f".16.safetensors.{place}-{os.getpid()}.{token}.tmp")
    elsewhere = dead.with_name(f".32.safetensors.00000000-{process}.{token}.tmp")
    theirs = dead.with_name(".notes.tmp")
    kept = [alive, elsewhere, theirs, dead.with_name("8.safetensors")]
    for path in kept:
        path.write_bytes(b"x")
    assert sweep(tmp_path, "*/.*.tmp") == [dead]
    assert sorted(dead.parent.iterdir()) == sorted(kept)


def test_what_nobody_has_changed_for_a_week_is_swept_wherever_its_writer_was(tmp_path):
    names = [
        ".8.safetensors.00000000-1.0123abcd.tmp",
        ".4.safetensors.0123abcd.tmp",
        ".notes.tmp",
    ]
    for days, left in ((6, 3), (8, 1)):
        for name in names:
            (tmp_path / name).write_bytes(b"x")
            then = time.time() - days * 24 * 3600
            os.utime(tmp_path / name, (then, then))
        sweep(tmp_path)
        assert len(list(tmp_path.iterdir())) == left


FULL = "Error while serializing: I/O error: No space left on device (os error 28)"


@pytest.mark.parametrize(
    ("place", "name", "error"),
    [
        (os, "fsync", OSError(errno.ENOSPC, "No space left on device")),
        (safetensors.numpy, "save_file", safetensors.SafetensorError(FULL)),
    ],
)
def test_a_writer_whose_disk_is_full_leaves_the_old_file_alone(
    tmp_path, monkeypatch, place, name, error
):
    path = tmp_path / "c.safetensors"
    write_cell(path, _cell(1.0))

    def full(*_):
        raise error

    monkeypatch.setattr(place, name, full)
    with pytest.raises(
        OSError, match=r"No space left on device: '.*c\.safetensors'"
    ) as raised:
        write_cell(path, _cell(2.0))
    assert raised.value.errno == errno.ENOSPC
    assert float(read_cell(path).data.distance[0, 0]) == 1.0
    assert [p.name for p in tmp_path.iterdir()] == ["c.safetensors"]


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize(
    "other", [_cell(2.0), Cell(xr.Dataset({"x": ("i", np.arange(999.0))}))]
)
@either_size
def test_a_cell_that_is_replaced_while_it_is_read_is_read_as_it_was_opened(
    tmp_path, monkeypatch, other, verify
):
    path, loads, waiting = tmp_path / "c.safetensors", json.loads, [other]
    write_cell(path, _cell(1.0))

    def replacing(text):
        if waiting:
            write_cell(path, waiting.pop())
        return loads(text)

    monkeypatch.setattr(store.json, "loads", replacing)
    xr.testing.assert_identical(read_cell(path, verify=verify).data, _cell(1.0).data)
    xr.testing.assert_identical(read_cell(path).data, other.data)


@FORKED
@OF_THREADS
def test_a_folder_that_a_dead_process_left_half_written_is_swept_as_well(tmp_path):
    _in_a_child(
        lambda: (temporary(tmp_path / "result") / "a" / "b").mkdir(parents=True)
    )
    mine = temporary(tmp_path / "result")
    mine.mkdir()
    assert len(sweep(tmp_path)) == 1
    assert list(tmp_path.iterdir()) == [mine]


def test_what_is_to_be_computed_is_one_line_however_many_steps_it_has():
    old = {"series": {str(step): "ab" for step in range(154)}, "version": 1}
    lines = difference(old, {"series": "to be computed", "version": 2})
    assert lines == ["series: 154 entries -> to be computed", "version: 1 -> 2"]
    assert difference({"weights": {"0": "a"}}, {"weights": {"0": "b"}}) == [
        "weights.0: a -> b"
    ]
    assert difference({"other_weights": {"0": "a"}}, {}) == [
        "other_weights.0: a -> absent"
    ]


def test_texts_of_numpys_own_string_type_are_kept(tmp_path):
    texts = np.array(["one", "zwölf"], dtype=np.dtypes.StringDType())
    write_cell(tmp_path / "c.safetensors", Cell(xr.Dataset({"word": ("step", texts)})))
    assert read_cell(tmp_path / "c.safetensors").data.word.values.tolist() == [
        "one",
        "zwölf",
    ]
