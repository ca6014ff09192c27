"""Figure 17 of the report: the latents of a sparse autoencoder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from ontogeny.observables import Observable

from ..formats import short
from ..verdicts import Found, Verdict, decided, each, exceeds, reduced
from . import approach
from .concept_recipe import ConceptRecipe, sizes
from .correlations import null_words
from .extractors import concepts, only_runs

_FOUND_AGAIN = 0.9
"""|cosine| of a latent with its match that counts as the same latent."""
_MORE = 0.2  # of the latents


def with_shares(results: Found) -> Found:
    """Return nodes with the shares of latents that are found again, for the judge."""
    return reduced(
        results,
        lambda run: run.assign(
            again=_found_by_other_seed(run), at_half=_found_at_half(run)
        ),
    )


def sparse_autoencoder(results: Found) -> Sequence[Verdict]:
    """Judge how many latents are found again, by another seed and over training."""
    one = only_runs(results)
    sae = one["concepts-sae"]
    ica = one["concepts-ica"]
    again, others = (each(nodes, lambda run: run.again) for nodes in (sae, ica))
    half = each(sae, lambda run: run.at_half)
    chance = null_words(sae, "optimal", "chance")
    less = exceeds(others, again, _MORE)
    few = bool((again < 0.5).all()) if np.isfinite(again).all() else None
    return [
        Verdict(
            "another seed finds few of the latents again, at the same checkpoint",
            decided(few and less, few is False),
            f"a share of {short(again)} with |cosine| of {_FOUND_AGAIN:g} or more; mean |cosine| "
            f"{null_words(sae, 'optimal', 'refit')}",
            f"ICA {short(others)}; mean |cosine| by chance {chance}; a mean of a fifth more, in "
            "the same direction in every seed, counts; about the solver, in runs that learn "
            "nothing as well",
        ),
        Verdict(
            "few latents of half-way through training are found in the last checkpoint",
            decided((half < 0.5).all(), (half >= 0.5).all(), half),
            f"a share of {short(half)}",
            f"another seed at one checkpoint {short(again)}"
            + ("; so few that this says nothing of training" if few else ""),
            alike=few,
        ),
        approach.falls(sae, of_paper=False),  # the report sets this extractor aside
        approach.further(sae),
    ]


def _found_by_other_seed(node: xr.Dataset) -> float:
    refit = node.refit_dictionary.dropna("step", how="all")
    return _share_again(node.dictionary.sel(step=refit.step), refit)


def _found_at_half(node: xr.Dataset) -> float:
    steps = node.step.values
    half = steps[np.abs(steps - node.attrs["reference_step"] / 2).argmin()]
    return _share_again(
        node.dictionary.sel(step=half),
        node.dictionary.sel(step=node.attrs["reference_step"]),
    )


def _share_again(first: xr.DataArray, second: xr.DataArray) -> float:
    """Return the share of columns that have a near copy, up to sign, among the other's."""
    other = second.rename(concept="other")
    dot = xr.dot(first.fillna(0), other.fillna(0), dim="feature")
    norms = (first**2).sum("feature") ** 0.5 * (other**2).sum("feature") ** 0.5
    return float(
        (abs(dot) >= _FOUND_AGAIN * norms).where(norms > 0, False).any("other").mean()
    )


def _latents(n_concepts: int, max_tokens: int) -> tuple[Observable, ...]:
    return (
        concepts("sae", 4 * n_concepts, max_tokens),
        concepts("ica", n_concepts, max_tokens),
    )


RECIPES = (
    ConceptRecipe(
        "concepts-figure-17",
        "The latents of a sparse autoencoder",
        "sparse autoencoders find features, but hardly the same ones again.",
        "Bernas 2025, Annex F.4, Fig. 17",
        *sizes(_latents),
        "autoencoders with thousands of latents.",
        judge=sparse_autoencoder,
        reduced=with_shares,
    ),
)
