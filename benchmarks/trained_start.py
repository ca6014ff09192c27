"""What controls of runs that begin trained do to them: harm, luck, and verdicts on the loss.

    OMP_NUM_THREADS=1 python benchmarks/trained_start.py [--runs 10] [--text FILE] [FAMILY ...]

Runs are those of `learned.py` that go on for ten steps. A control adds a motion as long as the
run's to the first checkpoint, matrix by matrix, and is read beside its mirror image. Harm is the
common part of what a pair loses at the best temperature, luck half of its difference.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable

import learned
import numpy as np
import torch
from torch import Tensor, nn

from ontogeny.summary.learning import p_by_luck
from ontogeny.summary.noise import mean_stderr

PAIRS = 3
LEADING = 8
Motion = Callable[[Tensor, Tensor, torch.Generator], Tensor]


def _orthogonal(size: int, generator: torch.Generator) -> Tensor:
    return torch.linalg.qr(torch.randn(size, size, generator=generator))[0]


def turned(start: Tensor, motion: Tensor, generator: torch.Generator) -> Tensor:
    rows, columns = motion.shape
    return _orthogonal(rows, generator) @ motion @ _orthogonal(columns, generator)


def leading(start: Tensor, motion: Tensor, generator: torch.Generator) -> Tensor:
    """Turn the motion within the leading singular directions of the first checkpoint."""
    u, _, v = torch.linalg.svd(start, full_matrices=False)
    u = u[:, :LEADING]
    v = v[:LEADING]
    size = u.shape[1]
    inner = (
        _orthogonal(size, generator)
        @ (u.T @ motion @ v.T)
        @ _orthogonal(size, generator)
    )
    return u @ inner @ v


def neurons(start: Tensor, motion: Tensor, generator: torch.Generator) -> Tensor:
    """Exchange the rows and the columns of the motion, as neurons of one kind."""
    rows, columns = (torch.randperm(size, generator=generator) for size in motion.shape)
    return motion[rows][:, columns]


def own(start: Tensor, motion: Tensor, generator: torch.Generator) -> Tensor:
    """Go the very way of the run, so that the mirror image is its way back."""
    return motion


KINDS: dict[str, tuple[Motion, float]] = {
    "turned": (turned, 1.0),
    "turned, half as far": (turned, 0.5),
    "turned in leading directions": (leading, 1.0),
    "neurons exchanged": (neurons, 1.0),
    "mirror image of the run": (own, 1.0),
}


def moved(
    first: nn.Module, last: nn.Module, kind: str, sign: float, seed: int
) -> nn.Module:
    """Return the first checkpoint with a control's motion added."""
    model = copy.deepcopy(first)
    generator = torch.Generator().manual_seed(seed)
    move, length = KINDS[kind]
    with torch.no_grad():
        for parameter, end in zip(model.parameters(), last.parameters(), strict=True):
            motion = end - parameter
            turned = motion.flatten()[
                torch.randperm(motion.numel(), generator=generator)
            ]
            change = (
                move(parameter, motion, generator)
                if motion.ndim == 2
                else turned.reshape(motion.shape)
            )
            scale = length * motion.norm() / change.norm().clamp_min(1e-12)
            parameter.add_(sign * scale * change)
    return model.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--text", default="")
    parser.add_argument("families", nargs="*")
    given = parser.parse_args()
    learned.TEXT_FILE.extend([given.text] if given.text else [])
    torch.set_num_threads(1)
    for family in given.families or ("text", "random tokens", "out of order"):
        results: dict[str, list[tuple[float, ...]]] = {kind: [] for kind in KINDS}
        for seed in range(given.runs):
            run, held = learned.run_of(f"further {family}", seed)
            first, last = run.values()
            start, end = (
                learned.cells({0: model}, held).isel(step=0) for model in (first, last)
            )
            gain = float(start.loss_calibrated - end.loss_calibrated)
            of_text = (
                start.loss_calibrated_of_text - end.loss_calibrated_of_text
            ).values
            error = float(mean_stderr(of_text, start.loss_weights.values))
            for kind in KINDS:
                gains = np.array(
                    [
                        float(
                            start.loss_calibrated
                            - learned.cells(
                                {0: moved(first, last, kind, sign, k)}, held
                            ).loss_calibrated[0]
                        )
                        for k in range(PAIRS)
                        for sign in (1.0, -1.0)
                    ]
                ).reshape(PAIRS, 2)
                luck = (gains[:, 0] - gains[:, 1]) / 2
                harm = -gains.mean(1)
                p = p_by_luck(np.array([gain]), np.array([error**2]), luck[None])[0]
                results[kind].append((gain, harm.mean(), np.sqrt((luck**2).mean()), p))
        for kind, rows in results.items():
            gain, harm, luck, p = np.array(rows).T
            print(
                f"{family}; {kind}: gain {np.median(gain):.4f}, harm {np.median(harm):.4f}, "
                f"luck {np.median(luck):.4f}, p <= .05 in {(p <= 0.05).sum()} of {len(p)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
