"""The command as its users meet it: an exit code, and what it prints."""

import pytest

from ontogeny.cli import main


def call(capsys, *arguments):
    """Return (exit code, standard output, standard error) of one command."""
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    out = capsys.readouterr()
    return stop.value.code or 0, out.out, out.err
