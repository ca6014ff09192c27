"""Data sets that somebody else has made: what they may not do to whoever opens them."""

import io
import json
import shutil
import zipfile

import numpy as np
import pytest
import xarray as xr
import zarr

import ontogeny as og
from helpers.hub_account import use_account
from helpers.hub_uploads import Uploads
from helpers.report_browser import Watched, browser
from ontogeny.cli import main
from ontogeny.errors import ArgumentError, StoreError
from ontogeny.study.results.archive import ARCHIVE, pack
from ontogeny.study.results.checksums import write_checksums

__all__ = ["browser"]

REPO = "mallory/gift"
MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>"


def tree(**attributes):
    steps = [0, 1, 2, 4, 8, 16, 32]
    loss = xr.Dataset(
        {
            "loss": ("step", np.linspace(8, 4, len(steps)), {"long_name": "loss"}),
            "word": ("piece", np.array(["the", "cat"], dtype=object)),
            "status": ("step", np.array(["done"] * len(steps), dtype=object)),
        },
        {"step": steps},
        {"role": "track", **attributes},
    )
    root = xr.Dataset(
        attrs={"title": attributes.get("title", "A gift"), "nodes": '["loss"]'}
    )
    return xr.DataTree.from_dict({"/": root, "loss": loss})


def forge(store):
    """Put the metadata of a store together and seal it, as Zarr would not do for a forged one."""
    files = [
        path
        for path in store.rglob(".z*")
        if path.name in (".zarray", ".zattrs", ".zgroup")
    ]
    metadata = {
        p.relative_to(store).as_posix(): json.loads(p.read_bytes()) for p in files
    }
    content = {"metadata": metadata, "zarr_consolidated_format": 1}
    (store / ".zmetadata").write_text(json.dumps(content))
    write_checksums(store)


@pytest.fixture
def store(tmp_path):
    """A result as it should be, for a test to spoil."""
    path = tmp_path / "result.zarr"
    tree().to_zarr(path, zarr_format=2, consolidated=True)
    write_checksums(path)
    return path


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with Uploads({}) as server:
        use_account(monkeypatch, server.url, tmp_path / "home")
        yield server


def give(hub, store, tmp_path, **files):
    """Put a store on the Hub as a data set."""
    archive = tmp_path / "gift.zip"
    if store.is_dir():
        pack(store, archive)
    else:
        archive = store
    own = {
        "study.json": b'{"format": "ontogeny-study-1"}',
        ARCHIVE: archive.read_bytes(),
    }
    given = {name: data for name, data in (own | files).items() if data is not None}
    hub.repos[f"datasets/{REPO}"] = {"main": given}


def test_a_gift_as_it_should_be_is_opened(hub, store, tmp_path):
    give(hub, store, tmp_path)
    assert og.open_study(REPO).tree.identical(tree())


def edit(path, **changes):
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | changes))


def folder_of(store, tmp_path):
    """A study's folder as a stranger may hand it over."""
    folder = tmp_path / "handed"
    folder.mkdir()
    (folder / "study.json").write_text('{"format": "ontogeny-study-1"}')
    shutil.copytree(store, folder / "result.zarr")
    return folder


def test_an_attribute_that_is_too_deep_is_said_by_name(store, tmp_path):
    edit(store / "loss" / ".zattrs", figures="[" * 100_000)
    forge(store)
    with pytest.raises(ArgumentError, match="'figures' of node 'loss' must hold JSON"):
        og.open_study(folder_of(store, tmp_path)).report(tmp_path / "page.html")


def test_a_changed_chunk_is_found(hub, store, tmp_path):
    chunk = store / "loss" / "loss" / "0"
    content = bytearray(chunk.read_bytes())
    content[-1] ^= 1
    chunk.write_bytes(content)
    give(hub, store, tmp_path)
    with pytest.raises(StoreError, match=r"not opened: .*loss/loss/0") as raised:
        og.open_study(REPO)
    assert "Run the study" not in str(raised.value)  # nobody but its owner can


DECODERS = {
    "holds pickled objects": {
        "dtype": "|O",
        "filters": [{"id": "pickle", "protocol": 5}],
    },
    "is decoded by a pickle": {"compressor": {"id": "pickle", "protocol": 5}},
    "is decoded by something unknown": {"compressor": {"id": "evil"}},
    "holds fields": {"dtype": [["a", "<f8"]]},
}


@pytest.mark.parametrize("change", DECODERS.values(), ids=DECODERS.keys())
def test_decoders_of_more_than_numbers_and_texts_are_refused(
    hub, store, tmp_path, change
):
    edit(store / "loss" / "loss" / ".zarray", **change)
    forge(store)
    give(hub, store, tmp_path)
    with pytest.raises(
        StoreError, match=r"the data set mallory/gift is not opened: .* its array"
    ):
        og.open_study(REPO)
    with pytest.raises(StoreError, match="is not opened: its array 'loss/loss'"):
        og.open_study(folder_of(store, tmp_path)).tree.load()


def test_a_chunk_that_the_list_does_not_name_is_refused_when_it_is_read(
    store, tmp_path
):
    folder = folder_of(store, tmp_path)
    chunk = folder / "result.zarr/loss/loss/0"
    content = chunk.read_bytes()
    chunk.unlink()
    write_checksums(folder / "result.zarr")
    chunk.write_bytes(content)
    opened = og.open_study(folder).tree
    with pytest.raises(StoreError, match=r"loss/loss/0 .* was not written with it"):
        opened["loss"].loss.load()


