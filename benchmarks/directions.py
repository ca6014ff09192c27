"""How often a planted direction is dated to its checkpoint, and how often controls give a date.

    env OMP_NUM_THREADS=1 python benchmarks/directions.py OUT.jsonl [--draws 200]

It resumes: a line is written for each draw, and those that are in the file are not made again.
Activations are drawn with a spectrum that falls as 1/k, and drift from one checkpoint to the next.
From a random checkpoint on one direction carries the label of the text (``labels``) or varies by
itself (``plain``). In ``control`` cases it never does: an arbitrary direction is asked about.
``words`` asks a probe for a label of the word before, which the layer holds from a checkpoint on;
``features`` follows 40 features of a dictionary, half of them written from a checkpoint on.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr

from ontogeny.claims import Certainty, Claim
from ontogeny.concepts.joint.snapshots import fixed_half
from ontogeny.features.directions.dictionary import agreements
from ontogeny.features.directions.dictionary_lives import with_features
from ontogeny.features.directions.encoding import Encoding
from ontogeny.features.directions.measured import Rows, aucs, shares, unit_rows
from ontogeny.features.directions.read_claims import claims_of_reading
from ontogeny.features.probes.fits import control_labels, majority, right
from ontogeny.features.probes.probed import claims_of_probe
from ontogeny.observables import by_layer
from ontogeny.observables.random_directions import random_directions
from ontogeny.quantities import Measured
from ontogeny.units import Units

STEPS, TEXTS, LENGTH, WIDTH = 12, 100, 12, 64
CASES = ("labels", "labels control", "plain", "plain control")
WORDS = ("words", "words control")
FEATURES = ("features", "features control")
EVERY = (*CASES, *WORDS, *FEATURES)


def result_of(case: str, seed: int) -> dict[str, Any]:
    """Return what is claimed of one drawn run, and from which step on it was planted."""
    if case in WORDS:
        return of_words(case, seed)
    return of_features(case, seed) if case in FEATURES else of_direction(case, seed)


def claimed(case: str, seed: int, born: int, claim: Claim) -> dict[str, Any]:
    """Return what one claim says of a planted step."""
    return {
        "case": case,
        "seed": seed,
        "born": born,
        "sure": claim.certainty is Certainty.SURE,
        "since": claim.since,
        "covered": bool(claim.since_low <= born <= claim.since_high),
    }


def over_steps(cells: list[xr.Dataset]) -> xr.Dataset:
    """Return cells along the steps, of which the last one is the reference."""
    steps = xr.DataArray(np.arange(STEPS), dims="step", name="step")
    return xr.concat(cells, dim=steps).assign_attrs(reference_step=STEPS - 1)


def of_words(case: str, seed: int) -> dict[str, Any]:
    """Draw word types and a label of the word before, which a layer holds from a step on."""
    rng = np.random.default_rng([seed, EVERY.index(case)])
    kinds = rng.integers(0, 150, (TEXTS, LENGTH))
    label = (np.roll(kinds, 1, axis=1) < 75).astype(int)
    kind, label = kinds.ravel(), label.ravel()
    text = np.repeat(np.arange(TEXTS), LENGTH)
    units = Units(text)
    half = fixed_half(text)
    tasks = control_labels(kind.astype(str), label, 5, seed)
    common = majority(label, half)
    rows, unit = rng.normal(size=(150, WIDTH)), rng.normal(size=WIDTH)
    born = int(rng.integers(2, STEPS - 1))
    cells = []
    for step in range(STEPS):
        A = rows[kind] + rng.normal(size=(len(kind), WIDTH))
        if step >= born and "control" not in case:
            A = A + np.outer(0.6 * (label - 0.5), unit)
        told = right(A.astype(np.float32), np.concatenate([label[None], tasks]), half)
        values, counts = units.means(np.concatenate([told, common[None]]))
        own = Measured(
            float(told[0].mean()),
            of_text=("text", values[0]),
            weights=("text", counts),
            nulls={
                "types": ("draw", told[1:].mean(axis=1)),
                "majority": float(common.mean()),
            },
        )
        measured = {
            "accuracy": own,
            "types_of_text": ("text", values[1:-1].mean(axis=0)),
            "majority_of_text": ("text", values[-1]),
        }
        cells.append(by_layer({"h": A}, lambda path, _, m=measured: m))
    (claim,) = claims_of_probe("probe", over_steps(cells), "label")
    return claimed(case, seed, born, claim)


def of_features(case: str, seed: int) -> dict[str, Any]:
    """Draw 40 features that fire on 2 % of the tokens, of which half are written from a step on.

    In controls all are written from the start.
    """
    rng = np.random.default_rng([seed, EVERY.index(case)])
    n = TEXTS * LENGTH * 2
    units = Units(np.repeat(np.arange(2 * TEXTS), LENGTH))
    codes = (rng.random((n, 40)) < 0.02) * rng.gamma(4, 0.5, (n, 40))
    late = np.arange(40) % 2 == 0
    born = np.where(late, rng.integers(3, STEPS - 1, 40), 0)
    if "control" in case:
        born[:] = 0
    D = unit_rows(rng.normal(size=(40, WIDTH)))
    weights = {"W_enc": D.T, "W_dec": D, "b_enc": np.full(40, -0.8)}
    weights["b_dec"] = np.zeros(WIDTH)
    encoding = Encoding({k: torch.from_numpy(v).float() for k, v in weights.items()})

    def rows(step: int) -> torch.Tensor:
        A = (codes * (step >= born)) @ D + 0.1 * rng.normal(size=(n, WIDTH))
        return torch.from_numpy(A).float()

    last = encoding.both(rows(STEPS - 1))[0]
    cells = []
    for step in range(STEPS):
        found = encoding.both(rows(step))[0]
        size = (found.double() ** 2).mean(dim=0).sqrt().numpy()
        cell = {
            "agreement": (("part", "feature"), agreements(found, last, units)),
            "firing": ("feature", (found > 0).double().mean(dim=0).numpy()),
            "written": ("feature", size),
        }
        cells.append(by_layer({"h": found}, lambda path, _, m=cell: m))
    lives = with_features(over_steps(cells), {}, tuple(range(40)), 40).sel(layer="h")
    dated = lives.shown_born.values
    there = np.isfinite(dated)
    truly = born > 0
    low, high = (lives[f"shown_born_{end}"].values for end in ("after", "before"))
    return {
        "case": case,
        "seed": seed,
        "planted": int(truly.sum()),
        "born_right": int((there & truly).sum()),
        "born_wrong": int((there & ~truly).sum()),
        "exact": int((there & truly & (dated == born)).sum()),
        "held": int((there & truly & (low <= born) & (born <= high)).sum()),
    }


def of_direction(case: str, seed: int) -> dict[str, Any]:
    """Draw a run of activations that comes to hold a direction, and ask about it."""
    rng = np.random.default_rng([seed, CASES.index(case)])
    unit = unit_rows(rng.normal(size=(1, WIDTH)))
    of_text = rng.random(TEXTS) < 0.5
    labels = np.repeat(of_text, LENGTH)[None]
    units = np.repeat(np.arange(TEXTS), LENGTH)
    born = int(rng.integers(2, STEPS - 1))
    spectrum = 1 / np.sqrt(np.arange(1, WIDTH + 1))
    turn = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0] * spectrum
    fixed = rng.normal(size=(TEXTS * LENGTH, WIDTH))
    cells = []
    for step in range(STEPS):
        fixed = 0.9 * fixed + np.sqrt(1 - 0.9**2) * rng.normal(size=fixed.shape)
        A = fixed @ turn.T
        if step >= born and "control" not in case:
            code = labels[0] - 0.5 if case == "labels" else rng.exponential(size=len(A))
            A = A + np.outer((1.0 if case == "labels" else 3.0) * code, unit[0])
        rows = Rows.of(A.astype(np.float32), units)
        random = random_directions(rows.A, 200, [seed, step]).astype(np.float32)
        u = unit.astype(np.float32)
        measured = (
            {"auc": aucs(rows, u, random, labels)}
            if case.startswith("labels")
            else {"share": shares(rows, u, random)}
        )
        cells.append(by_layer({"h": rows}, lambda path, _, m=measured: m))
    data = over_steps(cells).assign_coords(direction=["planted"])
    name = "auc" if case.startswith("labels") else "share"
    (claim,) = claims_of_reading("directions", data, name)
    return claimed(case, seed, born, claim)


def drawn(
    description: str,
    draws: int,
    cases: Sequence[str],
    result_of: Callable[[str, int], dict[str, Any]],
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Draw what is missing in the file that the command line names; give the results of each case."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("out", type=Path)
    parser.add_argument("--draws", type=int, default=draws)
    options = parser.parse_args()
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    done = [json.loads(line) for line in lines]
    there = {(one["case"], one["seed"]) for one in done}
    with options.out.open("a", buffering=1) as file:
        for seed in range(options.draws):
            for case in cases:
                if (case, seed) not in there:
                    done.append(result_of(case, seed))
                    file.write(json.dumps(done[-1]) + "\n")
    for case in cases:
        yield case, [one for one in done if one["case"] == case]


def main() -> None:
    """Draw what is missing, and print the rates of every case."""
    for case, some in drawn(__doc__, 200, EVERY, result_of):
        rates: Counter[str] = Counter()
        for one in some:
            counted = {k: v for k, v in one.items() if k not in ("case", "seed")}
            if case not in FEATURES:
                exact = one["sure"] and one["since"] == one["born"]
                held = one["sure"] and one["covered"]
                counted = {"sure": one["sure"], "exact": exact, "held": held}
            rates.update(counted)
        print(case, len(some), dict(rates))


if __name__ == "__main__":
    main()
