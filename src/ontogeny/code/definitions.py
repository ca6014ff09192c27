"""What one file of Python defines, what each definition names, and a digest of each.

A digest is of the syntax tree. It does not change with comments, formatting, docstrings, the
annotations of functions, or the texts of errors that are raised: none of them changes a number.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any, TypeAlias

# Dots before the name of a module, its name, and what is taken from it (None: itself).
Import: TypeAlias = tuple[int, str, str | None]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOKUPS = frozenset({"getattr", "hasattr", "attrgetter", "methodcaller"})
_IMPORTERS = frozenset({"import_module", "__import__"})
_HERE = frozenset({"__file__", "__path__"})

EFFECTS = ""
"""Name of what a file does when it is imported, beside defining."""


@dataclass
class Definition:
    """A function, a class without its members, a member of a class, or an assignment.

    Attributes
    ----------
    digest
        Of its syntax tree.
    names
        Names that it reads, with the attributes that follow: ``"np.linalg.svd"``.
    attributes
        Names after a dot, of whatever object.
    reads_files
        Whether it names the place of its own file, as code does that reads data beside it.
    texts
        The texts in its file that may name such data.
    imports_by_name
        Whether it imports a module whose name is made at run time.
    """

    digest: str = ""
    names: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    reads_files: bool = False
    texts: list[str] = field(default_factory=list)
    imports_by_name: bool = False


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
    for statement in _without_docstring(tree.body):
        _enter(statement, source, parts)
    texts = cache(lambda: _texts(tree))
    source.definitions = {
        name: _definition(nodes, texts) for name, nodes in parts.items()
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
    if isinstance(statement, _FUNCTIONS):
        source.decorators[statement.name] = [*map(_chain, statement.decorator_list)]
    is_plain = isinstance(
        statement, (*_FUNCTIONS, ast.Assign, ast.AnnAssign, ast.AugAssign)
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
    for statement in _without_docstring(cls.body):
        is_member = isinstance(statement, (*_FUNCTIONS, ast.ClassDef))
        names = [*_defined(statement)]
        if not (is_member or _is_class_variable(statement)) or "_" in names:
            head.append(statement)
            continue
        members += names
        for name in names:
            parts.setdefault(f"{cls.name}.{name}", []).append(statement)
    parts.setdefault(cls.name, []).extend(head)
    source.bases.setdefault(cls.name, []).extend(map(_chain, cls.bases))
    source.members.setdefault(cls.name, []).extend(members)
    source.decorators[cls.name] = [*map(_chain, cls.decorator_list)]


def _is_class_variable(statement: ast.stmt) -> bool:
    """Return whether a statement in a class gives it an attribute that is no field."""
    if isinstance(statement, ast.AnnAssign):
        return "ClassVar" in ast.unparse(statement.annotation)
    return isinstance(statement, ast.Assign)


def _defined(statement: ast.stmt) -> Iterator[str]:
    """Give the names that a statement binds, those within it included unless it is a function."""
    if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
        yield statement.name
        return
    targets: Sequence[ast.AST] = [statement]
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    for node in itertools.chain.from_iterable(map(ast.walk, targets)):
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
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
    if not isinstance(statement, (*_FUNCTIONS, ast.ClassDef)):
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
    return isinstance(statement, ast.If) and _chain(statement.test).endswith(
        "TYPE_CHECKING"
    )


def _chain(node: ast.AST) -> str:
    """Return a name with the attributes after it, of what is called or indexed: ``"a.b"``."""
    if isinstance(node, ast.Call):
        return _chain(node.func)
    if isinstance(node, ast.Subscript):
        return _chain(node.value)
    if isinstance(node, ast.Attribute):
        before = _chain(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""


def _without_docstring(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return statements without texts that stand alone."""
    return [s for s in body if not (isinstance(s, ast.Expr) and _is_text(s.value))]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _texts(tree: ast.AST) -> list[str]:
    """Return the texts in a file that may name attributes, or other files."""
    constants = (n.value for n in ast.walk(tree) if isinstance(n, ast.Constant))
    texts = (text for text in constants if isinstance(text, str) and len(text) < 200)
    return sorted({text for text in texts if text and not any(map(str.isspace, text))})


