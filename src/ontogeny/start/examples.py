"""Files of examples with a right answer: which observable asks them, by the fields they have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from ..observables import ModelFacts
from ..observables.registry import kinds
from ..own_code import is_own, load
from ..tasks.records import read_records
from .presets import Preset, filled_entry
from .source import beside


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
            raise ArgumentError(f"--abilities {path}: {cls.form} cannot be asked, because {why}.")
        (argument,) = cls.file_arguments
        table = tables.setdefault(kind, {"kind": kind, **filled_entry(cls, preset, model)})
        table.setdefault(argument, []).append(beside(path, folder))
        notes.append(f"{path}: {count:,} {cls.form}, by {', '.join(fields)}")
    return list(tables.values()), notes


def _fields_of(path: str) -> tuple[int, Sequence[str]]:
    """Return the number of records of a file, and the fields of the first."""
    count, fields, broken = 0, tuple[str, ...](), ""
    for line, record in read_records(path):
        if isinstance(record, dict):
            count, fields = count + 1, fields or tuple(record)
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
