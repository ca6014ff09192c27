"""Figure 11: concepts of all steps in a plane, and whether they go along a straight line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from ontogeny.claims import Reason

from ...distances.alignment import aligned_to
from ...observables.concepts.plane import ConceptPlane
from ..formats import short, spread
from ..verdicts import Found, Runs, Verdict, decided, each, if_finite
from .concept_recipe import ConceptRecipe, sizes
from .extractors import TITLES, concepts
from .paths import the_runs

_EXTRACTORS = {key: TITLES[key] for key in ("convex-nmf", "ica", "dictionary")}
_OF_PATHS = ("move", "refit_move", "straight", "straight_line", "straight_walk")
_DRAWS = 3
# Of the variance by which a path must be less straight to count as curved.
_MARGIN = 0.05


def with_paths(results: Found) -> Found:
    """Return nodes with how far and how straight the concepts move, for the judge."""
    return {
        name: {
            label: [_with_path(run, seed) for seed, run in enumerate(runs)]
            for label, runs in by_run.items()
        }
        for name, by_run in results.items()
    }


def _with_path(run: xr.Dataset, seed: int) -> xr.Dataset:
    if "dictionary" not in run:
        return run
    moves = _moves(run)
    straight = _straightness(run, seed)
    return run.assign(dict(zip(_OF_PATHS, (*moves, *straight), strict=True)))


def _of_paths(runs: Runs) -> np.ndarray:
    return each(runs, lambda run: [run[name] for name in _OF_PATHS]).T


def judge(results: Found) -> Sequence[Verdict]:
    """Judge Figure 11: the plane's share, moves against refits, and the curvature of the paths."""
    verdicts = [_in_plane(results)]
    for extractor, title in _EXTRACTORS.items():
        runs = the_runs(results, f"concepts-{extractor}")
        verdicts += [_beyond_refits(runs, title), _curved(runs, title)]
    return verdicts


def _in_plane(results: Found) -> Verdict:
    """State how much of the concepts' variance the plane holds, as a picture of it must."""
    shares = {
        title: each(
            the_runs(results, f"concepts-{extractor}-plane"),
            lambda run: run.explained_variance.sum("axis", min_count=2).mean(),
        )
        for extractor, title in _EXTRACTORS.items()
    }
    lowest = min(share.min() for share in shares.values())
    return Verdict(
        "the plane of two principal components shows most of the concepts' variance",
        if_finite(lowest > 0.5, *shares.values()),
        ", ".join(
            f"{title} {spread(100 * share, 0)} %" for title, share in shares.items()
        ),
        "more than half in every seed counts; mean over layers",
        of_paper=False,
    )


def _beyond_refits(runs: Runs, title: str) -> Verdict:
    """Judge whether concepts move further from checkpoint to checkpoint than refits do."""
    moves, refits = _of_paths(runs)[:2]
    holds = True if (moves > 1.2 * refits).all() else None
    return Verdict(
        f"{title}: the picture shows how concepts move, not how the solver scatters them",
        if_finite(holds, moves, refits) if holds else None,
        f"from one checkpoint to the next {short(moves)} of the length of the dictionary",
        f"from one fit to another at one step {short(refits)}; a fifth more counts (medians over "
        "layers and refitted steps)",
        reason=Reason.WITHIN_NOISE,
        of_paper=False,
    )


def _moves(run: xr.Dataset) -> tuple[float, float]:
    """Return the move to the next checkpoint and to a refit, relative, at the refitted steps."""
    if "refit_dictionary" not in run:
        return np.nan, np.nan
    moves = []
    refits = []
    for W, refit in _tables(run):
        size = np.linalg.norm(W, axis=(1, 2))
        steps_of = np.linalg.norm(np.diff(W, axis=0), axis=(1, 2)) / size[1:]
        other = np.linalg.norm(refit - W, axis=(1, 2)) / size
        there = np.isfinite(other[1:]) & (other[1:] > 0)
        moves.append(np.median(steps_of[there]) if there.any() else np.nan)
        refits.append(np.median(other[1:][there]) if there.any() else np.nan)
    return float(np.median(moves)), float(np.median(refits))


