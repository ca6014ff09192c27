"""Labelled texts from the Hugging Face Hub, through the optional library ``datasets``."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import ArgumentError
from .corpus import paragraphs
from .labelled import LabelledTexts

_FIRST = "the first of a larger data set"


@dataclass(frozen=True)
class NamedDataset:
    """Where a well-known data set lies on the Hub, and which of its fields are read.

    ``unit`` is what one text is: ``"text"``, each ``"paragraph"`` of it, or, where the rows are
    pieces of one document, a paragraph of that (``"piece"``; headings go with what follows).
    ``stream`` reads rows as they are needed, for data sets too large to fetch whole.
    """

    path: str
    config: str | None = None
    text: str = "text"
    label: str | None = None
    unit: str = "text"
    stream: bool = False


DATASETS: Mapping[str, NamedDataset] = {
    "sst2": NamedDataset("nyu-mll/glue", "sst2", "sentence", "label"),
    "cola": NamedDataset("nyu-mll/glue", "cola", "sentence", "label"),
    "rotten-tomatoes": NamedDataset(
        "cornell-movie-review-data/rotten_tomatoes", None, "text", "label"
    ),
    "wikipedia": NamedDataset(
        "wikimedia/wikipedia", "20231101.en", "text", None, "paragraph", stream=True
    ),
    "tinystories": NamedDataset("roneneldan/TinyStories", stream=True),
    "wikitext-2": NamedDataset(
        "Salesforce/wikitext", "wikitext-2-raw-v1", "text", None, "piece"
    ),
    "openwebtext": NamedDataset("Skylion007/openwebtext", stream=True),
}
"""Data sets by short name: SST-2 and CoLA of GLUE, Rotten Tomatoes, English Wikipedia,
TinyStories, WikiText-2 and OpenWebText."""


def load_texts(
    name: str,
    split: str = "train",
    *,
    config: str | None = None,
    text: str | None = None,
    label: str | None = None,
    max_texts: int | None = None,
    random_state: int = 0,
    revision: str | None = None,
    document: str | None = None,
) -> LabelledTexts:
    """Load texts of a data set on the Hugging Face Hub.

    Parameters
    ----------
    name
        A short name of `DATASETS`, or any ``"owner/name"`` or folder that ``datasets`` can load.
    split
        Such as ``"train"`` or ``"validation"``.
    config, text, label
        The data set's configuration, and its fields of text and label; for short names they are
        known. Without `label` other data sets are read without labels.
    max_texts
        At most so many texts, drawn with the classes in their shares by `random_state`; the first
        ones of a streamed data set (Wikipedia, TinyStories, OpenWebText), where it is required,
        and of one that is read by paragraph (Wikipedia, WikiText-2).
    revision
        A commit or tag, to read the same data again later.
    document
        The field of the document that each text comes from. Wikipedia is read by paragraph, and an
        article is a document.

    Raises
    ------
    ArgumentError
        If ``datasets`` is not installed, the data set, split or a field is missing, or the split
        has no labels (GLUE's test splits).
    """
    dataset = DATASETS.get(name, NamedDataset(name))
    text = text or dataset.text
    label = label or dataset.label
    rows = _rows(name, dataset, split, config, revision, max_texts)
    _check_fields(name, rows, text, label, document)
    source = f"{name}/{split}"
    if dataset.unit != "text":
        whole = (row[text] for row in rows)
        return _by_paragraph(whole, source, dataset.unit, max_texts)
    fields = iter(_wanted_fields(rows, text, label, document))
    taken = itertools.islice(fields, max_texts if dataset.stream else None)
    texts = LabelledTexts.from_rows(taken, text, label, source, document)
    if (
        texts.labels is not None
        and texts.labels.dtype.kind == "i"
        and (texts.labels < 0).all()
    ):
        raise ArgumentError(
            f"{source} has no labels: all of them are {texts.labels[0]}."
        )
    if dataset.stream:
        return replace(texts, form=_form_before(fields))
    return texts.sample(max_texts, random_state)


def _rows(
    name: str,
    dataset: NamedDataset,
    split: str,
    config: str | None,
    revision: str | None,
    max_texts: int | None,
) -> Any:
    """Return the rows of a data set as ``datasets`` gives them."""
    try:
        import datasets
    except ImportError:
        raise ArgumentError(
            "data sets of the Hub are read with the library datasets, which is not installed: "
            "pip install 'ontogeny[datasets]'."
        ) from None
    if dataset.stream and max_texts is None:
        raise ArgumentError(
            f"the data set {name!r} is too large to be read whole; give max_texts."
        )
    try:
        return datasets.load_dataset(
            dataset.path,
            config or dataset.config,
            split=split,
            streaming=dataset.stream,
            revision=revision,
        )
    except Exception as error:  # of many kinds, some of them its dependencies'
        raise ArgumentError(
            f"the data set {name!r} (split {split!r}) cannot be loaded: "
            f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        ) from error


def _by_paragraph(
    whole: Iterable[str], source: str, unit: str, max_texts: int | None
) -> LabelledTexts:
    """Return paragraphs of the texts, which are documents or pieces of one (`NamedDataset`)."""
    if unit == "piece":
        whole = ["\n\n".join(whole)]
    pieces = (
        (paragraph, number)
        for number, content in enumerate(whole)
        for paragraph in paragraphs(content)
    )
    numbered = list(itertools.islice(pieces, max_texts))
    form = _form_before(pieces)
    articles = None
    if unit == "paragraph":
        articles = np.array([number for _, number in numbered], dtype=np.int64)
    texts = tuple(paragraph for paragraph, _ in numbered)
    return LabelledTexts(texts, None, source, documents=articles, form=form)


def _form_before(rest: Iterator[Any]) -> str:
    """Return the form of texts of a data set of which some may be left."""
    return "" if next(rest, None) is None else _FIRST


def _check_fields(
    name: str, rows: Any, text: str, label: str | None, document: str | None
) -> None:
    fields = getattr(rows, "column_names", None)
    if isinstance(fields, Mapping):
        raise ArgumentError(
            f"the data set {name!r} needs a split, one of {', '.join(fields)}."
        )
    for argument, field in (("text", text), ("label", label), ("document", document)):
        if fields is not None and field is not None and field not in fields:
            raise ArgumentError(
                f"the data set {name!r} has no field {field!r}; name one of "
                f"{', '.join(map(repr, fields))} as {argument}=."
            )


def _wanted_fields(rows: Any, *fields: str | None) -> Iterable[Mapping[str, Any]]:
    """Iterate over the rows without decoding their other columns."""
    names = [name for name in fields if name is not None]
    return rows.select_columns(names) if hasattr(rows, "select_columns") else rows
