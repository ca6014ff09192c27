"""Code in a user's own files, named as ``"model.py:build"``: it runs only where it is named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, suggestion
from .content import digest
from .importing import module_of

__all__ = ["content_of", "digest", "is_own", "load"]

_NAMED = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_]\w*)")
_CONTENTS: dict[int, int] = {}  # by identity; a module keeps what was taken from it alive


def is_own(text: object) -> bool:
    """Return whether a text names something in a file.

    Examples
    --------
    >>> is_own("model.py:build"), is_own("loss")
    (True, False)
    """
    return isinstance(text, str) and _NAMED.fullmatch(text) is not None


def load(text: str, base: Path = Path()) -> Any:
    """Run a file of Python and return what it calls by a name.

    Parameters
    ----------
    text
        Such as ``"model.py:build"``.
    base
        The folder that the file's path is relative to.

    Raises
    ------
    ArgumentError
        If `text` is not of that form, there is no such file, it cannot be run, or it has no such
        name; the message says which names it has.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "mine.py").write_text("def build(): return 7")
    >>> load("mine.py:build", folder)()
    7
    """
    found = _NAMED.fullmatch(text)
    if found is None:
        raise ArgumentError(f'code is named as "file.py:name"; got {text!r}.')
    path = (base / Path(found["file"]).expanduser()).resolve()
    if not path.is_file():
        raise ArgumentError(f"there is no file {path}, which {text!r} names.")
    (module, content), name = _import(path), found["name"]
    if not hasattr(module, name):
        own = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise ArgumentError(
            f"{path} defines no {name!r}; it has {', '.join(own) or 'nothing to call'}."
            f"{suggestion(name, own)}"
        )
    thing = getattr(module, name)
    _CONTENTS[id(thing)] = content
    return thing


def content_of(thing: Any) -> int | None:
    """Return the `digest` of the file that `load` took something from, or None if it took it not.

    Examples
    --------
    >>> content_of(Path) is None
    True
    """
    return _CONTENTS.get(id(thing))


def _import(path: Path) -> tuple[Any, int]:
    try:
        return module_of(path)
    except Exception as error:  # whatever the user's file raises
        at = f" in line {error.lineno}" if isinstance(error, SyntaxError) else ""
        raise ArgumentError(f"{path} cannot be run: {type(error).__name__}{at}: {error}") from error
