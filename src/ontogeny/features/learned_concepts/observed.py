"""Concepts that training made: what activations hold beyond the token and the first checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import xarray as xr

from ...arrays import to_numpy
from ...claims import Claim
from ...concepts.beyond_token import Tokens, centred
from ...concepts.joint.snapshots import fixed_half
from ...errors import ArgumentError, CheckpointError, NonFiniteError
from ...figures import Column, Figure, Heatmap, Table
from ...inputs import ShownTexts
from ...needs import InputSet, Need
from ...observables import PresetEntry, Reading, Run, by_layer, control_matches
from ...observables.control_matches import with_control_matches
from ...observables.extractor_fits import layer_state
from ...observables.of_activations import OfSampledActivations
from ...observables.pieces import (
    PIECES,
    SHOWN,
    pieces_variable,
    shown_variables,
    whole_numbers,
    with_pieces,
)
from ...scratch import let_go, let_go_unchanged, scratch_array, trim_heap
from ...trees import Nodes
from .checkpoint import directions, presence
from .declared import COUNTS, FOUND, NAMES, QUANTITIES, SECTION, VARIABLES
from .found import Finder, labelled
from .lives import claims, with_lives
from .naming import Namer
from .parts import Predictor, scaled
from .places import Places
from .token_table import ROWS, with_token_table

# What one token in 500 answers to fires 120 times here; in the 3,000 tokens that presets give to
# other observables of activations, 6 times.
ENOUGH = 60_000
# Places among the steps that are searched too: what fades is not missed.
EARLIER = (0.75, 0.5)
SEARCHED = 6  # steps from which on they are
TOKENS = ("all", "later", "last", "cls", "masked")
LISTED = 20  # tokens of which it is said how much of the layer each one is
# Texts of which it is kept where concepts are strong: those of token losses.
SHOWN_TEXTS = 3
_NUMBERS = (
    "context_id",
    "context_text",
    "context_place",
    "frequent_id",
    "shown_fires",
    *SHOWN,
)
_TEXTS = ("name", "rule", "words", "found_in", "fit_id")


@dataclass(frozen=True)
class LearnedConcepts(OfSampledActivations):
    """Components of what a layer holds beyond the current token, with names, births and controls.

    Of every activation the mean of its token's places in other texts is taken off. What is left at
    the last step is unmixed by ICA, on all texts and on both halves; what both halves find is a
    concept. At each step its codes are read out from that checkpoint alone, on texts that the
    read-out does not know. The learned part is what neither the token nor the first checkpoint
    predicts.

    Parameters
    ----------
    layers
        Glob or globs over module paths.
    n_concepts
        Independent components that are searched, at most the rank.
    n_latents
        Of a sparse dictionary, begun from these, whose latents are searched beyond them: more than
        `n_concepts`, and than a layer has dimensions. 0 fits none. It takes minutes for each fit.
    examples
        Contexts of each band (top, middle, low, near miss) and concept, with its name; 0 describes
        nothing.
    keep_directions
        Whether decoders, read-outs, means and scales of every step stand in the result.
    on, tokens, max_tokens, random_state
        Which tokens; `random_state` also seeds the fits. A masked place has no token of its own.

    Examples
    --------
    >>> LearnedConcepts("resid", n_concepts=40).name
    'learned-concepts'
    """

    layers: str | tuple[str, ...] = "resid"
    n_concepts: int = 100
    n_latents: int = 0
    examples: int = 4
    keep_directions: bool = True
    max_tokens: int | None = field(default=ENOUGH, kw_only=True)

    kind = "learned-concepts"
    question = "Which concepts did training make, and when was each born?"
    price = "five fits for each layer, then one regression a step"
    minima = {"n_concepts": 1, "n_latents": 0, "examples": 0}
    choices = {"tokens": TOKENS}  # means of texts have no token
    presets = (
        PresetEntry(
            ("standard", "fine-tuning", "one-model", "everything"),
            {"n_concepts": "$latents", "layers": "$streams", "max_tokens": ENOUGH},
            49,
        ),
    )
    state_variables = (
        *COUNTS,
        *NAMES,
        *FOUND,
        *_NUMBERS,
        "context_code",
        "histogram",
        "fit_id",
        "code_sketch",
        PIECES,
    )
    compared = (
        *COUNTS,
        "n_born",
        "named_phi",
        "named_about",
        *control_matches.COMPARED,
    )
    variables = VARIABLES
    quantities = QUANTITIES
    section = SECTION

    def check(self) -> None:
        """Refuse a sparse dictionary that no component is beyond."""
        if 0 < self.n_latents <= self.n_concepts:
            raise ArgumentError(
                f"n_latents must be more than n_concepts ({self.n_concepts}), which a sparse "
                f"dictionary begins with, or 0 to fit none; got {self.n_latents}."
            )

    def needs(self) -> Sequence[Need]:
        """Return the activations of the layers, and the texts."""
        return [self.activations, InputSet(self.on)]

    @property
    def prepares_over_steps(self) -> bool:
        """The first and some last steps are searched beforehand."""
        return True

    def bytes_to_prepare(self, rows: int, features: int, steps: int) -> int:
        """Return the bytes of one layer's fits: scaled rows, whitened rows and codes."""
        codes = max(min(self.n_concepts, features), self.n_latents)
        return 4 * rows * (3 * features + 6 * codes)

    def prepare(self, run: Run) -> xr.Dataset:
        """Find the components of every layer; checkpoints are read one at a time."""
        steps = [int(s) for s in (run.steps if run.is_control else run.first_steps)]
        alone = len(steps) == 1
        start, first = (-1, run.untrained()) if alone else self._readable(run, steps)
        tokens = self._tokens(first)
        listed = tokens.frequent(LISTED)
        finder = self._finder(run, first)
        rows = {start: self._left(first, tokens)}
        del first  # one checkpoint's activations are in memory at a time
        last, reading = self._readable(run, steps[::-1])
        rows[last] = self._left(reading, tokens)
        del reading
        for step in _earlier(steps):
            with suppress(ArgumentError):
                rows.setdefault(
                    step, self._left(self._readable(run, [step])[1], tokens)
                )
        blank = self._untrained(run, tokens) or rows[start]
        searched = [step for step in rows if step != start]
        grown = [] if alone else self._grown(run, start, searched, tokens)
        searched = searched or [last]  # of several checkpoints only one can be read

        def one(path: str, X: np.ndarray) -> Mapping[str, Any]:
            left = {step: rows[step][path] for step in searched}
            larger = [each[path] for each in grown]
            found = finder.layer(X, blank[path], left, larger)
            for array in (X, blank[path], *left.values(), *larger):
                let_go(array)
            trim_heap()
            return found

        state = by_layer(rows[start], one)
        state = state.assign({PIECES: pieces_variable(run.pieces(self.activations))})
        if finder.texts_shown is not None:
            state = state.assign(shown_variables(finder.texts_shown))
        return state.assign(
            first_step=float(start), frequent_id=("listed", listed.astype(np.int32))
        )

    def _readable(self, run: Run, steps: Sequence[int]) -> tuple[int, Reading]:
        """Return the first of some steps that can be read; the cells of the others say why not."""
        why = "there is no step."
        for step in steps:
            try:
                reading = run.reading(step)
                reading[self.activations]
            except (CheckpointError, NonFiniteError) as error:
                why = str(error)
                continue
            return step, reading
        raise ArgumentError(f"no checkpoint can be read: {why}")

    def _untrained(self, run: Run, tokens: Tokens) -> dict[str, np.ndarray] | None:
        """Return what is left of an untrained model; None where none can be made.

        A base that is tuned has names of its own: a limit by them would leave the tuned ones none.
        """
        try:
            return self._left(run.untrained(), tokens)
        except (ArgumentError, CheckpointError, NonFiniteError):
            return None

    def _grown(
        self, run: Run, start: int, searched: Sequence[int], tokens: Tokens
    ) -> list[dict[str, np.ndarray]]:
        """Return what is left where the first checkpoint has grown to the norms of others.

        Without those at which activations overflow.
        """
        grown = []
        for step in searched:
            with suppress(NonFiniteError):
                grown.append(self._left(run.grown(start, step), tokens))
        return grown

    def _left(self, reading: Reading, tokens: Tokens) -> dict[str, np.ndarray]:
        """Return what the token leaves of each layer, scaled.

        In files in half precision: a relative error of 2^-11 at most, and memory of one layer.
        """
        left = {}
        for path, A in reading[self.activations].items():
            rows = tokens.left(centred(to_numpy(A)))
            left[path] = scratch_array(rows.shape, np.float16)
            left[path][:] = scaled(rows)
            let_go(left[path])
        return left

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return the shares of one checkpoint, and what it says of each component."""
        tokens = self._tokens(reading)
        half = fixed_half(tokens.unit)
        assert state is not None
        is_first = reading.step == int(state.first_step)
        listed = state.frequent_id.values
        refits = ("refit", "concept")

        def one(path: str, A: torch.Tensor) -> Mapping[str, Any]:
            layer = layer_state(state, path)
            # Layers with fewer of them end in none: a slice of a file's map, and no copy.
            layer = layer.isel(concept=slice(int(layer["again"].notnull().sum())))
            codes = layer["codes"].values
            let_go_unchanged(codes)  # its digest was read
            values = to_numpy(A)
            H = centred(values)
            L = tokens.left(H)
            variables: dict[str, Any] = {
                "token_share": tokens.explained(L, H),
                "token_part": ("listed", tokens.of_each(H, listed)),
            }
            if not is_first:
                learned = _learned(layer["first"].values, half, L)
                variables["learned_share"] = tokens.share(learned, H)
                del learned
            read = Predictor(scaled(L), half)
            readable, strength = presence(read, codes)
            variables |= {
                "readability": ("concept", readable[0]),
                "strength": ("concept", strength[0]),
                "refit_readability": (refits, readable[1:]),
                "refit_strength": (refits, strength[1:]),
            }
            if self.keep_directions:
                variables |= directions(read, codes[0], L, values)
            for stored in (codes, layer["first"].values):
                let_go_unchanged(stored)
            labels = {
                "concept": layer["concept"].values,
                "refit": layer["fit"].values[1:],
                "feature": np.arange(H.shape[1]),
                "listed": np.arange(len(listed)),
            }
            return labelled(variables, labels)

        return by_layer(reading[self.activations], one)

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add the lives of all components, and texts for ids."""
        texts = {
            n: data[n].where(data[n].notnull(), "").astype(object)
            for n in _TEXTS
            if n in data
        }
        data = whole_numbers(data.assign(texts), _NUMBERS)
        if PIECES in data:
            ids = ["context_id", "frequent_id", "shown_token_id"]
            data = with_pieces(data, ids)
        return with_control_matches(with_lives(with_token_table(data)))

    def figures(self, data: xr.Dataset, nodes: Nodes) -> Sequence[Figure]:
        """Return the lives as a heat map, and the names in a table."""
        figures: list[Figure] = []
        if "life" in data:
            figures.append(
                Heatmap(
                    "lives",
                    "The lives of the concepts",
                    value="life",
                    x="step",
                    y="concept",
                    facet="layer",
                    caption="One row a concept: its strength as a share of its peak.",
                )
            )
        if "name_auc" in data:
            columns = [
                Column(name) for name in ("rule", "words", "name_phi", "name_limit")
            ]
            auc = Column("name_auc", interval=("name_auc_low", "name_auc_high"))
            figures.append(
                Table(
                    "names",
                    "What concepts answer to",
                    columns=[*columns, auc],
                    rows="concept",
                    group="layer",
                )
            )
        if "token_text" in data and self.tokens != "masked":
            figures.append(
                Table(
                    "tokens",
                    "Tokens with a direction of their own",
                    columns=[
                        Column("token_text"),
                        Column("token_first"),
                        Column("token_last"),
                        Column("token_half"),
                    ],
                    rows=ROWS,
                    group="layer",
                    caption="How much of the layer the mean of each frequent token is, at the "
                    "first and the last {checkpoint}. Concepts are of what tokens leave.",
                )
            )
        return figures

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return which concepts were born, faded, were kept or turned, beside control runs."""
        return list(claims(name, data))

    def _tokens(self, reading: Reading) -> Tokens:
        """Return which token stands at each row; at a masked place the same everywhere."""
        inputs = reading[InputSet(self.on)]
        sample = inputs.sample(self.tokens, self.max_tokens, self.random_state)
        ids = inputs.tokens_at(sample)
        token = np.zeros_like(ids) if self.tokens == "masked" else ids
        return Tokens(token, reading.units(self.activations))

    def _finder(self, run: Run, reading: Reading) -> Finder:
        unit = reading.units(self.activations)
        half = fixed_half(unit)
        seed = self.random_state
        places = namer = texts_shown = None
        if self.examples:
            inputs = reading[InputSet(self.on)]
            sample = inputs.sample(self.tokens, self.max_tokens, self.random_state)
            places = Places(inputs, sample, run.pieces(self.activations))
            namer = Namer(places, half, unit, seed)
            with suppress(ArgumentError):  # of which no token is predicted
                texts_shown = ShownTexts.of(inputs, SHOWN_TEXTS)
        return Finder(
            namer,
            places,
            texts_shown,
            half,
            self.n_concepts,
            self.examples,
            seed,
            self.n_latents,
        )


def _learned(first: np.ndarray, half: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Return what the first checkpoint does not predict of what the token leaves (n, m)."""
    rows = first[:, : left.shape[1]].astype(np.float32)
    return Predictor(rows, half).left(left)


def _earlier(steps: Sequence[int]) -> list[int]:
    """Return the steps before the last that are searched too, the later one first."""
    if len(steps) < SEARCHED:
        return []
    return [steps[round(share * (len(steps) - 1))] for share in EARLIER]
