"""What the parts of one layer cost at one checkpoint, and what that is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from ...concepts.beyond_token import THERE, strong
from ...concepts.joint.presence import FOUND_AGAIN, Decoder
from ...errors import ArgumentError
from ...observables.random_directions import random_directions
from ...observables.removal import LossAtTokens
from ...summary.noise import mean_stderr
from ...units import Units

APART = 0.1  # correlation of codes above which two latents share too many tokens
BAND = (0.025, 0.975)
FIRST_ORDER = 200  # random directions of the first-order band
NEAREST = 20  # other latents of the first-order band


def others_of(codes: np.ndarray, count: int) -> np.ndarray:
    """Return for each latent the `count` others that fire about as often, (r, count).

    Nearest by the logarithm of the share of tokens. Latents whose codes go together with its own
    come last, as their tokens are its own; latents without a code never come.

    Parameters
    ----------
    codes
        (n, r), with zeros where a latent does not fire.
    count
        How many.

    Raises
    ------
    ArgumentError
        If there are not as many.

    Examples
    --------
    >>> codes = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1.0]])
    >>> others_of(codes, 1).ravel().tolist()
    [1, 0, 0]
    """
    share = (codes != 0).mean(axis=0)
    used = share > 0
    if used.sum() <= count:
        raise ArgumentError(
            f"n_draws={count} other concepts are removed beside each one, so that more latents "
            f"than that must fire; {int(used.sum())} do."
        )
    logs = np.log(np.where(used, share, 1.0))
    apart = np.abs(logs[:, None] - logs[None, :])
    apart += np.where(_correlation(codes) > APART, 1e3, 0.0)
    apart[:, ~used] = np.inf
    np.fill_diagonal(apart, np.inf)
    return np.argsort(apart, axis=1, kind="stable")[:, :count]


def _correlation(codes: np.ndarray) -> np.ndarray:
    centred = codes - codes.mean(axis=0)
    length = np.linalg.norm(centred, axis=0)
    unit = centred / np.where(length > 0, length, 1.0)
    return np.asarray(unit.T @ unit)


def chosen_concepts(
    codes: np.ndarray, again: np.ndarray, decoders: np.ndarray, count: int
) -> np.ndarray:
    """Return the numbers of the latents that are removed, in order.

    The strongest of those that a fit from another seed finds again; where these are too few, the
    strongest others. No loss is looked at, so that nothing is chosen for what is measured.

    Parameters
    ----------
    codes
        (n, r) codes.
    again
        (r,) their correlations with the best match of another fit.
    decoders
        (r, m) decoders at the reference step.
    count
        How many.
    """
    strength = np.linalg.norm(decoders, axis=1) * codes.std(axis=0)
    return np.sort(np.lexsort((-strength, again < FOUND_AGAIN))[:count])


def codes_of(layer: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Return codes (n, r) that are 0 where a concept is absent, and how well each is found again (r,).

    Components beyond the token have a code everywhere, most of it noise: they are absent where it
    is below a third of its usual size. A layer that has fewer of them than another has columns
    that never fire.

    Parameters
    ----------
    layer
        One layer of the state of `JointConcepts` or `LearnedConcepts`.
    """
    codes = layer["codes"]
    if "fit" not in codes.dims:
        return codes.values, layer["found_again"].values
    of_all_texts = codes.isel(fit=0).transpose("token", "concept").values
    dense = np.nan_to_num(of_all_texts.astype(np.float32))
    again = np.nan_to_num(layer["again"].values)
    return np.where(strong(dense, THERE), dense, 0), again


@dataclass(frozen=True, eq=False)
class Bands:
    """Where 95 % of the controls' first-order effects lie, (2, r) each: lower and upper end."""

    random: np.ndarray
    other: np.ndarray


def first_order_bands(
    codes: np.ndarray,
    gradients: np.ndarray,
    decoders: np.ndarray,
    directions: np.ndarray,
    others: np.ndarray,
) -> Bands:
    """Return the bands of both controls for all latents, from one matrix product.

    Parameters
    ----------
    codes, gradients
        (n, r) codes and (n, m) gradients of the loss.
    decoders
        (r, m).
    directions
        (draws, m) random unit directions.
    others
        (r, k) latents whose tokens are taken.
    """
    # (r, m): minus the effect of any direction.
    along = codes.T.astype(np.float64) @ gradients
    length = np.linalg.norm(decoders, axis=1)
    size = strengths(codes)
    random = -(along @ directions.T) * length[:, None]
    effects = -(along @ decoders.T.astype(np.float64))  # codes by decoder
    scale = size[None, :] / np.where(size > 0, size, 1.0)[:, None]
    other = np.take_along_axis((effects * scale).T, others, axis=1)
    return Bands(np.quantile(random, BAND, axis=1), np.quantile(other, BAND, axis=1))


