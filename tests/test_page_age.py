"""Pictures of pages that were made together are of one age, which what draws the page tells."""

import json
import shutil

import pytest

import page_age
from helpers.paths import ROOT

NOTED = [place for place in page_age.COMMANDS if page_age.recorded(ROOT / place)]


@pytest.mark.parametrize("place", NOTED)
def test_the_pictures_of_a_folder_are_those_noted_and_of_one_age(place):
    # One command makes all of them: a new picture beside old ones misleads.
    looks = {one["look"] for one in page_age.recorded(ROOT / place).values()}
    assert page_age.changed(ROOT / place) == []
    assert len(looks) == 1, f"pictures of {len(looks)} ages: {page_age.COMMANDS[place]}"


@pytest.fixture
def copy(tmp_path):
    """A repository with the page's templates, styles and scripts, and one picture."""
    for part in ("templates", "static"):
        shutil.copytree(
            ROOT / page_age.REPORT / part, tmp_path / page_age.REPORT / part
        )
    return tmp_path


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("templates/page.html.j2", "<body", "{# why #}\n  <body"),
        ("static/page.css", "{", "{ /* why */\n\n"),
    ],
)
def test_a_comment_or_white_space_makes_no_picture_old(copy, path, old, new):
    before = page_age.look(copy)
    edit(copy / page_age.REPORT / path, old, new)
    assert page_age.look(copy) == before == page_age.look(ROOT)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("templates/first.html.j2", "<", "<hr><"),
        ("static/page.css", ":", ": 1px "),
        ("static/page.min.js", "=", "=0+"),
    ],
)
def test_a_change_of_template_style_or_script_makes_pictures_old(copy, path, old, new):
    folder = copy / "docs/images/gallery"
    folder.mkdir(parents=True)
    (folder / "demo.png").write_bytes(b"a picture")
    page_age.record(folder, ["demo"])
    assert page_age.older(copy) == [] and page_age.changed(folder) == []
    (folder / "unknown.png").write_bytes(b"of which nothing is noted")
    assert "gallery: unknown may show" in "".join(page_age.older(copy))
    (folder / "unknown.png").unlink()
    edit(copy / page_age.REPORT / path, old, new)
    (line,) = page_age.older(copy)
    assert "demo may show an older page" in line and "examples/gallery.py" in line


def test_a_picture_put_in_by_hand_is_noticed(tmp_path):
    (tmp_path / "demo.png").write_bytes(b"a picture")
    (tmp_path / "walk.png").write_bytes(b"another")
    page_age.record(tmp_path, ["demo", "walk"])
    (tmp_path / "demo.png").write_bytes(b"by hand")
    assert page_age.changed(tmp_path) == ["demo"]
    assert list(json.loads((tmp_path / page_age.RECORD).read_text())) == [
        "demo",
        "walk",
    ]


def edit(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
