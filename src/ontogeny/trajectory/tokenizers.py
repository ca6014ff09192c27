"""The tokenizer files of a run, and whether they change along it."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import CheckpointError
from ..inputs.vocabularies import vocabulary_tokenizer
from .checkpoint import Checkpoint
from .hub.repository import list_files
from .hub.revision import HubRevision
from .weights.files import stamp_of
from .weights.formats.gguf import GGUFModel
from .weights.formats.tensor_bundle import GPT2Bundle

_SETTINGS = "tokenizer_config.json"
_FILES = (
    "tokenizer.json",
    _SETTINGS,
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
    "added_tokens.json",
    "special_tokens_map.json",
)
# How texts were last padded or cut, or where the files came from: not which tokenizer it is.
_STATE = {
    "tokenizer.json": {"padding", "truncation"},
    "tokenizer_config.json": {
        "name_or_path",
        "is_local",
        "local_files_only",
        "tokenizer_file",
        "transformers_version",
        "padding",
        "truncation",
        "padding_side",
        "truncation_side",
        "max_length",
        "model_max_length",
        "stride",
        "pad_to_multiple_of",
        "pad_token_type_id",
        "truncation_strategy",
    },
}

# Formats that hold a tokenizer, or have one of their own form beside them.
_WITH_TOKENIZER = (GGUFModel, GPT2Bundle)
_LOADED = 4  # tokenizers that a process keeps
_loaded: dict[tuple[tuple[str, str], ...], Any] = {}
_digests: dict[
    tuple[str, str], str
] = {}  # of files by name, and a digest of all that they hold


def file_digests(folder: Path) -> dict[str, str]:
    """Return ``{file name: digest}`` of the tokenizer files in `folder`.

    Raises
    ------
    CheckpointError
        If one of them is deleted while it is read.
    """
    return {name: _digest(folder / name) for name in _files_in(folder)}


def _files_in(folder: Path) -> list[str]:
    return [name for name in _FILES if (folder / name).is_file()]


def _digest(path: Path) -> str:
    try:
        return _digest_of(path, stamp_of(path.stat()))
    except FileNotFoundError:
        raise CheckpointError(f"{path} is gone.") from None


@lru_cache(maxsize=4096)
def _digest_of(path: Path, stamp: tuple[int, ...]) -> str:
    content = path.read_bytes()
    key = path.name, hashlib.blake2b(content, digest_size=16).hexdigest()
    # Most files of a run are copies: a large one is parsed once.
    if key not in _digests:
        _digests[key] = _digest_of_content(path.name, content)
    return _digests[key]


def _digest_of_content(name: str, content: bytes) -> str:
    if name.endswith(".json"):
        try:
            data = json.loads(content)
        except (ValueError, RecursionError):
            data = None
        if isinstance(data, dict):
            state = _STATE.get(name, set())
            fields = {key: value for key, value in data.items() if key not in state}
            content = json.dumps(fields, sort_keys=True).encode()
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def tokenizer_files(checkpoint: Checkpoint) -> dict[str, str]:
    """Return ``{file name: digest}`` of a checkpoint's tokenizer; that of the Hub is fetched."""
    checkpoint = checkpoint.home
    if checkpoint.source is not None:
        for name in _listed_files(checkpoint.source):
            checkpoint.source.fetch(name)
    return {} if checkpoint.path is None else file_digests(checkpoint.path)


def _listed_files(source: HubRevision) -> dict[str, str]:
    listing = source.listing()
    return {name: listing[name].digest for name in _FILES if name in listing}


def changed_files(
    checkpoints: Iterable[Checkpoint],
) -> list[tuple[int, int, list[str]]]:
    """Return ``(step before, step, changed files)`` wherever a tokenizer differs from the last.

    Checkpoints without tokenizer files are passed over. Of the Hub, files are fetched only where
    the listings differ, to see whether what differs matters.
    """
    holders = [c.home for c in checkpoints if _has_tokenizer(c.home)]
    changed = []
    for before, after in itertools.pairwise(holders):
        if _listed_alike(before, after):
            continue
        old = tokenizer_files(before)
        new = tokenizer_files(after)
        names = sorted(
            name for name in old.keys() | new.keys() if old.get(name) != new.get(name)
        )
        if names:
            changed.append((before.step, after.step, names))
    return changed


def _listed_alike(one: Checkpoint, other: Checkpoint) -> bool:
    if one.source is None or other.source is None:
        return False
    return _listed_files(one.source) == _listed_files(other.source)


def _has_tokenizer(checkpoint: Checkpoint) -> bool:
    if checkpoint.source is not None:
        return bool(_listed_files(checkpoint.source))
    return checkpoint.path is not None and bool(_files_in(checkpoint.path))


