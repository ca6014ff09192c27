"""What a further training made of the concepts of a layer, beside the first checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from ...arrays import to_numpy
from ...concepts.joint.changes import concept_changes
from ...concepts.joint.presence import Decoder, Presence
from ...concepts.joint.readout import CheckpointReadout, Moments
from ...concepts.joint.snapshots import fixed_half, standardised, text_blocks
from ...errors import ArgumentError, check_number
from ...figures import Column, Figure, Section, Table
from ...observables.arguments import check_node
from ...observables.base import Observable, Reading, by_layer
from ...observables.catalogued import INNER_LAYERS, PresetEntry, Presets
from ...observables.extractor_fits import layer_state
from ...observables.of_activations import OfActivations
from ...observables.pieces import written
from ...quantities import Quantity
from ...words.formats import sentence_start
from ...words.names import Names
from ...words.tuned import concept_counts

BLOCKS = 50  # of texts, that ratios of strengths are resampled over
TOKENS = 4  # that stand for a concept without a name
MOST = 30  # concepts of the list
_SHARED = ("layers", "on", "tokens", "max_tokens", "random_state", "readable")
_PARTS = ("decoders", "strength", "floor", "readable", "influence", "spread")
_EACH = ("concept",)
_DIMS = {"decoders": ("concept", "feature"), "influence": ("block", "concept")}
_OVER = ("step", "layer", "change")
_KINDS = ("kept", "turned", "lost", "new", "unclear")
_LISTED = ("new", "lost", "turned")
_COLUMNS: Mapping[str, tuple[str, str, str]] = {
    "listed_layer": ("module path", "", "layer"),
    "listed_kind": ("what became of it", "", "since the first checkpoint"),
    "listed_name": ("name, else the tokens that carry most of it", "", "concept"),
    "listed_first": ("strength at the first checkpoint", "1", "strength, first"),
    "listed_last": ("strength at the last checkpoint", "1", "last"),
    "listed_cosine": ("cosine between what it writes at both", "1", "cosine"),
}


@dataclass(frozen=True)
class ConceptChange(OfActivations):
    """Which concepts are kept since the first checkpoint, turned, lost and new.

    The shared codes of `JointConcepts`, which all checkpoints of the run were fitted to together,
    are read at each step and set against the first one by `ontogeny.concepts.concept_changes`.
    Only latents that both halves of the texts find are asked about.

    Parameters
    ----------
    of
        Name of the `JointConcepts` node.
    layers, readable, on, tokens, max_tokens, random_state
        As in that node, which is checked.

    Examples
    --------
    >>> ConceptChange("joint-concepts", "model.layers.*.mlp").state_of
    'joint-concepts'
    """

    of: str = "joint-concepts"
    layers: str | tuple[str, ...] = "mlp"
    readable: float = 0.6
    on: str | None = None
    tokens: str = "all"
    max_tokens: int | None = 5000
    random_state: int = 0

    kind: ClassVar[str] = "concept-change"
    question: ClassVar[str] = "Which concepts did a further training keep, turn, lose and make?"
    requires: ClassVar[str] = "a node joint-concepts"
    price: ClassVar[str] = "one regression for each layer and step"
    fewest_steps: ClassVar[int] = 3
    presets: ClassVar[Presets] = (PresetEntry(("fine-tuning",), INNER_LAYERS, 45),)
    quantities: ClassVar[tuple[Quantity, ...]] = (
        Quantity(
            "concepts_since",
            "concepts by what became of them since the first checkpoint",
            "concepts",
            series="change",
            facet="layer",
            caption="Kept: readable at both checkpoints. Turned: kept, and written in another "
            "direction. Lost, new: readable at one alone, and the other one surely writes less "
            "than half of it. Unclear: neither is shown.",
        ),
    )
    variables: ClassVar[Names] = {
        "change": ("what became of a concept", ""),
        **{name: words[:2] for name, words in _COLUMNS.items()},
        "listed": ("concepts that did not stay as they were", ""),
    }
    section: ClassVar[Section] = Section(
        title="Concepts kept, turned, lost and new",
        definition="One dictionary over all checkpoints, the first of them included: what became "
        "of each of its concepts since the first checkpoint.",
        symbol="X₀ ≈ U D₀, Xₜ ≈ U Dₜ",
        null="Control runs moved as far: what their motion makes of the concepts of the same first "
        "checkpoint. A run that changes nothing keeps them all.",
        care="A concept that is lost here cannot be read from this layer on these texts; another "
        "layer may have it. One that no text shows is not asked about.",
        source="Crosscoders (Lindsey et al. 2024; Minder et al. 2025), by exact methods",
    )

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        check_node("of", self.of)
        check_number("readable", self.readable, 0, 1)

    def check_nodes(self, observables: Mapping[str, Observable]) -> None:
        """Refuse a node of other concepts, and codes of other tokens or layers."""
        of = observables[self.of]
        if of.kind != "joint-concepts":
            raise ArgumentError(
                f"{self.name} needs a node of joint concepts; {self.of!r} is of kind {of.kind!r}."
            )
        for name in _SHARED:
            mine, other = getattr(self, name), getattr(of, name)
            if mine != other:
                raise ArgumentError(
                    f"{name} of {self.name} must be that of {self.of}, {other!r}; got {mine!r}."
                )

    @property
    def state_of(self) -> str:
        """The node whose codes are used."""
        return self.of

    @property
    def depends_on(self) -> tuple[str, ...]:  # type: ignore[override]
        """The node that says which latents are concepts, and what they are called."""
        return (self.of,)

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return what every latent writes at one checkpoint, and how well it can be read."""
        texts = reading.units(self.activations)
        half = fixed_half(texts)
        block = text_blocks(texts, BLOCKS, np.random.default_rng([self.random_state, 2]))

        def one(path: str, A: torch.Tensor) -> Mapping[str, Any]:
            values = to_numpy(A)
            X, _ = standardised(values, np.arange(len(values)))
            decoder = Decoder(layer_state(state, path)["codes"].values, block)
            there = CheckpointReadout(Moments(X, half), decoder).presence
            arrays = {name: getattr(there, name)[0].astype(np.float32) for name in _PARTS}
            numbered = {"feature": np.arange(X.shape[1])}  # layers of several widths are stacked
            return xr.Dataset(
                {name: (_DIMS.get(name, _EACH), array) for name, array in arrays.items()}, numbered
            )

        return by_layer(reading[self.activations], one)

    def derive(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Add what became of each concept at each step, and a list of what did not stay."""
        joint = nodes[self.of]
        if "decoders" not in data or "replicates" not in joint:
            return data
        counts = np.full([data.sizes["step"], data.sizes["layer"], len(_KINDS)], np.nan)
        rows: list[tuple[Any, ...]] = []
        for i, layer in enumerate(data.layer.values):
            there, changes = _presences(data.isel(layer=i)), None
            concept = joint.replicates.sel(layer=layer).values > 0
            first = there.get(0)  # without it there is nothing to compare with
            for step, presence in there.items() if first else ():
                changes = concept_changes(first, presence, concept, readable=self.readable)
                counts[step, i] = [changes.counts()[kind] for kind in _KINDS]
            if first and changes:
                ends = (first.strength[0], presence.strength[0], changes.cosine)
                rows += _moved(joint.sel(layer=layer), str(layer), changes.kind, ends)
        if not np.isfinite(counts).any():
            return data.drop_vars(_PARTS)
        rows = sorted(rows, key=lambda row: (_LISTED.index(row[1]), -max(row[3:5])))[:MOST]
        return data.drop_vars(_PARTS).assign(
            concepts_since=xr.DataArray(counts, {"change": list(_KINDS)}, _OVER),
            **{
                name: ("listed", np.array(column, dtype=object if i < 3 else float))
                for i, (name, column) in enumerate(
                    zip(_COLUMNS, zip(*rows, strict=True), strict=False)
                )
            },
        )

    def figures(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> Sequence[Figure]:
        """Return the list of the concepts that did not stay as they were."""
        if "listed_kind" not in data:
            return ()
        columns = [Column(name, head) for name, (_, _, head) in _COLUMNS.items()]
        title = "Concepts that did not stay"
        return [Table("changed-concepts", title, columns=columns, rows="listed")]

    def words(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> Sequence[str]:
        """Return for each layer how many concepts are kept, turned, lost and new."""
        if "concepts_since" not in data:
            return []
        layers = [data.sel(layer=[layer]) for layer in data.layer.values]
        return [
            f"{sentence_start(str(one.layer.item()))}: {concept_counts(one)}." for one in layers
        ]


def _presences(one: xr.Dataset) -> dict[int, Presence]:
    """Return the latents of a layer at each step at which they could be read, by its place."""
    there = {}
    for step in np.flatnonzero(one.strength.notnull().all("concept")).tolist():
        at = one.isel(step=[step]).dropna("feature")
        parts = {
            n: at[n].transpose("step", *_DIMS.get(n, _EACH)).values.astype(float) for n in _PARTS
        }
        there[step] = Presence(**parts, explained=np.ones(1), whitened=np.zeros((1, 0, 0)))
    return there


def _moved(
    joint: xr.Dataset, layer: str, kinds: np.ndarray, numbers: Sequence[np.ndarray]
) -> list[tuple[Any, ...]]:
    """Return a row of the list for each concept of a layer that did not stay as it was."""
    return [
        (layer, str(kinds[j]), _called(joint, j), *(float(column[j]) for column in numbers))
        for j in np.flatnonzero(np.isin(kinds, _LISTED)).tolist()
    ]


def _called(joint: xr.Dataset, concept: int) -> str:
    """Return the name of a concept, else the tokens that carry most of it."""
    name = str(joint["name"].values[concept]) if "name" in joint else ""
    if name or "token_id" not in joint:
        return name or f"C{concept}"
    pieces = written(joint)
    ids = joint.token_id.values[concept][:TOKENS].tolist()
    return f"C{concept}: {', '.join(pieces.get(i, '').strip() for i in ids if i >= 0)}"
