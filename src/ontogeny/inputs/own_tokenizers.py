"""Tokenizers that are no Hugging Face tokenizers: of characters, and of a user's own class."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ArgumentError

CHARACTER_FILES = ("meta.pkl", "vocab.json")
"""Where nanoGPT and its like keep the characters, beside the token ids."""
CONTRACT = (
    "encode(text) gives a list of ids, decode(ids) gives text, and len(tokenizer), vocab_size or "
    "n_vocab says how many ids there are; special_ids may list ids that stand for no text"
)


class _Plain(pickle.Unpickler):
    """Reads dicts, lists, texts and numbers; a pickle that names anything else is refused."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it holds a {module}.{name}, whose code is not run")


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
    ids = sorted(table.values()) if all(isinstance(i, int) for i in table.values()) else []
    if not ids or ids != list(range(len(ids))) or any(len(str(token)) != 1 for token in table):
        raise ArgumentError(
            f"{path} must give each character an id from 0 on, as nanoGPT's meta.pkl under 'stoi'; "
            "for other vocabularies give --tokenizer FILE:NAME."
        )
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    plain = Tokenizer(models.WordLevel(dict(table), unk_token=""))
    plain.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    plain.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=plain, clean_up_tokenization_spaces=False)


def as_tokenizer(found: Any, named: str) -> Any:
    """Return what a user's file gives as a tokenizer: the tokenizer itself, or one in its place.

    Raises
    ------
    ArgumentError
        If it has not what a tokenizer needs; the message says what that is.
    """
    try:
        made = found() if isinstance(found, type) or not hasattr(found, "encode") else found
        if callable(made) and hasattr(made, "all_special_ids"):
            return made
        return OwnTokenizer(made)
    except Exception as error:  # whatever the user's code raises
        raise ArgumentError(
            f"{named} gives no tokenizer ({type(error).__name__}: {error}). It is a Hugging Face "
            f"tokenizer, or an object of which {CONTRACT}."
        ) from error


class OwnTokenizer:
    """A user's object with ``encode`` and ``decode``, as the library asks tokenizers.

    Examples
    --------
    >>> class Letters:
    ...     vocab_size = 26
    ...     encode = staticmethod(lambda text: [ord(letter) - 97 for letter in text])
    ...     decode = staticmethod(lambda ids: "".join(chr(97 + i) for i in ids))
    >>> tokenizer = OwnTokenizer(Letters())
    >>> tokenizer(["cab"])["input_ids"], tokenizer.pieces[:3], len(tokenizer)
    ([[2, 0, 1]], ['a', 'b', 'c'], 26)
    """

    is_fast = False
    mask_token_id = pad_token_id = eos_token_id = None

    def __init__(self, made: Any) -> None:
        self.made = made
        self.encode, self.decode = made.encode, made.decode
        size = getattr(made, "vocab_size", getattr(made, "n_vocab", None))
        self._size = int(len(made) if size is None else size)
        self.all_special_ids = [int(i) for i in getattr(made, "special_ids", ())]
        self.pieces = [self._piece(i) for i in range(self._size)]

    def _piece(self, token: int) -> str:
        try:
            return str(self.decode([token]))
        except (KeyError, IndexError, ValueError):  # an id that the vocabulary leaves out
            return str(token)

    def __len__(self) -> int:
        return self._size

    def num_special_tokens_to_add(self) -> int:
        """Return 0: what `encode` adds is in `all_special_ids`."""
        return 0

    def __call__(
        self, texts: Any, truncation: bool = False, max_length: int | None = None, **_: Any
    ) -> dict[str, Any]:
        """Return the ids of a text or of each of several."""
        if isinstance(texts, str):
            return {"input_ids": list(self.encode(texts))}
        length = max_length if truncation else None
        ids = [list(self.encode(text))[:length] for text in texts]
        special = [[int(i in self.all_special_ids) for i in row] for row in ids]
        return {"input_ids": ids, "special_tokens_mask": special}
