"""What this process is doing, said where it takes long: nothing that takes seconds is silent."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

FIRST = 1.5  # seconds of silence until something is said
EVERY = 5.0  # the same after that
_LONGEST = (
    60.0  # the same words are said again after twice as long each time, up to so much
)


@dataclass
class _State:
    doing: Callable[[], str] = str
    since: float = 0.0
    spoken: float = 0.0
    aloud: bool = True


_state = _State()


def now(doing: str | Callable[[], str]) -> None:
    """Note what is being done, as words or as a function that gives them."""
    _state.doing = doing if callable(doing) else lambda: doing
    _state.since = time.monotonic()


def touch() -> None:
    """Note that something was said just now."""
    _state.spoken = time.monotonic()


def say(aloud: bool) -> None:
    """Let what is being done be said as lines, or not, where a bar shows it."""
    _state.aloud = aloud


def write(text: str) -> None:
    """Write one line to standard error."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


@contextmanager
def spoken(doing: str, first: float = FIRST, every: float = EVERY) -> Iterator[None]:
    """Give a context in which what is being done is said after some seconds of silence."""
    end = threading.Event()

    def speak() -> None:
        wait = first
        before = ""
        while not end.wait(
            min(3600.0, max(0.05, _state.spoken + wait - time.monotonic()))
        ):
            words = _state.doing()
            if words and _state.aloud and time.monotonic() - _state.spoken >= wait:
                seconds = round(time.monotonic() - _state.since)
                write(f"... {words}" + (f", {seconds} s" if seconds > 1 else ""))
                touch()
                wait = min(2 * wait, _LONGEST) if words == before else every
                before = words

    now(doing)
    touch()
    thread = threading.Thread(target=speak, name="activity", daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
        now("")
