"""The entry point of the command: errors become one clear line and an exit code.

Exit codes: 0 done, 1 something went wrong, 2 the command was not understood, 3 finished without
any cell of an observable (with ``--strict``: with any missing or failed cell, or without a planned
checkpoint), 130 stopped by Ctrl-C. What a study warns of becomes one line too.
"""

from __future__ import annotations

import errno
import faulthandler
import gc
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from .. import activity

STOPPED = 130
# Libraries make half a million objects that stay; to look through them 700 at a time took .5 s.
_NEW_OBJECTS = 10_000
_LONG = {"study", "init", "plan", "run", "audit", "report", "compare"}
_REMEDIES = {
    errno.ENOSPC: " The disk is full: what is finished is kept, and the same command goes on.",
    errno.EDQUOT: " The quota is used up: what is finished is kept, and the same command goes on.",
    errno.EEXIST: " A folder is to be there: give another name.",
    errno.ENOTDIR: " A folder is to be there: give another name.",
    errno.EMFILE: " Allow more open files: ulimit -n 4096.",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    # So that a library that aborts does not do so in silence.
    if sys.__stderr__ and not faulthandler.is_enabled():
        faulthandler.enable(sys.__stderr__)
    gc.set_threshold(_NEW_OBJECTS)
    sys.exit(_run(list(sys.argv[1:] if arguments is None else arguments)))


def _run(arguments: list[str]) -> int:
    import typer

    from ..errors import OntogenyError
    from .commands import app

    debug = "--debug" in arguments
    arguments = [a for a in arguments if a != "--debug"]
    try:
        with _warnings_as_lines(), _said_once(), _spoken(arguments):
            code = app(arguments, prog_name="ontogeny", standalone_mode=False)
        sys.stdout.flush()
        if code == STOPPED:
            return _stopped(arguments)
        return code if isinstance(code, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        return _stopped(arguments)
    except BrokenPipeError:  # the reader of a pipe has left, such as `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OntogenyError, OSError, RecursionError) as error:
        if debug:
            raise
        from ..characters import escaped

        remedy = _REMEDIES.get(getattr(error, "errno", None) or 0, "")
        place = getattr(error, "filename", None)
        text = str(error)
        if place is not None or remedy:  # zarr names no file
            where = "" if place is None else f": {place}"
            text = f"{error.strerror}{where}."  # type: ignore[union-attr]
        line = "".join(map(escaped, " ".join(text.split())))
        sys.stderr.write(f"ontogeny: {line}{remedy}\n")
        return getattr(error, "exit_code", 1)
    except Exception as error:
        # Of click, which typer may bring along under another name.
        if not hasattr(error, "exit_code") or not hasattr(error, "show"):
            raise
        error.show()
        return int(error.exit_code)


def _stopped(arguments: Sequence[str]) -> int:
    """Say what Ctrl-C leaves; typer answers it with the exit code alone, or lets it through."""
    from .executors import stopped

    sys.stderr.write(stopped(arguments))
    return STOPPED


def _spoken(arguments: Sequence[str]) -> AbstractContextManager[None]:
    """Return a context in which commands that take long say what they do."""
    if set(arguments) & {"--quiet", "--help"} or not set(arguments[:1]) & _LONG:
        return nullcontext()
    return activity.spoken("loading libraries", activity.FIRST)


@contextmanager
def _said_once() -> Iterator[None]:
    """Say once what is logged of texts, which several steps of a command read."""
    lines: set[str] = set()

    def new(record: logging.LogRecord) -> bool:
        before = len(lines)
        lines.add(record.getMessage())
        return len(lines) > before

    texts = logging.getLogger("ontogeny.inputs")
    texts.addFilter(new)
    try:
        yield
    finally:
        texts.removeFilter(new)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Show what a study warns of as one line each, also where warnings are off."""
    from ..errors import StudyWarning

    with warnings.catch_warnings():
        warnings.simplefilter("always", StudyWarning)
        others = warnings.showwarning

        def show(
            message: Any, category: type[Warning], *place: Any, **options: Any
        ) -> None:
            if isinstance(message, StudyWarning):
                sys.stderr.write(f"ontogeny: {' '.join(message.in_command.split())}\n")
            else:
                others(message, category, *place, **options)

        warnings.showwarning = show
        yield
