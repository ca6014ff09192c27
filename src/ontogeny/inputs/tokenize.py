"""Texts to arrays with a Hugging Face tokenizer, for `Inputs.from_texts`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, check_choice
from .conversations import (
    Conversation,
    Prompted,
    at_answers,
    is_conversation,
    is_prompted,
    rendered,
)
from .encodable import where_encodable
from .layout import lay_out
from .scoring import (
    AnswersCutError,
    Ranges,
    Scoring,
    last_places,
    short_notes,
    text_notes,
)
from .splits import document_array, label_array


def tokenize(
    texts: Iterable[str | Conversation | Prompted],
    tokenizer: Any,
    max_length: int,
    padding_side: str,
    labels: Sequence[Any] | np.ndarray | None,
    documents: Sequence[Any] | np.ndarray | None = None,
    scoring: Scoring | None = None,
) -> dict[str, Any]:
    """Return the fields of :class:`ontogeny.Inputs` for `texts`.

    Padding is laid out here, so that the tokenizer's own padding settings do not matter.
    """
    check_choice("padding_side", padding_side, ("right", "left"))
    scoring = scoring or Scoring()
    given = _check_texts(texts)
    texts, answers = rendered(given, tokenizer)
    is_written = bool(given) and is_conversation(given[0])  # with its special tokens
    answers, notes = _answers(texts, answers, scoring, tokenizer)
    if labels is not None and len(labels) != len(texts):
        raise ArgumentError(f"labels has {len(labels)} entries for {len(texts)} texts.")
    if documents is not None:
        documents = document_array(documents, len(texts))
    _check_length(tokenizer, max_length)
    full = [index for index, text in enumerate(texts) if text.strip()]

    def encode(rows: list[int]) -> list[dict[str, Any]]:
        parts = None if answers is None else [answers[i] for i in rows]
        chosen = [texts[i] for i in rows]
        return _encode(chosen, tokenizer, max_length, parts, not is_written)

    read, encoded, lacking = where_encodable(texts, full, tokenizer, encode)
    unread = len(full) - len(read)
    notes = [*notes, *lacking]
    if scoring.last:
        whole = [row for row in encoded if not row["cut"]]
        lengths = np.array([int((~row["special"]).sum()) for row in whole])
        notes += short_notes(scoring, lengths)
        for row in encoded:  # the last tokens of a text that is cut are not there
            last = last_places(~row["special"][None], scoring.last)[0]
            row["answers"] = last & (not row["cut"])
    kept = [place for place, row in enumerate(encoded) if row["answers"].any()]
    is_some = answers is not None or bool(scoring.last)
    if not kept:
        what = "an answer" if is_some else "an ordinary token"
        error = ArgumentError
        longest = max((len(row["ids"]) + row["cut"] for row in encoded), default=0)
        if longest > max_length:
            what += f" within its first max_length={max_length} tokens"
            what += f"; --max-length {longest} reads all of them"
            error = AnswersCutError if is_some else ArgumentError
        raise error(f"no text is left: none of {len(texts)} holds {what}.")
    rows = [encoded[place] for place in kept]
    of_texts = [read[place] for place in kept]
    cut = sum(row["answer_cut"] for row in rows) if is_some else 0
    if cut:
        notes.append(f"{cut:,} answers are cut off at max_length={max_length}")
    pad = _pad_token_id(tokenizer)
    return _laid_out(rows, pad, padding_side, is_some) | {
        "texts": tuple(texts[i] for i in of_texts),
        "labels": None if labels is None else label_array(labels)[of_texts],
        "documents": None if documents is None else documents[of_texts],
        "mask_token_id": getattr(tokenizer, "mask_token_id", None),
        "pad_token_id": pad,
        "vocab_size": count_ids(tokenizer),
        "padding_side": padding_side,
        "truncated": sum(row["cut"] > 0 for row in rows),
        "cut_tokens": sum(row["cut"] for row in rows),
        "dropped": len(texts) - unread - len(rows),
        "score": scoring.words or ("answers" if answers is not None else ""),
        "notes": tuple(notes),
    }


def _laid_out(
    rows: Sequence[Mapping[str, Any]], pad: int, side: str, has_answers: bool
) -> dict[str, np.ndarray | None]:
    """Return what is known of each token as arrays (n, L)."""

    def column(name: str, filling: Any) -> np.ndarray:
        return lay_out([row[name] for row in rows], filling, side)

    masks = [np.ones(len(row["ids"]), bool) for row in rows]
    return {
        "ids": column("ids", pad),
        "mask": lay_out(masks, False, side),
        "special": column("special", True),
        "spans": None if rows[0]["spans"] is None else column("spans", 0),
        "answers": column("answers", False) if has_answers else None,
    }


def _answers(
    texts: list[str], answers: list[Ranges] | None, scoring: Scoring, tokenizer: Any
) -> tuple[list[Ranges] | None, list[str]]:
    """Return the characters that are scored of each text, None for all, and what is to be said."""
    notes: list[str] = []
    if scoring.score == "labels":
        raise ArgumentError(
            "score='labels' goes with token ids: labels are a second array beside them."
        )
    if scoring.after:
        notes = text_notes(scoring, texts)
        answers = [scoring.ranges(text) for text in texts]
    elif scoring.score == "answer" and answers is None:
        raise ArgumentError(
            "score='answer' does not find the answers: give answer_after, what stands before them "
            "(--answer-after '='), or conversations, or columns prompt and answer or completion."
        )
    elif scoring.score == "all" or scoring.last:
        return None, notes
    if answers is not None and not getattr(tokenizer, "is_fast", False):
        raise ArgumentError(
            "answers are found by characters, and the tokenizer tells no places of characters; "
            "take a fast one, or score='last:K'."
        )
    return answers, notes


def count_ids(tokenizer: Any) -> int:
    """Return the number of ids of a tokenizer: one more than its largest id.

    ``len(tokenizer)`` counts tokens. Where ids are left unused, as in Kimi's vocabulary, the
    largest id lies above it.

    Examples
    --------
    >>> class Tokenizer(dict):
    ...     def get_vocab(self):
    ...         return self
    >>> count_ids(Tokenizer(the=5, cat=17))
    18
    """
    vocabulary = tokenizer.get_vocab() if hasattr(tokenizer, "get_vocab") else {}
    return max(len(tokenizer), 1 + max(vocabulary.values(), default=-1))


def _check_texts(texts: Iterable[str | Conversation | Prompted]) -> list[Any]:
    if isinstance(texts, str):
        raise ArgumentError("texts must be a list of strings; got one string.")
    texts = list(texts)
    for index, text in enumerate(texts):
        if not (isinstance(text, str) or is_conversation(text) or is_prompted(text)):
            raise ArgumentError(
                "texts must hold strings, lists of messages with role and content, or a prompt "
                f"with its completion; texts[{index}] is {type(text).__name__}."
            )
    return texts


def _check_length(tokenizer: Any, max_length: int) -> None:
    if not callable(tokenizer) or not hasattr(tokenizer, "all_special_ids"):
        raise ArgumentError(
            f"tokenizer must be a Hugging Face tokenizer; got {type(tokenizer).__name__}."
        )
    if len(tokenizer) <= len(set(tokenizer.all_special_ids)):
        raise ArgumentError(
            f"the tokenizer knows {len(tokenizer)} tokens, none of them ordinary: its files are "
            "incomplete (is tokenizer.json missing?); give --tokenizer."
        )
    added = tokenizer.num_special_tokens_to_add()
    if max_length <= added:
        raise ArgumentError(
            f"max_length must exceed the {added} special tokens that the tokenizer adds; "
            f"got {max_length}."
        )


def _pad_token_id(tokenizer: Any) -> int:
    for name in ("pad_token_id", "eos_token_id"):
        value = getattr(tokenizer, name, None)
        if value is not None:
            return int(value)
    return 0


def _special_ids(tokenizer: Any) -> list[int]:
    """Ids that stand for no text wherever they occur; the unknown token stands for a word."""
    roles = ("bos", "eos", "sep", "cls", "pad", "mask")
    others = {getattr(tokenizer, f"{role}_token_id", None) for role in roles}
    unknown = getattr(tokenizer, "unk_token_id", None)
    return [i for i in tokenizer.all_special_ids if i != unknown or i in others]


def _encode(
    texts: list[str],
    tokenizer: Any,
    max_length: int,
    answers: list[Ranges] | None,
    adds_special: bool,
) -> list[dict[str, Any]]:
    if not texts:
        return []
    fast = bool(getattr(tokenizer, "is_fast", False))
    encoded = tokenizer(
        texts,
        truncation=True,
        max_length=max_length,
        add_special_tokens=adds_special,
        padding=False,
        return_special_tokens_mask=True,
        return_offsets_mapping=fast,
        return_attention_mask=False,
        return_token_type_ids=False,
    )
    special_ids = _special_ids(tokenizer)
    rows = []
    for index, ids in enumerate(encoded["input_ids"]):
        added = np.array(encoded["special_tokens_mask"][index], dtype=bool)
        spans = None
        if fast:
            spans = np.array(encoded["offset_mapping"][index], dtype=np.int64).reshape(
                -1, 2
            )
            rest = encoded.encodings[index].overflowing
            cut = sum(len(part.ids) - sum(part.special_tokens_mask) for part in rest)
        else:
            whole = tokenizer(texts[index], truncation=False, verbose=False)
            cut = len(whole["input_ids"]) - len(ids)
        special = added | np.isin(ids, special_ids)
        ranges = answers[index] if answers else None
        reached = 0 if spans is None else int(spans[:, 1].max(initial=0))
        rows.append(
            {
                "ids": np.array(ids, dtype=np.int64),
                "special": special,
                "answers": ~special & at_answers(spans, ranges),
                "answer_cut": cut > 0 and any(end > reached for _, end in ranges or ()),
                "spans": spans,
                "cut": cut,
            }
        )
    return rows
