"""What takes long is said: after a moment of silence, and then again and again."""

from __future__ import annotations

import itertools
import threading
import time

from ontogeny import activity


def test_what_is_being_done_is_said_again_and_again(monkeypatch):
    lines, two = [], threading.Event()

    def write(text: str) -> None:
        lines.append(text)
        activity.now("computing step 8")
        if len(lines) == 2:
            two.set()

    monkeypatch.setattr(activity, "write", write)
    with activity.spoken("loading libraries", first=0.01, every=0.01):
        assert two.wait(600)
    assert lines[:2] == ["... loading libraries", "... computing step 8"]


def test_the_same_words_are_said_ever_more_seldom(monkeypatch):
    """A log of a slow machine held a line each five seconds."""
    said, three = [], threading.Event()

    def write(text: str) -> None:
        said.append(time.monotonic())
        if len(said) == 4:
            three.set()

    monkeypatch.setattr(activity, "write", write)
    with activity.spoken("loading libraries", first=0.05, every=0.1):
        assert three.wait(600)
    pauses = [after - before for before, after in itertools.pairwise(said)]
    assert all(p >= least for p, least in zip(pauses, (0.1, 0.2, 0.4), strict=False))


def test_what_ends_soon_says_nothing(capfd):
    with activity.spoken("loading libraries", first=60):
        activity.now("computing")
    assert capfd.readouterr() == ("", "")


def test_lines_of_a_run_count_as_said(capfd):
    from ontogeny.study.progress import LineProgress

    with activity.spoken("loading", first=60):
        before = activity._state.spoken
        LineProgress().note("426 cells to compute")
        assert activity._state.spoken >= before
    assert capfd.readouterr().err == "426 cells to compute\n"


def test_words_may_be_found_when_they_are_said():
    activity.now(lambda: "computing step 2, step 5")
    assert activity._state.doing() == "computing step 2, step 5"
    activity.now("")