def strengths(codes: np.ndarray) -> np.ndarray:
    """Return the root mean square (r,) of codes (n, r)."""
    return np.sqrt((codes.astype(np.float64) ** 2).mean(axis=0))


class LayerEffects:
    """One layer at one checkpoint: its codes, decoders and gradients, and what removal costs."""

    def __init__(
        self,
        path: str,
        at: LossAtTokens,
        gradients: np.ndarray,
        rows: np.ndarray,
        codes: np.ndarray,
        A: np.ndarray,
        units: Units,
    ) -> None:
        self._path = path
        self._at = at
        self._gradients = gradients
        self.all_codes = codes
        if len(self.all_codes) != len(A):
            raise ArgumentError(
                f"codes are of {len(self.all_codes)} tokens, and {path!r} gives {len(A)}."
            )
        self._decoder = Decoder(self.all_codes, np.zeros(len(A), dtype=int))
        self.codes = self.all_codes[rows]
        self.units = units
        self.weights = at.tokens.astype(np.float64)
        self._A = A[rows].astype(np.float64)
        self._D = self.decoders(A)

    def decoders(self, A: np.ndarray) -> np.ndarray:
        """Return least-squares decoders (r, m) in the units of activations (n, m)."""
        return self._decoder.decode((A - A.mean(axis=0)).astype(np.float32)).astype(
            np.float64
        )

    def mean(self, of_text: np.ndarray) -> np.ndarray:
        """Return means (...) over the predicted tokens of effects (..., texts)."""
        return np.asarray(of_text @ self.weights / self.weights.sum())

    def _per_token(self, sums: np.ndarray) -> np.ndarray:
        return np.divide(
            sums, self.weights, out=np.zeros_like(sums), where=self.weights > 0
        )

    @cached_property
    def _first_order(self) -> np.ndarray:
        """(r, texts) effects of all latents to first order, in nats."""
        of_row = -(self._gradients @ self._D.T) * self.codes
        text = self._at.sample.text
        count = len(self.weights)
        return np.stack(
            [np.bincount(text, weights=values, minlength=count) for values in of_row.T]
        )

    @property
    def effect(self) -> np.ndarray:
        """(r,) effects of all latents to first order, in nats per predicted token."""
        return np.asarray(self._first_order.sum(axis=1) / self.weights.sum())

    def first_order(self, seed: int) -> dict[str, Any]:
        """Return the first-order effects of all latents, their noise and their controls."""
        total = self.weights.sum()
        means, weights = self.units.means(
            self._per_token(self._first_order), self.weights
        )
        directions = random_directions(self._A, FIRST_ORDER, [seed, 5])
        others = others_of(
            self.codes, min(NEAREST, int(self.codes.any(axis=0).sum()) - 1)
        )
        bands = first_order_bands(
            self.codes, self._gradients, self._D, directions, others
        )
        error = mean_stderr(means, weights)
        numbers = {"effect": self.effect, "effect_stderr": error}
        for name in ("random", "other"):
            low, high = getattr(bands, name)
            numbers[f"effect_{name}_low"] = low / total
            numbers[f"effect_{name}_high"] = high / total
        return {name: ("concept", values) for name, values in numbers.items()}

    def _cost(self, codes: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Return what a removal costs each text, in nats per predicted token."""
        return self._per_token(self._at.removed(self._path, codes, direction))

    def removed(self, j: int) -> np.ndarray:
        """Return (texts,) what the removal of a concept costs."""
        return self._cost(self.codes[:, j], self._D[j])

    def random(self, j: int, count: int, seed: int) -> np.ndarray:
        """Return (count, texts) what equally strong random directions cost."""
        length = np.linalg.norm(self._D[j])
        directions = random_directions(self._A, count, [seed, 6, int(j)])
        return np.stack([self._cost(self.codes[:, j], length * d) for d in directions])

    def elsewhere(self, j: int, others: np.ndarray) -> np.ndarray:
        """Return (k, texts) what its direction costs on the tokens of other concepts."""
        size = strengths(self.codes)
        return np.stack(
            [
                self._cost(self.codes[:, k] * (size[j] / size[k]), self._D[j])
                for k in others
            ]
        )
