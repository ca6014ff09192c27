"""Processor time of the report's study: 48 checkpoints, 11 layers, 10 extractors.

    OMP_NUM_THREADS=1 python benchmarks/whole_study.py sample [EXTRACTOR ...]
    OMP_NUM_THREADS=1 python benchmarks/whole_study.py full svd pca
    OMP_NUM_THREADS=1 python benchmarks/whole_study.py peers

5,000 tokens, 768 features, 100 concepts, all nine distances and four correlations to the reference
step. The checkpoints are synthetic: a run of `Checkpoints` whose layers give activations with a
mean, a spectrum that decays as a power of the rank, and heavy-tailed sources, which turn and grow
into those of the last step. Every fit but the reference step's starts from the reference's
dictionary (``init="reference"``), and all of it goes through `ontogeny.Study`.

`sample` studies a few checkpoints and two layers, with and without noise floors, and gives seconds
a cell for each extractor; `full` studies all 528 cells of the extractors named, one at a time;
`peers` fits scikit-learn's estimators to one cell.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn.cluster
import sklearn.decomposition as sk
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

import ontogeny as og
from ontogeny import concepts, distances

STEPS = range(10_000, 480_001, 10_000)
LAYERS, TOKENS, FEATURES, SOURCES, R = 11, 5000, 768, 256, 100
TEXT = 50  # tokens
OPTIONS = {"nmf": {"nonnegative": "relu"}}
SAMPLED = (10_000, 160_000, 320_000, 480_000)  # the first, two between, and the reference


class Mixed(nn.Linear):
    """A layer that mixes the sources of a token and adds what none of them explains."""

    def forward(self, sources: Tensor, rest: Tensor) -> Tensor:
        """Return activations (..., FEATURES)."""
        return super().forward(sources) + rest


class StandIn(nn.Module):
    """Layers that read the same sources of each token; training changes how they mix them."""

    def __init__(self) -> None:
        super().__init__()
        rng = np.random.default_rng(0)
        sources = rng.laplace(size=(TOKENS, SOURCES))
        self.register_buffer("sources", _floats(sources), persistent=False)
        rest = 0.1 * rng.standard_normal((TOKENS, FEATURES))
        self.register_buffer("rest", _floats(rest), persistent=False)
        self.layers = nn.ModuleList(Mixed(SOURCES, FEATURES) for _ in range(LAYERS))

    def forward(self, input_ids: Tensor) -> Tensor:
        """Return the sum of the layers' activations for ids (texts, length)."""
        read = self.sources[input_ids], self.rest[input_ids]
        return sum(layer(*read) for layer in self.layers)


def weights(step: int) -> dict[str, Tensor]:
    """Return the state of a step: each layer's last mixture and, early, another one.

    Sources have the weights ``k^-0.5``, and a fifth of the squared norm is in the mean, as in the
    activations of a sentence encoder; entries have about unit mean square.
    """
    learned = 1 - np.exp(-step / 100_000)
    spectrum = np.arange(1, SOURCES + 1) ** -0.5
    spectrum /= np.sqrt(2 * (spectrum**2).sum())  # a Laplace source has variance 2
    found = {}
    for layer in range(LAYERS):
        rng = np.random.default_rng([1, layer])
        last, first = rng.standard_normal((2, FEATURES, SOURCES)) * spectrum
        mean = rng.standard_normal(FEATURES)
        drift = 0.1 * np.random.default_rng([step, layer]).standard_normal(last.shape) * spectrum
        turned = learned * last + (1 - learned) * first + (step < max(STEPS)) * drift
        found[f"layers.{layer}.weight"] = _floats(turned)
        found[f"layers.{layer}.bias"] = _floats(0.5 * mean)
    return found


def _floats(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values.astype(np.float32))


def run(steps: list[int]) -> og.Trajectory:
    """Return the checkpoints of these steps."""
    return og.Trajectory.from_models({step: weights(step) for step in steps}, model=StandIn)


