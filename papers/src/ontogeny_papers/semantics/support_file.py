"""Support matrices on disk: one file without pickle, read back as it was."""

from __future__ import annotations

import zipfile
from os import PathLike
from pathlib import Path

import numpy as np
from scipy import sparse

from ontogeny.errors import ArgumentError, check_type
from ontogeny.features.wordspace.support import ContextWords, Support

_PARTS = ("data", "indices", "indptr", "shape", "words", "word_ids", "contexts")


def save_support(support: Support, path: str | PathLike[str]) -> Path:
    """Write a support matrix to a NumPy ``.npz`` file and return its path.

    Parameters
    ----------
    support
        As of `support_matrix`; contexts of words outside the V words cannot be written.
    path
        Name of the file; ``.npz`` is added if it is missing.

    Raises
    ------
    ArgumentError
        If the contexts are not numbered by the words.

    Examples
    --------
    >>> import tempfile
    >>> from ontogeny import semantics
    >>> support = semantics.support_matrix("a b a c a b", lengths=1)
    >>> path = save_support(support, Path(tempfile.mkdtemp()) / "support")
    >>> load_support(path).words
    ('a', 'b', 'c')
    """
    check_type("support", support, Support)
    if not isinstance(support.contexts, ContextWords):
        raise ArgumentError(
            "support must come from a stream of tokens; the contexts of pairs may hold words "
            "outside its vocabulary."
        )
    place = _place(path)
    place = place if place.suffix == ".npz" else place.with_name(f"{place.name}.npz")
    counts = support.counts
    with place.open("wb") as file:
        np.savez_compressed(
            file,
            data=counts.data,
            indices=counts.indices,
            indptr=counts.indptr,
            shape=np.array(counts.shape),
            words=np.array(support.words, dtype=np.str_),
            word_ids=support.word_ids,
            contexts=support.contexts.ids,
        )
    return place


def load_support(path: str | PathLike[str]) -> Support:
    """Read a support matrix that `save_support` wrote.

    Raises
    ------
    ArgumentError
        If there is no such file, or it holds something else.

    Examples
    --------
    >>> load_support("nowhere.npz")
    Traceback (most recent call last):
    ...
    ontogeny.errors.ArgumentError: there is no support matrix nowhere.npz.
    """
    place = _place(path)
    try:
        # Opened here, because NumPy leaves a broken file open.
        with place.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            parts = {name: file[name] for name in _PARTS}
    except FileNotFoundError:
        raise ArgumentError(f"there is no support matrix {path}.") from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ArgumentError(f"{path} is no support matrix: {error}") from None
    V, m = (int(n) for n in parts["shape"])
    contexts = parts["contexts"]
    counts = sparse.csr_array(
        (parts["data"], parts["indices"], parts["indptr"]), shape=(V, m)
    )
    try:
        counts.check_format(full_check=True)
    except ValueError as error:
        raise ArgumentError(f"{path} is no support matrix: {error}") from None
    fit = len(parts["words"]) == len(parts["word_ids"]) == V and len(contexts) == m
    if not fit or contexts.max(initial=-1) >= V or (counts.data <= 0).any():
        raise ArgumentError(
            f"{path} is no support matrix: its parts do not fit each other."
        )
    words = tuple(str(word) for word in parts["words"])
    return Support(counts, words, ContextWords(contexts, words), parts["word_ids"])


def _place(path: str | PathLike[str]) -> Path:
    if not isinstance(path, str | PathLike) or not str(path).strip():
        raise ArgumentError(f"path must be the path of a file; got {path!r}.")
    return Path(path)
