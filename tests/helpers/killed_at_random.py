"""Kill a study at random moments: ``python killed_at_random.py RUN OUT KILLS SEED``.

A moment is a number of files of the study that were opened, renamed, deleted or listed, not a
time: it is the same on a fast and on a slow machine, and falls where something changes.
``OUT/whole`` is never interrupted, ``OUT/killed`` is. Prints the moment and the exit status of
every start as JSON.
"""

import importlib
import json
import os
import random
import signal
import sys
from pathlib import Path

import ontogeny as og
from helpers.study_examples import LAYERS, tiny_inputs


def study(run):
    observables = [
        og.observables.Loss(),
        og.observables.ActivationDecay(LAYERS),
        og.observables.WeightRank("model.layers.0.mlp.*.weight", n_draws=4),
    ]
    trajectory = og.Trajectory.from_folder(run)
    options = {"device": "cpu", "noise": 2, "controls": 1, "control_steps": 3}
    return og.Study(trajectory, tiny_inputs(), observables, **options)


def forked(run, out, kill_at=None):
    """Run the study in a fork that may be killed at a moment; return (status, what it says)."""
    read, write = os.pipe()
    child = os.fork()
    if child:
        os.close(write)
        with os.fdopen(read) as pipe:
            said = pipe.read()
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), json.loads(
            said or "{}"
        )
    seen = 0

    def count(_, arguments):
        nonlocal seen
        if arguments and str(arguments[0]).startswith(str(out)):
            seen += 1
            if seen == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    status = 1
    try:
        sys.addaudithook(count)
        study(run).run(out)
        with os.fdopen(write, "w") as pipe:
            json.dump({"moments": seen, "modules": list(sys.modules)}, pipe)
        status = 0
    finally:
        os._exit(status)


if __name__ == "__main__":
    run, out, kills, seed = (
        sys.argv[1],
        Path(sys.argv[2]),
        int(sys.argv[3]),
        int(sys.argv[4]),
    )
    rng = random.Random(seed)
    _, whole = forked(run, out / "whole")
    # Once here, not in every fork.
    for name in set(whole["modules"]) - set(sys.modules):
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    # Evenly over the orders of magnitude, as most moments are of the merge; the latest come last.
    moments = sorted(round(whole["moments"] ** rng.random()) for _ in range(kills))
    starts = [
        (moment, forked(run, out / "killed", moment)[0]) for moment in [*moments, None]
    ]
    sys.stdout.write(json.dumps(starts))
