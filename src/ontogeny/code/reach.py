"""What code can reach: of a class, the definitions that its cells may run, across files.

It follows names: what a definition names is reached, and so is what that names. A method is reached
if its class is, and if any code that is reached names it after a dot: of which object, nobody
knows beforehand. So more is reached than runs, and never less; the exceptions are in `Reach`.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

from ..code_files import LIBRARY
from .modules import Modules, digest_of, file_of, name_of, parents
from .names import Names, Outside, Place
from .source import EFFECTS, Source


class Reach:
    """What some classes and functions reach; `visit` them, and then ask for `digests`.

    Methods that are called otherwise than by name are found as well: those between two underscores,
    and all of a class that inherits from one of another library, which may call any. A class is
    reached with all that inherit from it, but of the `known` it is said which are in use.

    Not followed are calls by names that are made at run time, where a file does not hold them. A
    package that imports modules by such names is reached whole; in this library, they are those of
    features and of other packages, and an observable names its own.

    Parameters
    ----------
    modules
        Whose code counts.
    read
        Gives what a file defines.
    known
        Classes that do not bring those that inherit from them, as ``"module:name"``.
    unused
        Classes of which no object is used.
    """

    def __init__(
        self,
        modules: Modules,
        read: Callable[[str], Source],
        known: Collection[str] = (),
        unused: Collection[str] = (),
    ) -> None:
        self._modules = modules
        self._read = read
        self._names = Names(modules, self._source)
        self._known = known
        self._unused = unused
        self._closed = self._places(known)
        self._left_out = self._places(unused)
        self.visited: dict[Place, str] = {}
        self.outside: set[str] = set()
        self._meant: dict[Place, dict[str, list[Place | Outside]]] = {}
        self._attributes: set[str] = set()
        self._waiting: defaultdict[str, list[Place]] = defaultdict(list)
        self._heirs: defaultdict[Place, list[Place]] = defaultdict(list)
        self._classes: set[Place] = set()
        self._files: set[str] = set()
        self._loaded: set[str] = set()
        self._decorated: defaultdict[Place, list[Place]] = defaultdict(list)
        self._queue: list[Place] = []

    def _places(self, classes: Iterable[str]) -> frozenset[Place]:
        """Return where classes are defined that are named as ``"module:name"``."""
        names = [name.split(":") for name in classes]
        return frozenset(Place(self._modules.file(m) or "", name) for m, name in names)

    @property
    def files(self) -> set[str]:
        """The files of what is reached."""
        return {place.path for place in self.visited}

    def copy(self, modules: Modules, read: Callable[[str], Source]) -> Reach:
        """Return one that has reached as much and goes on by itself, with more packages."""
        new = Reach(modules, read, self._known, self._unused)
        new.visited = dict(self.visited)
        new.outside = set(self.outside)
        new._meant = dict(self._meant)
        new._attributes = set(self._attributes)
        new._classes = set(self._classes)
        new._files = set(self._files)
        new._loaded = set(self._loaded)
        for attribute, members in self._waiting.items():
            new._waiting[attribute] = list(members)
        for place, places in self._heirs.items():
            new._heirs[place] = list(places)
        for place, places in self._decorated.items():
            new._decorated[place] = list(places)
        return new

    def visit(self, *things: Any) -> None:
        """Reach classes, functions, and things by the name of their module: ``"module:name"``.

        Raises
        ------
        LookupError
            If a module has nothing of that name.
        """
        for thing in things:
            if isinstance(thing, str):
                self._visit_name(*thing.split(":"))
            elif not self._find(
                thing.__module__, thing.__qualname__.partition("<")[0].strip(".")
            ):
                # A line of a notebook, or what is made at run time.
                self._visit_text(thing)
        self._run()

    def _visit_name(self, module: str, name: str = "") -> None:
        """Reach something in a module of a package, or all of it."""
        path = self._modules.file(module)
        if path is not None and not name:
            self._want([Place(path, None)])
        elif not self._find(module, name):
            raise LookupError(f"{path or module} has no {name}")

    def _find(self, module: str, name: str) -> bool:
        """Reach something in a module, and return whether it is there."""
        path = self._modules.file(module) or file_of(module)
        found = [] if path is None else self._names.looked_up(path, name)
        self._want(found)
        self._mention(name.split(".")[1:])
        return bool(found)

    def _visit_text(self, thing: Any) -> None:
        """Reach the lines of a thing in a notebook; what they name is not followed."""
        text = ""
        # Of a class it has the lines of methods alone.
        for part in (thing, *vars(thing).values()):
            with suppress(OSError, TypeError):
                text += inspect.getsource(part)
        self.visited[Place(f"{thing.__module__}.py", thing.__qualname__)] = _digest(
            [text]
        )

    def _run(self) -> None:
        while self._queue:
            place = self._queue.pop()
            if place not in self.visited:
                self._follow(place)

    def _want(self, places: Iterable[Place | Outside]) -> None:
        for place in places:
            if isinstance(place, Outside):
                self.outside.add(place.name)
            elif place.name is None:
                # A module that is passed on: any part of it may be used.
                self._queue += [
                    Place(place.path, n) for n in self._source(place.path).definitions
                ]
            elif place not in self.visited and place not in self._left_out:
                self._queue.append(place)

    def _follow(self, place: Place) -> None:
        """Reach what a definition names, and what importing its file does."""
        source = self._source(place.path)
        assert place.name is not None
        self._load(place.path)
        self._queue += self._decorated.pop(place, ())
        definition = source.definitions[place.name]
        self.visited[place] = definition.digest
        self._meant[place] = found = {
            name: self._names.looked_up(place.path, name) for name in definition.names
        }
        for targets in found.values():
            self._want(targets)
        self._mention(definition.attributes)
        if place.name in source.bases:
            self._follow_class(place, source)
        if definition.reads_files:
            for file in self._modules.data_files(place.path, definition.texts):
                self.visited[Place(file, name_of(file))] = digest_of(file)
        if (
            definition.imports_by_name
            and self._modules.package(place.path) not in LIBRARY
        ):
            for file in self._modules.code_files(place.path):
                self._queue += [
                    Place(file, name) for name in self._source(file).definitions
                ]

    def _mention(self, attributes: Iterable[str]) -> None:
        """Reach the members of these names of all classes that are reached."""
        for attribute in attributes:
            if attribute not in self._attributes:
                self._attributes.add(attribute)
                self._queue += self._waiting.pop(attribute, ())

    def meanings(
        self,
        place: Place,
        room_of: Callable[[str], str],
        alone: Collection[tuple[str, str | None]],
    ) -> list[str]:
        """Return what each name stands for that a definition names.

        Two functions of one name may change places. Of those that are `alone` in their room with
        their name, the room is enough: what they hold counts there, and not with who names them.
        """
        words: list[str] = []
        for name, targets in self._meant.get(place, {}).items():
            words += [f"{name} {self._identity(t, room_of, alone)}" for t in targets]
        return sorted(words)

    def _identity(
        self,
        target: Place | Outside,
        room_of: Callable[[str], str],
        alone: Collection[tuple[str, str | None]],
    ) -> str:
        """Return what tells a target from another one of the same name."""
        if isinstance(target, Outside):
            return target.name
        source = self._source(target.path)
        # Which of its members count.
        if target.name is None or target.name in source.bases:
            return f"{self._modules.name(target.path)} {target.name}"
        in_room = (room_of(target.path), target.name)
        if in_room in alone:
            return " ".join(in_room)
        return source.definitions[target.name].digest

    def _follow_class(self, place: Place, source: Source) -> None:
        assert place.name is not None
        self._classes.add(place)
        is_called = self._names.is_called_from_outside(
            place.path, source.bases[place.name]
        )
        for member in source.members[place.name]:
            of_member = Place(place.path, f"{place.name}.{member}")
            is_special = member.startswith("__") and member.endswith("__")
            if is_called or is_special or member in self._attributes:
                self._queue.append(of_member)
            else:
                self._waiting[member].append(of_member)
        if place not in self._closed:
            self._queue += self._heirs[place]

    def _load(self, path: str) -> None:
        """Reach what Python runs when it imports a file, and the files which that imports."""
        if path in self._loaded:
            return
        self._loaded.add(path)
        source = self._source(path)
        if EFFECTS in source.definitions:
            self._queue.append(Place(path, EFFECTS))
        for file in parents(path):
            self._load(file)
        for taken in source.loads:
            for file in self._names.imported_files(path, taken):
                self._load(file)

    def _source(self, path: str) -> Source:
        """Return what a file defines; when first asked, its classes are noted as heirs."""
        source = self._read(path)
        if path not in self._files:
            self._files.add(path)
            self._enter(path, source)
        return source

    def _enter(self, path: str, source: Source) -> None:
        """Note of a file, and of all that it may import, what others may come to by a class.

        An object of a class that nothing names may be passed on as one of its base.
        """
        for taken in itertools.chain(*source.imports.values(), source.loads):
            for file in self._names.imported_files(path, taken):
                self._source(file)
        for name, bases in source.bases.items():
            looked_up = (self._names.looked_up(path, text) for text in bases)
            for base in itertools.chain.from_iterable(looked_up):
                if isinstance(base, Place):
                    self._heirs[base].append(Place(path, name))
                    if base in self._classes - self._closed:
                        self._queue.append(Place(path, name))
        for name, decorators in source.decorators.items():
            tables = (self._names.tables(path, text) for text in decorators)
            for table in itertools.chain.from_iterable(tables):
                if table in self.visited:
                    self._queue.append(Place(path, name))
                else:
                    self._decorated[table].append(Place(path, name))


def digests(reach: Reach, room_of: Callable[[str], str]) -> Mapping[str, str]:
    """Return one digest for each room, the folders that `room_of` names, of what is reached there.

    Where a definition stands within a room does not count.
    """
    parts: defaultdict[str, list[str]] = defaultdict(list)
    counts = Counter((room_of(path), name) for path, name in reach.visited)
    alone = {named for named, count in counts.items() if count == 1}
    for place, digest in reach.visited.items():
        whole = _digest([digest, *reach.meanings(place, room_of, alone)])
        parts[room_of(place.path)].append(f"{place.name} {whole}")
    return {room: _digest(sorted(lines)) for room, lines in sorted(parts.items())}


def _digest(lines: Iterable[str]) -> str:
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()
