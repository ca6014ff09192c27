"""How each id of a vocabulary is written: the piece of text that it stands for."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..characters import in_words, shown
from ..errors import ArgumentError, check_type
from .tokens import Inputs

__all__ = ["in_words", "pieces_of", "pieces_of_texts", "shown"]

_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # of SentencePiece
_BYTE = re.compile(r"^<0x([0-9A-Fa-f]{2})>$")
_LONE_BYTE = re.compile("[\udc80-\udcff]")
_SEEN = 20  # occurrences of an id that are looked at


def pieces_of(tokenizer: Any) -> list[str]:
    r"""Return how every id of a tokenizer's vocabulary is written, added tokens included.

    The pieces of a text, joined, read as the text: a space before a word is a space of its piece.
    Marks of word pieces (``Ġ``, ``##``, ``▁``, ``</w>``) are read as what they stand for. Bytes
    that are no whole character are written ``<0xE2>``. Added and special tokens are written as
    they are. BERT's vocabulary does not tell whether a space stands before a mark: none is shown.

    Parameters
    ----------
    tokenizer
        A Hugging Face tokenizer: byte-level BPE, WordPiece, SentencePiece (Unigram, or BPE with
        bytes), BPE with an end of words, or words; fast or slow.

    Returns
    -------
    list of str
        The piece of id i at place i. An id below the largest that has no token is written as its
        digits.

    Raises
    ------
    ArgumentError
        If `tokenizer` has no vocabulary.

    Examples
    --------
    >>> from ontogeny.tasks import train_tokenizer
    >>> tokenizer = train_tokenizer(["the cat sat on the mat"] * 4, vocab_size=300)
    >>> pieces = pieces_of(tokenizer)
    >>> [pieces[i] for i in tokenizer("the cat é").input_ids]
    ['<|bos|>', 'the', ' cat', ' ', '<0xC3>', '<0xA9>', '<|eos|>']
    """
    if not hasattr(tokenizer, "get_vocab") or not hasattr(tokenizer, "all_special_ids"):
        raise ArgumentError(
            f"tokenizer must be a Hugging Face tokenizer; got {type(tokenizer).__name__}."
        )
    vocabulary: Mapping[str, int] = tokenizer.get_vocab()
    added = {
        *tokenizer.all_special_ids,
        *getattr(tokenizer, "added_tokens_decoder", ()),
    }
    read = _reader(
        tokenizer, [token for token, i in vocabulary.items() if i not in added]
    )
    pieces = [str(i) for i in range(max(vocabulary.values(), default=-1) + 1)]
    for token, i in vocabulary.items():
        pieces[i] = token if i in added else read(token)
    return pieces


Read = Callable[[str], str]


def _reader(tokenizer: Any, tokens: list[str]) -> Read:
    """Return what turns an ordinary token of this vocabulary into its piece."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    parts = {part["type"]: part for part in _parts(backend)}
    if hasattr(tokenizer, "byte_decoder") or "ByteLevel" in parts:
        return _byte_level(
            getattr(backend and backend.model, "end_of_word_suffix", None) or ""
        )
    if "WordPiece" in parts:
        return _word_pieces(parts["WordPiece"]["prefix"])
    if "BPEDecoder" in parts:
        return _ended_words(parts["BPEDecoder"]["suffix"])
    if "Metaspace" in parts:
        return _sentence_pieces(parts["Metaspace"]["replacement"])
    if parts.keys() == {"Fuse", "Split"}:  # a vocabulary of characters and marks
        return str
    return _by_marks(tokens)


def _parts(backend: Any) -> Iterator[dict[str, Any]]:
    """Give the parts of a fast tokenizer that join tokens or split texts, as plain data."""
    for whole in (
        getattr(backend, "decoder", None),
        getattr(backend, "pre_tokenizer", None),
    ):
        if whole is not None:
            part = json.loads(whole.__getstate__())
            inner = part.get("decoders", part.get("pretokenizers"))
            yield from [part] if inner is None else inner


def _by_marks(tokens: list[str]) -> Read:
    """Return the reader of the convention that most tokens follow."""
    counts = {
        "▁": sum(_SPACE in token for token in tokens),
        "##": sum(token.startswith("##") and len(token) > 2 for token in tokens),
        "</w>": sum(token.endswith("</w>") for token in tokens),
    }
    mark = max(counts, key=lambda name: counts[name])
    if counts[mark]:
        return {"▁": _sentence_pieces, "##": _word_pieces, "</w>": _ended_words}[mark](
            mark
        )
    if {*tokens} == {chr(byte) for byte in range(256)}:
        return lambda token: token if token < "\x80" else f"<0x{ord(token):02X}>"
    if max(map(len, tokens), default=0) <= 1:
        return str  # characters
    return _word_pieces("##")


def _byte_level(suffix: str) -> Read:
    """Read tokens whose characters stand for bytes (Radford et al. 2019)."""
    # Imported here: transformers takes seconds to load, and who has a tokenizer has loaded it.
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    bytes_of = str.maketrans({c: chr(byte) for byte, c in bytes_to_unicode().items()})
    known = "".join(map(chr, bytes_of))

    def read(token: str) -> str:
        word = token.removesuffix(suffix)
        if word.strip(known):
            return token
        text = (
            word.translate(bytes_of)
            .encode("latin-1")
            .decode("utf-8", "surrogateescape")
        )
        text = _LONE_BYTE.sub(lambda byte: f"<0x{ord(byte[0]) - 0xDC00:02X}>", text)
        return text + (" " if word != token else "")

    return read


def _sentence_pieces(space: str) -> Read:
    """Read tokens with `space` for a space; bytes below 128 are characters."""

    def read(token: str) -> str:
        if (byte := _BYTE.match(token)) and int(byte[1], 16) < 128:
            return chr(int(byte[1], 16))
        return token.replace(space, " ")

    return read


def _word_pieces(prefix: str) -> Read:
    """Read tokens that start a word unless they have the `prefix`."""

    def read(token: str) -> str:
        if token.startswith(prefix) and len(token) > len(prefix):
            return token.removeprefix(prefix)
        return f" {token}" if _starts_a_word(token) else token

    return read


def _starts_a_word(token: str) -> bool:
    return token[:1].isalnum() and not unicodedata.name(token[0], "").startswith("CJK ")


def _ended_words(suffix: str) -> Read:
    """Read tokens that end a word where they have the `suffix`."""
    return lambda token: re.sub(f"{re.escape(suffix)}$", " ", token)


def spelled(inputs: Inputs, pieces: Sequence[str] | None) -> Inputs:
    """Return token ids with their texts, where each of them stands for one character.

    So it is of nanoGPT's ``val.bin`` with its ``meta.pkl``; any other inputs are as they were. What
    speaks of words, of characters and of contexts then does so as of a file of text.

    Parameters
    ----------
    inputs
        Texts of token ids, without their characters.
    pieces
        How each id is written, or None where that is not known.
    """
    if pieces is None or inputs.texts is not None:
        return inputs
    used = np.unique(inputs.ids[inputs.ordinary])
    if not len(used) or used[-1] >= len(pieces):
        return inputs
    if any(len(pieces[i]) != 1 for i in used.tolist()):
        return inputs
    ordinary = inputs.ordinary
    stop = np.cumsum(ordinary, axis=1)
    spans = np.stack([stop - ordinary, stop], axis=-1)
    texts = [
        "".join(pieces[i] for i in row[mask].tolist())
        for row, mask in zip(inputs.ids, ordinary, strict=True)
    ]
    return replace(inputs, spans=spans, texts=tuple(texts))


def pieces_of_texts(inputs: Inputs) -> list[str]:
    """Return how every id is written, from the texts that it occurs in.

    For what has no tokenizer. A piece is what the token covers in its text, with a space before
    it where white space stands there, unless tokens are characters; of several forms the most
    frequent one among the first 20 places, of equally frequent ones the longest. Tokens that share
    a character (the bytes of an emoji) show no piece.

    Parameters
    ----------
    inputs
        Texts with tokens. Without spans or texts every id is written as its digits.

    Returns
    -------
    list of str
        The piece of id i at place i, up to the size of the vocabulary, else to the largest id.
        Special tokens and ids that do not occur are written as their digits.

    Raises
    ------
    ArgumentError
        If `inputs` is no :class:`ontogeny.Inputs`.

    Examples
    --------
    >>> pieces_of_texts(Inputs.from_tokens([[2, 0]], vocab_size=4))
    ['0', '1', '2', '3']
    """
    check_type("inputs", inputs, Inputs)
    size = max(inputs.vocab_size or 0, int(inputs.ids.max()) + 1)
    pieces = [str(i) for i in range(size)]
    if inputs.spans is None or inputs.texts is None:
        return pieces
    forms: dict[int, Counter[str]] = {}
    has_spaces = inputs.is_spelled  # which are tokens themselves
    for text, column in np.argwhere(_first_places(inputs.ids, _alone(inputs))).tolist():
        start, stop = inputs.spans[text, column].tolist()
        whole = inputs.texts[text]
        form = whole[start:stop] if has_spaces else _covered(whole, start, stop)
        forms.setdefault(int(inputs.ids[text, column]), Counter())[form] += 1
    for i, counted in forms.items():
        pieces[i] = max(counted, key=lambda form: (counted[form], len(form)))
    return pieces


def _alone(inputs: Inputs) -> np.ndarray:
    """Return (n, L) where a token covers characters that no other token of its text covers."""
    start = inputs.spans[..., 0]  # type: ignore[index]
    stop = inputs.spans[..., 1]  # type: ignore[index]
    ordinary = inputs.ordinary & (stop > start)
    reached = np.maximum.accumulate(np.where(ordinary, stop, 0), axis=1)
    shares = np.zeros_like(ordinary)
    shares[:, 1:] = ordinary[:, 1:] & (start[:, 1:] < reached[:, :-1])
    first = np.where(ordinary, start, np.iinfo(start.dtype).max)
    next_first = np.minimum.accumulate(first[:, ::-1], axis=1)[:, ::-1]
    shares[:, :-1] |= ordinary[:, :-1] & (stop[:, :-1] > next_first[:, 1:])
    return np.asarray(ordinary & ~shares)


def _first_places(ids: np.ndarray, usable: np.ndarray) -> np.ndarray:
    """Return (n, L) the first places of each id among the usable ones."""
    flat = np.flatnonzero(usable)
    order = flat[np.argsort(ids.ravel()[flat], kind="stable")]
    _, first, count = np.unique(
        ids.ravel()[order], return_index=True, return_counts=True
    )
    rank = np.arange(len(order)) - np.repeat(first, count)
    is_first = np.zeros(ids.size, dtype=bool)
    is_first[order[rank < _SEEN]] = True
    return is_first.reshape(ids.shape)


def _covered(text: str, start: int, stop: int) -> str:
    before = " " if start and text[start - 1].isspace() else ""
    return before + text[start:stop]