def zipped(names, compression=zipfile.ZIP_STORED, data=b"x" * 1000):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    return file.getvalue()


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/etc/evil"])
def test_names_that_leave_the_folder_write_nothing_outside_of_it(
    hub, store, tmp_path, name
):
    give(hub, store, tmp_path, **{ARCHIVE: zipped([name])})
    with pytest.raises(StoreError, match=r"no \.checksums\.json"):
        og.open_study(REPO)
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize("content", [b"no archive", zipped(["a"])[:-30]])
def test_what_is_no_archive_is_said(hub, store, tmp_path, content):
    give(hub, store, tmp_path, **{ARCHIVE: content})
    with pytest.raises(StoreError, match="damaged or no archive"):
        og.open_study(REPO)


def test_a_study_file_is_not_even_fetched(hub, store, tmp_path):
    own = b'[trajectory]\nfolder = "x"\nmodel = "evil.py:build"\n'
    evil = b"raise SystemExit('ran')"
    page = f"<p>{MARKUP}".encode()
    give(
        hub,
        store,
        tmp_path,
        **{"study.toml": own, "evil.py": evil, "report.html": page},
    )
    folder = og.open_study(REPO).folder
    found = {p.name for p in folder.iterdir()}
    assert found == {"study.json", "result.zarr"}
    fetched = [line for line in hub.lines if "/resolve/" in line]
    assert fetched and not [
        line for line in fetched if "toml" in line or "evil" in line
    ]


@pytest.mark.parametrize("lacking", [ARCHIVE, "study.json"])
def test_a_data_set_of_something_else_is_said(hub, store, tmp_path, lacking):
    give(hub, store, tmp_path, **{lacking: None})
    with pytest.raises(StoreError, match="no study that was shared"):
        og.open_study(REPO)


def test_a_data_set_that_is_not_there_is_said(hub):
    with pytest.raises(StoreError, match="no such repository"):
        og.open_study("mallory/none")


def test_a_damaged_file_of_names_is_said(hub, store, tmp_path):
    give(hub, store, tmp_path, **{"names.toml": b"[[name]\n"})
    with pytest.raises(StoreError, match=r"names\.toml"):
        og.open_study(REPO).report(tmp_path / "page.html")


@pytest.mark.browser
def test_markup_in_every_name_is_inert_in_the_page(hub, tmp_path, browser):
    section = json.dumps({"title": MARKUP, "definition": MARKUP})
    figures = json.dumps(
        [{"kind": "curves", "id": MARKUP, "title": MARKUP, "value": "loss"}]
    )
    given = tree(
        section=section, figures=figures, title=MARKUP, statements=json.dumps([MARKUP])
    )
    store = tmp_path / "result.zarr"
    given.to_zarr(store, zarr_format=2, consolidated=True)
    write_checksums(store)
    forge(store)
    give(hub, store, tmp_path)
    watched = Watched(browser, og.open_study(REPO).report(tmp_path / "page.html"))
    watched.check()
    watched.context.close()


def test_no_decoder_of_pickles_is_run(hub, store, tmp_path):
    """A chunk that numcodecs' pickle decoder would run, were it ever asked to."""
    shutil.rmtree(store / "loss" / "word")
    group = zarr.open_group(store, mode="r+", zarr_format=2)
    group["loss"].create_array("word", shape=(2,), chunks=(2,), dtype="f8")
    edit(
        store / "loss" / "word" / ".zarray",
        dtype="|O",
        filters=[{"id": "pickle", "protocol": 5}],
    )
    (store / "loss" / "word" / "0").write_bytes(b"cos\nsystem\n(S'touch ran'\ntR.")
    forge(store)
    give(hub, store, tmp_path)
    with pytest.raises(StoreError, match="neither numbers nor texts"):
        og.open_study(REPO)


@pytest.mark.parametrize(
    "filters", [[{"id": "pickle"}], [{"id": "vlen-utf8"}, {"id": "pickle"}]]
)
def test_a_folder_of_somebody_else_is_reported_without_decoders_that_run_code(
    store, tmp_path, monkeypatch, capsys, filters
):
    """Also where the installed numcodecs would run them, as 0.16.5 does."""
    import numcodecs

    class Obedient(numcodecs.abc.Codec):
        codec_id = "pickle"

        def encode(self, buffer):
            return buffer

        def decode(self, buffer, out=None):
            (tmp_path / "ran").touch()
            return np.array(["x"] * 2, dtype=object)

    monkeypatch.setitem(numcodecs.registry.codec_registry, "pickle", Obedient)
    edit(store / "loss" / "word" / ".zarray", dtype="|O", filters=filters)
    forge(store)
    (tmp_path / "study.json").write_text('{"format": "ontogeny-study-1"}')
    with pytest.raises(
        StoreError, match=r"is not opened: its array 'loss/word' holds neither"
    ):
        _ = og.open_study(tmp_path).tree
    with pytest.raises(SystemExit) as stop:
        main(["report", str(tmp_path)])
    said = capsys.readouterr().err
    assert stop.value.code == 1 and said.count("\n") == 1 and "loss/word" in said
    assert not (tmp_path / "ran").exists() and not (tmp_path / "report.html").exists()
