"""What recording costs a training loop: time in the Recorder over time in the loop, in one run.

A EuroBERT of the demo's size (6 layers, width 128, 4,096 word pieces) takes AdamW steps on 2,048
tokens. A checkpoint is written, flushed to disk and hashed every fourth step; the share is then
stated for the default schedule, 32 checkpoints in 1,000 steps. A step is CPU time on one thread; a
checkpoint is wall time, since writing waits for the disk, so other work makes the share too large.

    python benchmarks/recorder_overhead.py
"""

import argparse
import statistics
import tempfile
import time

import torch
from transformers import EuroBertConfig, EuroBertForMaskedLM

import ontogeny as og


def build():
    torch.manual_seed(0)
    config = EuroBertConfig(
        vocab_size=4096,
        hidden_size=128,
        num_hidden_layers=6,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=256,
        max_position_embeddings=128,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        mask_token_id=3,
    )
    return EuroBertForMaskedLM(config)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=40)
    steps = parser.parse_args().steps
    torch.set_num_threads(1)
    model = build()
    optimizer = torch.optim.AdamW(model.parameters())
    draw = torch.Generator().manual_seed(0)
    trained = []
    written = []
    idle = []
    with tempfile.TemporaryDirectory() as folder:
        record = og.Recorder(folder, every=4)
        record(0, model)
        for step in range(1, steps + 1):
            ids = torch.randint(4, 4096, (32, 64), generator=draw)
            begin = time.process_time()
            model(input_ids=ids, labels=ids).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            trained.append(time.process_time() - begin)
            middle = time.perf_counter()
            record(step, model)
            (idle if step % 4 else written).append(time.perf_counter() - middle)
    one, due, other = (statistics.median(x) for x in (trained, written, idle))
    share = 32 * due / (1000 * one + 32 * due)
    print(f"a step {1e3 * one:.0f} ms, a checkpoint {1e3 * due:.0f} ms")
    print(f"a call that writes nothing {1e6 * other:.0f} us")
    print(f"32 checkpoints in 1,000 steps: {share:.2%} of the run")


if __name__ == "__main__":
    main()
