"""Code in a user's own files, named as ``"model.py:build"``: it runs only where somebody names it.

Such a file is imported as a module of this package, whose name holds the file's path. So what it
defines can be pickled, and a worker process imports the file again when it is sent something of it.
"""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, suggestion

_NAMED = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_]\w*)")
_NAMES = f"{__name__}.file_"


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
    module, name = _import(path), found["name"]
    if not hasattr(module, name):
        own = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise ArgumentError(
            f"{path} defines no {name!r}; it has {', '.join(own) or 'nothing to call'}."
            f"{suggestion(name, own)}"
        )
    return getattr(module, name)


def digest(path: Path) -> int:
    """Return a number that changes with the content of a file."""
    content = hashlib.blake2b(path.read_bytes(), digest_size=6).digest()
    return int.from_bytes(content, "big")


def _import(path: Path) -> Any:
    try:
        return importlib.import_module(f"{_NAMES}{str(path).encode().hex()}")
    except Exception as error:  # whatever the user's file raises
        at = f" in line {error.lineno}" if isinstance(error, SyntaxError) else ""
        raise ArgumentError(f"{path} cannot be run: {type(error).__name__}{at}: {error}") from error


@contextmanager
def _beside(folder: Path) -> Iterator[None]:
    """Let a file import its neighbours, as it does when Python runs it."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


class _Loader:
    """Runs a file with its folder on the path."""

    def __init__(self, loader: Any, folder: Path) -> None:
        self._loader, self._folder = loader, folder

    def create_module(self, spec: ModuleSpec) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        with _beside(self._folder):
            self._loader.exec_module(module)


class _Finder:
    """Finds the file that a module's name holds."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith(_NAMES):
            return None
        file = Path(bytes.fromhex(name.removeprefix(_NAMES)).decode())
        spec = spec_from_file_location(name, file)
        if spec is not None:
            spec.loader = _Loader(spec.loader, file.parent)  # type: ignore[assignment]
        return spec


sys.meta_path.append(_Finder)
