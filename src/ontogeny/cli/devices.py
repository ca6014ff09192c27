"""``--devices``: which GPUs a command takes, and what each of them does.

The command names GPUs to CUDA by the environment, before anything asks CUDA; all processes that it
starts see these alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ArgumentError

if TYPE_CHECKING:
    from ..study import Study

VISIBLE = "CUDA_VISIBLE_DEVICES"

Devices = Annotated[
    str | None,
    typer.Option(
        metavar="GPUS",
        help="Several GPUs: all, how many, or names such as cuda:0,cuda:2. A process on each, or, "
        "of a model larger than one, one process over all.",
    ),
]


def visible_gpus() -> list[str]:
    """Return the GPUs that this process may use, as ``CUDA_VISIBLE_DEVICES`` names them."""
    if VISIBLE in os.environ:
        names = (name.strip() for name in os.environ[VISIBLE].split(","))
        return list(takewhile(lambda name: name not in ("", "-1"), names))
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]


@dataclass(frozen=True)
class Sharing:
    """How processes share devices.

    Attributes
    ----------
    workers
        The processes that were asked for, or None.
    gpus
        How many GPUs were asked for, 0 of none.
    """

    workers: int | None = None
    gpus: int = 0

    @classmethod
    def of(cls, workers: int | None, devices: str | None) -> Sharing:
        """Return that of two options; this process and those it starts see these GPUs alone.

        Raises
        ------
        ArgumentError
            If the GPUs are not here, or named twice or in another way.
        """
        if devices is None:
            return cls(workers)
        chosen = chosen_of(devices, visible_gpus())
        os.environ[VISIBLE] = ",".join(chosen)
        import torch

        # The environment may name GPUs that are not here, or that this PyTorch cannot use.
        if not torch.cuda.is_available():
            raise ArgumentError(
                f"--devices takes GPUs that PyTorch can use; it cannot use {', '.join(chosen)} of "
                f"{VISIBLE}."
            )
        return cls(workers, len(chosen))

    @property
    def usual(self) -> int | None:
        """How many processes compute a model that fits on one device; None where nobody said."""
        return self.workers or self.gpus or None

    def processes(self, spec: Study, usual: int = 1) -> int:
        """Return how many processes compute a study; `usual` where nobody said.

        Raises
        ------
        ArgumentError
            If several were asked for and the model fills all devices, or its study names a device.
        """
        if _is_placed(spec):
            if self.workers is not None and self.workers > 1:
                raise ArgumentError(
                    "the model is larger than one device, and one process fills all of them; got "
                    f"--workers {self.workers}."
                )
            return 1
        if self.gpus and spec.device != "cuda":
            raise ArgumentError(
                '--devices goes with device = "auto" or "cuda" under [options]; the study has '
                f"{spec.device!r}."
            )
        return self.usual or usual

    def line(self, spec: Study, processes: int) -> str:
        """Return what each device does; empty where nothing was asked for."""
        if _is_placed(spec):
            return (
                "devices: the weights are larger than one device; accelerate places them, and one "
                "process computes"
            )
        if not self.gpus:
            return ""
        gpus = "1 GPU" if self.gpus == 1 else f"{self.gpus} GPUs"
        if processes == 1:
            return f"devices: {gpus}, one process"
        return f"devices: {gpus}, {processes} processes; each takes the next GPU"


def chosen_of(devices: str, here: Sequence[str]) -> list[str]:
    """Return which of the GPUs here are asked for.

    Raises
    ------
    ArgumentError
        As `Sharing.of`.

    Examples
    --------
    >>> chosen_of("cuda:2,cuda:0", ["4", "5", "6"]), chosen_of("2", ["4", "5", "6"])
    (['6', '4'], ['4', '5'])
    """
    if not here:
        raise ArgumentError(
            f"--devices takes GPUs, and PyTorch sees none here; got {devices!r}. Without it the CPU "
            "computes."
        )
    if devices == "all":
        return list(here)
    if devices.isdecimal():
        count = int(devices)
        if not 1 <= count <= len(here):
            raise ArgumentError(
                f"--devices must be from 1 to the {len(here)} GPUs that are here; got {devices}."
            )
        return list(here[:count])
    names = [name.strip() for name in devices.split(",")]
    if not all(re.fullmatch(r"cuda:[0-9]+", name) for name in names):
        raise ArgumentError(
            f"--devices must be all, a number, or names such as cuda:0,cuda:1; got {devices!r}."
        )
    numbers = [int(name.removeprefix("cuda:")) for name in names]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ArgumentError(f"--devices names {', '.join(sorted(twice))} twice.")
    if max(numbers) >= len(here):
        raise ArgumentError(
            f"--devices must be of cuda:0 to cuda:{len(here) - 1}, which are here; got {devices!r}."
        )
    return [here[number] for number in numbers]


def _is_placed(spec: Study) -> bool:
    from ..trajectory.placing import is_placed_run

    return is_placed_run(spec.trajectory)
