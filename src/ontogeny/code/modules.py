"""Where an import leads: to a file whose code counts, or out of it, to a library by its version.

What counts are this library, the package of an observable, and files of a user's. What lies in the
standard library or is installed beside counts by its version.

Paths are texts here, with slashes: ten thousand are looked up, for which `Path` takes a second.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from ..code_files import LIBRARY, STARTED, is_watched, search_places

_INIT = "__init__.py"


class Modules:
    """The files of some packages, and of a user, by the names of their modules.

    Parameters
    ----------
    packages
        Names of the packages beside this library whose code counts.
    """

    def __init__(self, packages: Sequence[str] = ()) -> None:
        self._packages = (*LIBRARY, *packages)
        self._found: dict[tuple[str, int, str], str | None] = {}
        self._package_of: dict[str, str] = {}

    @cached_property
    def roots(self) -> dict[str, str]:
        """The folder in which each package lies, or its one file without the ending."""
        roots = {}
        for name in self._packages:
            spec = _spec(name)
            inside = list(spec.submodule_search_locations or ()) if spec else []
            if inside:
                roots[name] = Path(inside[0]).as_posix()
            elif spec and spec.origin and spec.origin.endswith(".py"):
                roots[name] = Path(spec.origin).with_suffix("").as_posix()
        return roots

    @cached_property
    def _files(self) -> frozenset[str]:
        """The files of all packages, of Python and those beside."""
        found: set[str] = set()
        for root in self.roots.values():
            if _is_file(f"{root}.py"):
                found.add(f"{root}.py")
            for folder, folders, names in os.walk(root, followlinks=True):
                folders[:] = [name for name in folders if name != "__pycache__"]
                found |= {f"{Path(folder).as_posix()}/{name}" for name in names}
        return frozenset(found)

    @cached_property
    def content(self) -> str:
        """A digest of all files of all packages."""
        parts = [
            _content_of(root, frozenset(self._inside(root)))
            for root in self.roots.values()
        ]
        return hashlib.blake2b("".join(parts).encode(), digest_size=16).hexdigest()

    def edited(self, files: Collection[str] | None = None) -> list[str]:
        """Return which files of this library were written after this process had begun.

        Of some files, or of all of Python. Other packages may be imported later than they are
        written, as in a notebook; a time to come is that of another machine's clock.
        """
        if files is None:
            files = [path for path in self._files if path.endswith(".py")]
        ours = [
            path
            for path in self._files.intersection(files)
            if self.package(path) in LIBRARY
        ]
        now = time.time()
        return sorted(
            path for path in ours if STARTED < Path(path).stat().st_mtime <= now
        )

    def _inside(self, root: str) -> Iterator[str]:
        """Give the files of the package at `root`."""
        begins = (f"{root}/", f"{root}.")
        return (file for file in self._files if file.startswith(begins))

    def code_files(self, path: str) -> list[str]:
        """Return the files of Python of the package that a file is of; none if it is of none."""
        package = self.package(path)
        inside = self._inside(self.roots[package]) if package else ()
        return [file for file in inside if file.endswith(".py")]

    def data_files(self, path: str, texts: Sequence[str]) -> list[str]:
        """Return the files beside one of Python that it may read as data.

        In a package these are all that lie there; elsewhere those that its `texts` name, as a
        user's file may lie beside anything.
        """
        folder = folder_of(path)
        if path in self._files:
            inside = (file for file in self._files if file.startswith(f"{folder}/"))
            return sorted(file for file in inside if not file.endswith(".py"))
        return sorted(filter(_is_file, (f"{folder}/{text}" for text in texts)))

    def file(self, module: str) -> str | None:
        """Return the file of a module of one of the packages, or None.

        Examples
        --------
        >>> (
        ...     name_of(Modules().file("ontogeny.quantities")),
        ...     Modules().file("numpy.linalg"),
        ... )
        ('quantities.py', None)
        """
        top, *rest = module.split(".")
        root = self.roots.get(top)
        return None if root is None else self._at("/".join([root, *rest]))

    def imported(self, path: str, level: int, module: str) -> str | None:
        """Return the file of what a file imports by dots and a name; None if it does not count."""
        if (
            not level
            and module.partition(".")[0] not in self._packages
            and path in self._files
        ):
            return None  # what a package imports beside itself is installed
        key = (folder_of(path), level, module)
        if key not in self._found:
            self._found[key] = self._find(path, level, module)
        return self._found[key]

    def _find(self, path: str, level: int, module: str) -> str | None:
        parts = module.split(".") if module else []
        folder = folder_of(path)
        if level:
            for _ in range(level - 1):
                folder = folder_of(folder)
            return self._at("/".join([folder, *parts]))
        if parts[0] in self._packages:
            return self.file(module)
        if not is_watched(Path(path)):
            return None
        around = (folder, *(place.as_posix() for place in search_places(parts[0])))
        files = (self._at("/".join([place, *parts])) for place in around)
        return next((file for file in files if file and is_watched(Path(file))), None)

    def _at(self, place: str) -> str | None:
        """Return the file of a module, or of a package, at a place; None if there is none."""
        for file in (f"{place}/{_INIT}", f"{place}.py"):
            if file in self._files or (not self.package(file) and _is_file(file)):
                return file
        return None

    def name(self, path: str) -> str:
        """Return the dotted name of a file of one of the packages; of others that of the file."""
        package = self.package(path)
        if not package:
            return name_of(path).removesuffix(".py")
        inner = (
            path.removeprefix(self.roots[package])
            .removesuffix(".py")
            .removesuffix("/__init__")
        )
        return f"{package}{inner.replace('/', '.')}"

    def package(self, path: str) -> str:
        """Return which package a file is of; empty if of none."""
        if path not in self._package_of:
            roots = self.roots.items()
            around = (top for top, r in roots if path.startswith((f"{r}/", f"{r}.")))
            self._package_of[path] = next(around, "")
        return self._package_of[path]

    def live(self, path: str, name: str) -> Any:
        """Return what a module gives under a name that its file does not define.

        So it is where names are loaded when they are first used. None if there is nothing.
        """
        module = self.name(path)
        if self.file(module) != path:
            return None
        return getattr(importlib.import_module(module), name, None)


@cache
def _content_of(root: str, files: Collection[str]) -> str:
    """Return a digest of the files of the package at `root`, which a process reads once."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(files):
        digest.update(f"{path.removeprefix(root)} {digest_of(path)}\n".encode())
    return digest.hexdigest()


