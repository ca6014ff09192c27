"""Texts beside those that are studied: of the training set, or of what a base model knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ArgumentError
from ..inputs.token_files import TOKEN_FILES
from ..observables import ModelFacts
from ..observables.registry import kinds
from .presets import Preset, filled_entry
from .source import beside

# The observable of each further set, with its arguments.
_OBSERVABLES: dict[str, dict[str, Any]] = {
    "training": {"kind": "training-texts", "training": "training"},
    "base": {"kind": "loss", "on": "base", "label": "loss-base"},
}


def further_sets(
    training: Sequence[str], base: Sequence[str], folder: Path, texts: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return the tables of further input sets, as the study file says them.

    Raises
    ------
    ArgumentError
        If there are no texts of the user's to compare them with, or token ids beside texts.
    """
    tables: dict[str, dict[str, Any]] = {}
    for name, paths in (("training", training), ("base", base)):
        if not paths:
            continue
        option = "--train-texts" if name == "training" else "--base-texts"
        if not texts:
            raise ArgumentError(f"{option} is compared with texts of yours: give --texts too.")
        of_ids = {Path(path).suffix in TOKEN_FILES for path in (*paths, *texts)}
        if len(of_ids) > 1:
            raise ArgumentError(f"{option} and --texts must both be texts, or both token ids.")
        tables[name] = {
            "tokens" if of_ids.pop() else "files": [beside(path, folder) for path in paths]
        }
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
            raise ArgumentError(f"[inputs.{name}] is for predictions: {model.no_prediction}.")
        entries.append(entry | filled_entry(kinds()[entry["kind"]], preset, model))
    return entries


def training_texts_beside(texts: Sequence[str], training: Sequence[str]) -> list[str]:
    """Return a line on the training file that lies beside a file of validation, as of nanoGPT."""
    if training or len(texts) != 1 or not Path(texts[0]).stem.startswith("val"):
        return []
    path = Path(texts[0])
    train = path.with_name(path.name.replace("validation", "val").replace("val", "train", 1))
    if not train.is_file():
        return []
    return [f"{train.name} lies beside: --train-texts {train} says what is memorised"]
