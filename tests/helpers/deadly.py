"""An observable that kills the process that computes it."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import xarray as xr

from ontogeny import needs
from ontogeny.observables import Observable


@dataclass(frozen=True)
class Deadly(Observable):
    """Kills its process at one step, the first so many times, and notes each time it was tried."""

    tried: str = ""
    times: int = 9
    step: int = 4
    kind: ClassVar[str] = "deadly"

    def needs(self):
        return [needs.InputSet()]

    def observe(self, reading, state):
        if reading.step == self.step:
            with Path(self.tried).open("a+") as file:
                file.write(".")
                deaths = file.tell()
            if deaths <= self.times:
                os.kill(os.getpid(), signal.SIGKILL)
        return xr.Dataset({"x": 1.0})


def assert_lost(tree, steps):
    """Check that exactly these steps failed, as their worker was killed twice."""
    assert [step for row in tree.problems() for step in row.steps] == steps
    assert all("killed twice" in row.why for row in tree.problems())
    assert (tree["deadly"].x.drop_sel(step=steps) == 1).all()
