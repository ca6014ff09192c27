"""Token ids in files, as training loops write them: read without holding the file in memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError, check_choice, check_whole

DTYPES = ("uint16", "uint32", "int32", "int64")
TOKEN_FILES = (".npy", ".bin", ".pt")

_LOOKED = 4096  # ids
_HIGH = 7  # the upper 16 bits of an id of the largest vocabulary there is
_LARGEST = 2**20  # ids of a vocabulary


def read_tokens(
    path: str | Path, max_length: int = 128, max_texts: int | None = None, dtype: str = "uint16"
) -> np.ndarray:
    """Return texts of token ids from a file, (texts, max_length) or shorter rows, int64.

    A long stream of ids is cut at every `max_length` tokens, and `max_texts` of these pieces are
    taken at even distances from all over it. Rows of a table are texts; the first are taken.

    Parameters
    ----------
    path
        A ``.npy`` file with one or two dimensions, a ``.bin`` file without a header, as nanoGPT
        writes, or a ``.pt`` file of one tensor, or of one called ``input_ids``.
    max_length
        Tokens of a text.
    max_texts
        How many texts; None takes all.
    dtype
        What a ``.bin`` file holds; other files say so themselves.

    Raises
    ------
    ArgumentError
        If the file is missing, holds no whole numbers, or fewer than `max_length` of them.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "val.bin"
    >>> np.arange(20, dtype=np.uint16).tofile(file)
    >>> read_tokens(file, max_length=4, max_texts=2).tolist()
    [[0, 1, 2, 3], [16, 17, 18, 19]]
    """
    path = Path(path)
    check_whole("max_length", max_length, 2)
    if max_texts is not None:
        check_whole("max_texts", max_texts)
    ids = _mapped(path, dtype)
    if ids.ndim == 2:
        return np.asarray(ids[:max_texts, :max_length]).astype(np.int64)
    whole = len(ids) // max_length
    if not whole:
        raise ArgumentError(f"{path} holds {len(ids)} tokens, fewer than max_length={max_length}.")
    count = whole if max_texts is None else min(max_texts, whole)
    pieces = np.unique(np.linspace(0, whole - 1, count).round().astype(np.int64))
    starts = pieces[:, None] * max_length
    return np.asarray(ids[starts + np.arange(max_length)]).astype(np.int64)


def _other_dtype(ids: np.ndarray, dtype: str) -> str:
    """Return the dtype that ids are of if they were read as another, else nothing.

    Of wider numbers, read as narrow ones, every second is 0, or nearly so where a vocabulary has
    more ids than 16 bits hold; of narrow ones, read as wide, nearly all are beyond any vocabulary.
    """
    bits = 8 * np.dtype(dtype).itemsize
    if len(ids) >= 64 and bits < 64:
        low, high = int(ids[::2].max()), int(ids[1::2].max())
        fits = high == 0 < low or (high <= _HIGH and low > 1000)
        if fits and bits == 16 and not ids[2::4].any() and ids[::4].any():
            return "int64"
        if fits:
            return "uint32" if bits == 16 else "int64"
    beyond = len(ids) > 0 and int(np.median(ids)) > _LARGEST
    return "uint16" if beyond and bits > 16 else ""


def _mapped(path: Path, dtype: str) -> Any:
    """Return the ids, memory-mapped."""
    if not path.is_file():
        raise ArgumentError(f"there is no file {path}.")
    if path.suffix not in TOKEN_FILES:
        raise ArgumentError(f"tokens come from {', '.join(TOKEN_FILES)} files; got {path}.")
    if path.suffix == ".pt":
        ids = _saved(path)
    elif path.suffix == ".npy":
        try:
            ids = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise ArgumentError(f"{path} is not a readable .npy file: {error}") from None
        if not isinstance(ids, np.ndarray):
            raise ArgumentError(f"{path} is an .npz archive of {', '.join(ids)}; save one as .npy.")
    else:
        check_choice("dtype", dtype, DTYPES)
        size = path.stat().st_size
        if not size or size % np.dtype(dtype).itemsize:
            raise ArgumentError(
                f"{path} has {size} bytes, which are no {dtype}; give dtype, one of "
                f"{', '.join(DTYPES)}."
            )
        ids = np.memmap(path, dtype=dtype, mode="r")
        if fitting := _other_dtype(np.asarray(ids[:_LOOKED]), dtype):
            raise ArgumentError(
                f"{path} is not of {dtype}: read as such, its first ids are "
                f"{', '.join(map(str, ids[:6].tolist()))}. It is of {fitting}: "
                f"--set inputs.dtype={fitting}."
            )
    if ids.ndim not in (1, 2) or not np.issubdtype(ids.dtype, np.integer):
        raise ArgumentError(
            f"{path} must hold whole numbers in one or two dimensions; got {ids.dtype} in "
            f"{ids.ndim}."
        )
    return ids


def _saved(path: Path) -> np.ndarray:
    """Return the ids of a file of torch.save; no code in it runs."""
    import torch  # not with this module: token ids of other files need none of it

    try:
        ids = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # what a damaged or foreign pickle raises is of many kinds
        ids = None
    ids = ids.get("input_ids") if isinstance(ids, Mapping) else ids
    if not isinstance(ids, torch.Tensor) or ids.dtype in (torch.bfloat16, torch.bool):
        raise ArgumentError(
            f"{path} holds no tensor of token ids, also none called 'input_ids'; save one, or .npy."
        )
    return ids.numpy()
