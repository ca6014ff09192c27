"""Tokenizers of the vocabularies that stand beside token ids: of characters, marks or words."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ArgumentError

# Where nanoGPT and its like keep the vocabulary, beside the token ids.
VOCABULARY_FILES = ("meta.pkl", "vocab.json")
# Under which key of a file the entries may stand.
_KEYS = ("stoi", "itos", "token_to_id", "char_to_idx", "word2idx", "vocab")
_UNKNOWN = ("<unk>", "<UNK>", "[UNK]", "UNK", "unk")


class _Plain(pickle.Unpickler):
    """Reads dicts, lists, texts and numbers; a pickle that names anything else is refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(
            f"it holds a {module}.{name}, whose code is not run"
        )


def vocabulary_tokenizer(path: Path) -> Any:
    """Return the fast tokenizer of the entries in a ``meta.pkl`` or ``vocab.json``.

    A vocabulary of words cuts texts at white space, another one takes the longest entry that fits.
    Of token ids it only says how each is written.

    Raises
    ------
    ArgumentError
        If the file cannot be read, or gives no ids to entries.
    """
    try:
        with path.open("rb") as file:
            content = json.load(file) if path.suffix == ".json" else _Plain(file).load()
    except Exception as error:  # damaged pickles raise anything
        raise ArgumentError(f"{path} cannot be read: {error}") from None
    table = _entries(content)
    if not table:
        raise ArgumentError(
            f"{path} must give each of its entries another id, as nanoGPT's meta.pkl under 'stoi'; "
            "for other vocabularies give --tokenizer FILE:NAME."
        )
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    unknown = next((token for token in _UNKNOWN if token in table), None)
    plain = Tokenizer(models.WordLevel(table, unk_token=unknown or ""))
    if _are_words(table):
        plain.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        byte_level = "\u0120" in table  # of GPT-2, without its merges
        words = decoders.WordPiece(prefix="##", cleanup=False)
        plain.decoder = decoders.ByteLevel() if byte_level else words
    else:
        longest_first = sorted(table, key=len, reverse=True)
        marks = [re.escape(token) for token in longest_first if len(token) > 1]
        pattern = "|".join([*marks, r"[\s\S]"])
        plain.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
        plain.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=plain, unk_token=unknown, clean_up_tokenization_spaces=False
    )


def _entries(content: Any) -> dict[str, int]:
    """Return the id of each entry, however the file says it; empty where it does not."""
    if isinstance(content, Mapping):
        inner = next((content[key] for key in _KEYS if key in content), content)
        content = content if isinstance(inner, int) else inner  # a word `vocab`
    pairs: list[tuple[Any, Any]] = []
    if isinstance(content, list | tuple):
        pairs = list(zip(content, range(len(content)), strict=True))
    elif isinstance(content, Mapping):
        pairs = list(content.items())
        # From ids to entries; JSON writes the ids as texts.
        if all(isinstance(entry, str) for entry in content.values()):
            pairs = [
                (entry, int(i) if str(i).isdecimal() else i)
                for i, entry in content.items()
            ]
    table = {token: i for token, i in pairs if isinstance(token, str) and token}
    ids = [i for i in table.values() if type(i) is int and i >= 0]
    whole = bool(pairs) and len({*ids}) == len(pairs)
    return table if whole else {}


def _are_words(table: Mapping[str, int]) -> bool:
    """Return whether entries are words: most have several letters, and none has white space."""
    several = sum(len(token) > 1 for token in table)
    spaced = any(map(str.isspace, "".join(table)))
    return 2 * several > len(table) and not spaced
