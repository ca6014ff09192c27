"""Code in a user's own files, named as ``"model.py:build"``: it runs only where it is named.

A file becomes a module whose name holds its path and a digest of its content. Python's import
system knows nothing of it, so what a study sends to worker processes is `Sendable`: it names the
file, and the worker runs the same file. A file that was changed meanwhile is refused there:
numbers of two versions of it never end up in one result.
"""

from __future__ import annotations

import importlib
import io
import pickle
import re
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import cache_from_source, module_from_spec, spec_from_file_location
from operator import attrgetter
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, SupportsIndex

from .code_files import LIBRARY, digest, is_watched, neighbours, readings
from .errors import ArgumentError, OntogenyError, suggestion

__all__ = [
    "Sendable",
    "content_of",
    "digest",
    "is_own",
    "load",
    "reason",
    "set_on",
    "unwatched",
]

_NAMED = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_]\w*)")
_CONTENTS: dict[
    int, int
] = {}  # by identity; a module keeps what was taken from it alive
_MODULES: dict[
    str, tuple[Path, int]
] = {}  # file and digest of the modules made here, by name
_NEIGHBOURS: dict[
    str, bytes
] = {}  # contents of the files that they imported, when they did so
_SET: dict[
    type, dict[str, Any]
] = {}  # attributes that classes of users' files were given later
_RUNNING = threading.RLock()  # of two threads that want a file, one runs it


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
    match = _NAMED.fullmatch(text)
    if match is None:
        raise ArgumentError(f'code is named as "file.py:name"; got {text!r}.')
    path = (base / Path(match["file"]).expanduser()).resolve()
    if not path.is_file():
        raise ArgumentError(f"there is no file {path}, which {text!r} names.")
    content = digest(path)
    name = match["name"]
    module = _run(path, content)
    if not hasattr(module, name):
        names = [
            n for n, v in vars(module).items() if callable(v) and not n.startswith("_")
        ]
        raise ArgumentError(
            f"{path} defines no {name!r}; it has {', '.join(names) or 'nothing to call'}."
            f"{suggestion(name, names)}"
        )
    thing = getattr(module, name)
    _CONTENTS[id(thing)] = content
    return thing


def content_of(thing: Any) -> int | None:
    """Return the `digest` of the file that something was taken from, or None if it is installed.

    Files of the standard library, of site-packages and of this library are installed.

    Examples
    --------
    >>> content_of(Path) is None
    True
    """
    if id(thing) in _CONTENTS:
        return _CONTENTS[id(thing)]
    file = _file_of(thing)
    return None if file is None else digest(file)


def unwatched(thing: Any) -> list[str]:
    """Return where the code that something was taken from reads what its `digest` does not cover.

    That is data that it reads from files, and modules that it imports by a name made at run time.
    Only calls by their usual names are seen, such as `open` or `numpy.load`.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "mine.py").write_text("def build(): return open('width.txt')")
    >>> unwatched(load("mine.py:build", folder))
    ['mine.py, line 1: open']
    """
    file = next(
        (f for f, c in _MODULES.values() if c == _CONTENTS.get(id(thing))),
        _file_of(thing),
    )
    if file is None:
        return []
    calls: list[str] = []
    for path in (file, *neighbours(file)):
        calls += [f"{path.name}, line {line}: {name}" for line, name in readings(path)]
    return calls


def reason(error: Exception) -> str:
    """Return the kind of an error, its first line, and the line of a user's file that raised it.

    Examples
    --------
    >>> reason(TypeError("unsupported"))
    'TypeError: unsupported'
    """
    line = f"{type(error).__name__}: {str(error).strip()}".split("\n")[0]
    if isinstance(error, OntogenyError):  # raised on purpose: it says what to change
        return line
    places = [
        f" ({Path(frame.f_code.co_filename).name}, line {number})"
        for frame, number in traceback.walk_tb(error.__traceback__)
        if _is_users(
            str(frame.f_globals.get("__name__")), Path(frame.f_code.co_filename)
        )
    ]
    return f"{line}{places[-1]}" if places else line


def set_on(cls: type, **attributes: Any) -> None:
    """Set attributes of a user's class that it has in worker processes too.

    Examples
    --------
    >>> class Mine: ...
    >>> set_on(Mine, kind="mine")
    >>> Mine.kind
    'mine'
    """
    _SET.setdefault(cls, {}).update(attributes)
    for name, value in attributes.items():
        setattr(cls, name, value)


