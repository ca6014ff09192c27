"""Files of a user's code: which others one of them imports, and what it reads beside them.

Files of the standard library and of installed packages are no user's.
"""

from __future__ import annotations

import ast
import hashlib
import re
import site
import sys
import sysconfig
import time
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.machinery import PathFinder
from pathlib import Path

_OF_PACKAGES = frozenset({"site-packages", "dist-packages"})
LIBRARY = ("ontogeny", "ontogeny_papers")
STARTED = time.time()  # when this process imported the first parts of the library
_READERS = re.compile(
    r"(.+\.)?(open|read_(text|bytes|csv|json)|load(txt|_file)?|genfromtxt|fromfile|memmap|safe_open"
    r"|from_(file|pretrained)|import_module|__import__)"
)


def digest(path: Path) -> int:
    """Return a number that changes with a file, and with those that it imports.

    These are files beside it, on Python's path and of editable packages; what lies in the standard
    library or in site-packages is installed, and does not count.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "model.py").write_text("from blocks import Block")
    >>> _ = (folder / "blocks.py").write_text("class Block: width = 1")
    >>> before = digest(folder / "model.py")
    >>> _ = (folder / "blocks.py").write_text("class Block: width = 2")
    >>> digest(folder / "model.py") == before
    False
    """
    # In an order that does not depend on where the files lie.
    others = sorted(file.read_bytes() for file in neighbours(path))
    content = hashlib.blake2b(b"".join([path.read_bytes(), *others]), digest_size=6)
    return int.from_bytes(content.digest(), "big")


def neighbours(path: Path) -> list[Path]:
    """Return the files that `path` imports, also through each other, sorted."""
    files: set[Path] = set()
    queue = [path]
    while queue:
        new = set(_imported(queue.pop(), path.parent)) - files - {path}
        files |= new
        queue.extend(new)
    return sorted(files)


def _imported(path: Path, folder: Path) -> Iterator[Path]:
    """Give the files that `path` names in its imports; `folder` comes first on Python's path."""
    for level, parts in _imports(path):
        # A parent that is no package has no name of its own, as in ``from . import blocks``.
        places = (
            [path.parents[min(level, len(path.parents)) - 1]]
            if level
            else [folder, *search_places(parts[0])]
        )
        files = next(filter(None, (_files(place, parts) for place in places)), [])
        yield from (file for file in files if is_watched(file))


def _files(place: Path, parts: list[str]) -> list[Path]:
    """Return the files of a dotted name's packages and its module in a folder."""
    files = []
    for part in parts:
        place = place / part
        files += [Path(f"{place}.py"), place / "__init__.py"]
    return [file for file in files if file.is_file()]


def search_places(name: str) -> Iterator[Path]:
    """Give the folders in which Python looks for a top-level name after the file's own."""
    if name in sys.stdlib_module_names or name in LIBRARY:
        return
    yield from (Path(entry or ".").resolve() for entry in sys.path)
    for finder in sys.meta_path:  # of packages that are installed as editable
        if finder is not PathFinder and (find := getattr(finder, "find_spec", None)):
            spec = find(name, None, None)
            if spec is not None and spec.has_location:
                yield (
                    Path(spec.origin)
                    .resolve()
                    .parents[bool(spec.submodule_search_locations)]
                )


def is_watched(file: Path) -> bool:
    """Return whether a file may be a user's: it is not installed, and no line of a notebook.

    Packages of another environment on Python's path are installed as well, as modules of a cluster
    put them there: PyTorch was taken for a user's code, and was looked through for a quarter of an
    hour.
    """
    # Of a notebook: no file to open.
    if re.fullmatch(r"ipykernel_\d+", file.parent.name):
        return False
    if not _OF_PACKAGES.isdisjoint(file.parts):
        return False
    return not any(file.is_relative_to(folder) for folder in _installed())


@cache
def _installed() -> frozenset[Path]:
    """Return the folders of the standard library and of installed packages."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = [
        *map(sysconfig.get_path, names),
        *site.getsitepackages(),
        site.getusersitepackages(),
    ]
    return frozenset(Path(folder).resolve() for folder in folders)


def _imports(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Give the dots before each name that a file imports, and the name, split at its dots."""
    for node in _nodes(path.read_bytes()):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            before = node.module.split(".") if node.module else []
            yield from ((node.level, [*before, alias.name]) for alias in node.names)


def readings(path: Path) -> Iterator[tuple[int, str]]:
    """Give the line and the name of each call that reads a file, or imports by a made name."""
    for node in _nodes(path.read_bytes()):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            if _READERS.fullmatch(name):
                yield node.lineno, name


@lru_cache(1024)
def _nodes(content: bytes) -> list[ast.AST]:
    """Return the imports and calls of a file; of a file that is no Python, none."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):  # it fails with a better message when it is run
        return []
    kinds = (ast.Import, ast.ImportFrom, ast.Call)
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]
