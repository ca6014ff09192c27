"""What a name stands for in a file: a definition, in whatever file, or a thing of a library."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

from .modules import Modules, file_of, is_package
from .source import Import, Source

# Classes of the standard library that call no method of those that inherit from them.
_QUIET = ("abc", "builtins", "collections", "dataclasses", "typing")
_DEPTH = 12  # of names that are passed on from module to module


class Place(NamedTuple):
    """A definition in a file; without a name the file itself."""

    path: str
    name: str | None


@dataclass(frozen=True)
class Outside:
    """Something of a library that counts by its version."""

    name: str


@dataclass(eq=False)
class Names:
    """Follows names through the files of some packages, as their imports pass them on.

    Parameters
    ----------
    modules
        Whose code counts; what is of no other is outside.
    source
        Gives what a file defines.
    """

    modules: Modules
    source: Callable[[str], Source]

    def imported_files(self, path: str, taken: Import) -> list[str]:
        """Return the files that an import in a file may load."""
        level, module, name = taken
        file = self.modules.imported(path, level, module)
        inner = f"{module}.{name}" if module else name
        within = self.modules.imported(path, level, inner) if name and inner else None
        return [found for found in (file, within) if found is not None]

    def looked_up(self, path: str, dotted: str) -> list[Place | Outside]:
        """Return the definitions that a name with attributes may stand for in a file."""
        first, *rest = dotted.split(".")
        found = self._of_name(path, first, _DEPTH)
        for part in rest:
            further: list[Place | Outside] = []
            for target in found:
                if isinstance(target, Outside):
                    further.append(Outside(f"{target.name}.{part}"))
                elif target.name is None:
                    further += self._of_name(target.path, part, _DEPTH)
                else:
                    further.append(target)
            found = further
        return found

    def _of_name(self, path: str, name: str, depth: int) -> list[Place | Outside]:
        """Return what one name may stand for in a file; nothing if it is a local or a builtin."""
        source = self.source(path)
        if not depth:
            return []
        found: list[Place | Outside] = []
        if name in source.definitions:
            found.append(Place(path, name))
        for taken in source.imports.get(name, ()):
            found += self._taken(path, taken, depth)
        if found:
            return found
        for level, module, _ in source.stars:
            found += self._taken(path, (level, module, name), depth)
        if not found and is_package(path):
            inner = self.modules.imported(path, 1, name)
            if inner:
                found.append(Place(inner, None))
        if not found and (
            "__getattr__" in source.definitions or "__getattr__" in source.imports
        ):
            found += self._live(path, name)
        return found

    def _taken(self, path: str, taken: Import, depth: int) -> list[Place | Outside]:
        """Return what an import in a file takes from where."""
        level, module, name = taken
        file = self.modules.imported(path, level, module)
        if file is None and not level:
            return [Outside(module if name is None else f"{module}.{name}")]
        if name is None:
            return [] if file is None else [Place(file, None)]
        if file is not None and (found := self._of_name(file, name, depth - 1)):
            return found
        inner = self.modules.imported(
            path, level, f"{module}.{name}" if module else name
        )
        return [] if inner is None else [Place(inner, None)]

    def _live(self, path: str, name: str) -> list[Place | Outside]:
        """Return where a name is defined that a module loads when it is first asked for."""
        thing = self.modules.live(path, name)
        if isinstance(thing, ModuleType):
            file = file_of(thing)
            return [] if file is None else [Place(file, None)]
        file = file_of(getattr(thing, "__module__", None) or "")
        known = self.source(file).definitions if file is not None else {}
        name = getattr(thing, "__qualname__", name).partition(".")[0]
        return [Place(file, name)] if file is not None and name in known else []

    def tables(self, path: str, decorator: str) -> Iterator[Place]:
        """Give the variables of its file that a decorator names: it may enter what it decorates."""
        for place in self.looked_up(path, decorator):
            if isinstance(place, Place) and place.name:
                source = self.source(place.path)
                for name in source.definitions[place.name].names:
                    if name in source.definitions and name not in source.decorators:
                        yield Place(place.path, name)

    def is_called_from_outside(
        self, path: str, bases: Iterable[str], depth: int = _DEPTH
    ) -> bool:
        """Return whether a class comes from one of another library, which may call its methods."""
        looked_up = (self.looked_up(path, base) for base in bases)
        targets = list(itertools.chain.from_iterable(looked_up))
        names = [target.name for target in targets if isinstance(target, Outside)]
        if any(name.partition(".")[0] not in _QUIET for name in names):
            return True
        ours = [target for target in targets if isinstance(target, Place) and depth]
        return any(
            self.is_called_from_outside(
                t.path, self.source(t.path).bases[t.name], depth - 1
            )
            for t in ours
            if t.name in self.source(t.path).bases
        )
