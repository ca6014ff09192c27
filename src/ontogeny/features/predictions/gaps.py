"""Gaps in texts: those of given sentences, and those that are chosen in an input set."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ...errors import ArgumentError
from ...figures.tables import percent
from ...inputs import Inputs
from ...inputs.pieces import in_words, shown
from ...inputs.tokenize import tokenize
from ...observables.pieces import object_array, written

# A gap in a sentence, with the right answer in brackets where it is known.
GAP = re.compile(r"____+(?:\[(?P<answer>[^\]]*)\])?")
# What stands in a gap of unknown answer while it is tokenised.
_FILLS = ("a", "the", "0", "x", ".")
_LONGEST = 512
_UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class Gaps:
    """Gaps, each in a text of its own.

    Parameters
    ----------
    inputs
        One text for each of the g gaps.
    position
        (g,) the first token of the gap, counted from the text's first token.
    width
        (g,) how many tokens the gap hides. The first of them is asked for.
    right_id
        (g,) the right token, -1 where it is not known.
    unit
        (g,) the unit of noise that the text belongs to, see `ontogeny.Inputs.groups`.
    before, after
        The characters on both sides.
    """

    inputs: Inputs
    position: np.ndarray
    width: np.ndarray
    right_id: np.ndarray
    unit: np.ndarray
    before: tuple[str, ...]
    after: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.inputs)

    def cut(self) -> Gaps:
        """Return the gaps with nothing behind them, as a causal model sees them.

        Raises
        ------
        ArgumentError
            If nothing stands before a gap, so that nothing predicts it.

        Examples
        --------
        >>> inputs = Inputs.from_tokens([[5, 6, 7, 8]])
        >>> one = np.array([1])
        >>> Gaps(
        ...     inputs, one, one, np.array([6]), one, ("",), ("",)
        ... ).cut().inputs.ids.tolist()
        [[5, 6]]
        """
        is_predicted = self.position > 0
        if not is_predicted.all():
            first = int(is_predicted.argmin())
            raise ArgumentError(
                "a causal model predicts from what stands before a gap, and there is no token "
                f"before that of '____{self.after[first]}'; move the gap."
            )
        inputs = self.inputs.padded("right")
        end = self.position + 1
        rows = [
            (ids[:stop], special[:stop])
            for ids, special, stop in zip(inputs.ids, inputs.special, end, strict=True)
        ]
        shorter = Inputs.from_tokens(
            [ids for ids, _ in rows],
            special=[special for _, special in rows],
            mask_token_id=inputs.mask_token_id,
            vocab_size=inputs.vocab_size,
        )
        one = np.ones(len(self), dtype=np.int64)
        nothing = ("",) * len(self)
        return Gaps(
            shorter, self.position, one, self.right_id, self.unit, self.before, nothing
        )

    def to_dataset(self) -> xr.Dataset:
        """Return the gaps as what a state can hold, over ``gap`` and ``place``."""
        inputs = self.inputs.padded("right")
        tokens = ("gap", "place")
        mask_token = _UNKNOWN if inputs.mask_token_id is None else inputs.mask_token_id
        return xr.Dataset(
            {
                "ids": (tokens, inputs.ids),
                "mask": (tokens, inputs.mask.astype(np.int8)),
                "special": (tokens, inputs.special.astype(np.int8)),
                "position": ("gap", self.position),
                "width": ("gap", self.width),
                "right_id": ("gap", self.right_id),
                "unit": ("gap", self.unit),
                "gap_before": ("gap", object_array(self.before)),
                "gap_after": ("gap", object_array(self.after)),
            },
            attrs={"mask_token_id": mask_token},
        )

    @classmethod
    def of_dataset(cls, data: xr.Dataset) -> Gaps:
        """Return the gaps that `to_dataset` gave."""
        mask_token = int(data.attrs["mask_token_id"])
        inputs = Inputs.from_tokens(
            data.ids.values,
            data["mask"].values,
            data["special"].values,
            mask_token_id=None if mask_token == _UNKNOWN else mask_token,
        )
        position, width, right, unit = (
            np.asarray(data[name].values)
            for name in ("position", "width", "right_id", "unit")
        )
        before, after = (
            tuple(map(str, data[name].values)) for name in ("gap_before", "gap_after")
        )
        return cls(inputs, position, width, right, unit, before, after)


def check_sentences(sentences: Sequence[str], argument: str = "sentences") -> None:
    """Refuse sentences without a gap, with several, or with an empty answer.

    The message names them as the `argument` that they came by.

    Raises
    ------
    ArgumentError
        If there is one.

    Examples
    --------
    >>> check_sentences(["Return the number of ____[items] in the list."])
    """
    for sentence in sentences:
        matches = list(GAP.finditer(sentence))
        if len(matches) != 1:
            raise ArgumentError(
                f"each of {argument} must have one gap, written ____, or ____[answer] where the "
                f"right answer is known; got {len(matches)} in {sentence!r}."
            )
        answer = matches[0]["answer"]
        if answer is not None and not answer.strip():
            raise ArgumentError(
                f"the answer in {sentence!r} is empty; write ____ without brackets."
            )


def given_gaps(
    sentences: Sequence[str], tokenizer: Any, argument: str = "sentences"
) -> Gaps:
    """Return the gaps of sentences, tokenised as the sentences are with their answers.

    An answer of several tokens leaves a gap of that width, of which the first token is asked for. A
    gap without an answer has the width of one token.

    Parameters
    ----------
    sentences
        Each with one gap, see `check_sentences`.
    tokenizer
        A fast Hugging Face tokenizer.
    argument
        The name by which they were given, for messages.

    Raises
    ------
    ArgumentError
        If there is no such tokenizer, a sentence is too long, or a gap does not begin and end
        where tokens do.

    Examples
    --------
    >>> from ontogeny.tasks import train_tokenizer
    >>> tokenizer = train_tokenizer(["the cat sat on the mat"] * 4, vocab_size=300)
    >>> gaps = given_gaps(["the ____[cat] sat"], tokenizer)
    >>> tokenizer.decode(gaps.right_id), gaps.before, gaps.after
    (' cat', ('the ',), (' sat',))
    """
    check_sentences(sentences, argument)
    if tokenizer is None or not getattr(tokenizer, "is_fast", False):
        what = "no tokenizer" if tokenizer is None else "a slow one"
        raise ArgumentError(
            f"{argument} need a fast tokenizer, and the run has {what}; leave {argument} empty to "
            "take gaps in the texts of an input set."
        )
    places = [_place(sentence, tokenizer, argument) for sentence in sentences]
    texts, starts, widths, answered, before, after = zip(*places, strict=True)
    inputs = tokenised(texts, tokenizer, argument)
    position = np.array(starts)
    is_known = np.array(answered)
    right = np.where(is_known, inputs.ids[np.arange(len(places)), position], _UNKNOWN)
    width = np.where(is_known, widths, 1)
    return Gaps(inputs, position, width, right, inputs.groups, before, after)


def _place(
    sentence: str, tokenizer: Any, argument: str
) -> tuple[str, int, int, bool, str, str]:
    """Return the text that is tokenised, the first token of the gap, its width, if it is answered.

    Then what stands before and after the gap.
    """
    gap = GAP.search(sentence)
    assert gap is not None
    before = sentence[: gap.start()]
    after = sentence[gap.end() :]
    answer = None if gap["answer"] is None else gap["answer"].strip()
    for fill in _FILLS if answer is None else (answer,):
        text = f"{before}{fill}{after}"
        inside = _inside(
            tokenised([text], tokenizer, argument), len(before), len(before) + len(fill)
        )
        if len(inside) and (answer is not None or len(inside) == 1):
            return text, int(inside[0]), len(inside), answer is not None, before, after
    raise ArgumentError(
        f"the gap in {sentence!r} does not begin and end where tokens of this tokenizer do; move "
        "it, or give another answer."
    )


def tokenised(texts: Sequence[str], tokenizer: Any, argument: str) -> Inputs:
    """Return texts of a user's own, of at most 512 tokens each, given as an argument."""
    if not all(text.strip() for text in texts):
        raise ArgumentError(f"each of {argument} must have a token; got an empty one.")
    inputs = Inputs(**tokenize(texts, tokenizer, _LONGEST, "right", None))
    if inputs.truncated:
        raise ArgumentError(f"each of {argument} must have at most {_LONGEST} tokens.")
    return inputs


