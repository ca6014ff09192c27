"""What a GPU computes, how fast, and how far its numbers are from those of the CPU.

    python benchmarks/gpu.py [--device cuda] [--width 768] [--blocks 12] [--texts 64] [--minutes 8]

A table in about ten minutes, one line for each part: passes with losses, activations and attention,
fits of extractors, distances, weights of a control, each on the CPU and on the device; the largest
memory of the device; the largest relative difference; and whether two runs there are equal bit for
bit. Without a GPU `--device cpu` shows that it runs. Parts that would begin after `--minutes` are
left out, and said to be. A part that fails says why, and the others go on. Exits with 1 if one
failed, a difference is above its tolerance, or bits differ.

What differs on a GPU and is set here: products of float32 matrices in full precision
(`torch.backends.cuda.matmul.allow_tf32 = False`), and deterministic algorithms only
(`torch.use_deterministic_algorithms`, with `CUBLAS_WORKSPACE_CONFIG=:4096:8`).
"""

from __future__ import annotations

import argparse
import copy
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import numpy as np
import torch
from torch import Tensor

import ontogeny as og
from ontogeny import concepts, distances, needs
from ontogeny.capture import ReadingSettings, read

VOCABULARY = 32_000
LENGTH = 64
ROWS = 3000
CONCEPTS = 20


@dataclass(frozen=True)
class Part:
    """One line: what is computed on a device, and how far it may be from the CPU's."""

    name: str
    compute: Callable[[str], Tensor]
    tolerance: float


def model_of(width: int, blocks: int, seed: int = 0) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=blocks,
        num_attention_heads=max(1, width // 64),
        max_position_embeddings=2 * LENGTH,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    return LlamaForCausalLM(config).eval()


def parts(width: int, blocks: int, texts: int) -> Iterator[Part]:
    models = {step: model_of(width, blocks, step) for step in (0, 1)}
    run = og.Trajectory.from_models(models)
    ids = np.random.default_rng(0).integers(5, VOCABULARY, (texts, LENGTH))
    inputs = {"text": og.Inputs.from_tokens(ids)}
    sample = torch.randn(ROWS, width, generator=torch.Generator().manual_seed(0))
    other = torch.randn(ROWS, width, generator=torch.Generator().manual_seed(1))

    def reading(need: Any, dtype: torch.dtype) -> Callable[[str], Tensor]:
        def compute(device: str) -> Tensor:
            model = copy.deepcopy(models[0]).to(device, dtype)
            settings = ReadingSettings(device=device)
            value = read(model, [need], inputs, settings)[need]
            if isinstance(value, dict):
                return torch.cat([v.flatten() for v in value.values()])
            name = "loss" if "loss" in value else "entropy"
            return torch.from_numpy(np.asarray(value[name], dtype=np.float64).ravel())

        return compute

    for dtype, tolerance in ((torch.float32, 1e-3), (torch.bfloat16, 0.05)):
        kind = str(dtype).removeprefix("torch.")
        yield Part(f"losses, {kind}", reading(needs.Losses(), dtype), tolerance)
        yield Part(
            f"activations, {kind}", reading(needs.Activations("mlp"), dtype), tolerance
        )
    yield Part("attention maps", reading(needs.Attention(), torch.float32), 1e-3)

    for name in ("pca", "svd", "ica", "sae"):

        def fit(device: str, name: str = name) -> Tensor:
            made = concepts.make(name, CONCEPTS, random_state=0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of noise no fit is good
                made.fit(sample.to(device))
            return torch.tensor(float(made.relative_error_))

        yield Part(f"{name}, error of a fit", fit, 0.005)

    def rotated(device: str) -> Tensor:
        return torch.tensor(
            float(distances.procrustes(sample.to(device), other.to(device)))
        )

    yield Part("Procrustes distance", rotated, 1e-6)

    def controlled(device: str) -> Tensor:
        skeleton = run.control("turned", random_state=0).skeleton(device=device)
        return skeleton.load(1).get_parameter("lm_head.weight").flatten()

    yield Part("weights of a control", controlled, 0.0)


def measured(part: Part, device: str, repeats: int) -> tuple[float, list[Tensor]]:
    """Return the median of seconds, and what each repeat gave, on the CPU."""
    values, times = [], []
    for _ in range(repeats):
        begin = time.perf_counter()
        values.append(part.compute(device).detach().cpu())
        times.append(time.perf_counter() - begin)
    return statistics.median(times), values


def difference(value: Tensor, truth: Tensor) -> float:
    """Return the norm of a difference beside that of the truth; infinite where NaN is elsewhere."""
    there = truth.isfinite()
    if not torch.equal(there, value.isfinite()):
        return float("inf")
    one, two = value[there].double(), truth[there].double()
    return float((one - two).norm() / two.norm().clamp_min(1e-30))


def reported(part: Part, device: str) -> bool:
    """Print the line of a part; return whether its numbers are right and come again."""
    on_gpu = device.startswith("cuda")
    slow, (truth,) = measured(part, "cpu", 1)
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    fast, values = measured(part, device, 3)
    held = torch.cuda.max_memory_allocated() / 1e9 if on_gpu else 0.0
    off = difference(values[0], truth)
    same = all(torch.equal(values[0], v) for v in values[1:])
    cells = f"{slow:.2f} | {fast:.2f} | {held:.2f} | {off:.1e}"
    print(part.name, cells, "yes" if same else "NO", sep=" | ", flush=True)
    return same and off <= part.tolerance


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--device", default="cuda")
    options.add_argument("--width", type=int, default=768)
    options.add_argument("--blocks", type=int, default=12)
    options.add_argument("--texts", type=int, default=64)
    options.add_argument("--minutes", type=float, default=8.0)
    given = options.parse_args(arguments)
    if given.device.startswith("cuda") and not torch.cuda.is_available():
        options.error("no GPU is there; --device cpu shows that the script runs.")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.use_deterministic_algorithms(True)
    if given.device.startswith("cuda"):
        print(torch.cuda.get_device_name(), "torch", torch.__version__)
    print("part | CPU s | device s | GB on the device | difference | same bits")
    begin = time.monotonic()
    wrong = 0
    for part in parts(given.width, given.blocks, given.texts):
        if time.monotonic() - begin > 60 * given.minutes:
            print(f"{part.name} | left out: {given.minutes:g} minutes are over")
            continue
        try:
            wrong += not reported(part, given.device)
        except (
            Exception
        ) as error:  # one part's fault must not cost the minutes of the others
            wrong += 1
            line = str(error).strip().split("\n")[0]
            print(f"{part.name} | failed: {type(error).__name__}: {line}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
