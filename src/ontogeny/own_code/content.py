"""What code in a user's file does depends on: its content, and that of the files it imports."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path


def digest(path: Path) -> int:
    """Return a number that changes with a file, and with those beside it that it imports.

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
    content = hashlib.blake2b(digest_size=6)
    for each in (path, *neighbours(path)):
        content.update(each.read_bytes())
    return int.from_bytes(content.digest(), "big")


def neighbours(path: Path) -> list[Path]:
    """Return the files in the folder of `path` that it imports, also through each other, sorted."""
    found: set[Path] = set()
    left = [path]
    while left:
        new = set(_imported(left.pop(), path.parent)) - found - {path}
        found |= new
        left.extend(new)
    return sorted(found)


def _imported(path: Path, folder: Path) -> Iterator[Path]:
    """Give the files of a folder that one of them names in its imports."""
    for parts in _names(path):
        for end in range(1, len(parts) + 1):
            place = folder.joinpath(*parts[:end])
            for file in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
                if file.is_file():
                    yield file


def _names(path: Path) -> Iterator[list[str]]:
    """Give the dotted names that a file imports, split; of a file that is no Python, none."""
    try:
        nodes = list(ast.walk(ast.parse(path.read_bytes())))
    except (SyntaxError, ValueError):  # it fails with a better message when it is run
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            before = node.module.split(".") if node.module else []
            yield from ([*before, *alias.name.split(".")] for alias in node.names)
