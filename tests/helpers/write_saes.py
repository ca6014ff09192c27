"""Write small dictionaries with sae-lens, and what it makes of activations: the tests' fixtures.

python tests/helpers/write_saes.py tests/features/directions/saes

It runs in an environment of its own with sae-lens (6.54 wrote what is stored).
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

M, R, ROWS = 6, 10, 7
CASES = {
    "standard": {},
    "standard-no-input-bias": {"apply_b_dec_to_input": False},
    "standard-layer-norm": {"normalize_activations": "layer_norm"},
    "standard-norm-rescale": {"normalize_activations": "constant_norm_rescale"},
    "standard-bfloat16": {"dtype": "bfloat16"},
    "topk": {"k": 3},
    "topk-by-decoder": {"k": 3, "rescale_acts_by_decoder_norm": True},
    "jumprelu": {},
    "gated": {},
}


def made(case, seed):
    """Return an autoencoder of sae-lens with random weights."""
    from sae_lens.registry import get_sae_class
    from sae_lens.saes.sae import SAEMetadata

    cls, config = get_sae_class(case.partition("-")[0])
    metadata = SAEMetadata(hook_name="blocks.0.hook_resid_post", model_name="small")
    sae = cls(config(d_in=M, d_sae=R, metadata=metadata, **CASES[case]))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in sae.named_parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
            if name == "threshold":
                parameter.abs_()
    return sae


def main(folder):
    for seed, case in enumerate(CASES):
        sae = made(case, seed)
        place = Path(folder) / case
        place.mkdir(parents=True, exist_ok=True)
        sae.save_model(str(place))
        x = 2 * torch.randn(ROWS, M, generator=torch.Generator().manual_seed(99))
        with torch.no_grad():
            codes = sae.encode(x)
            back = sae.decode(codes)
        values = {"x": x, "codes": codes.float(), "back": back.float()}
        save_file(values, place / "expected.safetensors")


if __name__ == "__main__":
    main(sys.argv[1])
