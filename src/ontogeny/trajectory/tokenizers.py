"""The tokenizer files of a run: where they are, what they say, whether they change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CheckpointError

if TYPE_CHECKING:
    from .checkpoint import Checkpoint

__all__ = ["changed_files", "file_digests", "load_tokenizer"]

_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
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
    },
}


def file_digests(folder: Path) -> dict[str, str]:
    """Return ``{file name: digest}`` of the tokenizer files in `folder`."""
    return {name: _digest(folder / name) for name in _FILES if (folder / name).is_file()}


def _digest(path: Path) -> str:
    content = path.read_bytes()
    if path.suffix == ".json":
        try:
            data = json.loads(content)
        except ValueError:
            data = None
        if isinstance(data, dict):
            state = _STATE.get(path.name, set())
            kept = {key: value for key, value in data.items() if key not in state}
            content = json.dumps(kept, sort_keys=True).encode()
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def changed_files(checkpoints: Iterable[Checkpoint]) -> list[tuple[int, int, list[str]]]:
    """Return ``(step before, step, changed files)`` wherever a tokenizer differs from the last.

    Checkpoints without tokenizer files are passed over.
    """
    changed = []
    before: dict[str, str] = {}
    step_before = -1
    for checkpoint in checkpoints:
        files = file_digests(checkpoint.path) if checkpoint.path is not None else {}
        if not files:
            continue
        names = sorted(n for n in before.keys() | files.keys() if before.get(n) != files.get(n))
        if before and names:
            changed.append((step_before, checkpoint.step, names))
        before, step_before = files, checkpoint.step
    return changed


def load_tokenizer(root: Path, checkpoints: tuple[Checkpoint, ...]) -> Any:
    """Return the tokenizer of the run folder, else that of its checkpoints, else None.

    Raises
    ------
    CheckpointError
        If the checkpoints hold different tokenizers, or the files cannot be read.
    """
    folders = [c.path for c in checkpoints if c.path is not None and file_digests(c.path)]
    if file_digests(root):
        folder = root
    elif folders:
        _, step, names = next(iter(changed_files(checkpoints)), (0, 0, []))
        if names:
            raise CheckpointError(
                f"the tokenizer changes at step {step} ({', '.join(names)}), so no single one "
                "belongs to all checkpoints; select steps with the same one, or pass tokenizer=."
            )
        folder = folders[-1]
    else:
        return None
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # any of transformers' reasons makes this tokenizer unreadable
        raise CheckpointError(f"the tokenizer in {folder} cannot be read: {error}") from error
