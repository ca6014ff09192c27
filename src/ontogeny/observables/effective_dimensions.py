"""How many directions the activations of a layer use, and how anisotropic they are (A12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import torch
import xarray as xr
from scipy.linalg import eigvalsh_tridiagonal

from .. import geometry
from ..figures import Band, Curves, Section, attach
from ..geometry.spectra import centred
from ..needs import Activations, Need
from .attributes import Names
from .base import Observable, Reading, by_layer
from .rows import development_rows, statement

__all__ = ["EffectiveDimensions"]

MEASURES = ("participation_ratio", "stable_rank", "effective_rank", "anisotropy")
_BLOCKS = 10  # of tokens, for the jackknife
_DRAWS = 10  # isotropic samples of the null
_CONSTANT = 1e-6  # variation, against the largest value, that float32 rounding may leave


@dataclass(frozen=True)
class EffectiveDimensions(Observable):
    """Participation ratio, stable rank, entropy rank and anisotropy of activations.

    The first three are those of the centred activations; anisotropy is the mean cosine of two
    tokens' activations as they are. Errors: jackknife over ten blocks of tokens. Null: isotropic
    Gaussian activations of the same shape.

    Parameters
    ----------
    layers, on, tokens, max_tokens, random_state
        Which activations, see `ontogeny.needs.Activations`.
    label
        Name of the node, where a study holds this kind twice.

    Examples
    --------
    >>> EffectiveDimensions().name
    'effective-dimensions'
    """

    layers: str | tuple[str, ...] = "model.layers.*.mlp"
    on: str | None = None
    tokens: str = "all"
    max_tokens: int | None = 5000
    random_state: int = 0
    label: str | None = None

    kind: ClassVar[str] = "effective-dimensions"
    version: ClassVar[int] = 2
    variables: ClassVar[Names] = {
        "participation_ratio": ("participation ratio", "directions"),
        "stable_rank": ("stable rank", "directions"),
        "effective_rank": ("effective rank", "directions"),
        "anisotropy": ("anisotropy", "1"),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs()

    def needs(self) -> Sequence[Need]:
        """Return the activations."""
        return [Activations(self.layers, self.on, self.tokens, self.max_tokens, self.random_state)]

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return the measures, their standard errors and the isotropic null of every layer."""
        return by_layer(reading[self.needs()[0]], lambda path, A: _measures(A))

    def summarise(self, data: xr.Dataset, nodes: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Add intervals, development rows of the participation ratio, words and figures."""
        for name in MEASURES:
            spread = 1.96 * data[f"{name}_stderr"]
            data = data.assign(
                {f"{name}_low": data[name] - spread, f"{name}_high": data[name] + spread}
            )
        values = data.participation_ratio.transpose("layer", "step").values
        error = data.participation_ratio_stderr.transpose("layer", "step").values
        layers = [str(layer) for layer in data.layer.values]
        data = data.assign(
            development_rows(
                [f"{layer} · dimensions" for layer in layers],
                layers,
                data.step.values,
                values,
                floor=_floor(error),
            )
        )
        words = statement(data, "The participation ratio of {layer}")
        return attach(data, _SECTION, _FIGURES, words)


def _measures(A: torch.Tensor) -> dict[str, float]:
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
    pairs = zip(_spectra(apart.numpy()), _cosines(X), strict=True)
    value, *left_out = [[*_ranks(spectrum), cosine] for spectrum, cosine in pairs]
    error = np.sqrt((_BLOCKS - 1) * np.var(left_out, axis=0))
    null = _isotropic(*X.shape)
    return {
        **dict(zip(MEASURES, value, strict=True)),
        **{f"{n}_stderr": e for n, e in zip(MEASURES, error, strict=True)},
        **{f"{n}_null": v for n, v in zip(MEASURES, null, strict=True)},
    }


def _ranks(spectrum: np.ndarray) -> list[float]:
    if not spectrum.any():
        raise ValueError("the activations do not vary over tokens")
    return [
        geometry.participation_ratio(spectrum=spectrum),
        geometry.stable_rank(spectrum=spectrum),
        geometry.effective_rank(spectrum=spectrum),
    ]


def _spectra(X: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the singular values of `X` (n, m) with its rows centred: whole, without each block.

    From second moments of the smaller side, which are computed once: of features, from which a
    block is subtracted, or of tokens, from which it is cut out.
    """
    n, m = X.shape
    if n < m:
        gram, rows = X @ X.T, np.arange(n)
        for left_out in [rows[:0], *np.array_split(rows, _BLOCKS)]:
            kept = np.delete(rows, left_out)
            yield _roots(centred(gram[np.ix_(kept, kept)]))
        return
    moment, total = X.T @ X, X.sum(0)
    for left_out in [X[:0], *np.array_split(X, _BLOCKS)]:
        kept = total - left_out.sum(0)
        inside = left_out.T @ left_out
        np.subtract(moment, inside, out=inside)
        yield _roots(inside - np.outer(kept, kept / (n - len(left_out))))


def _roots(moment: np.ndarray) -> np.ndarray:
    values = torch.linalg.eigvalsh(torch.from_numpy(moment))
    return np.asarray(values.clamp(min=0).sqrt().numpy())


def _cosines(X: torch.Tensor) -> Iterator[float]:
    """Yield the mean cosine over pairs of different rows: of all, without each block.

    A zero vector has no direction and is left out.
    """
    norms = torch.linalg.vector_norm(X, dim=1, keepdim=True)
    unit = X / torch.where(norms > 0, norms, 1.0)
    parts = [(part.sum(0), int(part.any(1).sum())) for part in unit.tensor_split(_BLOCKS)]
    whole, count = unit.sum(0), int((norms > 0).sum())
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
    large, small = max(n - 1, m), min(n - 1, m)
    ranks = []
    for _ in range(_DRAWS):
        a = rng.chisquare(large - np.arange(small))
        b = rng.chisquare(np.arange(small - 1, 0, -1))
        diagonal, beside = a + np.append(0.0, b), np.sqrt(a[:-1] * b)
        squares = eigvalsh_tridiagonal(diagonal, beside, lapack_driver="sterf")
        ranks.append(_ranks(np.sqrt(np.maximum(squares, 0.0))))
    return (*np.mean(ranks, axis=0).tolist(), 0.0)


def _floor(error: np.ndarray) -> np.ndarray:
    """Return 1.96 standard errors of the change since the first step, 0 at gaps."""
    there = np.isfinite(error)
    first = np.take_along_axis(error, there.argmax(axis=1)[:, None], axis=1)
    return np.where(there, 1.96 * np.sqrt(error**2 + first**2), 0.0)


_TITLES = {
    "participation_ratio": "Participation ratio",
    "stable_rank": "Stable rank",
    "effective_rank": "Effective rank (entropy of the singular values)",
    "anisotropy": "Anisotropy: mean cosine of two tokens",
}
_FIGURES = [
    Curves(
        name,
        _TITLES[name],
        value=name,
        interval=(f"{name}_low", f"{name}_high"),
        bands=[Band(f"{name}_null", f"{name}_null", "isotropic activations")],
        caption="Shade: ±1.96 jackknife standard errors over blocks of tokens.",
    )
    for name in MEASURES
]
_SECTION = Section(
    title="Effective dimensions of activations",
    definition="How many directions the centred activations of a layer use, counted three ways, "
    "and how much all tokens point the same way.",
    symbol="PR = (Σλ)² / Σλ²,  stable rank = Σλ / λ₁,  effective rank = exp H(√λ / Σ√λ)",
    null="Isotropic Gaussian activations of the same shape.",
    care="A few tokens with very large activations lower all three ranks: look at the anisotropy "
    "and the errors too. Tokens of one text are not independent, so the errors are too small.",
    source="Bernas 2025, sec. 6.3; Gao et al. 2017; Roy and Vetterli 2007; Ethayarajh 2019",
)