def seconds(call: Callable[[], Any]) -> float:
    """Return the processor seconds of a call."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def study(
    extractors: list[str], steps: list[int], layers: list[int], noise: int = 0
) -> tuple[float, dict[str, tuple[float, float]]]:
    """Return the processor seconds of a study, and mean error and iterations of each extractor."""
    nodes = [
        og.observables.Concepts(
            name,
            n_concepts=R,
            layers=tuple(f"layers.{layer}" for layer in layers),
            distances=distances.names(),
            correlations=("columnwise", "optimal", "internal", "weighted"),
            init="reference",
            options=OPTIONS.get(name, {}),
        )
        for name in extractors
    ]
    ids = np.arange(TOKENS).reshape(-1, TEXT)
    inputs = og.Inputs.from_tokens(ids)
    whole = og.Study(run(steps), inputs, nodes, noise=noise, device="cpu", threads=1)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.process_time()
        result = whole.run(f"{folder}/study", progress=False)
        taken = time.process_time() - begin
    found = {}
    for name, node in zip(extractors, nodes, strict=True):
        data = result[node.name]
        assert (data.status == "done").all(), result.problems()
        found[name] = (float(data.reconstruction_error.mean()), float(data.iterations.mean()))
    return taken, found


def sample(extractors: list[str]) -> None:
    """Print seconds a cell of a few steps and two layers, alone and with noise floors.

    What a study costs without an extractor (models, activations, the page's data, the rotation of
    the features) is that of a study of PCA less its fits and comparisons, and is in every row.
    """
    steps, layers = list(SAMPLED), [0, 5]
    study(["svd"], steps[-2:], [0])  # loads libraries
    print("| extractor | s a cell | hours for 528 cells | refits: s a cell with noise |"
          " error | iterations |\n| --- |" + " --- |" * 5)  # fmt: skip
    for name in extractors:
        taken, found = study([name], steps, layers)
        cell = taken / (len(steps) * len(layers))
        noisy = study([name], steps[:2], layers[:1], noise=2)[0]
        quiet = study([name], steps[:2], layers[:1])[0]
        error, iterations = found[name]
        print(f"| {name} | {cell:.2f} | {cell * 528 / 3600:.2f} | {(noisy - quiet) / 2:.1f} |"
              f" {error:.3f} | {iterations:.0f} |", flush=True)  # fmt: skip


def full(extractors: list[str]) -> None:
    """Print the processor minutes of all 528 cells of each extractor in one study."""
    taken, found = study(extractors, list(STEPS), list(range(LAYERS)))
    print(f"{', '.join(extractors)}: 528 cells each, {taken / 60:.1f} processor minutes; {found}")


def activations(step: int = SAMPLED[1], layer: int = 5) -> np.ndarray:
    """Return one cell's activations."""
    model = StandIn()
    model.load_state_dict(weights(step))
    with torch.no_grad():
        return model.layers[layer](model.sources, model.rest).numpy()


def peers(chosen: list[str]) -> None:
    """Print the seconds that scikit-learn takes for one cell, cold, as its defaults have it."""
    A = activations()
    P = np.maximum(A, 0)
    lasso: dict[str, Any] = {"transform_algorithm": "lasso_cd", "transform_alpha": 1.0}
    estimators = {
        "svd": (sk.TruncatedSVD(R, algorithm="arpack"), A),
        "pca": (sk.PCA(R), A),
        "ica": (sk.FastICA(R, max_iter=200, whiten_solver="eigh", random_state=0), A),
        "kmeans": (sklearn.cluster.KMeans(R, n_init=1, random_state=0), A),
        "nmf": (sk.NMF(R, random_state=0), P),
        "sparse-pca": (sk.MiniBatchSparsePCA(R, method="cd", random_state=0), A),
        "dictionary": (sk.MiniBatchDictionaryLearning(R, random_state=0, **lasso), A),
    }
    for name in chosen:
        if name in estimators:
            theirs, matrix = estimators[name]
            taken = seconds(lambda theirs=theirs, matrix=matrix: theirs.fit_transform(matrix))
            ours = concepts.make(name, R, random_state=0, **OPTIONS.get(name, {}))
            own = seconds(lambda ours=ours: ours.fit_transform(A))
            print(f"| {name} | {own:.2f} | {taken:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("sample", "full", "peers"))
    parser.add_argument("extractors", nargs="*", default=list(concepts.names()))
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        {"sample": sample, "full": full, "peers": peers}[chosen.part](chosen.extractors)


if __name__ == "__main__":
    main()
