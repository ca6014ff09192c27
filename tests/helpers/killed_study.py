"""Run a study again and again, each time in a process that is killed at a phase.

``python killed_study.py RUN OUT START...``: a start is a phase and how often it is reached, as in
``"phase=fitting 9"``; ``"to the end"`` is not killed. With ``TOGETHER`` in the place of the first
start, all begin at once. Prints the exit statuses as JSON.
"""

import json
import logging
import os
import signal
import sys

import ontogeny as og
from helpers import forks
from helpers.study_examples import observables, tiny_inputs, tiny_model


class KillAt(logging.Handler):
    """Send SIGKILL to this process when the n-th message that holds `text` is logged."""

    def __init__(self, text, count=2):
        super().__init__(logging.DEBUG)
        self.text, self.left = text, count

    def emit(self, record):
        if self.text in record.getMessage():
            self.left -= 1
            if self.left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)


def study(run, out, start):
    logger = logging.getLogger("ontogeny.study")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(logging.StreamHandler())
    if start != "to the end":
        phase, count = start.split()
        logger.addHandler(KillAt(phase, int(count)))
    trajectory = og.Trajectory.from_folder(run)
    og.Study(trajectory, tiny_inputs(), observables(), device="cpu", noise=1).run(out)


if __name__ == "__main__":
    run, out, *starts = sys.argv[1:]
    tiny_model(0)  # imports its class once, for all processes
    if starts[0] == "TOGETHER":
        begun = [
            forks.begin(lambda start=start: study(run, out, start))
            for start in starts[1:]
        ]
        statuses = [forks.end(child) for child in begun]
    else:
        statuses = [
            forks.end(forks.begin(lambda s=start: study(run, out, s)))
            for start in starts
        ]
    sys.stdout.write(json.dumps(statuses))
