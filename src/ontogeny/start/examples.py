"""Files of examples: which observable asks them by their fields, and whether ours suit a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError, OntogenyError
from ..inputs.tokenize import tokenize
from ..observables import ModelFacts
from ..observables.registry import kinds
from ..own_code import is_own, load
from ..tasks.records import read_records
from .presets import Preset, filled_entry
from .source import beside

# Tokens of a common English word, on average, at most; of letters it takes 5.5.
PIECES = 3.0
# Of the words of English texts that are among the commonest, at least; measured: .18 to .31.
COMMON_SHARE = 0.12

_COMMON = (
    "the and of to is was that it he she for with his her they be at on this".split()  # noqa: SIM905
)
_SENTENCE = (
    "the old farmer walked to the river with his brown dog because she wanted some fresh water and "
    "the little children were playing with their red ball behind the house until the evening"
)
_UNKNOWN = 0.1  # of tokens


def examples_of(
    paths: Sequence[str], folder: Path, preset: Preset, model: ModelFacts
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the tables of observables that ask files of examples, and a line on each file.

    Parameters
    ----------
    paths
        The files.
    folder
        Where the study file is to stand: paths in it are relative to it.
    preset, model
        What fills in the other arguments.

    Raises
    ------
    ArgumentError
        If a file cannot be read, no observable knows its fields, or the model cannot be asked.
    """
    tables: dict[str, dict[str, Any]] = {}
    notes = []
    for path in paths:
        if is_own(path):
            file, _, name = path.rpartition(":")
            load(path)  # a wrong name is refused now
            tables[path] = {"kind": f"{beside(file, folder)}:{name}"}
            notes.append(f"{path}: one number for each text")
            continue
        count, fields = _fields_of(path)
        kind = _kind_of(fields, path)
        cls = kinds()[kind]
        if why := cls.ruled_out(model, cls.fewest_steps):
            raise ArgumentError(
                f"--abilities {path}: {cls.form} cannot be asked, because {why}."
            )
        (argument,) = cls.file_arguments
        table = tables.setdefault(
            kind, {"kind": kind, **filled_entry(cls, preset, model)}
        )
        table.setdefault(argument, []).append(beside(path, folder))
        group = getattr(cls, "group_field", lambda _: None)(path)
        groups = f"; groups: {group}" if group else "; one group"
        read = [field for field in fields if field != group]
        notes.append(f"{path}: {count:,} {cls.form}, by {', '.join(read)}{groups}")
    return list(tables.values()), notes


def _fields_of(path: str) -> tuple[int, Sequence[str]]:
    """Return the number of records of a file, and the fields of the first."""
    count = 0
    fields = tuple[str, ...]()
    broken = ""
    for line, record in read_records(path):
        if isinstance(record, dict):
            count = count + 1
            fields = fields or tuple(record)
        else:
            broken = broken or f": {Path(path).name}, line {line}: {record}"
    if not count:
        raise ArgumentError(f"--abilities {path} holds no example{broken}.")
    return count, fields


def _kind_of(fields: Sequence[str], path: str) -> str:
    asking = {kind: cls for kind, cls in kinds().items() if cls.form}
    for kind, cls in asking.items():
        if cls.recognises(fields):
            return kind
    forms = "; ".join(f"{cls.form} ({cls.fields_of_form})" for cls in asking.values())
    raise ArgumentError(
        f"--abilities {path} has the fields {', '.join(fields)}; allowed are {forms}."
    )


def no_english(tokenizer: Any, texts: Sequence[str]) -> str:
    """Return why English sentences would show nothing of a model; empty if nothing speaks against.

    Parameters
    ----------
    tokenizer
        The run's.
    texts
        What it is said to read; empty if that is not known.

    Examples
    --------
    >>> from ontogeny.tasks import train_tokenizer
    >>> tokenizer = train_tokenizer(["Hund und Katze"] * 4, vocab_size=270)
    >>> no_english(tokenizer, [])
    'its tokenizer cuts an English word into 5.4 tokens, 3 at most'
    """
    try:
        read = tokenize([_SENTENCE], tokenizer, 1024, "right", None)
    except OntogenyError:  # which says that of this sentence nothing is left
        return "its tokenizer does not read English words"
    ids = read["ids"][read["mask"] & ~read["special"]]
    pieces = len(ids) / len(_SENTENCE.split())
    if pieces > PIECES:
        return f"its tokenizer cuts an English word into {pieces:.1f} tokens, {PIECES:.0f} at most"
    if np.mean(ids == getattr(tokenizer, "unk_token_id", None)) > _UNKNOWN:
        return "its tokenizer does not know English words"
    all_words = " ".join(texts).lower().split()
    words = [word.strip(".,;:!?\"'()") for word in all_words]
    share = np.mean([word in _COMMON for word in words]) if words else 1.0
    few = f"only {100 * share:.0f} % of its texts' words are common English ones"
    return few if share < COMMON_SHARE else ""
