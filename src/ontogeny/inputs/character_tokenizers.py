"""Tokenizers of characters."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ArgumentError

# Where nanoGPT and its like keep the characters, beside the token ids.
CHARACTER_FILES = ("meta.pkl", "vocab.json")


class _Plain(pickle.Unpickler):
    """Reads dicts, lists, texts and numbers; a pickle that names anything else is refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(
            f"it holds a {module}.{name}, whose code is not run"
        )


def character_tokenizer(path: Path) -> Any:
    """Return the fast tokenizer of the characters in a ``meta.pkl`` or ``vocab.json``.

    Raises
    ------
    ArgumentError
        If the file cannot be read, or gives no id to each of some characters.
    """
    try:
        with path.open("rb") as file:
            content = json.load(file) if path.suffix == ".json" else _Plain(file).load()
    except Exception as error:  # damaged pickles raise anything
        raise ArgumentError(f"{path} cannot be read: {error}") from None
    table = content.get("stoi", content) if isinstance(content, Mapping) else {}
    ids = (
        sorted(table.values())
        if all(isinstance(i, int) for i in table.values())
        else []
    )
    if (
        not ids
        or ids != list(range(len(ids)))
        or any(len(str(token)) != 1 for token in table)
    ):
        raise ArgumentError(
            f"{path} must give each character an id from 0 on, as nanoGPT's meta.pkl under 'stoi'; "
            "for other vocabularies give --tokenizer FILE:NAME."
        )
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    plain = Tokenizer(models.WordLevel(dict(table), unk_token=""))
    plain.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    plain.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=plain, clean_up_tokenization_spaces=False
    )
