"""How much memory a study takes, beside what its plan foresees.

    python benchmarks/memory_model.py

Each row is a study in a process of its own, of three random checkpoints in bfloat16 that differ in
width, layers, tokens and observables. What is measured is the growth of the largest resident memory
(VmHWM, Linux) from before the plan to after the run; files that are mapped count while they are.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
from safetensors.torch import save_file

import ontogeny as og

CONFIGURATIONS = {  # width, blocks, vocabulary, texts of 64 tokens, observable
    "decay": (512, 8, 2_000, 32, "activation-decay"),
    "decay, more tokens": (512, 4, 2_000, 256, "activation-decay"),
    "decay, wider": (1024, 6, 2_000, 32, "activation-decay"),
    "dimensions, deeper": (512, 24, 2_000, 128, "dimensions"),
    "loss, large vocabulary": (512, 8, 50_000, 32, "loss"),
}


def observable_of(kind: str) -> og.observables.Observable:
    """Return the observable of a row."""
    return {
        "activation-decay": og.observables.ActivationDecay("resid"),
        "dimensions": og.observables.EffectiveDimensions("mlp"),
        "loss": og.observables.Loss(),
    }[kind]


def write_run(folder: Path, width: int, blocks: int, vocabulary: int) -> None:
    """Write three random checkpoints without building a model."""
    config = transformers.GPTNeoXConfig(
        vocab_size=vocabulary, hidden_size=width, intermediate_size=4 * width,
        num_hidden_layers=blocks, num_attention_heads=8, architectures=["GPTNeoXForCausalLM"],
    )  # fmt: skip
    with torch.device("meta"):
        state = transformers.GPTNeoXForCausalLM(config).state_dict()
    for step in (1, 2, 3):
        generator = torch.Generator().manual_seed(step)
        tensors = {
            name: torch.randn(t.shape, generator=generator).mul(0.02).bfloat16()
            for name, t in state.items()
        }
        config.save_pretrained(folder / f"step{step}")
        save_file(tensors, folder / f"step{step}" / "model.safetensors", {"format": "pt"})


def memory(entry: str) -> int:
    """Return an entry of /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(entry))


def measure(name: str) -> None:
    """Run one study and print what was foreseen and what it took, in MB."""
    width, blocks, vocabulary, texts, kind = CONFIGURATIONS[name]
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    inputs = og.Inputs.from_tokens(rng.integers(5, vocabulary, (texts, 64)).tolist())
    with tempfile.TemporaryDirectory() as folder:
        # In another process: freed memory of this one would be taken again and not be seen.
        writer = multiprocessing.get_context("spawn").Process(
            target=write_run, args=(Path(folder) / "run", width, blocks, vocabulary)
        )
        writer.start()
        writer.join()
        warm_up(Path(folder))
        run = og.Trajectory.from_folder(Path(folder) / "run")
        study = og.Study(run, inputs, observable_of(kind), device="cpu", noise=0)
        Path("/proc/self/clear_refs").write_text("5")
        before = memory("VmRSS")
        foreseen = study.plan().memory_bytes
        study.run(Path(folder) / "study", progress=False)
        taken = memory("VmHWM") - before
    print(f"{name:24} {foreseen / 1e6:8.0f} {taken / 1e6:8.0f} {foreseen / taken:8.2f}", flush=True)


def warm_up(folder: Path) -> None:
    """Load the libraries that any study needs, by a tiny one."""
    write_run(folder / "tiny", 64, 1, 100)
    inputs = og.Inputs.from_tokens([[1, 2, 3, 4, 5, 6, 7, 8]] * 16)
    run = og.Trajectory.from_folder(folder / "tiny")
    decay = og.observables.ActivationDecay("resid")
    og.Study(run, inputs, decay, device="cpu", noise=0).run(folder / "s", progress=False)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1])
    else:
        print(f"{'study':24} {'foreseen':>8} {'taken':>8} {'ratio':>8}   (MB)", flush=True)
        for each in CONFIGURATIONS:
            subprocess.run([sys.executable, __file__, each], check=True)
