"""Concepts with one code for the whole run, and the life of each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr

from ...claims import Claim
from ...concepts.joint.codes import METHODS, TRAINED, fitted_codes
from ...concepts.joint.lives import SECOND
from ...concepts.joint.presence import Decoder, PartialDecoder, found_again
from ...concepts.joint.readout import CheckpointReadout, Moments
from ...concepts.joint.snapshots import fitted_steps, fixed_half, text_blocks
from ...concepts.joint.whitening import Gathered
from ...errors import ArgumentError, check_choice, check_number, check_whole
from ...figures import Curves, Figure, Heatmap, Section
from ...needs import Activations, Need
from ...observables import PresetEntry, Reading, Run, by_layer, control_matches
from ...observables.catalogued import INNER_LAYERS
from ...observables.control_matches import with_control_matches
from ...observables.extractor_fits import layer_state
from ...observables.of_activations import OfSampledActivations
from ...quantities import Quantity
from ...trees import Nodes
from ...words.names import Names
from .described import DESCRIBED, KEPT
from .describer import Describer, Texts
from .dictionaries_described import (
    SHARED,
    claims_of_names,
    described_at_step,
    with_descriptions,
    with_names,
)
from .joint_examples import SHOWN_CODES, SHOWN_KEPT, ShownCodes, shown_of_concepts
from .joint_gathered import observed, read_together, stale_claims, standard
from .joint_lives import VARIABLES, claims_of_lives, lives_of_layers

BLOCKS = 50  # of texts, that births are resampled over


@dataclass(frozen=True)
class JointConcepts(OfSampledActivations):
    """One dictionary for all checkpoints of a layer: what each concept is, and when it is there.

    Codes that all checkpoints share are fitted once, on some of them; each checkpoint gets its own
    decoder by least squares. What a latent writes, and whether it can be read from one checkpoint
    alone, then tells when it was born, when it settled and when it went. See
    `ontogeny.concepts.JointDictionary`, which does the same on arrays.

    Parameters
    ----------
    layers
        Glob or globs over module paths.
    n_concepts
        Number of latents; only some of them are concepts.
    method
        ``"ica"``, ``"svd"``, or a crosscoder: ``"batchtopk"``, ``"l1"``.
    n_active
        Codes that are not zero, per token on average.
    fit_steps
        On how many checkpoints the codes are fitted, evenly chosen among those that the study's
        folder was begun with (less those that cannot be read, or give NaN); or the training steps
        themselves. New checkpoints are joined as they come and change no concept; a number of
        checkpoints takes at least 12 from the beginning for that, else it chooses anew.
    readable
        How well a code must be readable at its best checkpoint, from 0 to 1.
    on, tokens, max_tokens, random_state
        Which tokens; `random_state` also seeds the fit.
    examples
        Contexts that are kept of each concept, with its name, its tokens and what it writes to
        the vocabulary (see `ontogeny.describe`); 0 describes nothing.
    shown_texts
        Of how many texts the code of every token is kept at every step, by a readout of that
        checkpoint, for the example text of the page: of the texts that `TokenLosses` shows by
        default. Needs ``tokens="all"`` and `examples`.

    Examples
    --------
    >>> JointConcepts(
    ...     "model.layers.*.mlp", n_concepts=50, fit_steps=(0, 100, 1000)
    ... ).name
    'joint-concepts'
    """

    n_concepts: int = 200
    method: str = "ica"
    n_active: int = 8
    fit_steps: int | tuple[int, ...] = 12
    readable: float = 0.6
    examples: int = 4
    shown_texts: int = 0

    kind = "joint-concepts"
    minima = {"examples": 0, "shown_texts": 0}
    question = "Which concepts are there, what does each mean, and when is it born?"
    price = "one fit for each layer over twelve steps, then one regression a step"
    fewest_steps = 2
    presets = (
        PresetEntry(
            ("circuits", "fine-tuning", "everything"),
            {"n_concepts": "$latents", **INNER_LAYERS},
            50,
        ),
    )
    state_variables = (
        *KEPT,
        *SHARED,
        *SHOWN_KEPT,
        "found_again",
        "half",
        "replicates",
        "fitted_step",
    )
    compared = ("named", "n_concepts", "n_born", "mean_life", *control_matches.COMPARED)
    variables: ClassVar[Names] = {
        "strength": ("root of the share of the variance that a concept writes", "1"),
        "readability": (
            "correlation of the codes with a readout of this checkpoint",
            "1",
        ),
        "whitened": ("inner products of decoders where activations are white", "1"),
        "influence": ("what each block of texts adds to the squared strength", "1"),
        "spread": ("noise of the squared strength", "1"),
        "half_strength": ("the same by a fit to one half of the texts", "1"),
        "found_again": ("correlation with the best match of another seed", "1"),
        "half": (
            "correlation with the best match of half of the texts, the smaller one",
            "1",
        ),
        "fitted_step": ("{checkpoint}s that the codes were fitted on", "{step}s"),
        "replicates": ("1 where both halves of the texts find it", "1"),
        **VARIABLES,
        **control_matches.VARIABLES,
        **DESCRIBED,
        **SHOWN_CODES,
        "named": ("concepts with a name", "concepts"),
    }
    quantities = (
        Quantity(
            "concepts_there",
            "number of latents that can be read from a checkpoint",
            "latents",
            rows="{layer} · readable latents",
            unit="halves of the texts and seeds",
            minimum=0.0,
            caption="Latents of the joint dictionary that a sparse linear readout of this "
            "checkpoint alone predicts on held-out texts.",
        ),
        Quantity(
            "explained",
            "share of the variance that the shared codes explain",
            noise="exact",
            caption="A shared code explains less than a dictionary of each checkpoint would. Where "
            "it falls at new checkpoints, they hold what the codes do not know.",
        ),
    )
    section = Section(
        title="Concepts and their lives",
        definition="Every token has one sparse code for the whole run, and every checkpoint its "
        "own decoder. A latent is a concept where its codes can be read from single checkpoints, "
        "and a fit to either half of the texts finds it. It is born where it reaches half of its "
        "peak, after less than a quarter.",
        symbol="Xₜ ≈ U Dₜ",
        null="Tokens permuted between checkpoints give many latents that look born by strength "
        "alone, and almost none that stay readable.",
        care="A birth is known between two checkpoints at best, and not at the last one. It says "
        "that the layer comes to write a feature of the texts, not that the model uses it. An "
        "untrained model has readable concepts too: {word}s themselves.",
        source="Crosscoders (Lindsey et al. 2024), by exact methods",
    )
    charts: ClassVar[Sequence[Figure]] = (
        Heatmap(
            "lives",
            "The lives of the concepts",
            value="life",
            x="step",
            y="line",
            facet="layer",
            caption="One row a concept, the youngest on top: its strength as a share of its "
            "peak. Latents that are no concepts are left out.",
        ),
        Curves(
            "newborn",
            "Concepts born during the run",
            value="newborn_strength",
            series="newborn",
            facet="layer",
            caption="The strongest of each layer: root of the share of the checkpoint's "
            "variance, with what noise gives taken off.",
        ),
    )

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        check_latents(self.method, self.n_concepts, self.n_active)
        check_number("readable", self.readable, 0, 1)
        described = self.examples > 0 and self.tokens == "all"
        if self.shown_texts and not described:
            raise ArgumentError(
                f"shown_texts={self.shown_texts} needs described concepts of all tokens: examples "
                f"of at least 1 and tokens='all'; got {self.examples} and {self.tokens!r}."
            )
        if isinstance(self.fit_steps, int):
            check_whole("fit_steps", self.fit_steps)
        elif not self.fit_steps:
            raise ArgumentError(
                f"fit_steps must be a number, or name at least one step; got {self.fit_steps!r}."
            )
        else:
            for step in self.fit_steps:
                check_whole("fit_steps", step, 0)

    def needs(self) -> Sequence[Need]:
        """Return the activations of the layers, and what describes their concepts."""
        others = dict.fromkeys([*self._describer.needs(), *self._shown_codes.needs()])
        return [self.activations, *others]

    @property
    def prepares_over_steps(self) -> bool:
        """Codes are fitted over several steps beforehand."""
        return True

    def bytes_to_prepare(self, rows: int, features: int, steps: int) -> int:
        """Return the bytes of a fit: one layer at a time, all its checkpoints together."""
        count = (
            self.fit_steps if isinstance(self.fit_steps, int) else len(self.fit_steps)
        )
        stacked = self.method in TRAINED
        return Gathered.size(rows, features, min(count, steps), stacked=stacked)

    def prepare(self, run: Run) -> xr.Dataset:
        """Fit the shared codes of every layer; checkpoints are read one at a time."""
        steps = self._steps_of(run)
        with_steps = not isinstance(self.fit_steps, int)
        need = self.activations
        stacked = self.method in TRAINED
        with ExitStack() as files:
            gathered, reading = read_together(
                run, steps, need, files, with_steps=with_steps
            )
            half = fixed_half(reading.units(need))
            codes = by_layer(
                gathered,
                lambda _, layer: {
                    **self._codes(layer.gathered(stacked=stacked), half),
                    "fitted_step": ("fit", np.array(steps, dtype=np.float64)),
                },
            )
        codes = self._shown_codes.with_texts(codes, reading)
        return with_descriptions(
            codes, run, reading, self._describer, self.untrained_codes
        )

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return strength and readability of every latent at one checkpoint."""
        need = self.activations
        describer = self._describer
        rng = np.random.default_rng([self.random_state, 2])
        texts = reading.units(need)
        half = fixed_half(texts)
        block = text_blocks(texts, BLOCKS, rng)
        readouts = describer.readouts(reading)
        words = describer.texts(reading) if describer.active else None
        texts_shown = self._shown_codes.at_step(reading, half)

        def one(path: str, A: torch.Tensor) -> Mapping[str, Any]:
            layer = layer_state(state, path)
            X, size = standard(A)
            decoder = Decoder(layer["codes"].values, block)
            there = CheckpointReadout(Moments(X, half), decoder)
            variables = observed(
                there, layer["codes_again"].values, self.readable - SECOND
            )
            if "codes_halves" in layer:
                halves = layer["codes_halves"].values
                by_half = [
                    PartialDecoder(halves, rows).strength(X) for rows in (half, ~half)
                ]
                variables["half_strength"] = (
                    ("text_half", "concept"),
                    np.stack(by_half),
                )
            if words is None:
                return variables
            step = described_at_step(there, size, words, readouts.get(path))
            return {**variables, **step, **texts_shown(path, A, size, there)}

        return by_layer(reading[need], one)

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add the lives of all concepts, and how many have a name."""
        data = with_names(lives_of_layers(data, self.readable, self.random_state))
        return with_control_matches(shown_of_concepts(data))

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return how many concepts there are in each layer, and what happened to them."""
        steps = data.fitted_step.values if "fitted_step" in data else np.zeros(0)
        fitted = [int(step) for step in np.unique(steps[np.isfinite(steps)])]
        return [
            *claims_of_lives(name, data),
            *claims_of_names(name, data),
            *stale_claims(name, data, fitted),
        ]

    def texts_of(self, need: Activations, inputs: Any) -> Texts:
        """Return what says of the texts of a need which tokens a concept stands for."""
        return Describer(need, self.examples or 1).texts(inputs)

    @property
    def _describer(self) -> Describer:
        return Describer(self.activations, self.examples)

    @property
    def _shown_codes(self) -> ShownCodes:
        return ShownCodes(self.activations, self.shown_texts)

    def _steps_of(self, run: Run) -> list[int]:
        """Return the training steps of the fit; only a number asks for the study's steps.

        A control run is read at fewer steps, and maybe not at those that are named: it is fitted on
        as many.
        """
        fit_steps = (
            None if isinstance(self.fit_steps, int) else sorted(set(self.fit_steps))
        )
        if fit_steps and not run.is_control:
            return fit_steps
        # A control run may have other steps than those named: as many of its own are taken.
        steps = np.asarray(run.steps if run.is_control else run.first_steps)
        count = len(fit_steps) if fit_steps else self.fit_steps
        return [int(step) for step in steps[fitted_steps(count, len(steps))]]

    def _codes(self, layer: Gathered, half: np.ndarray) -> Mapping[str, Any]:
        # [seed, 1], [seed, 2], ...: fits, folds of texts and births draw from streams of their own.
        seeds = (
            np.random.default_rng([self.random_state, 1])
            .integers(2**31, size=2)
            .tolist()
        )
        fits = fitted_codes(
            layer, self.n_concepts, self.method, self.n_active, seeds, half
        )
        if not fits.codes.any():
            raise ArgumentError(
                "the activations do not vary, so there are no concepts in them"
            )
        (second,) = fits.others
        again = found_again(fits.codes, second)[0]
        variables = {
            "codes": (("token", "concept"), fits.codes),
            "codes_again": (("token", "concept"), second),
            "found_again": ("concept", again),
            "half": ("concept", fits.half),
            "replicates": ("concept", fits.replicates(again).astype(np.float64)),
        }
        if fits.halves is not None:
            variables["codes_halves"] = (("token", "concept"), fits.halves)
        return variables

    def untrained_codes(self, A: torch.Tensor) -> np.ndarray:
        """Return the codes (n, r) of latents of one model alone, as dense as the shared ones."""
        X, _ = standard(A)
        r = min(self.n_concepts, X.shape[1])
        gathered = Gathered(len(X), X.shape[1], 1, stacked=self.method in TRAINED)
        gathered.add(X)
        seeds = (
            np.random.default_rng([self.random_state, 1])
            .integers(2**31, size=1)
            .tolist()
        )
        # A narrow layer has fewer latents here than the joint dictionary: with `n_active` codes a
        # token each of them would fire more often than the shared ones.
        k = self.n_active * r / self.n_concepts
        return fitted_codes(gathered, r, self.method, k, seeds).codes


def check_latents(method: str, n_concepts: int, n_active: int) -> None:
    """Check what joint dictionaries share: how codes are found, how many, how many a token has."""
    check_choice("method", method, METHODS)
    check_whole("n_concepts", n_concepts)
    if check_whole("n_active", n_active) > n_concepts:
        raise ArgumentError(
            f"n_active must be at most n_concepts, which is {n_concepts}; got {n_active}."
        )
