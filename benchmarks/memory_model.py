"""How much memory a study takes, beside what its plan foresees.

    python benchmarks/memory_model.py [STUDY ...]

Each row is a study in a process of its own, of three random checkpoints in bfloat16 that differ in
width, layers, tokens and observables. What is measured is the growth of the largest resident memory
(VmHWM, Linux) from before the plan to after the run; files that are mapped count while they are.
The libraries are loaded before, and used by a tiny study: they are not part of it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import save_file

import ontogeny as og

CONFIGURATIONS = {  # width, blocks, vocabulary, texts of 64 tokens, observables
    "decay": (512, 8, 2_000, 32, "decay"),
    "decay, more tokens": (512, 4, 2_000, 256, "decay"),
    "decay, wider": (1024, 6, 2_000, 32, "decay"),
    "decay, wider than tokens": (2048, 2, 2_000, 16, "decay"),
    "dimensions, deeper": (512, 24, 2_000, 128, "dimensions"),
    "loss, large vocabulary": (512, 8, 50_000, 32, "loss"),
    "ICA": (768, 4, 2_000, 64, "ica"),
    "decay and two extractors": (1024, 6, 2_000, 64, "decay ica kmeans"),
}


def observable_of(kind: str) -> og.observables.Observable:
    """Return one of the observables of a row."""
    made: dict[str, Callable[[], og.observables.Observable]] = {
        "decay": lambda: og.observables.ActivationDecay("resid"),
        "dimensions": lambda: og.observables.EffectiveDimensions("mlp"),
        "loss": og.observables.Loss,
    }
    return (
        made[kind]()
        if kind in made
        else og.observables.Concepts(kind, 50, layers="resid")
    )


def write_run(folder: Path, width: int, blocks: int, vocabulary: int) -> None:
    """Write three random checkpoints without building a model."""
    config = transformers.GPTNeoXConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=blocks,
        num_attention_heads=8,
        architectures=["GPTNeoXForCausalLM"],
    )
    with torch.device("meta"):
        state = transformers.GPTNeoXForCausalLM(config).state_dict()
    for step in (1, 2, 3):
        generator = torch.Generator().manual_seed(step)
        tensors = {
            name: torch.randn(t.shape, generator=generator).mul(0.02).bfloat16()
            for name, t in state.items()
        }
        config.save_pretrained(folder / f"step{step}")
        save_file(
            tensors, folder / f"step{step}" / "model.safetensors", {"format": "pt"}
        )


def memory(entry: str) -> int:
    """Return an entry of /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(entry))


def measure(name: str, folder: Path) -> tuple[int, int]:
    """Run one study; return the bytes that were foreseen and those that it took."""
    _, _, vocabulary, texts, kinds = CONFIGURATIONS[name]
    rng = np.random.default_rng(0)
    inputs = og.Inputs.from_tokens(rng.integers(5, vocabulary, (texts, 64)).tolist())
    run = og.Trajectory.from_folder(folder / "run")
    observables = [observable_of(kind) for kind in kinds.split()]
    study = og.Study(run, inputs, observables, device="cpu", noise=0)
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    foreseen = study.plan().memory_bytes
    study.run(folder / "study", progress=False)
    return foreseen, memory("VmHWM") - before


def warm_up(folder: Path) -> None:
    """Load the libraries that any study needs, by a tiny one."""
    write_run(folder / "tiny", 64, 1, 100)
    inputs = og.Inputs.from_tokens([[1, 2, 3, 4, 5, 6, 7, 8]] * 16)
    run = og.Trajectory.from_folder(folder / "tiny")
    decay = og.observables.ActivationDecay("resid")
    og.Study(run, inputs, decay, device="cpu", noise=0).run(
        folder / "s", progress=False
    )


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function gives in a process of its own, whose memory was not used before."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(function, arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("studies", nargs="*", default=CONFIGURATIONS)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        warm_up(Path(folder))
    print(
        "| study | foreseen, MB | taken, MB | ratio |\n| --- |" + " --- |" * 3,
        flush=True,
    )
    for name in parser.parse_args().studies:
        with tempfile.TemporaryDirectory() as folder:
            width, blocks, vocabulary, *_ = CONFIGURATIONS[name]
            of_run = (Path(folder) / "run", width, blocks, vocabulary)
            apart(write_run, *of_run)
            foreseen, taken = apart(measure, name, Path(folder))
        print(
            f"| {name} | {foreseen / 1e6:.0f} | {taken / 1e6:.0f} | {foreseen / taken:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
