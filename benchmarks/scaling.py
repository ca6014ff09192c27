"""How the time of a study grows with workers; see `benchmarks/README.md`.

Run it as ``python benchmarks/scaling.py [WORKERS ...]`` (1 2). A run of random checkpoints is
studied by that many processes in one folder, as by the tasks of a job array: the same checkpoints
(strong scaling), and as many checkpoints for each worker (weak scaling). Counted is the time from
the moment at which all processes have loaded the libraries until the last one has ended.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import transformers

import ontogeny as og

STEPS = 8
REPEATS = 3


def write_run(folder: Path, steps: int) -> None:
    """Write checkpoints of a GPT-NeoX of 8 million parameters."""
    config = transformers.GPTNeoXConfig(
        vocab_size=2048,
        hidden_size=256,
        num_hidden_layers=8,
        num_attention_heads=4,
        intermediate_size=1024,
        max_position_embeddings=128,
    )
    for step in range(steps):
        torch.manual_seed(step)
        model = transformers.GPTNeoXForCausalLM(config)
        model.save_pretrained(folder / f"checkpoint-{step}")


def study(run: Path, steps: int) -> og.Study:
    """Return the study of the first checkpoints of a run."""
    tokens = np.random.default_rng(0).integers(1, 2048, (64, 64))
    trajectory = og.Trajectory.from_folder(run).select(stop=steps - 1)
    observables = [og.observables.Loss(), og.observables.ActivationDecay("mlp")]
    inputs = og.Inputs.from_tokens(tokens)
    return og.Study(trajectory, inputs, observables, device="cpu", threads=1, noise=0)


def worker(run: str, steps: str, out: str) -> None:
    """Load everything, say so, wait for the word to begin, and run."""
    import ontogeny.report
    import ontogeny.study.opened  # noqa: F401

    chosen = study(Path(run), int(steps))
    print("ready", flush=True)
    sys.stdin.readline()
    chosen.run(out, progress=False)


def seconds(run: Path, steps: int, workers: int) -> float:
    """Return the time of so many processes for so many checkpoints."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, __file__, "worker", str(run), str(steps), f"{out}/s"]
        pipe = subprocess.PIPE
        started = [
            subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(workers)
        ]
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()
        begin = time.perf_counter()
        for process in started:
            process.communicate("\n")
        assert not any(process.returncode for process in started)
        return time.perf_counter() - begin


def main(counts: list[int]) -> None:
    """Print both tables: medians, with the least and the most of the repetitions."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as name:
        run = Path(name)
        write_run(run, STEPS * max(counts))
        for title, steps in (("strong", lambda n: STEPS), ("weak", lambda n: STEPS * n)):
            rows = {n: [] for n in counts}
            for _ in range(REPEATS):  # interleaved, so that a busy moment hits all of them
                for n in counts:
                    rows[n].append(seconds(run, steps(n), n))
            for n, found in rows.items():
                low, middle, high = np.quantile(found, [0, 0.5, 1])
                print(
                    f"| {title} | {n} | {steps(n)} | {middle:.1f} ({low:.1f} to {high:.1f}) |",
                    flush=True,
                )


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(*sys.argv[2:])
    else:
        main([int(each) for each in sys.argv[1:]] or [1, 2])
