"""Tokenised texts: ids with their mask, special tokens, spans and labels."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..arrays import is_array
from ..errors import ArgumentError, check_choice
from .batches import trimmed
from .conversations import Conversation, Prompted
from .described import Described
from .layout import check_layout, check_range, rectangle, repad, warn_of_padding
from .scoring import Scoring, places_of_ids
from .splits import document_array, label_array
from .tokenize import tokenize

_OF_TOKENS = ("ids", "mask", "special", "spans", "answers")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Inputs(Described):
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
    answers
        (n, L) bool, True at the tokens that predictions are scored at, or None for all ordinary
        ones. Of conversations these are the answers. Activations and attention are of all tokens.
    texts
        The n texts, or None if only tokens are known; conversations as the template writes them.
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
    cut_tokens
        How many tokens were cut off in all.
    source, form
        Where the texts come from, such as the name of a file, and how they stand there, such as
        ``"one a line"``: for messages alone.
    score, notes
        What is scored, in words, and what was found odd when it was looked for: for messages alone.

    Raises
    ------
    ArgumentError
        If shapes disagree, nothing is scored, a text has no token, padding lies between tokens, or
        an id is impossible.

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
    answers: np.ndarray | None = None
    texts: tuple[str, ...] | None = None
    labels: np.ndarray | None = None
    documents: np.ndarray | None = None
    mask_token_id: int | None = None
    pad_token_id: int = 0
    vocab_size: int | None = None
    padding_side: str = "right"
    truncated: int = 0
    dropped: int = 0
    cut_tokens: int = 0
    source: str = ""
    form: str = ""
    score: str = ""
    notes: tuple[str, ...] = ()
    _fingerprint: str = field(init=False, repr=False, default="")

    def __post_init__(self) -> None:
        check_choice("padding_side", self.padding_side, ("right", "left"))
        check_layout(self.ids, self.mask, self.special, self.padding_side)
        check_range("token ids", self.ids, self.vocab_size)
        if self.mask_token_id is not None:
            check_range("mask_token_id", np.array(self.mask_token_id), self.vocab_size)
        for name in ("spans", "answers", "texts", "labels"):
            value = getattr(self, name)
            if value is not None and len(value) != len(self.ids):
                raise ArgumentError(
                    f"{name} has {len(value)} entries for {len(self.ids)} texts."
                )
        if self.answers is not None and not self.scored.any():
            raise ArgumentError(
                "nothing is scored: no ordinary token is one of the answers."
            )
        if self.documents is not None:
            object.__setattr__(
                self, "documents", document_array(self.documents, len(self.ids))
            )
        self._freeze()
        object.__setattr__(self, "_fingerprint", self._digest())

    def _freeze(self) -> None:
        for name in (*_OF_TOKENS, "labels", "documents"):
            array = getattr(self, name)
            if array is not None and array.flags.writeable:
                array = array.copy()  # the caller's own array stays writable
                array.flags.writeable = False
                object.__setattr__(self, name, array)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._freeze()

    # ---- making inputs ---------------------------------------------------------------------------

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str | Conversation | Prompted],
        tokenizer: Any,
        max_length: int = 128,
        padding_side: str = "right",
        labels: Sequence[Any] | np.ndarray | None = None,
        source: str = "",
        documents: Sequence[Any] | np.ndarray | None = None,
        form: str = "",
        score: str = "",
        answer_after: str = "",
        answer_occurrence: str = "last",
    ) -> Inputs:
        """Tokenise `texts` once with a Hugging Face tokenizer.

        Texts without an ordinary token (empty, white space) are left out and counted, longer ones
        are cut at `max_length` tokens and counted. Without a padding token, texts are padded
        with the end token or 0, and the mask marks padding. Only a fast tokenizer gives spans.
        `documents` names the document that each text comes from, see `groups`.

        A text may be a conversation, a list of messages ``{"role": ..., "content": ...}``: the
        tokenizer's own chat template writes it, no further special tokens are added, and only the
        answers (role ``"assistant"``) are scored. Or it is ``{"prompt": ..., "completion": ...}``,
        of which the completion is scored.

        `score` says which tokens predictions are scored at: ``"all"``, ``"answer"``, or
        ``"last:K"``, the last K of each text. Where texts are plain, answers are what follows
        `answer_after`, a separator or ``"regex:"`` with a regular expression, at its last
        occurrence or, with `answer_occurrence`, at its first. Texts without an answer before the
        cut are left out and counted.

        Raises
        ------
        ArgumentError
            If a text is no string, `labels` or `documents` has another length, nothing would be
            scored, or no text is left.
        """
        scoring = Scoring(score, answer_after, answer_occurrence)
        fields = tokenize(
            texts, tokenizer, max_length, padding_side, labels, documents, scoring
        )
        return cls(**fields, source=source, form=form)

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
        score: str = "",
        answer_after: Sequence[int] = (),
        answer_occurrence: str = "last",
        token_labels: Any = None,
    ) -> Inputs:
        """Take token ids as an array, a tensor, or lists that may differ in length.

        Without `mask` every given id is a token (lists are padded on the right); rows of an array
        that then end in several `pad_token_id` are warned of. Special tokens
        are those of `special` and those whose id is in `special_ids`. `documents` names the
        document that each text comes from, see `groups`.

        `score` says which tokens predictions are scored at: ``"all"``, ``"last:K"``,
        ``"answer"`` (what follows the ids `answer_after`) or ``"labels"``: `token_labels` has the
        shape of the ids, with the token's own id where it is asked for and -100 elsewhere, as the
        labels of transformers, or is a mask of bool. Texts without a scored token are left out and
        counted.

        Raises
        ------
        ArgumentError
            If the ids are not integers, nothing would be scored, or anything that
            :class:`Inputs` refuses.

        Examples
        --------
        >>> Inputs.from_tokens(
        ...     [[1, 5, 6], [1, 7, 0]], mask=[[1, 1, 1], [1, 1, 0]], special_ids=[1]
        ... ).counts["ordinary"]
        3
        """
        is_rectangle = mask is None and is_array(ids)
        ids, is_real = rectangle("ids", ids, pad_token_id)
        mask = is_real if mask is None else rectangle("mask", mask, 0)[0].astype(bool)
        if is_rectangle:
            warn_of_padding(ids, pad_token_id)
        marked = (
            rectangle("special", special, 1)[0].astype(bool)
            if special is not None
            else False
        )
        separator = tuple(int(i) for i in answer_after)
        asked = score or ("labels" if token_labels is not None else "")
        scoring = Scoring(asked, " ".join(map(str, separator)), answer_occurrence)
        whole = marked | np.isin(ids, list(special_ids)) | ~mask
        answers, notes = places_of_ids(
            scoring, ids, mask, ~whole, separator, token_labels
        )
        inputs = cls(
            ids=ids,
            mask=mask,
            special=whole,
            answers=answers,
            score=scoring.words,
            notes=notes,
            texts=None if texts is None else tuple(texts),
            labels=None if labels is None else label_array(labels),
            documents=None
            if documents is None
            else document_array(documents, len(ids)),
            mask_token_id=mask_token_id,
            pad_token_id=pad_token_id,
            vocab_size=vocab_size,
            padding_side="right" if mask[:, 0].all() else "left",
        )
        return inputs._with_answers()

    def _with_answers(self) -> Inputs:
        """Return the texts that have a scored token, as they are where all have one."""
        has_one = self.scored.any(axis=1)
        if self.answers is None or has_one.all():
            return self
        kept = self.subset(np.flatnonzero(has_one))
        return replace(kept, dropped=self.dropped + int((~has_one).sum()))

    @classmethod
    def coerce(cls, value: Any) -> Inputs:
        """Return `value` as inputs: inputs, or a mapping with ``input_ids`` and ``attention_mask``.

        The mapping may hold ``special_tokens_mask``; without it only padding is excluded. Where it
        holds ``labels``, one for each token, only tokens with another label than -100 are scored.

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
            labels = value.get("labels")
            is_of_tokens = labels is not None and np.ndim(labels[0]) == 1
            return cls.from_tokens(
                value["input_ids"],
                value.get("attention_mask"),
                value.get("special_tokens_mask"),
                token_labels=labels if is_of_tokens else None,
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
            for name in _OF_TOKENS
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
        fields: dict[str, Any] = {
            name: array[rows, columns]
            for name in _OF_TOKENS
            if (array := getattr(self, name)) is not None
        }
        return replace(
            self,
            **fields,
            texts=None
            if self.texts is None
            else tuple(self.texts[row] for row in rows),
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
        if self.answers is not None:
            digest.update(b"answers" + np.ascontiguousarray(self.answers).tobytes())
        if self.labels is not None:
            digest.update(repr(np.asarray(self.labels).tolist()).encode())
        if len(np.unique(self.groups)) < len(self):
            digest.update(b"groups" + self.groups.astype(np.int64).tobytes())
        return digest.hexdigest()
