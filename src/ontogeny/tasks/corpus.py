"""The default corpus: Python's own documentation, which every installation already has."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from ..errors import ArgumentError, OntogenyError, check_number
from ..inputs.splits import joined
from ..units import Units

# Left out: what is not documentation to read (tests, build data, code tables) and what Linux
# distributions put into packages of their own, so that the text does not depend on them.
_LEFT_OUT = {"distutils", "encodings", "ensurepip", "idlelib", "lib2to3", "pydoc_data"}
_LEFT_OUT |= {"test", "tkinter", "turtle", "turtledemo", "venv"}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_RULE = re.compile(r"^\W+$", re.MULTILINE)  # lines of ****, ====, ---- under headings
_SHORTEST = 40  # characters; what is shorter joins the paragraph that follows it


def python_documentation() -> list[str]:
    """Return Python's own documentation as paragraph texts: a corpus that needs no download.

    The topics of ``help()`` (``pydoc_data.topics``) and the docstrings of the standard library's
    public modules, about 1.4 million characters of English with some code. Docstrings are read
    from the source files without importing them. The order is fixed, every text occurs once, and
    the same Python version gives the same texts. A text is a paragraph, with line breaks and runs
    of spaces turned into single spaces; headings stay with the paragraph they stand over.

    Raises
    ------
    OntogenyError
        If this Python was installed without its documentation or its source files.

    Examples
    --------
    >>> texts = python_documentation()
    >>> any("truth value" in text for text in texts)
    True
    >>> len(texts) == len(set(texts))
    True
    """
    texts = chain.from_iterable(map(paragraphs, _documents()))
    return list(dict.fromkeys(texts))


def paragraphs(document: str) -> list[str]:
    r"""Split `document` at blank lines into paragraphs, each on one line.

    A piece under 40 characters (a heading) is joined to the one after it, or to the one before
    where nothing follows; lines of punctuation only are dropped.

    Examples
    --------
    >>> paragraphs(
    ...     "Loops\n=====\n\nThe for statement repeats\n  its body for each item.\n"
    ... )
    ['Loops The for statement repeats its body for each item.']
    """
    result: list[str] = []
    waiting = ""
    for block in _BLANK_LINE.split(_RULE.sub("", document)):
        text = " ".join([waiting, *block.split()]).strip()
        if len(text) < _SHORTEST:
            waiting = text
        else:
            result.append(text)
            waiting = ""
    if waiting and result:
        result[-1] = f"{result[-1]} {waiting}"
    elif waiting:
        result.append(waiting)
    return result


def split_texts(
    texts: Sequence[str], test_fraction: float = 0.05, random_state: int = 0
) -> tuple[list[str], list[str]]:
    """Split `texts` at random into two lists, both in the original order.

    Parameters
    ----------
    texts
        At least two texts.
    test_fraction
        Share of the texts that goes into the second list, between 0 and 1; at least one text.
    random_state
        Seed of the choice.

    Returns
    -------
    kept, heldout
        Every text is in exactly one of them. Texts that are the same, character by character, are
        in the same: otherwise training would have seen what is held out.

    Raises
    ------
    ArgumentError
        If there are fewer than two texts, or `test_fraction` is not between 0 and 1.

    Examples
    --------
    >>> rest, heldout = split_texts(["a", "b", "c", "d"], 0.25, random_state=0)
    >>> len(rest), len(heldout)
    (3, 1)
    """
    check_number("test_fraction", test_fraction, 0, 1, above=True, below=True)
    if len(texts) < 2:
        raise ArgumentError(
            f"texts must hold at least 2 texts to split; got {len(texts)}."
        )
    units = Units(joined([texts], len(texts)))
    if units.count < 2:
        raise ArgumentError(
            f"texts must differ to be split; all {len(texts)} are the same."
        )
    order = np.random.default_rng(random_state).permutation(units.count)
    count = min(max(round(test_fraction * units.count), 1), units.count - 1)
    is_heldout = np.isin(units.place, order[:count])
    rest = [text for text, out in zip(texts, is_heldout, strict=True) if not out]
    return rest, [text for text, out in zip(texts, is_heldout, strict=True) if out]


def python_topics() -> list[str]:
    """Return the topics of ``help()``, in the order of their names.

    Raises
    ------
    OntogenyError
        If this Python was installed without its documentation.
    """
    try:
        from pydoc_data.topics import topics
    except ImportError:
        raise OntogenyError(
            "this Python was installed without pydoc_data, its documentation; "
            "give texts of your own."
        ) from None
    return [topics[name] for name in sorted(topics)]


def _documents() -> Iterator[str]:
    yield from python_topics()
    sources = list(_standard_library())
    if not sources:
        raise OntogenyError(
            "this Python was installed without the standard library's source files; "
            "give texts of your own."
        )
    for path in sources:
        yield from _docstrings(path.read_text("utf-8"))


def _standard_library() -> Iterator[Path]:
    root = Path(os.__file__).parent
    for name in sorted(sys.stdlib_module_names - _LEFT_OUT):
        if name.startswith("_"):
            continue
        yield from (path for path in [root / f"{name}.py"] if path.is_file())
        yield from (
            path
            for path in sorted((root / name).rglob("*.py"))
            if not {"test", "tests"} & set(path.relative_to(root).parts)
        )


def _docstrings(source: str) -> Iterator[str]:
    """Yield the docstrings of modules, classes and functions in the order they are written."""
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _DOCUMENTED):
            docstring = ast.get_docstring(node)
            if docstring:
                yield docstring
            waiting.extend(reversed(node.body))
