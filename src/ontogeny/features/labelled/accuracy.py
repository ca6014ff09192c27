"""How often a classifier gives the right label, whole and of each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr
from scipy.special import log_softmax

from ...capture.forward import run
from ...claims import Claim, Subject, measurement
from ...errors import ArgumentError
from ...figures import Section
from ...needs import Gradients, Need
from ...observables import Observable, PresetEntry, Reading, dataset
from ...observables.catalogued import PASS
from ...quantities import Measured, Quantity
from ...trees import Nodes
from . import permuted_labels


@dataclass(frozen=True)
class LabelAccuracy(Observable):
    """Share of texts whose label gets the largest logit, beside the most frequent label's share.

    Parameters
    ----------
    on
        The labelled input set; None means the study's first. Labels are class numbers, or the
        names that the model's configuration has for them (``label2id``).

    Examples
    --------
    >>> LabelAccuracy("held-out").name
    'labels'
    """

    on: str | None = None

    kind = "labels"
    question = "How often does a classifier give the right label, of each class?"
    requires = "texts with labels, a classifier"
    price = PASS
    obstacles = ("no_labels",)
    presets = (PresetEntry(("fine-tuning", "quick"), {}, 12),)
    compared = ("accuracy_excess",)
    quantities = (
        Quantity(
            "accuracy",
            "accuracy",
            units="share of texts",
            rows="accuracy",
            better="higher",
            beats="majority",
            nulls={"majority": "most frequent label"},
            caption="Line: share of texts with the right label.",
            series="",
        ),
        Quantity(
            "of_class",
            "accuracy within each class",
            units="share of its texts",
            series="class",
            caption="A class that falls while the whole rises was given up for another.",
        ),
        Quantity("loss", "loss at the label", units="nats per text", series=""),
    )
    section = Section(
        title="Right labels",
        definition="Share of texts whose label gets the largest logit.",
        symbol="P(argmax z = y)",
        null="Always giving the most frequent label; and labels exchanged among the texts, which "
        "fit as well where nothing was learned of them.",
        care="It says what generalises only if the run was not trained on these texts.",
    )
    variables = {
        "class_texts": ("texts of each class", "texts"),
        **permuted_labels.VARIABLES,
    }

    def needs(self) -> Sequence[Need]:
        """Return the model with its labelled texts."""
        return [Gradients("none", self.on)]

    def check_inputs(self, inputs: Mapping[str, Any]) -> None:
        """Refuse texts without labels."""
        name = self.on or next(iter(inputs))
        if name in inputs and inputs[name].labels is None:
            raise ArgumentError(
                f"labels needs an input set with labels; {name!r} has none."
            )

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return accuracy, accuracy of each class and loss, with what each text says."""
        (need,) = self.needs()
        value = reading[need]
        units = value.inputs.groups
        logits = class_logits(value)
        labels = _class_numbers(value, logits.shape[1])
        answers = logits.argmax(1)
        right = (answers == labels).astype(float)
        loss = -log_softmax(logits.astype(np.float64), axis=1)[
            np.arange(len(labels)), labels
        ]
        classes = np.unique(labels)
        member = labels == classes[:, None]
        count = member.sum(1)
        share = np.array([right[mask].mean() for mask in member])
        majority = float(count.max() / count.sum())
        # A share of 0 or 1 has an error too: an eighth of a text is added to its variance.
        error = np.sqrt((share * (1 - share) + 0.125 / count) / count)
        variables = {
            "accuracy": Measured.mean(right, units, nulls={"majority": majority}),
            "of_class": Measured(("class", share), stderr=("class", error)),
            "loss": Measured.mean(loss, units),
            "class_texts": ("class", count),
            **permuted_labels.exchanged(answers, labels, units),
        }
        return dataset(variables).assign_coords(
            {"class": _class_names(value.model, classes)}
        )

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Return the cells with how likely the gain is where no label was learned."""
        return (
            permuted_labels.with_exchanged_labels(data)
            if "accuracy_exchanged" in data
            else data
        )

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return the classes that the last checkpoint knows best, and what exchanges show."""
        if "of_class" not in data or "run" in data.of_class.dims:
            return []
        last = data.of_class.isel(step=-1).to_series().dropna()
        ends = [last.idxmax(), last.idxmin()] if len(last) > 1 else []
        of_classes = [
            measurement(Subject(name, "of_class", label=str(one)), last[one], units="1")
            for one in ends
        ]
        return [*of_classes, *permuted_labels.claims_of_exchanges(name, data)]


def class_logits(value: Any, batch_size: int | None = None) -> np.ndarray:
    """Return the logits (texts, classes) of a classifier, float32.

    Of a model that gives logits at every token, those at the last token of each text.

    Parameters
    ----------
    value
        What an observable is given for a need of `Gradients`.
    batch_size
        Texts in one forward pass; None takes that of the study.

    Raises
    ------
    ArgumentError
        If the model gives no such logits.
    """
    rows: dict[int, torch.Tensor] = {}
    for batch in value.inputs.batches(batch_size or value.settings.batch_size):
        with torch.no_grad():
            output = run(value.model, batch)
        logits = getattr(output, "logits", output)
        if not isinstance(logits, torch.Tensor) or logits.ndim not in (2, 3):
            raise ArgumentError(
                "accuracy needs logits (texts, classes) or (texts, tokens, classes)."
            )
        if logits.ndim == 3:
            logits = logits[torch.arange(len(logits)), torch.from_numpy(batch.last)]
        rows.update(zip(batch.rows.tolist(), logits.float().cpu(), strict=True))
    return torch.stack([rows[row] for row in range(len(value.inputs))]).numpy()


def _class_numbers(value: Any, n_classes: int) -> np.ndarray:
    """Return the class number of each text; names are looked up in the model's configuration."""
    labels = np.asarray(value.inputs.labels)
    if labels.dtype.kind not in "iu":
        numbers = dict(
            getattr(getattr(value.model, "config", None), "label2id", None) or {}
        )
        names = [str(label) for label in labels]
        unknown = sorted(set(names) - set(numbers))
        if unknown:
            raise ArgumentError(
                f"labels must be class numbers or names of the model's classes, "
                f"{', '.join(map(repr, numbers)) or 'of which it has none'}; got {unknown[0]!r}."
            )
        labels = np.array([numbers[name] for name in names])
    if labels.min() < 0 or labels.max() >= n_classes:
        raise ArgumentError(
            f"labels go from {labels.min()} to {labels.max()}, but the model has {n_classes} "
            "classes, from 0."
        )
    return labels.astype(np.int64)


def _class_names(model: Any, classes: np.ndarray) -> list[str]:
    names = dict(getattr(getattr(model, "config", None), "id2label", None) or {})
    return [str(names.get(int(number), number)) for number in classes]
