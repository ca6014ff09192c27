"""Users' files as modules of this package, whose names hold the file's path and its content.

So what a file defines can be pickled, and a worker process imports the same file when it is sent
something of it. A file that was changed meanwhile is refused there: numbers of two versions of it
never end up in one result.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any

from .content import digest, neighbours

_NAMES = f"{__package__}.file_"
_SEEN: dict[str, int] = {}


def module_of(path: Path) -> tuple[Any, int]:
    """Return a file as a module, and its digest; it is run again where that has changed."""
    content = digest(path)
    name = f"{_NAMES}{str(path).encode().hex()}_{content:x}"
    return importlib.import_module(name), content


class _Loader:
    """Runs a file, with its folder on the path."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None: an ordinary module is made."""

    def exec_module(self, module: Any) -> None:
        # Not from a compiled file: those on disk are distinguished by whole seconds only.
        code = compile(self._file.read_bytes(), str(self._file), "exec")
        with _beside(self._file.parent):
            _forget_changed(neighbours(self._file))
            exec(code, vars(module))


class _Finder:
    """Finds the file that a module's name holds."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith(_NAMES):
            return None
        where, _, content = name.removeprefix(_NAMES).partition("_")
        file = Path(bytes.fromhex(where).decode())
        if not file.is_file() or f"{digest(file):x}" != content:
            raise ImportError(f"{file} was changed or removed while it was in use; start again")
        return spec_from_file_location(name, file, loader=_Loader(file))  # type: ignore[arg-type]


@contextmanager
def _beside(folder: Path) -> Iterator[None]:
    """Let a file import its neighbours, as it does when Python runs it.

    Nothing compiled is left behind, which would stand for a neighbour changed in the same second.
    """
    sys.path.insert(0, str(folder))
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
        sys.path.remove(str(folder))


def _forget_changed(files: list[Path]) -> None:
    """Let files that were imported before be imported anew where they have changed since."""
    importlib.invalidate_caches()
    now = {str(file): digest(file) for file in files}
    changed = {file for file, content in now.items() if _SEEN.get(file, content) != content}
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) in changed:
            del sys.modules[name]
    _SEEN.update(now)


sys.meta_path.append(_Finder)
