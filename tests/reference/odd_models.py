"""Odd models in short runs: three checkpoints each, by the framework's own writer."""

from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file

from reference import language, odd_modules

MODULES = Path(odd_modules.__file__)
STEPS = (0, 12, 24)
_TRANSFORMER = {
    "vocab_size": odd_modules.VOCABULARY,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "initializer_range": 0.2,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "pad_token_id": 1,
}


@dataclass(frozen=True)
class OddModel:
    """How a model is built and brought.

    Attributes
    ----------
    config
        Class of a configuration of transformers and its arguments, or the name of an own class.
    begins
        Whether the tokenizer puts a token before every text.
    before
        Rows that the model gives before those of a text's own tokens.
    dtype
        Of the weights in the files.
    lacks
        Kinds of observables that are left out of its page, or refused.
    """

    config: tuple[str, dict] | str
    begins: bool = False
    before: int = 0
    dtype: torch.dtype = torch.float32
    lacks: frozenset = frozenset()

    @property
    def is_own(self):
        return isinstance(self.config, str)

    @property
    def is_of_family(self):
        """Whether its family says which matrices are those of the vocabulary."""
        return not self.is_own and self.config[0] != "Mamba"

    def build(self):
        """Return the module, not trained."""
        if self.is_own:
            return getattr(odd_modules, self.config)()
        name, changes = self.config
        configuration = getattr(transformers, f"{name}Config")(**_TRANSFORMER | changes)
        return transformers.AutoModelForCausalLM.from_config(configuration)


_NO_MAPS = frozenset({"attention-entropy", "attention-heads"})
# What is padded inside would be taken for rows before a text, and is refused.
_NO_ROWS = frozenset(
    {"activation-decay", "concepts", "effective-dimensions", "similarity"}
)
MODELS = {
    "pads-inside": OddModel("PadsInside", lacks=_NO_MAPS | _NO_ROWS),
    "prefix-tokens": OddModel(
        "Prefixed", begins=True, before=odd_modules.PREFIX, lacks=_NO_MAPS
    ),
    "tied": OddModel(
        ("GPT2", {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_inner": 24})
    ),
    "experts": OddModel(
        ("Mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}), True
    ),
    "state-space": OddModel(
        ("Mamba", {"state_size": 4, "num_hidden_layers": 2}), lacks=_NO_MAPS
    ),
    "windows": OddModel(
        ("Gemma2", {"sliding_window": 4, "final_logit_softcapping": 5.0}), True
    ),
    "sinks": OddModel(("GptOss", {"num_local_experts": 2, "num_experts_per_tok": 1})),
    "half-precision": OddModel(("Llama", {}), True, dtype=torch.bfloat16),
    "weight-norm": OddModel("WeightNormed"),
    "shared-blocks": OddModel("Shared", begins=True),
}


def write_run(odd, folder):
    """Train a model on its texts for a few updates and write its checkpoints, as users have them.

    Of transformers `checkpoint-STEP` with the tokenizer, of own classes `ckpt_STEP.pt`.
    """
    tokenizer = language.tokenizer(odd.begins)
    tokenizer.save_pretrained(folder)
    language.write(folder)
    torch.manual_seed(3)
    model = odd.build().train(False)
    ids = [torch.tensor(tokenizer(text).input_ids) for text in language.texts()]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(STEPS[-1] + 1):
        if step in STEPS:
            _write(odd, model, folder, step)
        for text in ids[step % 6 :: 6]:  # one by one, so that nothing is padded
            loss = _loss(odd, model, text)
            (loss / len(ids)).backward()
        optimizer.step()
        optimizer.zero_grad()


def logits_of(output):
    """Return the logits of a model's output."""
    return output if isinstance(output, torch.Tensor) else output.logits


def _loss(odd, model, ids):
    logits = logits_of(model(ids[None]))[0, odd.before : odd.before + len(ids)]
    return torch.nn.functional.cross_entropy(logits[:-1], ids[1:], reduction="sum")


def _write(odd, model, folder, step):
    state = {name: tensor.to(odd.dtype) for name, tensor in model.state_dict().items()}
    if odd.is_own:
        torch.save({"model": state, "iter_num": step}, folder / f"ckpt_{step}.pt")
        return
    copy = odd.build()
    copy.load_state_dict(model.state_dict())
    copy.to(odd.dtype).save_pretrained(folder / f"checkpoint-{step}")


def load(odd, folder, step):
    """Return the model of a checkpoint, by the framework alone."""
    if odd.is_own:
        model = odd.build()
        model.load_state_dict(tensors_of(odd, folder, step))
        return model.eval()
    place = folder / f"checkpoint-{step}"
    maps = {} if "attention-entropy" in odd.lacks else {"attn_implementation": "eager"}
    experts = (
        {"experts_implementation": "eager"}
        if "num_local_experts" in odd.config[1]
        else {}
    )
    return transformers.AutoModelForCausalLM.from_pretrained(
        place, **maps, **experts
    ).eval()


def tensors_of(odd, folder, step):
    """Return the tensors of a checkpoint's file by their names."""
    if odd.is_own:
        return torch.load(folder / f"ckpt_{step}.pt", weights_only=True)["model"]
    return load_file(folder / f"checkpoint-{step}" / "model.safetensors")
