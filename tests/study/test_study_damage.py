"""A damaged result is said in one line, whichever file is damaged, and is merged again."""

import shutil
import signal
from itertools import zip_longest
from pathlib import Path

import pytest
import xarray as xr

import ontogeny as og
from helpers import warm_process
from helpers.study_examples import LAYERS, developing, record, tiny_inputs
from ontogeny.cli import main
from ontogeny.errors import StoreError
from ontogeny.study.results import opened

pytestmark = pytest.mark.slow


def _study(run):
    chosen = [og.observables.Loss(), og.observables.ActivationDecay(LAYERS)]
    return og.Study(og.Trajectory.from_folder(run), tiny_inputs(), chosen, device="cpu")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A recorded run and the folder of its study."""
    folder = tmp_path_factory.mktemp("damage")
    record(developing((0, 1, 2, 4)), folder / "run")
    _study(folder / "run").run(folder / "study")
    return folder / "run", folder / "study"


@pytest.fixture(scope="module")
def study_of_loss(study, tmp_path_factory):
    """The folder of a study with fewer files, each of which is damaged in every way."""
    folder = tmp_path_factory.mktemp("loss") / "study"
    run = og.Trajectory.from_folder(study[0])
    og.Study(run, tiny_inputs(), [og.observables.Loss()], device="cpu", noise=0).run(
        folder
    )
    return folder


METADATA = (".zarray", ".zattrs", ".zgroup")


def _read_all(tree):
    # DataTree.load leaves out a variable that is called as a node is.
    for node in (tree, *tree.children.values()):
        node.to_dataset(inherit=False).load()


def _read(tree, parts):
    """Read what a file of a result belongs to: one variable, one node or the whole tree."""
    for name in parts[:-1]:
        tree = tree[name]
    tree.load()


def _truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


def _rounds(result, files):
    """Return groups of files that are damaged together, and missed one by one.

    What is read when a result is opened is damaged alone. The others are chunks of variables, each
    of which is read apart: one chunk of every variable is damaged in one round.
    """
    coordinates = set(og.open_study(result.parent).result["loss"].coords)
    variables = {}
    alone = []
    for path in files:
        parts = path.relative_to(result).parts
        if len(parts) == 3 and parts[1] not in coordinates:
            variables.setdefault(parts[1], []).append(path)
        else:
            alone.append([path])
    rounds = zip_longest(*variables.values())
    return [*alone, *([path for path in each if path] for each in rounds)]


@pytest.mark.parametrize(
    "damage", [Path.unlink, _truncate, _flip, lambda p: p.write_bytes(b"")]
)
def test_damage_to_any_file_of_a_result_is_refused_by_name(
    study_of_loss, tmp_path, damage
):
    shutil.copytree(study_of_loss, tmp_path / "s")
    result = tmp_path / "s" / "result.zarr"
    files = {p: p.read_bytes() for p in sorted(result.rglob("*")) if p.is_file()}
    copied = [p for p in files if p.name in METADATA and p.parent != result]
    assert len(files) - len(copied) > 50 < len(copied)
    for path in copied:  # .zmetadata has them
        damage(path)
    _read_all(og.open_study(tmp_path / "s").result)
    for path in copied:
        path.write_bytes(files[path])
    for damaged in _rounds(result, [p for p in files if p not in copied]):
        for path in damaged:
            damage(path)
        study = og.open_study(tmp_path / "s")
        for path in damaged:
            parts = path.relative_to(result).parts
            with pytest.raises(StoreError, match="ontogeny run") as caught:
                _read(study.result, parts)
            assert "/".join(parts) in str(caught.value)
            if len(parts) == 3:
                assert f"variable {parts[1]!r} of {parts[0]!r}" in str(caught.value)
        for path in damaged:
            path.write_bytes(files[path])
    assert "loss" in og.open_study(tmp_path / "s").result


def test_opening_reads_no_chunk_and_using_one_checks_it(study, tmp_path, monkeypatch):
    shutil.copytree(study[1], tmp_path / "s")
    read, check = [], opened.check
    monkeypatch.setattr(
        opened, "check", lambda *given: read.append(given[2]) or check(*given)
    )
    result = og.open_study(tmp_path / "s").result
    names = {
        Path(key).parent.name
        for key in read
        if not Path(key).name.startswith((".", "zarr"))
    }
    assert names <= {
        str(name) for node in result.children.values() for name in node.coords
    }
    chunk = tmp_path / "s" / "result.zarr" / "loss" / "loss" / "0"
    _flip(chunk)
    result["activation-decay"].load()
    for _ in range(2):  # it is not forgotten
        with pytest.raises(
            StoreError, match=r"loss/loss/0 .* is not as it was written"
        ):
            result["loss"].loss.load()


def test_the_command_says_damage_in_one_line_and_a_run_mends_it(
    study, tmp_path, capsys
):
    run, folder = study
    shutil.copytree(folder, tmp_path / "s")
    shutil.rmtree(tmp_path / "s" / "result.zarr" / "loss" / "loss")
    with pytest.raises(SystemExit) as caught:
        main(["report", str(tmp_path / "s")])
    said = capsys.readouterr().err
    assert caught.value.code == 1 and said.count("\n") == 1
    assert "loss/loss/0 (variable 'loss' of 'loss') is missing" in said
    assert not (tmp_path / "s" / "report.html").exists()
    _study(run).run(tmp_path / "s")
    xr.testing.assert_identical(
        og.open_study(tmp_path / "s").result["loss"].to_dataset().load(),
        og.open_study(folder).result["loss"].to_dataset().load(),
    )


def test_what_is_said_of_a_result_without_checksums_mends_it(study, tmp_path):
    shutil.copytree(study[1], tmp_path / "no list")
    (tmp_path / "no list" / "result.zarr" / ".checksums.json").unlink()
    with pytest.raises(StoreError, match="so damage to it cannot be found") as caught:
        _ = og.open_study(tmp_path / "no list").result
    # As a shell takes it.
    assert f"--output '{tmp_path / 'no list'}'`" in str(caught.value)
    _study(study[0]).run(tmp_path / "no list")
    assert "loss" in og.open_study(tmp_path / "no list").result


def test_an_edit_is_not_called_damage_alone(study, tmp_path):
    shutil.copytree(study[1], tmp_path / "s")
    notes = tmp_path / "s" / "result.zarr" / ".zmetadata"
    notes.write_text(notes.read_text().replace('"title": "', '"title": "my '))
    with pytest.raises(
        StoreError, match=r"damaged or was edited: .zmetadata is not as .* Run"
    ):
        _ = og.open_study(tmp_path / "s").result


def test_a_sealed_result_is_an_ordinary_store_to_xarray(study):
    tree = xr.open_datatree(study[1] / "result.zarr", engine="zarr")
    assert set(tree.children) == {"loss", "activation-decay"}


def test_a_run_sweeps_what_killed_workers_left(study, tmp_path):
    run, folder = study
    shutil.copytree(folder, tmp_path / "s")
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from ontogeny.whole_files import write_whole\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_whole(Path(sys.argv[1]), b'half')"
    )
    written = ["cells/loss/8.safetensors", "states/loss.safetensors", "digests.json"]
    for name in written:
        assert (
            warm_process.run(["-c", code, tmp_path / "s" / name]).returncode
            == -signal.SIGKILL
        )
    left = [*(tmp_path / "s").glob(".*.tmp"), *(tmp_path / "s").glob("*/**/.*.tmp")]
    assert len(left) == len(written)
    _study(run).run(tmp_path / "s")
    assert not [path for path in left if path.exists()]
