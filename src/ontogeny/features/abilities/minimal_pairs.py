"""Minimal pairs: how often a model gives the right one of two texts the higher probability."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ...errors import ArgumentError, check_choice
from ...figures import Figure, Section
from ...observables.base import Run
from ...observables.catalogued import PREDICTED, PresetEntry, Presets
from ...observables.of_predictions import OfPredictions
from ...quantities import Quantity
from ...tasks.records import cached_records, digest_of
from ...words.names import Names
from .groups import GROUP_NAMES, group_figures, group_words, with_courses
from .ngrams import ORDER, ngram_scores
from .pairs import Pair, contrasts, is_pairs, pairs_of, said_of
from .token_texts import TokenTexts, tokenised

log = logging.getLogger("ontogeny.abilities")
METHODS = ("sentence", "prefix")
BUNDLED = Path(__file__).with_name("english.csv")
TRIED = 8  # pairs of a dry run


@dataclass(frozen=True)
class MinimalPairs(OfPredictions):
    """Whether the model gives the right one of two texts the higher probability, by groups.

    The score of a text is the logarithm of its probability: of a causal model the sum over its
    tokens, after a token to begin with; of a masked model the pseudo-log-likelihood with the rest
    of each word hidden (Salazar et al. 2020; Kauf and Ivanova 2023). A tie counts one half. Beside
    each group stands what four-grams of the study's texts reach.

    Parameters
    ----------
    examples
        Files: JSON lines, CSV or TSV, with a ``right`` and a ``wrong`` text and, where there is
        one, a ``group``; files of BLiMP as they are. Without, 23 groups of 30 English pairs that
        come with the package.
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
    on: str | None = None
    objective: str = "auto"

    kind: ClassVar[str] = "minimal-pairs"
    question: ClassVar[str] = "Which of two texts does the model find likelier, and since when?"
    price: ClassVar[str] = (
        "one pass over both texts of each pair at each step; of a masked model one for each token"
    )
    presets: ClassVar[Presets] = (
        PresetEntry(("one-model", "everything"), PREDICTED, 15, ("no_english",)),
        PresetEntry(
            ("quick", "standard", "fine-tuning"), PREDICTED, 15, ("no_english", "many_passes")
        ),
    )
    obstacles: ClassVar[tuple[str, ...]] = ("no_prediction", "no_tokenizer")
    file_arguments: ClassVar[tuple[str, ...]] = ("examples",)
    form: ClassVar[str] = "minimal pairs"
    fields_of_form: ClassVar[str] = "right and wrong, or sentence_good and sentence_bad"
    kept: ClassVar[tuple[str, ...]] = (
        *("group_of_pair", "right_text", "wrong_text", "contrast", "turned_contrast"),
        *("tokens_right", "tokens_wrong", "right_ngrams", "left_out"),
    )
    quantities: ClassVar[tuple[Quantity, ...]] = (
        Quantity(
            "accuracy",
            "share of pairs whose right text is likelier",
            rows="{group}",
            subject=None,
            unit="pairs",
            minimum=0.0,
            better="higher",
            nulls={"ngrams": f"{ORDER}-grams of the study's texts", "chance": "chance"},
            series="group",
            heading="Pairs whose right text is likelier",
            caption="Bars: 95 % over pairs. Grey: what n-grams of the study's texts reach, and "
            "chance.",
            shade="95 % over pairs",
        ),
    )
    section: ClassVar[Section] = Section(
        title="Minimal pairs",
        definition="The share of pairs in which the right text has the higher probability. The "
        "score of a text is the sum of the log-probabilities of its tokens.",
        symbol="mean [log p(right; θₜ) > log p(wrong; θₜ)]",
        null="Chance is one half. Pairs that set the same words against each other count as so "
        "many as their spread shows. What n-grams of the study's texts reach takes no more than "
        "which words stand together.",
        care="A liking for one word looks like an ability where all pairs of a group have the "
        "same word on the right side; the table says how far that would go.",
        source="Warstadt et al. 2020; Salazar et al. 2020; Kauf and Ivanova 2023",
    )
    variables: ClassVar[Names] = {
        "score_right": ("log-probability of the right text", "nats"),
        "score_wrong": ("log-probability of the wrong text", "nats"),
        "group_of_pair": ("group of the pair", ""),
        "right_text": ("right text", ""),
        "wrong_text": ("wrong text", ""),
        "contrast": ("which words are set against which", ""),
        "turned_contrast": ("the same contrast the other way round", ""),
        "tokens_right": ("tokens of the right text that have a score", "tokens"),
        "tokens_wrong": ("tokens of the wrong text that have a score", "tokens"),
        "right_ngrams": ("whether n-grams of the study's texts are right", "1"),
        "right_from": ("step from which on the pair stays right", "steps"),
        "left_out": ("examples that were left out, and why", ""),
        **GROUP_NAMES,
    }

    @staticmethod
    def recognises(fields: Sequence[str]) -> bool:
        """Return whether records with these fields are pairs."""
        return is_pairs(fields)

    def check(self) -> None:
        """Refuse files without a pair; say what is left out of others."""
        check_choice("method", self.method, METHODS)
        if left_out := said_of(self._pairs()[1]):
            log.warning("%s", left_out)

    def files_read(self) -> Sequence[str | Path]:
        """Return none: `arguments` tells what they hold, wherever they lie."""
        return ()

    def arguments(self) -> dict[str, Any]:
        """Return the fields; of files their names, and a digest of what they hold."""
        names = tuple(Path(path).name for path in self.examples)
        return {**super().arguments(), "examples": names, "content": digest_of(self._paths)}

    def files(self) -> Sequence[str | Path]:
        """Return none: the digest is among the arguments, so that a moved file stays the same."""
        return ()

    @property
    def _paths(self) -> tuple[str, ...]:
        return self.examples or (str(BUNDLED),)

    def _pairs(self) -> tuple[list[Pair], list[str]]:
        pairs, left_out = [], []
        for path in self._paths:
            some, problems = pairs_of(cached_records(path, digest_of([path])), self.method)
            pairs += some
            left_out += problems
        if not pairs:
            raise ArgumentError(
                "examples must hold pairs, with the fields right and wrong (or sentence_good and "
                f"sentence_bad, good and bad); {said_of(left_out)}"
            )
        return pairs, left_out

    def prepare(self, run: Run) -> xr.Dataset:
        """Return the pairs as tokens, with what n-grams say of them."""
        asked, texts = self.needs()
        reading = run.reading(run.reference_step)
        predictor, inputs = reading[asked], reading[texts]
        pairs, left_out = self._pairs()
        pairs = pairs[:TRIED] if run.is_trial else pairs
        pairs, tokens, problems = _as_tokens(pairs, run.tokenizer(), predictor)
        left_out = left_out + problems
        count = len(pairs)
        scores = ngram_scores(tokens, inputs, predictor.vocabulary(inputs))
        contrast, turned = contrasts(pairs)
        state = {
            **tokens.variables(),
            "group_of_pair": ("pair", _texts([pair.group for pair in pairs])),
            "right_text": ("pair", _texts([pair.before_right + pair.right for pair in pairs])),
            "wrong_text": ("pair", _texts([pair.before_wrong + pair.wrong for pair in pairs])),
            "contrast": ("pair", contrast),
            "turned_contrast": ("pair", turned),
            "tokens_right": ("pair", tokens.scored[:count]),
            "tokens_wrong": ("pair", tokens.scored[count:]),
            "right_ngrams": ("pair", _right(scores[:count] - scores[count:], 1e-9)),
        }
        if left_out:
            state["left_out"] = ("left_out", _texts(left_out))
        return xr.Dataset(state)

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return the score of each text, and the accuracy of each group."""
        assert state is not None
        tokens = TokenTexts.of_state(state)
        scores = tokens.scores(reading[self.needs()[0]])
        if self.per_token:
            scores = scores / tokens.scored
        right, wrong = np.split(scores, 2)
        groups, place = _groups(state)
        share = np.bincount(place, _right(right - wrong)) / np.bincount(place)
        return xr.Dataset(
            {
                "score_right": ("pair", right),
                "score_wrong": ("pair", wrong),
                "accuracy": ("group", share),
            },
            coords={"group": groups},
        )

    def derive(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Return the cells with intervals, noise, and the steps from which groups are above chance.

        Groups stand in the order in which they leave chance.
        """
        if "score_right" not in data or "group_of_pair" not in data:
            return data
        apart = (data.score_right - data.score_wrong).transpose("step", "pair").values
        right = _right(apart)
        half = np.full(data.sizes["pair"], 0.5)
        return with_courses(data, right, data.group_of_pair, half, data.right_ngrams)

    def figures(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> Sequence[Figure]:
        """Return a map of many groups."""
        return group_figures(data)

    def words(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> Sequence[str]:
        """Return which groups left chance, and what was left out."""
        left_out = [str(each) for each in data.left_out.values] if "left_out" in data else []
        return [*group_words(data, "pair"), *filter(None, [said_of(left_out)])]


def _right(apart: np.ndarray, tie: float = 0.0) -> np.ndarray:
    """Return 1 where the right text is likelier, .5 of a tie, NaN where nothing was measured."""
    verdict = np.where(apart > tie, 1.0, np.where(apart < -tie, 0.0, 0.5))
    return np.where(np.isfinite(apart), verdict, np.nan)


def _as_tokens(
    pairs: Sequence[Pair], tokenizer: Any, predictor: Any
) -> tuple[list[Pair], TokenTexts, list[str]]:
    """Return pairs of which both texts can be read, their tokens, and why others cannot.

    Tokens are those of all right texts, then those of all wrong ones.

    Raises
    ------
    ArgumentError
        If no pair can be read.
    """
    before = [pair.before_right for pair in pairs] + [pair.before_wrong for pair in pairs]
    texts = [pair.right for pair in pairs] + [pair.wrong for pair in pairs]
    options = {"masked": predictor.masked, "longest": predictor.longest}
    tokens, problems = tokenised(before, texts, tokenizer, **options)
    why = [a or b for a, b in zip(problems[: len(pairs)], problems[len(pairs) :], strict=True)]
    left_out = [f"{pair.where}: {w}" for pair, w in zip(pairs, why, strict=True) if w]
    if not left_out:
        return list(pairs), tokens, []
    good = [place for place, w in enumerate(why) if not w]
    if not good:
        raise ArgumentError(f"no pair can be read: {said_of(left_out)}")
    both = [*good, *(len(pairs) + place for place in good)]
    return [pairs[place] for place in good], tokens.some(both), left_out


def _groups(state: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return the names of the groups in the order of the files, and the place of each pair's."""
    of_pair = [str(each) for each in state.group_of_pair.values]
    names = {name: place for place, name in enumerate(dict.fromkeys(of_pair))}
    return _texts(list(names)), np.array([names[each] for each in of_pair])


def _texts(values: Sequence[str]) -> np.ndarray:
    return np.array([*values, None], dtype=object)[:-1]
