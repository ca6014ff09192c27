"""A study that waits at two steps until it is let go, and says which process does."""

import os
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

LONG = 600  # seconds; nothing here takes them unless it hangs
GATES = (4, 8)


@dataclass(frozen=True)
class Gated(Observable):
    """The size of the weights."""

    kind: ClassVar[str] = "gated"
    folder: str = ""

    def needs(self):
        return [needs.Model()]

    def observe(self, reading, state):
        if reading.step in GATES:
            gate = Path(self.folder, f"{reading.step}.go")
            gate.with_suffix(".tmp").write_text(str(os.getpid()))
            gate.with_suffix(".tmp").rename(gate.with_suffix(".at"))
            wait_for(gate.exists)
        squares = [
            float(p.detach().square().sum())
            for p in reading[needs.Model()].parameters()
        ]
        return xr.Dataset({"size": np.float64(sum(squares))})


def study(trajectory, folder):
    """Return a study whose gates are files in `folder`."""
    return og.Study(
        trajectory, tiny_inputs(), [Gated(str(folder))], device="cpu", noise=0
    )


def wait_for(found):
    """Return what `found` gives as soon as it is true."""
    end = time.monotonic() + LONG
    while not (value := found()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return value


def process_at(folder, step):
    """Return the id of the process that is at a gate."""
    path = Path(folder, f"{step}.at")
    wait_for(path.exists)
    return int(path.read_text())