def _definition(
    nodes: Iterable[ast.AST], texts: Callable[[], Sequence[str]]
) -> Definition:
    """Return the definition that statements make together; `texts` gives those of its file."""
    reader = _Reader()
    for node in nodes:
        reader.read(node)
    content = "".join(reader.content).encode()
    attributes = dict.fromkeys(reader.attributes)
    if reader.looks_up:  # the names of attributes may be any that the file has
        attributes |= dict.fromkeys(text for text in texts() if text.isidentifier())
    reads_files = (
        not _HERE.isdisjoint(reader.names) or "resources.files" in reader.names
    )
    return Definition(
        digest=hashlib.blake2b(content, digest_size=8).hexdigest(),
        names=[*dict.fromkeys(reader.names)],
        attributes=[*attributes],
        reads_files=reads_files,
        texts=[text for text in texts() if "." in text] if reads_files else [],
        imports_by_name=reader.imports_by_name,
    )


class _Reader:
    """Reads statements once: their content for a digest, and what they name."""

    def __init__(self) -> None:
        self.content: list[str] = []
        self.names: list[str] = []
        self.attributes: list[str] = []
        self.looks_up = self.imports_by_name = False
        self._functions = self._raises = 0  # how deep in them

    def read(self, node: ast.AST) -> None:
        """Read a node and all that is in it."""
        # What it imports counts where it is used.
        if isinstance(node, ast.Import | ast.ImportFrom):
            return
        if isinstance(node, ast.Name | ast.Attribute) and (dotted := _dotted(node)):
            self.content.append(f" {dotted}")
            self._name(dotted)
            return
        if self._raises and isinstance(node, ast.Constant | ast.JoinedStr):
            self._read_message(node)
            return
        if isinstance(node, ast.Attribute):
            self.attributes.append(node.attr)
        elif isinstance(node, ast.Call):
            self._note_call(node)
        is_function = isinstance(node, _FUNCTIONS)
        is_raise = isinstance(node, ast.Raise)
        self._functions += is_function
        self._raises += is_raise
        self.content.append(f"({type(node).__name__}")
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns"):
                self._read_annotation(node, value)
            elif name not in ("ctx", "kind", "type_comment"):
                self._read_field(name, value)
        self.content.append(")")
        self._functions -= is_function
        self._raises -= is_raise

    def _name(self, dotted: str) -> None:
        self.names.append(dotted)
        self.attributes += dotted.split(".")[1:]

    def _read_field(self, name: str, value: Any) -> None:
        if isinstance(value, list):
            if name == "body":
                value = _without_docstring(value)
            if not value:  # newer versions of Python have more fields, which are empty
                return
            self.content.append(f" {name}[")
            for item in value:
                self._read_value(item)
            self.content.append("]")
        elif value is not None:
            self.content.append(f" {name}=")
            self._read_value(value)

    def _read_value(self, value: Any) -> None:
        if isinstance(value, ast.AST):
            self.read(value)
        else:
            self.content.append(repr(value))

    def _read_annotation(self, node: ast.AST, annotation: ast.AST | None) -> None:
        """Read what an annotation names: objects of these classes may be passed.

        Only in the body of a class does it say more, where it makes a field.
        """
        if (
            isinstance(node, ast.AnnAssign)
            and not self._functions
            and annotation is not None
        ):
            self.content.append(" annotation=")
            self.read(annotation)
            return
        for part in ast.walk(annotation) if annotation is not None else ():
            if isinstance(part, ast.Name | ast.Attribute) and (dotted := _dotted(part)):
                self._name(dotted)

    def _read_message(self, node: ast.Constant | ast.JoinedStr) -> None:
        """Read what an error that is raised says: the values in its text, and not the text."""
        if isinstance(node, ast.JoinedStr):
            for part in node.values:
                self.read(part)
        elif not isinstance(node.value, str):
            self.content.append(repr(node.value))

    def _note_call(self, call: ast.Call) -> None:
        """Note what a call looks up by a text, as far as the text stands there."""
        function = _chain(call.func).rpartition(".")[2]
        arguments = (
            call.args[1:2] if function in ("getattr", "hasattr") else call.args[:1]
        )
        literal = next(
            (a.value for a in arguments if isinstance(a, ast.Constant)), None
        )
        if function in _LOOKUPS and isinstance(literal, str):
            self.attributes += literal.split(".")
        elif function in _LOOKUPS:
            self.looks_up = True
        elif function in _IMPORTERS and not isinstance(literal, str):
            self.imports_by_name = True


def _dotted(node: ast.AST) -> str:
    """Return a name with the attributes after it, ``"a.b"``; empty if it begins otherwise."""
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""
