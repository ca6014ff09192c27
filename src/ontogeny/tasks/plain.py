"""In which form plain files hold texts: one a line, a paragraph, a document or a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np

UNITS = ("auto", "line", "paragraph", "document", "file")
# How the form of texts is said, by unit.
WORDS = {
    "line": "one a line",
    "paragraph": "one a paragraph",
    "document": "one between marks of an end of text",
    "file": "one a file",
}

_WIKI_HEADING = re.compile(r"^[^\S\n]*=.*=[^\S\n]*$\n?", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_END_OF_TEXT = re.compile(
    r"<\|(?:endoftext|end_of_text|eot_id|im_end)\|>|</s>|<eos>|\[EOS\]"
)
_SHORT_FILE = 2000  # characters of a file that is one text
_MANY_FILES = 20
_WRAPPED = 0.7  # of the lines end where the next word would not have gone in
_SENTENCES = 0.8  # of the lines end one, as lines of one pattern do, all of one length
# On average, in stanzas, dialogues and code; more are a list.
_LINES_OF_A_PARAGRAPH = 10
_LONG_LINE = 150  # characters: it is a paragraph already
_NARROW = 40  # characters, at which nobody wraps prose
_ALIKE = 0.9  # of the lines have as many words, as sums, names and sequences have
_EAST_ASIAN = "\u2e80"  # from here on text is wrapped between characters


def form_of(contents: Sequence[str]) -> str:
    r"""Return the unit that the texts of plain files are, as `UNITS` names it.

    Marks of an end of text go before all else. Lines that end where the next word would not have
    gone in are wrapped, and so are parts of a paragraph, unless all are short or have as many
    words; lines of a stanza, of a speech or of code are, where blank lines stand between a few of
    them. Other lines are texts. Many short files are a text each.

    Examples
    --------
    >>> form_of(["A cat sat.\nIt was there all day, and nobody came.\nRain fell.\n"])
    'line'
    >>> form_of(
    ...     ["First:\nHear me.\n\nAll:\nSpeak, speak.\n\nFirst:\nYou are resolved.\n"]
    ... )
    'paragraph'
    >>> form_of(["A tale.\n\nIts end.<|endoftext|>Another."])
    'document'
    """
    contents = [_WIKI_HEADING.sub("", content) for content in contents]
    if any(_END_OF_TEXT.search(content) for content in contents):
        return "document"
    blocks = [list(map(_filled_lines, _parts(content))) for content in contents]
    together = list(chain.from_iterable(blocks))
    lines = list(map(len, chain.from_iterable(together)))
    several = [block for block in together if len(block) > 1]
    if (
        len(contents) >= _MANY_FILES
        and np.median([len(c) for c in contents]) < _SHORT_FILE
    ):
        return "line" if max(map(len, blocks)) <= 1 and not several else "file"
    if not several:
        return "line"
    if _is_wrapped(several):
        return "paragraph" if len(together) > len(contents) else "file"
    few = (
        len(together) > len(contents)
        and len(lines) / len(together) <= _LINES_OF_A_PARAGRAPH
    )
    return "paragraph" if few and np.median(lines) < _LONG_LINE else "line"


def cut(content: str, unit: str) -> list[str]:
    r"""Return the texts of a plain file as they stand in it, white space within them too.

    Headings of WikiText and empty texts are left out, and lines that hold nothing at either end.

    Examples
    --------
    >>> cut("def f():\n    return 1\n\nOne\n", "paragraph")
    ['def f():\n    return 1', 'One']
    """
    content = _WIKI_HEADING.sub("", content)
    if unit == "document":
        parts = _END_OF_TEXT.split(content)
    elif unit == "file":
        parts = [content]
    else:
        parts = content.split("\n") if unit == "line" else _parts(content)
    ended = str.strip if unit == "line" else _without_empty_ends
    return [ended(part) for part in parts if part.strip()]


def _parts(content: str) -> list[str]:
    return [part for part in _BLANK_LINES.split(content) if part.strip()]


def _filled_lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


def _without_empty_ends(text: str) -> str:
    """Return a text without what its ends hold for the file's sake; indentation stays."""
    return re.sub(r"\A(?:[^\S\n]*\n)+", "", text).rstrip()


def _is_wrapped(blocks: Sequence[Sequence[str]]) -> bool:
    """Return whether most lines end where the next word would not have gone in."""
    pairs = list(chain.from_iterable(map(pairwise, blocks)))
    ends = np.array([len(line.rstrip()) for line, _ in pairs])
    words = np.array([len(next_line.split(maxsplit=1)[0]) for _, next_line in pairs])
    width = np.quantile(ends, 0.98)
    lines = list(chain.from_iterable(blocks))
    whole = [line.rstrip("\"')”’ ")[-1:] in tuple(".!?…。") for line in lines]
    if not _NARROW <= width < _LONG_LINE or np.mean(whole) > _SENTENCES:
        return False
    if _are_alike(lines):
        return False
    return bool(np.mean(ends + 1 + words > width) >= _WRAPPED)


def _are_alike(lines: Sequence[str]) -> bool:
    """Return whether lines are of one pattern: nearly all have as many words."""
    _, counts = np.unique([len(line.split()) for line in lines], return_counts=True)
    unspaced = any(character >= _EAST_ASIAN for character in "".join(lines))
    return bool(counts.max() >= _ALIKE * len(lines)) and not unspaced
