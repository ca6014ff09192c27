"""What a study of well-known suites costs: measured on two sizes, extrapolated to the others.

    python benchmarks/cost_table.py

The model: a forward pass takes 2 operations per parameter that multiplies and per token, a download
takes the stored bytes, and memory is that of the stored weights. The rate of one core is measured
on the smaller of two sizes that run here, and the time of the larger is predicted from it; both
take CPU time, so other processes hardly matter. The rate of a GPU and of the network are assumed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
import transformers

TOKENS = 32_000
NETWORK = 125e6  # bytes a second: 1 Gbit/s
# Operations a second that a current GPU reaches in half precision, assumed.
GPU = 100e12
CORES = 4  # of a laptop, as fast as the one that is measured, assumed


@dataclass(frozen=True)
class Size:
    """Width, blocks, and what is multiplied in each block, of one published model."""

    name: str
    width: int
    blocks: int
    inner: int
    vocabulary: int
    gated: bool = False
    key_values: float = 1.0
    tied: bool = False

    @property
    def multiplied(self) -> int:
        """Parameters that take part in multiplications for each token; the head included."""
        attention = 2 * self.width**2 * (1 + self.key_values)
        mlp = (3 if self.gated else 2) * self.width * self.inner
        return int(self.blocks * (attention + mlp)) + self.vocabulary * self.width

    @property
    def parameters(self) -> int:
        """All parameters, without norms and biases."""
        return self.multiplied + (0 if self.tied else self.vocabulary * self.width)


SIZES = [
    Size("Pythia-70m", 512, 6, 2048, 50304),
    Size("Pythia-410m", 1024, 24, 4096, 50304),
    Size("Pythia-1.4b", 2048, 24, 8192, 50304),
    Size("Pythia-12b", 5120, 36, 20480, 50688),
    Size("OLMo-7B", 4096, 32, 11008, 50304, gated=True),
    Size("EuroBERT-210m", 768, 12, 3072, 128256, gated=True, tied=True),
    Size(
        "EuroBERT-2.1B", 2304, 32, 6144, 128256, gated=True, key_values=1 / 3, tied=True
    ),
]
MEASURED = [
    Size("Pythia-70m", 512, 6, 2048, 50304),
    Size("Pythia-160m", 768, 12, 3072, 50304),
]


def forward_seconds(size: Size, dtype: torch.dtype, tokens: int = 1024) -> float:
    """Return the CPU seconds of one forward pass of a random model of this size, the best of 3."""
    config = transformers.GPTNeoXConfig(
        vocab_size=size.vocabulary,
        hidden_size=size.width,
        num_hidden_layers=size.blocks,
        intermediate_size=size.inner,
        num_attention_heads=size.width // 64,
    )
    model = transformers.GPTNeoXForCausalLM(config).to(dtype).eval()
    ids = torch.randint(5, size.vocabulary, (4, tokens // 4))
    found = []
    for _ in range(3):
        begin = time.process_time()
        with torch.no_grad():
            model(input_ids=ids, use_cache=False)
        found.append(time.process_time() - begin)
    return min(found)


def measured(dtype: torch.dtype, tokens: int = 1024) -> float:
    """Print the rate of one core, and how far off it is for the larger size; return it."""
    small, large = MEASURED
    rate = 2 * small.multiplied * tokens / forward_seconds(small, dtype, tokens)
    taken = forward_seconds(large, dtype, tokens)
    predicted = 2 * large.multiplied * tokens / rate
    print(
        f"{dtype}: {rate / 1e9:.0f} GFLOP/s on {small.name}; {large.name} predicted "
        f"{predicted:.2f} s, taken {taken:.2f} s ({predicted / taken - 1:+.0%})"
    )
    return rate


def table(rate: float) -> None:
    """Print the costs of one checkpoint and of 154, for 32,000 tokens."""
    print(
        "| model | parameters | GB in bf16 | download, s | laptop, s | one GPU, s | "
        "154 checkpoints: laptop, h | one GPU, h | 16 GPUs, h |"
    )
    print("| --- |" + " --- |" * 8)
    for size in SIZES:
        stored = 2 * size.parameters
        work = 2 * size.multiplied * TOKENS
        fetch = stored / NETWORK
        laptop = work / (CORES * rate)
        gpu = work / GPU
        runs = [154 * max(fetch, t) / 3600 for t in (laptop, gpu, gpu / 16)]
        print(
            f"| {size.name} | {size.parameters / 1e9:.2f} billion | {stored / 1e9:.2f} | "
            f"{fetch:.1f} | {laptop:.0f} | {gpu:.1f} | "
            + " | ".join(f"{h:.1f}" for h in runs)
            + " |"
        )


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    measured(torch.float32)
    table(measured(torch.bfloat16))
