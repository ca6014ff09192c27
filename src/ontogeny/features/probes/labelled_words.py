"""Files of labelled words: CoNLL-U, and a word and its label on each line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ...errors import ArgumentError, MissingExtraError, suggestion
from ...tasks.decoding import read_text
from ...tasks.records import some_of

CONLLU = (".conllu", ".conll")
FIELDS = ("upos", "xpos", "deprel", "lemma")


class Sentence(NamedTuple):
    """A text whose words have labels.

    Attributes
    ----------
    text
        The text.
    words
        Of each labelled word its first and last-plus-one character, its type and its label.
    left_out
        Labelled words that have no place of their own in the text.
    """

    text: str
    words: tuple[tuple[int, int, str, str], ...]
    left_out: int = 0


def read_sentences(path: str, field: str) -> list[Sentence]:
    """Return the sentences of a file that hold a labelled word.

    Parameters
    ----------
    path
        ``.conllu``; or one word and its label on each line, with a tab, a comma or a space between,
        and an empty line between texts.
    field
        Of CoNLL-U: ``"upos"``, ``"xpos"``, ``"deprel"``, ``"lemma"`` or a feature such as
        ``"Number"``. Empty for other files.

    Raises
    ------
    ArgumentError
        If the file cannot be read, the field is unknown, or words have no label.
    MissingExtraError
        If the package conllu is not installed.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise ArgumentError(f"there is no file {path!r}.")
    content = read_text(file, "utf-8")
    if file.suffix.lower() in CONLLU:
        sentences = list(_conllu(content, field, file.name))
    elif field:
        raise ArgumentError(
            f"field must be empty for {file.name!r}, whose lines are a word and its label; got "
            f"{field!r}. Fields are those of CoNLL-U ({', '.join(CONLLU)})."
        )
    else:
        sentences = list(_columns(content, file.name))
    sentences = [sentence for sentence in sentences if sentence.words]
    if len(sentences) < 2:
        raise ArgumentError(
            f"{file.name!r} must hold at least two texts with labelled words; it holds "
            f"{len(sentences)}."
        )
    return sentences


def _conllu(content: str, field: str, name: str) -> Iterator[Sentence]:
    try:
        import conllu
    except ImportError:
        raise MissingExtraError(
            "CoNLL-U is read by the package conllu; pip install ontogeny[probes]"
        ) from None
    try:
        parsed = conllu.parse(content)
    except conllu.exceptions.ParseException as error:
        raise ArgumentError(f"{name!r} is no CoNLL-U: {error}") from None
    features = (token["feats"] or () for token in chain.from_iterable(parsed))
    known = set(chain.from_iterable(features))
    if field not in FIELDS and field not in known:
        raise ArgumentError(
            f"field must be one of {', '.join(FIELDS)}, or a feature of {name!r} "
            f"({', '.join(sorted(known)[:5]) or 'which has none'}); got {field!r}."
            f"{suggestion(field, [*FIELDS, *known])}"
        )
    yield from (_sentence(sentence, field) for sentence in parsed)


def _sentence(tokens: Sequence[Mapping[str, Any]], field: str) -> Sentence:
    """Return the text of a sentence as it is written, and where its labelled words stand.

    Words of a multiword token have no place of their own, and empty nodes are not written.
    """
    text = ""
    words = []
    left_out = 0
    covered = 0  # the last word of the multiword token that was written
    for token in tokens:
        number = token["id"]
        is_range = isinstance(number, tuple) and number[1] == "-"
        if isinstance(number, tuple) and not is_range:
            continue
        label = token[field] if field in FIELDS else (token["feats"] or {}).get(field)
        labelled = label not in (None, "", "_")
        if not is_range and number <= covered:
            left_out += labelled
            continue
        begin = len(text)
        text += token["form"]
        if is_range:
            covered = number[2]
        elif labelled:
            words.append((begin, len(text), token["form"].casefold(), str(label)))
        if (token["misc"] or {}).get("SpaceAfter") != "No":
            text += " "
    return Sentence(text.rstrip(), tuple(words), left_out)


def _columns(content: str, name: str) -> Iterator[Sentence]:
    """Give the texts of lines with a word and its label; empty lines separate texts."""
    wrong = []
    blocks: list[list[tuple[str, str]]] = [[]]
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            blocks.append([])
            continue
        parts = _parts(line)
        if len(parts) != 2 or not all(parts):
            wrong.append(f"line {number}: {line.strip()!r}")
        else:
            blocks[-1].append((parts[0], parts[1]))
    if wrong:
        raise ArgumentError(
            f"lines of {name!r} must hold a word and its label, separated by a tab, a comma or a "
            f"space; {len(wrong):,} do not: {some_of(wrong)}."
        )
    for block in blocks:
        text = ""
        words = []
        for word, label in block:
            begin = len(text)
            text += word
            words.append((begin, len(text), word.casefold(), label))
            text += " "
        yield Sentence(text.rstrip(), tuple(words))


def _parts(line: str) -> list[str]:
    for mark in ("\t", ","):
        if mark in line.strip():
            # A comma may be the word itself.
            word, _, label = line.strip().rpartition(mark)
            return [word.strip() or mark, label.strip()]
    return line.split()
