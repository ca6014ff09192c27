"""What a further training made of the concepts of a layer, beside the first checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr

from ...arrays import to_numpy
from ...characters import in_words, shown
from ...claims import Claim
from ...concepts.joint.changes import concept_changes
from ...concepts.joint.presence import Decoder, Presence
from ...concepts.joint.readout import CheckpointReadout, Moments
from ...concepts.joint.snapshots import fixed_half, standardised, text_blocks
from ...errors import check_number
from ...figures import Section
from ...observables import PresetEntry, Reading, by_layer
from ...observables.catalogued import INNER_LAYERS
from ...observables.extractor_fits import layer_state
from ...observables.of_activations import OfJointConcepts
from ...observables.pieces import written
from ...quantities import Quantity
from ...trees import Nodes
from .change_claims import claims_of_changes

BLOCKS = 50  # of texts, that ratios of strengths are resampled over
TOKENS = 4  # that stand for a concept without a name
_PARTS = ("decoders", "strength", "floor", "readable", "influence", "spread")
_DIMS = {"decoders": ("concept", "feature"), "influence": ("block", "concept")}
_EACH = ("concept",)
_KINDS = ("kept", "turned", "lost", "new", "unclear")


@dataclass(frozen=True)
class ConceptChange(OfJointConcepts):
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

    kind = "concept-change"
    question = "Which concepts did a further training keep, turn, lose and make?"
    requires = "a node joint-concepts"
    price = "one regression for each layer and step"
    fewest_steps = 2
    shared = (*OfJointConcepts.shared, "readable")
    presets = (PresetEntry(("fine-tuning",), INNER_LAYERS, 45),)
    quantities = (
        Quantity(
            "concepts_since",
            "concepts by what became of them since the first checkpoint",
            "concepts",
            series="change",
            facet="layer",
            caption="Kept: readable at both checkpoints. Turned: kept, and written in another "
            "direction. Lost, new: readable at one alone, and the other one surely writes less "
            "than half of it. Unclear: none of these is shown, such as of a concept that one "
            "checkpoint writes too faintly to know its direction.",
        ),
    )
    variables = {
        "change": ("what became of a concept", ""),
        "change_kind": ("what became of a concept by the last checkpoint", ""),
        "called": ("name, else the tokens that carry most of it", ""),
        "turned_by": (
            "cosine between what it writes at the first and the last checkpoint",
            "1",
        ),
    }
    section = Section(
        title="Concepts kept, turned, lost and new",
        definition="One dictionary over all checkpoints, the first of them included: what became "
        "of each of its concepts since the first checkpoint.",
        null="Control runs moved as far: what their motion makes of the concepts of the same first "
        "checkpoint. A run that changes nothing keeps them all.",
        care="A concept that is lost here cannot be read from this layer on these texts; another "
        "layer may have it. One that no text shows is not asked about.",
        source="Crosscoders (Lindsey et al. 2024; Minder et al. 2025), by exact methods",
    )

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        check_number("readable", self.readable, 0, 1)

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return what every latent writes at one checkpoint, and how well it can be read."""
        texts = reading.units(self.activations)
        half = fixed_half(texts)
        block = text_blocks(
            texts, BLOCKS, np.random.default_rng([self.random_state, 2])
        )

        def one(path: str, A: torch.Tensor) -> Mapping[str, Any]:
            values = to_numpy(A)
            X, _ = standardised(values, np.arange(len(values)))
            decoder = Decoder(layer_state(state, path)["codes"].values, block)
            there = CheckpointReadout(Moments(X, half), decoder).presence
            arrays = {
                n: (_DIMS.get(n, _EACH), getattr(there, n)[0].astype(np.float32))
                for n in _PARTS
            }
            # Features are numbered: layers of several widths are stacked.
            return dict[Any, Any](
                xr.Dataset(arrays, {"feature": np.arange(X.shape[1])})
            )

        return by_layer(reading[self.activations], one)

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add what became of each concept at each step, and a list of what did not stay."""
        joint = nodes[self.of]
        shape = [data.sizes[dim] for dim in ("layer", "concept")]
        if "decoders" not in data or "replicates" not in joint:
            return data
        counts = np.full([data.sizes["step"], shape[0], len(_KINDS)], np.nan)
        kind = np.full(shape, "", dtype=object)
        cosine = np.full(shape, np.nan)
        for i, layer in enumerate(data.layer.values):
            there = _presences(data.isel(layer=i))
            asked = joint.replicates.sel(layer=layer).values > 0
            for step, presence in there.items():
                # Checkpoints of one run have one basis, also where most concepts have turned.
                changes = concept_changes(
                    there[min(there)],
                    presence,
                    asked,
                    readable=self.readable,
                    common_basis=True,
                )
                counts[step, i] = [changes.counts()[name] for name in _KINDS]
                kind[i] = changes.kind
                cosine[i] = changes.cosine
        return data.drop_vars(_PARTS).assign(
            concepts_since=(("step", "layer", "change"), counts),
            change=list(_KINDS),
            change_kind=(("layer", "concept"), kind),
            called=(
                ("layer", "concept"),
                _called(joint.reindex(layer=data.layer.values), shape),
            ),
            turned_by=(("layer", "concept"), cosine),
        )

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return how many concepts are kept, turned, lost and new at the end, beside controls."""
        return claims_of_changes(name, data)


def _presences(one: xr.Dataset) -> dict[int, Presence]:
    """Return the latents of a layer at each step at which they could be read, by its place."""
    there = {}
    for step in np.flatnonzero(one.strength.notnull().all("concept")).tolist():
        at = one.isel(step=[step]).dropna("feature")
        parts = {
            n: at[n].transpose("step", *_DIMS.get(n, _EACH)).values for n in _PARTS
        }
        there[step] = Presence(
            **parts, explained=np.ones(1), whitened=np.zeros((1, 0, 0))
        )
    return there


def _called(joint: xr.Dataset, shape: Sequence[int]) -> np.ndarray:
    """Return what concepts are called: by name, else number and tokens that carry most of it."""
    called = np.empty(shape, dtype=object)
    pieces = written(joint) if "token_id" in joint else {}
    for place in np.ndindex(*shape):
        ids = joint.token_id.values[place][:TOKENS].tolist() if pieces else []
        tokens = ", ".join(
            dict.fromkeys(shown(in_words(pieces[i])) for i in ids if i in pieces)
        )
        name = str(joint["name"].values[place]) if pieces else ""
        called[place] = name or f"C{place[1]}{f' ({tokens})' if tokens else ''}"
    return called
