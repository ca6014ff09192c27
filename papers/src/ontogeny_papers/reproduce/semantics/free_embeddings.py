"""Free embeddings on a corpus: the closed form, the order, and the matrix that leads (sec. 4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from ontogeny import semantics
from ontogeny.claims import Reason
from ontogeny.words.formats import plural

from ...observables.words.views.training import ufm_view
from ..formats import joined, short
from ..recipe import Findings, Materials
from ..tasks import organism_world
from ..verdicts import LEVEL, Runs, Verdict, decided, unanimous

_EXACT = 1e-3  # of the singular value: what Heun steps of 0.02 / σ₁ reach
_SHIFTED = 0.1
_LONGER = 4  # times the usual duration: so long the last pair at the cut takes to part
_ALIGNED = 0.99
_K = 5
_NOTHING = 0.01  # of the logits' norm
_TENTH = 0.1  # of an exponent


@dataclass(frozen=True)
class FreeSize:
    """Words, contexts, concepts learned, seeds of the random start, control draws."""

    vocab_size: int = 300
    n_contexts: int = 2000
    concepts: int = 50
    seeds: tuple[int, ...] = (0, 1, 2)
    controls: int = 20


def measure_free_embeddings(size: FreeSize, materials: Materials) -> Findings:
    """Return how free embeddings learn the concepts of a text, from three starts and losses."""
    support = materials.support(size.vocab_size, size.n_contexts)
    S = support.S.toarray()
    P = support.P.toarray()
    S_centred = S - S.mean(axis=0)
    d = min(size.concepts, len(S) - 1)
    note = materials.progress.note
    note("free embeddings, square loss, aligned start")
    piece = materials.pieces.piece
    aligned = piece("aligned", partial(semantics.train_ufm, S_centred, d, records=100))
    options: dict[str, Any] = {"init": "random", "step_size": 0.05, "records": 100}
    started = materials.of_seeds(
        "random",
        "free embeddings, square loss, random start",
        size.seeds,
        lambda seed: semantics.train_ufm(S_centred, d, random_state=seed, **options),
    )
    note("free embeddings, cross-entropy")
    slower: dict[str, Any] = {"P": P, "step_size": 0.2, "integrator": "euler"}
    entropy = piece(
        "cross-entropy",
        lambda: semantics.train_ufm(
            S_centred, len(S), "cross_entropy", "random", **slower
        ),
    )
    note("maximum-margin logits of the organisms")
    proxy = piece("maximum-margin", partial(_proxy, size.controls))
    ends = [_ends(run) for run in started]
    few = materials.of_seeds(
        "few-dimensions",
        f"free embeddings, {_LONGER} times as long",
        size.seeds,
        lambda seed: semantics.train_ufm(
            S_centred,
            d,
            random_state=seed,
            duration=_LONGER * float(started[0].time[-1]),
            **options,
        ),
    )
    numbers = (
        _ends(aligned),
        ends,
        _ends(entropy),
        len(S),
        proxy,
        [_ends(run) for run in few],
        piece("outside", partial(measure_outside, size.seeds)),
    )
    nodes = {
        "aligned start": ufm_view(
            aligned, "Free embeddings, square loss, aligned start"
        ),
        "random start": ufm_view(
            started[0], "Free embeddings, square loss, random start"
        ),
        "cross-entropy": ufm_view(entropy, "Free embeddings, cross-entropy"),
    }
    return Findings(nodes, numbers)


def _ends(run: xr.Dataset) -> xr.Dataset:
    """Return a run with its largest distance from theory, in σᵢ, and what it ends with."""
    names = ["projection", "singular_value", "complement_norm", "logit_norm"]
    ends = run[names].isel(time=-1).reset_coords(drop=True)
    apart = (
        abs(run.projection - run.get("theory", np.nan)) / run.sigma
    ).max()  # square loss only
    return (
        run.drop_vars([*names, "theory"], errors="ignore")
        .merge(ends)
        .assign(apart=apart)
    )


def judge_free_embeddings(
    aligned: xr.Dataset,
    started: Runs,
    entropy: xr.Dataset,
    words: int,
    proxy: xr.Dataset,
    few: Runs,
    outside: xr.Dataset,
) -> list[Verdict]:
    """Judge the closed form, random starts, the cross-entropy, and S̃ beside L^mm."""
    return [
        _of_closed_form(aligned),
        *_of_random_starts(started),
        _of_times(aligned, started),
        _of_outside(outside),
        _of_few_dimensions(few, words),
        *_of_cross_entropy(entropy, words),
        _of_proxy(proxy),
    ]


def _of_closed_form(run: xr.Dataset) -> Verdict:
    error = float(run.apart)
    return Verdict(
        "with the square loss concepts follow the closed form (Prop. 1)",
        error < _EXACT,
        f"largest distance over the whole training {error:.1g} σᵢ, {run.sizes['concept']} concepts",
        "a theorem; the loss carries a ½ that the paper leaves out",
    )


def _of_random_starts(runs: Runs) -> list[Verdict]:
    orders = [semantics.learning_order(run.sigma, run.half_time) for run in runs]
    apart = [float(run.apart) for run in runs]
    ratio = np.concatenate(
        [(run.half_time / run.theory_half_time).values for run in runs]
    )
    return [
        Verdict(
            "a small random start keeps the order",
            unanimous([o.p_value <= LEVEL and o.spearman > 0.9 for o in orders]),
            "rank correlation of σᵢ and minus the half-time "
            + ", ".join(f"{o.spearman:.3f}" for o in orders),
            f"random orders: p = {max(o.p_value for o in orders):.1g}",
        ),
        Verdict(
            "a small random start keeps the curves to within a tenth of σᵢ",
            max(apart) < _SHIFTED,
            f"largest distance {max(apart):.2f} σᵢ; half-times {np.nanmin(ratio):.2f} to "
            f"{np.nanmax(ratio):.2f} times those of the closed form",
            f"aligned start: below {_EXACT:g} σᵢ",
            of_paper=False,
        ),
    ]


def _of_times(aligned: xr.Dataset, started: Runs) -> Verdict:
    """Judge whether the time at which a concept is learned goes as one over its singular value."""
    theory, *own = (_exponent(run) for run in (aligned, *started))
    return Verdict(
        "concepts are learned at times inversely proportional to σᵢ (sec. 4.4)",
        unanimous(np.abs(np.add(own, 1)) < _TENTH, own),
        f"the half-times go as σᵢ to the power of {joined(own)}",
        f"closed form {theory:.2f} at the same scale of the start, −1 as it vanishes; 0 if σᵢ told "
        "nothing; a tenth counts",
    )


def _exponent(run: xr.Dataset) -> float:
    """Return the slope of the logarithms of half-times over those of singular values.

    NaN where fewer than two concepts are learned.
    """
    learned = np.isfinite(run.half_time.values)
    if learned.sum() < 2:
        return np.nan
    sigma, half = np.log([run.sigma.values[learned], run.half_time.values[learned]])
    return float(np.polyfit(sigma, half, 1)[0])


def measure_outside(seeds: Sequence[int]) -> xr.Dataset:
    """Return norms of the logits, and of what is outside all concepts, first and last.

    Of the organisms, with as many dimensions as words: there the concepts are all there is to learn.
    """
    S = organism_world().S
    centred = S - S.mean(axis=0)
    options: dict[str, Any] = {"init": "random", "step_size": 0.05, "records": 2}
    runs = [
        semantics.train_ufm(centred, len(S), random_state=seed, **options)
        for seed in seeds
    ]
    norms = [
        run[["complement_norm", "logit_norm"]].reset_coords(drop=True) for run in runs
    ]
    return xr.concat(norms, "seed", join="override")


def _of_outside(norms: xr.Dataset) -> Verdict:
    """Judge whether what is outside the concepts goes to zero, or is small beside them alone."""
    outer = norms.complement_norm.transpose("time", "seed").values
    whole = norms.logit_norm.transpose("time", "seed").values
    first, last = outer / whole
    still = outer[0] / whole[1]
    return Verdict(
        "what a random start has outside the concepts goes to zero (Fig. 12)",
        unanimous((last < _NOTHING) & (last < first), first, last),
        f"share of the logits' norm, on the organisms: {short(first)} to {short(last)}; its own "
        f"norm ends at {short(outer[1] / outer[0])} of the first",
        f"a part that stayed as it was {short(still)}, as the concepts grow beside it; "
        f"{_NOTHING} counts as zero",
        alike=bool((still < _NOTHING).all()),
    )


def _of_few_dimensions(runs: Runs, words: int) -> Verdict:
    """Judge whether embeddings of d < V dimensions end with the d largest values (Fig. 19)."""
    d = runs[0].sizes["concept"]
    apart = max(
        float((abs(run.singular_value - run.sigma) / run.sigma).max()) for run in runs
    )
    outside = max(float(run.complement_norm / run.logit_norm) for run in runs)
    chance = np.sqrt(1 - d / (words - 1))
    return Verdict(
        "with fewer dimensions than words the singular values become the largest (Fig. 19)",
        decided(apart < _SHIFTED, apart > 0.5) if d < words - 1 else None,
        f"{d} dimensions, {words} words, {plural(len(runs), 'start')} trained {_LONGER} times as "
        f"long: singular values in the end within {apart:.2g} of σᵢ; "
        f"{outside:.2g} of the logits' norm is outside these concepts",
        f"{d} random directions leave {chance:.2f} outside; values within a tenth count, as the "
        "figure shows values: concepts on both sides of the cut part slowly where their σ are "
        "nearly equal",
        reason=Reason.NOTHING_SCORED if d >= words - 1 else Reason.CASES_DIFFER,
    )


def _of_cross_entropy(run: xr.Dataset, words: int) -> list[Verdict]:
    k = min(_K, int(run.k.max()))
    of_S, of_P = (run.overlap.sel(matrix=name, k=k) for name in ("S", "P"))
    early = first_lead(of_S.values, of_P.values)
    chance = f"chance {k / (words - 1):.2f}"
    order = semantics.learning_order(run.sigma, run.projection * -1.0)
    return [
        Verdict(
            "under the cross-entropy the first directions are nearer to those of S̃ than of P",
            bool(of_S[early] > of_P[early]),
            f"overlap at k = {k}, step {int(run.iteration[early])}: S̃ {float(of_S[early]):.2f}",
            f"centred P {float(of_P[early]):.2f}; {chance}",
        ),
        Verdict(
            "under the cross-entropy the last directions are nearer to those of S̃ than of P",
            bool(of_S[-1] > of_P[-1]),
            f"overlap at k = {k}, step {int(run.iteration[-1])}: S̃ {float(of_S[-1]):.2f}; cosine "
            f"of logits and S̃ {float(run.cosine[-1]):.2f}",
            f"centred P {float(of_P[-1]):.2f}; {chance}",
        ),
        Verdict(
            "under the cross-entropy larger concepts grow larger",
            bool(order.p_value <= 0.05 and order.spearman > 0) or None,
            f"rank correlation of σᵢ and the last projection {order.spearman:.2f}",
            f"random orders: p = {order.p_value:.1g}",
            reason=Reason.WITHIN_CHANCE,
        ),
    ]


def first_lead(one: np.ndarray, other: np.ndarray) -> int:
    """Return where either of two overlaps (T,) first comes half-way to the highest of both.

    Neither is favoured, as it would be where its own highest value is.

    Examples
    --------
    >>> first_lead(np.array([0.1, 0.2, 0.4, 1.0]), np.array([0.1, 0.6, 0.5, 0.3]))
    1
    """
    lead = np.maximum(one, other)
    return int(np.argmax(lead >= (lead[0] + lead.max()) / 2))


def _proxy(controls: int) -> xr.Dataset:
    """Compare L^mm with S̃ where it can be solved: the organisms, and random supports beside."""
    S = organism_world().S
    logits = semantics.max_margin_logits(S).logits
    rng = np.random.default_rng(0)
    others = [_cosine(logits, rng.permuted(S, axis=0)) for _ in range(controls)]
    return xr.Dataset({"cosine": _cosine(logits, S), "random": ("draw", others)})


def _of_proxy(proxy: xr.Dataset) -> Verdict:
    cosine = float(proxy.cosine)
    others = proxy.random.values
    return Verdict(
        "S̃ stands for L^mm, where training ends",
        cosine >= _ALIGNED,
        f"cosine {cosine:.4f} on the support of the organisms",
        f"supports with the same set sizes and random words {np.mean(others):.2f} ± "
        f"{np.std(others):.2f}",
    )


def _cosine(logits: np.ndarray, S: np.ndarray) -> float:
    centred = S - S.mean(axis=0)
    return float(
        np.sum(logits * centred) / (np.linalg.norm(logits) * np.linalg.norm(centred))
    )
