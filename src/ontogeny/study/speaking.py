"""What a study says aloud, whoever listens: each thing once, as a `StudyWarning`."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

import xarray as xr

from ..errors import StudyWarning
from ..inputs import Inputs
from ..problems.table import problems_of
from ..words.formats import plural
from .cells.environment import RECOMPUTE
from .planning.dry_run import DryFailure

# How a reference that is no longer the last step is moved, in Python and by the command.
MOVE_IT = ("; run(rereference=True) moves it", "; --rereference moves it")
_HERE = str(Path(__file__).parents[1]) + os.sep


def say(text: str, in_python: str = "", in_command: str = "") -> None:
    """Warn in the name of the code that called this library.

    Python shows the same text from one place once by default; another run must say it again.
    """
    frame: FrameType | None = sys._getframe()
    while (
        frame is not None
        and frame.f_code.co_filename.startswith(_HERE)
        and frame.f_back
    ):
        frame = frame.f_back
    assert frame is not None
    place = frame.f_code.co_filename
    line = frame.f_lineno
    warning = StudyWarning(text, in_python, in_command)
    warnings.warn_explicit(warning, StudyWarning, place, line, registry={})


def say_problems(tree: xr.DataTree) -> None:
    """Warn of what failed in a result, if anything did."""
    if problems := problems_of(tree):
        say(problems.sentence, "; see `result.problems()`", "; the page lists them")


def say_environments(tree: xr.DataTree) -> None:
    """Warn if cells of a result were computed in different environments."""
    if notes := problems_of(tree).notes:
        say(f"{'; '.join(notes)}. {RECOMPUTE}")


def refusal(failures: Sequence[DryFailure]) -> str:
    """Return which observables would certainly fail and why; empty if none."""
    refused = [failure for failure in failures if failure.refused]
    if not refused:
        return ""
    reasons = "; ".join(
        f"{failure.node}: {failure.why.rstrip('.')}" for failure in refused
    )
    them = "it" if len(refused) == 1 else "them"
    return (
        f"{plural(len(refused), 'observable')} would fail at every step: {reasons}. "
        f"Change or remove {them}, or compute the rest with keep_going=True (--keep-going)."
    )


def doubts(failures: Sequence[DryFailure], observables: int) -> list[str]:
    """Return which of so many observables failed when tried: at one step, or at two.

    Those that failed in the same way share a line; the last one says what goes on, unless some
    observable is refused: then nothing does.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for failure in failures:
        if not failure.refused:
            key = (_tried(failure), failure.why.rstrip("."))
            groups.setdefault(key, []).append(failure.node)
    lines = [
        f"{tried.format(nodes=', '.join(nodes))}: {why}"
        for (tried, why), nodes in groups.items()
    ]
    if lines and not refusal(failures) and (others := observables - len(failures)):
        lines[-1] += f"; the study goes on with {plural(others, 'other observable')}"
    return lines


def _tried(failure: DryFailure) -> str:
    if not failure.left_out:
        return f"may fail: {{nodes}}, as when tried at step {failure.step}"
    return (
        "left out unless keep_going=True (ontogeny run --keep-going): {nodes}, which failed when "
        f"tried at steps {failure.step} and {failure.again}"
    )


def odd_texts(inputs: Mapping[str, Inputs]) -> list[str]:
    """Return a line for each thing that is odd with an input set: repeats, few texts, much cut."""
    lines: list[str] = []
    for name, texts in inputs.items():
        odd = filter(None, [texts.repeats, *texts.warnings])
        lines += [f"input set {name!r}: {line}" for line in odd]
    return lines
