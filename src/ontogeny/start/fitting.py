"""What to leave out of a large study, so that it keeps within a budget of hours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from ..errors import ArgumentError
from ..machine import size_text
from ..words.formats import plural
from .paper import GPU_MEMORY, GPU_RATE, Bill, Paper, Wanted, check_fits

FEW_CONTROLS = 4  # see the guide on nulls
_FEW_STEPS = 6
_STEPS = 24  # of a standard study
_FEWEST = 3  # checkpoints of which anything is said


def lines_on_paper(paper: Paper, devices: int, hours: float | None = None) -> list[str]:
    """Return what a study takes on so many devices, and what to leave out to fit in some hours.

    Raises
    ------
    ArgumentError
        If the model fits nowhere, or the hours are too few for anything.
    """
    wanted = Wanted.of(paper.study)
    memory, assumed = _gpus(devices)
    if not torch.cuda.is_available():
        paper = replace(paper, memory=devices * memory)
    bill = paper.bill(wanted)
    held = paper.bytes_held(wanted)
    lines = [
        *_about_model(paper, wanted),
        f"passes: {bill.passes:,} over the inputs, {bill.tokens:,} tokens",
        _to_read(paper, wanted, bill),
        f"memory of a device: about {size_text(held)} of {size_text(memory)}",
        f"on disk: {size_text(paper.bytes_stored(wanted))} of references, and the cells",
        assumed,
    ]
    if too_small := check_fits(held, paper.model, devices, memory):
        lines.append(too_small)
    lines += _hours(paper, wanted, bill, devices)
    if hours is not None:
        lines += _to_fit(paper, wanted, devices, hours)
    return lines


def _gpus(devices: int) -> tuple[float, str]:
    """Return the memory of a device, and what is assumed of devices."""
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    memory = (
        float(torch.cuda.get_device_properties(0).total_memory) if there else GPU_MEMORY
    )
    rate = f"{GPU_RATE / 1e12:.0f} TFLOP/s"
    if there >= devices:
        return memory, f"assumed of each device: {rate}"
    which = "no GPU" if not there else plural(there, "GPU")
    gpus = f"{plural(devices, 'device')} of {size_text(memory)} and {rate}"
    beside = (
        ""
        if there
        else f", and as much memory beside them ({size_text(devices * memory)})"
    )
    return memory, f"assumed: {gpus}{beside}, as this machine has {which}"


def _to_read(paper: Paper, wanted: Wanted, bill: Bill) -> str:
    """Return what is read from the disk, and why it is not more or less."""
    if paper.is_kept(wanted):
        why = "once, as the memory keeps all of them"
    elif paper.memory is None:
        why = "as the memory of this machine cannot be known"
    elif not paper.is_read_by_step(wanted):
        why = "as the memory keeps no two checkpoints"
    else:
        matrices = [o.name for o in wanted.observables if o.over_blocks]
        more = f", and once more for {', '.join(matrices)}" if matrices else ""
        why = f"each checkpoint once{more}"
    more = f" ({size_text(bill.asked)} are asked for)" if bill.read < bill.asked else ""
    return f"to read: {size_text(bill.read)} of weights, {why}{more}"


def _about_model(paper: Paper, wanted: Wanted) -> list[str]:
    model = paper.model
    size = f"{model.parameters / 1e9:.3g} billion parameters"
    of_runs = (
        f", {wanted.controls} control runs at {plural(wanted.control_steps, 'step')}"
    )
    steps = f"{plural(wanted.steps, 'checkpoint')}{of_runs if wanted.controls else ''}"
    lines = [
        f"from headers alone: {size}, {size_text(model.stored)} a checkpoint, {steps}"
    ]
    absent = [c for c in paper.study.trajectory if not c.is_downloaded]
    if absent:
        fetched = size_text(model.stored * len(absent))
        lines.append(f"to download: {plural(len(absent), 'checkpoint')}, {fetched}")
    if model.module is None:
        lines.append(
            "passes are counted by input sets: the model is not built without weights"
        )
    if not model.width:
        lines.append(
            "fits and activations are not counted: the configuration has no width of the model"
        )
    return lines


def _hours(paper: Paper, wanted: Wanted, bill: Bill, devices: int) -> list[str]:
    cores = {**bill.alone, **bill.shared}
    parts = ", ".join(
        f"{name} {_time(seconds)}"
        for name, seconds in sorted(cores.items(), key=lambda part: -part[1])
    )
    here = paper.on_this_machine().bill(wanted).on_devices
    on = f"{plural(devices, 'device')}, each with one core and one process"
    return [
        f"devices: {_time(bill.on_devices)} of one; on one core of this machine {_time(here)}",
        f"cores: {_time(sum(cores.values()))} of one: {parts}",
        f"time: about {_time(3600 * bill.hours(devices))} on {on}",
    ]


def _to_fit(paper: Paper, wanted: Wanted, devices: int, hours: float) -> list[str]:
    """Return what to leave out, one line for each choice, until the rest fits."""
    before = paper.bill(wanted).hours(devices)
    if before <= hours:
        return [f"within {_time(3600 * hours)}: nothing has to be left out"]
    lines = []
    for words, less in _choices(paper, wanted):
        after = paper.bill(less).hours(devices)
        if after < before:
            lines.append(
                f"leave out: {words}, which saves {_time(3600 * (before - after))}"
            )
            before = after
        if before <= hours:
            left = _time(3600 * before)
            return [*lines, f"within {_time(3600 * hours)}: the rest takes {left}"]
    raise ArgumentError(
        f"--budget of {_time(3600 * hours)} is too small for anything: the least, "
        f"{less.observables[0].name} at {plural(less.steps, 'checkpoint')} without control runs, "
        f"takes {_time(3600 * before)}; take more devices or another budget."
    )


def _choices(paper: Paper, wanted: Wanted) -> Iterator[tuple[str, Wanted]]:
    """Yield what may be left out, one after the other, from what is missed least."""
    if wanted.controls > FEW_CONTROLS:
        words = f"control runs from {wanted.controls} to {FEW_CONTROLS}"
        wanted = replace(wanted, controls=FEW_CONTROLS)
        yield words, wanted
    if wanted.controls and wanted.control_steps > _FEW_STEPS:
        words = f"steps of control runs from {wanted.control_steps} to {_FEW_STEPS}"
        wanted = replace(wanted, control_steps=_FEW_STEPS)
        yield words, wanted
    while wanted.steps >= 2 * _STEPS:
        words, wanted = _halved(wanted)
        yield words, wanted
    own = paper.bill(wanted).shared
    for observable in sorted(wanted.observables, key=lambda o: -own.get(o.name, 0.0)):
        if own.get(observable.name) and len(wanted.observables) > 1:
            rest = tuple(o for o in wanted.observables if o is not observable)
            wanted = replace(wanted, observables=rest)
            yield observable.name, wanted
    while wanted.steps > 2 * _FEWEST:
        words, wanted = _halved(wanted)
        yield words, wanted
    if wanted.controls:
        wanted = replace(wanted, controls=0)
        yield "all control runs", wanted
    least = wanted.observables[:1]
    steps = min(_FEWEST, wanted.steps)
    yield f"all but {least[0].name}", replace(wanted, observables=least, steps=steps)


def _halved(wanted: Wanted) -> tuple[str, Wanted]:
    half = (wanted.steps + 1) // 2
    words = f"checkpoints from {wanted.steps} to {half}"
    steps = min(wanted.control_steps, half)
    return words, replace(wanted, steps=half, control_steps=steps)


def _time(seconds: float) -> str:
    """Return seconds, minutes or hours, to what they are worth.

    Examples
    --------
    >>> _time(40), _time(600), _time(9000), _time(0.2)
    ('40 s', '10 min', '2.5 h', '0.2 s')
    """
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 1 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
