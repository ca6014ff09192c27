"""What is known of one concept of a result, as plain values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Token:
    """A token of the vocabulary with a number: a share of the squared code, or a logit.

    Attributes
    ----------
    id
        Its id in the vocabulary.
    piece
        Its characters.
    value
        Share from 0 to 1 of the concept's squared code, or logit that the concept adds.
    """

    id: int
    piece: str
    value: float


@dataclass(frozen=True)
class Context:
    """A place of a text where the concept fires, with the tokens around it.

    Attributes
    ----------
    text
        Number of the text in the input set.
    place
        Number of the strongest token in its text.
    tokens
        Pieces of the tokens; at most 13 of them.
    codes
        Code of each token, as a share of the concept's largest code; -1 where not measured.
    peak
        Which of `tokens` is the strongest one.
    numbers
        Whether tokens are ids, as nothing says how they are written.
    """

    text: int
    place: int
    tokens: tuple[str, ...]
    codes: tuple[float, ...]
    peak: int
    numbers: bool = False

    @property
    def pieces(self) -> tuple[str, ...]:
        """The tokens as they are written one after the other: numbers with a space between."""
        return tuple(f" {t}" for t in self.tokens) if self.numbers else self.tokens

    def __str__(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True)
class Neighbour:
    """Another concept of the layer that writes in a like direction; `name` may be empty."""

    index: int
    cosine: float
    name: str


@dataclass(frozen=True)
class Effect:
    """What the removal of a concept costs, in nats per predicted token.

    Attributes
    ----------
    first_order
        By how much the loss rises, to first order; see `ontogeny.observables.ConceptEffects`.
    random_low, random_high
        The band of equally strong random directions.
    verdict
        Whether its real removal costs more than the controls; empty where it was not removed.
    """

    first_order: float
    random_low: float
    random_high: float
    verdict: str


@dataclass(frozen=True)
class Life:
    """When a joint concept was there; training steps, None where there is none.

    Attributes
    ----------
    kind
        ``"born"``, ``"from the start"``, ``"grows"``, ``"fires on more tokens"`` or
        ``"no concept"``; see `ontogeny.concepts.joint.lives.Lives`.
    born, born_after, born_before
        First step at half of its peak, the last step that is surely before the birth, and the
        first that is surely not.
    settled, gone
        Steps from which on its strength stays near its last value, or below a quarter of its peak.
    """

    kind: str
    born: int | None = None
    born_after: int | None = None
    born_before: int | None = None
    settled: int | None = None
    gone: int | None = None


@dataclass(frozen=True, repr=False)
class Facts:
    """What is known of one concept of one layer at one step.

    Attributes
    ----------
    node, layer, index, step
        Where it stands in the result.
    name
        What a person called it, else its words or tokens; empty where it has no name.
    labelled
        Whether the name was given by a person.
    reason
        Why it has no name, with the numbers that decide it; empty where it has one.
    note
        What is to be said of labels by a person that are not applied.
    concentration, concentration_limit, name_p
        Share of its squared code on three tokens, the 95th percentile of that among the latents of
        the untrained model, and the corrected permutation p-value. NaN where not measured.
    tokens
        The tokens that carry most of its squared code.
    firing
        Share of the tokens on which it fires.
    enrichment
        Share of the variance of its code that the token, the token before, the token after and
        the place in the text explain, leave-one-out.
    contexts
        Where it is strongest: by what can be read of it at this step alone, where the result
        holds that, else by its code.
    shared_contexts
        Where its code is strongest, which all steps share; empty for concepts of a single step.
    written_up, written_down
        Tokens whose logits it raises and lowers most, where its layer writes into the residual
        stream and the model has an unembedding.
    written_random
        The 95th percentile of the largest logit of random directions of the same norm.
    neighbours
        Concepts of the same layer whose directions are nearest.
    life
        None for concepts of a single step.
    steps, strength, readability
        Training steps, and over them how much it writes and how well it can be read; empty where
        not measured.
    effect
        What its removal costs at this step, where another node of the result measured it.
    unit
        What the steps count: ``"step"``, ``"epoch"`` or ``"token"``.
    """

    node: str
    layer: str
    index: int
    step: int | None
    name: str = ""
    labelled: bool = False
    reason: str = ""
    note: str = ""
    concentration: float = math.nan
    concentration_limit: float = math.nan
    name_p: float = math.nan
    tokens: tuple[Token, ...] = ()
    firing: float = math.nan
    enrichment: dict[str, float] = field(default_factory=dict)
    contexts: tuple[Context, ...] = ()
    shared_contexts: tuple[Context, ...] = ()
    written_up: tuple[Token, ...] = ()
    written_down: tuple[Token, ...] = ()
    written_random: float = math.nan
    neighbours: tuple[Neighbour, ...] = ()
    life: Life | None = None
    steps: np.ndarray = field(
        default_factory=lambda: np.zeros(0, dtype=int), compare=False
    )
    strength: np.ndarray = field(default_factory=lambda: np.zeros(0), compare=False)
    readability: np.ndarray = field(default_factory=lambda: np.zeros(0), compare=False)
    effect: Effect | None = None
    unit: str = "step"

    @property
    def title(self) -> str:
        """Its name, or ``"not named"``."""
        return self.name or "not named"
