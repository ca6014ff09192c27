"""How many directions the activations of a layer use, and how anisotropic they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import xarray as xr
from scipy.linalg import eigvalsh_tridiagonal

from ... import geometry
from ...claims import Beside, Claim, Subject, measurement
from ...figures import Section
from ...geometry.rank import centred
from ...observables import PresetEntry, Reading, by_layer
from ...observables.catalogued import SOME_LAYERS
from ...observables.of_activations import OfSampledActivations
from ...quantities import Measured, Quantity
from ...units import Units

_BLOCKS = 10  # of texts, for the jackknife
_NO_ROWS = np.arange(0)
_DRAWS = 10  # isotropic samples of the null
# Times the median length of a token's activations: attention sinks have a hundred and more.
OUTLYING = 20.0
# Variation, against the largest value, that float32 rounding may leave.
_CONSTANT = 1e-6


def _measure(
    name: str, title: str, units: str = "directions", **options: Any
) -> Quantity:
    nulls = {"null": "isotropic activations"}
    return Quantity(name, title, units, unit="blocks of texts", nulls=nulls, **options)


@dataclass(frozen=True)
class EffectiveDimensions(OfSampledActivations):
    """Participation ratio, stable rank, entropy rank and anisotropy of activations.

    The first three are those of the centred activations; anisotropy is the mean cosine of two
    tokens' activations as they are. Errors: jackknife over ten blocks of texts. Null: isotropic
    Gaussian activations of the same shape.

    Parameters
    ----------
    layers, on, tokens, max_tokens, random_state
        Which activations, see `ontogeny.needs.Activations`.
    outliers
        ``"keep"``, or ``"drop"``: tokens whose activations are more than 20 times as long as the
        median, such as attention sinks, are left out at each step. They are counted either way.

    Examples
    --------
    >>> EffectiveDimensions().name
    'effective-dimensions'
    """

    kind = "effective-dimensions"
    choices = {"outliers": ("keep", "drop")}
    question = "How many directions does a layer use?"
    presets = (PresetEntry(("quick", "everything", "one-model"), SOME_LAYERS, 140),)
    outliers: str = "keep"

    variables = {
        "outliers": (
            f"tokens more than {OUTLYING:.0f} times as long as the median",
            "tokens",
        ),
        "without_outliers": ("participation ratio without such tokens", "directions"),
    }
    quantities = (
        _measure(
            "participation_ratio", "participation ratio", rows="{layer} · dimensions"
        ),
        _measure("stable_rank", "stable rank"),
        _measure("effective_rank", "effective rank (entropy of the singular values)"),
        _measure("anisotropy", "anisotropy: mean cosine of two tokens", units="1"),
    )
    section = Section(
        title="Effective dimensions of activations",
        definition="How many directions the centred activations of a layer use, counted three "
        "ways, and how much all tokens point the same way.",
        symbol="PR = (Σλ)² / Σλ²,  stable rank = Σλ / λ₁,  effective rank = exp H(√λ / Σ√λ)",
        null="Isotropic Gaussian activations of the same shape.",
        care="A few tokens with very large activations lower all three ranks; they are counted, "
        'and outliers = "drop" leaves them out.',
        source="Bernas 2025, sec. 6.3; Gao et al. 2017; Roy and Vetterli 2007; Ethayarajh 2019",
    )

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return the measures, their standard errors and the isotropic null of every layer."""
        units = np.asarray(reading.units(self.activations))
        return by_layer(
            reading[self.activations], lambda path, A: self._beside_outliers(A, units)
        )

    def _beside_outliers(self, A: torch.Tensor, units: np.ndarray) -> dict[str, Any]:
        """Return the measures, how many tokens outlie, and what these do to the first measure."""
        lengths = torch.linalg.vector_norm(A.double().cpu(), dim=1)
        usual = lengths <= OUTLYING * lengths.median()
        inner = A.cpu()[usual]
        count = len(A) - len(inner)
        if self.outliers == "drop":
            A = inner
            units = units[usual.numpy()]
        measures = _measures(A, Units(units))
        ratio = measures["participation_ratio"].value
        if count and self.outliers == "keep":
            centre = inner.double() - inner.double().mean(0)
            ratio = geometry.participation_ratio(centre.numpy())
        return {**measures, "outliers": count, "without_outliers": float(ratio)}

    def claims(self, name: str, data: xr.Dataset) -> Sequence[Claim]:
        """Return how many tokens outlie in each layer at the last step, and what they change."""
        if "outliers" not in data or "run" in data.outliers.dims:
            return []
        last = data.isel(step=-1)
        layers = [last.sel(layer=layer) for layer in last.layer.values]
        return [self._of_outliers(name, one) for one in layers if one.outliers > 0]

    def _of_outliers(self, name: str, one: xr.Dataset) -> Claim:
        count = float(one.outliers)
        layer = str(one.layer.item())
        ratios = float(one.without_outliers), float(one.participation_ratio)
        if self.outliers == "drop":
            subject = Subject(name, "without_outliers", layer)
            return measurement(subject, ratios[0], whole=count)
        beside = Beside("reference", "without", *ratios)
        return measurement(Subject(name, "outliers", layer), count, beside=[beside])


