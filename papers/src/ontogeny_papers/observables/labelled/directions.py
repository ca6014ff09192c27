"""Concept activation vectors at every step: is a labelled concept readable, and is it stable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ontogeny.figures import Heatmap, Section
from ontogeny.needs import InputSet, Need
from ontogeny.observables import Reading, Run, by_layer
from ontogeny.observables.catalogued import FIT
from ontogeny.quantities import Quantity
from ontogeny.trees import Nodes

from .base import (
    JUDGED,
    LEVEL,
    LabelledConcepts,
    chance_band,
    judged,
    text_units,
    texts_of,
)


@dataclass(frozen=True)
class ConceptDirections(LabelledConcepts):
    """Directions of labelled concepts at every layer (Definition 38 of the report).

    At each step a direction is found on two thirds of the labelled texts and tested on the others,
    beside directions for shuffled labels (the same shuffles at every step) and bootstrap refits.
    Its parameters are those of `LabelledConcepts`.

    Examples
    --------
    >>> ConceptDirections("model.layers.*", on=("sst2", "cola")).concepts
    ['sst2', 'cola']
    """

    kind = "cav"
    question = "Where does a labelled concept point, and can it be read?"
    requires = "texts with labels"
    price = FIT
    variables = {
        **JUDGED,
        "right": ("held-out texts that are correctly classified (-1: no text)", ""),
        "text_unit": ("unit of each held-out text (-1: no text)", ""),
        "random_accuracy": ("accuracy of shuffled labels", "1"),
        "direction": ("direction of the concept, of length 1", "1"),
        "norm": ("norm of the minimiser", "per activation unit"),
        "converged": ("whether the solver converged", "1"),
        "lasting_step": ("{checkpoint} from which on it is readable", "{step}s"),
    }
    section = Section(
        title="Labelled concepts: directions",
        definition="A direction of each layer's activations that separates texts with a concept "
        "from texts without it, found on two thirds of the texts and tested on the others.",
        symbol="v = argmin mean ℓ(hᵢ·v, yᵢ) + λ‖v‖²",
        null="Directions for shuffled labels, the same shuffles at every {checkpoint}; p-values "
        "are corrected over concepts, layers and {checkpoint}s (largest standardised value of each "
        "shuffle).",
        care="A random model reads words too: compare with the first {checkpoint}. Activations "
        "grow in training, so that the same penalty weighs less. Balanced accuracy: the mean over "
        "both classes, 0.5 by chance.",
        source="Bernas 2025, Def. 38, sec. 6.2; Kim et al. 2018",
    )
    charts = (
        Heatmap(
            "readable",
            "Corrected p-value of the accuracy",
            value="p_corrected",
            facet="concept",
            caption="At most 0.05: above what any shuffle of the labels reaches anywhere.",
        ),
    )

    @property
    def quantities(self) -> tuple[Quantity, ...]:  # type: ignore[override]
        """The accuracy, and how stable the direction is."""
        return (
            self._of_concepts(
                "accuracy",
                "balanced accuracy on held-out texts",
                "concept",
                better="higher",
                beats="chance",
                nulls={"chance": "shuffled labels"},
                caption="Grey: 95 % of the directions for shuffled labels.",
            ),
            Quantity(
                "bootstrap_cosine",
                "stability of the direction: cosine of bootstrap refits with it",
                caption="Mean over the refits. Far below 1, the direction is the sample's.",
            ),
            Quantity(
                "reference_cosine",
                "cosine with the reference {checkpoint}'s direction",
                caption="In the same coordinates; a rotation of the residual stream turns it too.",
            ),
        )

    def needs(self) -> Sequence[Need]:
        """Return the activations of each input set, and the sets with their labels."""
        return [n for on in self.sets for n in (self._activations(on), InputSet(on))]

    def prepare(self, run: Run) -> xr.Dataset:
        """Find the reference step's directions."""
        reading = run.reading(run.reference_step)
        return self._by_layer(reading, lambda fit: {"direction": _feature(fit.cav)})

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return accuracies, directions and their stability for every layer and concept.

        Over (layer, concept): ``accuracy`` (balanced, held-out texts), ``right(text)`` with
        ``accuracy_weights(text)``, ``random_accuracy(draw)``, ``bootstrap_cosine`` (mean cosine of
        the refits with the direction), ``direction(feature)`` (unit vectors), ``norm`` of the
        minimiser.
        """
        rows = self._labelled(reading)
        data = self._by_layer(reading, _described)
        weight = np.zeros((len(rows), max(len(r.test) for r in rows)))
        for i, split in enumerate(rows):
            weight[i, : len(split.test)] = split.held_weights
        data = data.assign(accuracy_weights=(("concept", "text"), weight))
        data = data.assign(
            text_units([rows_of.units(rows_of.test) for rows_of in rows])
        )
        if state is not None:
            same = (data.direction * state.direction).sum("feature", skipna=False)
            data = data.assign(reference_cosine=same)
        return data

    def _labelled(self, reading: Any) -> list[Any]:
        return [self._rows(reading[InputSet(on)]) for on in self.sets]

    def _by_layer(self, reading: Any, describe: Any) -> xr.Dataset:
        rows = self._labelled(reading)
        values = [reading[self._activations(on)] for on in self.sets]

        def one(path: str, _: Any) -> Mapping[str, Any]:
            fits = [self._fit(v[path], r) for v, r in zip(values, rows, strict=True)]
            return self._stacked([describe(fit) for fit in fits])

        return by_layer(values[0], one).assign_coords(concept=self.concepts)

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add p-values corrected over concepts, layers and steps, and the band of chance."""
        data = judged(data, "accuracy", "random_accuracy", alternative="greater")
        return data.assign(
            chance_band(data, "random_accuracy", "accuracy_chance")
            | texts_of(data, "accuracy", "right")
        )

    def words(self, data: xr.Dataset, nodes: Nodes) -> Sequence[str]:
        """Return where and from which step on each concept is readable."""
        return _readable(data)


