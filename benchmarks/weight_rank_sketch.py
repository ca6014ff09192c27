"""What ranks of weight matrices lose where a run is read once, by sketches or by some of the rows.

    env OMP_NUM_THREADS=1 python benchmarks/weight_rank_sketch.py RUN

RUN is a folder of checkpoints with one safetensors file each. `WeightRank` takes inner products of
every two checkpoints, which no reading of one after the other gives. A sketch adds every entry,
with a random sign, to one of a few places, the same ones at all checkpoints (Charikar, Chen and
Farach-Colton 2002), so that each checkpoint can be read alone.
"""

from __future__ import annotations

import sys

import numpy as np

from ontogeny import Trajectory
from ontogeny.trajectory.weights.files import matrix_names
from ontogeny_papers.geometry.snapshots import SnapshotGram
from ontogeny_papers.observables.weight_rank import WeightRank

SIZES = (256, 1024, 4096)
SHARE = 8  # one row of so many
COLUMNS = 200_000  # at once
LEVEL = 0.05


def main(folder: str) -> None:
    run = Trajectory.from_folder(folder)
    with run[0].open() as reader:
        names = matrix_names(reader)
        names = [n for n in names if min(reader.shape(n)) >= 32]
        shapes = [reader.shape(n) for n in names]
    pairs: dict[str, list[tuple[dict[str, float], dict[str, float]]]] = {}
    rng = np.random.default_rng(0)
    for name, shape in zip(names, shapes, strict=True):
        path = path_of(run, name)
        exact = measured(path)
        for size in SIZES:
            at = rng.integers(0, size, path.shape[1])
            signed = path * rng.choice([-1.0, 1.0], path.shape[1])
            sums = [np.bincount(at, weights=step, minlength=size) for step in signed]
            pairs.setdefault(f"sketch {size}", []).append(
                (exact, measured(np.array(sums)))
            )
        rows = np.sort(rng.permutation(shape[0])[: max(8, shape[0] // SHARE)])
        some = path.reshape(len(path), *shape)[:, rows].reshape(len(path), -1)
        other = measured(some)
        other["length"] *= np.sqrt(shape[0] / len(rows))
        pairs.setdefault(f"1 row of {SHARE}", []).append((exact, other))
    print(
        f"{len(names)} matrices of {len(run)} checkpoints, differences from all entries"
    )
    for how, of_how in pairs.items():
        print(how, *lines(of_how), sep="; ")


def path_of(run: Trajectory, name: str) -> np.ndarray:
    """Return the way of a matrix from its first values, (T, entries)."""
    tensors = []
    for checkpoint in run:
        with checkpoint.open() as reader:
            tensors.append(reader.get(name).double().numpy().reshape(-1))
    return np.stack(tensors) - tensors[0]


def measured(path: np.ndarray) -> dict[str, float]:
    """Return what `WeightRank` says of a path, and how long the whole way is."""
    observable = WeightRank()
    gram = SnapshotGram(len(path))
    for start in range(0, path.shape[1], COLUMNS):
        gram.add(np.ascontiguousarray(path[:, start : start + COLUMNS]))
    ranks = observable._ranks(gram.gram, path.shape[1])
    apart = observable._separating(gram.gram, path.shape[1])
    return {
        "rank": ranks["variance_rank"],
        "rank of increments": apart["increment_rank"],
        "lower": float(ranks["p_lower"] <= LEVEL),
        "net drift ratio": apart["net_drift_ratio"],
        "length": float(np.linalg.norm(path[-1])),
    }


def lines(of_how: list[tuple[dict[str, float], dict[str, float]]]) -> list[str]:
    texts = []
    for key in of_how[0][0]:
        pairs = np.array([(exact[key], other[key]) for exact, other in of_how])
        if key == "length":
            most = np.abs(pairs[:, 1] / pairs[:, 0] - 1).max()
        else:
            most = np.abs(pairs[:, 1] - pairs[:, 0]).max()
        equal = int((pairs[:, 0] == pairs[:, 1]).sum())
        texts.append(f"{key}: {equal} of {len(pairs)} equal, at most {most:.3f}")
    return texts


if __name__ == "__main__":
    main(sys.argv[1])
