"""In which form plain files hold their texts: one a line, a paragraph, between marks, a file."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import numpy as np

UNITS = ("auto", "line", "paragraph", "document", "file")
WORDS = {
    "line": "one a line",
    "paragraph": "one a paragraph",
    "document": "one between marks of an end of text",
    "file": "one a file",
}
"""How the form of texts is said, by unit."""

_WIKI_HEADING = re.compile(r"^[^\S\n]*=.*=[^\S\n]*$\n?", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_END_OF_TEXT = re.compile(r"<\|(?:endoftext|end_of_text|eot_id|im_end)\|>|</s>|<eos>|\[EOS\]")
_SHORT_FILE = 2000  # characters of a file that is one text
_MANY_FILES = 20
_WRAPPED = 0.7  # of the lines end where the next word would not have gone in
_SENTENCES = 0.8  # of the lines end one, as lines of one pattern do, all of one length
_LINES_OF_A_PARAGRAPH = 10  # on average, in stanzas, dialogues and code; more are a list
_LONG_LINE = 150  # characters: it is a paragraph already


def form_of(contents: Sequence[str]) -> str:
    r"""Return the unit that the texts of plain files are, as `UNITS` names it.

    Marks of an end of text go before all else. Lines that end where the next word would not have
    gone in are wrapped, and so are parts of a paragraph; lines of a stanza, of a speech or of code
    are, where blank lines stand between a few of them. Other lines are texts. Many short files
    are a text each.

    Examples
    --------
    >>> form_of(["A cat sat.\nIt was there all day, and nobody came.\nRain fell.\n"])
    'line'
    >>> form_of(["First:\nHear me.\n\nAll:\nSpeak, speak.\n\nFirst:\nYou are resolved.\n"])
    'paragraph'
    >>> form_of(["A tale.\n\nIts end.<|endoftext|>Another."])
    'document'
    """
    contents = [_WIKI_HEADING.sub("", content) for content in contents]
    if any(_END_OF_TEXT.search(content) for content in contents):
        return "document"
    blocks = [
        [[line for line in part.split("\n") if line.strip()] for part in _parts(content)]
        for content in contents
    ]
    together = [block for file in blocks for block in file]
    lines = [len(line) for block in together for line in block]
    several = [block for block in together if len(block) > 1]
    if len(contents) >= _MANY_FILES and np.median([len(c) for c in contents]) < _SHORT_FILE:
        return "line" if max(map(len, blocks)) <= 1 and not several else "file"
    if not several:
        return "line"
    if _is_wrapped(several):
        return "paragraph" if len(together) > len(contents) else "file"
    few = len(together) > len(contents) and len(lines) / len(together) <= _LINES_OF_A_PARAGRAPH
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


def _without_empty_ends(text: str) -> str:
    """Return a text without what its ends hold for the file's sake; indentation stays."""
    return re.sub(r"\A(?:[^\S\n]*\n)+", "", text).rstrip()


def _is_wrapped(blocks: Sequence[Sequence[str]]) -> bool:
    """Return whether most lines end where the next word would not have gone in."""
    pairs = [
        (len(line.rstrip()), len(following.split(maxsplit=1)[0]))
        for block in blocks
        for line, following in itertools.pairwise(block)
    ]
    ends, words = np.array(pairs).T
    width = np.quantile(ends, 0.98)
    whole = [line.rstrip("\"')”’ ")[-1:] in tuple(".!?…。") for block in blocks for line in block]
    if width >= _LONG_LINE or np.mean(whole) > _SENTENCES:
        return False
    return bool(np.mean(ends + 1 + words > width) >= _WRAPPED)
