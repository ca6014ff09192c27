"""The figures of the guide to joint dictionaries, as SVG.

OMP_NUM_THREADS=1 python benchmarks/joint_dictionaries_figures.py docs/images
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from ontogeny import concepts
from planted_lives import planted_lives

BLUE = "#3b6ea5"
SAND = "#b9a26a"
GREY = "#d8d8d8"
ROW = 15
CELL = 34


def text(x: float, y: float, words: str, extra: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" {extra}>{words}</text>'


def box(
    x: float, y: float, width: float, height: float, fill: str, opacity: float = 1.0
) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{fill}" '
        f'fill-opacity="{opacity:.2f}" stroke="#555" stroke-width="0.6"/>'
    )


def page(width: int, height: int, parts: list[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )


def idea() -> str:
    """Checkpoints stacked side by side, one code, and a decoder for each checkpoint."""
    rng = np.random.default_rng(1)
    names = ("step 0", "step 100", "step 1000")
    left = 350
    parts = [
        text(30, 24, "activations X, one block a checkpoint", 'font-weight="bold"'),
        text(left, 24, "one code U", 'font-weight="bold"'),
        text(left + 170, 24, "a decoder D for each checkpoint", 'font-weight="bold"'),
        text(300, 150, "≈", 'font-size="26"'),
        text(left + 128, 150, "×", 'font-size="22"'),
        text(30, 250, "Rows are tokens, the same ones in every block."),
        text(left, 250, "Few codes a token."),
        text(left + 170, 250, "Concept 3 is not written at step 0:"),
        text(left + 170, 266, "it is born later."),
    ]
    for i, name in enumerate(names):
        parts += [
            text(34 + 84 * i, 48, name),
            box(30 + 84 * i, 58, 76, 172, SAND, 0.35 + 0.2 * i),
        ]
        parts.append(text(left + 170 + 84 * i, 48, name))
    used = rng.uniform(size=(12, 4)) < 0.25
    used[0, 2] = used[5, 2] = True
    for row in range(12):
        for column in range(4):
            fill = BLUE if used[row, column] else "white"
            parts.append(box(left + 24 * column, 58 + 14.4 * row, 24, 14.4, fill))
    for i in range(3):
        for j, size in enumerate((1.0, 0.9, (0.0, 0.5, 1.0)[i], 0.7)):
            fill = "white" if size == 0 else BLUE
            parts.append(
                box(left + 170 + 84 * i, 88 + 26 * j, 76, 18, fill, max(size, 0.15))
            )
    for j in range(4):
        parts.append(text(left + 428, 101 + 26 * j, f"concept {j + 1}"))
    return page(860, 285, parts)


def lives() -> str:
    """Strengths over checkpoints of concepts found on planted data, and what was planted."""
    run = planted_lives(
        n=3000,
        m=48,
        steady=16,
        born=12,
        dying=6,
        turning=8,
        born_turning=0,
        random_state=1,
    )
    made = concepts.JointDictionary(60, n_active=2, readable=0.4)
    found = made.fit(run.activations, groups=run.texts)
    correlation = np.nan_to_num(np.corrcoef(run.codes.T, found.codes_.T))
    correlation = correlation[: len(run.born), len(run.born) :]
    chosen = [
        *np.flatnonzero(run.kind == "steady")[:4],
        *np.flatnonzero(run.kind == "dying")[:4],
        *np.flatnonzero(run.born >= 0)[:8],
    ]
    latents = correlation[chosen].argmax(axis=1)
    share = found.strength_[:, latents] / found.strength_[:, latents].max(axis=0)
    left = 150
    parts = [
        text(left, 22, "strength of the concept that was found", 'font-weight="bold"'),
        text(left + 400, 22, "planted, and said", 'font-weight="bold"'),
    ]
    parts += [text(left + CELL * t + 12, 44, str(t)) for t in range(len(share))]
    for i, (feature, latent) in enumerate(zip(chosen, latents, strict=True)):
        y = 52 + ROW * i
        parts.append(
            text(left - 10, y + 11, str(run.kind[feature]), 'text-anchor="end"')
        )
        for t, value in enumerate(share[:, i]):
            parts.append(box(left + CELL * t, y, CELL, ROW - 2, BLUE, float(value)))
        if run.born[feature] >= 0:
            mark = left + CELL * run.born[feature]
            parts.append(
                f'<path d="M{mark} {y - 1}v{ROW}" stroke="#c0392b" stroke-width="3"/>'
            )
            said = found.lives_.born[latent]
            words = f"born at {run.born[feature]}; said: {said if said >= 0 else 'no birth'}"
        elif run.gone[feature] >= 0:
            words = f"gone at {run.gone[feature]}; said: {found.lives_.gone[latent]}"
        else:
            words = f"steady; said: {found.lives_.kind[latent]}"
        parts.append(text(left + 400, y + 11, words))
    bottom = 52 + ROW * len(chosen) + 20
    parts.append(
        text(left, bottom, "checkpoint, from left to right; red: the planted birth")
    )
    return page(760, bottom + 14, parts)


def main() -> None:
    folder = Path(sys.argv[1])
    (folder / "joint-idea.svg").write_text(idea())
    (folder / "joint-lives.svg").write_text(lives())


if __name__ == "__main__":
    main()
