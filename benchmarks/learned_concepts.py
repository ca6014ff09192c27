"""What `learned-concepts` says of planted lives, and which number tells a run from its controls.

    env OMP_NUM_THREADS=1 python benchmarks/learned_concepts.py planted OUT.jsonl [--draws 20]
    env OMP_NUM_THREADS=1 python benchmarks/learned_concepts.py controls OUT.jsonl --run RUN TEXTS

Both resume: a line is written for each draw, and those that are in the file are not made again.
``planted`` draws codes and checkpoints for each case and counts what is found, recalled, exact and
falsely born. ``controls`` finds components of the learned part of a folder's last checkpoint and of
control runs of each kind, and prints how far each statistic tells the run from a kind: the share of
its components beyond those of the controls, and how often a held-out control is beyond the others.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import ontogeny as og
from ontogeny.capture import activations
from ontogeny.concepts.joint.snapshots import fixed_half
from ontogeny.features.learned_concepts.births import Curves, lives
from ontogeny.features.learned_concepts.checkpoint import presence
from ontogeny.features.learned_concepts.components import AGAIN, components
from ontogeny.features.learned_concepts.naming import Namer, strong
from ontogeny.features.learned_concepts.parts import Predictor, Tokens, centred, scaled
from ontogeny.features.learned_concepts.places import Places
from ontogeny.inputs.pieces import pieces_of

STEPS, TOKENS, WIDTH, CONCEPTS = 12, 20_000, 64, 40
KINDS = ("walk", "turned")


class Case:
    """A planted run: codes, from which checkpoint to which each is written, and noise."""

    def __init__(self, name: str, seed: int) -> None:
        self.rng, self.name = np.random.default_rng([seed, len(name)]), name
        rate = np.full(CONCEPTS, 0.02)
        if name == "rare":
            rate[:10] = 1 / 2000
        fires = self.rng.random((TOKENS, CONCEPTS)) < rate
        if name == "nested":  # the last ten fire only where the first ten do
            fires[:, -10:] = fires[:, :10] & (self.rng.random((TOKENS, 10)) < 0.4)
        self.codes = fires * self.rng.gamma(4, 0.5, size=fires.shape)
        self.D = self.rng.normal(size=(CONCEPTS, WIDTH)) / np.sqrt(WIDTH)
        self.born = np.where(np.arange(CONCEPTS) % 2, self.rng.integers(3, 10, CONCEPTS), 0)
        if name == "dense":
            self.born[:] = 0
        gone = (name == "fading") & (np.arange(CONCEPTS) % 4 == 0)
        self.gone = np.where(gone, self.rng.integers(9, STEPS, CONCEPTS), STEPS)
        self.noise = 0.6 if name == "noisy" else 0.3

    def at(self, step: int) -> np.ndarray:
        """Return the scaled rows of a checkpoint."""
        there = (step >= self.born) & (step < self.gone)
        X = (self.codes * there) @ self.D
        X += self.noise / np.sqrt(WIDTH) * self.rng.normal(size=X.shape)
        if self.name == "dense" and step == 2:
            size = np.sqrt(10 * X.var(axis=0).sum())
            direction = self.rng.normal(size=WIDTH)
            direction *= size / np.linalg.norm(direction)
            X += self.rng.normal(size=(TOKENS, 1)) * direction
        return scaled(X)

    def counts(self) -> dict[str, float]:
        """Return what is found, recalled, exact and falsely born."""
        half = np.arange(TOKENS) < TOKENS // 2
        found = components(self.at(STEPS - 1), half, CONCEPTS, 0)
        found = found.kept(np.flatnonzero(found.again >= AGAIN))
        fits = np.concatenate([found.codes[None], found.halves])
        parts = [presence(Predictor(self.at(t), half), fits) for t in range(STEPS)]
        life = lives(Curves(*(np.stack(part, axis=1) for part in zip(*parts, strict=True))))
        r = np.corrcoef(self.codes.T, found.codes.T)[:CONCEPTS, CONCEPTS:]
        which, best = np.abs(r).argmax(axis=0), np.abs(r).max(axis=0)
        truth = np.where(best >= 0.7, self.born[which], -1)
        born, there = life.kind == "born", (self.gone == STEPS) & (self.codes.any(axis=0))
        planted = there & (self.born > 0)
        hit = born & (truth > 0)
        inside = hit & (life.after < truth) & (truth <= life.before)
        return {
            "found": len(set(which[best >= 0.7]) & set(np.flatnonzero(there)))
            / max(there.sum(), 1),
            "recalled": len(set(which[hit])) / planted.sum() if planted.any() else float("nan"),
            "exact": float((life.start == truth)[hit].mean()) if hit.any() else float("nan"),
            "inside": float(inside.sum() / hit.sum()) if hit.any() else float("nan"),
            "false": float((born & (truth <= 0)).sum()),
        }


def resumed(out: Path, keys: list[str], make: Callable[[str], Any]) -> dict[str, Any]:
    """Return what is made of each key; lines that the file holds are not made again."""
    lines = out.read_text().splitlines() if out.exists() else []
    made = dict(json.loads(line) for line in lines)
    with out.open("a") as file:
        for key in keys:
            if key not in made:
                made[key] = make(key)
                file.write(json.dumps([key, made[key]]) + "\n")
                file.flush()
    return {key: made[key] for key in keys}


def planted(given: argparse.Namespace) -> None:
    """Print the rates of every case."""
    cases = ("plain", "noisy", "rare", "nested", "dense", "fading")
    keys = [f"{case} {draw}" for case in cases for draw in range(given.draws)]
    made = resumed(given.out, keys, lambda key: Case(key.split()[0], int(key.split()[1])).counts())
    for case in cases:
        rows = [made[f"{case} {draw}"] for draw in range(given.draws)]
        rates = {name: [row[name] for row in rows if np.isfinite(row[name])] for name in rows[0]}
        print(case, *(f"{name} {np.mean(values):.3f}" for name, values in rates.items() if values))


def sets(given: argparse.Namespace) -> Callable[[str], dict[str, list[float]]]:
    """Return what makes the components of the run, or of one of its controls, from a key."""
    run = og.Trajectory.from_folder(given.run)
    tokenizer = run.tokenizer()
    texts = [text for text in given.texts.read_text().split(given.between) if text.strip()]
    inputs = og.Inputs.from_texts(texts, tokenizer, max_length=128)
    sample = inputs.sample("later", given.tokens, 0)
    unit = np.asarray(inputs.groups[sample.text])
    half, tokens = fixed_half(unit), Tokens(inputs.ids[sample.text, sample.position], unit)
    namer = Namer(Places(inputs, sample, pieces_of(tokenizer)), half, unit, 0)

    def left(trajectory: og.Trajectory, step: int) -> np.ndarray:
        model = trajectory[step].model()
        (A,) = activations(model, inputs, given.layer, "later", given.tokens).values()
        return tokens.left(centred(A.numpy()))

    first = scaled(left(run, int(run.steps[0])))

    def make(key: str) -> dict[str, list[float]]:
        kind, number = key.split()
        of = run if kind == "run" else run.control(kind, int(number))
        rows = left(of, int(of.steps[-1]))
        rows = scaled(rows - Predictor(first, half).of(rows))
        found = components(rows, half, given.concepts, int(number))
        found = found.kept(np.flatnonzero(found.again >= AGAIN))
        names = [namer.name(column) for column in strong(found.codes).T]
        return {
            "again": found.again.tolist(),
            "sharpness": found.sharpness.tolist(),
            "name": [name.phi for name in names],
            "detection": [name.auc for name in names],
        }

    return make


def controls(given: argparse.Namespace) -> None:
    """Print how far each statistic tells the run's components from those of each kind."""
    keys = ["run 0", *(f"{kind} {i}" for kind in KINDS for i in range(given.draws))]
    made = resumed(given.out, keys, sets(given))
    for kind in KINDS:
        parts = [made[f"{kind} {i}"] for i in range(given.draws)]
        counts = [len(part["again"]) for part in parts]
        print(
            f"{kind}: {min(counts)} to {max(counts)} components, run {len(made['run 0']['again'])}"
        )
        for name in made["run 0"]:
            print("   ", name, *told_apart(made["run 0"][name], [part[name] for part in parts]))


