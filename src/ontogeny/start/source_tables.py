"""The tables of a study file that say what is read: which checkpoints, which texts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import own_code
from ..errors import ArgumentError
from ..inputs.scoring import Scoring
from ..inputs.token_files import TOKEN_FILES
from ..tasks import read_labelled
from ..tasks.tables import BrokenLabelsError
from ..trajectory import Trajectory
from .further_sets import further_sets, sets_of_column
from .presets import Preset
from .shown import longest_of
from .source import beside, is_repository
from .wishes import Wishes

# Fewest control runs where no renaming of words tests what was learned, as of a classifier: three
# would show 85 to 90 % of clear accuracies, six 96.
WITHOUT_RENAMING = 6


def source_tables(
    wishes: Wishes, preset: Preset, run: Trajectory, folder: Path, tokenizer: str
) -> dict[str, Any]:
    """Return the tables of the study file that say what is read, and how many controls."""
    texts = _inputs(wishes, preset, run, folder)
    least = WITHOUT_RENAMING if "dataset" in texts and preset.controls else 0
    count = max(preset.controls, least)
    return {
        "trajectory": _trajectory(wishes, preset, run, folder, tokenizer),
        "inputs": texts,
        "controls": {"kind": "turned", "count": count, "steps": preset.control_steps},
    }


def _has_labels(path: Path, skips: bool) -> bool:
    """Return whether a file holds labelled texts; a column of labels with gaps is refused."""
    try:
        return read_labelled(path).labels is not None
    except BrokenLabelsError:
        if skips:
            return True
        raise
    except ArgumentError:  # no table of texts: it is read as texts
        return False


def classifies(run: Trajectory) -> bool:
    """Return whether the model gives a class to each text, by its configuration."""
    configuration = run.checkpoints[-1].configuration() or {}
    names = configuration.get("architectures") or ()
    return any(str(name).endswith("SequenceClassification") for name in names)


def _trajectory(
    wishes: Wishes, preset: Preset, run: Trajectory, folder: Path, tokenizer: str
) -> dict[str, Any]:
    """Return the table, with a selection where there are more checkpoints than wished."""
    hub = is_repository(wishes.source)
    table = {"hub": wishes.source} if hub else {"folder": beside(wishes.source, folder)}
    table |= wishes.choice
    if wishes.base and not is_repository(wishes.base):
        table["base"] = beside(wishes.base, folder)
    if wishes.model:
        own_code.load(wishes.model)  # a wrong name is refused now
        table["model"] = _code(wishes.model, folder)
    if tokenizer:
        table["tokenizer"] = _tokenizer(tokenizer, folder)
    steps = _steps(wishes.steps, len(run), preset)
    return {**table, "select": steps} if steps else table


def _steps(wished: str, available: int, preset: Preset) -> dict[str, Any]:
    """Return a selection for ``--steps``: a number of checkpoints, steps, or ``all``."""
    parts = [part.strip() for part in wished.split(",") if part.strip()]
    if wished.strip() == "all":
        return {}
    if not all(part.isdecimal() for part in parts):
        raise ArgumentError(
            "--steps takes how many checkpoints (8), the steps themselves with commas (0,100,200), "
            f"or all; got {wished!r}."
        )
    if len(parts) > 1:
        return {"steps": [int(part) for part in parts]}
    count = int(parts[0]) if parts else preset.steps
    if count < 2:
        raise ArgumentError(
            f"--steps takes at least 2 checkpoints, the first and the last; got {count}."
        )
    return {"count": count, "spacing": "log"} if count < available else {}


def _code(place: str, folder: Path) -> str:
    file, colon, name = place.rpartition(":")
    return f"{beside(file, folder)}{colon}{name}"


def _tokenizer(tokenizer: str, folder: Path) -> str:
    if own_code.is_own(tokenizer):
        return _code(tokenizer, folder)
    return (
        beside(tokenizer, folder)
        if Path(tokenizer).expanduser().exists()
        else tokenizer
    )


def _scored(wishes: Wishes, folder: Path) -> dict[str, Any]:
    """Return what was said of the places that are scored, as the study file says it."""
    scoring = Scoring(wishes.score, wishes.answer_after)
    fields: dict[str, Any] = {
        "score": scoring.score,
        "answer_after": wishes.answer_after,
    }
    of_texts = wishes.token_labels
    if wishes.train_texts:  # theirs come next
        of_texts = of_texts[: len(wishes.texts)]
    fields["token_labels"] = [beside(path, folder) for path in of_texts]
    return {name: value for name, value in fields.items() if value}


def _inputs(
    wishes: Wishes, preset: Preset, run: Trajectory, folder: Path
) -> dict[str, Any]:
    longest = longest_of(run.checkpoints[-1])
    length = wishes.max_length or preset.length
    length = length if longest is None else min(length, longest)
    sizes = {"max_texts": preset.texts, "max_length": length, **_scored(wishes, folder)}
    sizes |= further_sets(
        wishes.train_texts, wishes.base_texts, folder, wishes.texts, wishes.token_labels
    )
    if not wishes.texts:
        return {"bundled": "english-and-python", **sizes}
    paths = [beside(path, folder) for path in wishes.texts]
    named = any(arg.startswith("inputs.label=") for arg in wishes.sets)
    skips = "inputs.on_error=skip" in wishes.sets
    if (
        len(paths) == 1
        and classifies(run)
        and (named or _has_labels(folder / paths[0], skips))
    ):
        return {"dataset": paths[0], **sizes}
    tokens = are_token_ids(paths)
    if any(tokens) and not all(tokens):
        files = ", ".join(TOKEN_FILES)
        raise ArgumentError(
            f"--texts takes texts or files of token ids ({files}), not both."
        )
    if all(tokens):
        return {"tokens": paths, **sizes}
    is_said = any(arg.startswith("inputs.split=") for arg in wishes.sets)
    if not wishes.train_texts and not is_said:
        sizes |= sets_of_column(paths, folder)
    return {"files": paths, **sizes}


def are_token_ids(paths: Sequence[str]) -> list[bool]:
    """Return of each file whether it holds token ids, by its name."""
    return [Path(path).suffix in TOKEN_FILES for path in paths]
