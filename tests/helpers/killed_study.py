"""Run a study and kill this process at a phase: ``python killed_study.py RUN OUT [PHASE N]``."""

import logging
import os
import signal
import sys

import ontogeny as og
from helpers.study_examples import observables, tiny_inputs


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


if __name__ == "__main__":
    run, out = sys.argv[1:3]
    if len(sys.argv) > 3:
        logger = logging.getLogger("ontogeny.study")
        logger.setLevel(logging.DEBUG)
        logger.addHandler(KillAt(sys.argv[3], int(sys.argv[4])))
        logger.addHandler(logging.StreamHandler())
    trajectory = og.Trajectory.from_folder(run)
    og.Study(trajectory, tiny_inputs(), observables(), device="cpu").run(out)
