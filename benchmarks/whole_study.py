"""Processor time of the report's study: 48 checkpoints, 11 layers, 10 extractors.

    OMP_NUM_THREADS=1 python benchmarks/whole_study.py sample [EXTRACTOR ...]
    OMP_NUM_THREADS=1 python benchmarks/whole_study.py full svd kmeans
    OMP_NUM_THREADS=1 python benchmarks/whole_study.py noise svd kmeans
    OMP_NUM_THREADS=1 python benchmarks/whole_study.py peers

5,000 tokens, 768 features, 100 concepts, all nine distances and four correlations to the reference
step. The checkpoints are synthetic: a `StandIn` whose layers give activations with a mean, a
spectrum that decays as a power of the rank, and heavy-tailed sources, and which training turns
into those of the last step. Every fit but the reference step's starts from the reference's
dictionary (``init="reference"``), and all of it goes through `ontogeny.Study`.

`full` studies all 528 cells of the extractors named. `sample` studies one layer of three of the
checkpoints and says what all cells would take. `noise` adds noise floors to one of them. All three
count processor seconds by part: in fits, in comparisons, in the rotation of the features, which all
extractors share, and elsewhere (forward passes, files, the summary). `peers` fits scikit-learn's
estimators to one cell, beside ours without a start.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import sklearn.cluster
import sklearn.decomposition as sk
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

import ontogeny as og
from ontogeny import concepts, distances
from ontogeny.observables import rotations

STEPS = range(10_000, 480_001, 10_000)
LAYERS = 11
TOKENS = 5000
FEATURES = 768
SOURCES = 256
R = 100
TEXT = 50  # tokens
OPTIONS = {"nmf": {"nonnegative": "relu"}}
SAMPLED = [50_000, 250_000, 480_000]  # two, and the reference


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

    Sources have the weights ``k^-0.5``, and a quarter of the squared norm is in the mean, as in the
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
        drift = (
            0.1
            * np.random.default_rng([step, layer]).standard_normal(last.shape)
            * spectrum
        )
        turned = learned * last + (1 - learned) * first + (step < max(STEPS)) * drift
        found[f"layers.{layer}.weight"] = _floats(turned)
        found[f"layers.{layer}.bias"] = _floats(0.5 * mean)
    return found


def _floats(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values.astype(np.float32))


def run(steps: list[int]) -> og.Trajectory:
    """Return the checkpoints of these steps."""
    return og.Trajectory.from_models(
        {step: weights(step) for step in steps}, model=StandIn
    )


def seconds(call: Callable[[], Any]) -> float:
    """Return the processor seconds of a call."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


class Clock:
    """Processor seconds spent in some methods, by extractor and part; inner parts are left out."""

    def __init__(self) -> None:
        self.spent: Counter[tuple[str, str]] = Counter()
        self.calls: Counter[tuple[str, str]] = Counter()
        self._inner = [0.0]

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, whose time counts as that part of its first argument's extractor."""

        def call(*given: Any, **named: Any) -> Any:
            key = (getattr(given[0], "extractor", "all"), part)
            self._inner.append(0.0)
            begin = time.process_time()
            try:
                return function(*given, **named)
            finally:
                taken = time.process_time() - begin
                self.spent[key] += taken - self._inner.pop()
                self.calls[key] += 1
                self._inner[-1] += taken

        return call

    @contextmanager
    def running(self) -> Iterator[None]:
        """Time the parts of every study that runs meanwhile."""
        own = og.observables.Concepts
        shared = rotations
        kept = own._fit, own._compared, own.observe, shared.feature_rotation
        own._fit = self.timed("fit", own._fit)
        own._compared = self.timed("comparison", own._compared)
        own.observe = self.timed("rest", own.observe)
        shared.feature_rotation = self.timed("rotation", shared.feature_rotation)
        try:
            yield
        finally:
            own._fit, own._compared, own.observe, shared.feature_rotation = kept


def study(
    extractors: list[str], steps: list[int], layers: int, noise: int = 0
) -> Clock:
    """Run a study, print its errors, and return the time of its parts."""
    nodes = [
        og.observables.Concepts(
            name,
            n_concepts=R,
            layers=tuple(f"layers.{layer}" for layer in range(layers)),
            distances=distances.names(),
            correlations=("columnwise", "optimal", "internal", "weighted"),
            init="reference",
            options=OPTIONS.get(name, {}),
        )
        for name in extractors
    ]
    inputs = og.Inputs.from_tokens(np.arange(TOKENS).reshape(-1, TEXT))
    whole = og.Study(run(steps), inputs, nodes, noise=noise, device="cpu", threads=1)
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder, clock.running():
        result = clock.timed("elsewhere", whole.run)(f"{folder}/study", progress=False)
    for node in nodes:
        data = result[node.name]
        assert (data.status == "done").all(), result.problems()
        error = float(data.reconstruction_error.mean())
        iterations = data.iterations
        at = iterations.isel(step=-1)
        others = iterations.isel(step=slice(-1))
        print(
            f"{node.extractor}: mean error {error:.4f}, mean iterations at the reference step "
            f"{float(at.mean()):.0f}, at the others {float(others.mean()):.0f}"
        )
    return clock


def report(clock: Clock) -> None:
    """Print seconds and calls of each part."""
    for (extractor, part), spent in sorted(clock.spent.items()):
        calls = clock.calls[extractor, part]
        print(f"| {extractor} | {part} | {spent:.1f} | {calls} | {spent / calls:.3f} |")
    print(f"together {sum(clock.spent.values()):.1f} s", flush=True)


def full(extractors: list[str]) -> None:
    """Print what all 528 cells take."""
    report(study(extractors, list(STEPS), LAYERS))


def sample(extractors: list[str]) -> None:
    """Print what three checkpoints and one layer take, and 48 and 11 would by their rates."""
    clock = study(extractors, SAMPLED, 1)
    report(clock)
    reference = study(extractors, SAMPLED[-1:], 1)
    report(reference)
    clock.spent.subtract(reference.spent)
    cells = LAYERS * (len(STEPS) - 1)
    warm = len(SAMPLED) - 1
    total: Counter[str] = Counter()
    for (extractor, part), spent in clock.spent.items():
        total[extractor] += (
            cells * spent / warm + LAYERS * reference.spent[extractor, part]
        )
    for extractor, spent in total.items():
        print(f"| {extractor} | {spent / 3600:.3f} h |")
    print(f"| together | {sum(total.values()) / 3600:.3f} h |")


def noise(extractors: list[str]) -> None:
    """Print what noise floors at one checkpoint and one layer take."""
    report(study(extractors, SAMPLED[-1:], 1, noise=1))


def activations(step: int = SAMPLED[1], layer: int = 0) -> np.ndarray:
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
            taken = seconds(
                lambda theirs=theirs, matrix=matrix: theirs.fit_transform(matrix)
            )
            ours = concepts.make(name, R, random_state=0, **OPTIONS.get(name, {}))
            own = seconds(lambda ours=ours: ours.fit_transform(A))
            print(f"| {name} | {own:.2f} | {taken:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = {"sample": sample, "full": full, "noise": noise, "peers": peers}
    parser.add_argument("part", choices=parts)
    parser.add_argument("extractors", nargs="*", default=list(concepts.names()))
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        parts[chosen.part](chosen.extractors)


if __name__ == "__main__":
    main()