def load_tokenizer(root: Path | None, checkpoints: tuple[Checkpoint, ...]) -> Any:
    """Return the tokenizer of the run folder, else that of its checkpoints, else None.

    Raises
    ------
    CheckpointError
        If the checkpoints hold different tokenizers, or the files cannot be read.
    """
    if root is not None and (place := _beside(root)) is not None:
        return _read_once(place)
    list_files(c.home.source for c in checkpoints if c.home.source is not None)
    # Of adapters it is the one that they were saved with, which may know more than the base's.
    adapted = [
        replace(c, derived=None)
        for c in checkpoints
        if c.derived is not None and c.path
    ]
    own = [c for c in adapted if c.path is not None and (c.path / _SETTINGS).is_file()]
    holders = own or [c.home for c in checkpoints if _has_tokenizer(c.home)]
    # A loop that saves models alone leaves the tokenizer with the base.
    holders = holders or [s for s in checkpoints[0].sources if _has_tokenizer(s)]
    if not holders:
        if root is not None and (place := _beside(root.parent)) is not None:
            return _read_once(place)
        template = checkpoints[-1].home.template
        return template.tokenizer() if isinstance(template, _WITH_TOKENIZER) else None
    _, step, names = next(iter(changed_files(holders)), (0, 0, []))
    if names:
        raise CheckpointError(
            f"the tokenizer changes at step {step} ({', '.join(names)}), so no single one "
            "belongs to all checkpoints; select steps with the same one, or pass tokenizer=."
        )
    last = holders[-1]
    tokenizer_files(last)
    last.configuration()  # transformers reads the model type from it
    assert last.path is not None
    return _read_once(last.path)


def _beside(root: Path) -> Path | None:
    """Return a folder, or the one in it that is called so, where it holds a tokenizer."""
    return next(
        (place for place in (root, root / "tokenizer") if _files_in(place)), None
    )


def _read_once(folder: Path) -> Any:
    """Return the tokenizer of a folder. A large one takes seconds, so equal ones are read once."""
    others = (
        p.name
        for p in folder.iterdir()
        if p.suffix in (".jinja", ".model", ".spm", ".txt")
    )
    paths = [folder / name for name in sorted({*_FILES, "config.json", *others})]
    files = tuple(
        (p.name, _content_of(p, stamp_of(p.stat()))) for p in paths if p.is_file()
    )
    if files not in _loaded:
        while len(_loaded) >= _LOADED:
            _loaded.pop(next(iter(_loaded)))
        _loaded[files] = named_tokenizer(folder)
    return _loaded[files]


@lru_cache(maxsize=4096)
def _content_of(path: Path, stamp: tuple[int, ...]) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def named_tokenizer(name: str | Path) -> Any:
    """Return the tokenizer of a folder or of a repository on the Hub; its code is not run.

    Raises
    ------
    CheckpointError
        If there is none, or it cannot be read.
    """
    from transformers import AutoTokenizer

    local = isinstance(name, Path)
    if isinstance(name, Path) and _files_in(name) == ["vocab.json"]:
        # Transformers would want merges.
        return vocabulary_tokenizer(name / "vocab.json")
    try:
        options = _configured(name) if isinstance(name, Path) else {}
        return AutoTokenizer.from_pretrained(
            name, local_files_only=local, trust_remote_code=False, **options
        )
    except Exception as error:
        # Any of transformers' reasons makes this tokenizer unreadable.
        where = f"in {name}" if local else f"{name!r}"
        raise CheckpointError(
            f"the tokenizer {where} cannot be read: {error}"
        ) from error


def _configured(folder: Path) -> dict[str, Any]:
    """Return a configuration by which transformers chooses the tokenizer of a folder, if it may.

    The class of a configuration counts only where the tokenizer's files do not name their own.
    Loading it brings half of transformers along, a fifth of what a study loads.
    """
    from transformers import PreTrainedConfig

    try:
        tokenizer, model = (
            json.loads((folder / name).read_text(encoding="utf-8"))
            for name in (_SETTINGS, "config.json")
        )
    except (OSError, ValueError):  # transformers says what is wrong, if anything is
        return {}
    if not all(isinstance(found, dict) for found in (tokenizer, model)):
        return {}
    if "auto_map" in tokenizer or not tokenizer.get("tokenizer_class"):
        return {}
    config = PreTrainedConfig(name_or_path=str(folder))
    for name in ("model_type", "model_name", "tokenizer_class"):
        if isinstance(model.get(name), str):
            setattr(config, name, model[name])
    return {"config": config}
