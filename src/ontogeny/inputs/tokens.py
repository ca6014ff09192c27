"""Tokenised texts: ids with their mask, special tokens, spans and labels."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import is_array
from ..errors import ArgumentError, check_choice
from ..markup import html_block, html_table
from ..needs.base import GRANULARITIES
from .batches import Batch, make_batch, make_batches, trimmed
from .groups import document_array, joined, normalised, token_keys
from .layout import check_layout, check_range, rectangle, repad, warn_of_padding
from .sampling import TokenSample, draw, masked_positions
from .splits import label_array
from .tokenize import tokenize

log = logging.getLogger("ontogeny.inputs")


@dataclass(frozen=True, eq=False, kw_only=True)
class Inputs:
    """Tokenised texts: ids with their mask, special tokens, spans and labels.

    Use :meth:`from_texts` or :meth:`from_tokens`; a dict of token tensors is accepted wherever
    inputs are (see :meth:`coerce`).

    Parameters
    ----------
    ids
        (n, L) int64 token ids.
    mask
        (n, L) bool, False at padding.
    special
        (n, L) bool, True at special tokens and padding: they are never sampled.
    spans
        (n, L, 2) first and last-plus-one character of each token, or None if unknown.
    texts
        The n texts, or None if only tokens are known.
    labels
        (n,) one label per text, or None.
    documents
        (n,) the document that each text comes from, as a text or a whole number, or None. Texts of
        a document are not independent: they count as one unit of noise, see `groups`.
    mask_token_id, pad_token_id
        Ids of the mask token (None if there is none) and of padding.
    vocab_size
        Number of ids of the tokenizer, or None if unknown.
    padding_side
        ``"right"`` or ``"left"``.
    truncated, dropped
        How many texts were cut at the maximal length, and left out because they were empty.
    source
        Where the texts come from, such as the name of a file: for messages alone.

    Raises
    ------
    ArgumentError
        If shapes disagree, a text has no token, padding lies between tokens, or an id is
        impossible.

    Examples
    --------
    >>> inputs = Inputs.from_tokens([[5, 6, 7], [8]], vocab_size=10)
    >>> inputs.mask.tolist()
    [[True, True, True], [True, False, False]]
    >>> inputs.counts["ordinary"], inputs.counts["padding"]
    (4, 2)
    """

    ids: np.ndarray
    mask: np.ndarray
    special: np.ndarray
    spans: np.ndarray | None = None
    texts: tuple[str, ...] | None = None
    labels: np.ndarray | None = None
    documents: np.ndarray | None = None
    mask_token_id: int | None = None
    pad_token_id: int = 0
    vocab_size: int | None = None
    padding_side: str = "right"
    truncated: int = 0
    dropped: int = 0
    source: str = ""
    _fingerprint: str = field(init=False, repr=False, default="")

    def __post_init__(self) -> None:
        check_choice("padding_side", self.padding_side, ("right", "left"))
        check_layout(self.ids, self.mask, self.special, self.padding_side)
        check_range("token ids", self.ids, self.vocab_size)
        if self.mask_token_id is not None:
            check_range("mask_token_id", np.array(self.mask_token_id), self.vocab_size)
        for name in ("spans", "texts", "labels"):
            value = getattr(self, name)
            if value is not None and len(value) != len(self.ids):
                raise ArgumentError(f"{name} has {len(value)} entries for {len(self.ids)} texts.")
        if self.documents is not None:
            object.__setattr__(self, "documents", document_array(self.documents, len(self.ids)))
        self._freeze()
        object.__setattr__(self, "_fingerprint", self._digest())

    def _freeze(self) -> None:
        for name in ("ids", "mask", "special", "spans", "labels", "documents"):
            array = getattr(self, name)
            if array is not None and array.flags.writeable:
                array = array.copy()  # the caller's own array stays writable
                array.flags.writeable = False
                object.__setattr__(self, name, array)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._freeze()

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return (
            f"Inputs({len(self)} texts, {self.counts['ordinary']} ordinary tokens, "
            f"fingerprint {self.fingerprint[:8]})"
        )

    def _repr_html_(self) -> str:
        counts = {name: f"{count:,}" for name, count in self.counts.items() if count}
        table = html_table(tuple(counts), [tuple(counts.values())])
        said = f"{self.source or 'inputs'}, fingerprint {self.fingerprint[:8]}"
        return html_block(f"{len(self):,} texts", said, table)

    # ---- making inputs ---------------------------------------------------------------------------

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        tokenizer: Any,
        max_length: int = 128,
        padding_side: str = "right",
        labels: Sequence[Any] | np.ndarray | None = None,
        source: str = "",
        documents: Sequence[Any] | np.ndarray | None = None,
    ) -> Inputs:
        """Tokenise `texts` once with a Hugging Face tokenizer.

        Texts without an ordinary token (empty, white space) are left out and counted, longer ones
        are cut at `max_length` tokens and counted. Without a padding token, texts are padded
        with the end token or 0, and the mask marks padding. Only a fast tokenizer gives spans.
        `documents` names the document that each text comes from, see `groups`.

        Raises
        ------
        ArgumentError
            If a text is no string, `labels` or `documents` has another length, or no text is left.
        """
        fields = tokenize(texts, tokenizer, max_length, padding_side, labels, documents)
        inputs = cls(**fields, source=source)
        if repeats := inputs.repeats:
            log.warning("%s%s", f"{source}: " if source else "", repeats)
        return inputs

    @classmethod
    def from_tokens(
        cls,
        ids: Any,
        mask: Any = None,
        special: Any = None,
        *,
        special_ids: Iterable[int] = (),
        mask_token_id: int | None = None,
        pad_token_id: int = 0,
        vocab_size: int | None = None,
        texts: Sequence[str] | None = None,
        labels: Sequence[Any] | np.ndarray | None = None,
        documents: Sequence[Any] | np.ndarray | None = None,
    ) -> Inputs:
        """Take token ids as an array, a tensor, or lists that may differ in length.

        Without `mask` every given id is a token (lists are padded on the right); rows of an array
        that then end in several `pad_token_id` are warned of. Special tokens
        are those of `special` and those whose id is in `special_ids`. `documents` names the
        document that each text comes from, see `groups`.

        Raises
        ------
        ArgumentError
            If the ids are not integers, or anything that :class:`Inputs` refuses.

        Examples
        --------
        >>> Inputs.from_tokens(
        ...     [[1, 5, 6], [1, 7, 0]], mask=[[1, 1, 1], [1, 1, 0]], special_ids=[1]
        ... ).counts["ordinary"]
        3
        """
        is_rectangle = mask is None and is_array(ids)
        ids, known = rectangle("ids", ids, pad_token_id)
        mask = known if mask is None else rectangle("mask", mask, 0)[0].astype(bool)
        if is_rectangle:
            warn_of_padding(ids, pad_token_id)
        marked = rectangle("special", special, 1)[0].astype(bool) if special is not None else False
        return cls(
            ids=ids,
            mask=mask,
            special=marked | np.isin(ids, list(special_ids)) | ~mask,
            texts=None if texts is None else tuple(texts),
            labels=None if labels is None else label_array(labels),
            documents=None if documents is None else document_array(documents, len(ids)),
            mask_token_id=mask_token_id,
            pad_token_id=pad_token_id,
            vocab_size=vocab_size,
            padding_side="right" if mask[:, 0].all() else "left",
        )

    @classmethod
    def coerce(cls, value: Any) -> Inputs:
        """Return `value` as inputs: inputs, or a mapping with ``input_ids`` and ``attention_mask``.

        The mapping may hold ``special_tokens_mask``; without it only padding is excluded.

        Raises
        ------
        ArgumentError
            If `value` is neither.

        Examples
        --------
        >>> len(Inputs.coerce({"input_ids": [[3, 4]], "attention_mask": [[1, 1]]}))
        1
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, Mapping) and "input_ids" in value:
            return cls.from_tokens(
                value["input_ids"], value.get("attention_mask"), value.get("special_tokens_mask")
            )
        raise ArgumentError(
            "inputs must be Inputs or a dict with 'input_ids' (and 'attention_mask'); "
            f"got {type(value).__name__}. Use Inputs.from_texts(texts, tokenizer) for texts."
        )

    def padded(self, side: str) -> Inputs:
        """Return the same texts with padding on `side` (``"right"`` or ``"left"``)."""
        check_choice("side", side, ("right", "left"))
        if side == self.padding_side:
            return self
        moved: dict[str, Any] = {
            name: repad(array, self.mask, side)
            for name in ("ids", "mask", "special", "spans")
            if (array := getattr(self, name)) is not None
        }
        return replace(self, padding_side=side, **moved)

    def subset(self, rows: Sequence[int] | np.ndarray) -> Inputs:
        """Return some of the texts, trimmed to the longest of them.

        Examples
        --------
        >>> Inputs.from_tokens([[1, 2, 3], [4], [5, 6]]).subset([1, 2]).ids.tolist()
        [[4, 0], [5, 6]]
        """
        rows = np.asarray(rows, dtype=np.int64)
        width = int(self.lengths[rows].max(initial=0))
        columns = trimmed(self.ids.shape[1], width, self.padding_side)
        chosen: dict[str, Any] = {
            name: array[rows, columns]
            for name in ("ids", "mask", "special", "spans")
            if (array := getattr(self, name)) is not None
        }
        return replace(
            self,
            **chosen,
            texts=None if self.texts is None else tuple(self.texts[row] for row in rows),
            labels=None if self.labels is None else self.labels[rows],
            documents=None if self.documents is None else self.documents[rows],
        )

    # ---- properties ------------------------------------------------------------------------------

    @property
    def fingerprint(self) -> str:
        """Hex digest of ids, mask, special tokens, the mask token's id, and labels if there are.

        Also of `groups`, where texts repeat or share a document.
        """
        return self._fingerprint

    def _digest(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        digest.update(repr((self.ids.shape, self.mask_token_id)).encode())
        for array in (self.ids, self.mask, self.special):
            digest.update(np.ascontiguousarray(array).tobytes())
        if self.labels is not None:
            digest.update(repr(np.asarray(self.labels).tolist()).encode())
        if len(np.unique(self.groups)) < len(self):
            digest.update(b"groups" + self.groups.astype(np.int64).tobytes())
        return digest.hexdigest()

    @cached_property
    def groups(self) -> np.ndarray:
        """(n,) the unit of noise that each text belongs to: the number of the unit's first text.

        Texts that repeat are one unit, and so are those of one document. Texts repeat if their
        tokens are the same, also where they were cut, or their characters, case and white space
        aside. Documents that share a text are one unit. Splits, shuffles and resamples keep units
        whole.

        Examples
        --------
        >>> Inputs.from_tokens([[1, 2], [3], [1, 2], [4]]).groups.tolist()
        [0, 1, 0, 3]
        >>> Inputs.from_tokens([[1], [2], [3]], documents=["a", "b", "a"]).groups.tolist()
        [0, 1, 0]
        """
        named = [] if self.documents is None else [self.documents.tolist()]
        found = joined([self._first_of_repeats.tolist(), *named], len(self))
        found.flags.writeable = False
        return found

    @cached_property
    def _first_of_repeats(self) -> np.ndarray:
        keys: list[Any] = [token_keys(self.ids, self.mask)]
        if self.texts is not None:
            keys.append([normalised(text) for text in self.texts])
        return joined(keys, len(self))

    @property
    def repeats(self) -> str:
        """What is to be said of texts that repeat; empty where none does.

        Examples
        --------
        >>> Inputs.from_tokens([[1, 2], [3], [1, 2]]).repeats
        '1 of 3 texts repeats another; texts that repeat count as one, which leaves 2 units'
        """
        counts = self.counts
        if not (count := counts["duplicates"]):
            return ""
        words = "repeats another" if count == 1 else "repeat others"
        return (
            f"{count} of {len(self)} texts {words}; texts that repeat count as one, which leaves "
            f"{counts['units']} units"
        )

    @property
    def source_of_tokens(self) -> dict[str, Any]:
        """What tells other texts from another tokenizer, as far as it is known.

        ``texts_digest``, a hex digest of the texts, and ``vocabulary``, the number of ids.

        Examples
        --------
        >>> Inputs.from_tokens([[5, 6, 7]], vocab_size=10).source_of_tokens
        {'vocabulary': 10}
        """
        known: dict[str, Any] = {}
        if self.texts is not None:
            text = json.dumps(self.texts).encode()
            known["texts_digest"] = hashlib.blake2b(text, digest_size=16).hexdigest()
        if self.vocab_size is not None:
            known["vocabulary"] = self.vocab_size
        return known

    @property
    def lengths(self) -> np.ndarray:
        """(n,) number of tokens of each text, special tokens included, padding not."""
        return self.mask.sum(axis=1)

    @property
    def ordinary(self) -> np.ndarray:
        """(n, L) bool: tokens that are neither special nor padding."""
        return self.mask & ~self.special

    @property
    def counts(self) -> dict[str, int]:
        """How many texts and tokens there are, and of which kind.

        ``texts``, ``tokens`` (= ``ordinary`` + ``special``), ``padding``, ``truncated`` and
        ``dropped`` texts; ``duplicates``, texts that repeat an earlier one; ``documents``, 0 where
        none are given; ``units``, the number of different `groups`.
        """
        tokens, ordinary = int(self.mask.sum()), int(self.ordinary.sum())
        return {
            "texts": len(self),
            "tokens": tokens,
            "ordinary": ordinary,
            "special": tokens - ordinary,
            "padding": self.mask.size - tokens,
            "truncated": self.truncated,
            "dropped": self.dropped,
            "duplicates": len(self) - len(np.unique(self._first_of_repeats)),
            "documents": 0 if self.documents is None else len(np.unique(self.documents)),
            "units": len(np.unique(self.groups)),
        }

    # ---- batches and samples ---------------------------------------------------------------------

    def batches(self, batch_size: int, ids: np.ndarray | None = None) -> list[Batch]:
        """Return the texts in batches, longest first, so that little is padding.

        The batches depend on nothing but the inputs and `batch_size`. `ids` replaces the ids
        (a corrupted copy of them, say).

        Examples
        --------
        >>> inputs = Inputs.from_tokens([[1], [1, 2, 3], [1, 2]])
        >>> [(b.rows.tolist(), b.ids.shape) for b in inputs.batches(2)]
        [([1, 2], (2, 3)), ([0], (1, 1))]
        """
        ids = self.ids if ids is None else ids
        return make_batches(ids, self.mask, self.padding_side, batch_size)

    def batch(self, rows: Sequence[int] | np.ndarray) -> Batch:
        """Return the texts `rows` as one batch."""
        rows = np.asarray(rows, dtype=np.int64)
        return make_batch(self.ids, self.mask, self.padding_side, rows)

    def sample(
        self,
        tokens: str = "all",
        max_tokens: int | None = None,
        random_state: int = 0,
        mask_fraction: float = 0.15,
    ) -> TokenSample:
        """Choose the rows of a reading: a seeded choice, the same at every checkpoint.

        Parameters
        ----------
        tokens
            ``"all"``: ordinary tokens; ``"mean"``: one row per text that has an ordinary token
            (position -1); ``"last"``, ``"cls"``: last and first unpadded token of each text;
            ``"masked"``: the positions that :meth:`corrupt` replaces.
        max_tokens
            Rows kept, drawn without replacement; None keeps all.
        random_state
            Seed of the draw, and of the corruption for ``"masked"``.
        mask_fraction
            The fraction that :meth:`corrupt` replaces, for ``"masked"``.

        Examples
        --------
        >>> inputs = Inputs.from_tokens([[1, 2], [3]])
        >>> sample = inputs.sample("last")
        >>> sample.text.tolist(), sample.position.tolist()
        ([0, 1], [1, 0])
        """
        check_choice("tokens", tokens, GRANULARITIES)
        whole = self._rows(tokens, random_state, mask_fraction)
        if not len(whole):
            raise ArgumentError(f"tokens={tokens!r}: no text has an ordinary token to read.")
        return draw(whole, max_tokens, random_state)

    def _rows(self, tokens: str, random_state: int, mask_fraction: float) -> TokenSample:
        texts = np.arange(len(self))
        if tokens == "mean":
            texts = texts[self.ordinary.any(axis=1)]
            return TokenSample(texts, np.full(len(texts), -1))
        if tokens in ("last", "cls"):
            return TokenSample(texts, self.lengths - 1 if tokens == "last" else 0 * texts)
        kept = self.ordinary
        if tokens == "masked":
            kept = self.corrupt(mask_fraction, random_state)[1]
        text, column = np.nonzero(kept)
        return TokenSample(text, column - self.mask.argmax(axis=1)[text])

    def corrupt(
        self, mask_fraction: float = 0.15, random_state: int = 0
    ) -> tuple[np.ndarray, np.ndarray]:
        """Replace a fixed random fraction of each text's ordinary tokens by the mask token.

        At least one token of every text that has an ordinary one is replaced, and the same
        tokens whichever side is padded.

        Returns
        -------
        ids, positions
            (n, L) int64 corrupted ids and (n, L) bool: where they were replaced.

        Raises
        ------
        ArgumentError
            If there is no mask token or the fraction is not between 0 and 1.

        Examples
        --------
        >>> inputs = Inputs.from_tokens([[1, 2, 3, 4]], mask_token_id=9)
        >>> ids, positions = inputs.corrupt(0.5)
        >>> int(positions.sum()), bool((ids[positions] == 9).all())
        (2, True)
        """
        if self.mask_token_id is None:
            raise ArgumentError(
                "these inputs have no mask token, so tokens cannot be masked; "
                "use objective='causal', or inputs whose mask_token_id is set."
            )
        positions = masked_positions(self.ordinary, mask_fraction, random_state)
        return np.where(positions, np.int64(self.mask_token_id), self.ids), positions

    # ---- words ----------------------------------------------------------------------------------

    def word(self, text: int, position: int) -> str | None:
        """Return the characters of the token at `position` of `text`, as they stand in the text.

        `position` counts from the text's first token. None for special tokens and where spans or
        texts are unknown. Tokens that share a character (the bytes of an emoji) each give it whole.
        """
        return self._snippet(text, position, 0)

    def tokens_of(self, sample: TokenSample, window: int = 0) -> list[str | None]:
        """Return the characters of each row of `sample`, with `window` more on either side.

        Rows that stand for a whole text (position -1) give the whole text.
        """
        rows = zip(sample.text.tolist(), sample.position.tolist(), strict=True)
        if self.texts is None:
            return [None] * len(sample)
        return [
            self.texts[text] if position < 0 else self._snippet(text, position, window)
            for text, position in rows
        ]

    def _snippet(self, text: int, position: int, window: int) -> str | None:
        if self.spans is None or self.texts is None:
            return None
        if not 0 <= position < self.lengths[text]:
            raise ArgumentError(
                f"position must lie in 0 to {self.lengths[text] - 1} for text {text}; "
                f"got {position}."
            )
        start, stop = self.spans[text, self.mask[text].argmax() + position]
        if start == stop:
            return None
        return self.texts[text][max(0, start - window) : stop + window]
