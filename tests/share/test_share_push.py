"""A study pushed to the stand-in Hub and opened again: what arrives, and what is said before."""

import json
import re
import shutil

import pytest
import xarray as xr
import yaml
from huggingface_hub import constants
from zarr.storage import ZipStore

import ontogeny as og
from helpers.command import call
from helpers.hub_account import use_account
from helpers.hub_uploads import TOKEN, Uploads
from helpers.report_browser import Watched, browser
from helpers.text_models import text_study
from ontogeny.errors import ArgumentError, StoreError
from ontogeny.share.texts import private_looking, shorten, shorten_within
from ontogeny.study.results.archive import ARCHIVE
from ontogeny.study.results.result_files import write_result

__all__ = ["browser"]

# huggingface_hub uploads large files by a call that its HTTP client is to drop.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning"),
]

REPO = "somebody/tiny"
NEVER = ("safetensors", "cells", "digests.json", "summaries", "states")
STUDY_FILE = """\
title = "Tiny"

[trajectory]
folder = "{run}"
model = "model.py:build"

[inputs]
bundled = "english"

[[observables]]
kind = "loss"
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("share")
    place = text_study(folder)
    toml = STUDY_FILE.format(run=folder / "run with spaces")
    (folder / "study.toml").write_text(toml, "utf-8")
    return place


@pytest.fixture(scope="module")
def parcel(study):
    """The study as it is pushed by most tests, each to a Hub of its own."""
    return og.share.prepare(study, REPO)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with Uploads({}) as server:
        use_account(monkeypatch, server.url, tmp_path / "home")
        yield server


def texts_of(study):
    """Return passages of the inputs that the result shows."""
    data = og.open_study(study).tree["predictions"].to_dataset()
    return [t.strip() for t in map(str, data.gap_before.values) if len(t.strip()) > 12]


def test_what_is_opened_is_what_was_pushed_bit_for_bit(study, parcel, hub):
    url = parcel.push()
    assert url == f"{hub.url}/datasets/{REPO}"
    pushed = hub.repos[f"datasets/{REPO}"]["main"]
    assert set(pushed) == {
        "README.md",
        "report.html",
        ARCHIVE,
        "study.json",
        "study.toml",
    }
    assert not [name for name in pushed if any(part in name for part in NEVER)]
    opened, original = og.open_study(REPO), og.open_study(study)
    xr.testing.assert_identical(opened.tree, original.tree)
    for name, node in original.tree.children.items():
        for variable, array in node.to_dataset().variables.items():
            there = opened.tree[name].to_dataset().variables[variable]
            assert there.dtype == array.dtype
            assert (
                there.values.tobytes() == array.values.tobytes()
                or array.dtype.kind in "OT"
            )


def test_xarray_and_zarr_alone_open_the_archive(study, parcel, hub, tmp_path):
    parcel.push()
    path = tmp_path / "r.zip"
    path.write_bytes(hub.repos[f"datasets/{REPO}"]["main"][ARCHIVE])
    tree = xr.open_datatree(ZipStore(path, mode="r"), engine="zarr")
    assert tree.identical(og.open_study(study).tree)


def test_pushing_the_same_again_uploads_no_result_again(study, parcel, hub):
    parcel.push()
    before = hub.calls["put"]
    og.share.prepare(study, REPO).push()
    assert before and hub.calls["put"] == before


@pytest.mark.browser
def test_the_pushed_page_opens_in_a_browser(study, parcel, hub, tmp_path, browser):
    parcel.push()
    page = tmp_path / "pushed.html"
    page.write_bytes(hub.repos[f"datasets/{REPO}"]["main"]["report.html"])
    written = og.open_study(REPO).report(tmp_path / "own.html")
    parcel = og.share.prepare(study, REPO, without_texts=True)
    copy = shutil.copy(parcel.folder / "report.html", tmp_path / "without.html")
    for path in (page, written, copy):
        watched = Watched(browser, path)
        watched.check()
        watched.context.close()


def test_the_card_says_what_was_learned_and_how_to_open_it(study, hub):
    og.share.prepare(study, REPO, license_id="cc-by-4.0").push()
    readme = hub.repos[f"datasets/{REPO}"]["main"]["README.md"].decode()
    front = yaml.safe_load(readme.split("---")[1])
    assert front["license"] == "cc-by-4.0" and "ontogeny" in front["tags"]
    assert front["viewer"] is False
    said = og.open_study(study).summary()
    plain = readme.replace("\\", "")
    assert all(line in plain for line in (said.studied, said.heading, *said.sentences))
    assert f'og.open_study("{REPO}")' in readme and f"ontogeny report {REPO}" in readme
    assert "Nothing failed" in readme


def test_without_a_licence_the_card_says_that_none_was_chosen(parcel):
    readme = (parcel.folder / "README.md").read_text("utf-8")
    assert "license" not in yaml.safe_load(readme.split("---")[1])
    assert "no licence" in readme


def test_texts_in_the_card_are_no_markup(study, tmp_path):
    copy = shutil.copytree(study, tmp_path / "study")
    change_root(copy, title="<img src=x> [link](http://x) | *bold*")
    parcel = og.share.prepare(copy, REPO)
    readme = (parcel.folder / "README.md").read_text("utf-8")
    body = readme.split("---", 2)[2]
    assert "<img" not in body.replace(r"\<", "") and "[link]" not in body.replace(
        r"\[", ""
    )


def change_root(folder, **attributes):
    """Change attributes of a study's result as if it had been made so."""
    tree = og.open_study(folder).tree
    nodes = {n.path: n.to_dataset(inherit=False).load() for n in tree.subtree}
    changed = {path: node.drop_encoding() for path, node in nodes.items()}
    changed["/"].attrs |= attributes
    write_result(folder, xr.DataTree.from_dict(changed))


