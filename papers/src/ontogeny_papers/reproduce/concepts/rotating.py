"""Figure 8: concept directions that turn while the importances stay, planted both ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
import xarray as xr
from scipy.linalg import expm

from ontogeny import distances, dynamics
from ontogeny.figures import Section
from ontogeny.quantities import Quantity

from ..averages import mean_of_seeds
from ..formats import short
from ..recipe import Findings, Materials, MeasuredRecipe
from ..verdicts import Runs, RunsOf, Verdict, each, unanimous

_RUNS = {
    "turn": "directions turn, codes stay",
    "recode": "directions stay, codes change",
    "nothing": "both stay",
}
_NOISE = 0.02  # of the standard deviation of the activations
_MOVED = 0.2  # a relative distance from which on something counts as moved


@dataclass(frozen=True)
class RotatingSize:
    """Rows, features, concepts, steps, seeds."""

    rows: int = 2000
    features: int = 32
    concepts: int = 8
    steps: int = 25
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)


def measure_rotating(size: RotatingSize, materials: Materials) -> Findings:
    """Return distances of dictionaries and errors of encoders in three planted runs."""
    runs_of = {
        label: materials.of_seeds(
            kind, label, size.seeds, partial(_measured, kind, size)
        )
        for kind, label in _RUNS.items()
    }
    return Findings({"planted": _view(runs_of)}, (runs_of,))


def planted_factors(
    kind: str, size: RotatingSize, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return codes (steps, n, r) and dictionaries (steps, m, r); the last step is the reference.

    ``"turn"``: a rotation of the feature space by equal angles from step to step, through all of
    its planes, and the same codes. ``"recode"``: codes that go from independent ones to those of
    the last step, and the same dictionary. ``"nothing"``: the same of both.
    """
    rng = np.random.default_rng(seed)
    U = rng.laplace(size=(size.rows, size.concepts)) / np.sqrt(2)
    other = rng.laplace(size=U.shape) / np.sqrt(2)
    W = rng.standard_normal((size.features, size.concepts)) / np.sqrt(size.features)
    planes = rng.standard_normal((size.features, size.features))
    skew = (planes - planes.T) / np.linalg.norm(planes - planes.T, ord=2)
    remaining = np.linspace(1.0, 0.0, size.steps)  # of the way to the last step
    turns = [expm(0.5 * np.pi * share * skew) for share in remaining]
    angle = 0.5 * np.pi * remaining[:, None, None]
    codes = (
        np.cos(angle) * U + np.sin(angle) * other
        if kind == "recode"
        else np.stack([U] * size.steps)
    )
    words = np.stack([Q @ W if kind == "turn" else W for Q in turns])
    return codes, words


def _measured(kind: str, size: RotatingSize, seed: int) -> xr.Dataset:
    """Return what both ways of comparing say of every step, with noise on the activations."""
    codes, dictionaries = planted_factors(kind, size, seed)
    rng = np.random.default_rng([seed, 1])
    A = np.einsum("tnr,tmr->tnm", codes, dictionaries)
    A = A + _NOISE * A.std() * rng.standard_normal(A.shape)
    train = np.arange(size.rows) < 0.7 * size.rows
    reference = dictionaries[-1]
    last = codes[-1]
    norm = np.linalg.norm(reference)
    importance = np.linalg.norm(codes, axis=1)
    result = {
        "directions": np.linalg.norm(dictionaries - reference, axis=(1, 2)) / norm,
        "procrustes": [distances.procrustes(reference, W) / norm for W in dictionaries],
        "encoded": [_encoder_error(a, last, train) for a in A],
        "importance": np.abs(importance / importance[-1] - 1).mean(axis=1),
    }
    return xr.Dataset(
        {
            name: ("step", np.asarray(values, dtype=float))
            for name, values in result.items()
        },
        coords={"step": np.arange(size.steps)},
    )


def _encoder_error(A: np.ndarray, codes: np.ndarray, train: np.ndarray) -> float:
    """Return what an encoder of other rows leaves of the last step's codes, relative."""
    encoder = dynamics.fit_encoder(
        torch.as_tensor(A[train]), torch.as_tensor(codes[train])
    )
    residual = np.asarray(encoder.predict(torch.as_tensor(A[~train]))) - codes[~train]
    return float(np.linalg.norm(residual) / np.linalg.norm(codes[~train]))


def judge(runs_of: RunsOf) -> Sequence[Verdict]:
    """Judge whether each comparison sees what was planted, and only that."""
    turn, recode, nothing = (runs_of[label] for label in _RUNS.values())

    def first(runs: Runs, name: str) -> np.ndarray:
        return each(runs, lambda run: run[name][0])

    directions = first(turn, "directions")
    encoded = first(turn, "encoded")
    codes = first(recode, "encoded")
    same = first(recode, "directions")
    quiet = np.concatenate([first(nothing, name) for name in ("directions", "encoded")])
    importance = first(recode, "importance")
    return [
        Verdict(
            "directions that turn look like concepts that change",
            unanimous((directions > _MOVED) & (quiet.max() < _MOVED), directions),
            f"distance of the dictionaries {short(directions)} of their norm at the first step; "
            f"after the best rotation among the concepts {short(first(turn, 'procrustes'))}",
            f"nothing planted: {short(first(nothing, 'directions'))}",
        ),
        Verdict(
            "an encoder sees that their codes stay",
            unanimous((encoded < _MOVED) & (codes > _MOVED), encoded, codes),
            f"it leaves {short(encoded)} of the last step's codes where directions turn",
            f"where the codes change instead: {short(codes)}, while directions stay within "
            f"{short(same)}",
        ),
        Verdict(
            "it is enough to follow the importances of concepts, the lengths of the arrows",
            unanimous(importance > _MOVED, importance),
            f"norms of the codes move by {short(importance)} where every row is recoded",
            f"by {short(first(turn, 'importance'))} where directions turn: equal importances do "
            "not show equal codes",
        ),
    ]


def _view(runs_of: RunsOf) -> xr.Dataset:
    quantities = (
        Quantity("directions", "distance of the dictionaries, relative"),
        Quantity(
            "encoded", "what an encoder leaves of the last step's codes, relative"
        ),
        Quantity("importance", "change of the importances, relative"),
    )
    section = Section(
        "Directions against codes",
        "Planted runs: activations are codes times a dictionary, of which one turns or changes "
        "steadily towards the last step and the other stays.",
        null="A run in which both stay, with the same noise on its activations.",
        source="Bernas 2025, sec. 6.1, Fig. 8",
    )
    return mean_of_seeds(runs_of, quantities, section, role="motion")


RECIPES = (
    MeasuredRecipe(
        "concepts-figure-8",
        "Directions that turn and importances that stay",
        "a model may represent the same concepts by other directions; distances of directions "
        "then move although the importance of the concepts stays.",
        "Bernas 2025, sec. 6.1, Fig. 8",
        RotatingSize(),
        RotatingSize(rows=600, steps=13, seeds=(0, 1)),
        "nothing that the full size shows; only the intervals are wider.",
        measure=measure_rotating,
        judge=judge,
    ),
)
