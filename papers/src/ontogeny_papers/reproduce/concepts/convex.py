"""Algorithm 5: the printed update of convex NMF beside that of Ding, Li and Jordan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from ontogeny.capture import activations
from ontogeny.figures import Section
from ontogeny.quantities import Quantity

from ..averages import mean_of_seeds
from ..formats import short
from ..recipe import Findings, Materials
from ..verdicts import Runs, Verdict, unanimous
from .concept_recipe import ConceptRecipe, ConceptSize, of_sources, sizes

_EPSILON = 1e-10
_ITERATIONS = 100
_ROUNDING = 1e-5  # of an objective in single precision: a rise by more is one
_ROWS = 300  # tokens of a run: the rule holds matrices of rows times rows
_RULES = ("printed", "corrected")
_PLANTED = ((120, 20, 4), (300, 64, 8))  # rows, features, concepts


def objectives(
    A: np.ndarray,
    U: np.ndarray,
    H: np.ndarray,
    rule: str,
    strict: bool,
    iterations: int,
) -> np.ndarray:
    """Return the objective of Algorithm 5 before and after every iteration, over that of zero.

    Parameters
    ----------
    A
        Data (n, m).
    U, H
        Start, non-negative (n, r) and (r, n).
    rule
        ``"printed"``: with H U Uᵀ in the update of H; ``"corrected"``: with UᵀU H there.
    strict
        Whether the rows of H are made to sum to 1 after every iteration; the corrected rule gives
        the scale to U, the printed one does not.
    iterations
        How many.
    """
    M = A @ A.T
    plus = (np.abs(M) + M) / 2
    minus = (np.abs(M) - M) / 2
    if strict:
        H = H / (H.sum(axis=1, keepdims=True) + _EPSILON)
    values = [_objective(A, U, H)]
    for _ in range(iterations):
        UH = U @ H
        up = plus @ H.T + UH @ (minus @ H.T)
        down = minus @ H.T + UH @ (plus @ H.T)
        U = U * np.sqrt(up / (down + _EPSILON))
        HUU = (H @ U) @ U.T if rule == "printed" else (U.T @ U) @ H
        up = U.T @ plus + HUU @ minus
        down = U.T @ minus + HUU @ plus
        H = H * np.sqrt(up / (down + _EPSILON))
        if strict:
            size = H.sum(axis=1, keepdims=True) + _EPSILON
            H = H / size
            U = U if rule == "printed" else U * size.T
        values.append(_objective(A, U, H))
    return np.array(values, dtype=float) / (0.5 * float(np.square(A).sum()))


def _objective(A: np.ndarray, U: np.ndarray, H: np.ndarray) -> float:
    return 0.5 * float(np.square(A - U @ (H @ A)).sum())


@dataclass(frozen=True)
class ConvexRecipe(ConceptRecipe):
    """Algorithm 5 on planted data and on activations of the runs that all recipes share."""

    def of_activations(
        self,
        name: str,
        measure: Callable[[Mapping[str, np.ndarray], int], xr.Dataset],
        size: ConceptSize,
        materials: Materials,
    ) -> list[xr.Dataset]:
        """Measure activations of the first, a middle and the last checkpoint of every seed."""
        if materials.sources:
            size = of_sources(size)
        ((label, run),) = size.runs.items()
        materials.progress.note(f"training {label}: {len(size.seeds)} seeds")
        folders = self.record(
            run, self.runs_folder(label, run, size, materials), size, materials
        )

        def of_seed(seed: int) -> xr.Dataset:
            folder = folders[size.seeds.index(seed)]
            return measure(self._activations(folder, size, materials), seed)

        return materials.of_seeds(name, "convex NMF", size.seeds, of_seed)

    def measured(self, size: ConceptSize, materials: Materials) -> Findings:
        """Fit planted data and activations by both rules."""
        runs = self.of_activations(
            "fits",
            lambda data, seed: _measured({**_planted(seed), **data}, seed),
            size,
            materials,
        )
        numbers = [ends_of(run) for run in runs]
        return Findings({"objective": _view(runs)}, (numbers,))

    def _activations(
        self, folder: Path, size: ConceptSize, materials: Materials
    ) -> dict[str, np.ndarray]:
        run = next(iter(size.runs.values()))
        trajectory = self.opened(run, folder)
        (texts,) = self.inputs(run, trajectory, size, materials).values()
        steps = trajectory.steps
        return {
            f"run, step {step}, {path}": np.asarray(A)
            for step in (steps[0], steps[len(steps) // 2], steps[-1])
            for path, A in activations(
                trajectory[step].model(), texts, "mlp", max_tokens=_ROWS
            ).items()
        }


def _planted(seed: int) -> dict[str, np.ndarray]:
    """Return signed and non-negative data with and without concepts."""
    rng = np.random.default_rng(seed)
    cases: dict[str, np.ndarray] = {}
    for n, m, r in _PLANTED:
        noise = rng.standard_normal((n, m))
        concepts = rng.laplace(size=(n, r)) @ rng.standard_normal((r, m)) + 0.1 * noise
        cases |= {
            f"planted, noise {n} × {m}": noise,
            f"planted, concepts {n} × {m}": concepts,
            f"non-negative, concepts {n} × {m}": np.abs(concepts),
        }
    return cases


def _measured(data: Mapping[str, np.ndarray], seed: int) -> xr.Dataset:
    """Return the objectives (case, strict, rule, step) in single precision; NaN from overflow."""
    values = np.full((len(data), 2, len(_RULES), _ITERATIONS + 1), np.nan)
    for i, A in enumerate(data.values()):
        rng = np.random.default_rng([seed, i])
        r = 4 if A.shape[1] < 32 else 8
        start = (
            rng.uniform(0.1, 1, (len(A), r)),
            rng.uniform(0.1, 1, (r, len(A))) / len(A),
        )
        for strict in (0, 1):
            for k, rule in enumerate(_RULES):
                with np.errstate(all="ignore"):  # overflow is what is looked for
                    single, codes, weights = (x.astype(np.float32) for x in (A, *start))
                    values[i, strict, k] = objectives(
                        single, codes, weights, rule, bool(strict), _ITERATIONS
                    )
    values[~np.isfinite(values)] = np.nan
    return xr.Dataset(
        {"objective": (("case", "strict", "rule", "step"), values)},
        coords={
            "case": list(data),
            "strict": ["scale free", "strictly convex"],
            "rule": list(_RULES),
            "step": np.arange(_ITERATIONS + 1),
        },
    )


# ---- verdicts and curves ------------------------------------------------------------------------


def ends_of(run: xr.Dataset) -> xr.Dataset:
    """Return which fits raise the objective, which overflow, and where each ends."""
    names = ("rises", "overflows", "end")
    functions = (_rises, _overflows, lambda trace: trace[..., -1])
    fits = run.objective.transpose(..., "step")
    return xr.Dataset(
        {
            n: (fits.dims[:-1], f(fits.values))
            for n, f in zip(names, functions, strict=True)
        },
        {dim: run[dim] for dim in fits.dims[:-1]},
    )


def judge(runs: Runs) -> list[Verdict]:
    """Judge by `ends_of` whether the printed rule lowers its objective, and which overflows."""
    signed = [_cases(run, "planted", "run") for run in runs]
    positive = [_cases(run, "non-negative") for run in runs]
    total = signed[0].end.isel(rule=0).size
    rises = {rule: _count(signed, rule, "rises") for rule in _RULES}
    broken = {rule: _count(signed, rule, "overflows") for rule in _RULES}
    harmless = {rule: _count(positive, rule, "rises") for rule in _RULES}
    ends = {rule: np.array([_end(run, rule) for run in signed]) for rule in _RULES}
    real = [_cases(run, "run") for run in runs]
    of_run = _count(real, "printed", "rises")
    overflows = unanimous(broken["printed"] > 0)
    medians = {
        rule: short(end)
        if np.isfinite(end).all()
        else "overflow in half of the fits or more"
        for rule, end in ends.items()
    }
    return [
        Verdict(
            "convex NMF (as printed): the update of Algorithm 5 lowers the objective",
            unanimous(rises["printed"] == 0),
            f"it raises it in {_of(rises['printed'], total)} fits of signed data in {_ITERATIONS} "
            "iterations; of activations of the run in "
            f"{_of(of_run, real[0].end.isel(rule=0).size)}",
            f"corrected (UᵀU H for H U Uᵀ): {_of(rises['corrected'], total)}; non-negative data, "
            f"printed: {_of(harmless['printed'], positive[0].end.isel(rule=0).size)}",
        ),
        Verdict(
            "convex NMF (as printed) occasionally gives NaN (footnote 45)",
            overflows,
            f"the printed rule overflows in {_of(broken['printed'], total)} fits of signed data",
            f"corrected: {_of(broken['corrected'], total)}, so NaN is a matter of the printed rule",
            alike=bool(broken["corrected"].any()),
        ),
        Verdict(
            "the corrected rule never raises the objective and ends lower",
            unanimous(
                (rises["corrected"] == 0) & (ends["corrected"] < ends["printed"])
            ),
            f"unexplained share of the squares in the end: {medians['corrected']}",
            f"printed: {medians['printed']} (medians over the fits of signed data)",
            of_paper=False,
        ),
    ]


def _cases(run: xr.Dataset, *kinds: str) -> xr.Dataset:
    return run.sel(
        case=[case for case in map(str, run.case.values) if case.startswith(kinds)]
    )


def _rises(trace: np.ndarray) -> np.ndarray:
    """Return which fits (..., step) raise the objective in some iteration, or lose it."""
    with np.errstate(invalid="ignore"):
        higher = np.diff(trace, axis=-1) > _ROUNDING * trace[..., :-1]
    return np.asarray(higher.any(axis=-1) | _overflows(trace))


def _overflows(trace: np.ndarray) -> np.ndarray:
    return np.asarray(np.isnan(trace).any(axis=-1))


def _count(runs: Runs, rule: str, what: str) -> np.ndarray:
    return np.array([int(run[what].sel(rule=rule).sum()) for run in runs])


def _end(run: xr.Dataset, rule: str) -> float:
    last = run.end.sel(rule=rule).values
    return float(np.median(np.where(np.isnan(last), np.inf, last)))


def _of(counts: np.ndarray, total: int) -> str:
    return f"{' and '.join(map(str, counts)) if len(counts) < 4 else short(counts)} of {total}"


def _view(runs: Runs) -> xr.Dataset:
    kinds = {
        "planted": "planted, signed",
        "run": "activations of the run",
        "non-negative": "non-negative",
    }

    def one(run: xr.Dataset, rule: str) -> Iterator[xr.DataArray]:
        for start in kinds:
            part = _cases(run, start)
            yield part.objective.sel(rule=rule, strict="scale free", drop=True).median(
                "case"
            )

    values = {
        rule: [
            xr.Dataset(
                {
                    "objective": xr.concat(
                        one(run, rule), xr.Variable("data", list(kinds.values()))
                    )
                }
            )
            for run in runs
        ]
        for rule in _RULES
    }
    section = Section(
        "Objective of convex NMF",
        "Half the squared error of Algorithm 5 over that of no concepts, iteration by iteration, "
        "with H U Uᵀ as printed and with UᵀU H as derived by Ding, Li and Jordan (2010).",
        care="Medians over fits that have not overflowed.",
        source="Bernas 2025, sec. 8.6.1, Algorithm 5",
    )
    quantity = Quantity(
        "objective", "objective, share of ‖A‖²/2", facet="data", y_scale="log"
    )
    data = mean_of_seeds(values, [quantity], section, role="motion")
    data.step.attrs.update(long_name="iteration")
    return data


RECIPES = (
    ConvexRecipe(
        "concepts-algorithm-5",
        "Convex NMF as printed and as derived",
        "convex NMF is solved by a multiplicative update, which is printed; it occasionally gives "
        "NaN.",
        "Bernas 2025, sec. 4.3 and 8.6.1, Algorithm 5, footnote 45",
        *sizes(lambda n, m: ()),
        "larger matrices and longer fits.",
        judge=judge,
    ),
)
