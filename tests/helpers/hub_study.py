"""Study a Hub suite on a small disk: ``python hub_study.py URL CACHE OUT MAX_REVISIONS [KILL]``."""

import logging
import os
import signal
import sys

import numpy as np

import ontogeny as og
from helpers.hub_models import REPO


class KillAfter(logging.Handler):
    """Send SIGKILL to this process when the n-th cell is about to be written."""

    def __init__(self, count):
        super().__init__(logging.DEBUG)
        self.left = count

    def emit(self, record):
        if "phase=writing" in record.getMessage():
            self.left -= 1
            if self.left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)


def study(url, cache):
    rng = np.random.default_rng(0)
    inputs = og.Inputs.from_tokens(rng.integers(1, 40, (12, 8)))
    trajectory = og.Trajectory.from_hub(REPO, endpoint=url, cache_dir=cache)
    observables = [
        og.observables.Loss(),
        og.observables.ActivationDecay("mlp"),
        og.observables.WeightRank(("q", "mlp.dense_h_to_4h.weight"), n_draws=8),
    ]
    return og.Study(trajectory, inputs, observables, device="cpu")


if __name__ == "__main__":
    url, cache, out, most = sys.argv[1:5]
    if len(sys.argv) > 5:
        logger = logging.getLogger("ontogeny.study")
        logger.setLevel(logging.DEBUG)
        logger.addHandler(KillAfter(int(sys.argv[5])))
    study(url, cache).run(out, max_revisions=int(most))
