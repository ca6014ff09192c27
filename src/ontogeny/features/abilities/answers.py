"""Answers that a model has to give itself: the last word of a text, or what follows a prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ...errors import ArgumentError
from ...figures import Section
from ...quantities import Quantity
from ...tasks.records import group_of, named, text_of
from ...words.names import Names
from .choice_forms import PROMPT, is_choices
from .examples import OfExamples, accuracy, by_group, names_of, texts_of
from .token_texts import TokenTexts

ANSWER = ("answer", "target", "completion")


@dataclass(frozen=True)
class Answer:
    """One text with what is to be found at its end."""

    prompt: str
    answer: str
    group: str
    where: str

    @property
    def texts(self) -> tuple[str]:
        """What has a score."""
        return (self.answer,)

    @property
    def before(self) -> tuple[str]:
        """What stands before it."""
        return (self.prompt,)


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

    examples: tuple[str, ...]
    on: str | None = None
    objective: str = "auto"

    kind: ClassVar[str] = "answers"
    question: ClassVar[str] = "Does the model find the last word of a text, and since when?"
    price: ClassVar[str] = (
        "one pass over each text at each step; of a masked model one for each token of the answer"
    )
    form: ClassVar[str] = "texts whose last word is to be found"
    fields_of_form: ClassVar[str] = "text, or prompt and answer"
    kept: ClassVar[tuple[str, ...]] = (
        *("group_of_example", "prompt", "answer_text", "commonest", "left_out"),
    )
    quantities: ClassVar[tuple[Quantity, ...]] = (
        accuracy("example", "whose answer is right", "the commonest answer", ngrams=False),
    )
    section: ClassVar[Section] = Section(
        title="Answers",
        definition="The share of texts whose last word the model finds: each token of it is the "
        "likeliest after those before.",
        symbol="mean [wᵢ = argmaxᵥ p(v | w₁ … wᵢ₋₁; θₜ) for all tokens of the answer]",
        null="Whoever knows nothing but word frequencies gives one answer everywhere, and is right "
        "at most as often as the commonest answer of the group.",
        care="Other answers may be as good as the one that stands in the text.",
        source="Paperno et al. 2016",
    )
    variables: ClassVar[Names] = {
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

    def example_of(self, record: Mapping[str, Any], stem: str, where: str) -> Answer:
        """Return the example of a record."""
        field = named(record, ANSWER)
        if field is not None:
            prompt = text_of(record, named(record, PROMPT), "prompt")
            word = text_of(record, field, "answer").strip()
            space = "" if prompt[-1].isspace() else " "
        else:
            words = text_of(record, named(record, ("text",)), "text").rstrip().rsplit(maxsplit=1)
            if len(words) < 2:
                raise ArgumentError("its text has one word, and nothing stands before it")
            prompt, word, space = words[0], words[1], " "
        return Answer(prompt, f"{space}{word}", group_of(record, stem), where)

    def before_asking(
        self, examples: Sequence[Any], tokens: TokenTexts, counted: tuple[Any, int]
    ) -> dict[str, Any]:
        """Return the texts, and how common the commonest answer of each group is."""
        answers = Counter((each.group, each.answer) for each in examples)
        sizes = Counter(each.group for each in examples)
        most = {g: max(n for (h, _), n in answers.items() if h == g) / sizes[g] for g in sizes}
        return {
            "prompt": ("example", texts_of([each.prompt for each in examples])),
            "answer_text": ("example", texts_of([each.answer.strip() for each in examples])),
            "commonest": ("example", np.array([most[each.group] for each in examples])),
        }

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return score and rank of each answer, and the accuracy of each group."""
        assert state is not None
        scores, ranks = TokenTexts.of_state(state).scores_and_ranks(reading[self.needs()[0]])
        groups, share = by_group(state, "example", ranks == 1)
        found = {"score": ("example", scores), "rank": ("example", ranks)}
        return xr.Dataset({**found, "accuracy": ("group", share)}, coords={"group": groups})

    def right_of(self, data: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
        """Return which answers are right, and how often the commonest one is."""
        rank = data["rank"].transpose("step", "example").values
        return np.where(np.isfinite(rank), rank == 1, np.nan), data.commonest.values
