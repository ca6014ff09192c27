"""Plain data as TOML, in the order and with the comments that people read."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

_COLUMN = 41  # where comments on a line begin, unless it is longer


def value(content: Any) -> str:
    """Return a value as TOML writes it.

    Examples
    --------
    >>> value({"count": 8, "spacing": "log"}), value(["mlp", 3, 0.5, True])
    ('{ count = 8, spacing = "log" }', '["mlp", 3, 0.5, true]')
    """
    if isinstance(content, Mapping):
        inner = ", ".join(f"{key(k)} = {value(v)}" for k, v in content.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(content, list | tuple):
        return f"[{', '.join(map(value, content))}]"
    # JSON would write inf as Infinity, which TOML does not know.
    if isinstance(content, float):
        return repr(content)
    return json.dumps(content)


def key(name: str) -> str:
    """Return a key, in quotes where it needs them."""
    bare = name.replace("-", "").replace("_", "")
    return name if bare.isascii() and bare.isalnum() else json.dumps(name)


def lines(
    table: Mapping[str, Any], notes: Mapping[str, str] | None = None
) -> list[str]:
    """Return a line for each key, with a note behind it where there is one."""
    notes = notes or {}
    written = []
    for name, content in table.items():
        line = f"{key(name)} = {value(content)}"
        note = notes.get(name)
        written.append(f"{line:<{_COLUMN - 1}} # {note}" if note else line)
    return written


def comment(text: str) -> list[str]:
    """Return a comment, broken where a line gets long."""
    return textwrap.wrap(text, 96, initial_indent="# ", subsequent_indent="# ") or ["#"]


def joined(blocks: Iterable[Iterable[str]]) -> str:
    """Return blocks of lines with an empty line between them."""
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"
