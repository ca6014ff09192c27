"""Train a small model, and with sae-lens a dictionary of its last checkpoint: fixtures of tests.

python tests/helpers/train_sae.py tests/features/directions/trained

It runs in an environment of its own with sae-lens (6.54 wrote what is stored). The folder gets
``run/step-N``, checkpoints of transformers; ``sae``, as sae-lens writes it; and
``expected.safetensors``: texts that the model was not trained on, the codes that sae-lens gives the
last checkpoint on some of them, and the share of the variance that it explains on all, without
their first tokens.
"""

import itertools
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch.nn.functional import cross_entropy

STEPS = (0, 50, 100, 200, 400, 800)
WIDTH, LENGTH, BATCH = 24, 32, 32
LATENTS, K, SAMPLES = 48, 4, 600_000
CODED = 20  # texts of which codes are stored


def characters():
    """Return the characters of bundled texts as ids, (texts, LENGTH), and how many kinds there are."""
    from ontogeny.tasks import bundled_texts

    whole = "\n".join(bundled_texts())
    kinds = sorted(set(whole))
    ids = np.searchsorted(kinds, list(whole))
    return torch.from_numpy(
        ids[: len(ids) // LENGTH * LENGTH].reshape(-1, LENGTH)
    ), len(kinds)


def trained(texts, vocabulary, folder):
    """Train a GPT-2 of one layer, write its checkpoints, and return it."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=vocabulary,
        n_embd=WIDTH,
        n_head=2,
        n_layer=1,
        n_positions=LENGTH,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = GPT2LMHeadModel(config).eval()  # without dropout
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for step in itertools.count():
        if step in STEPS:
            model.save_pretrained(folder / f"step-{step}")
        if step == STEPS[-1]:
            break
        ids = texts[torch.randint(len(texts), (BATCH,))]
        logits = model(ids).logits[:, :-1].flatten(0, 1)
        optimizer.zero_grad()
        cross_entropy(logits, ids[:, 1:].flatten()).backward()
        optimizer.step()
    return model


@torch.no_grad()
def activations(model, texts):
    """Return what the block writes, (tokens, WIDTH)."""
    seen = []
    handle = model.transformer.h[0].register_forward_hook(
        lambda _, __, output: seen.append(output)
    )
    model(texts)
    handle.remove()
    return seen[0].flatten(0, 1)


def dictionary(A, folder):
    """Train a TopK autoencoder of rows with sae-lens' trainer, and write it as it does."""
    from sae_lens import TopKTrainingSAE, TopKTrainingSAEConfig
    from sae_lens.config import SAETrainerConfig
    from sae_lens.saes.sae import SAEMetadata
    from sae_lens.training.sae_trainer import SAETrainer

    torch.manual_seed(1)
    metadata = SAEMetadata(hook_name="blocks.0.hook_resid_post", model_name="small")
    config = TopKTrainingSAEConfig(d_in=WIDTH, d_sae=LATENTS, k=K, metadata=metadata)
    sae = TopKTrainingSAE(config)

    def rows():
        while True:
            yield A[torch.randint(len(A), (512,))]

    settings = SAETrainerConfig(SAMPLES, 512, lr=3e-3, lr_end=3e-4)
    SAETrainer(settings, sae, rows()).fit()
    sae.save_inference_model(folder)


def main(folder):
    """Write the fixture."""
    from sae_lens import SAE

    folder = Path(folder)
    texts, vocabulary = characters()
    held_out, rest = texts[::8], texts[np.arange(len(texts)) % 8 != 0]
    model = trained(rest, vocabulary, folder / "run")
    dictionary(activations(model, rest[:3000]), folder / "sae")
    x = activations(model, held_out)
    sae = SAE.load_from_disk(str(folder / "sae"))
    with torch.no_grad():
        codes = sae.encode(x)
        back = sae.decode(codes)
    later = torch.arange(len(x)) % LENGTH > 0  # a study leaves out first tokens
    lost = (x - back)[later].square().sum()
    whole = (x[later] - x[later].mean(0)).square().sum()
    values = {
        "ids": held_out.to(torch.uint8),
        "x": x[: CODED * LENGTH],
        "codes": codes[: CODED * LENGTH],
        "explained": 1 - lost / whole,
    }
    save_file(values, folder / "expected.safetensors")


if __name__ == "__main__":
    main(sys.argv[1])
