"""Definitions in a file of Python: what each names, and a digest of each.

A digest is of the syntax tree. It does not change with comments, formatting, docstrings, the
annotations of functions, or the texts of errors that are raised: none of them changes a number.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOKUPS = frozenset({"getattr", "hasattr", "attrgetter", "methodcaller"})
_IMPORTERS = frozenset({"import_module", "__import__"})
_HERE = frozenset({"__file__", "__path__"})


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


def name_chain(node: ast.AST) -> str:
    """Return a name with the attributes after it, of what is called or indexed: ``"a.b"``."""
    if isinstance(node, ast.Call):
        return name_chain(node.func)
    if isinstance(node, ast.Subscript):
        return name_chain(node.value)
    if isinstance(node, ast.Attribute):
        before = name_chain(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""


def without_texts(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return statements without texts that stand alone."""
    return [s for s in body if not (isinstance(s, ast.Expr) and _is_text(s.value))]


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def texts_of(tree: ast.AST) -> list[str]:
    """Return the texts in a file that may name attributes, or other files."""
    constants = (n.value for n in ast.walk(tree) if isinstance(n, ast.Constant))
    texts = (text for text in constants if isinstance(text, str) and len(text) < 200)
    return sorted({text for text in texts if text and not any(map(str.isspace, text))})


def definition_of(
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
        is_function = isinstance(node, FUNCTIONS)
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
                value = without_texts(value)
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
        function = name_chain(call.func).rpartition(".")[2]
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
