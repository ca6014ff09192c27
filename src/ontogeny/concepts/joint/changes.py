"""What a later model kept, lost, got and turned of the concepts of an earlier one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...errors import ArgumentError
from .lives import HALF, QUARTER, SECOND
from .presence import LEVEL, Presence

# Cosine between the decoders of both models, below which a concept has turned.
TURNED = 0.5
CHANGES = ("kept", "turned", "lost", "new", "unclear", "no concept")


@dataclass(frozen=True, eq=False)
class ConceptChanges:
    """The same r latents in two models, such as one before and after fine-tuning.

    Attributes
    ----------
    kind
        (r,) text:

        - ``"kept"``: readable in both, however faintly one of them writes it
        - ``"turned"``: kept, and written in another direction; only of models with a common basis
        - ``"lost"``, ``"new"``: readable in one alone, and the other writes less than a quarter of
          it, surely less than half
        - ``"unclear"``: none of these is shown, such as where one of both surely writes less than
          half of it and reads it below ``readable``, or too faintly to know the direction
        - ``"no concept"``: readable in neither, or not a latent that is asked about
    ratio, low, high
        (r,) strength in the second model by that in the first, and its 95 % interval over texts;
        up to a million where the first writes nothing.
    cosine
        (r,) between the decoders of both models, with what noise takes off given back; NaN where
        a decoder is mostly noise, and of models of unequal width.
    common_basis
        Whether it is known, or at least half of what both have points the same way. Else a
        direction says nothing, and no concept is called turned: another seed has another basis.
    """

    kind: np.ndarray
    ratio: np.ndarray
    low: np.ndarray
    high: np.ndarray
    cosine: np.ndarray
    common_basis: bool

    def counts(self) -> dict[str, int]:
        """Return how many latents are of each kind."""
        return {kind: int((self.kind == kind).sum()) for kind in CHANGES}


def concept_changes(
    first: Presence,
    second: Presence,
    concept: np.ndarray | None = None,
    *,
    readable: float = 0.6,
    common_basis: bool = False,
    n_draws: int = 200,
    random_state: int = 0,
) -> ConceptChanges:
    """Return what became of each latent between two models that the same codes were read in.

    Decoders are least squares, so that nothing shrinks a faint one to zero, and sources of both
    models are found together, so that one concept is not split into one of each model: the two
    ways in which a crosscoder calls a kept concept lost or new (complete shrinkage and latent
    decoupling, Minder et al. 2025).

    Parameters
    ----------
    first, second
        The latents at one checkpoint each, as `JointDictionary.presence_` or
        `JointDictionary.transform_steps` has them, over the same tokens.
    concept
        (r,) which latents are asked about, such as those that replicate; by default all that are
        readable in one of both.
    readable
        As in `JointDictionary`.
    common_basis
        Whether both are known to have a common basis, as two checkpoints of one run do; else it is
        asked whether most of what both have points the same way.
    n_draws, random_state
        Resamples of texts for the intervals.

    Raises
    ------
    ArgumentError
        If one of both holds several checkpoints.

    Examples
    --------
    >>> import numpy as np
    >>> from ontogeny.concepts import JointDictionary, concept_changes
    >>> rng = np.random.default_rng(0)
    >>> U = rng.exponential(size=(1500, 4)) * (rng.uniform(size=(1500, 4)) < 0.1)
    >>> D = rng.normal(size=(4, 16))
    >>> X = {"base": U * [1, 1, 1, 0] @ D, "tuned": U * [1, 0.2, 0, 1] @ D}
    >>> X = {name: [A + 0.02 * rng.normal(size=A.shape)] for name, A in X.items()}
    >>> there = JointDictionary(n_concepts=4, n_active=1).fit(X).presence_
    >>> sorted(concept_changes(there["base"], there["tuned"]).kind.tolist())
    ['kept', 'kept', 'lost', 'new']
    """
    for name, presence in (("first", first), ("second", second)):
        n = len(presence.strength)
        if n != 1:
            raise ArgumentError(
                f"{name} must hold the latents at one checkpoint; it holds {n}."
            )
    pair = np.concatenate([first.readable, second.readable])
    best = pair.max(axis=0)
    is_shown = (
        best >= readable if concept is None else concept & (best >= readable - SECOND)
    )
    there = pair >= readable - SECOND
    ratio, low, high = _ratios(first, second, n_draws, random_state)
    fainter = (ratio < QUARTER) & (high < HALF)
    stronger = (ratio > 1 / QUARTER) & (low > 1 / HALF)
    lost = there[0] & ~there[1] & fainter
    new = there[1] & ~there[0] & stronger
    in_both = there.all(axis=0)
    cosine = _cosines(first, second)
    known = np.isfinite(cosine)
    alike = cosine[is_shown & in_both & known]
    common = common_basis or bool(len(alike) and np.median(alike) >= TURNED)
    # A tenth of a concept, read at .54, was called kept: the benefit of the doubt that `SECOND`
    # gives is for a concept that is there, and no direction is no equal direction.
    faded = (fainter | stronger) & (pair.min(axis=0) < readable)
    kept = in_both & ~faded & (known | ~np.array(common))
    kind = np.select(
        [~is_shown, in_both & ~faded & common & (cosine < TURNED), kept, lost, new],
        ["no concept", "turned", "kept", "lost", "new"],
        "unclear",
    )
    return ConceptChanges(kind, ratio, low, high, cosine, common)


def _ratios(
    first: Presence, second: Presence, n_draws: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return second by first strengths (r,), with the ends of their intervals over texts."""
    rng = np.random.default_rng(seed)
    blocks = first.influence.shape[1]
    squared = np.concatenate([first.strength, second.strength]) ** 2
    influence = np.concatenate([first.influence, second.influence])
    spread = np.concatenate([first.spread, second.spread])
    # The same resample of texts in both models, noise of each alone.
    times = rng.multinomial(blocks, np.full(blocks, 1 / blocks), size=n_draws) - 1.0
    draws = squared + np.einsum("kb,sbr->ksr", times.astype(np.float32), influence)
    draws = np.maximum(draws + spread * rng.standard_normal(draws.shape), 0)
    draws = np.concatenate([squared[None], draws])
    # Where neither writes anything, nothing changed.
    tiny = 1e-12 * max(float(squared.max(initial=0)), 1e-30)
    ratio = np.sqrt((draws[:, 1] + tiny) / (draws[:, 0] + tiny))
    ends = np.quantile(ratio, [LEVEL / 2, 1 - LEVEL / 2], axis=0)
    return ratio[0], np.minimum(ends[0], ratio[0]), np.maximum(ends[1], ratio[0])


def _cosines(first: Presence, second: Presence) -> np.ndarray:
    """Return (r,) cosines of decoders, NaN where one of them is mostly noise."""
    if first.decoders.shape != second.decoders.shape or not first.decoders.shape[2]:
        return np.full(first.strength.shape[1], np.nan)
    inner = np.einsum("srm,srm->r", first.decoders, second.decoders, dtype=np.float64)
    square = 1.0
    for there in (first, second):
        # Stored presences are float32, in which the smallest number below would be 0.
        strength, floor = (
            x[0].astype(np.float64) ** 2 for x in (there.strength, there.floor)
        )
        length = np.einsum(
            "srm,srm->r", there.decoders, there.decoders, dtype=np.float64
        )
        # Noise lengthens a decoder, and takes as much off the cosine.
        share = np.where(
            strength > floor, strength / np.maximum(strength + floor, 1e-300), np.nan
        )
        square = square * length * share
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.clip(inner / np.sqrt(square), -1, 1)
