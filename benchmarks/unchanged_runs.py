"""The six runs of `unchanged.py`, trained once for both versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from ontogeny import tasks

STEPS = (0, 2, 4, 8, 16, 32, 64, 96)
LENGTH = 48
VOCABULARY = 400


def _tokenizer():
    return tasks.train_tokenizer(texts(), vocab_size=VOCABULARY)


def texts() -> list[str]:
    """Return the texts that the causal and masked runs learn."""
    return tasks.python_documentation()[:600]


SIZE = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}


def _llama(seed: int, vocabulary: int) -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(vocab_size=vocabulary, **SIZE)
    return LlamaForCausalLM(config)


def _bert(seed: int, vocabulary: int) -> nn.Module:
    from transformers import EuroBertConfig, EuroBertForMaskedLM

    torch.manual_seed(seed)
    config = EuroBertConfig(
        vocab_size=vocabulary,
        **SIZE,
        pad_token_id=0,
        mask_token_id=1,
        bos_token_id=2,
        eos_token_id=3,
    )
    return EuroBertForMaskedLM(config)


def _train(
    model: nn.Module,
    rows: Sequence[torch.Tensor],
    save: Callable[[int], None],
    steps: Sequence[int] = STEPS,
    mask_id: int | None = None,
) -> None:
    """Train on rows of ids of one length, and save at each step."""
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    rng = torch.Generator().manual_seed(0)
    for step in range(steps[-1] + 1):
        if step in steps:
            save(step)
        chosen = torch.randint(len(rows), (8,), generator=rng)
        ids = torch.stack([rows[i] for i in chosen])
        labels = ids
        if mask_id is not None:
            hidden = torch.rand(ids.shape, generator=rng) < 0.15
            labels = torch.where(hidden, ids, -100)
            ids = torch.where(hidden, mask_id, ids)
        model.train()
        model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def _rows(tokenizer) -> list[torch.Tensor]:
    stream = [i for text in texts()[200:] for i in tokenizer(text).input_ids]
    return [
        torch.tensor(stream[at : at + LENGTH])
        for at in range(0, len(stream) - LENGTH, LENGTH)
    ]


def _once(folder: Path, make: Callable[[Path], None]) -> None:
    if not folder.exists():
        folder.mkdir(parents=True)
        make(folder)
        print("made", folder, flush=True)


def _causal(seed: int) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        tokenizer = _tokenizer()
        tokenizer.save_pretrained(folder)
        model = _llama(seed, len(tokenizer))
        _train(
            model,
            _rows(tokenizer),
            lambda step: model.save_pretrained(folder / f"checkpoint-{step}"),
        )

    return make


def _masked(folder: Path) -> None:
    tokenizer = _tokenizer()
    tokenizer.add_special_tokens({"mask_token": "[MASK]"})
    tokenizer.save_pretrained(folder)
    model = _bert(0, len(tokenizer))
    _train(
        model,
        _rows(tokenizer),
        lambda step: model.save_pretrained(folder / f"checkpoint-{step}"),
        mask_id=tokenizer.mask_token_id,
    )


def _tuned(folder: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = folder.parent / "causal"
    tokenizer = AutoTokenizer.from_pretrained(source)
    tokenizer.save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(source / "checkpoint-96")
    rows = [row.flip(0) for row in _rows(tokenizer)]
    _train(
        model,
        rows,
        lambda step: model.save_pretrained(folder / f"checkpoint-{step}"),
        (4, 8, 12, 16, 24, 32),
    )


def _lora(folder: Path) -> None:
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = folder.parent / "causal"
    tokenizer = AutoTokenizer.from_pretrained(source)
    tokenizer.save_pretrained(folder)
    base = AutoModelForCausalLM.from_pretrained(source / "checkpoint-96")
    torch.manual_seed(0)
    config = LoraConfig(
        r=4, lora_alpha=8, task_type="CAUSAL_LM", target_modules=["q_proj", "v_proj"]
    )
    model = get_peft_model(base, config)
    _train(
        model,
        [row.flip(0) for row in _rows(tokenizer)],
        lambda step: model.save_pretrained(folder / f"checkpoint-{step}"),
        (4, 8, 12, 16, 24, 32),
    )


CHARACTER_MODEL = '''
import torch
from torch import nn

class Characters(nn.Module):
    """A GRU over characters."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(64, 32)
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
        self.recurrent = nn.GRU(32, 32, batch_first=True)
        self.head = nn.Linear(32, 64)

    def forward(self, ids):
        h, _ = self.recurrent(self.embedding(ids))
        return self.head(h + self.mlp(h))

def build():
    return Characters()
'''


def _characters(folder: Path) -> None:
    (folder / "model.py").write_text(CHARACTER_MODEL)
    space: dict = {}
    exec(CHARACTER_MODEL, space)
    torch.manual_seed(0)
    model = space["build"]()
    text = "\n".join(texts())[:60_000]
    characters = sorted(set(text))[:64]
    place = {c: i for i, c in enumerate(characters)}
    ids = torch.tensor([place.get(c, 0) for c in text])
    np.save(folder / "held-out.npy", ids[-6000:].numpy().reshape(-1, 60))
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    rng = torch.Generator().manual_seed(0)
    for step in range(STEPS[-1] + 1):
        if step in STEPS:
            torch.save(
                {"model": model.state_dict(), "step": step}, folder / f"ckpt_{step}.pt"
            )
        at = torch.randint(len(ids) - 6100, (16,), generator=rng)
        rows = torch.stack([ids[i : i + 61] for i in at])
        logits = model(rows[:, :-1])
        nn.functional.cross_entropy(
            logits.flatten(0, 1), rows[:, 1:].flatten()
        ).backward()
        optimizer.step()
        optimizer.zero_grad()


RUNS: dict[str, Callable[[Path], None]] = {
    "causal": _causal(0),
    "causal-1": _causal(1),
    "masked": _masked,
    "tuned": _tuned,
    "lora": _lora,
    "characters": _characters,
}


def make_runs(folder: Path) -> None:
    """Train what is not there yet."""
    for name, make in RUNS.items():
        _once(folder / name, make)
