"""A page that stands as it would be written is not written again; whatever has changed is noticed."""

import json
import os
import shutil
from types import SimpleNamespace

import pytest
import torch

import ontogeny as og
from helpers import tiny_models
from helpers.study_examples import tiny_inputs
from ontogeny.errors import StoreError
from ontogeny.report.kinds.base import FigureKind
from ontogeny.report.page import write as writing
from ontogeny.study.results import page
from ontogeny.study.results.checksums import root_attributes
from ontogeny.study.results.page import write_page


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of a finished study."""
    folder = tmp_path_factory.mktemp("page") / "study"
    torch.manual_seed(0)
    run = og.Trajectory.from_models({step: tiny_models.gpt2() for step in (0, 1, 2)})
    study = og.Study(run, tiny_inputs(8), [og.observables.Loss()], device="cpu")
    study.run(folder, progress=False)
    return folder


@pytest.fixture
def study(made, tmp_path):
    return shutil.copytree(made, tmp_path / "study")


@pytest.fixture
def written(study, monkeypatch):
    """What is written of a page from now on, of a study whose page stands."""
    pages = []
    render = writing.render_page
    monkeypatch.setattr(
        writing, "render_page", lambda *a, **k: pages.append(1) or render(*a, **k)
    )
    write_page(study, study / "report.html")
    pages.clear()
    return pages


def test_a_page_that_stands_is_left(study, written):
    place = study / "report.html"
    before = place.stat()
    assert write_page(study, place) == place
    assert not written and place.stat() == before
    write_page(study, study / "another.html")
    assert (study / "another.html").read_bytes() == place.read_bytes()


def _edited(path):
    content = path.read_bytes()
    times = path.stat()
    path.write_bytes(content[:-1] + b" ")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # as if nothing was


@pytest.mark.parametrize(
    "change",
    [
        lambda s, _: (s / "report.html").unlink(),
        lambda s, _: _edited(s / "report.html"),
        lambda s, _: (s / "names.toml").write_text(""),
        lambda s, _: _edited(s / "page"),
        lambda s, _: (s / "result.zarr" / ".zattrs").touch(),
        lambda _, patch: patch.setattr(page, "library_code", lambda: "edited"),
        lambda _, patch: patch.setattr(page, "versions", lambda _: {"xarray": "0"}),
    ],
    ids=["gone", "page", "names", "note", "result", "code", "libraries"],
)
def test_what_has_changed_is_noticed(study, written, monkeypatch, change):
    change(study, monkeypatch)
    write_page(study, study / "report.html")
    assert len(written) == 1
    write_page(study, study / "report.html")
    assert len(written) == 1


def test_a_page_of_code_that_was_edited_meanwhile_is_written_again(
    study, written, monkeypatch
):
    # What runs is not what the files say.
    monkeypatch.setattr(page, "is_edited", lambda: True)
    (study / "report.html").unlink()
    write_page(study, study / "report.html")
    monkeypatch.setattr(page, "is_edited", lambda: False)
    write_page(study, study / "report.html")
    assert len(written) == 2


def test_a_page_with_kinds_of_the_users_is_always_written(study, written, monkeypatch):
    mine = SimpleNamespace(__module__="mine", figure=None, script=None)
    kinds = [*FigureKind.__subclasses__(), mine]
    monkeypatch.setattr(FigureKind, "__subclasses__", lambda: kinds)
    for count in (1, 2):
        write_page(study, study / "report.html")
        assert len(written) == count


def test_the_root_of_a_result_is_read_alone_and_checked(study):
    result = study / "result.zarr"
    assert root_attributes(result) == og.open_study(study).tree.attrs
    metadata = json.loads((result / ".zmetadata").read_bytes())
    metadata["metadata"][".zattrs"]["findings"] = "[]  "
    (result / ".zmetadata").write_text(json.dumps(metadata))
    with pytest.raises(StoreError, match="is damaged or was edited"):
        root_attributes(result)
