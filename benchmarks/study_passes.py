"""Forward tokens of a study, as multiples of a bare pass of its texts: the run, then its controls.

    OMP_NUM_THREADS=1 python benchmarks/study_passes.py STUDY.toml FOLDER

Runs the study file in one process into a new folder, and counts the token ids that models are
given, by what asked for them. Passes that end at a layer count whole. Readings are the checkpoints
of the run, or of all controls together.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from ontogeny.capture import forward
from ontogeny.study.file import read_study

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


def main() -> None:
    """Run the study and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("folder")
    options = parser.parse_args()
    tokens: Counter[tuple[str, str]] = Counter()
    called = forward._called

    def counting(model: Any, ids: Any, inputs: Any) -> Any:
        tokens[asked()] += ids.numel()
        return called(model, ids, inputs)

    forward._called = counting
    study = read_study(options.file)
    study.run(options.folder)
    first = next(iter(study.inputs.values()))
    bare = sum(batch.ids.size for batch in first.batches(_BATCH))
    readings = {"run": len(study.trajectory), "before the start": 1}
    runs = Path(options.folder).glob("runs/*/cells/loss/*.safetensors")
    readings["controls"] = len(list(runs))
    print(f"a bare pass: {bare:,} tokens")
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
