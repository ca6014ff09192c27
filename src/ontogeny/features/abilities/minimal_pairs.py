"""Minimal pairs: how often a model gives the right one of two texts the higher probability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ...figures import Section
from ...observables.catalogued import PresetEntry
from ...observables.pieces import object_array
from ...tasks.records import Example
from .contrasts import ties_of_words, words_apart
from .examples import OfExamples, accuracy, by_group, names_of
from .ngrams import ngram_scores
from .pairs import PROMPT, RIGHT, WRONG, is_pairs, pair_of
from .token_texts import TokenTexts

METHODS = ("sentence", "prefix")
BUNDLED = Path(__file__).with_name("english.csv")


@dataclass(frozen=True)
class MinimalPairs(OfExamples):
    """Whether the model gives the right one of two texts the higher probability, by groups.

    The score of a text is the logarithm of its probability: of a causal model the sum over its
    tokens, after a token to begin with; of a masked model the pseudo-log-likelihood with the rest
    of each word hidden (Salazar et al. 2020; Kauf and Ivanova 2023). A tie counts one half. Beside
    each group stands what four-grams of the study's texts reach.

    Parameters
    ----------
    examples
        Files: JSON lines, CSV or TSV, with a ``right`` and a ``wrong`` text and, where there is
        one, a ``group`` or another column of texts that repeat; files of BLiMP as they are.
        Without, 23 groups of 30 English pairs that come with the package.
    method
        ``"sentence"`` or ``"prefix"``: BLiMP's one-prefix and two-prefix methods.
    per_token
        Whether scores are divided by the number of tokens.
    on
        Input set whose n-grams are counted; the first by default.
    objective
        ``"auto"``, ``"causal"`` or ``"masked"``.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "pairs.jsonl"
    >>> _ = file.write_text('{"right": "the dogs run", "wrong": "the dogs runs"}')
    >>> MinimalPairs(str(file)).arguments()["examples"]
    ('pairs.jsonl',)
    """

    examples: tuple[str, ...] = ()
    method: str = "sentence"
    per_token: bool = False

    kind = "minimal-pairs"
    choices = {"method": METHODS}
    question = "Which of two texts does the model find likelier, and since when?"
    one = "pair"
    measured = "score_right"
    presets = (
        PresetEntry(("abilities", "one-model", "everything"), {}, 15, ("no_english",)),
        PresetEntry(
            ("quick", "standard", "fine-tuning"), {}, 15, ("no_english", "many_passes")
        ),
    )
    form = "minimal pairs"
    fields_of_form = "right and wrong, or sentence_good and sentence_bad"
    used_fields = (*RIGHT, *WRONG, *PROMPT)
    state_variables = (
        *("group_of_pair", "right_text", "wrong_text", "word_right", "word_wrong"),
        *("tokens_right", "tokens_wrong", "right_ngrams", "left_out"),
    )
    quantities = accuracy(
        "pair",
        "whose right text is likelier",
        "chance",
        units="contrasts that share no word",
    )
    section = Section(
        title="Minimal pairs",
        definition="The share of pairs in which the right text has the higher probability. The "
        "score of a text is the sum of the log-probabilities of its tokens.",
        symbol="mean [log p(right; θₜ) > log p(wrong; θₜ)]",
        null="Chance is one half, and a model that only likes some words. The two words in which "
        "a pair differs are a contrast, and contrasts that share a word one cluster. Within a "
        "contrast choices are exchanged, and the words of a cluster as a whole (exact test). What "
        "n-grams of the study's texts reach takes no more than which words stand together.",
        care="Where a contrast has the same word on the right side in all pairs, a liking for it "
        "looks like an ability, and the contrast counts once; five are needed then.",
        source="Warstadt et al. 2020; Salazar et al. 2020; Kauf and Ivanova 2023",
    )
    variables = {
        "score_right": ("log-probability of the right text", "nats"),
        "score_wrong": ("log-probability of the wrong text", "nats"),
        "right_text": ("right text", ""),
        "wrong_text": ("wrong text", ""),
        "word_right": ("words that only the right text has", ""),
        "word_wrong": ("words that only the wrong text has", ""),
        "tokens_right": ("tokens of the right text that have a score", "tokens"),
        "tokens_wrong": ("tokens of the wrong text that have a score", "tokens"),
        **names_of("pair"),
    }

    recognises = staticmethod(is_pairs)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files, or the bundled one."""
        return self.examples or (str(BUNDLED),)

    def example_of(self, record: Mapping[str, Any], stem: str, where: str) -> Example:
        """Return the pair of a record."""
        return pair_of(record, stem, where, self.method)

    def before_asking(
        self, examples: Sequence[Example], tokens: TokenTexts, counted: tuple[Any, int]
    ) -> dict[str, Any]:
        """Return texts and contrasts of the pairs, and what n-grams say of them."""
        whole = [[f"{e.before[i]}{e.texts[i]}" for e in examples] for i in (0, 1)]
        words = np.array(
            [words_apart(*pair) for pair in zip(*whole, strict=True)], dtype=object
        )
        apart = -np.diff(ngram_scores(tokens, *counted).reshape(-1, 2))[:, 0]
        scored = tokens.scored.reshape(-1, 2).T
        return {
            "right_text": ("pair", object_array(whole[0])),
            "wrong_text": ("pair", object_array(whole[1])),
            "word_right": ("pair", words[:, 0]),
            "word_wrong": ("pair", words[:, 1]),
            "tokens_right": ("pair", scored[0]),
            "tokens_wrong": ("pair", scored[1]),
            "right_ngrams": ("pair", _right(apart, 1e-9)),
        }

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return the score of each text, and the accuracy of each group."""
        assert state is not None
        tokens = TokenTexts.of_state(state)
        scores = tokens.scores(reading[self.needs()[0]])
        if self.per_token:
            scores = scores / tokens.scored
        right, wrong = scores.reshape(-1, 2).T
        groups, share, _ = by_group(state, "pair", _right(right - wrong))
        return xr.Dataset(
            {
                "score_right": ("pair", right),
                "score_wrong": ("pair", wrong),
                "accuracy": ("group", share),
            },
            coords={"group": groups},
        )

    def units_of(self, state: xr.Dataset, members: np.ndarray) -> np.ndarray:
        """Return (n,) which of the pairs at some places go together, by their contrasts."""
        words = (state[name].values[members] for name in ("word_right", "word_wrong"))
        return ties_of_words(*words).units

    def right_of(self, data: xr.Dataset) -> tuple[np.ndarray, np.ndarray, None]:
        """Return which pairs are right, and that half are by chance; their words say the rest."""
        apart = (data.score_right - data.score_wrong).transpose("step", "pair").values
        return _right(apart), np.full(data.sizes["pair"], 0.5), None


def _right(apart: np.ndarray, tie: float = 0.0) -> np.ndarray:
    """Return 1 where the right text is likelier, .5 of a tie, NaN where nothing was measured."""
    verdict = np.where(apart > tie, 1.0, np.where(apart < -tie, 0.0, 0.5))
    return np.where(np.isfinite(apart), verdict, np.nan)
