"""Texts beside those that are studied: of the training set, or of what a base model knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from ..inputs.token_files import TOKEN_FILES
from ..observables import ModelFacts
from ..observables.registry import kinds
from ..tasks.records import read_records
from ..tasks.rows import FORMATS
from ..tasks.split_column import COLUMN, HELD_OUT, SET_OF, TRAINING, split_column
from .presets import Preset, filled_entry
from .source import beside

# The observable of each further set, with its arguments.
_OBSERVABLES: dict[str, dict[str, Any]] = {
    "training": {"kind": "training-texts", "training": "training"},
    "base": {"kind": "loss", "on": "base", "label": "loss-base"},
}


def further_sets(
    training: Sequence[str],
    base: Sequence[str],
    folder: Path,
    texts: Sequence[str],
    labels: Sequence[str] = (),
) -> dict[str, dict[str, Any]]:
    """Return the tables of further input sets, as the study file says them.

    Labels of token ids are those of the texts, then those of the training texts.

    Raises
    ------
    ArgumentError
        If there are no texts of the user's to compare them with, token ids beside texts, or labels
        of the texts without those of the training texts.
    """
    if labels and training and len(labels) != len(texts) + len(training):
        raise ArgumentError(
            f"--token-labels must name labels for each of {len(texts)} --texts and "
            f"{len(training)} --train-texts, in this order; got {len(labels)}."
        )
    tables: dict[str, dict[str, Any]] = {}
    for name, paths in (("training", training), ("base", base)):
        if not paths:
            continue
        option = "--train-texts" if name == "training" else "--base-texts"
        if not texts:
            raise ArgumentError(
                f"{option} is compared with texts of yours: give --texts too."
            )
        of_ids = {Path(path).suffix in TOKEN_FILES for path in (*paths, *texts)}
        if len(of_ids) > 1:
            raise ArgumentError(
                f"{option} and --texts must both be texts, or both token ids."
            )
        tables[name] = {
            "tokens" if of_ids.pop() else "files": [
                beside(path, folder) for path in paths
            ]
        }
        if name == "training" and labels:
            of_training = [beside(path, folder) for path in labels[len(texts) :]]
            tables[name]["token_labels"] = of_training
    return tables


def of_further_sets(
    table: Mapping[str, Any], preset: Preset, model: ModelFacts
) -> list[dict[str, Any]]:
    """Return the observables of the further sets that a table of inputs has.

    Raises
    ------
    ArgumentError
        If the model predicts nothing.
    """
    entries = []
    for name, entry in _OBSERVABLES.items():
        if name not in table:
            continue
        if model.no_prediction:
            raise ArgumentError(
                f"[inputs.{name}] is for predictions: {model.no_prediction}."
            )
        entries.append(entry | filled_entry(kinds()[entry["kind"]], preset, model))
    return entries


def sets_of_column(paths: Sequence[str], folder: Path) -> dict[str, Any]:
    """Return the keys that take held-out and training texts from one table with a column ``split``.

    Nothing where its rows do not name both sets.
    """
    if not _both_sets([folder / path for path in paths])[0]:
        return {}
    return {"split": HELD_OUT, "training": {"files": [*paths], "split": TRAINING}}


def unused_column(texts: Sequence[str]) -> list[str]:
    """Return a line on a column ``split`` of the texts that is not used, and why."""
    is_used, why = _both_sets([Path(path).expanduser() for path in texts])
    if is_used:
        why = (
            "the column 'split' is not used, as --train-texts names the training texts"
        )
    return [why] if texts and why else []


def training_texts_beside(texts: Sequence[str], training: Sequence[str]) -> list[str]:
    """Return a line on the training file that lies beside a file of validation, as of nanoGPT."""
    if training or len(texts) != 1 or not Path(texts[0]).stem.startswith("val"):
        return []
    path = Path(texts[0])
    train = path.with_name(
        path.name.replace("validation", "val").replace("val", "train", 1)
    )
    if not train.is_file():
        return []
    return [f"{train.name} lies beside: --train-texts {train} says what is memorised"]


def _both_sets(paths: Sequence[Path]) -> tuple[bool, str]:
    """Return whether all files have a column that names both sets, and else what it holds.

    Nothing is said of files without the column. One value that names a set makes it such a column:
    other values are then refused where the rows are read.
    """
    values: dict[str, None] = {}
    for path in paths:
        if path.suffix.lower() not in FORMATS or not path.is_file():
            return False, ""
        of_file = _values(path)
        if not of_file:
            return False, ""
        values |= dict.fromkeys(of_file)
    sets = {SET_OF[value.lower()] for value in values if value.lower() in SET_OF}
    is_odd = any(value.lower() not in SET_OF for value in values)
    if len(sets) == 2 or (sets and is_odd):
        return True, ""
    held = ", ".join(map(repr, list(values)[:3]))
    what = f"only {sets.pop()} texts" if sets else "no usual name of a set"
    return False, f"the column {COLUMN!r} names {what} ({held}) and is not used"


def _values(path: Path) -> list[str]:
    """Return the different values of the column, none where a row lacks it or cannot be read."""
    found: dict[str, None] = {}
    try:
        for _, row in read_records(path):
            column = split_column(row)
            if column is None:
                return []
            found[str(row[column]).strip()] = None
    except ArgumentError:  # what is wrong is said when the texts are read
        return []
    return list(found)
