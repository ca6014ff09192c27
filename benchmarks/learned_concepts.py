"""What `learned-concepts` says of planted lives, and which number tells a run from its controls.

    env OMP_NUM_THREADS=1 python benchmarks/learned_concepts.py planted OUT.jsonl [--draws 20]
    env OMP_NUM_THREADS=1 python benchmarks/learned_concepts.py controls OUT.jsonl --run RUN TEXTS

Both resume: a line is written for each draw, and those that are in the file are not made again.
``planted`` draws codes and checkpoints for each case and counts what is found, recalled, exact and
falsely born. ``controls`` takes a folder of checkpoints and control runs of each kind as if each
were a run, at a few steps, and counts what is found, born and named in them, and how many components
of a control would be called surely born beside others of its kind.
"""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import ontogeny as og
from ontogeny.capture import activations
from ontogeny.concepts.beyond_token import Tokens, centred
from ontogeny.concepts.joint.snapshots import fixed_half
from ontogeny.dynamics.shares import wilson_interval
from ontogeny.features.learned_concepts.births import BORN, Curves, lives
from ontogeny.features.learned_concepts.checkpoint import presence
from ontogeny.features.learned_concepts.components import AGAIN, components
from ontogeny.features.learned_concepts.found import BEYOND, Finder
from ontogeny.features.learned_concepts.naming import Namer
from ontogeny.features.learned_concepts.parts import Predictor, scaled
from ontogeny.features.learned_concepts.places import Places
from ontogeny.inputs.pieces import pieces_of
from ontogeny.trajectory.untrained import norms_of, untrained_like, with_norms

STEPS = 12
TOKENS = 20_000
WIDTH = 64
CONCEPTS = 40
KINDS = ("walk", "turned", "scale")
CONTROLS = (1, 3)


