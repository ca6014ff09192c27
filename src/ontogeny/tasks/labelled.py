"""Texts with labels: their balance, seeded samples and splits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..inputs import Inputs, stratified_split
from ..inputs.described import form_of_some
from ..inputs.splits import class_counts, document_array, stratified_draw, text_groups


@dataclass(frozen=True, eq=False)
class LabelledTexts:
    """Texts of a data set, with one label each where it has labels.

    Parameters
    ----------
    texts
        The n texts.
    labels
        (n,) int64 class numbers or strings; None where there are none.
    source
        Where they come from, for messages.
    skipped
        One line for each broken row that was left out.
    documents
        (n,) the document that each text comes from, as a text or a whole number; None where it is
        not known. Texts of one document, and texts that repeat, are one unit: see `groups`.
    form
        How they stand in their files, such as ``"one a line"``; empty where it is not known.

    Examples
    --------
    >>> data = LabelledTexts(("good", "bad", "fine", "poor"), np.array([1, 0, 1, 0]))
    >>> data.balance
    {0: 2, 1: 2}
    >>> train, test = data.split(0.5)
    >>> train.balance == test.balance == {0: 1, 1: 1}
    True
    """

    texts: tuple[str, ...]
    labels: np.ndarray | None = None
    source: str = "texts"
    skipped: tuple[str, ...] = ()
    documents: np.ndarray | None = None
    form: str = ""

    def __post_init__(self) -> None:
        if not self.texts:
            raise ArgumentError(f"{self.source} holds no text.")
        if self.labels is not None and len(self.labels) != len(self.texts):
            raise ArgumentError(
                f"{self.source}: {len(self.labels)} labels for {len(self.texts)} texts."
            )
        if self.documents is not None:
            documents = document_array(self.documents, len(self.texts))
            object.__setattr__(self, "documents", documents)

    @classmethod
    def from_rows(
        cls,
        rows: Iterable[Mapping[str, Any]],
        text: str = "text",
        label: str | None = "label",
        source: str = "rows",
        document: str | None = None,
    ) -> LabelledTexts:
        """Take texts from mappings held in memory, such as a ``datasets.Dataset``.

        `text`, `label` and `document` are the names of their fields.

        Raises
        ------
        ArgumentError
            If a row lacks a field or its text is no string; the message names the row.

        Examples
        --------
        >>> LabelledTexts.from_rows([{"text": "good", "label": 1}]).labels.tolist()
        [1]
        """
        texts = []
        labels = []
        documents = []
        for number, row in enumerate(rows):
            for name in (text, label, document):
                if name is not None and name not in row:
                    raise ArgumentError(
                        f"{source}, row {number} has no field {name!r}; it has "
                        f"{', '.join(map(repr, row))}."
                    )
            if not isinstance(row[text], str):
                kind = type(row[text]).__name__
                raise ArgumentError(
                    f"{source}, row {number}: {text!r} is {kind}, not a string."
                )
            texts.append(row[text])
            labels.append(None if label is None else row[label])
            documents.append(None if document is None else row[document])
        return cls(
            tuple(texts),
            None if label is None else as_labels(labels),
            source,
            documents=None if document is None else np.array(documents, dtype=object),
        )

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        balance = "" if self.labels is None else f", labels {self.balance}"
        skipped = f", {len(self.skipped)} rows skipped" if self.skipped else ""
        return f"LabelledTexts({len(self)} texts of {self.source}{balance}{skipped})"

    @property
    def balance(self) -> dict[Any, int]:
        """How many texts each class has; empty without labels."""
        return {} if self.labels is None else class_counts(self.labels)

    @property
    def groups(self) -> np.ndarray:
        """(n,) the number of the first text of each text's unit; see `Inputs.groups`."""
        return text_groups(self.texts, self.documents)

    def subset(self, rows: Sequence[int] | np.ndarray) -> LabelledTexts:
        """Return some of the texts."""
        rows = np.asarray(rows, dtype=np.int64)
        labels = None if self.labels is None else self.labels[rows]
        documents = None if self.documents is None else self.documents[rows]
        texts = tuple(self.texts[row] for row in rows)
        return replace(self, texts=texts, labels=labels, documents=documents)

    def sample(self, max_texts: int | None, random_state: int = 0) -> LabelledTexts:
        """Return at most `max_texts` texts, drawn with the classes in their shares, in order."""
        if max_texts is None:
            return self
        labels = np.zeros(len(self)) if self.labels is None else self.labels
        return self._drawn(stratified_draw(labels, max_texts, random_state))

    def balanced(
        self, max_texts: int | None = None, random_state: int = 0
    ) -> LabelledTexts:
        """Return equally many texts of every class, drawn at random, at most `max_texts`.

        Examples
        --------
        >>> data = LabelledTexts(("a", "b", "c", "d", "e"), np.array([1, 1, 1, 0, 0]))
        >>> data.balanced(3).balance
        {0: 1, 1: 1}
        """
        if self.labels is None:
            raise ArgumentError(f"{self.source} has no labels to balance by.")
        per_label = min(self.balance.values())
        if max_texts is not None:
            per_label = min(per_label, max_texts // len(self.balance))
        if per_label < 1:
            raise ArgumentError(f"max_texts={max_texts} leaves no text for each class.")
        rng = np.random.default_rng(random_state)
        rows = (np.flatnonzero(self.labels == label) for label in self.balance)
        return self._drawn(
            np.sort(np.concatenate([rng.permutation(o)[:per_label] for o in rows]))
        )

    def _drawn(self, rows: np.ndarray) -> LabelledTexts:
        form = form_of_some(len(rows), len(self), self.form, "drawn from")
        return replace(self.subset(rows), form=form)

    def split(
        self, train_fraction: float = 2 / 3, random_state: int = 0
    ) -> tuple[LabelledTexts, LabelledTexts]:
        """Return two parts with the classes in equal shares; see `inputs.stratified_split`.

        Texts that repeat, and texts of one document, are in one part.
        """
        if self.labels is None:
            raise ArgumentError(f"{self.source} has no labels to split by.")
        first, second = stratified_split(
            self.labels, train_fraction, random_state, self.groups
        )
        return self.subset(first), self.subset(second)

    def inputs(
        self, tokenizer: Any, max_length: int = 128, padding_side: str = "right"
    ) -> Inputs:
        """Tokenise the texts; labels and documents travel with them."""
        return Inputs.from_texts(
            self.texts,
            tokenizer,
            max_length,
            padding_side,
            self.labels,
            self.source,
            self.documents,
            self.form,
        )


def as_labels(values: Sequence[Any]) -> np.ndarray:
    """Return labels as int64 where all are whole numbers, else as strings.

    Labels that are written differently stay apart: where two of them are the same number, such as
    ``"01"`` and ``"1"``, all labels are what is written.

    Examples
    --------
    >>> as_labels(["1", "0"]).tolist(), as_labels(["good", "1"]).tolist()
    ([1, 0], ['good', '1'])
    >>> as_labels(["1", "01", "2"]).tolist()
    ['1', '01', '2']
    """
    written = [str(value) for value in values]
    try:
        numbers = {
            text: _whole(value) for text, value in zip(written, values, strict=True)
        }
        if len(set(numbers.values())) == len(numbers):
            return np.array([numbers[text] for text in written], dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        pass
    return np.array(written)


def _whole(value: Any) -> int:
    """Return the whole number that a label says; raise if it says none."""
    try:
        return int(str(value))  # large ones exactly
    except ValueError:
        number = float(value)
    if not number.is_integer():
        raise ValueError(f"{value} is no whole number")
    return int(number)
