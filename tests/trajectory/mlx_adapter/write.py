"""Write the files of this folder, by mlx 0.32.4 and mlx_lm 0.32.2: python write.py"""

import json
from pathlib import Path

import mlx.core as mx
import numpy as np
import torch
from mlx.utils import tree_flatten
from mlx_lm.tuner.utils import linear_to_lora_layers
from mlx_lm.utils import load_model
from transformers import LlamaConfig, LlamaForCausalLM

PLACE = Path(__file__).parent
SIZES = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2}
LORA = {"rank": 2, "dropout": 0.0, "scale": 20.0}

torch.manual_seed(0)
config = LlamaConfig(vocab_size=40, max_position_embeddings=32, **SIZES, **HEADS)
LlamaForCausalLM(config).save_pretrained(PLACE / "base")
(PLACE / "base/generation_config.json").unlink(missing_ok=True)
model, _ = load_model(PLACE / "base")
model.freeze()
linear_to_lora_layers(model, 1, LORA)
mx.random.seed(1)
told = {
    "model": "base",
    "fine_tune_type": "lora",
    "num_layers": 1,
    "lora_parameters": LORA,
}
(PLACE / "adapter_config.json").write_text(json.dumps(told, indent=4))
ids = mx.array(np.arange(12)[None])
logits = {"0": np.array(model(ids))}
for step in (10, 20):
    weights = [
        (name, mx.random.normal(value.shape) / 20)
        for name, value in tree_flatten(model.trainable_parameters())
    ]
    model.load_weights(weights, strict=False)
    trained = dict(tree_flatten(model.trainable_parameters()))
    mx.save_safetensors(str(PLACE / f"{step:07d}_adapters.safetensors"), trained)
    logits[str(step)] = np.array(model(ids))
mx.save_safetensors(str(PLACE / "adapters.safetensors"), trained)
np.savez(PLACE / "logits.npz", **{step: value[0, -1] for step, value in logits.items()})