def _measures(A: torch.Tensor, units: Units) -> dict[str, Measured]:
    """Return the measures of activations (n, m) with jackknife errors and the isotropic null."""
    if len(A) < 2 * _BLOCKS:
        raise ValueError(
            f"effective dimensions need at least {2 * _BLOCKS} tokens; there are {len(A)}"
        )
    X = A.double().cpu()
    if not bool(torch.isfinite(X).all()):
        raise ValueError("the activations hold NaN or infinity")
    X = X / X.abs().max().clamp(min=torch.finfo(X.dtype).tiny)
    apart = X - X.mean(0)  # around 0, a large mean would leave no digits
    if float(apart.abs().max()) < _CONSTANT:
        raise ValueError("the activations do not vary over tokens")
    blocks = units.blocks(_BLOCKS) if units.count > 1 else []
    pairs = zip(_spectra(apart.numpy(), blocks), _cosines(X, blocks), strict=True)
    value, *left_out = [[*_ranks(spectrum), cosine] for spectrum, cosine in pairs]
    errors = (
        np.sqrt((len(blocks) - 1) * np.var(left_out, axis=0)) if blocks else [None] * 4
    )
    null = _isotropic(*X.shape)
    return {
        q.name: Measured(v, stderr=e, nulls={"null": n})
        for q, v, e, n in zip(
            EffectiveDimensions.quantities, value, errors, null, strict=True
        )
    }


def _ranks(spectrum: np.ndarray) -> list[float]:
    if not spectrum.any():
        raise ValueError("the activations do not vary over tokens")
    return [
        geometry.participation_ratio(spectrum=spectrum),
        geometry.stable_rank(spectrum=spectrum),
        geometry.effective_rank(spectrum=spectrum),
    ]


def _spectra(X: np.ndarray, blocks: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield the singular values of `X` (n, m) with its rows centred: whole, without each block.

    From second moments of the smaller side, which are computed once: of features, from which a
    block is subtracted, or of tokens, from which it is cut out.
    """
    n, m = X.shape
    if n < m:
        gram = X @ X.T
        for left_out in [_NO_ROWS, *blocks]:
            rest = np.delete(np.arange(n), left_out)
            yield _roots(centred(gram[np.ix_(rest, rest)]))
        return
    moment = X.T @ X
    total = X.sum(0)
    for left_out in [X[rows] for rows in (_NO_ROWS, *blocks)]:
        rest = total - left_out.sum(0)
        inside = left_out.T @ left_out
        np.subtract(moment, inside, out=inside)
        yield _roots(inside - np.outer(rest, rest / (n - len(left_out))))


def _roots(moment: np.ndarray) -> np.ndarray:
    values = torch.linalg.eigvalsh(torch.from_numpy(moment))
    return np.asarray(values.clamp(min=0).sqrt().numpy())


def _cosines(X: torch.Tensor, blocks: Sequence[np.ndarray]) -> Iterator[float]:
    """Yield the mean cosine over pairs of different rows: of all, without each block.

    A zero vector has no direction and is left out.
    """
    norms = torch.linalg.vector_norm(X, dim=1, keepdim=True)
    unit = X / torch.where(norms > 0, norms, 1.0)
    parts = [
        (part.sum(0), int(part.any(1).sum()))
        for part in (unit[rows] for rows in blocks)
    ]
    whole = unit.sum(0)
    count = int((norms > 0).sum())
    for total, alive in [(whole, count), *((whole - p, count - c) for p, c in parts)]:
        if alive < 2:
            raise ValueError("the activations do not vary over tokens")
        yield (float(total @ total) - alive) / (alive * (alive - 1))


@lru_cache(maxsize=64)
def _isotropic(n: int, m: int) -> tuple[float, ...]:
    """Return the mean measures of `n` isotropic Gaussian tokens of `m` features.

    Centring takes one token away. The singular values of what is left are those of a bidiagonal
    matrix of chi variables (Silverstein 1985), at a cost of m² instead of n m². Cosines are 0 on
    average.
    """
    rng = np.random.default_rng(0)
    large = max(n - 1, m)
    small = min(n - 1, m)
    ranks = []
    for _ in range(_DRAWS):
        a = rng.chisquare(large - np.arange(small))
        b = rng.chisquare(np.arange(small - 1, 0, -1))
        diagonal = a + np.append(0.0, b)
        beside = np.sqrt(a[:-1] * b)
        squares = eigvalsh_tridiagonal(diagonal, beside, lapack_driver="sterf")
        ranks.append(_ranks(np.sqrt(np.maximum(squares, 0.0))))
    return (*np.mean(ranks, axis=0).tolist(), 0.0)
