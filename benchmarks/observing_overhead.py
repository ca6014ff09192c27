"""What observing costs a training loop: time in the Observer over time in the loop, in one run.

A EuroBERT of the demo's size (6 layers, width 128, 4,096 word pieces) takes AdamW steps on 1,024
tokens. Loss and attention entropy are observed on 16 texts of 64 tokens at the recorder's default
steps, within the default budget of 5 %. The share is stated in processor seconds of one thread, on
which other work counts little, and in wall time, which the budget goes by. The weights at the end
are compared with those of the same training without an Observer.

    python benchmarks/observing_overhead.py
"""

import argparse
import tempfile
import time
import warnings

import numpy as np
import torch
from recorder_overhead import build

import ontogeny as og
from ontogeny.observables import AttentionEntropy, Loss
from ontogeny.recording.observer import Observer


def trained(steps, observe=None):
    """Return processor seconds of training and of observing, and the weights at the end."""
    model = build().train()
    optimizer = torch.optim.AdamW(model.parameters())
    draw = torch.Generator().manual_seed(0)
    training = observing = 0.0
    for step in range(1, steps + 1):
        ids = torch.randint(4, 4096, (16, 64), generator=draw)
        begin = time.process_time()
        model(input_ids=ids, labels=ids).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        middle = time.process_time()
        if observe is not None:
            observe(step, model)
        training = training + middle - begin
        observing = observing + time.process_time() - middle
    return training, observing, model.state_dict()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=300)
    steps = parser.parse_args().steps
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    ids = np.random.default_rng(0).integers(4, 4096, (16, 64))
    texts = og.Inputs.from_tokens(ids, mask_token_id=3)
    *_, expected = trained(steps)
    with tempfile.TemporaryDirectory() as folder:
        observe = Observer([Loss(), AttentionEntropy()], texts, folder, total=steps)
        training, observing, weights = trained(steps, observe)
        done = len(og.recording.read_observed(folder)["step"].unique())
    same = all(torch.equal(weights[name], expected[name]) for name in expected)
    print(f"{steps} steps, {training:.1f} processor seconds; observing {observing:.1f}")
    print(
        f"share {observing / training:.1%} in processor time, {observe.overhead:.1%} in wall time"
    )
    print(
        f"observed at {done} steps, {len(observe.skipped)} skipped; weights the same: {same}"
    )


if __name__ == "__main__":
    main()
