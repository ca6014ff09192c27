"""Time of capturing activations over the bare forward pass to the same depth, in one run.

Both read the same batches of a random EuroBERT of 12 layers, width 256. The bare pass is the model
under ``no_grad``, stopped by one hook at the last MLP. Repeats are interleaved; medians of the
process's CPU time are compared, so that other work on the machine matters little. Bar: 1.05.

    python benchmarks/capture_overhead.py
"""

import argparse
import contextlib
import statistics
import time

import numpy as np
import torch
from transformers import EuroBertConfig, EuroBertForMaskedLM

from ontogeny import Inputs, capture
from ontogeny.needs import Activations

BAR = 1.05
LAYERS = "model.layers.*.mlp"


class EnoughError(Exception):
    pass


def build():
    torch.manual_seed(0)
    config = EuroBertConfig(
        vocab_size=4096,
        hidden_size=256,
        num_hidden_layers=12,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=768,
        max_position_embeddings=256,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        mask_token_id=3,
    )
    return EuroBertForMaskedLM(config).eval()


def texts(count, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(40, 129, count)
    return Inputs.from_tokens([rng.integers(5, 4096, n) for n in lengths])


def bare(model, inputs, batch_size):
    def stop(module, args, output):
        raise EnoughError

    handle = model.model.layers[-1].mlp.register_forward_hook(stop)
    try:
        with torch.no_grad():
            for batch in inputs.batches(batch_size):
                with contextlib.suppress(EnoughError):
                    model(
                        input_ids=torch.from_numpy(batch.ids),
                        attention_mask=torch.from_numpy(batch.mask.astype(np.int64)),
                    )
    finally:
        handle.remove()


def seconds(function):
    start = time.process_time()
    function()
    return time.process_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=16)
    options = parser.parse_args()
    model = build()
    inputs = texts(options.texts)
    settings = capture.ReadingSettings(batch_size=options.batch_size)

    def reading(*needs):
        return lambda: capture.read(model, needs, {"text": inputs}, settings)

    runs = {
        "bare forward": lambda: bare(model, inputs, options.batch_size),
        "5,000 tokens": reading(Activations(LAYERS)),
        "all tokens": reading(Activations(LAYERS, max_tokens=None)),
        "mean per text": reading(Activations(LAYERS, tokens="mean")),
        "all three at once": reading(
            Activations(LAYERS),
            Activations(LAYERS, max_tokens=None),
            Activations(LAYERS, tokens="mean"),
        ),
    }
    times = {name: [] for name in runs}
    for _ in range(2 + options.repeats):
        for name, function in runs.items():
            times[name].append(seconds(function))
    # The first two warm up.
    times = {name: values[2:] for name, values in times.items()}
    print(
        f"{inputs.counts['tokens']} tokens, {torch.get_num_threads()} threads, bar {BAR}"
    )
    for name, values in times.items():
        ratios = [
            value / base
            for value, base in zip(values, times["bare forward"], strict=True)
        ]
        low, middle, high = statistics.quantiles(ratios, n=4)
        least = min(values) / min(times["bare forward"])
        print(
            f"{name:20s} {1000 * statistics.median(values):8.1f} ms   {middle:5.3f}  "
            f"(quartiles {low:.3f} to {high:.3f}, of the fastest {least:.3f})"
        )


if __name__ == "__main__":
    main()