def _inside(inputs: Inputs, start: int, stop: int) -> np.ndarray:
    """Return the tokens of characters `start` to `stop`; none if one reaches beyond them.

    White space does not count: many tokenizers write it into the token after it.
    """
    assert inputs.spans is not None and inputs.texts is not None
    text = inputs.texts[0]
    spans = inputs.spans[0]
    there = inputs.ordinary[0] & (spans[:, 0] < stop) & (spans[:, 1] > start)
    inside = np.flatnonzero(there & [bool(text[a:b].strip()) for a, b in spans])
    if not len(inside):
        return inside
    first = spans[inside[0], 0]
    last = spans[inside[-1], 1]
    clean = not text[first:start].strip() and not text[stop:last].strip()
    return inside if clean else inside[:0]


def gaps_at(
    inputs: Inputs,
    text: np.ndarray,
    position: np.ndarray,
    pieces: Sequence[str],
    width: np.ndarray | None = None,
) -> Gaps:
    """Return gaps of one token, or of several, in texts of an input set.

    Parameters
    ----------
    inputs
        The input set.
    text, position
        (g,) the texts, and the token of each, counted from its first.
    pieces
        How each id is written, for texts whose characters are not known.
    width
        (g,) how many tokens each hides, one by default; more where characters are known.

    Examples
    --------
    >>> inputs = Inputs.from_tokens([[5, 6, 7]])
    >>> gaps_at(inputs, np.array([0]), np.array([1]), list("abcdefgh")).after
    ('h',)
    """
    inputs = inputs.padded("right")
    width = np.ones(len(text), dtype=np.int64) if width is None else width
    places = zip(text, position, width, strict=True)
    sides = [_sides(inputs, *at, pieces) for at in places]
    before, after = zip(*sides, strict=True)
    right = inputs.ids[text, position]
    return Gaps(
        inputs.subset(text), position, width, right, inputs.groups[text], before, after
    )


