"""What is said of texts: how many there are and of which form, what is cut off, words of tokens."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Any

import numpy as np

from ..characters import is_letter
from ..errors import ArgumentError
from ..markup import html_block, html_table
from .sampled import Sampled
from .sampling import TokenSample
from .splits import joined, normalised, token_keys

FEWEST = 20  # texts below which a warning says what so few cost


class Described(Sampled):
    """Tokenised texts, as pages and terminals speak of them."""

    spans: np.ndarray | None
    answers: np.ndarray | None
    texts: tuple[str, ...] | None
    documents: np.ndarray | None
    vocab_size: int | None
    truncated: int
    cut_tokens: int
    dropped: int
    source: str
    form: str
    score: str
    notes: tuple[str, ...]
    _fingerprint: str

    def __repr__(self) -> str:
        return (
            f"Inputs({len(self)} texts, {self.counts['ordinary']} ordinary tokens, "
            f"fingerprint {self._fingerprint[:8]})"
        )

    def _repr_html_(self) -> str:
        counts = {name: f"{count:,}" for name, count in self.counts.items() if count}
        table = html_table(tuple(counts), [tuple(counts.values())])
        caption = f"{self.source or 'inputs'}, fingerprint {self._fingerprint[:8]}"
        return html_block(f"{len(self):,} texts", caption, table)

    @cached_property
    def groups(self) -> np.ndarray:
        """(n,) the unit of noise that each text belongs to: the number of the unit's first text.

        Texts that repeat are one unit, and so are those of one document. Texts repeat if their
        tokens are the same, also where they were cut, or their characters, case and white space
        aside. Documents that share a text are one unit. Splits, shuffles and resamples keep units
        whole.

        Examples
        --------
        >>> from ontogeny import Inputs
        >>> Inputs.from_tokens([[1, 2], [3], [1, 2], [4]]).groups.tolist()
        [0, 1, 0, 3]
        >>> Inputs.from_tokens(
        ...     [[1], [2], [3]], documents=["a", "b", "a"]
        ... ).groups.tolist()
        [0, 1, 0]
        """
        document_lists = [] if self.documents is None else [self.documents.tolist()]
        numbers = joined([self._first_of_repeats.tolist(), *document_lists], len(self))
        numbers.flags.writeable = False
        return numbers

    @cached_property
    def _first_of_repeats(self) -> np.ndarray:
        keys: list[Any] = [token_keys(self.ids, self.mask)]
        if self.texts is not None:
            keys.append([normalised(text) for text in self.texts])
        return joined(keys, len(self))

    @property
    def has_several_units(self) -> bool:
        """Whether texts of more than one unit are scored, so that the others can be counted."""
        return len(np.unique(self.groups[self.scored.any(axis=1)])) > 1

    @property
    def counts(self) -> dict[str, int]:
        """How many texts and tokens there are, and of which kind.

        ``texts``, ``tokens`` (= ``ordinary`` + ``special``), ``padding``, ``truncated`` and
        ``dropped`` texts; ``duplicates``, texts that repeat an earlier one; ``documents``, 0 where
        none are given; ``units``, the number of different `groups`.
        """
        tokens = int(self.mask.sum())
        ordinary = int(self.ordinary.sum())
        return {
            "texts": len(self),
            "tokens": tokens,
            "ordinary": ordinary,
            "special": tokens - ordinary,
            "padding": self.mask.size - tokens,
            "truncated": self.truncated,
            "dropped": self.dropped,
            "duplicates": len(self) - len(np.unique(self._first_of_repeats)),
            "documents": 0
            if self.documents is None
            else len(np.unique(self.documents)),
            "units": len(np.unique(self.groups)),
        }

    @property
    def _noun(self) -> str:
        return "text" if len(self) == 1 else "texts"

    @property
    def sentence(self) -> str:
        """How many texts there are, in which form they were found, and what is cut off.

        Examples
        --------
        >>> from ontogeny import Inputs
        >>> Inputs.from_tokens([[1, 2, 3], [4, 5]]).sentence
        '2 texts, 5 tokens'
        """
        parts = [f"{len(self):,} {self._noun}", self.form]
        parts.append(f"{int(self.mask.sum()):,} tokens")
        if self.answers is not None and self.score:
            parts.append(f"scored: {self.score} ({int(self.scored.sum()):,})")
        if self.truncated:
            parts.append(f"{self.truncated:,} cut at {int(self.lengths.max())}")
        if self.dropped:
            what = (
                "a token"
                if self.answers is None
                else "a token of an answer before the cut"
            )
            parts.append(f"{self.dropped:,} without {what} left out")
        return ", ".join(part for part in parts if part)

    @property
    def warnings(self) -> list[str]:
        """What is odd: fewer than 20 texts, one token in each, much cut off, a begin that is twice.

        Examples
        --------
        >>> from ontogeny import Inputs
        >>> Inputs.from_tokens([[1, 2, 3], [4, 5]]).warnings[0][:12]
        'only 2 texts'
        """
        sentences = [*self.notes]
        if len(self) < FEWEST:
            sentences.append(
                f"only {len(self)} {self._noun}: noise is measured over texts, so "
                f"hardly any change can be told from it; {FEWEST} are the least, 200 are better"
            )
        if int(self.lengths.max()) < 2:
            sentences.append(
                "every text has one token, so that no token is predicted from another"
            )
        marks = np.where(self.mask & self.special, self.ids, -1)
        begins = [
            row[i : i + 2]
            for row, i in zip(marks, self.mask.argmax(axis=1), strict=True)
        ]
        if twice := sum(len(b) == 2 and b[0] == b[1] != -1 for b in begins):
            sentences.append(
                f"{twice} text{'s begin' if twice > 1 else ' begins'} with the same special token "
                "twice: is one of them written in the texts, as by a chat template, and added by "
                "the tokenizer again?"
            )
        read = int(self.mask.sum())
        if self.cut_tokens > read:
            share = self.cut_tokens / (self.cut_tokens + read)
            # Texts of one line each have no smaller unit.
            has_lines = any("\n" in text for text in self.texts or ())
            unit = (
                " or texts in smaller units (--set inputs.unit=line)"
                if has_lines
                else ""
            )
            sentences.append(
                f"{100 * share:.0f} % of the tokens are cut off, as texts end at "
                f"{int(self.lengths.max())}, and nothing is said of them; a larger max_length "
                f"(--max-length){unit} reads more"
            )
        return sentences

    @property
    def repeats(self) -> str:
        """What is to be said of texts that repeat; empty where none does.

        Examples
        --------
        >>> from ontogeny import Inputs
        >>> Inputs.from_tokens([[1, 2], [3], [1, 2]]).repeats
        '1 of 3 texts repeats another; texts that repeat count as one, which leaves 2 units'
        """
        counts = self.counts
        if not (count := counts["duplicates"]):
            return ""
        words = "repeats another" if count == 1 else "repeat others"
        units = "1 unit" if counts["units"] == 1 else f"{counts['units']} units"
        return (
            f"{count} of {len(self)} texts {words}; texts that repeat count as one, which leaves "
            f"{units}"
        )

    @property
    def source_of_tokens(self) -> dict[str, Any]:
        """What tells other texts from another tokenizer, as far as it is known.

        ``texts_digest``, a hex digest of the texts, ``cut_at``, the tokens that texts were cut at,
        and ``vocabulary``, the number of ids.

        Examples
        --------
        >>> from ontogeny import Inputs
        >>> Inputs.from_tokens([[5, 6, 7]], vocab_size=10).source_of_tokens
        {'vocabulary': 10}
        """
        fields: dict[str, Any] = {}
        if self.texts is not None:
            text = json.dumps(self.texts).encode()
            fields["texts_digest"] = hashlib.blake2b(text, digest_size=16).hexdigest()
        if self.truncated:
            fields["cut_at"] = int(self.lengths.max())
        if self.vocab_size is not None:
            fields["vocabulary"] = self.vocab_size
        return fields

    @property
    def token_unit(self) -> str:
        """What a token is: a character or a word, or a token where it may be neither.

        The first 20 texts tell. A token that goes on in the middle of a word is no word, and one of
        several that share a character, as its bytes do, is no character.

        Examples
        --------
        >>> from ontogeny import Inputs
        >>> Inputs.from_tokens([[5, 6, 7]]).token_unit
        'token'
        """
        several, shared, inside = self._forms_of_tokens
        if self.is_spelled:
            return "token" if shared else "character"
        return "token" if several is None or inside else "word"

    @property
    def is_spelled(self) -> bool:
        """Whether no token has more than one character; several may be the bytes of one."""
        return self._forms_of_tokens[0] is False

    @property
    def _forms_of_tokens(self) -> tuple[bool | None, bool, bool]:
        """Whether a token has several characters, is a part of one, or begins inside of a word."""
        if self.spans is None or self.texts is None:
            return None, False, False
        rows = zip(self.texts[:FEWEST], self.spans, self.ordinary, strict=False)
        several = False
        shared = False
        inside = False
        for text, spans, ordinary in rows:
            last = 0
            for start, stop in spans[ordinary].tolist():
                token = text[start:stop]
                before = text[max(start - 1, 0) : start]
                several |= len(token) > 1
                shared |= start < min(last, stop)
                inside |= is_letter(before) and is_letter(token[:1])
                last = stop
        return several, shared, inside

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
            return [None for _ in rows]
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


def form_of_some(
    taken: int, count: int, form: str = "", how: str = "the first of"
) -> str:
    """Return the form of texts with how many there are of them, where not all are taken.

    Examples
    --------
    >>> form_of_some(80, 1000, "one a line"), form_of_some(80, 80, "one a line")
    ('the first of 1,000, one a line', 'one a line')
    """
    some = f"{how} {count:,}" if taken < count else ""
    return ", ".join(filter(None, [some, form]))
