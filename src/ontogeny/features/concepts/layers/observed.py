"""Concepts of all layers of a run together: where each is first readable, and whether it moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
import xarray as xr

from ....claims import Beside, Claim, Subject, measurement
from ....claims.values import of_controls
from ....concepts.joint.codes import fitted_codes
from ....concepts.joint.readout import Moments
from ....concepts.joint.snapshots import fitted_steps, fixed_half
from ....concepts.joint.whitening import Gathered
from ....errors import ArgumentError, check_number
from ....figures import Heatmap, Section
from ....needs import InputSet, Need
from ....observables import PresetEntry, Reading, Run, by_layer, dataset
from ....observables.of_activations import OfSampledActivations
from ....quantities import Measured, Quantity
from ....trees import Nodes
from ..describe.tokens import strongest_tokens
from ..joint import check_latents
from ..joint_gathered import read_together, standard

LEVEL = 0.05  # of the order of the steps, for each concept
LEAST = 1.0  # layers that a concept moves at least
FEWEST = 6  # steps at which it is readable, below which nothing is said


def first_layers(readable: np.ndarray, limit: float) -> np.ndarray:
    """Return the first layer (..., r) in which codes are readable (..., L, r); L where in none.

    Examples
    --------
    >>> first_layers(np.array([[0.2, 0.9, 0.1], [0.7, 0.9, 0.2]]), 0.6)
    array([1., 0., 2.])
    """
    enough = readable >= limit
    return np.where(
        enough.any(axis=-2), enough.argmax(axis=-2), readable.shape[-2]
    ).astype(float)


class Moves(NamedTuple):
    """Which concepts move through the layers.

    `direction` (r,) is -1 where one moves to earlier layers, 1 to later ones: by one layer at
    least, with a trend that few orders of the steps give (5 %); 0 where no move is shown. `chance`
    is how many would move, one way or the other, with the steps of each in another order.
    """

    direction: np.ndarray
    chance: float


def layer_moves(first: np.ndarray, seed: int = 0) -> Moves:
    """Return which concepts move, from first layers (T, r) at each step; NaN where not readable.

    Examples
    --------
    >>> first = np.array([[3.0, 3, 2, 2, 1, 1, 1, 1, 1], [2] * 9]).T
    >>> layer_moves(first).direction
    array([-1,  0])
    """
    rng = np.random.default_rng(seed)
    chance = 0.0
    direction = np.zeros(first.shape[1], dtype=int)
    for j, values in enumerate(first.T):
        curve = values[np.isfinite(values)]
        if len(curve) < FEWEST:
            continue
        permuted = rng.permuted(np.tile(curve, (_ORDERS, 1)), axis=1)
        orders = np.concatenate([curve[None], permuted])
        third = len(curve) // 3
        trend = np.abs(orders @ (np.arange(len(curve)) - (len(curve) - 1) / 2))
        # Of each order among all of them.
        p = (trend[None] >= trend[:, None] - 1e-9).mean(axis=1)
        change = orders[:, -third:].mean(axis=1) - orders[:, :third].mean(axis=1)
        moves = (p <= LEVEL) & (np.abs(change) >= LEAST)
        chance += float(moves[1:].mean())
        direction[j] = np.sign(change[0]) * moves[0]
    return Moves(direction, chance)


_ORDERS = 200  # of the steps, drawn for each concept
LINE = "readable_concept"


@dataclass(frozen=True)
class ConceptLayers(OfSampledActivations):
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

    n_concepts: int = 100
    n_active: int = 8
    fit_steps: int = 4
    readable: float = 0.6

    kind = "concept-layers"
    minima = {"fit_steps": 1}
    question = "In which layer is a concept first readable, and does it move?"
    price = "one fit over all layers, then one regression for each layer and step"
    presets = (
        PresetEntry(
            ("everything",), {"layers": "$layers", "n_concepts": "$latents"}, 55
        ),
    )
    state_variables = ("replicates", "concept_tokens")
    compared = ("n_earlier", "n_later")
    variables = {
        "readability": ("correlation of the codes with a readout of this layer", "1"),
        "replicates": ("1 where both halves of the texts find it", "1"),
        "concept_tokens": ("tokens that carry most of the code", ""),
        "line_first": ("first layer in which it is readable, from 0", "layers"),
        "line_moves": ("-1 where it moves to earlier layers, 1 to later ones", "1"),
        "n_earlier": ("concepts that move to earlier layers", "concepts"),
        "n_later": ("concepts that move to later layers", "concepts"),
        "n_by_chance": ("moves with the {checkpoint}s in other orders", "concepts"),
    }
    quantities = (
        Quantity(
            "first_layer",
            "mean number of layers before a concept is readable",
            units="layers",
            rows="layers before a concept is readable",
            unit="halves of the texts",
            minimum=0.0,
            caption="0: from the first layer on; what is readable in none counts as beyond the "
            "last. Mean over the concepts that both halves of the texts find.",
        ),
    )
    section = Section(
        title="In which layer concepts are",
        definition="Every token has one sparse code for all layers and {checkpoint}s. A concept is "
        "readable in a layer whose sparse linear readout predicts its codes on other texts.",
        symbol="Xₗₜ ≈ U Dₗₜ",
        null="A concept moves if its first layer in the last third of the {checkpoint}s is at "
        "least one from that in the first third, with a trend that few orders of the {checkpoint}s "
        "give (5 %).",
        care="{Word}s themselves are readable from the first layer on, also in an untrained model.",
        source="Crosscoders (Lindsey et al. 2024), by exact methods",
    )
    charts = (
        Heatmap(
            "first-layers",
            "Where concepts are first readable",
            value="line_first",
            y=LINE,
            caption="A row a concept; 0: the first layer.",
        ),
    )

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        check_latents("ica", self.n_concepts, self.n_active)
        check_number("readable", self.readable, 0, 1)

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
        need = self.activations
        to_fit = steps[fitted_steps(self.fit_steps, len(steps))].tolist()
        with ExitStack() as files:
            activations, reading = read_together(
                run, to_fit, need, files, with_steps=False
            )
            half = fixed_half(reading.units(need))
            width = sum(v.width for v in activations.values())
            gathered = Gathered(len(half), width, 1)
            for X in chain.from_iterable(
                layer.views() for layer in activations.values()
            ):
                gathered.add(X)
        seed = int(np.random.default_rng([self.random_state, 1]).integers(2**31))
        fits = fitted_codes(
            gathered, self.n_concepts, "ica", self.n_active, [seed], half
        )
        if not fits.codes.any():
            raise ArgumentError(
                "the activations do not vary, so there are no concepts in them"
            )
        texts = reading[InputSet(self.on)]
        pieces = run.pieces(need)
        sample = texts.sample(self.tokens, self.max_tokens, self.random_state)
        ids = strongest_tokens(fits.codes, texts, sample, 3).token_id.values
        words = [
            " ".join(pieces[i].strip() or "␣" for i in row if i >= 0)
            for row in ids.tolist()
        ]
        result: dict[str, Any] = {"codes": (("token", "concept"), fits.codes)}
        result["replicates"] = (
            "concept",
            fits.replicates(fits.half).astype(np.float64),
        )
        return xr.Dataset(
            {**result, "concept_tokens": ("concept", np.array(words, dtype=object))}
        )

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return how well the codes can be read in each layer, and the mean first layer."""
        assert state is not None
        codes = state.codes.values
        half = fixed_half(reading.units(self.activations))

        def one(path: str, A: torch.Tensor) -> Mapping[str, Any]:
            halves = Moments(standard(A)[0], half).readable(codes)
            return {"readability": (("text_half", "concept"), halves)}

        data = by_layer(reading[self.activations], one)
        replicates = state.replicates.values > 0
        if "readability" not in data:
            return data
        if not replicates.any():
            return data.assign(readability=data.readability.mean("text_half"))
        halves = data.readability.transpose("text_half", "layer", "concept").values[
            ..., replicates
        ]
        mean = float(first_layers(halves.mean(axis=0), self.readable).mean())
        values = first_layers(halves, self.readable).mean(axis=-1)
        labels = ["half 1", "half 2"]
        both = xr.DataArray(values, {"refit": labels}, "refit")
        data["readability"] = data.readability.mean("text_half")
        return data.assign(dataset({"first_layer": Measured(mean, replicates=both)}))

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add the first layer of each concept at each step, and which concepts move."""
        if "readability" not in data or "replicates" not in data:
            return data
        readable = data.readability.transpose("step", "layer", "concept").values
        first = first_layers(np.nan_to_num(readable), self.readable)
        first = np.where(first < readable.shape[1], first, np.nan)
        concepts = np.flatnonzero(
            (data.replicates.values > 0) & ~np.isnan(first).all(axis=0)
        )
        moves = layer_moves(first[:, concepts], seed=self.random_state)
        numbers = [
            (moves.direction == -1).sum(),
            (moves.direction == 1).sum(),
            moves.chance,
        ]
        names = ("n_earlier", "n_later", "n_by_chance")
        data = data.assign(
            {n: float(value) for n, value in zip(names, numbers, strict=True)}
        )
        if not len(concepts):
            return data
        order = np.argsort(np.nanmean(first[:, concepts], axis=0), kind="stable")
        lines = [f"{j} · {data.concept_tokens.values[j]}" for j in concepts[order]]
        return data.assign_coords({LINE: np.array(lines, dtype=object)}).assign(
            line_first=((LINE, "step"), first.T[concepts[order]]),
            line_moves=(LINE, moves.direction[order].astype(np.float64)),
        )

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return where concepts are first readable, and how many move, beside chance."""
        if "line_first" not in data or "run" in data.line_first.dims:
            return []
        first = data.line_first.mean("step").values
        always = (
            (data.line_first == 0).all("step").sum()
        )  # NaN where it is not readable
        middle = Beside("reference", "median layer", float(np.median(first)))
        counts = data.line_first.notnull().sum(LINE).values
        claims = [
            measurement(
                Subject(name, "line_first"),
                int(always),
                whole=float(len(first)),
                beside=[middle],
                figure=f"{name}/first-layers",
            )
        ]
        # Else a rising mean looks as if they moved to later layers.
        if counts[0] != counts[-1]:
            ends = Subject(name, LINE), float(counts[-1])
            claims.append(measurement(*ends, first=float(counts[0])))
        if data.sizes["step"] < FEWEST:
            return claims
        return [*claims, _moved(name, "n_earlier", data), _moved(name, "n_later", data)]


def _moved(name: str, variable: str, data: xr.Dataset) -> Claim:
    """Return how many concepts move one way, beside shuffled steps and control runs."""
    way = {"n_earlier": -1, "n_later": 1}[variable]
    beside = [Beside("null", "both ways by chance", float(data.n_by_chance))]
    if f"{variable}_control" in data:
        beside += of_controls(data[f"{variable}_control"])
    return measurement(
        Subject(name, variable),
        float(data[variable]),
        whole=float(data.sizes[LINE]),
        beside=beside,
        parts=map(str, data[LINE].values[data.line_moves.values == way]),
    )