def _curved(runs: Runs, title: str) -> Verdict:
    """Compare the straightness of concepts' paths with a noisy line and with a random walk."""
    share, line, walk = values = _of_paths(runs)[2:]
    curved = share < line - _MARGIN
    as_walks = bool((share < walk + _MARGIN).any())
    return Verdict(
        f"{title}: learning goes along a nonlinear manifold",
        decided(curved.all(), not curved.any(), values),
        f"one direction holds {short(share)} of the squared movement of a concept",
        f"a straight line with the noise of refits {short(line)}; a random walk of the same steps "
        f"{short(walk)}"
        + (
            "; paths that bend as a walk does, or more, tell of no manifold"
            if as_walks
            else ""
        ),
        alike=if_finite(as_walks, walk),
    )


def _straightness(run: xr.Dataset, seed: int) -> tuple[float, float, float]:
    """Return the share of one direction: of the paths, of noisy lines, of random walks."""
    rng = np.random.default_rng(seed)
    shares = []
    line = []
    walk = []
    for W, refit in _tables(run):
        shares.append(_share_of_one(W))
        noise = _noise(W, refit)
        line += [
            _share_of_one(_straight(W) + _scattered(noise, W, rng))
            for _ in range(_DRAWS)
        ]
        walk += [_share_of_one(_walked(W, rng)) for _ in range(_DRAWS)]
    return float(np.median(shares)), float(np.median(line)), float(np.median(walk))


def _share_of_one(W: np.ndarray) -> float:
    """Return the share of the squared movement of the concepts (step, feature, concept)."""
    centred = (W - W.mean(axis=0)).transpose(2, 0, 1)
    if not np.isfinite(centred).all():  # noise of refits where there are none
        return np.nan
    squares = np.linalg.svd(centred, compute_uv=False) ** 2
    return float(squares[:, 0].sum() / squares.sum()) if squares.sum() > 0 else np.nan


def _straight(W: np.ndarray) -> np.ndarray:
    """Return every concept on the line from its first to its last place, as far along as it was."""
    way = W[-1] - W[0]
    size = np.square(way).sum(axis=0)
    along = ((W - W[0]) * way).sum(axis=1) / np.where(size > 0, size, 1.0)
    return np.asarray(W[0] + along[:, None] * way)


def _noise(W: np.ndarray, refit: np.ndarray) -> np.ndarray:
    """Return the standard deviation of one entry at each step, from refits where there are some."""
    # Of two fits, each with noise.
    apart = np.sqrt(np.square(refit - W).mean(axis=(1, 2)) / 2)
    places = np.flatnonzero(np.isfinite(apart))
    if not len(places):
        return np.full(len(W), np.nan)
    return np.interp(np.arange(len(W)), places, apart[places])


def _scattered(
    noise: np.ndarray, W: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    return noise[:, None, None] * rng.standard_normal(W.shape)


def _walked(W: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return concepts that make steps of the same lengths in random directions."""
    lengths = np.linalg.norm(np.diff(W, axis=0), axis=1, keepdims=True)
    directions = rng.standard_normal((len(W) - 1, *W.shape[1:]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return np.concatenate([W[:1], W[0] + np.cumsum(lengths * directions, axis=0)])


def _tables(run: xr.Dataset) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return each layer's dictionaries and refits (step, feature, concept), matched to the last."""
    tables = []
    for layer in run.layer.values:
        one = run.sel(layer=layer).dropna("feature", how="all", subset=["dictionary"])
        W = one.dictionary.transpose("step", "feature", "concept").values.astype(
            np.float64
        )
        refit = np.full_like(W, np.nan)
        if "refit_dictionary" in one:
            refit = one.refit_dictionary.transpose("step", "feature", "concept").values
            refit = refit.astype(float)
        there = np.isfinite(W).all(axis=(1, 2))
        W = W[there]
        refit = refit[there]
        again = np.isfinite(refit).all(axis=(1, 2))
        reference = W[-1]
        W = aligned_to(reference, W)
        if again.any():
            refit[again] = aligned_to(reference, refit[again])
        tables.append((W, refit))
    return tables


RECIPES = (
    ConceptRecipe(
        "concepts-figure-11",
        "Concepts of all steps in one plane",
        "the principal components of the concepts of all steps show that learning goes along a "
        "nonlinear manifold.",
        "Bernas 2025, sec. 8.7.1, Fig. 11",
        *sizes(
            lambda n, m: tuple(
                observable
                for extractor in _EXTRACTORS
                for observable in (
                    concepts(extractor, n, m),
                    ConceptPlane(f"concepts-{extractor}"),
                )
            )
        ),
        "a hundred concepts; two seeds and eight concepts.",
        judge=judge,
        reduced=with_paths,
    ),
)
