"""Runs of large models whose files hold headers alone: the rest is a hole that takes no disk."""

import json

import torch


def write(folder, steps, width=4096, layers=32, inner=11_008, vocabulary=32_000):
    """Write checkpoints of a LLaMA in bfloat16; return its parameters."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=width // 128,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
    )
    with torch.device("meta"):
        state = LlamaForCausalLM(config).state_dict()
    entries, end = {}, 0
    for name, tensor in state.items():
        begin, end = end, end + 2 * tensor.numel()
        entries[name] = {
            "dtype": "BF16",
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
    header = json.dumps(entries).encode()
    header += b" " * (-len(header) % 8)
    for step in steps:
        place = folder / f"checkpoint-{step}"
        place.mkdir(parents=True)
        with (place / "model.safetensors").open("wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            file.truncate(8 + len(header) + end)
        config.architectures = ["LlamaForCausalLM"]
        config.save_pretrained(place)
    return end // 2