def _sides(
    inputs: Inputs, text: int, position: int, width: int, pieces: Sequence[str]
) -> tuple[str, str]:
    """Return the characters before and after tokens; white space is no part of them."""
    if inputs.spans is None or inputs.texts is None:
        ids = inputs.ids[text]
        mask = inputs.ordinary[text]
        size = len(pieces)  # ids without a tokenizer, a space apart
        tokens = [
            pieces[i] if i < size and pieces[i] != str(i) else f" {i}" for i in ids
        ]
        before = "".join(t for t, k in zip(tokens[:position], mask, strict=False) if k)
        after = (
            t
            for t, k in zip(tokens[position + 1 :], mask[position + 1 :], strict=True)
            if k
        )
        return before, "".join(after)
    whole = inputs.texts[text]
    start = inputs.spans[text, position, 0]
    stop = inputs.spans[text, position + width - 1, 1]
    token = whole[start:stop]
    start += len(token) - len(token.lstrip())
    stop -= len(token) - len(token.rstrip())
    shown_to = inputs.spans[text][
        inputs.ordinary[text], 1
    ].max()  # where the text was cut
    return whole[:start], whole[max(start, stop) : shown_to]


_SHOWN = 40  # characters on each side of a gap


def labelled(data: xr.Dataset) -> xr.Dataset:
    """Return data with a label for each gap, and its texts as the table writes them.

    Parameters
    ----------
    data
        The answers over ``step``, ``gap`` and ``rank``, the texts around each gap, and the pieces
        of all ids.

    Returns
    -------
    xarray.Dataset
        With the number of each gap and its right token as the labels of ``gap``, and over ``gap``
        ``gap_text``, ``right_text``, and the first answers ``answer_at_first`` and
        ``answer_at_last`` at the first and the last step that are there.
    """
    pieces = written(data)
    right = [_token(pieces[i]) if i >= 0 else "" for i in data.right_id.values.tolist()]
    sides = zip(data.gap_before.values, data.gap_after.values, strict=True)
    mask = data.answer_probability.notnull().all(("gap", "rank")).values
    ends = {"first": np.argmax(mask), "last": len(mask) - 1 - np.argmax(mask[::-1])}
    texts = {
        "gap_text": [_short(str(before), str(after)) for before, after in sides],
        "right_text": right,
        **{
            f"answer_at_{end}": _answers(data.isel(step=at), pieces)
            for end, at in ends.items()
        },
    }
    labels = [f"{i} {text}".strip() for i, text in enumerate(right, start=1)]
    data = data.assign_coords(gap=np.array(labels, dtype=str))
    return data.assign(
        {name: ("gap", np.array(v, dtype=str)) for name, v in texts.items()}
    )


def _answers(data: xr.Dataset, pieces: Mapping[int, str]) -> list[str]:
    first = data.isel(rank=0)
    ids = first.answer_id.values.tolist()
    shares = first.answer_probability.values.tolist()
    return [
        f"{_token(pieces[i])} {percent(p)}" for i, p in zip(ids, shares, strict=True)
    ]


def _token(piece: str) -> str:
    """Return a piece without the space that many begin with; white space itself in words."""
    return shown(piece.strip(" ")) or in_words(piece)


def _short(before: str, after: str) -> str:
    """Return a text with a gap, cut at a distance from it."""
    before, after = (" ".join(f"|{side}|".split())[1:-1] for side in (before, after))
    left = before if len(before) <= _SHOWN else f"…{before[-_SHOWN:]}"
    right = after if len(after) <= _SHOWN else f"{after[:_SHOWN]}…"
    return f"{shown(left)}____{shown(right)}"