def told_apart(run: list[float], others: list[list[float]]) -> Iterator[str]:
    """Give the power beyond 95 % of all controls, the error of held-out sets, and the area."""
    pooled = np.array([value for part in others for value in part])
    if not len(pooled) or not run:
        return
    yield f"run beyond 95 % of them {np.mean(np.array(run) > np.quantile(pooled, 0.95)):.2f}"
    errors = []
    for i, part in enumerate(others):
        rest = np.array([v for j, other in enumerate(others) if j != i for v in other])
        if len(rest):
            errors.append(any(value > rest.max() for value in part))
    yield f"sets with one beyond all others {np.mean(errors):.2f}"
    yield f"run beyond all of them {np.mean(np.array(run) > pooled.max()):.2f}"
    yield f"area {np.mean(np.array(run)[:, None] > pooled):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("planted", "controls"))
    parser.add_argument("out", type=Path)
    parser.add_argument("texts", type=Path, nargs="?")
    parser.add_argument("--run", type=Path)
    parser.add_argument("--layer", default="layers[2]")
    parser.add_argument("--between", default="<|endoftext|>", help="what stands between texts")
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--concepts", type=int, default=40)
    parser.add_argument("--draws", type=int, default=20)
    given = parser.parse_args()
    {"planted": planted, "controls": controls}[given.what](given)


if __name__ == "__main__":
    main()
