"""Whether a concept matters: what the loss would be without its part of a layer's output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr

from ...arrays import to_numpy
from ...claims import Claim
from ...concepts.beyond_token import Tokens, centred
from ...errors import ArgumentError, check_number
from ...figures import Figure, Section
from ...inputs.sampling import TokenSample
from ...needs import Gradients, Need
from ...needs.base import MASK_FRACTION
from ...needs.derived import Reference
from ...observables import Observable, PresetEntry, Reading, by_layer
from ...observables.catalogued import INNER_LAYERS
from ...observables.extractor_fits import layer_state
from ...observables.of_activations import OfJointConcepts
from ...observables.random_directions import p_above
from ...observables.removal import LossAtTokens
from ...quantities import Measured
from ...trees import Nodes
from ...units import Units
from .effect_controls import LayerEffects, chosen_concepts, codes_of, others_of
from .effect_verdicts import VARIABLES, claims_of_effects, figures, verdicts

LOSSES = {"auto": None, "causal": "next-token", "masked": "masked"}
TOKENS = ("all", "last", "cls", "masked")


@dataclass(frozen=True)
class ConceptEffects(OfJointConcepts):
    """By how much the loss rises without the part of each concept.

    A layer's output A is a sum over concepts, ``A = c + sum_j u_j d_j + rest``: the codes u of
    `JointConcepts` on its tokens, and the least-squares decoders d of the checkpoint, in the units
    of the activations. The effect of concept j is the loss with ``A - u_j d_j`` on these tokens,
    less the loss as it is. A code of 0 means that the concept is absent, so codes are removed as
    they are: tokens on which it does not fire stay untouched, which they would not if its mean were
    kept.

    *To first order*, for all latents at all steps, from the gradient g of the loss at the layer's
    output: ``effect_j = -sum_n u_nj <g_n, d_j>``. *Exactly*, by removal, for `n_removed` concepts
    of a layer: the strongest at the reference step among those that another seed finds again. The
    loss is not looked at to choose them.

    Two controls, at the steps where a study measures noise. *Random directions*: the same codes
    with directions of the same norm, drawn with the covariance of the layer's output, as isotropic
    directions lie mostly where the layer writes nothing. *Other concepts*: the concept's own
    direction, equally strong, with the codes of latents that fire about as often. To remove those
    concepts themselves would ask whether this one matters more than they do; and codes permuted
    over tokens would lose how a concept's tokens go together in texts.

    Where masked tokens are predicted and codes are of whole texts (``tokens="all"``), nothing is
    removed where the model sees the mask token, as the code is that of the word behind it: the
    effect is that of a concept of the context. With ``tokens="masked"``, codes are of the masked
    tokens as the model sees them: the effect is that of a concept of the prediction. After the last
    attention, words that are seen predict nothing; ``depends`` is then 0, and there is no effect.

    Of a node `LearnedConcepts`, whose codes are nowhere 0, a concept is absent where its code is
    below a third of its usual size, and decoders and random directions are of what the token
    leaves: all that is removed is beyond the token.

    Parameters
    ----------
    of
        Name of the `JointConcepts` or `LearnedConcepts` node.
    layers, on, tokens, max_tokens, random_state
        As in that node, which is checked; `random_state` also seeds masks and controls. A mean over
        tokens has no place in a text, so `tokens` must not be ``"mean"``.
    objective
        ``"causal"``, ``"masked"``, or ``"auto"`` (by the model's class).
    mask_fraction
        Which share of the tokens is masked, where masked tokens are predicted.
    n_removed
        Concepts of each layer that are really removed.
    n_draws
        Draws of each control, for each of them; at least 3.

    Notes
    -----
    Passes over the texts that hold such tokens: 2 at every step and one backward pass (all layers
    together), ``n_removed`` for every layer, and ``2 n_removed n_draws`` more for every layer at
    the steps of controls (about five). Batches in which a concept does not fire are left out.

    Only part of the tokens is changed where `max_tokens` is less than there are (``share``), so an
    effect is the smaller. The code of a whole text may know of words that are masked in the loss.

    Examples
    --------
    >>> ConceptEffects("joint-concepts", layers="model.layers.*.mlp", n_removed=4).name
    'concept-effects'
    """

    of: str = "joint-concepts"
    layers: str | tuple[str, ...] = "mlp"
    objective: str = "auto"
    mask_fraction: float = MASK_FRACTION
    n_removed: int = 8
    n_draws: int = 8
    on: str | None = None
    tokens: str = "all"
    max_tokens: int | None = 5000
    random_state: int = 0

    kind = "concept-effects"
    minima = {"n_removed": 1, "n_draws": 3}
    choices = {"objective": LOSSES, "tokens": TOKENS}
    question = "Does a concept matter: what does the loss rise by without it?"
    requires = "a node joint-concepts or learned-concepts, a vocabulary head"
    kinds_of = ("joint-concepts", "learned-concepts")
    price = "tens of passes for each layer at some steps"
    fewest_steps = 3
    obstacles = ("no_prediction",)
    presets = (PresetEntry(("circuits", "everything"), INNER_LAYERS, 80),)
    uses_noise = True
    variables = VARIABLES
    section = Section(
        title="Does a concept matter? ({of})",
        definition="By how much the loss rises when the part of a concept is taken from a layer's "
        "output: its code times the checkpoint's decoder, on the tokens of the codes.",
        symbol="L(A − uⱼ dⱼᵀ) − L(A)",
        null="Equally strong random directions with the same codes, and the concept's direction "
        "on the tokens of other concepts that fire about as often. It matters where its removal "
        "costs more than both, noise over texts included (Holm over the concepts).",
        care="Removal shows what the rest of this model makes of a direction now. Models "
        "make up for a part that is missing, and several concepts may carry the same. An effect "
        "to first order says nothing of that, and overstates or understates large removals.",
        source="Relative indirect effects: Crosscoding through time (2025)",
    )

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        check_number("mask_fraction", self.mask_fraction, 0, 1, above=True, below=True)
        if self.tokens == "masked" and self.objective == "causal":
            raise ArgumentError(
                "tokens='masked' needs a loss of masked tokens; got 'causal'."
            )
        if self.tokens == "masked" and self.mask_fraction != MASK_FRACTION:
            raise ArgumentError(
                f"mask_fraction must be {MASK_FRACTION} with tokens='masked', as the activations "
                f"are read so; got {self.mask_fraction}."
            )

    def check_nodes(self, observables: Mapping[str, Observable]) -> None:
        """Refuse a node of other concepts, and codes of other tokens or layers."""
        super().check_nodes(observables)
        of: Any = observables[self.of]
        if self.n_removed > of.n_concepts:
            raise ArgumentError(
                f"n_removed must be at most the {of.n_concepts} concepts of {self.of}; got "
                f"{self.n_removed}."
            )
        if self.n_draws >= of.n_concepts:
            raise ArgumentError(
                f"n_draws must be less than the {of.n_concepts} concepts of {self.of}; got "
                f"{self.n_draws}."
            )

    def needs(self) -> Sequence[Need]:
        """Return the activations here and at the reference, and the model with its loss."""
        return [
            self.activations,
            Reference(self.activations),
            Gradients(
                LOSSES[self.objective], self.on, self.mask_fraction, self.random_state
            ),
        ]

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return the effects of all latents to first order, and of some by removal."""
        if state is None:
            raise ArgumentError(f"{self.name} needs the codes of {self.of}; got None.")
        activations, reference, borrowed = self.needs()
        values = reading[activations]
        there = reading[reference]
        model = reading[borrowed]
        sample = model.inputs.sample(self.tokens, self.max_tokens, self.random_state)
        rows = self._rows(model, sample)
        tokens_left = TokenSample(sample.text[rows], sample.position[rows])
        at = self._loss(model, tokens_left)
        gradients = at.gradients(list(values))
        units = Units(np.asarray(model.inputs.groups))
        written = (
            self._beyond_token(model, sample, reading)
            if "fit" in state.dims
            else to_numpy
        )

        def one(path: str, A: torch.Tensor) -> Mapping[str, Any]:
            if not gradients[path].any():
                return {"depends": 0.0}
            codes, again = codes_of(layer_state(state, path))
            part = LayerEffects(
                path, at, gradients[path], rows, codes, written(A), units
            )
            of_reference = part.decoders(written(there[path]))
            removed = chosen_concepts(
                part.all_codes, again, of_reference, self.n_removed
            )
            return {
                **part.first_order(self.random_state),
                **self._removed(part, removed, reading.noise),
                "depends": 1.0,
                "share": len(tokens_left) / max(int(model.inputs.ordinary.sum()), 1),
            }

        return by_layer(values, one)

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add relative effects, corrected p-values and the verdict of each removed concept."""
        return verdicts(data, nodes[self.of])

    def figures(self, data: xr.Dataset, nodes: Nodes) -> Sequence[Figure]:
        """Return the effects over steps, the verdicts, and how both levels agree."""
        return figures(data)

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return how many concepts matter in each layer."""
        return list(claims_of_effects(name, data))

    def _loss(self, model: Any, sample: TokenSample) -> LossAtTokens:
        return LossAtTokens(
            model, sample, self.objective, self.mask_fraction, self.random_state
        )

    def _beyond_token(
        self, model: Any, sample: TokenSample, reading: Reading
    ) -> Callable[[torch.Tensor], np.ndarray]:
        """Return what gives the part of activations that the token leaves."""
        ids = model.inputs.tokens_at(sample)
        token = np.zeros_like(ids) if self.tokens == "masked" else ids
        tokens = Tokens(token, reading.units(self.activations))
        return lambda A: tokens.left(centred(to_numpy(A)))

    def _rows(self, model: Any, sample: TokenSample) -> np.ndarray:
        """Return the rows (k,) of the sample whose codes are those of what the model sees."""
        at = self._loss(model, sample)
        if self.tokens != "masked":
            return np.flatnonzero(at.unmasked)
        if not at.masked:
            raise ArgumentError(
                "tokens='masked' needs a model that predicts masked tokens."
            )
        return np.arange(len(sample))

    def _removed(
        self, part: LayerEffects, removed: np.ndarray, controls: bool
    ) -> dict[str, Any]:
        """Return the exact effects of the removed concepts, and of their controls."""
        costs = np.stack([part.removed(j) for j in removed])
        variables: dict[str, Any] = {
            "removed_concept": ("removal", removed),
            "first_order": ("removal", part.effect[removed]),
        }
        draws: dict[str, np.ndarray] = {}
        if controls:
            others = others_of(part.codes, self.n_draws)
            draws = {
                "random": np.stack(
                    [part.random(j, self.n_draws, self.random_state) for j in removed]
                ),
                "other": np.stack([part.elsewhere(j, others[j]) for j in removed]),
            }
            p = [
                max(
                    p_above(mine, values[i], part.weights, part.units)
                    for values in draws.values()
                )
                for i, mine in enumerate(costs)
            ]
            variables["removed_p_single"] = ("removal", np.array(p))
        nulls = {
            name: (("removal", "draw"), part.mean(values))
            for name, values in draws.items()
        }
        variables["removed"] = Measured.over_texts(
            ("removal", part.mean(costs)),
            costs,
            part.weights,
            part.units.of_row,
            ("removal", "text"),
            nulls=nulls,
        )
        return variables
