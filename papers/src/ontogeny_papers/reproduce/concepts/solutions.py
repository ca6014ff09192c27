"""Table 1: which transformations of a solution are solutions, tested on planted factorisations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ontogeny import concepts, distances
from ontogeny.claims import Reason
from ontogeny.figures import Column, Section, Table, attach

from ..formats import joined, short
from ..recipe import Findings, Materials, MeasuredRecipe
from ..verdicts import Runs, Verdict, each, unanimous
from .constraints import ALPHA, ASKS, Fit, kept
from .extractors import CONVEX

_ROWS = 400
_FEATURES = 16
_CONCEPTS = 4
_DRAWS = 10
_ALIKE = 0.1  # of the distance of unrelated dictionaries
RELATIONS = ("permutation", "scaling", "sign", "rotation", "mixture")
"""Definitions 31 to 34, and of Definition 54 the maps without negative entries."""
_OPTIONS: dict[str, dict[str, Any]] = {"dictionary": {"alpha": ALPHA}}


@dataclass(frozen=True)
class SolutionSize:
    """Seeds: each plants data, fits and draws transformations."""

    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)


def _draw(relation: str, r: int, rng: np.random.Generator) -> np.ndarray:
    """Return a map of the relation other than the identity."""
    if relation == "permutation":
        return np.roll(np.eye(r), 1 + rng.integers(r - 1), 0)
    if relation == "scaling":
        return np.diag(rng.uniform(1.2, 3, r) ** rng.choice([-1.0, 1.0], r))
    if relation == "sign":
        signs = rng.choice([-1.0, 1.0], r)
        signs[rng.integers(r)] = -1.0
        return np.diag(signs)
    if relation == "rotation":
        return np.linalg.qr(rng.standard_normal((r, r)))[0]
    return np.eye(r) + 0.3 * np.abs(rng.standard_normal((r, r)))


# ---- measurement --------------------------------------------------------------------------------


def measure_solutions(size: SolutionSize, materials: Materials) -> Findings:
    """Return which maps keep each problem, and whether refits lie in the same class."""
    runs = materials.of_seeds(
        "solutions", "planted factorisations", size.seeds, _measured
    )
    return Findings({"solutions": _view(runs)}, (runs,))


def _measured(seed: int) -> xr.Dataset:
    rng = np.random.default_rng(seed)
    shares = np.empty((len(ASKS), len(RELATIONS)))
    for i, name in enumerate(ASKS):
        fit = _fitted(name, _planted(name, seed), seed)
        if not ASKS[name](fit):
            raise ArithmeticError(
                f"the fit of {name} does not meet its own constraints"
            )
        for k, relation in enumerate(RELATIONS):
            maps = [_draw(relation, _CONCEPTS, rng) for _ in range(_DRAWS)]
            shares[i, k] = np.mean([kept(name, fit, R) for R in maps])
    return xr.Dataset(
        {
            "kept": (("extractor", "relation"), shares),
            "repeated": _repeated(rng),
            **_refitted(seed),
        },
        coords={
            "extractor": list(ASKS),
            "relation": list(RELATIONS),
            "family": list(_FAMILIES),
        },
    )


def _planted(name: str, seed: int) -> np.ndarray:
    """Return data with sparse concepts; non-negative for NMF."""
    rng = np.random.default_rng([seed, 1])
    used = rng.random((_ROWS, _CONCEPTS)) < 0.4
    U = rng.exponential(size=used.shape) * used * np.linspace(2, 1, _CONCEPTS)
    W = rng.standard_normal((_FEATURES, _CONCEPTS))
    noise = 0.05 * rng.standard_normal((_ROWS, _FEATURES))
    if name == "nmf":
        return np.asarray(
            U @ (np.abs(W) * (rng.random(W.shape) < 0.5)).T + np.abs(noise)
        )
    sign = rng.choice([-1.0, 1.0], U.shape) if name in ("ica", "dictionary") else 1.0
    return np.asarray((sign * U) @ W.T + noise)


def _fitted(name: str, A: np.ndarray, seed: int) -> Fit:
    extractor, _, loose = name.partition(", ")
    options = dict(_OPTIONS.get(extractor, {}))
    if loose:
        options["strict_convex"] = False
    estimator = concepts.make(extractor, _CONCEPTS, seed, **options)
    U = np.asarray(estimator.fit_transform(A), dtype=float)
    W = np.asarray(estimator.components_, dtype=float).T
    H = getattr(estimator, "coefficients_", None)
    return Fit(U, W, None if H is None else np.asarray(H, dtype=float))


def _repeated(rng: np.random.Generator) -> float:
    """Return in what share of draws rotations keep an SVD with equal singular values."""
    U = np.linalg.qr(rng.standard_normal((_ROWS, _CONCEPTS)))[0]
    W = np.linalg.qr(rng.standard_normal((_FEATURES, _CONCEPTS)))[0]
    fit = Fit(U, W)
    maps = [_draw("rotation", _CONCEPTS, rng) for _ in range(_DRAWS)]
    return float(np.mean([kept("svd", fit, R) for R in maps]))


_UNKNOWN = ("nmf", "dictionary", "ica")
_UNIQUE = "convex-nmf"
_FAMILIES = {**dict.fromkeys(_UNKNOWN, "scaled-permutation"), _UNIQUE: "permutation"}
"""Relation up to which another start is compared with the first."""


def _refitted(seed: int) -> dict[str, Any]:
    """Return how far another seed's fit is from the class of the first, and unrelated data's."""
    apart: dict[str, list[float]] = {"refit": [], "unrelated": []}
    for name, relation in _FAMILIES.items():
        A = _planted(name, seed)
        other = _planted(name, seed + 1000)
        first = _fitted(name, A, seed)
        for what, data in (("refit", A), ("unrelated", other)):
            again = _fitted(name, data, seed + 500)
            apart[what].append(
                float(distances.alignment_residual(first.W, again.W, relation))
            )
    return {what: ("family", values) for what, values in apart.items()}


# ---- verdicts and table -------------------------------------------------------------------------


def judge(runs: Runs) -> list[Verdict]:
    """Judge the rows of Table 1."""
    return [
        _row(
            runs,
            "SVD and PCA: signs only, and rotations where values repeat",
            ("svd", "pca"),
            {"sign"},
        ),
        _row(runs, "semi-NMF: order only", ("semi-nmf",), {"permutation"}),
        _row(runs, f"{CONVEX}: order only", ("convex-nmf",), {"permutation"}),
        _row(
            runs,
            f"{CONVEX} whose weights need not sum to one: order only",
            ("convex-nmf, not strict",),
            {"permutation"},
        ),
        _row(runs, "k-means: order only", ("kmeans",), {"permutation"}),
        *(
            _unknown(runs, name, title)
            for name, title in zip(_UNKNOWN, _TITLES, strict=True)
        ),
        _unique(runs),
        _stated(runs),
    ]


_TITLES = ("NMF", "dictionary learning", "ICA")


def _keeps(runs: Runs, name: str) -> list[set[str]]:
    """Return the relations of which every draw was kept, in each seed."""
    return [
        {
            str(r)
            for r in RELATIONS
            if float(run.kept.sel(extractor=name, relation=r)) == 1
        }
        for run in runs
    ]


def _row(runs: Runs, claim: str, names: Sequence[str], printed: set[str]) -> Verdict:
    keeps = {name: _keeps(runs, name) for name in names}
    repeated = each(runs, lambda run: run.repeated)
    right = [all(keeps[name][i] == printed for name in names) for i in range(len(runs))]
    if "svd" in names:
        right = [fits and all_ == 1 for fits, all_ in zip(right, repeated, strict=True)]
    extra = (
        f"; with equal singular values {repeated.mean():.0%} of the rotations"
        if "svd" in names
        else ""
    )
    return Verdict(
        claim,
        unanimous(right),
        "; ".join(f"{name} keeps {_listed(keeps[name])}" for name in names) + extra,
        f"{_DRAWS} random maps of each kind and seed must all leave constraints and objective",
    )


def _listed(seeds: Sequence[set[str]]) -> str:
    always = [r for r in RELATIONS if all(r in seed for seed in seeds)]
    return " and ".join(always) or "none of them"


def _unknown(runs: Runs, name: str, title: str) -> Verdict:
    refit, unrelated = (
        np.array([float(run[what].sel(family=name)) for run in runs])
        for what in ("refit", "unrelated")
    )
    apart = refit / unrelated
    # "May be pathological" is shown by one case, and no easy case refutes it.
    return Verdict(
        f"{title}: may be pathological, the structure of its solutions is not known",
        True if (apart > 0.5).all() else None,
        f"its problem keeps {_listed(_keeps(runs, name))}; another seed's dictionary is "
        f"{short(refit)} away from the first up to order, signs and scale",
        f"that of unrelated data {short(unrelated)}; data with planted sparse concepts, which are "
        "easy: more than half in every seed would show it, and the same solution refutes nothing",
        reason=Reason.SMALL,
    )


def _unique(runs: Runs) -> Verdict:
    """Judge whether another start ends at the same solution up to order."""
    refit, unrelated = (
        np.array([float(run[what].sel(family=_UNIQUE)) for run in runs])
        for what in ("refit", "unrelated")
    )
    return Verdict(
        f"{CONVEX}: another start finds the same solution up to order",
        unanimous(refit < _ALIKE * unrelated, refit, unrelated),
        f"another seed's dictionary is {joined(refit)} away from the first up to order",
        f"that of unrelated data {short(unrelated)}; a tenth of it counts as the same",
    )


def _stated(runs: Runs) -> Verdict:
    """Compare what is measured with what `ontogeny_papers.concepts.structure` says."""
    wrong = set()
    for name in ASKS:
        if "," not in name:
            kept = [each - {"rotation", "mixture"} for each in _keeps(runs, name)]
            if any(each != _claim(name) for each in kept):
                wrong.add(name)
    return Verdict(
        "the library's own table of equivalences is right",
        not wrong,
        f"order, scale and sign as stated in {len(ASKS) - 1 - len(wrong)} of "
        f"{len(ASKS) - 1} extractors",
        "the same maps; ontogeny_papers.concepts.structure",
        of_paper=False,
    )


def _claim(name: str) -> set[str]:
    rules = concepts.structure(name)
    scaled = rules.scaling == "positive" and name != "convex-nmf"  # strict by default
    stated = {"permutation": rules.permutation, "scaling": scaled, "sign": rules.sign}
    return {relation for relation, allowed in stated.items() if allowed}


def _view(runs: Runs) -> xr.Dataset:
    mean = np.mean([run.kept.values for run in runs], axis=0)
    data = xr.Dataset(
        {relation: ("extractor", mean[:, k]) for k, relation in enumerate(RELATIONS)},
        coords={"extractor": list(ASKS)},
    )
    for relation in RELATIONS:
        data[relation].attrs.update(
            long_name=f"share of maps that keep the problem, {relation}", units="1"
        )
    table = Table(
        "kept",
        "Share of maps under which a solution stays one",
        rows="extractor",
        columns=[Column(relation, relation) for relation in RELATIONS],
        caption="Scaling by positive factors. Mixture: invertible maps without negative entries.",
    )
    section = Section(
        "Solution structure",
        "A fit of planted data is transformed, codes by R and dictionary by R⁻ᵀ, which leaves the "
        "product; it stays a solution where constraints and objective stay as well.",
        source="Bernas 2025, Defs 31 to 34 and 54, Table 1",
    )
    return attach(data, section, [table], [], role="motion")


RECIPES = (
    MeasuredRecipe(
        "concepts-table-1",
        "Which solutions of an extractor are the same",
        "solutions of an extractor are unique up to the relations of Table 1; where it marks +, "
        "the structure is not known.",
        "Bernas 2025, sec. 4.12.2, Table 1",
        SolutionSize(),
        SolutionSize((0, 1)),
        "other data: concepts that are planted sparse are the easy case for every extractor.",
        measure=measure_solutions,
        judge=judge,
    ),
)
