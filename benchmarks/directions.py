"""How often a planted direction is dated to its checkpoint, and how often controls give a date.

    env OMP_NUM_THREADS=1 python benchmarks/directions.py OUT.jsonl [--draws 200]

It resumes: a line is written for each draw, and those that are in the file are not made again.
Activations are drawn with a spectrum that falls as 1/k, and drift from one checkpoint to the next.
From a random checkpoint on one direction carries the label of the text (``labels``) or varies by
itself (``plain``). In ``control`` cases it never does: an arbitrary direction is asked about.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ontogeny.claims import Certainty
from ontogeny.features.directions.measured import Rows, aucs, shares, unit_rows
from ontogeny.features.directions.read_claims import claims_of_reading
from ontogeny.observables import by_layer
from ontogeny.observables.random_directions import random_directions

STEPS, TEXTS, LENGTH, WIDTH = 12, 100, 12, 64
CASES = ("labels", "labels control", "plain", "plain control")


def result_of(case: str, seed: int) -> dict[str, Any]:
    """Return what is claimed of one drawn run, and from which step on it was planted."""
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
    data = xr.concat(
        cells, dim=xr.DataArray(np.arange(STEPS), dims="step", name="step")
    )
    data = data.assign_coords(direction=["planted"])
    name = "auc" if case.startswith("labels") else "share"
    (claim,) = claims_of_reading("directions", data, name)
    return {
        "case": case,
        "seed": seed,
        "born": born,
        "sure": claim.certainty is Certainty.SURE,
        "since": claim.since,
        "covered": bool(claim.since_low <= born <= claim.since_high),
    }


def main() -> None:
    """Draw what is missing, and print the rates of every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--draws", type=int, default=200)
    options = parser.parse_args()
    lines = options.out.read_text().splitlines() if options.out.exists() else []
    done = [json.loads(line) for line in lines]
    there = {(one["case"], one["seed"]) for one in done}
    with options.out.open("a") as file:
        for seed in range(options.draws):
            for case in CASES:
                if (case, seed) not in there:
                    done.append(result_of(case, seed))
                    file.write(json.dumps(done[-1]) + "\n")
    for case in CASES:
        some = [one for one in done if one["case"] == case]
        rates = Counter()
        for one in some:
            rates["sure"] += one["sure"]
            rates["exact"] += one["sure"] and one["since"] == one["born"]
            rates["covered"] += one["sure"] and one["covered"]
        print(case, len(some), dict(rates))


if __name__ == "__main__":
    main()
