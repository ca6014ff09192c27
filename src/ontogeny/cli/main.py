"""The entry point of the command: errors become one clear line and an exit code.

Exit codes: 0 done, 1 something went wrong, 2 the command was not understood, 3 finished with
missing or failed cells or without a planned checkpoint (with ``--strict``), 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.exit(_run(list(sys.argv[1:] if arguments is None else arguments)))


def _run(arguments: list[str]) -> int:
    import typer

    from ..errors import OntogenyError
    from .commands import app

    debug = "--debug" in arguments
    arguments = [a for a in arguments if a != "--debug"]
    try:
        code = app(arguments, prog_name="ontogeny", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write(
            "\nontogeny: stopped; what is finished is kept, the same command goes on.\n"
        )
        return 130
    except BrokenPipeError:  # the reader of a pipe has left, such as `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OntogenyError, OSError) as error:
        if debug:
            raise
        sys.stderr.write(f"ontogeny: {' '.join(str(error).split())}\n")
        return 1
    except Exception as error:  # of click, which typer may bring along under another name
        if not hasattr(error, "exit_code") or not hasattr(error, "show"):
            raise
        error.show()
        return int(error.exit_code)
