"""How the time of a study grows with workers; see `benchmarks/README.md`.

Run it as ``python benchmarks/scaling.py [WORKERS ...]`` (1 2). A run of random checkpoints is
studied by that many processes in one folder, as by the tasks of a job array: the same checkpoints
(strong scaling), and as many checkpoints for each worker (weak scaling). Counted are the time from
the moment at which all processes have loaded the libraries until the last one has ended, and the
processor time that all of them spent in it, which a busy machine changes less.
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

STEPS = 6
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
    tokens = np.random.default_rng(0).integers(1, 2048, (32, 64))
    trajectory = og.Trajectory.from_folder(run).select(stop=steps - 1)
    observables = [og.observables.Loss(), og.observables.ActivationDecay("mlp")]
    inputs = og.Inputs.from_tokens(tokens)
    return og.Study(trajectory, inputs, observables, device="cpu", threads=1, noise=0)


def worker(run: str, steps: str, out: str) -> None:
    """Load everything, say so, wait for the word to begin, and run."""
    import ontogeny.report
    import ontogeny.study.results.opened  # noqa: F401

    chosen = study(Path(run), int(steps))
    print("ready", flush=True)
    sys.stdin.readline()
    begin = time.process_time()
    chosen.run(out, progress=False)
    print(time.process_time() - begin)


def seconds(run: Path, steps: int, workers: int) -> tuple[float, float]:
    """Return the time of so many processes for so many checkpoints, and their processor time."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, __file__, "worker", str(run), str(steps), f"{out}/s"]
        pipe = subprocess.PIPE
        started = [
            subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
            for _ in range(workers)
        ]
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()
        begin = time.perf_counter()
        for process in started:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        spent = [process.communicate()[0] for process in started]
        assert not any(process.returncode for process in started)
        return time.perf_counter() - begin, sum(map(float, spent))


def main(counts: list[int]) -> None:
    """Print the table: medians, with the least and the most of the repetitions."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as name:
        run = Path(name)
        write_run(run, STEPS * max(counts))
        kinds = [("strong", n, STEPS) for n in counts]
        kinds += [("weak", n, STEPS * n) for n in counts if n > 1]
        found = {kind: [] for kind in kinds}
        for _ in range(REPEATS):  # interleaved, so that a busy moment hits all of them
            for kind in kinds:
                found[kind].append(seconds(run, kind[2], kind[1]))
        for kind, times in found.items():
            columns = [
                np.quantile(each, [0, 0.5, 1]) for each in zip(*times, strict=True)
            ]
            words = [
                f"{middle:.1f} ({low:.1f} to {high:.1f})"
                for low, middle, high in columns
            ]
            print("|", " | ".join(map(str, [*kind, *words])), "|")


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(*sys.argv[2:])
    else:
        main([int(each) for each in sys.argv[1:]] or [1, 2])
