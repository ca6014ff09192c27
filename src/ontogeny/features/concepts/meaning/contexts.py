"""Words of the sampled tokens, and their vectors from texts that the words were not chosen on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr

from ....errors import OntogenyError
from ....inputs import Inputs, stratified_split
from ....tasks import bundled_texts
from ....tasks.corpus import python_documentation
from ..describe.row_words import NONE, RowWords, words_of, written_tokens
from ..describe.rows import Kinds, Rows, check_units, squared
from .coherence import Coherence, coherence
from .vectors import WordVectors, word_vectors

ENOUGH = 100_000  # words, below which vectors are taken from the default texts too
DEFAULT = "Python's documentation and the English sample of ontogeny"


@dataclass(frozen=True, eq=False)
class WordContexts:
    """The words (k,) that the sampled tokens are part of, with their contexts.

    ``place`` (n,) is the word of each row, -1 of none; ``first`` (n,) says which rows are of the
    first half of the texts. ``vectors`` are two: for words chosen on the first half from the texts
    of the second, and the other way round. ``source`` says which texts they are from.
    """

    words: np.ndarray
    place: np.ndarray
    first: np.ndarray
    vectors: tuple[WordVectors, ...]
    source: str
    random_state: int = 0

    @classmethod
    def of(
        cls,
        rows: Rows,
        pieces: Sequence[str],
        texts: Sequence[str] = (),
        random_state: int = 0,
    ) -> WordContexts:
        """Return words and vectors of the sampled tokens; `texts` are further ones for vectors.

        Raises
        ------
        ArgumentError
            If all rows come from one unit of texts.
        """
        check_units(rows.units)
        row_words = RowWords.of(rows.inputs, rows.sample, pieces)
        half, _ = stratified_split(
            np.zeros(len(rows), dtype=int), 0.5, random_state, groups=rows.units.of_row
        )
        first = np.zeros(len(rows), dtype=bool)
        first[half] = True
        written = any(word.isalpha() for word in row_words.words)
        halves = (first, ~first)
        corpora = [
            _corpus(rows, half, pieces, texts, written=written) for half in halves
        ]
        vectors = tuple(
            word_vectors(one, row_words.words.tolist()) for one, _ in corpora
        )
        return cls(
            row_words.words,
            row_words.place,
            first,
            vectors,
            corpora[0][1],
            random_state,
        )

    def judged(self, values: np.ndarray, n_draws: int) -> Coherence:
        """Return how alike the words of codes (n, r) are: those of each half, by the other one."""
        kinds = Kinds(np.arange(len(self.words)), np.maximum(self.place, 0))
        strength = squared(values) * (self.place != NONE)[:, None]
        halves = (self.first, ~self.first)
        carried = [kinds.sums(strength, np.flatnonzero(half)) for half in halves]
        return coherence(carried, self.vectors, self.random_state, n_draws)

    def variables(self) -> dict[str, Any]:
        """Return what a state keeps, see `stored`."""
        names = ("text_half", "word", "direction")
        return {
            "word_text": ("word", self.words.astype(object)),
            "word_of_token": ("token", self.place),
            "token_first": ("token", self.first),
            "word_vector": (
                names,
                np.stack([corpus.vectors for corpus in self.vectors]),
            ),
            "word_count": (
                names[:2],
                np.stack([corpus.counts for corpus in self.vectors]),
            ),
            "word_source": ((), np.array(self.source, dtype=object)),
        }

    @classmethod
    def stored(cls, state: xr.Dataset, random_state: int) -> WordContexts:
        """Return what a state keeps."""
        vectors, counts = (
            state[name].transpose("text_half", "word", ...).values
            for name in ("word_vector", "word_count")
        )
        return cls(
            state["word_text"].values.astype(str),
            state["word_of_token"].values,
            state["token_first"].values.astype(bool),
            tuple(WordVectors(*one) for one in zip(vectors, counts, strict=True)),
            str(state["word_source"].item()),
            random_state,
        )


def _corpus(
    rows: Rows,
    members: np.ndarray,
    pieces: Sequence[str],
    further: Sequence[str],
    *,
    written: bool,
) -> tuple[list[list[str]], str]:
    """Return the texts without a unit of `members` rows and the further ones, and what they are.

    Where these are few, the default texts too; those that are not `written`, but ids, have nothing
    in common with them.
    """
    inputs = rows.inputs
    units = np.unique(inputs.groups[rows.sample.text[members]])
    others = np.flatnonzero(~np.isin(inputs.groups, units)).tolist()
    texts = [
        words_of(text)
        for text in [*(_text(inputs, i, pieces) for i in others), *further]
    ]
    count = sum(map(len, texts))
    source = (
        f"{count:,} words of {'texts of their own' if further else 'the other texts'}"
    )
    if count < ENOUGH and written:
        return [*texts, *default_texts()], f"{source}, and as these are few {DEFAULT}"
    return texts, source


def _text(inputs: Inputs, text: int, pieces: Sequence[str]) -> str:
    if inputs.texts is not None:
        return inputs.texts[text]
    return "".join(written_tokens(inputs, text, pieces))


@lru_cache(maxsize=1)
def default_texts() -> tuple[list[str], ...]:
    """Return the words of the texts that every installation has.

    A Python that was installed without its documentation has the English sample alone.
    """
    try:
        texts = python_documentation()
    except OntogenyError:
        texts = []
    return tuple(words_of(text) for text in [*texts, *bundled_texts()])
