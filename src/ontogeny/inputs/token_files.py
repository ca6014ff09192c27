"""Token ids in files, as training loops write them: read without holding the file in memory."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError, check_whole
from .described import form_of_some
from .id_formats import reading_of
from .scoring import IGNORED

log = logging.getLogger("ontogeny.inputs")

_NEAR = 32  # tokens by which a text of a stream begins later, where a word does
TOKEN_FILES = (".npy", ".bin", ".pt")

_NUMPY = b"\x93NUMPY"
_ZIP = b"PK\x03\x04"


def read_tokens(
    path: str | Path,
    max_length: int = 128,
    max_texts: int | None = None,
    dtype: str | None = None,
    vocab_size: int | None = None,
) -> np.ndarray:
    """Return texts of token ids from a file, (texts, max_length) or shorter rows, int64.

    A long stream of ids is cut at every `max_length` tokens, and `max_texts` of these pieces are
    taken at even distances from all over it. Rows of a table are texts; the first are taken.

    Parameters
    ----------
    path
        A ``.npy`` file with one or two dimensions, a ``.bin`` file of ids alone, as nanoGPT
        writes, or with the header of llm.c or the index of Megatron, or a ``.pt`` file of one
        tensor, or of one called ``input_ids``, perhaps with its ``attention_mask``.
    max_length
        Tokens of a text.
    max_texts
        How many texts; None takes all.
    dtype
        What a ``.bin`` file holds: ``"uint16"``, ``"uint32"``, ``"int32"``, ``"int64"`` or
        ``"uint8"``, of big-endian bytes as ``"uint16-be"``. It is taken as said. None: what the
        header says, else the only one of them whose ids fit.
    vocab_size
        Number of ids of the vocabulary, which distinguishes readings; None if unknown.

    Raises
    ------
    ArgumentError
        If the file is missing, holds no whole numbers, or fewer than `max_length` of them; if it
        is of another type than `dtype`, or can be read as several.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "val.bin"
    >>> np.arange(20, dtype=np.uint16).tofile(file)
    >>> read_tokens(file, max_length=4, max_texts=2).tolist()
    [[0, 1, 2, 3], [16, 17, 18, 19]]
    """
    file = open_tokens(path, dtype, vocab_size)
    texts = file.texts(max_length, max_texts)
    if len({len(text) for text in texts}) > 1:
        raise ArgumentError(
            f"{path} holds texts of several lengths, by its attention_mask; read them with "
            "Inputs.coerce(torch.load(path))."
        )
    return np.stack(texts)


@dataclass(frozen=True)
class TokenFile:
    """An opened file of ids.

    Attributes
    ----------
    path
        The file.
    ids
        Its ids in one dimension, or as a table whose rows are texts; memory-mapped if it can be.
    words
        How a bare file is read, and why; empty where the file says it itself.
    mask
        Of a table, False at padding; None where nothing says that there is any.
    """

    path: Path
    ids: Any
    words: str = ""
    mask: np.ndarray | None = None

    def starts(
        self,
        max_length: int,
        max_texts: int | None = None,
        pieces: Sequence[str] | None = None,
    ) -> np.ndarray | None:
        """Return where the texts of a stream begin (texts,); None of a table, whose rows they are.

        With the `pieces` of ids each begins at a word, where the next text leaves room for it.

        Examples
        --------
        >>> ids = np.array([0, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2])
        >>> stream = TokenFile(Path("val.bin"), ids)
        >>> stream.starts(2, 3).tolist()
        [0, 4, 10]
        >>> stream.starts(2, 3, ["a", " b", "c"]).tolist()
        [0, 5, 10]
        """
        check_whole("max_length", max_length, 2)
        if max_texts is not None:
            check_whole("max_texts", max_texts)
        if self.mask is not None or self.ids.ndim == 2:
            return None
        whole = len(self.ids) // max_length
        if not whole:
            raise ArgumentError(
                f"{self.path} holds {len(self.ids)} tokens, fewer than max_length={max_length}."
            )
        count = whole if max_texts is None else min(max_texts, whole)
        parts = np.unique(np.linspace(0, whole - 1, count).round().astype(np.int64))
        starts = parts * max_length
        if pieces is None:
            return starts
        room = np.diff(starts, append=len(self.ids)) - max_length
        moved = [
            self._at_word(*place, pieces)
            for place in zip(starts.tolist(), room.tolist(), strict=True)
        ]
        return np.array(moved)

    def _at_word(self, start: int, room: int, pieces: Sequence[str]) -> int:
        """Return the first place from `start` on where a word begins, `start` if none is near."""
        first = max(start - 1, 0)
        ids = self.ids[first : start + min(room, _NEAR) + 1].tolist()
        if not start or max(ids) >= len(pieces):
            return start
        there = [pieces[i] for i in ids]
        for place, (before, piece) in enumerate(pairwise(there), start):
            word = piece.lstrip()
            if word and (word != piece or before[-1:].isspace()):
                return place
        return start

    def texts(
        self,
        max_length: int,
        max_texts: int | None = None,
        starts: np.ndarray | None = None,
    ) -> list[np.ndarray]:
        """Return texts without padding, of at most `max_length` tokens each, int64.

        Those of a stream begin at `starts`, by default where `starts` says without pieces.
        """
        if starts is None:
            starts = self.starts(max_length, max_texts)
        ids = self.ids
        if self.mask is not None:
            pairs = zip(ids[:max_texts], self.mask[:max_texts], strict=True)
            return [row[mask][:max_length].astype(np.int64) for row, mask in pairs]
        if ids.ndim == 2:
            return list(np.asarray(ids[:max_texts, :max_length]).astype(np.int64))
        assert starts is not None
        return list(
            np.asarray(ids[starts[:, None] + np.arange(max_length)]).astype(np.int64)
        )

    def cut(self, max_length: int, count: int) -> list[int]:
        """Return how many tokens of each text are cut off; a stream is divided, not cut."""
        if self.ids.ndim == 1:
            return [0] * count
        whole = np.ones_like(self.ids, dtype=bool) if self.mask is None else self.mask
        return np.maximum(whole[:count].sum(axis=1) - max_length, 0).tolist()


def open_tokens(
    path: str | Path,
    dtype: str | None = None,
    vocab_size: int | None = None,
    bound: int | None = None,
) -> TokenFile:
    """Return an opened file of token ids.

    Parameters
    ----------
    path, dtype, vocab_size
        As in `read_tokens`.
    bound
        What every id is below, where `vocab_size` is unknown.

    Raises
    ------
    ArgumentError
        As `read_tokens`.
    """
    path = Path(path)
    if not path.is_file():
        raise ArgumentError(f"there is no file {path}.")
    if path.suffix not in TOKEN_FILES:
        raise ArgumentError(
            f"tokens come from {', '.join(TOKEN_FILES)} files; got {path}."
        )
    words = ""
    mask = None
    # What a file is shows in its first bytes: some save arrays under the name of bare ids.
    begin = _begin(path)
    if path.suffix == ".pt" or (path.suffix == ".bin" and begin.startswith(_ZIP)):
        ids, mask = _saved(path)
    elif path.suffix == ".npy" or begin == _NUMPY:
        ids = _array(path)
    else:
        reading = reading_of(path, dtype, vocab_size, bound)
        ids = reading.mapped(path)
        words = reading.words
    if ids.ndim not in (1, 2) or not np.issubdtype(ids.dtype, np.integer):
        raise ArgumentError(
            f"{path} must hold whole numbers in one or two dimensions; got {ids.dtype} in "
            f"{ids.ndim}."
        )
    if dtype is not None and not words and ids.dtype.name != dtype.removesuffix("-be"):
        raise ArgumentError(
            f"{path} says itself that it holds {ids.dtype.name}; dtype={dtype} was said. dtype is "
            "for .bin files without a header."
        )
    return TokenFile(path, ids, words, mask)


def form_of_files(files: Sequence[TokenFile], texts: Sequence[np.ndarray]) -> str:
    """Return how bare files are read, and of how many rows or ids texts are, where not of all.

    Examples
    --------
    >>> stream = TokenFile(Path("val.bin"), np.arange(1000), "uint16")
    >>> form_of_files([stream], stream.texts(64, 2))
    'evenly spread pieces of 1,000 ids, ids of uint16'
    """
    counts = {
        size: sum(len(file.ids) for file in files if file.ids.ndim == size)
        for size in (1, 2)
    }
    if counts[1]:
        is_part = sum(map(len, texts)) < counts[1]
        part = f"evenly spread pieces of {counts[1]:,} ids" if is_part else ""
    else:
        each = "the first of each file, of" if len(files) > 1 else "the first of"
        part = form_of_some(len(texts), counts[2], "", each)
    types = "; ".join(dict.fromkeys(file.words for file in files if file.words))
    return ", ".join(filter(None, [part, types and f"ids of {types}"]))


def labels_beside(path: Path, tokens: TokenFile) -> TokenFile:
    """Return the labels of opened ids: an array of the same form, or ``labels`` of a ``.pt`` file.

    Raises
    ------
    ArgumentError
        If there is no such file, it holds no labels, or as many as there are ids.
    """
    if not path.is_file():
        raise ArgumentError(f"token_labels: there is no file {path}.")
    if path == tokens.path and path.suffix != ".pt":
        raise ArgumentError(
            f"score='labels': {path} holds ids alone; name an array of labels beside them, "
            f"{IGNORED} where a token is not asked for (--token-labels FILE)."
        )
    if path.suffix == ".npy":
        labels = _array(path)
    elif path.suffix == ".pt":
        labels, _ = _saved(path, "labels")
    else:
        raise ArgumentError(f"token_labels come from .npy or .pt files; got {path}.")
    if labels.shape != tokens.ids.shape:
        raise ArgumentError(
            f"token_labels of {path} have shape {labels.shape}, and the ids of {tokens.path} "
            f"{tokens.ids.shape}: one label for each id is needed."
        )
    if labels.dtype == bool:  # a mask of what is asked for
        labels = np.where(labels, tokens.ids, IGNORED)
    return TokenFile(path, labels)


def _begin(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(_NUMPY))


def _array(path: Path) -> np.ndarray:
    try:
        ids = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ArgumentError(f"{path} is not a readable .npy file: {error}") from None
    if not isinstance(ids, np.ndarray):
        raise ArgumentError(
            f"{path} is an .npz archive of {', '.join(ids)}; save one as .npy."
        )
    return ids


def _saved(path: Path, name: str = "input_ids") -> tuple[np.ndarray, np.ndarray | None]:
    """Return the array of a file of torch.save, and its mask of tokens; no code in it runs."""
    import torch  # not with this module: token ids of other files need none of it

    try:
        held = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # what a damaged or foreign pickle raises is of many kinds
        held = None
    table = held if isinstance(held, Mapping) else {name: held}
    array = table.get(name)
    refused = (torch.bfloat16, torch.bool) if name == "input_ids" else (torch.bfloat16,)
    if not isinstance(array, torch.Tensor) or array.dtype in refused:
        what = "token ids" if name == "input_ids" else "labels"
        raise ArgumentError(
            f"{path} holds no tensor of {what}, also none called {name!r}; save one, or .npy."
        )
    if name == "input_ids" and table.get("labels") is not None:
        log.warning(
            "%s: a loss is of every token; score='labels' is of its labels alone.", path
        )
    mask = table.get("attention_mask")
    if mask is None:
        return array.numpy(), None
    if (
        not isinstance(mask, torch.Tensor)
        or mask.shape != array.shape
        or array.ndim != 2
    ):
        raise ArgumentError(
            f"{path} holds an attention_mask of another shape than its {name}."
        )
    return array.numpy(), mask.bool().numpy()
