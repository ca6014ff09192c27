"""How often labels that mean nothing are significant where texts share documents or repeat.

Run in `tests`: python -m helpers.document_effects [repeats]
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from ontogeny.concepts import CAV
from ontogeny.inputs import stratified_split
from ontogeny.units import Units
from ontogeny_papers.capture.random_concepts import RandomConcepts, _tested
from ontogeny_papers.concepts.concept_directions import LabelledRows, fit_direction

CAV_ = CAV(solver="mean-difference", intercept=True)


def rows_of_documents(
    rng: np.random.Generator,
    documents: int,
    sizes: tuple[int, int],
    share: float,
    width: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Return activations of unit variance, `share` of it between documents, and the documents."""
    count = rng.integers(sizes[0], sizes[1] + 1, documents)
    groups = np.repeat(np.arange(documents), count)
    between = rng.normal(size=(documents, width))[groups]
    within = rng.normal(size=(len(groups), width))
    return np.sqrt(share) * between + np.sqrt(1 - share) * within, groups


def labels_at_random(
    seed: int,
    share: float,
    sizes: tuple[int, int],
    documents: int = 24,
    grouped: bool = True,
    constant: bool = True,
    effect: float = 0.0,
) -> float:
    """Return the p-value of a direction's accuracy; labels are at random, also by `effect`."""
    rng = np.random.default_rng([seed, 7])
    A, groups = rows_of_documents(rng, documents, sizes, share, width=16)
    if constant:
        labels = rng.permutation(np.arange(documents) % 2)[groups]
    else:  # documents differ in their share of either label
        labels = (
            rng.random(len(groups)) < rng.uniform(0.2, 0.8, documents)[groups]
        ).astype(int)
    A[:, 0] += effect * labels
    units = groups if grouped else np.arange(len(groups))
    train, test = stratified_split(labels, 2 / 3, seed, units)
    rows = LabelledRows(np.arange(len(groups)), labels == 1, train, test, units)
    found = fit_direction(A, rows, CAV_, n_random=39, n_refits=1, random_state=seed)
    return float((1 + (found.random_accuracy >= found.accuracy - 1e-9).sum()) / 40)


def against_random(
    seed: int, grouped: bool = True, effect: float = 0.0, pool_documents: int = 40
) -> float:
    """Return the p-value of a concept of 8 documents; documents differ along two features."""
    rng = np.random.default_rng([seed, 8])
    A, groups = _in_two_features(rng, 8)
    pool, pool_groups = _in_two_features(rng, pool_documents)
    A[:, 0] += effect
    gradients = rng.normal(size=(30, 16))
    gradients[:, :2] += rng.normal(size=2)
    gradients[:, 0] += effect
    if grouped:
        drawn = RandomConcepts.of_units(
            Units(groups), Units(pool_groups), 39, None, seed
        )
    else:
        drawn = RandomConcepts.of(len(A), len(pool), 39, None, seed)
    rest = pool[drawn.draws[:, 1]].mean(1)
    both = np.concatenate(
        [A[drawn.own].mean(0) - rest, pool[drawn.draws[:, 0]].mean(1) - rest]
    )
    directions = both / np.linalg.norm(both, axis=1, keepdims=True)
    return float(_tested((directions @ gradients.T)[None], ["a"]).p_value[0])


def _in_two_features(
    rng: np.random.Generator, documents: int
) -> tuple[np.ndarray, np.ndarray]:
    groups = np.repeat(np.arange(documents), 5)
    A = rng.normal(size=(len(groups), 16))
    A[:, :2] += rng.normal(size=(documents, 2))[groups]
    return A, groups


def rate(p_values: list[float]) -> str:
    """Return the share of p-values of at most 0.05."""
    return f"{100 * np.mean(np.array(p_values) <= 0.05):.1f} %"


def main(repeats: int) -> dict[str, list[str]]:
    """Return the rates without and with documents."""
    seeds, found = range(repeats), {}

    def both(name: str, one: Any) -> None:
        found[name] = [
            rate([one(seed, grouped) for seed in seeds]) for grouped in (False, True)
        ]

    for share in (0.1, 0.2, 0.4):
        for sizes in ((10, 10), (4, 16)):
            both(
                f"documents, {share}, {sizes}",
                lambda s, g, share=share, sizes=sizes: labels_at_random(
                    s, share, sizes, grouped=g
                ),
            )
    both(
        "five copies of 40 texts", lambda s, g: labels_at_random(s, 1.0, (5, 5), 40, g)
    )
    both("varying", lambda s, g: labels_at_random(s, 0.4, (10, 10), 24, g, False))
    for pool in (16, 40):
        both(
            f"random concepts, {pool}",
            lambda s, g, pool=pool: against_random(s, g, 0, pool),
        )
    return found


if __name__ == "__main__":
    json.dump(
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 400), sys.stdout, indent=1
    )
