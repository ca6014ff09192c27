"""Prompts that a model goes on with: the user's own, or beginnings of texts of the input set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ...errors import ArgumentError
from ...inputs import Inputs, ShownTexts
from .gaps import given_gaps, tokenised

ARGUMENT = "prompts"
GAPS = 12  # that a masked model fills
_AMONG = 3  # texts, of which those with most words are taken
_BEYOND = -1


@dataclass(frozen=True, eq=False)
class Prompt:
    """Token ids, with the place from which on `count` tokens are written.

    Attributes
    ----------
    ids
        (k,) ids; what a masked model fills is among them, and hidden.
    at, count
        First token that is written, and how many are at most.
    follows
        Tokens that stand there in the text; empty where there is none.
    start
        First token that is a reader's: special ones stand before it.
    """

    ids: np.ndarray
    at: int
    count: int
    follows: np.ndarray
    start: int = 0


def given_prompts(
    texts: Sequence[str], tokenizer: Any, masked: bool, count: int, room: int
) -> list[Prompt]:
    """Return the prompts of texts; for a masked model each text has one gap, written ``____``.

    Raises
    ------
    ArgumentError
        If there is no tokenizer, or a text has no token, not one gap, or as many tokens as `room`.
    """
    if masked:
        gaps = given_gaps(texts, tokenizer, ARGUMENT)
        rows = [
            ids[mask]
            for ids, mask in zip(gaps.inputs.ids, gaps.inputs.mask, strict=True)
        ]
        places = zip(
            rows, gaps.position.tolist(), gaps.width.tolist(), texts, strict=True
        )
        return [_with_gaps(*place, min(count, GAPS), room) for place in places]
    if tokenizer is None:
        raise ArgumentError(
            f"{ARGUMENT} need a tokenizer, and the run has none; leave {ARGUMENT} empty to go on "
            "with texts of an input set."
        )
    inputs = tokenised(texts, tokenizer, ARGUMENT)
    nothing = np.empty(0, dtype=np.int64)
    prompts = []
    for row in range(len(inputs)):
        # A token for the end of a text, which the tokenizer may add, ends no prompt.
        end = 1 + int(np.flatnonzero(inputs.ordinary[row]).max())
        _check_room(end + 1, room, texts[row])
        start = int(inputs.ordinary[row].argmax())
        prompts.append(Prompt(inputs.ids[row, :end], end, count, nothing, start))
    return prompts


def beginnings(
    inputs: Inputs,
    pieces: Sequence[str],
    masked: bool,
    number: int,
    length: int,
    count: int,
    random_state: int,
) -> list[Prompt]:
    """Return prompts from the texts that a study shows, those with most words first.

    Of a text at most its first half is a prompt, and `length` tokens; where answers are scored,
    what stands before the first one. A masked model fills a row of gaps in the middle.
    """
    inputs = inputs.padded("right")
    texts = ShownTexts.of(inputs, max(number, _AMONG), random_state=random_state)
    words = [i for i, piece in enumerate(pieces) if any(map(str.isalpha, piece))]
    counts = np.isin(texts.ids, words).sum(axis=1)
    order = np.sort(np.argsort(-counts, kind="stable")[:number])
    prompts = []
    for row in texts.number[order]:
        ids = inputs.ids[row][inputs.mask[row]]
        ordinary = np.flatnonzero(inputs.ordinary[row])
        start = int(ordinary[0])
        end = int(ordinary[-1]) + 1
        if masked:
            gaps = min(count, GAPS, max(1, len(ordinary) // 3))
            at = int(ordinary[(len(ordinary) - gaps) // 2])
            prompts.append(Prompt(ids, at, gaps, ids[at : at + gaps], start))
            continue
        at = int(ordinary[min(length, (len(ordinary) + 1) // 2, len(ordinary) - 1)])
        most = count
        if inputs.answers is not None:
            at = int(np.flatnonzero(inputs.scored[row])[0])
            most = min(count, end - at)
        follows = ids[at : min(end, at + most)]
        prompts.append(Prompt(ids[:at], at, most, follows, start))
    return prompts


def _with_gaps(
    ids: np.ndarray, at: int, width: int, text: str, count: int, room: int
) -> Prompt:
    """Return a text with a row of gaps in place of its one gap of some width.

    There are `count` of them, or as many as there is `room` for.
    """
    _check_room(len(ids) - width + 1, room, text)
    count = min(count, room - len(ids) + width)
    wide = np.concatenate([ids[:at], np.repeat(ids[at], count), ids[at + width :]])
    return Prompt(wide, at, count, np.empty(0, dtype=np.int64))


def _check_room(least: int, room: int, text: str) -> None:
    """Refuse a prompt that with one written token is longer than what the model reads."""
    if least > room:
        raise ArgumentError(
            f"each of {ARGUMENT} must leave one of the {room} tokens that the model is known to "
            f"read; got {least - 1} in {text!r}."
        )


def to_dataset(prompts: Sequence[Prompt]) -> xr.Dataset:
    """Return prompts as what a state can hold, over ``prompt``."""
    return xr.Dataset(
        {
            "prompt_id": (("prompt", "place"), _rectangle([p.ids for p in prompts])),
            "follows_id": (
                ("prompt", "follow"),
                _rectangle([p.follows for p in prompts]),
            ),
            "prompt_at": ("prompt", np.array([p.at for p in prompts])),
            "prompt_count": ("prompt", np.array([p.count for p in prompts])),
            "prompt_start": ("prompt", np.array([p.start for p in prompts])),
        }
    )


def of_dataset(state: xr.Dataset) -> list[Prompt]:
    """Return the prompts of a state."""
    columns = ("prompt_id", "follows_id", "prompt_at", "prompt_count")
    every = zip(*(state[name].values for name in columns), strict=True)
    return [
        Prompt(ids[ids >= 0], int(at), int(count), follows[follows >= 0])
        for ids, follows, at, count in every
    ]


def _rectangle(rows: Sequence[np.ndarray]) -> np.ndarray:
    """Return rows of ids as an array, -1 beyond the end of each."""
    whole = np.full((len(rows), max(1, *map(len, rows))), _BEYOND)
    for line, row in zip(whole, rows, strict=True):
        line[: len(row)] = row
    return whole