def test_everything_is_listed_before_it_leaves(study, hub, capsys):
    code, out, _ = call(capsys, "push", study, REPO, "--dry-run")
    assert code == 0 and hub.lines == []
    for name in ("README.md", "report.html", ARCHIVE, "study.json", "study.toml"):
        assert re.search(rf"^  {re.escape(name)} .* (B|kB|MB)  ", out, re.MULTILINE)
    assert "predictions: gap_before" in out and texts_of(study)[0][:20] in " ".join(
        out.split()
    )
    assert "run with spaces -> run with spaces" in out and "model.py:build" in out


def test_nothing_is_pushed_without_a_yes(study, hub, capsys):
    code, _, err = call(capsys, "push", study, REPO)
    assert code == 1 and "--yes" in err and hub.lines == []
    code, out, err = call(capsys, "push", study, REPO, "--yes")
    assert code == 0, err
    assert f"data set: {hub.url}/datasets/{REPO}" in out
    assert TOKEN not in out + err and TOKEN[3:] not in out + err
    assert call(capsys, "report", REPO, "--output", study.parent / "again.html")[0] == 0


def test_absolute_paths_are_shortened_everywhere(study, hub, tmp_path):
    copy = shutil.copytree(study, tmp_path / "study")
    place = "/home/ada/secret project/run"
    inputs = json.dumps([{"name": "text", "texts": 3, "source": place}])
    message = "loss: cannot read /home/ada/secret/model.safetensors (gone)"
    change_root(copy, inputs=inputs, problems=json.dumps([message]))
    parcel = og.share.prepare(copy, REPO, study_file=study.with_name("study.toml"))
    parcel.push()
    files = hub.repos[f"datasets/{REPO}"]["main"]
    for needle in (b"/home/ada", str(study.parent).encode(), b"secret"):
        assert not [name for name, data in files.items() if needle in data], needle
    assert (
        place in parcel.listing.shortened and parcel.listing.shortened[place] == "run"
    )
    assert b'folder = "run with spaces"' in files["study.toml"]
    assert json.loads(og.open_study(REPO).tree.attrs["inputs"])[0]["source"] == "run"