def _described(fit: Any) -> dict[str, Any]:
    return {
        "accuracy": fit.accuracy,
        "right": (("text",), fit.right),
        "random_accuracy": (("draw",), fit.random_accuracy),
        "bootstrap_cosine": float(fit.cosines.mean()),
        "direction": _feature(fit.cav),
        "norm": float(np.linalg.norm(fit.cav.coef_)),
        "converged": float(fit.cav.converged_),
    }


def _feature(cav: Any) -> tuple[tuple[str, ...], np.ndarray]:
    return ("feature",), np.asarray(cav.direction_, dtype=np.float32)


def _readable(data: xr.Dataset) -> list[str]:
    """Return one sentence a concept: where and from which step on it is readable."""
    words = []
    for concept in data.concept.values:
        here = data.sel(concept=concept)
        first = here.lasting_step.dropna("layer")
        count = here.sizes["layer"]
        if not first.size:
            words.append(f"{concept}: {_passing(here)}")
            continue
        best = here.accuracy.isel(here.accuracy.argmax(("layer", "step")))
        layer = str(best.layer.values)
        step = int(best.step)
        earliest = first.where(first == first.min(), drop=True)
        where = (
            "all layers"
            if earliest.size == count
            else f"{earliest.size} of {count} layers"
        )
        words.append(
            f"{concept}: readable above shuffled labels for good in {first.size} of {count} "
            f"layers, first from {{step}} {int(first.min()):,} ({where}); best balanced accuracy "
            f"{float(here.accuracy.max()):.2f} in {layer} at {{step}} {step:,}."
        )
    return words + _order(data)


def _passing(here: xr.Dataset) -> str:
    """Return where a concept is readable that is not so at the last step."""
    if not np.isfinite(here.p_corrected).any():
        return "no layer has an accuracy at any {checkpoint}."
    some = (here.p_corrected <= LEVEL).any("layer").values
    corrected = f"(p ≤ {LEVEL:g}, corrected over concepts, layers and {{checkpoint}}s)"
    if not some.any():
        return f"no layer reads it better than shuffled labels at any {{checkpoint}} {corrected}."
    steps = [f"{int(step):,}" for step in here.step.values[some]]
    more = f" and {len(steps) - 5} more" if len(steps) > 5 else ""
    return (
        f"above shuffled labels in some layer at {{step}}s {', '.join(steps[:5])}{more} "
        f"{corrected}, but not at the last {{checkpoint}}."
    )


def _order(data: xr.Dataset) -> list[str]:
    """Return which of two concepts is readable first, layer by layer; never counts as last."""
    if data.sizes["concept"] != 2:
        return []
    names = [str(concept) for concept in data.concept.values]
    one, two = (
        data.lasting_step.sel(concept=name).fillna(np.inf).values for name in names
    )
    if not np.isfinite([one, two]).any():
        return []
    before = int((one < two).sum())
    after = int((one > two).sum())
    same = int(((one == two) & np.isfinite(one)).sum())
    sentence = (
        f"{names[0]} is readable for good before {names[1]} in {before} of {len(one)} layers, "
        f"after it in {after}, from the same {{checkpoint}} on in {same}."
    )
    return [sentence]
