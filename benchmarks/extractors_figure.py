"""The guide's figure: all ten extractors on the same real activations, as SVG.

OMP_NUM_THREADS=1 python benchmarks/extractors_figure.py ACTIVATIONS.npy OUT.svg
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch

from ontogeny import concepts

R = 100
LEFT = 120
WIDTH = 300
ROW = 26
OPTIONS = {"nmf": {"nonnegative": "split"}}


def measure(A: np.ndarray) -> list[tuple[str, float, float, float]]:
    """Name, relative error, fraction of codes that are not zero, CPU seconds."""
    rows = []
    for name in concepts.names():
        est = concepts.make(name, R, random_state=0, **OPTIONS.get(name, {}))
        start = time.process_time()
        U = est.fit_transform(A)
        seconds = time.process_time() - start
        rows.append((name, est.relative_error_, float((U != 0).mean()), seconds))
    return sorted(rows, key=lambda row: row[1])


def bar(x: float, y: int, length: float, colour: str, label: str) -> str:
    return (
        f'<rect x="{x}" y="{y}" width="{length:.1f}" height="14" fill="{colour}"/>'
        f'<text x="{x + length + 5:.1f}" y="{y + 11}">{label}</text>'
    )


def draw(rows: list[tuple[str, float, float, float]]) -> str:
    top = 52
    second = LEFT + WIDTH + 70
    largest = max(row[1] for row in rows)
    parts = [
        f'<text x="{LEFT}" y="24" font-weight="bold">relative error</text>',
        f'<text x="{second}" y="24" font-weight="bold">codes that are not zero</text>',
        f'<text x="{second + 230}" y="24" font-weight="bold">CPU time</text>',
    ]
    for i, (name, error, density, seconds) in enumerate(rows):
        y = top + i * ROW
        parts.append(
            f'<text x="{LEFT - 8}" y="{y + 11}" text-anchor="end">{name}</text>'
        )
        parts.append(bar(LEFT, y, WIDTH * error / largest, "#3b6ea5", f"{error:.3f}"))
        parts.append(bar(second, y, 150 * density, "#b9a26a", f"{100 * density:.0f} %"))
        parts.append(f'<text x="{second + 230}" y="{y + 11}">{seconds:.2f} s</text>')
    height = top + len(rows) * ROW + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{second + 310}" height="{height}" '
        'font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    A = np.load(sys.argv[1]).astype(np.float32)
    A = A / np.sqrt(np.mean(A**2, dtype=np.float64)).astype(np.float32)
    Path(sys.argv[2]).write_text(draw(measure(A)))


if __name__ == "__main__":
    main()
