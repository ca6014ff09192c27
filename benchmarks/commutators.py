"""Time to measure one snapshot, beside the paper's way of doing it, in one run.

    env OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/commutators.py

One snapshot: 9 commutators, their projection onto the trajectory, the random control, and the ranks
of all attention matrices. "Paper" is the author's way written out plainly in float32: two paths of
two steps each on a copy of the model, their difference, a dense basis (P, K) of principal
components by SVD, and ten random bases by QR of Gaussian matrices. The author's model also carries
MLP weights that no forward pass uses; it is measured with and without them. "Ours" is float64,
with the closed form in place of the QR draws. Setting: 5 layers of width 128, T = 16, 256 tokens,
batches of 128, 43 snapshots, k = 3 directions for each of 20 matrices. Processor time, one thread.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from ontogeny import geometry, updates
from ontogeny.observables.matrices import parameter_blocks
from ontogeny_papers.geometry.path import variance_rank_from_gram
from ontogeny_papers.geometry.projection import BlockEnergies
from ontogeny_papers.observables.projection import block_values
from ontogeny_papers.reproduce.tasks import MarkerTask
from ontogeny_papers.reproduce.training import MarkerRun, readout_loss

LR = 1e-3
PAIRS = 9
K = 3
SNAPSHOTS = 43
DEAD = 658_560


def setting() -> tuple[nn.Module, list, dict[str, np.ndarray]]:
    """Return the model, the batches, and a path of each attention matrix."""
    torch.manual_seed(0)
    task = MarkerTask(vocab_size=256, distinct_markers=True)
    run = MarkerRun(task, layers=5, batch_size=128)
    model = run.model()
    stream = run.batches(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    blocks = parameter_blocks(model, ("q", "k", "v", "o"))
    paths: dict[str, list[np.ndarray]] = {name: [] for name in blocks}
    for step in range(SNAPSHOTS):
        parameters = dict(model.named_parameters())
        for name, block in blocks.items():
            paths[name].append(block_values(block, parameters).numpy().copy())
        optimizer.zero_grad()
        readout_loss(model, stream(step)).backward()
        optimizer.step()
    batches = [stream(SNAPSHOTS + i) for i in range(2 * PAIRS)]
    return model, batches, {name: np.stack(rows) for name, rows in paths.items()}


# ---- the paper's way ---------------------------------------------------------------------------


def gradient(model: nn.Module, batch: object) -> torch.Tensor:
    parameters = [p for name, p in model.named_parameters() if "unused" not in name]
    found = torch.autograd.grad(readout_loss(model, batch), parameters)
    flat = torch.cat([g.reshape(-1) for g in found])
    missing = sum(p.numel() for p in model.parameters()) - len(flat)
    return torch.cat([flat, torch.zeros(missing)])


def two_steps(model: nn.Module, start: torch.Tensor, first: object, second: object):
    vector_to_parameters(start, model.parameters())
    g = gradient(model, first)
    vector_to_parameters(start - LR * g, model.parameters())
    return start - LR * g - LR * gradient(model, second), g


def paper(model: nn.Module, batches: list, paths: dict[str, np.ndarray]) -> np.ndarray:
    start = parameters_to_vector(model.parameters()).detach()
    names = [name for name, _ in model.named_parameters()]
    offsets = np.cumsum([0, *(p.numel() for p in model.parameters())])
    basis = torch.zeros(len(start), K * len(paths))
    for i, (name, path) in enumerate(paths.items()):
        centred = torch.from_numpy(path - path.mean(axis=0))
        _, values, right = torch.linalg.svd(centred, full_matrices=False)
        held = torch.cumsum(values**2, 0) / torch.sum(values**2)
        int((held < 0.9).sum()) + 1  # the rank
        at = offsets[names.index(name)]
        basis[at : at + path.shape[1], K * i : K * (i + 1)] = right[:K].T
    deltas = []
    for i in range(PAIRS):
        a = batches[2 * i]
        b = batches[2 * i + 1]
        forth, g_a = two_steps(model, start, a, b)
        back, g_b = two_steps(model, start, b, a)
        (forth - back).norm() / (LR * g_a.norm() * LR * g_b.norm())
        deltas.append(forth - back)
    vector_to_parameters(start, model.parameters())
    delta = torch.stack(deltas)
    rho = (delta @ basis).norm(dim=1) / delta.norm(dim=1)
    random = torch.zeros(PAIRS)
    for _ in range(10):
        Q = torch.linalg.qr(torch.randn(len(start), basis.shape[1]))[0]
        random += (delta @ Q).norm(dim=1) / delta.norm(dim=1) / 10
    return (rho / random).numpy()


# ---- ours ----------------------------------------------------------------------------------------


def ours(
    model: nn.Module,
    batches: list,
    paths: dict[str, np.ndarray],
    dtype: str = "float64",
) -> np.ndarray:
    blocks = parameter_blocks(model, ("q", "k", "v", "o"))
    bases = []
    for path in paths.values():
        gram = geometry.gram(path)
        variance_rank_from_gram(gram)
        bases.append(geometry.principal_basis(path, K, gram=gram))
    inside = []
    energy = []
    moves = {
        name: torch.zeros(p.shape, dtype=torch.bool)
        for name, p in model.named_parameters()
    }
    for found in updates.commutators(model, readout_loss, batches, LR, dtype=dtype):
        found.defect, found.cosine  # noqa: B018 (measured)
        for name, g in found.gradient_a.items():
            moves[name] |= g != 0
        pieces = [
            block_values(b, found.delta).double().numpy() for b in blocks.values()
        ]
        own = [float(v @ v) for v in pieces]
        energy.append([*own, found.norm**2 - sum(own)])
        inside.append(
            [
                *(
                    float(np.sum((v @ Q) ** 2))
                    for v, Q in zip(pieces, bases, strict=True)
                ),
                0,
            ]
        )
    sizes = [int(block_values(block, moves).sum()) for block in blocks.values()]
    live = sum(int(m.sum()) for m in moves.values())
    ranks = np.array([*(Q.shape[1] for Q in bases), 0])
    measured = BlockEnergies(
        np.array(inside).T,
        np.array(energy).T,
        ranks,
        np.array([*sizes, live - sum(sizes)]),
    )
    return measured.rho / measured.control.rms


def seconds(
    function: Callable[[], np.ndarray], repeats: int
) -> tuple[float, np.ndarray]:
    taken = []
    for _ in range(repeats):
        begin = time.process_time()
        result = function()
        taken.append(time.process_time() - begin)
    return float(np.median(taken)), result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model, batches, paths = setting()
    with_dead = copy.deepcopy(model)
    # The last parameters.
    with_dead.unused = nn.ParameterList([0.02 * torch.randn(DEAD)])
    ours(model, batches[:2], paths)  # first calls build kernels
    cases = {
        "paper, float32, with unused MLP weights": lambda: paper(
            with_dead, batches, paths
        ),
        "paper, float32, without them": lambda: paper(model, batches, paths),
        "ours, float64": lambda: ours(model, batches, paths),
        "ours, float32": lambda: ours(model, batches, paths, "float32"),
    }
    results = {
        name: seconds(function, options.repeats) for name, function in cases.items()
    }
    base = results["ours, float64"][0]
    for name, (taken, ratio) in results.items():
        print(
            f"{name}: {taken:.2f} s, {taken / base:.2f} times ours in float64; "
            f"inside over random {np.median(ratio):.2f}"
        )


if __name__ == "__main__":
    main()
