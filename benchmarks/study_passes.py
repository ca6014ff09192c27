"""Forward tokens of a study, as multiples of a bare pass of its texts: the run, then its controls.

    OMP_NUM_THREADS=1 python benchmarks/study_passes.py STUDY.toml FOLDER

Runs the study file in one process into a new folder, and counts the tokens that the model's blocks
are given, by what asked for them: a pass that ends at a block counts as the share of blocks that it
runs, and trees of texts count as well. Readings are the checkpoints of the run, or of all controls
together.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from torch import nn

from ontogeny.study.file import read_study
from ontogeny.trajectory import Trajectory

_BATCH = 16  # texts, as studies take by default


def asked() -> tuple[str, str]:
    """Return the part of the study that runs the model, and what in it asked for that."""
    frame: Any = sys._getframe(2)
    part = "before the start"
    what = ""
    while frame is not None:
        name = frame.f_code.co_name
        place = frame.f_locals
        if name == "_read_together":
            what = what or (
                "pass for attention maps" if place["source"].key.eager else "pass"
            )
        elif name == "_states":
            what = what or "scales of norms"
        elif "features" in (path := Path(frame.f_code.co_filename)).parts:
            what = what or path.stem
        if name == "compute_task":
            is_control = ": " in place["task"].label
            part = "controls" if is_control else "run"
        frame = frame.f_back
    return part, what or "checks"


def blocks_of(run: Trajectory) -> tuple[type[nn.Module], int]:
    """Return the class of a model's blocks, and how many it has: those of its longest list."""
    model = run[int(run.steps[0])].model()
    lists = [part for part in model.modules() if isinstance(part, nn.ModuleList)]
    longest = max(lists, key=len)
    return type(longest[0]), len(longest)


def main() -> None:
    """Run the study and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("folder")
    options = parser.parse_args()
    study = read_study(options.file)
    block, count = blocks_of(study.trajectory)
    tokens: Counter[tuple[str, str]] = Counter()
    forward: Any = block.forward

    def counting(self: nn.Module, states: Any, *given: Any, **named: Any) -> Any:
        tokens[asked()] += states.shape[0] * states.shape[1] / count
        return forward(self, states, *given, **named)

    block.forward = counting  # type: ignore[method-assign]
    study.run(options.folder)
    first = next(iter(study.inputs.values()))
    bare = sum(batch.ids.size for batch in first.batches(_BATCH))
    readings = {"run": len(study.trajectory), "before the start": 1}
    runs = Path(options.folder).glob("runs/*/cells/loss/*.safetensors")
    # A control begins with what the run has read.
    readings["controls"] = len(list(runs)) - study.control_runs[0]
    print(
        f"a bare pass: {bare:,} tokens; all: {sum(tokens.values()) / bare:.2f} passes"
    )
    for part in ("before the start", "run", "controls"):
        rows = {what: n / bare for (of, what), n in tokens.items() if of == part}
        if rows:
            per = sum(rows.values()) / max(readings[part], 1)
            print(
                f"{part}: {sum(rows.values()):.2f} passes, {per:.2f} for each reading"
            )
        for what, passes in sorted(rows.items(), key=lambda row: -row[1]):
            print(f"  {passes:7.2f}  {what}")


if __name__ == "__main__":
    main()
