"""Answers that a model has to give itself: the last word of a text, or what follows a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ...errors import ArgumentError
from ...figures import Section
from ...observables.pieces import object_array
from ...tasks.records import Example, group_of, named, text_of
from .choice_forms import PROMPT, is_choices
from .examples import OfExamples, accuracy, by_group, commonest, names_of
from .guesses import one_answer
from .token_texts import TokenTexts

ANSWER = ("answer", "target", "completion")


@dataclass(frozen=True)
class Answers(OfExamples):
    """Whether the model finds the last word of a text, by groups (LAMBADA).

    An answer is right where each of its tokens is the likeliest after what stands before: what
    the model would write if it always took the likeliest token. In the result ``rank`` is the
    largest rank of the answer's tokens, 1 where it is right, and ``score`` the logarithm of the
    answer's probability. Chance is what word frequencies reach at most: the share of the group's
    commonest answer.

    Parameters
    ----------
    examples
        Files: JSON lines, CSV or TSV with a ``text``, whose last word is to be found, or with a
        ``prompt`` and an ``answer``, and, where there is one, a ``group``.
    on
        Input set whose layout counts; the first by default.
    objective
        ``"auto"``, ``"causal"`` or ``"masked"``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "words.jsonl"
    >>> _ = file.write_text('{"text": "The cat sat on the mat"}')
    >>> Answers(str(file)).read()[0][0].texts
    (' mat',)
    """

    kind = "answers"
    question = "Does the model find the last word of a text, and since when?"
    form = "texts whose last word is to be found"
    fields_of_form = "text, or prompt and answer"
    state_variables = (
        "group_of_example",
        "prompt",
        "answer_text",
        "commonest",
        "left_out",
    )
    quantities = accuracy(
        "example", "whose answer is right", "the commonest answer", ngrams=False
    )
    section = Section(
        title="Answers",
        definition="The share of texts of whose last word each token is the likeliest one.",
        symbol="mean [wᵢ = argmaxᵥ p(v | w₁ … wᵢ₋₁; θₜ) for all tokens of the answer]",
        null="{Word} frequencies alone give one answer everywhere: at best the group's commonest.",
        care="Other answers may be as good as the one that stands in the text.",
        source="Paperno et al. 2016",
    )
    variables = {
        "score": ("log-probability of the right answer", "nats"),
        "rank": ("largest rank of the right answer's tokens", ""),
        "prompt": ("what stands before the answer", ""),
        "answer_text": ("right answer", ""),
        "commonest": ("share of the commonest answer of its group", "1"),
        **names_of("example"),
    }

    @staticmethod
    def recognises(fields: Sequence[str]) -> bool:
        """Return whether records with these fields are texts or prompts with one answer."""
        asked = named(fields, PROMPT) is not None and named(fields, ANSWER) is not None
        whole = "text" in fields and "label" not in fields
        return (asked or whole) and not is_choices(fields)

    def example_of(self, record: Mapping[str, Any], stem: str, where: str) -> Example:
        """Return the example of a record."""
        field = named(record, ANSWER)
        if field is None:
            text = text_of(record, named(record, ("text",)), "text").rstrip()
            prompt, _, word = text.rpartition(" ")
        else:
            prompt = text_of(record, named(record, PROMPT), "prompt")
            word = text_of(record, field, "answer").strip()
        if not prompt.strip():
            raise ArgumentError("its text has one word, and nothing stands before it")
        return Example.after(prompt, [word], 0, group_of(record, stem), where)

    def before_asking(
        self, examples: Sequence[Example], tokens: TokenTexts, counted: tuple[Any, int]
    ) -> dict[str, Any]:
        """Return the texts, and how common the commonest answer of each group is."""
        answers = [example.texts[0].strip() for example in examples]
        share = commonest([example.group for example in examples], answers)
        return {
            "prompt": (
                "example",
                object_array([example.before[0] for example in examples]),
            ),
            "answer_text": ("example", object_array(answers)),
            "commonest": ("example", share),
        }

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return score and rank of each answer, and the accuracy of each group."""
        assert state is not None
        scores, ranks = TokenTexts.of_state(state).scores_and_ranks(
            reading[self.needs()[0]]
        )
        groups, share, _ = by_group(state, "example", ranks == 1)
        variables = {"score": ("example", scores), "rank": ("example", ranks)}
        return xr.Dataset(
            {**variables, "accuracy": ("group", share)}, coords={"group": groups}
        )

    def right_of(self, data: xr.Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return which answers are right, how often the commonest one is, and which go together."""
        rank = data["rank"].transpose("step", "example").values
        right = np.where(np.isfinite(rank), rank == 1, np.nan)
        groups = list(map(str, data.group_of_example.values))
        return right, data.commonest.values, one_answer(groups, data.answer_text.values)
