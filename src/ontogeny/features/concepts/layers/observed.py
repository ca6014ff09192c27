"""Concepts of all layers of a run together: where each is first readable, and whether it moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from ....concepts.joint.codes import fitted_codes
from ....concepts.joint.readout import Moments
from ....concepts.joint.snapshots import fitted_steps, fixed_half
from ....concepts.joint.whitening import Gathered
from ....errors import ArgumentError, check_number, check_whole
from ....figures import Column, Heatmap, Section, Table
from ....needs import InputSet, Need
from ....observables.base import Reading, Run, by_layer, dataset
from ....observables.catalogued import PresetEntry, Presets
from ....observables.of_activations import OfActivations
from ....quantities import Measured, Quantity
from ....words.formats import plural
from ....words.names import Names
from ..describe.tokens import strongest_tokens
from ..joint import check_latents
from ..joint_gathered import read_together, standard
from .moves import first_layers, layer_moves

WORDS = {-1: "to earlier layers", 0: "", 1: "to later layers"}


@dataclass(frozen=True)
class ConceptLayers(OfActivations):
    """One dictionary over all layers and steps: where a concept is first readable, and if it moves.

    Every token has one sparse code for all layers at all steps. At each step and in each layer a
    readout says how well the codes can be read there; the first layer in which they can is where
    the concept is first readable.

    Parameters
    ----------
    layers
        Glob or globs over module paths, such as those of all blocks.
    n_concepts, n_active
        Number of latents, and of codes per token; as of `JointConcepts`.
    fit_steps
        On how many steps the codes are fitted, evenly chosen among those that the study's folder
        was begun with.
    readable
        From which correlation on a code counts as readable, on texts that the readout has not seen.
    on, tokens, max_tokens, random_state
        Which tokens; `random_state` also seeds the fit.

    Examples
    --------
    >>> ConceptLayers("model.layers.*", n_concepts=50).name
    'concept-layers'
    """

    layers: str | tuple[str, ...] = "mlp"
    n_concepts: int = 100
    n_active: int = 8
    fit_steps: int = 4
    readable: float = 0.6
    on: str | None = None
    tokens: str = "all"
    max_tokens: int | None = 5000
    random_state: int = 0

    kind: ClassVar[str] = "concept-layers"
    question: ClassVar[str] = "In which layer is a concept first readable, and does it move?"
    price: ClassVar[str] = "one fit over all layers, then one regression for each layer and step"
    presets: ClassVar[Presets] = (
        PresetEntry(
            ("everything",),
            {"layers": "$layers", "max_tokens": "$tokens", "n_concepts": "$latents"},
            55,
        ),
    )
    kept: ClassVar[tuple[str, ...]] = ("replicates", "concept_tokens")
    compared: ClassVar[tuple[str, ...]] = ("n_earlier", "n_later")
    variables: ClassVar[Names] = {
        "readability": ("correlation of the codes with a readout of this layer", "1"),
        "replicates": ("1 where both halves of the texts find it", "1"),
        "concept_tokens": ("tokens that carry most of the code", ""),
        "line": ("concepts, by the layer in which they are first readable at the end", ""),
        "line_first": ("first layer in which it is readable, from 0", "layers"),
        "line_start": ("first layer at the first step at which it is readable", "layers"),
        "line_end": ("first layer at the last such step", "layers"),
        "line_by": ("layers by which it moved, last third against first third of steps", "layers"),
        "line_moves": ("where it moves", ""),
        "n_shown": ("concepts", "concepts"),
        "n_earlier": ("concepts that move to earlier layers", "concepts"),
        "n_later": ("concepts that move to later layers", "concepts"),
        "n_by_chance": ("moves with the steps in other orders", "concepts"),
    }
    quantities: ClassVar[tuple[Quantity, ...]] = (
        Quantity(
            "first_layer",
            "mean first layer in which a concept is readable",
            units="layers",
            rows="first layer of a concept",
            subject="The layer in which concepts are first readable",
            unit="halves of the texts",
            minimum=0.0,
            caption="Mean over the concepts that both halves of the texts find. 0: from the first "
            "of these layers on; one that is readable in none counts as beyond the last.",
        ),
    )
    section: ClassVar[Section] = Section(
        title="In which layer concepts are",
        definition="Every token has one sparse code for all layers and steps. A concept is "
        "readable in a layer where a sparse linear readout of that layer alone predicts its codes "
        "on texts that the readout has not seen.",
        symbol="Xₗₜ ≈ U Dₗₜ",
        null="A concept moves if its first layer in the last third of the steps is at least one "
        "from that in the first third, with a trend that few orders of the steps give (5 %).",
        care="Readable is not used. Words themselves are readable from the first layer on, also "
        "in an untrained model.",
        source="Crosscoders (Lindsey et al. 2024), by exact methods",
    )

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        check_latents("ica", self.n_concepts, self.n_active)
        check_number("readable", self.readable, 0, 1)
        check_whole("fit_steps", self.fit_steps)

    def needs(self) -> Sequence[Need]:
        """Return the activations of the layers, and the texts."""
        return [self.activations, InputSet(self.on)]

    @property
    def prepares_over_steps(self) -> bool:
        """Codes are fitted over several steps beforehand."""
        return True

    def bytes_to_prepare(self, rows: int, features: int, steps: int) -> int:
        """Return about the bytes of a fit to 32 layers; how many there are is not known here."""
        return Gathered.size(rows, features, 32 * min(self.fit_steps, steps))

    def prepare(self, run: Run) -> xr.Dataset:
        """Fit codes that all layers share; checkpoints are read one at a time."""
        steps = np.asarray(run.steps if run.is_control else run.first_steps)
        chosen = steps[fitted_steps(self.fit_steps, len(steps))].tolist()
        with ExitStack() as files:
            kept, reading = read_together(run, chosen, self.activations, files, named=False)
            codes, found = self._fitted(
                list(kept.values()), fixed_half(reading.units(self.activations))
            )
        texts, pieces = reading[InputSet(self.on)], run.pieces(self.activations)
        sample = texts.sample(self.tokens, self.max_tokens, self.random_state)
        ids = strongest_tokens(codes, texts, sample, 3).token_id.values
        words = [" ".join(pieces[i].strip() or "␣" for i in row if i >= 0) for row in ids.tolist()]
        return xr.Dataset(
            {
                "codes": (("token", "concept"), codes),
                "replicates": ("concept", found.astype(np.float64)),
                "concept_tokens": ("concept", np.array(words, dtype=object)),
            }
        )

    def _fitted(self, layers: Sequence[Any], half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return codes (n, r) of views of all layers, and which of them both halves find."""
        width = sum(m for layer in layers for _, m in layer.shapes)
        gathered = Gathered(len(half), width, 1)
        for layer in layers:
            for X in layer.views():
                gathered.add(X)
        seed = int(np.random.default_rng([self.random_state, 1]).integers(2**31))
        fits = fitted_codes(gathered, self.n_concepts, "ica", self.n_active, [seed], half)
        if not fits.codes.any():
            raise ArgumentError("the activations do not vary, so there are no concepts in them")
        return fits.codes, fits.replicates(fits.half)

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return how well the codes can be read in each layer, and the mean first layer."""
        assert state is not None
        codes, half = state.codes.values, fixed_half(reading.units(self.activations))

        def one(path: str, A: torch.Tensor) -> Mapping[str, Any]:
            halves = Moments(standard(A)[0], half).readable(codes)
            return {"readability": (("text_half", "concept"), halves)}

        found = by_layer(reading[self.activations], one)
        shown = state.replicates.values > 0
        if "readability" not in found or not shown.any():
            return found
        halves = found.readability.transpose("text_half", "layer", "concept").values[..., shown]
        mean = first_layers(halves.mean(axis=0), self.readable).mean()
        both = xr.DataArray(
            first_layers(halves, self.readable).mean(axis=-1),
            {"refit": ["half 1", "half 2"]},
            "refit",
        )
        found["readability"] = found.readability.mean("text_half")
        return found.assign(dataset({"first_layer": Measured(float(mean), replicates=both)}))

    def derive(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Add the first layer of each concept at each step, and which concepts move."""
        if "readability" not in data or "replicates" not in data:
            return data
        readable = data.readability.transpose("step", "layer", "concept").values
        count = readable.shape[1]
        first = first_layers(np.nan_to_num(readable), self.readable)
        shown = np.flatnonzero((data.replicates.values > 0) & (first < count).any(axis=0))
        moves = layer_moves(first[:, shown], count, seed=self.random_state)
        numbers = {
            "n_shown": len(shown),
            "n_earlier": (moves.direction < 0).sum(),
            "n_later": (moves.direction > 0).sum(),
            "n_by_chance": moves.chance,
        }
        data = data.assign({name: ((), float(value)) for name, value in numbers.items()})
        return data.merge(self._lines(data, first[:, shown], shown, moves)) if len(shown) else data

    def _lines(self, data: xr.Dataset, first: np.ndarray, shown: np.ndarray, moves: Any) -> Any:
        count, steps = data.sizes["layer"], np.arange(len(first))[:, None]
        there = first < count
        ends = [np.where(there, steps, far).T for far in (len(first), -1)]
        at = (ends[0].min(axis=1), ends[1].max(axis=1))
        start, end = (first[i, np.arange(len(shown))] for i in at)
        order = np.lexsort((start, end))
        tokens = data.concept_tokens.values
        labels = np.array([f"{j} · {tokens[j]}" for j in shown[order]], dtype=object)
        values = {
            "line_first": (("line", "step"), np.where(there, first, np.nan).T[order]),
            "line_start": ("line", start[order]),
            "line_end": ("line", end[order]),
            "line_by": ("line", moves.by[order]),
            "line_moves": ("line", np.array([WORDS[d] for d in moves.direction[order]], object)),
        }
        return xr.Dataset(values, {"line": labels, "step": data.step.values})

    def figures(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> Sequence[Any]:
        """Return the first layer of each concept over the steps, and where each is at the end."""
        if "line" not in data.dims:
            return ()
        columns = [Column(f"line_{name}") for name in ("start", "end", "by", "moves")]
        caption = "One row a concept: the first layer in which it is readable, 0 for the first."
        return [
            Heatmap("layers-first", "Where concepts are first readable", value="line_first",
                    x="step", y="line", caption=caption),
            Table("layers-moves", "Concepts and their layers", rows="line", columns=columns),
        ]  # fmt: skip

    def words(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> Sequence[str]:
        """Return where concepts are first readable, and how many move, beside chance."""
        if "line_end" not in data:
            return []
        end, n = data.line_end.values, data.sizes["layer"]
        text = (
            f"{plural(len(end), 'concept')} can be read in some of {plural(n, 'layer')}: "
            f"{int((end == 0).sum())} from the first layer on, half of them by layer "
            f"{float(np.median(end)):.0f} (counted from 0)."
        )
        if not data.line_by.notnull().any():
            return [text]
        moved = (
            f"While the model learned, {int(data.n_earlier)} came to be readable in earlier layers "
            f"and {int(data.n_later)} in later ones; with the steps in another order "
            f"{float(data.n_by_chance):.1f} would."
        )
        return [text, moved + _controls(data)]


def _controls(data: xr.Dataset) -> str:
    """Return what the control runs do, as the end of a sentence."""
    if "n_earlier_control" not in data:
        return " No control run was compared."
    pairs = np.stack([data[f"n_{way}_control"].values for way in ("earlier", "later")], axis=-1)
    pairs = pairs[np.isfinite(pairs).all(axis=-1)]
    listed = ", ".join(f"{a:.0f} and {b:.0f}" for a, b in pairs)
    return f" Control runs: {listed}." if listed else ""