def test_what_looks_private_is_listed_and_secrets_are_refused(
    study, hub, tmp_path, capsys
):
    copy = shutil.copytree(study, tmp_path / "study")
    (tmp_path / "study.toml").write_text(
        f'title = "ada@example.org"\n# {TOKEN}\n', "utf-8"
    )
    code, out, err = call(capsys, "push", copy, REPO, "--yes")
    assert "study.toml, line 1: an e-mail address, ada@example.org" in out
    assert code == 1 and "study.toml, line 2" in err and hub.lines == []
    assert TOKEN not in out + err


@pytest.mark.parametrize(
    "place", ["names.toml", "result.zarr/loss/more", "result.zarr/more"]
)
def test_a_link_in_a_study_publishes_nothing_that_it_leads_to(study, tmp_path, place):
    copy, private = shutil.copytree(study, tmp_path / "study"), tmp_path / "private"
    private.mkdir()
    (private / "key").write_text("[a]\nsecret = 1\n", "utf-8")
    (copy / place).symlink_to(private / "key" if "names" in place else private)
    with pytest.raises(StoreError, match="is a link"):
        og.share.prepare(copy, REPO)
    (copy / place).unlink()
    if "zarr" in place:
        shutil.copy(private / "key", copy / place)
        with pytest.raises(StoreError, match="was not written with it"):
            og.share.prepare(copy, REPO)


def test_without_texts_no_passage_and_no_token_leaves(study, hub):
    parcel = og.share.prepare(study, REPO, without_texts=True)
    parcel.push()
    tree = og.open_study(REPO).tree
    assert not parcel.listing.passages
    names = {str(v) for node in tree.subtree for v in node.to_dataset().variables}
    assert not names & {
        "piece_text",
        "gap_text",
        "token_id",
        "shown_token_id",
        "answer_id",
    }
    unpacked = {
        path.name: path.read_bytes()
        for path in og.open_study(REPO).folder.rglob("*")
        if path.is_file()
    }
    for data in [*hub.repos[f"datasets/{REPO}"]["main"].values(), *unpacked.values()]:
        assert not [text for text in texts_of(study) if text.encode() in data]
    loss, original = tree["loss"].loss, og.open_study(study).tree["loss"].loss
    assert loss.values.tobytes() == original.values.tobytes()


def test_files_of_an_earlier_push_do_not_stay(study, parcel, hub, tmp_path):
    parcel.push()
    copy = shutil.copytree(study, tmp_path / "other")  # no study file beside it
    og.share.prepare(copy, REPO).push()
    assert "study.toml" not in hub.repos[f"datasets/{REPO}"]["main"]


def test_a_private_push_never_goes_to_a_public_data_set(study, parcel, hub):
    parcel.push()
    lines = len(hub.lines)
    with pytest.raises(StoreError, match="public; nothing was pushed"):
        parcel.push(private=True)
    assert not [line for line in hub.lines[lines:] if "commit" in line or "PUT" in line]
    og.share.prepare(study, "somebody/hidden").push(private=True)
    assert hub.private["datasets/somebody/hidden"]


@pytest.mark.parametrize(
    ("repo", "token", "said"),
    [
        (REPO, None, "log in with `hf auth login`"),
        (REPO, "hf_wrong", "log in with `hf auth login`"),
        ("another/tiny", TOKEN, "may not write to another: You don't have the rights"),
    ],
)
def test_refusals_of_the_hub_are_said_plainly(
    study, parcel, hub, monkeypatch, tmp_path, repo, token, said
):
    use_account(monkeypatch, hub.url, tmp_path / "home", token)
    with pytest.raises(StoreError, match=re.escape(said)) as raised:
        (parcel if repo == REPO else og.share.prepare(study, repo)).push()
    assert str(token) not in str(raised.value) or token is None


def test_a_failed_upload_of_a_large_file_is_said(study, parcel, hub):
    hub.faults.append(("PUT", 403))
    with pytest.raises(StoreError, match="may not write to somebody"):
        parcel.push()


