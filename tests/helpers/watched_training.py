"""Write a run's checkpoints one at a time: ``python watched_training.py RUN``.

The next one is written for each line on standard input; the last ends the recording.
"""

import sys

import ontogeny as og
from helpers.study_examples import developing

if __name__ == "__main__":
    models = developing((0, 1, 2, 4, 8))
    record = og.Recorder(sys.argv[1], every=lambda step: True)
    for (step, model), _ in zip(models.items(), sys.stdin, strict=False):
        record(step, model)
        if step == max(models):
            record.finish(step, model)
        sys.stdout.write(f"{step}\n")
        sys.stdout.flush()
