"""Multiple choice: how often a model gives the right answer to a prompt the highest probability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ...figures import Section
from ...observables.pieces import object_array
from ...quantities import Quantity
from ...tasks.records import Example, read_records
from .choice_forms import choice_of, is_choices, keys_of
from .choice_keys import MEANINGS
from .examples import SHARE, Maker, OfExamples, accuracy, by_group, names_of
from .guesses import guesses
from .ngrams import ngram_scores
from .token_texts import TokenTexts


@dataclass(frozen=True)
class Choices(OfExamples):
    """Whether the model gives the right one of several answers the highest probability, by groups.

    The score of an answer is the logarithm of its probability after the prompt, as
    `MinimalPairs` takes it. A tie of several answers counts as one of them. ``accuracy_normalised``
    divides each score by the number of characters of the answer (``acc_norm`` of EleutherAI's
    harness): long answers have low probabilities.

    Parameters
    ----------
    examples
        Files: JSON lines, CSV or TSV, with a ``prompt``, ``answers`` (in a table columns
        ``answer1``, ``answer2``, ...), the ``right`` one (its text, its letter, or its number,
        see `keys`) and, where there is one, a ``group``; files of ARC, HellaSwag, COPA, BoolQ and
        PIQA as they are.
    on
        Input set whose n-grams are counted; the first by default.
    objective
        ``"auto"``, ``"causal"`` or ``"masked"``.
    keys
        What ``right`` is: ``"text"``, ``"letter"``, or a number ``"from 0"`` or ``"from 1"``.
        ``"auto"`` takes what fits all questions of a file, as it stands or else in any case, and
        refuses a file of which two fit with other answers.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "q.jsonl"
    >>> _ = file.write_text(
    ...     '{"prompt": "Grass is", "answers": ["green", "loud"], "right": 0}'
    ... )
    >>> Choices(str(file)).arguments()["examples"]
    ('q.jsonl',)
    """

    keys: str = "auto"

    kind = "choices"
    choices = {"keys": ("auto", *MEANINGS)}
    one = "question"
    measured = "score"
    question = "Which of several answers does the model choose, and since when?"
    form = "questions with answers to choose from"
    fields_of_form = "prompt, answers and right, or ARC's, HellaSwag's, ..."
    state_variables = (
        *(
            "group_of_question",
            "prompt",
            "answer_text",
            "question_of_answer",
            "right_answer",
        ),
        *("characters", "right_ngrams", "left_out"),
    )
    quantities = (
        *accuracy(
            "question", "whose right answer is likeliest", "one answer given everywhere"
        ),
        Quantity(
            "accuracy_normalised",
            "share of questions whose right answer is likeliest for its length",
            unit="questions",
            caption="Log-probabilities are divided by the number of characters of the answer.",
            **SHARE,
        ),
    )
    section = Section(
        title="Choices",
        definition="The share of questions whose right answer is the likeliest after the prompt.",
        symbol="mean [right = argmaxₐ log p(a | prompt; θₜ)]",
        null="Chance is one over the number of answers; of questions that share their answers, "
        "what the commonest right one reaches. Questions that one liking answers count once. What "
        "n-grams of the study's texts reach takes no more than which words stand together.",
        care="A model may prefer short answers; the accuracy by length shows it.",
        source="Brown et al. 2020; Gao et al., lm-evaluation-harness",
    )
    variables = {
        "score": ("log-probability of the answer after the prompt", "nats"),
        "prompt": ("prompt", ""),
        "answer_text": ("answer", ""),
        "question_of_answer": ("question that the answer belongs to", ""),
        "right_answer": ("which answer is right", ""),
        "characters": ("characters of the answer", "characters"),
        **names_of("question"),
    }

    recognises = staticmethod(is_choices)

    def example_of(self, record: Mapping[str, Any], stem: str, where: str) -> Example:
        """Return the question of a record, by what its key alone can mean."""
        return choice_of(record, stem, where, "" if self.keys == "auto" else self.keys)

    def makes_examples(self, path: str) -> Maker:
        """Return what makes questions of a file's records, in which keys have one meaning."""
        if self.keys != "auto":
            return self.example_of
        return partial(choice_of, meaning=keys_of(read_records(path), Path(path).name))

    def before_asking(
        self, examples: Sequence[Example], tokens: TokenTexts, counted: tuple[Any, int]
    ) -> dict[str, Any]:
        """Return prompts and answers, and whether n-grams are right."""
        numbers = np.array([len(example.texts) for example in examples])
        of_answer = np.repeat(np.arange(len(examples)), numbers)
        right = np.cumsum(numbers) - numbers + [example.right for example in examples]
        answers = [answer.strip() for example in examples for answer in example.texts]
        return {
            "prompt": (
                "question",
                object_array([example.before[0] for example in examples]),
            ),
            "answer_text": ("answer", object_array(answers)),
            "question_of_answer": ("answer", of_answer),
            "right_answer": ("question", right),
            "characters": ("answer", np.array([len(answer) for answer in answers])),
            "right_ngrams": (
                "question",
                _right(ngram_scores(tokens, *counted), of_answer, right),
            ),
        }

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return the score of each answer, and the accuracy of each group."""
        assert state is not None
        scores = TokenTexts.of_state(state).scores(reading[self.needs()[0]])
        data: dict[str, Any] = {"score": ("answer", scores)}
        for name, values in _both(scores, state).items():
            groups, share, size = by_group(state, "question", values)
            data[name] = ("group", share)
        # Two more of each: all right is not without noise.
        middle = (share * size + 2) / (size + 4)
        data["accuracy_normalised_stderr"] = (
            "group",
            np.sqrt(middle * (1 - middle) / (size + 4)),
        )
        return xr.Dataset(data, coords={"group": groups})

    def right_of(self, data: xr.Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return which questions are right, what one answer reaches, and which go together."""
        right = _both(data.score.transpose("step", "answer").values, data)["accuracy"]
        answers = data.answer_text.values
        first = np.flatnonzero(np.diff(data.question_of_answer.values, prepend=-1))
        options = [list(some) for some in np.split(answers, first[1:])]
        groups = list(map(str, data.group_of_question.values))
        return right, *guesses(
            groups, options, answers[data.right_answer.values.astype(int)]
        )


def _both(scores: np.ndarray, state: xr.Dataset) -> dict[str, np.ndarray]:
    """Return (..., questions) whether each is right, by scores and by scores for their length."""
    places = (
        state.question_of_answer.values.astype(int),
        state.right_answer.values.astype(int),
    )
    return {
        "accuracy": _right(scores, *places),
        "accuracy_normalised": _right(scores / state.characters.values, *places),
    }


def _right(scores: np.ndarray, of_answer: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return 1 where the right answer is likeliest, a share of a tie, NaN where nothing is known.

    Examples
    --------
    >>> _right(
    ...     np.array([-1.0, -2.0, -3.0, -3.0]), np.array([0, 0, 1, 1]), np.array([0, 3])
    ... )
    array([1. , 0.5])
    """
    first = np.flatnonzero(np.diff(of_answer, prepend=-1))
    best = np.maximum.reduceat(scores, first, axis=-1)[..., of_answer]
    likeliest = (scores >= best).astype(float)
    ties = np.add.reduceat(likeliest, first, axis=-1)
    chance = likeliest[..., right] / np.maximum(ties, 1)
    return np.where(np.isfinite(best[..., right]), chance, np.nan)