def digest_of(path: str) -> str:
    """Return a digest of what a file holds; empty if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:24]
    except OSError:
        return ""


def is_package(path: str) -> bool:
    """Return whether a file is that of a package."""
    return name_of(path) == _INIT


def parents(path: str) -> Iterator[str]:
    """Give the files that Python runs before one of a package: those of its folders."""
    folder = folder_of(path)
    if is_package(path):
        folder = folder_of(folder)
    while _is_file(f"{folder}/{_INIT}"):
        yield f"{folder}/{_INIT}"
        folder = folder_of(folder)


def folder_of(path: str) -> str:
    """Return the folder of a file."""
    return path.rpartition("/")[0]


def name_of(path: str) -> str:
    """Return the name of a file in its folder."""
    return path.rpartition("/")[2]


def _is_file(path: str) -> bool:
    return Path(path).is_file()


def file_of(module: str | ModuleType) -> str | None:
    """Return the file of a module that has been imported, if it is one of Python."""
    there = sys.modules.get(module) if isinstance(module, str) else module
    file = getattr(there, "__file__", None)
    if file is None or not file.endswith(".py"):
        return None
    return Path(file).as_posix() if Path(file).is_file() else None


def _spec(name: str) -> Any:
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        # Of a main module, or a package that cannot be loaded.
        return None
