"""What a run and its texts must have before a study fits them: files, a class, a tokenizer."""

from __future__ import annotations

from pathlib import Path

from .. import own_code
from ..errors import ArgumentError
from ..inputs.vocabularies import VOCABULARY_FILES
from ..trajectory import Trajectory
from ..trajectory.elsewhere import checkpoints_below
from .source_tables import are_token_ids
from .wishes import Wishes


def check_files(wishes: Wishes) -> None:
    """Refuse files that are not there."""
    for option, paths in (
        ("--texts", wishes.texts),
        ("--abilities", wishes.abilities),
        ("--token-labels", wishes.token_labels),
        ("--train-texts", wishes.train_texts),
        ("--base-texts", wishes.base_texts),
    ):
        for path in paths:
            path = path.rpartition(":")[0] if own_code.is_own(path) else path
            if not {*path} & {*"*?["} and not Path(path).expanduser().exists():
                raise ArgumentError(f"{option} {path}: there is no such file.")


def check_complete(wishes: Wishes, run: Trajectory, tokenizer: str) -> None:
    """Refuse what has no class or no tokenizer; both are said at once, with how to give them."""
    if not wishes.model:
        _check_reads_texts(run)
    last = run.checkpoints[-1]
    lacking = []
    ways = []
    if not wishes.model and last.template is None and last.configuration() is None:
        lacking.append("no config.json, so its model class is not known")
        ways.append("name a function that builds the model, --model model.py:build")
    if not any(are_token_ids(wishes.texts)) and not has_tokenizer(tokenizer, run):
        lacking.append("no tokenizer to read texts with")
        ways.append(
            "give --tokenizer, a name on the Hub, a folder or nanoGPT's meta.pkl, or token ids "
            "with --texts val.bin (or .npy, .pt)"
        )
    if lacking:
        # Composer's files have a folder `huggingface` beside them.
        below = checkpoints_below(run.path, 1) if run.path and run.path.is_dir() else []
        others = f" Or name {below[0]}, which holds checkpoints too." if below else ""
        what = ", and ".join(lacking)
        how = "; and ".join(ways)
        raise ArgumentError(f"{wishes.source} has {what}: {how}.{others}")


def _check_reads_texts(run: Trajectory) -> None:
    """Refuse models of images and of sound, by the class that their configuration names."""
    import transformers

    names = (run.checkpoints[-1].configuration() or {}).get("architectures")
    # Whatever a foreign file holds there.
    for name in names if isinstance(names, list) else ():
        name = str(name)
        reads = getattr(
            getattr(transformers, name, None), "main_input_name", "input_ids"
        )
        if reads != "input_ids":
            raise ArgumentError(
                f"{name} reads {reads}; only models that read texts are studied."
            )


def vocabulary_beside(wishes: Wishes) -> Path | None:
    """Return the file of a vocabulary beside token ids or texts, as of nanoGPT."""
    if wishes.tokenizer or not wishes.texts:
        return None
    folder = Path(wishes.texts[0]).expanduser().parent
    places = (folder / name for name in VOCABULARY_FILES)
    return next((place for place in places if place.is_file()), None)


def has_own(run: Trajectory) -> bool:
    """Return whether a run has a tokenizer that can be read."""
    try:
        return run.tokenizer() is not None
    except ArgumentError:
        return False


def has_tokenizer(tokenizer: str, run: Trajectory) -> bool:
    """Return whether texts can be read, with a tokenizer that is named or with the run's own."""
    return tokenizer != "none" if tokenizer else run.tokenizer() is not None
