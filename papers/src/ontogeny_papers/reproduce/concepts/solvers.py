"""Section 5.3: how far the concepts of each solver move when the activations hardly do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from ontogeny import concepts, dynamics
from ontogeny.claims import Reason
from ontogeny.errors import NonFiniteError
from ontogeny.figures import NullComparison, Section, attach

from ..formats import short
from ..recipe import Findings, Materials
from ..verdicts import Runs, Verdict, decided, each, why_open
from .concept_recipe import ConceptSize, sizes
from .convex import ConvexRecipe
from .extractors import CONVEX

_PRINTED = "convex NMF (as printed)"
_CONVEX = {
    _PRINTED: "report",
    "convex NMF (multiplicative)": "multiplicative",
    CONVEX: "accelerated",
}
_SOLVERS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: ("convex-nmf", {"variant": v}) for name, v in _CONVEX.items()},
    "ICA": ("ica", {}),
    "SVD": ("svd", {}),
    "PCA": ("pca", {}),
}
_DRAWS = 30
_RADIUS = 1e-3
_CONCEPTS = 8
_MORE = 2.0  # times by which one solver moves further than another


@dataclass(frozen=True)
class SolverRecipe(ConvexRecipe):
    """Every solver on activations of the runs that all recipes share, moved a little."""

    def measured(self, size: ConceptSize, materials: Materials) -> Findings:
        """Fit the activations of every seed, and those moved in random directions."""
        runs = self.of_activations("solvers", _measured, size, materials)
        numbers = [run.drop_attrs() for run in runs]
        return Findings({"moves": _view(runs)}, (numbers,))


def _measured(data: Mapping[str, np.ndarray], seed: int) -> xr.Dataset:
    """Return the relative change of the dictionary for that of the activations, draw by draw."""
    moves = [
        [_moves(A, *solver, seed) for solver in _SOLVERS.values()]
        for A in data.values()
    ]
    coords = {"case": list(data), "solver": list(_SOLVERS)}
    return xr.Dataset({"move": (("case", "solver", "draw"), moves)}, coords)


def _moves(
    A: np.ndarray, extractor: str, options: Mapping[str, Any], seed: int
) -> np.ndarray:
    """Return the relative moves of (draw,); infinite where the solver overflows."""
    A = np.asarray(A, dtype=float)
    rng = np.random.default_rng(seed)
    ways = [rng.standard_normal(A.shape) for _ in range(_DRAWS)]
    fit = partial(_dictionary, extractor=extractor, options=options, seed=seed)
    try:
        size = float(np.linalg.norm(fit(A)["W"]))
        found = dynamics.local_constants(fit, A, ways, relative_radius=_RADIUS)["W"]
    except NonFiniteError:
        return np.full(_DRAWS, np.inf)
    return np.asarray(found * np.linalg.norm(A) / size)


def _dictionary(
    A: np.ndarray, extractor: str, options: Mapping[str, Any], seed: int
) -> dict[str, np.ndarray]:
    made = concepts.make(extractor, n_concepts=_CONCEPTS, random_state=seed, **options)
    return {"W": np.asarray(made.fit(A).components_)}


def judge(runs: Runs) -> list[Verdict]:
    """Judge every solver of convex NMF beside the other extractors, in units of the norms."""
    middle = {name: each(runs, partial(_middle, name=name)) for name in _SOLVERS}
    return [_of_solver(name, middle, runs) for name in _CONVEX]


def _middle(run: xr.Dataset, name: str) -> float:
    return float(np.median(run.move.sel(solver=name).values))


def _of_solver(name: str, middle: Mapping[str, np.ndarray], runs: Runs) -> Verdict:
    own = middle[name]
    draws = np.stack([run.move.sel(solver=name).values for run in runs])
    low, high = np.quantile(np.median(draws, axis=1), [0.05, 0.95])
    largest = float(np.median(draws, axis=2).max())
    beside = [other for other in _SOLVERS if other not in _CONVEX]
    others = np.array([middle[other] for other in beside])
    less = (own * _MORE < others).all(axis=0)
    return Verdict(
        f"{name} is one of the most Lipschitz-continuous extractors in practice",
        decided(less.all(), (own > others * _MORE).all(), own, others),
        f"relative change of the dictionary per relative change of the activations {short(own)}; "
        f"draw by draw {low:.2g} to {high:.2g} (90 % of {draws[:, 0].size}); in single layers and "
        f"steps up to {largest:.3g}",
        ", ".join(f"{other} {short(middle[other])}" for other in beside)
        + f"; medians of layers, steps and {_DRAWS} directions, activations moved by 0.1 %; a "
        "factor of two from each of them in every seed counts",
        reason=why_open(less, Reason.SMALL),
        of_paper=name != CONVEX,
    )


def _view(runs: Runs) -> xr.Dataset:
    moves = xr.concat([run.move for run in runs], "seed").median(["seed", "case"])
    data = xr.Dataset({"move": moves.median("draw"), "draws": moves})
    data["move"].attrs = {
        "long_name": "relative change of the dictionary",
        "units": "1",
    }
    figure = NullComparison(
        "solvers", "How far each solver's concepts move", value="move", rows="solver"
    )
    section = Section(
        "Solvers of one problem",
        "Relative change of the dictionary as returned, per relative change of the activations, in "
        "random directions.",
        care="A property of the solver, in runs that learn nothing as well.",
        source="Bernas 2025, sec. 5.3, Definition 36",
    )
    return attach(data, section, [figure], role="motion")


RECIPES = (
    SolverRecipe(
        "concepts-solvers",
        "Solvers of convex NMF beside other extractors",
        "convex NMF, as its algorithm computes it, is one of the most Lipschitz-continuous "
        "extractors in practice.",
        "Bernas 2025, sec. 5.3 and 8.6.1, Algorithm 5, Definition 36",
        *sizes(lambda n, m: ()),
        "more concepts, and more tokens than 300.",
        judge=judge,
    ),
)