def test_offline_and_unreachable_are_said(study, parcel, monkeypatch, tmp_path):
    use_account(monkeypatch, "http://127.0.0.1:9", tmp_path / "home")
    with pytest.raises(StoreError, match="cannot be reached"):
        parcel.push()
    with pytest.raises(StoreError, match="not in the cache"):
        og.open_study(REPO)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(StoreError, match="HF_HUB_OFFLINE"):
        parcel.push()


def test_what_was_opened_once_is_opened_offline(study, parcel, hub, monkeypatch):
    parcel.push()
    first = og.open_study(REPO).folder
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert og.open_study(REPO).folder == first


def test_a_revision_is_opened_and_kept_apart(study, parcel, hub, tmp_path):
    parcel.push()
    old = hub.commits(f"datasets/{REPO}")["main"]
    hub.repos[f"datasets/{REPO}"]["v1"] = hub.repos[f"datasets/{REPO}"]["main"]
    copy = shutil.copytree(study, tmp_path / "study")
    change_root(copy, title="Another")
    og.share.prepare(copy, REPO).push()
    assert og.open_study(REPO).tree.attrs["title"] == "Another"
    assert og.open_study(REPO, revision="v1").tree.attrs["title"] != "Another"
    assert (
        og.open_study(REPO, revision=old).folder
        == og.open_study(REPO, revision="v1").folder
    )


def test_a_folder_goes_before_a_data_set_of_its_name(
    study, parcel, hub, monkeypatch, tmp_path
):
    parcel.push()
    monkeypatch.chdir(tmp_path)
    shutil.copytree(study, tmp_path / REPO)
    lines = len(hub.lines)
    assert og.open_study(REPO).folder.as_posix() == REPO and len(hub.lines) == lines
    assert og.open_study(f"hf://datasets/{REPO}").folder.as_posix() != REPO
    with pytest.raises(ArgumentError, match="A folder goes before"):
        og.open_study(REPO, revision="main")


def test_damage_in_the_cache_is_mended(study, parcel, hub):
    parcel.push()
    folder = og.open_study(REPO).folder
    shutil.rmtree(folder / "result.zarr" / "loss")
    assert og.open_study(REPO).tree.identical(og.open_study(study).tree)


@pytest.mark.parametrize("repo", ["tiny", "a/b/c", "../x", "", 3])
def test_a_name_that_no_data_set_has_is_refused(study, repo):
    with pytest.raises(ArgumentError, match="OWNER/NAME"):
        og.share.prepare(study, repo)


def test_paths_in_texts_of_the_world_stay():
    for text in (
        "https://example.org/a/b",
        "and/or",
        "3 nats/token",
        "W/Σ",
        "</div>",
        "1/2/3",
    ):
        assert shorten(text, {}) == text
    for path in (
        r"C:\Users\ada\run",
        "/home/ada/my run",
        "~/runs/tiny",
        "C:/Users/ada/run",
    ):
        assert shorten(path, {}) in ("run", "my run", "tiny")


def test_paths_are_found_whatever_stands_before_them():
    for text, path, short in (
        ("error:/mnt/ada/run is gone", "/mnt/ada/run", "error:run is gone"),
        ("see file:///mnt/ada/run", "file:///mnt/ada/run", "see run"),
        (r"on \\nas\ada\run now", r"\\nas\ada\run", "on run now"),
        ("nas:/mnt/ada/run", "/mnt/ada/run", "nas:run"),
    ):
        found = {}
        assert shorten_within(text, found) == short and list(found) == [path]
        assert ("a path", path) in list(private_looking(text))


def test_a_reason_that_begins_with_a_path_keeps_its_words():
    reason = "/mnt/ada/run/checkpoint-8 holds 3 of 4 shards: copy it again."
    for shortened in (shorten(reason, {}), shorten_within(reason, {})):
        assert shortened == "checkpoint-8 holds 3 of 4 shards: copy it again."
    assert shorten_within("/mnt/ada/run is not there", {}) == "run is not there"
