"""The merge of cells: in a file where they are large, and once where several processes end."""

import errno
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import ontogeny as og
from helpers.study_examples import ActivationNorm, developing, tiny_inputs
from ontogeny.store import Cell
from ontogeny.study.cells import merge
from ontogeny.study.cells.merge import stack
from ontogeny.study.results import result_files
from ontogeny.study.results.result_files import write_result, write_tree


def _cells(count, width=3):
    rng = np.random.default_rng(0)
    return {
        step: Cell(
            xr.Dataset(
                {
                    "large": (
                        ("layer", "feature"),
                        rng.standard_normal((2, width)),
                        {"units": "m"},
                    ),
                    "small": ("layer", rng.standard_normal(2)),
                },
                {"layer": ["a", "b"]},
            )
        )
        for step in range(count)
    }


@pytest.mark.parametrize("gap", [False, True])
def test_what_is_stacked_in_a_file_is_what_is_stacked_in_memory(
    tmp_path, monkeypatch, gap
):
    cells = _cells(4)
    if gap:
        cells[2] = "failed: no memory"
    expected = stack(ActivationNorm(), cells)
    monkeypatch.setattr(merge.large_variables, "__defaults__", (1,))
    found = stack(ActivationNorm(), cells, tmp_path)
    assert isinstance(found["large"].values.base, np.memmap)
    xr.testing.assert_identical(found, expected)
    assert list(found["large"].dims) == list(expected["large"].dims)
    assert not list(tmp_path.iterdir())  # the file has no name


def test_what_has_to_be_aligned_is_stacked_in_memory():
    cells = _cells(3)
    pieces = [cell.data for cell in cells.values()]
    assert merge.large_variables(pieces, large=1) == ["large", "small"]
    assert merge.large_variables(pieces) == []
    pieces[1] = pieces[1].assign_coords(layer=["a", "c"])
    assert merge.large_variables(pieces, large=1) == []
    pieces[1] = _cells(1, width=4)[0].data
    assert merge.large_variables(pieces, large=1) == ["small"]


def test_of_several_processes_that_end_together_one_writes_the_result(
    tmp_path, monkeypatch
):
    write, written = result_files.write_tree, []

    def counting(tree, folder):
        written.append(folder)
        return write(tree, folder)

    monkeypatch.setattr(result_files, "write_tree", counting)
    run = og.Trajectory.from_models(developing((0, 1)))
    studies = [
        og.Study(run, tiny_inputs(), [ActivationNorm()], device="cpu") for _ in range(3)
    ]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda each: each.run(tmp_path / "s", progress=False), studies))
    assert len(written) == 1
    studies[0].run(tmp_path / "s", progress=False)
    assert len(written) == 1
    chunk = next(p for p in (tmp_path / "s" / "result.zarr").rglob("0*") if p.is_file())
    chunk.write_bytes(chunk.read_bytes() + b"!")
    studies[0].run(tmp_path / "s", progress=False)
    assert len(written) == 2


def test_a_disk_that_fills_while_the_result_is_written_is_said_with_its_path(
    tmp_path, monkeypatch
):
    tree = xr.DataTree.from_dict({"a": xr.Dataset({"x": ("step", [1.0, 2.0])})})
    write_result(tmp_path, tree)
    write = Path.write_bytes

    def full(path, content):
        if path.parent.name == "x":
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(path, content)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match=r"No space left on device: '.*result\.zarr'"):
            write_result(tmp_path, tree)
    assert [path.name for path in tmp_path.iterdir() if path.name != ".claims"] == [
        "result.zarr"
    ]
    xr.testing.assert_equal(
        xr.open_datatree(tmp_path / "result.zarr", engine="zarr").load(), tree
    )


def test_a_result_takes_the_place_of_the_one_before(tmp_path):
    tree = xr.DataTree.from_dict(
        {"/": xr.Dataset(), "a": xr.Dataset({"x": ("step", [1.0, 2.0])})}
    )

    def changed(**changes):
        other = tree.copy(deep=True)
        for name, value in changes.items():
            other.attrs[name] = value
        return other

    others = [
        changed(title="b"),
        changed(provenance='{"versions": {}}'),
        tree.copy(deep=True),
    ]
    others[-1]["a"]["x"].values[1] = 3.0
    for each in (tree, *others):
        write_result(tmp_path, each)
        xr.testing.assert_equal(
            xr.open_datatree(tmp_path / "result.zarr", engine="zarr").load(), each
        )


def test_files_laid_out_in_memory_are_those_that_zarr_writes(tmp_path):
    values = np.arange(6.0).reshape(2, 3)
    one = xr.Dataset(
        {
            "x": (
                ("step", "layer"),
                values,
                {"units": "nats", "table": {"a": (1, np.nan)}},
            ),
            "turned": (("layer", "step"), values.T.astype("f4")),
            "flag": ("step", [True, False]),
            "none": ("step", [False, False]),
            "unknown": ("step", [np.nan, np.nan]),
            "zero": ((), np.int32(0)),
            "nothing": (("step", "concept"), np.zeros((2, 0))),
            "name": ("step", np.array(["", ""], dtype=object)),
            "wide": ("token", np.arange(2.0**13)),
            "filled": ("step", [1.0, np.nan], {}, {"_FillValue": -9.0}),
            "small": ("step", [1.0, 2.0], {}, {"dtype": "f4"}),
        },
        coords={
            "step": [0, 1],
            "layer": ["a", "b", "ç"],
            "label": ("step", ["é", "f"]),
        },
    )
    tree = xr.DataTree.from_dict({"/": xr.Dataset(attrs={"title": "t"}), "one": one})
    write_tree(tree, tmp_path / "small")
    write_tree(tree, tmp_path / "large", large=0)
    small, large = (
        {
            p.relative_to(root).as_posix(): p.read_bytes()
            for p in root.rglob("*")
            if p.is_file()
        }
        for root in (tmp_path / "small", tmp_path / "large")
    )
    assert small == large and "one/x/0.0" in small


def test_a_result_of_results_is_written_whatever_these_were_stored_with(tmp_path):
    """A recipe puts results together whose texts have other lengths, and keeps their filters."""
    texts = np.array(["a", "bc"], dtype=object)
    first = xr.DataTree.from_dict({"one": xr.Dataset({"name": ("run", texts)})})
    write_tree(first, tmp_path / "first")
    with xr.open_datatree(tmp_path / "first", engine="zarr") as opened:
        one = opened["one"].to_dataset().load()
    longer = one.assign(name=one["name"].astype("<U12"))
    longer["name"].encoding = one["name"].encoding
    write_tree(xr.DataTree.from_dict({"one": longer}), tmp_path / "second")
    with xr.open_datatree(tmp_path / "second", engine="zarr") as again:
        assert again["one"]["name"].values.tolist() == ["a", "bc"]


def test_texts_that_are_written_again_take_no_more_room(tmp_path):
    """One text of 20,000 characters among many short ones does not make all of them as long."""
    texts = np.array(["a" * 20_000, *["bc"] * 50], dtype=object)
    tree = xr.DataTree.from_dict({"one": xr.Dataset({"name": ("run", texts)})})
    write_tree(tree, tmp_path / "first")
    with xr.open_datatree(tmp_path / "first", engine="zarr") as opened:
        write_tree(opened, tmp_path / "second")
    first, second = (
        {p.relative_to(root): p.read_bytes() for p in root.rglob("*") if p.is_file()}
        for root in (tmp_path / "first", tmp_path / "second")
    )
    assert first == second
