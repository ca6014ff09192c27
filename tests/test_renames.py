"""Renames on a file system that forgets a file for a moment."""

import errno
from pathlib import Path

import pytest

from ontogeny import renames
from ontogeny.whole_files import write_json, write_whole


def forgetful(monkeypatch, times, renames_all_the_same=False):
    """Let renames answer ESTALE so many times; return what was asked."""
    asked = []
    real = Path.replace
    monkeypatch.setattr(renames, "_PAUSE", 0.0)

    def replace(source, target):
        asked.append(target)
        if len(asked) <= times:
            if renames_all_the_same:
                real(source, target)
            raise OSError(errno.ESTALE, "Stale file handle")
        return real(source, target)

    monkeypatch.setattr(Path, "replace", replace)
    return asked


@pytest.mark.parametrize(
    "write", [lambda p: write_whole(p, b"1"), lambda p: write_json(p, {})]
)
@pytest.mark.parametrize(("times", "renamed"), [(1, False), (2, False), (1, True)])
def test_a_file_is_written_that_a_network_forgets_twice(
    tmp_path, monkeypatch, write, times, renamed
):
    path = tmp_path / "cell"
    forgetful(monkeypatch, times, renamed)
    write(path)
    assert path.read_bytes() in (b"1", b"{}\n")
    assert [file.name for file in tmp_path.iterdir()] == ["cell"]


def test_three_answers_of_the_kind_end_it_and_others_end_it_at_once(
    tmp_path, monkeypatch
):
    asked = forgetful(monkeypatch, 5)
    with pytest.raises(OSError, match="Stale"):
        write_whole(tmp_path / "cell", b"1")
    assert len(asked) == 3
    with pytest.raises(FileNotFoundError):
        renames.rename(tmp_path / "none", tmp_path / "x" / "cell")
