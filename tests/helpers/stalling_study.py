"""Run a study that stops for good at one step: ``python stalling_study.py RUN OUT``."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import xarray as xr

import ontogeny as og
from helpers.study_examples import tiny_inputs
from ontogeny import needs
from ontogeny.observables import Observable

AT = 2
STALLS = None  # a file to make before it stops; None goes on
SEEN = []


@dataclass(frozen=True)
class Stalling(Observable):
    """The size of the weights, and a stop on the way."""

    kind: ClassVar[str] = "stalling"

    def needs(self):
        return [needs.Model()]

    def observe(self, reading, state):
        SEEN.append(reading.step)
        if STALLS is not None and reading.step == AT:
            STALLS.touch()
            while True:
                time.sleep(1)
        squares = [
            float(p.detach().square().sum())
            for p in reading[needs.Model()].parameters()
        ]
        return xr.Dataset({"size": np.float64(sum(squares))})


def study(run):
    trajectory = og.Trajectory.from_folder(run)
    return og.Study(trajectory, tiny_inputs(), [Stalling()], device="cpu", noise=0)


if __name__ == "__main__":
    run, out = sys.argv[1:3]
    from helpers import stalling_study as this  # what the study calls, not the script

    this.STALLS = Path(out).with_suffix(".stalled")
    this.study(run).run(out)
