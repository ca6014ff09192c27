"""A file of Python: its definitions, and what it imports."""

from __future__ import annotations

import ast
import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, TypeAlias

from .definitions import (
    FUNCTIONS,
    Definition,
    definition_of,
    name_chain,
    texts_of,
    without_texts,
)

# Dots before the name of a module, its name, and what is taken from it (None: itself).
Import: TypeAlias = tuple[int, str, str | None]
EFFECTS = ""
"""Name of what a file does when it is imported, beside defining."""


@dataclass
class Source:
    """A file of Python.

    Attributes
    ----------
    definitions
        By name, of members as ``"Class.member"``, and under `EFFECTS`.
    bases
        What each class inherits from.
    members
        The members of each class.
    decorators
        What decorates a function or a class.
    imports
        What each imported name may stand for, anywhere in the file.
    stars
        The modules of which all names are imported.
    loads
        What is imported when the file is, and not by a function later.
    """

    definitions: dict[str, Definition] = field(default_factory=dict)
    bases: dict[str, list[str]] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)
    decorators: dict[str, list[str]] = field(default_factory=dict)
    imports: dict[str, list[Import]] = field(default_factory=dict)
    stars: list[Import] = field(default_factory=list)
    loads: list[Import] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)

    @classmethod
    def of_json(cls, content: dict[str, Any]) -> Source:
        """Return what `as_json` gave as plain data."""
        definitions = {n: Definition(**d) for n, d in content["definitions"].items()}
        return cls(**{**content, "definitions": definitions})


def read_source(content: bytes) -> Source:
    r"""Return what a file defines; one that is no Python has one definition, its bytes.

    Examples
    --------
    >>> source = read_source(
    ...     b"import numpy as np\ndef norm(x): return np.linalg.norm(x)"
    ... )
    >>> source.definitions["norm"].names, source.imports["np"]
    (['np.linalg.norm'], [(0, 'numpy', None)])
    """
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError):
        digest = hashlib.blake2b(content, digest_size=8).hexdigest()
        return Source({EFFECTS: Definition(digest)})
    source = Source()
    parts: dict[str, list[ast.AST]] = {}
    for statement in without_texts(tree.body):
        _enter(statement, source, parts)
    texts = cache(lambda: texts_of(tree))
    source.definitions = {
        name: definition_of(nodes, texts) for name, nodes in parts.items()
    }
    if not source.stars:  # locals and builtins lead nowhere
        known = {*source.definitions, *source.imports}
        for definition in source.definitions.values():
            names = [
                name for name in definition.names if name.partition(".")[0] in known
            ]
            definition.names = names
    return source


def _enter(
    statement: ast.stmt, source: Source, parts: dict[str, list[ast.AST]]
) -> None:
    """Enter a statement on the top level of a file under the names that it defines."""
    _enter_imports(statement, source)
    if isinstance(statement, ast.Import | ast.ImportFrom) or _is_for_types(statement):
        return
    if isinstance(statement, ast.ClassDef):
        _enter_class(statement, source, parts)
        return
    names = [*_defined(statement)]
    if isinstance(statement, FUNCTIONS):
        source.decorators[statement.name] = [*map(name_chain, statement.decorator_list)]
    is_plain = isinstance(
        statement, (*FUNCTIONS, ast.Assign, ast.AnnAssign, ast.AugAssign)
    )
    if not is_plain or not names or "_" in names:
        parts.setdefault(EFFECTS, []).append(statement)
    for name in names:
        parts.setdefault(name, []).append(statement)


def _enter_class(
    cls: ast.ClassDef, source: Source, parts: dict[str, list[ast.AST]]
) -> None:
    """Enter a class: its head with its fields, and each of its members by itself."""
    head: list[ast.AST] = [*cls.bases, *cls.keywords, *cls.decorator_list]
    members: list[str] = []
    for statement in without_texts(cls.body):
        is_member = isinstance(statement, (*FUNCTIONS, ast.ClassDef))
        names = [*_defined(statement)]
        if not (is_member or _is_class_variable(statement)) or "_" in names:
            head.append(statement)
            continue
        members += names
        for name in names:
            parts.setdefault(f"{cls.name}.{name}", []).append(statement)
    parts.setdefault(cls.name, []).extend(head)
    source.bases.setdefault(cls.name, []).extend(map(name_chain, cls.bases))
    source.members.setdefault(cls.name, []).extend(members)
    source.decorators[cls.name] = [*map(name_chain, cls.decorator_list)]


def _is_class_variable(statement: ast.stmt) -> bool:
    """Return whether a statement in a class gives it an attribute that is no field."""
    if isinstance(statement, ast.AnnAssign):
        return "ClassVar" in ast.unparse(statement.annotation)
    return isinstance(statement, ast.Assign)


def _defined(statement: ast.stmt) -> Iterator[str]:
    """Give the names that a statement binds, those within it included unless it is a function."""
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        yield statement.name
        return
    targets: Sequence[ast.AST] = [statement]
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    for node in itertools.chain.from_iterable(map(ast.walk, targets)):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _enter_imports(statement: ast.stmt, source: Source) -> None:
    """Enter all imports in a statement, but those for type checkers alone."""
    for node in _parts(statement):
        if isinstance(node, ast.Import):
            for alias in node.names:
                _add(source.imports, *_imported(alias))
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                taken = (node.level, node.module or "", alias.name)
                if alias.name == "*":
                    source.stars.append((node.level, node.module or "", None))
                else:
                    _add(source.imports, alias.asname or alias.name, taken)
    if not isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        source.loads += _loaded(statement)


def _parts(statement: ast.AST) -> Iterator[ast.AST]:
    """Give a statement and all that is in it, without what is for type checkers alone."""
    if not (isinstance(statement, ast.stmt) and _is_for_types(statement)):
        yield statement
        for part in ast.iter_child_nodes(statement):
            yield from _parts(part)


def _imported(alias: ast.alias) -> tuple[str, Import]:
    """Return the name that ``import a.b`` or ``import a.b as c`` makes, and what it stands for."""
    if alias.asname:
        return alias.asname, (0, alias.name, None)
    first = alias.name.partition(".")[0]
    return first, (0, first, None)


def _loaded(statement: ast.stmt) -> Iterator[Import]:
    """Give the modules that are imported where a statement on the top level is run."""
    for node in _parts(statement):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (
                (node.level, node.module or "", alias.name) for alias in node.names
            )


def _add(imports: dict[str, list[Import]], name: str, taken: Import) -> None:
    of_name = imports.setdefault(name, [])
    if taken not in of_name:
        of_name.append(taken)


def _is_for_types(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and name_chain(statement.test).endswith(
        "TYPE_CHECKING"
    )