class Case:
    """A planted run: codes, from which checkpoint to which each is written, and noise."""

    def __init__(self, name: str, seed: int) -> None:
        self.rng = np.random.default_rng([seed, len(name)])
        self.name = name
        rate = np.full(CONCEPTS, 0.02)
        if name == "rare":
            rate[:10] = 1 / 2000
        fires = self.rng.random((TOKENS, CONCEPTS)) < rate
        if name == "nested":  # the last ten fire only where the first ten do
            fires[:, -10:] = fires[:, :10] & (self.rng.random((TOKENS, 10)) < 0.4)
        self.codes = fires * self.rng.gamma(4, 0.5, size=fires.shape)
        # Words by their rank, in texts of 50; the first ten concepts of the case are words.
        token = np.minimum(self.rng.zipf(1.5, TOKENS), 200)
        self.tokens = Tokens(token, np.arange(TOKENS) // 50)
        if name == "token":
            self.codes[:, :10] = (token[:, None] == np.arange(3, 13)) * 2.0
        self.D = self.rng.normal(size=(CONCEPTS, WIDTH)) / np.sqrt(WIDTH)
        self.born = np.where(
            np.arange(CONCEPTS) % 2, self.rng.integers(3, 10, CONCEPTS), 0
        )
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
        return scaled(self.tokens.left(centred(X)))

    def counts(self) -> dict[str, float]:
        """Return what is found, recalled, exact and falsely born."""
        half = np.arange(TOKENS) < TOKENS // 2
        found = components(self.at(STEPS - 1), half, CONCEPTS, 0)
        found = found.kept(np.flatnonzero(found.again >= AGAIN))
        fits = np.concatenate([found.codes[None], found.halves])
        parts = [presence(Predictor(self.at(t), half), fits) for t in range(STEPS)]
        life = lives(
            Curves(*(np.stack(part, axis=1) for part in zip(*parts, strict=True)))
        )
        r = np.corrcoef(self.codes.T, found.codes.T)[:CONCEPTS, CONCEPTS:]
        which = np.abs(r).argmax(axis=0)
        best = np.abs(r).max(axis=0)
        truth = np.where(best >= 0.7, self.born[which], -1)
        born = life.kind == "born"
        there = (self.gone == STEPS) & (self.codes.any(axis=0))
        words = there & (self.name == "token") & (np.arange(CONCEPTS) < 10)
        there &= ~words
        planted = there & (self.born > 0)
        hit = born & (truth > 0)
        inside = hit & (life.after < truth) & (truth <= life.before)
        return {
            "found": len(set(which[best >= 0.7]) & set(np.flatnonzero(there)))
            / max(there.sum(), 1),
            "recalled": len(set(which[hit])) / planted.sum()
            if planted.any()
            else float("nan"),
            "exact": float((life.start == truth)[hit].mean())
            if hit.any()
            else float("nan"),
            "inside": float(inside.sum() / hit.sum()) if hit.any() else float("nan"),
            "false": float((born & (truth <= 0)).sum()),
            "words": len(set(which[best >= 0.7]) & set(np.flatnonzero(words))),
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
    cases = ("plain", "noisy", "rare", "nested", "dense", "fading", "token")
    keys = [f"{case} {draw}" for case in cases for draw in range(given.draws)]
    made = resumed(
        given.out, keys, lambda key: Case(key.split()[0], int(key.split()[1])).counts()
    )
    for case in cases:
        rows = [made[f"{case} {draw}"] for draw in range(given.draws)]
        rates = {
            name: [row[name] for row in rows if np.isfinite(row[name])]
            for name in rows[0]
        }
        print(
            case,
            *(
                f"{name} {np.mean(values):.3f}"
                for name, values in rates.items()
                if values
            ),
        )


def sets(given: argparse.Namespace) -> Callable[[str], dict[str, Any]]:
    """Return what makes the concepts of the run, or of one of its controls, from a key."""
    run = og.Trajectory.from_folder(given.run)
    tokenizer = run.tokenizer()
    inputs = og.Inputs.from_texts(texts_of(given), tokenizer, max_length=64)
    sample = inputs.sample("all", given.tokens, 0)
    unit = np.asarray(inputs.groups[sample.text])
    half = fixed_half(unit)
    column = inputs.mask.argmax(axis=1)[sample.text] + sample.position
    tokens = Tokens(inputs.ids[sample.text, column], unit)
    places = Places(inputs, sample, pieces_of(tokenizer))
    few = np.linspace(0, len(run.steps) - 1, given.steps).round().astype(int)
    steps = [int(run.steps[i]) for i in few]

    def left(model: torch.nn.Module) -> np.ndarray:
        (A,) = activations(model, inputs, given.layer, "all", given.tokens).values()
        return scaled(tokens.left(centred(A.numpy())))

    first = left(run[steps[0]].model())
    finder = Finder(
        namer=Namer(places, half, unit, 0),
        places=places,
        texts_shown=None,
        half=half,
        count=given.concepts,
        examples=1,
        seed=0,
    )

    def make(key: str) -> dict[str, Any]:
        kind, number = key.split()
        of = other_run(run, steps, kind, int(number))
        rows = {step: left(of[step].model()) for step in steps[1:]}
        start = of[steps[0]].model()
        # Other controls begin where the run does.
        rows[steps[0]] = left(start) if kind == "scale" else first
        grown = left(with_norms(start, norms_of(of[steps[-1]].model())))
        end = {steps[-1]: rows[steps[-1]]}
        state = finder.layer(rows[steps[0]], rows[steps[0]], end, [grown])
        codes = state["codes"].values.astype(np.float32)
        parts = [presence(Predictor(rows[step], half), codes) for step in steps]
        curves = Curves(*(np.stack(part, axis=1) for part in zip(*parts, strict=True)))
        life = lives(curves, grown=state["grown_readability"].values)
        by_curves = lives(curves)
        beyond = state["found_in"].values == BEYOND
        return {
            "found": int(state["n_again"]),
            "learned": int(state["n_learned"]),
            "born": ((life.kind == BORN) & beyond).tolist(),
            "by_curves": ((by_curves.kind == BORN) & beyond).tolist(),
            "name": state["named_phi"].values.tolist(),
            "about": state["named_about"].values.tolist(),
            "sharpness": state["sharpness"].values.tolist(),
            "again": state["again"].values.tolist(),
        }

    return make


def texts_of(given: argparse.Namespace) -> list[str]:
    """Return the texts of a file: JSON strings a line, or what stands between two marks."""
    text = given.texts.read_text()
    if given.texts.suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines()]
    return [part for part in text.split(given.between) if part.strip()]


def other_run(
    run: og.Trajectory, steps: list[int], kind: str, number: int
) -> og.Trajectory:
    """Return the run itself, a control run, or an untrained model that only grows, by 2 to 11."""
    if kind == "run":
        return run
    if kind != "scale":
        return run.control(kind, number)
    start = untrained_like(run[steps[0]].model(), number)
    grown = {}
    for i, step in enumerate(steps):
        model = copy.deepcopy(start)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter *= 1 + (1 + number % 10) * i / (len(steps) - 1)
        grown[step] = model
    return og.Trajectory.from_models(grown)


def controls(given: argparse.Namespace) -> None:
    """Print counts of the run and of each kind, and how often a control would be believed."""
    keys = ["run 0", *(f"{kind} {i}" for i in range(given.draws) for kind in KINDS)]
    made = resumed(given.out, keys, sets(given))
    own = made["run 0"]
    print(f"run: {own['found']} found, {sum(own['born'])} born, {named(own)} named")
    for kind in KINDS:
        parts = [made[f"{kind} {i}"] for i in range(given.draws)]
        spans = [
            (name, [count(part) for part in parts])
            for name, count in (
                ("found", lambda part: part["found"]),
                ("born", lambda part: sum(part["born"])),
                ("born by their curves alone", lambda part: sum(part["by_curves"])),
                ("named", named),
            )
        ]
        words = ", ".join(f"{min(n)} to {max(n)} {name}" for name, n in spans)
        print(f"{kind}: {words}; the same of the learned part", end=" ")
        print(min(p["learned"] for p in parts), "to", max(p["learned"] for p in parts))
        for count in CONTROLS:
            wrong, sure = believed(own, parts, count)
            sets_wrong = sum(n > 0 for n in wrong)
            low, high = wilson_interval(sets_wrong, len(parts))
            print(
                f"    beside {count}: in {sets_wrong} of {len(parts)} held-out controls "
                f"({100 * low:.1f} to {100 * high:.1f} %) a component is called surely born, "
                f"{sum(wrong)} of {sum(len(part['name']) for part in parts)} components; of the "
                f"run {np.mean(sure):.1f} ({min(sure)} to {max(sure)}) of {sum(own['born'])} births"
            )
        for name in ("sharpness", "again", "name"):
            print("   ", name, *told_apart(own[name], [part[name] for part in parts]))


def named(part: dict[str, Any]) -> int:
    """Return how many components of a set have a name."""
    return sum(value > 0 for value in part["name"])


def believed(
    own: dict[str, Any], parts: list[dict[str, Any]], count: int
) -> tuple[list[int], list[int]]:
    """Return how many components of each control are surely born beside the next `count` others,
    and how many of the run's own beside the same."""
    groups = [
        [parts[(i + k) % len(parts)] for k in range(1, count + 1)]
        for i in range(len(parts))
    ]
    wrong = [surely_born(*pair) for pair in zip(parts, groups, strict=True)]
    return wrong, [surely_born(own, others) for others in groups]


def surely_born(part: dict[str, Any], others: Iterable[dict[str, Any]]) -> int:
    """Return how many components are born and have a better name than all others about the same."""
    limits: dict[float, float] = {}
    for other in others:
        for about, phi in zip(other["about"], other["name"], strict=True):
            limits[about] = max(limits.get(about, 0.0), phi)
    rows = zip(part["born"], part["name"], part["about"], strict=True)
    return sum(born and phi > limits.get(about, 0.0) for born, phi, about in rows)


def told_apart(run: list[float], others: list[list[float]]) -> Iterator[str]:
    """Give the power beyond 95 % and beyond all of the controls, and the area under the curve."""
    pooled = np.array([value for part in others for value in part])
    if not len(pooled) or not run:
        return
    own = np.array(run)
    yield f"run beyond 95 % of them {np.mean(own > np.quantile(pooled, 0.95)):.2f},"
    yield f"beyond all {np.mean(own > pooled.max()):.2f},"
    yield f"area {np.mean(own[:, None] > pooled):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("planted", "controls"))
    parser.add_argument("out", type=Path)
    parser.add_argument("texts", type=Path, nargs="?")
    parser.add_argument("--run", type=Path)
    parser.add_argument("--layer", default="layers[2]")
    parser.add_argument(
        "--between", default="<|endoftext|>", help="what stands between texts"
    )
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--concepts", type=int, default=40)
    parser.add_argument("--draws", type=int, default=20)
    given = parser.parse_args()
    {"planted": planted, "controls": controls}[given.what](given)


if __name__ == "__main__":
    main()
