"""Texts that a tokenizer cannot encode: vocabularies of characters lack some and know no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..errors import ArgumentError

T = TypeVar("T")
_NAMED = 8  # characters in a message


def where_encodable(
    texts: Sequence[str],
    rows: list[int],
    tokenizer: Any,
    encode: Callable[[list[int]], T],
) -> tuple[list[int], T, list[str]]:
    """Return those rows that can be encoded, what `encode` makes of them, and what is to be said.

    Raises
    ------
    ArgumentError
        If none can.
    """
    try:
        return rows, encode(rows), []
    except Exception:  # of whatever kind of tokenizer
        kept, note = _encodable([texts[i] for i in rows], tokenizer)
        rows = [rows[i] for i in kept]
        return rows, encode(rows), [note]


def _encodable(texts: Sequence[str], tokenizer: Any) -> tuple[list[int], str]:
    reasons = [_fails(text, tokenizer) for text in texts]
    kept = [i for i, reason in enumerate(reasons) if reason is None]
    lost = [i for i, reason in enumerate(reasons) if reason is not None]
    unknown = _unknown([texts[i] for i in lost], tokenizer)
    names = ", ".join(map(repr, unknown[:_NAMED]))
    if len(unknown) > _NAMED:
        names += ", ..."
    if kept and unknown:
        are = "is" if len(lost) == 1 else "are"
        share = f"{len(lost):,} of {len(texts):,} texts {are} left out"
        return kept, f"{share}: the tokenizer cannot encode {names}"
    why = reasons[lost[0]] if lost else "together, though each alone"
    each = f" Each text holds one that it cannot, of {names}." if unknown else ""
    raise ArgumentError(f"the tokenizer cannot encode the texts: {why}.{each}")


def _unknown(texts: Sequence[str], tokenizer: Any) -> list[str]:
    """Return the characters that cannot be encoded; the words, where no character can."""
    characters = sorted({*"".join(texts)} - {" ", "\n"})
    unknown = [c for c in characters if _fails(c, tokenizer) is not None]
    if len(unknown) < len(characters):
        return unknown
    words = sorted(set(" ".join(texts).split()))
    return [word for word in words if _fails(word, tokenizer) is not None]


def _fails(text: str, tokenizer: Any) -> str | None:
    """Return how a text cannot be encoded; None if it can."""
    try:
        tokenizer(text)
    except Exception as error:  # of whatever kind of tokenizer
        return f"{type(error).__name__}: {str(error).rstrip('.')}"
    return None
