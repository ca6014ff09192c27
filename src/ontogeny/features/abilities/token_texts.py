"""Texts as flat tokens, and how likely a model finds what stands in them: the score of a text.

A causal model gives the logarithm of the probability of each token after those before it. A masked
model gives that of each token where it is hidden; so are the tokens after it in the same word, as
otherwise the end of a word would give its beginning away (Salazar et al. 2020; Kauf and Ivanova
2023).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import xarray as xr

from ...capture.predictor import Predictor
from ...errors import ArgumentError
from ...inputs import Inputs
from ...inputs.tokenize import tokenize
from .prefix_trees import tree_scores

LONGEST = 4096  # tokens that a text may have where the model sets no limit

_AT_ONCE = 256  # texts: what is held beside the model depends on it, and not on how many there are
# Why texts are not compared of which only what follows their first token has a score.
HEADLESS = (
    "its texts differ in their first token, which has no score: the tokenizer has none to begin "
    "with, and a prompt before them takes its place"
)
_UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class TokenTexts:
    """Token ids of many texts in one row.

    Parameters
    ----------
    ids
        (tokens,) token ids of all texts, one after the other.
    width
        (tokens,) 0 at tokens without a score; else how many tokens a masked model does not see
        when it is asked for this one: itself and those after it in the same word.
    start
        (n + 1,) where each text begins.
    mask_token_id
        Id of the mask token, None if there is none.
    headless
        (n,) whether the first token would have a score, and has none: a causal model reads nothing
        before it. Empty of texts that were kept.
    """

    ids: np.ndarray
    width: np.ndarray
    start: np.ndarray
    mask_token_id: int | None = None
    headless: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def first_unscored(self) -> np.ndarray:
        """(n,) the first token where it should have a score and has none; -1 elsewhere."""
        return np.where(self.headless, self.ids[self.start[:-1]], -1)

    @property
    def scored(self) -> np.ndarray:
        """(n,) the number of tokens that have a score."""
        return np.diff(np.concatenate([[0], np.cumsum(self.width > 0)])[self.start])

    def of(self, text: int) -> slice:
        """Return where the tokens of a text stand."""
        return slice(int(self.start[text]), int(self.start[text + 1]))

    def without(self, texts: np.ndarray) -> TokenTexts:
        """Return those that are not marked (n,)."""
        lengths = np.diff(self.start)
        stays = np.repeat(~texts, lengths)
        start = np.cumsum([0, *lengths[~texts]])
        return TokenTexts(self.ids[stays], self.width[stays], start, self.mask_token_id)

    def variables(self) -> dict[str, Any]:
        """Return them as variables of a state."""
        mask_token = _UNKNOWN if self.mask_token_id is None else self.mask_token_id
        return {
            "token_ids": ("token", self.ids),
            "token_width": ("token", self.width),
            "text_start": ("text_end", self.start),
            "mask_token_id": mask_token,
        }

    @classmethod
    def of_state(cls, state: xr.Dataset) -> TokenTexts:
        """Return the texts that `variables` put into a state."""
        mask_token = int(state["mask_token_id"])
        return cls(
            *(
                state.token_ids.values,
                state.token_width.values,
                state.text_start.values,
            ),
            None if mask_token == _UNKNOWN else mask_token,
        )

    def inputs(self, texts: Sequence[int] | np.ndarray) -> Inputs:
        """Return some texts as inputs, in which only tokens with a score are ordinary."""
        places = [self.of(int(text)) for text in texts]
        return Inputs.from_tokens(
            [self.ids[place] for place in places],
            special=[self.width[place] == 0 for place in places],
            mask_token_id=self.mask_token_id,
        )

    def scores(self, predictor: Predictor) -> np.ndarray:
        """Return (n,) the summed log-probability of the tokens that have a score, in nats.

        A causal model reads once what several texts begin with. The memory that it takes does not
        grow with the number of texts.
        """
        return self._asked(predictor, ranks=False)[0]

    def scores_and_ranks(self, predictor: Predictor) -> tuple[np.ndarray, np.ndarray]:
        """Return `scores`, and (n,) the largest rank of each text's tokens: 1 if all are first."""
        return self._asked(predictor, ranks=True)

    def _asked(
        self, predictor: Predictor, ranks: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        # Asked anew of every checkpoint: what one process has seen before must not change a bit.
        if (read := tree_scores(predictor, self, ranks)) is not None:
            scores, largest, checked = read
            expected = _at_scored(predictor, self, checked)[0]
            if (
                np.abs(scores[checked] - expected)
                <= _rounding(predictor.model, expected)
            ).all():
                return scores, largest
        scores = np.zeros(len(self))
        largest = np.zeros(len(self), dtype=np.int64)
        for texts in self._batches():
            scores[texts], largest[texts] = _at_scored(predictor, self, texts)
        return scores, largest

    def _batches(self) -> Iterator[np.ndarray]:
        order = np.argsort(-np.diff(self.start), kind="stable")
        for first in range(0, len(order), _AT_ONCE):
            yield order[first : first + _AT_ONCE]


def _rounding(model: torch.nn.Module, scores: np.ndarray) -> np.ndarray:
    """Return how far scores may be apart: SmolLM2-135M-Instruct's were by 0.85 in bfloat16."""
    dtypes = {p.dtype for p in model.parameters() if p.is_floating_point()} or {
        torch.float32
    }
    return 1e-3 + 4 * max(torch.finfo(dtype).eps for dtype in dtypes) * np.abs(scores)


def _at_scored(
    predictor: Predictor, tokens: TokenTexts, texts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the summed log-probability of each text, and the largest rank of its tokens."""
    widths = [tokens.width[tokens.of(int(text))] for text in texts]
    text = np.repeat(np.arange(len(texts)), [int((w > 0).sum()) for w in widths])
    position = np.concatenate([np.flatnonzero(w) for w in widths])
    width = np.concatenate([w[w > 0] for w in widths]).astype(np.int64)
    if not len(text):  # all of them are left out
        return np.zeros(len(texts)), np.zeros(len(texts), dtype=np.int64)
    predictions = predictor.at(tokens.inputs(texts), text, position, width=width)
    rank = np.zeros(len(texts), dtype=np.int64)
    np.maximum.at(rank, text, predictions.right_rank.values)
    weights = predictions.right_log_probability.values
    return np.bincount(text, weights=weights, minlength=len(texts)), rank


def tokenised(
    before: Sequence[str],
    texts: Sequence[str],
    tokenizer: Any,
    *,
    masked: bool,
    longest: int | None = None,
) -> tuple[TokenTexts, list[str]]:
    """Return texts as tokens, and for each what is wrong with it, empty where nothing is.

    Where the first token has a score, a causal model reads one to begin with: that for the
    beginning, or else that for the end of a text.

    Parameters
    ----------
    before
        What stands before each text and has no score.
    texts
        The texts.
    tokenizer
        A Hugging Face tokenizer; a fast one where anything stands before a text.
    masked
        Whether a masked model is asked.
    longest
        The number of tokens that the model takes; None if there is no limit.

    Raises
    ------
    ArgumentError
        If there is no tokenizer, or a slow one with something before a text.

    Examples
    --------
    >>> from ontogeny.tasks import train_tokenizer
    >>> tokenizer = train_tokenizer(["the cat sat on the mat"] * 4, vocab_size=300)
    >>> encoded, problems = tokenised(["the"], [" cat"], tokenizer, masked=False)
    >>> encoded.width.tolist(), problems
    ([0, 0, 1, 0], [''])
    """
    if tokenizer is None:
        raise ArgumentError(
            "texts with a right answer need the run's tokenizer, and it has none; name one with "
            'tokenizer = "..." under [trajectory], or --tokenizer.'
        )
    if any(before) and not getattr(tokenizer, "is_fast", False):
        raise ArgumentError(
            "parts of texts have a score of their own with a fast tokenizer only."
        )
    most = min(longest or LONGEST, LONGEST)
    # One array each that grows: an array for every text takes four times their tokens.
    ids = array("i")
    widths = array("h")
    start = array("q", [0])
    headless = []
    problems = []
    for row in _rows(before, texts, tokenizer, masked, most):
        problem = _problem(row, most)
        problems.append(problem)
        ids.extend([0] if problem else row[0].tolist())
        widths.extend([0] if problem else row[1].tolist())
        headless.append(not problem and row[2])
        start.append(len(ids))
    mask_token = getattr(tokenizer, "mask_token_id", None)
    arrays = (np.array(ids), np.array(widths), np.array(start))
    return TokenTexts(*arrays, mask_token, np.array(headless, dtype=bool)), problems


_Row = tuple[np.ndarray, np.ndarray, bool]


def _problem(row: _Row | None, most: int) -> str:
    if row is None:
        return "it has no token"
    if len(row[0]) > most:
        return f"it is longer than the {most:,} tokens that the model takes"
    if not row[1].any():
        return "it has one token, and none stands before it: the tokenizer has none to begin with"
    return ""


def _rows(
    before: Sequence[str], texts: Sequence[str], tokenizer: Any, masked: bool, most: int
) -> Iterator[Any]:
    """Give ids and widths of each text, and whether its first token lacks a score.

    None where it has no token.
    """
    begin = getattr(tokenizer, "bos_token_id", None)
    begin = getattr(tokenizer, "eos_token_id", None) if begin is None else begin
    for first in range(0, len(texts), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        whole = [b + t for b, t in zip(before[some], texts[some], strict=True)]
        of_texts = _encoded(whole, tokenizer, most)
        for one, at, text in zip(of_texts, before[some], whole, strict=True):
            if one is None:
                yield None
                continue
            scored = ~one.special
            if one.spans is not None:
                scored &= one.spans[:, 1] > len(at)
            width = _widths(one, text) if masked else np.ones(len(scored), np.int16)
            ids = one.ids
            width = np.where(scored, width, 0)
            is_headless = False
            if not masked and width[0] and begin is None:
                width[0] = 0
                is_headless = True
            elif not masked and width[0]:
                assert begin is not None
                ids = np.append(begin, ids)
                width = np.append(0, width)
            yield ids, width, is_headless


@dataclass(frozen=True)
class _One:
    """The tokens of one text, (L,)."""

    ids: np.ndarray
    special: np.ndarray
    spans: np.ndarray | None


def _encoded(texts: Sequence[str], tokenizer: Any, most: int) -> list[_One | None]:
    """Return the tokens of texts; None of one that has none but those that are added."""
    encoded: list[_One | None] = []
    try:
        fields = tokenize(texts, tokenizer, most + 2, "right", None)
    except ArgumentError:
        fields = None
    if fields is None and len(texts) == 1:
        return [None]
    if fields is None or fields["dropped"]:
        for text in texts:
            encoded += _encoded([text], tokenizer, most)
        return encoded
    for row, mask in enumerate(fields["mask"]):
        spans = None if fields["spans"] is None else fields["spans"][row][mask]
        encoded.append(
            _One(fields["ids"][row][mask], fields["special"][row][mask], spans)
        )
    return encoded


def _widths(one: _One, text: str) -> np.ndarray:
    """Return how many tokens there are from each on to the end of its word."""
    count = len(one.ids)
    width = np.ones(count, np.int16)
    if one.spans is None:
        return width
    spans = one.spans
    special = one.special
    for place in range(count - 2, -1, -1):
        (first, end) = spans[place]
        (after, stop) = spans[place + 1]
        inside = (
            not special[place]
            and not special[place + 1]
            and end == after
            and first < end
        )
        if (
            inside
            and after < stop
            and text[end - 1].isalnum()
            and text[after].isalnum()
        ):
            width[place] = width[place + 1] + 1
    return width