class Sendable:
    """A base of what is pickled for other processes with things of users' files in it.

    Pickle names functions and classes by their module, which another process cannot import if it
    is a user's file. Pickled objects of this class name the file and its digest instead.
    """

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        # Tensors may then be shared with the other process instead of copied.
        if not _MODULES:
            return super().__reduce_ex__(protocol)
        buffer = io.BytesIO()
        _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(vars(self))
        return _restored, (type(self), buffer.getvalue())


class _Pickler(pickle.Pickler):
    """Pickles functions and classes of users' files by file, digest and name."""

    def reducer_override(self, thing: Any) -> Any:
        if (
            not isinstance(thing, type | FunctionType)
            or thing.__module__ not in _MODULES
        ):
            return NotImplemented
        attributes = _SET.get(thing, {}) if isinstance(thing, type) else {}
        return _same, (*_MODULES[thing.__module__], thing.__qualname__, attributes)


def _restored(cls: type, state: bytes) -> Any:
    thing: Any = object.__new__(cls)
    vars(thing).update(pickle.loads(state))
    return thing


def _same(path: Path, content: int, name: str, attributes: dict[str, Any]) -> Any:
    """Return what a file of this content calls by a name, for a worker process."""
    if _name(path, content) not in sys.modules and (
        not path.is_file() or digest(path) != content
    ):
        raise ImportError(
            f"{path} was changed or removed while it was in use; start again"
        )
    thing = attrgetter(name)(_run(path, content))
    for attribute, value in attributes.items():
        setattr(thing, attribute, value)
    return thing


def _name(path: Path, content: int) -> str:
    return f"{__name__}.file_{str(path).encode().hex()}_{content:x}"


def _run(path: Path, content: int) -> ModuleType:
    """Return a file of this content as a module; it is run at most once.

    Raises
    ------
    ArgumentError
        If it cannot be run.
    """
    name = _name(path, content)
    with _RUNNING:
        if name not in sys.modules:
            try:
                _execute(path, name)
            except Exception as error:  # whatever the user's file raises
                at = (
                    f" in line {error.lineno}" if isinstance(error, SyntaxError) else ""
                )
                raise ArgumentError(
                    f"{path} cannot be run: {type(error).__name__}{at}: {error}"
                ) from error
            _MODULES[name] = path, content
        return sys.modules[name]


def _execute(path: Path, name: str) -> None:
    """Run a file as the module `name`, with its folder on the path."""
    spec = spec_from_file_location(name, path)
    assert spec is not None
    module = module_from_spec(spec)
    # Not from a compiled file: those on disk are distinguished by whole seconds only.
    code = compile(path.read_bytes(), str(path), "exec")
    # Dataclasses look up the module of their annotations there.
    sys.modules[name] = module
    try:
        with _beside(path.parent):
            _forget_changed(neighbours(path))
            exec(code, vars(module))
    except BaseException:
        del sys.modules[name]
        raise


@contextmanager
def _beside(folder: Path) -> Iterator[None]:
    """Let a file import its neighbours, as it does when Python runs it.

    Nothing compiled is left behind, which would stand for a neighbour changed in the same second.
    """
    sys.path.insert(0, str(folder))
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
        sys.path.remove(str(folder))


def _forget_changed(files: list[Path]) -> None:
    """Let files that were imported before be imported anew where one of them has changed since."""
    importlib.invalidate_caches()
    now = {str(file): file.read_bytes() for file in files}
    if any(_NEIGHBOURS.get(file, content) != content for file, content in now.items()):
        for name, module in list(sys.modules.items()):
            if getattr(module, "__file__", None) in now:
                del sys.modules[name]
        # What a function imported later was compiled to stands for a whole second.
        for file in now:
            with suppress(OSError, NotImplementedError):
                Path(cache_from_source(file)).unlink()
    _NEIGHBOURS.update(now)


def _file_of(thing: Any) -> Path | None:
    """Return the watched file of a function, a class or an object's class."""
    name = getattr(thing, "__module__", None) or type(thing).__module__
    if name == "__main__":  # a script or a notebook, of which any other line may change
        return None
    file = getattr(sys.modules.get(name), "__file__", None)
    if name in _MODULES or file is None or not _is_users(name, Path(file)):
        return None
    return Path(file).resolve()


def _is_users(module: str, file: Path) -> bool:
    """Return whether a module's file is a user's: no library's, and no line of a notebook."""
    installed = module.partition(".")[0] in (*LIBRARY, *sys.stdlib_module_names)
    users = module in _MODULES or not installed
    return users and file.suffix == ".py" and is_watched(file.resolve())
