"""How often the answer is right, whole and with attention cut to its strongest keys."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr

from ontogeny.dynamics.shares import wilson_interval
from ontogeny.errors import ArgumentError
from ontogeny.features.labelled.accuracy import class_logits
from ontogeny.figures import Heatmap, Section
from ontogeny.needs import Gradients, Need
from ontogeny.observables.arguments import check_names, check_wholes
from ontogeny.observables.base import Observable
from ontogeny.observables.catalogued import PASS
from ontogeny.observables.variables import dataset
from ontogeny.quantities import Measured, Quantity
from ontogeny.units import Units

from ...capture.cut_attention import cut_attention

_BATCH = 256


@dataclass(frozen=True)
class ReadoutAccuracy(Observable):
    """Share of right answers of a classifier that reads at the last token, on each input set.

    Parameters
    ----------
    on
        Input sets with class numbers as labels, one curve each: one per number of markers, say.
    cut
        Numbers k: the accuracy is also taken with the attention of every head cut to the k
        strongest keys of each query.

    Examples
    --------
    >>> ReadoutAccuracy(("m=1", "m=2"), cut=(1, 4)).name
    'readout-accuracy'
    """

    on: tuple[str, ...] = ()
    cut: tuple[int, ...] = ()

    kind = "readout-accuracy"
    question = "How often is a classifier that reads at the last token right?"
    requires = "texts with labels, a classifier"
    price = PASS
    quantities = (
        Quantity(
            "accuracy",
            "accuracy",
            units="share of answers",
            rows="{set} · accuracy",
            better="higher",
            beats="majority",
            nulls={"majority": "most frequent label"},
            heading="accuracy on each set",
            caption="Line: share of right answers.",
            shade="95 % score interval",
            series="",
            facet="set",
        ),
        Quantity(
            "loss", "loss at the answer", units="nats", heading="loss on each set"
        ),
        Quantity(
            "cut_accuracy",
            "accuracy with attention cut to the strongest keys",
            units="share of answers",
            nulls={"majority": "most frequent label"},
            caption="One line for each number of keys that every query of every head keeps.",
            optional=True,
            series="kept",
            facet="set",
        ),
    )
    section = Section(
        title="Accuracy",
        definition="Share of texts whose label gets the largest logit at the last token.",
        symbol="P(argmax z = y)",
        null="Always naming the most frequent label: the grey line of each panel. A change counts "
        "beyond 1.96 standard errors of the difference to the first {checkpoint}.",
        care="Each set is fixed. It says what generalises only if none of its texts was drawn for "
        "training. Products modulo C are often 0, so read accuracy beside the grey line.",
        source="Xu 2026, sec. 3.1, 4.5",
    )
    variables = {"texts": ("texts in the set", "texts")}
    charts = (
        Heatmap(
            "forgetting",
            "Accuracy over training",
            value="accuracy",
            y="set",
            caption="One row a set: a row that turns pale again lost what it had.",
        ),
    )

    def check(self) -> None:
        """Refuse arguments out of range."""
        check_names("on", self.on, minimum=0)
        check_wholes("cut", self.cut)

    def needs(self) -> Sequence[Need]:
        """Return the model with each input set."""
        return [Gradients("classification", on) for on in self.on or (None,)]

    def observe(self, reading: Any, state: xr.Dataset | None) -> xr.Dataset:
        """Return accuracy, loss and baseline per input set, and the accuracies with cut attention.

        ``accuracy(set)`` with its error, ``accuracy_low``, ``accuracy_high`` (Wilson, 95 %, of
        units where texts repeat or share a document) and ``accuracy_majority``, the share of the
        most frequent label; ``loss(set)`` in nats, ``texts(set)``, ``cut_accuracy(kept, set)``.
        """
        values = [reading[need] for need in self.needs()]
        whole = [answers(value) for value in values]
        counts = np.array([len(correct) for correct, _ in whole])
        share = np.array([int(is_right.sum()) for is_right, _ in whole]) / counts
        of_row = [Units(value.inputs.groups) for value in values]
        counted = np.array(
            [
                u.effective_count(is_right)
                for u, (is_right, _) in zip(of_row, whole, strict=True)
            ]
        )
        low, high = wilson_interval(share * counted, counted)
        majority = ("set", np.array([majority_share(v.inputs.labels) for v in values]))
        # A share of 0 or 1 has an error too: an eighth of an answer is added to its variance.
        error = np.sqrt((share * (1 - share) + 0.125 / counted) / counted)
        variables: dict[str, Any] = {
            "accuracy": Measured(
                ("set", share), stderr=("set", error), nulls={"majority": majority}
            ),
            "accuracy_low": ("set", low),
            "accuracy_high": ("set", high),
            "loss": ("set", np.array([loss.mean() for _, loss in whole])),
            "texts": ("set", counts),
        }
        if self.cut:
            cut = [[answers(value, k)[0].mean() for value in values] for k in self.cut]
            shares = (("kept", "set"), np.array(cut))
            variables["cut_accuracy"] = Measured(shares, nulls={"majority": majority})
        coords = {
            "set": list(self.on) or ["inputs"],
            **({"kept": list(self.cut)} if self.cut else {}),
        }
        return dataset(variables).assign_coords(coords)


def answers(value: Any, keep: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return whether each text is answered correctly (n,) bool, and its loss in nats (n,).

    `value` is a `GradientReading` with labels; `keep` cuts attention to so many keys.

    Raises
    ------
    ArgumentError
        If the model does not give one row of logits per text, or fewer classes than labels.
    """
    target = torch.from_numpy(np.asarray(value.inputs.labels).astype(np.int64))
    with _cut(value.model, keep):
        logits = torch.from_numpy(class_logits(value, _BATCH))
    if logits.shape[1] <= int(target.max()):
        raise ArgumentError(
            f"labels go up to {int(target.max())}, but the model has {logits.shape[1]} classes."
        )
    losses = torch.nn.functional.cross_entropy(logits, target, reduction="none")
    return (logits.argmax(1) == target).numpy(), losses.numpy().astype(float)


def majority_share(labels: np.ndarray) -> float:
    """Return the share of the most frequent label: the accuracy of always naming it.

    Examples
    --------
    >>> majority_share(np.array([0, 0, 1]))
    0.6666666666666666
    """
    return float(np.bincount(np.asarray(labels).astype(np.int64)).max() / len(labels))


def _cut(model: torch.nn.Module, keep: int | None) -> AbstractContextManager[None]:
    return nullcontext() if keep is None else cut_attention(model, keep)
