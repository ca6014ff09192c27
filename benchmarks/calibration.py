"""Every verdict of the package, held against runs of which it is known what happens.

    OMP_NUM_THREADS=1 python benchmarks/calibration.py OUT [--seeds 10] [--steps 24] [KIND ...]

Each kind of `ontogeny.tasks.PLANTED` is planted with several seeds, studied with all observables
that read activations, weights or other curves, and stored under OUT. The table counts how many of
the rows (layers and seeds) each verdict calls positive: power where the truth is a change, false
positives where it is not. Studies that are stored are not run again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import xarray as xr

import ontogeny as og
from ontogeny import observables as ob
from planted_runs import PLANTED, planted

LAYERS = "layers.*"
R = 6


def chosen() -> list[og.Observable]:
    """Return all observables that a planted run can be asked for."""
    measured: list[og.Observable] = [
        ob.ActivationDecay(LAYERS),
        ob.ActivationPath(LAYERS),
        ob.EffectiveDimensions(LAYERS),
        ob.WeightRank("layers.*.weight", n_draws=100),
        ob.Concepts("ica", n_concepts=R, layers=LAYERS),
        ob.Concepts("svd", n_concepts=R, layers=LAYERS),
        ob.EncoderDynamics("svd", n_concepts=R, layers=LAYERS),
        ob.ConceptDistances("concepts-svd"),
        ob.TransformDynamics("concepts-svd"),
        ob.Lipschitz("concepts-svd", "svd", n_concepts=R, layers=LAYERS),
    ]
    derived: list[og.Observable] = [
        ob.Regimes("concepts-svd"),
        ob.Regimes(
            "concepts-svd-distances", "to_previous", select={"distance": "procrustes"}
        ),
        ob.Regimes("activation-path", "path", jointly="coordinate"),
        ob.LearningDynamics("concepts-svd"),
        ob.Signals("concepts-svd"),
    ]
    return measured + derived


# What is claimed, the variable it is read from, and when that claims something.
VERDICTS: dict[str, tuple[str, str, Callable[[np.ndarray], np.ndarray]]] = {
    "regimes": ("a boundary, layer by layer", "boundary", np.isfinite),
    "joint": ("a boundary, layers together", "joint_boundary", np.isfinite),
    "progressed": ("learning progress", "progressed", lambda x: x == 1),
    "converged": ("convergent learning", "converged", lambda x: x == 1),
    "signals": ("related to activation decay (5 %)", "pearson_p", lambda p: p < 0.05),
    "rank": (
        "rank below directions in random order (FDR 5 %)",
        "p_corrected",
        lambda p: p < 0.05,
    ),
}
EXTRA = {
    "concepts-svd-regimes": ("regimes", "joint"),
    "concepts-svd-distances-regimes": ("regimes", "joint"),
    "activation-path-regimes": ("regimes", "joint"),
    "concepts-svd-learning-dynamics": ("progressed", "converged"),
    "concepts-svd-signals": ("signals",),
    "weight-rank": ("rank",),
}


def verdicts(result: xr.DataTree) -> dict[str, np.ndarray]:
    """Return the truth values of every verdict of one study, by what is claimed."""
    found: dict[str, np.ndarray] = {}
    for name, node in result.children.items():
        data = node.to_dataset()
        if data.attrs.get("role") == "development" and "changed" in data:
            found[f"{name}: changed"] = np.atleast_1d(data.changed.values)
        for key in EXTRA.get(name, ()):
            label, variable, claims = VERDICTS[key]
            if variable in data:  # a node without anything to judge has none
                found[f"{name}: {label}"] = np.atleast_1d(claims(data[variable].values))
    return found


def table(counts: dict[str, dict[str, list[bool]]], kinds: Iterable[str]) -> str:
    kinds = list(kinds)
    lines = [f"| verdict | {' | '.join(kinds)} |", "| --- |" + " --- |" * len(kinds)]
    for claim, by_kind in counts.items():
        cells = [
            f"{sum(by_kind[k])}/{len(by_kind[k])}" if by_kind.get(k) else "–"
            for k in kinds
        ]
        lines.append(f"| {claim} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument(
        "kinds", nargs="*", help=f"of {', '.join(PLANTED)}; default all"
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=24)
    options = parser.parse_args()
    kinds = options.kinds or list(PLANTED)
    counts: dict[str, dict[str, list[bool]]] = {}
    problems: set[str] = set()
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for kind in kinds:
            run = planted(
                kind, steps=range(0, 100 * options.steps, 100), random_state=seed
            )
            study = og.Study(run.trajectory, run.inputs, observables=chosen())
            result = study.run(options.out / kind / str(seed))
            problems.update(f"{kind}: {p}" for p in problems_of(result))
            for claim, values in verdicts(result).items():
                counts.setdefault(claim, {}).setdefault(kind, []).extend(
                    map(bool, values)
                )
        (options.out / "table.md").write_text(table(counts, kinds) + "\n")
    print(table(counts, kinds))
    print("\n".join(sorted(problems)))


def problems_of(result: xr.DataTree) -> list[str]:
    import json

    return json.loads(result.attrs.get("problems", "[]"))


if __name__ == "__main__":
    main()
