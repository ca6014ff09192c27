"""What a change to the library changes: thirteen studies, made by both versions, value by value.

    python benchmarks/unchanged.py runs FOLDER           # trained once, for both versions
    python benchmarks/unchanged.py studies FOLDER OUT    # by the version that is installed
    python benchmarks/unchanged.py compare OUT OTHER

The studies cover every preset, a tuning of all weights and one by LoRA, a comparison, one model,
masked words, characters, labels, ids without a tokenizer, and the quick demo;
`--names` chooses some. `compare` prints for each
study what differs: variables with their largest difference, those that only one version has, the
lines that a reader sees first, and the claims on rows and abilities. What is told of time, place
and version does not count.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from torch import nn

import ontogeny as og
from ontogeny import tasks
from ontogeny.claims import Kind
from ontogeny.demo import run_demo
from ontogeny.words.page_claims import claims_of_result

STEPS = (0, 2, 4, 8, 16, 32, 64, 96)
LENGTH = 48
VOCABULARY = 400
SHORT = ["--yes", "--quiet", "--workers", "2", "--set", "inputs.max_texts=60"]
# Claims that follow from numbers that results of earlier versions hold as well.
COMPARED = (
    Kind.LEARNED,
    Kind.FORGOT,
    Kind.BEYOND_MOTION,
    Kind.CHANGED,
    Kind.BEFORE,
    Kind.ABOVE_CHANCE,
    Kind.GAINED,
    Kind.LOST,
    Kind.DAMAGED,
)
OF_TIME = {"created", "provenance", "version", "settings", "checksums", "problems"}


def _tokenizer():
    return tasks.train_tokenizer(_texts(), vocab_size=VOCABULARY)


def _texts() -> list[str]:
    return tasks.python_documentation()[:600]


def _llama(seed: int, vocabulary: int) -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
    )
    return LlamaForCausalLM(config)


def _bert(seed: int, vocabulary: int) -> nn.Module:
    from transformers import EuroBertConfig, EuroBertForMaskedLM

    torch.manual_seed(seed)
    config = EuroBertConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
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
    stream = [i for text in _texts()[200:] for i in tokenizer(text).input_ids]
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
    text = "\n".join(_texts())[:60_000]
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


def _command(*arguments: object) -> None:
    words = [str(word) for word in arguments]
    done = subprocess.run(
        [sys.executable, "-m", "ontogeny", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(
            " ".join(words),
            "->",
            done.returncode,
            done.stdout[-2000:],
            done.stderr[-2000:],
        )


def _tokenizer_of(folder: Path):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


def _of_labels(runs: Path, out: Path) -> None:
    tokenizer = _tokenizer_of(runs / "causal")
    texts = _texts()[:120]
    labels = [int("class" in text or "def" in text) for text in texts]
    inputs = og.Inputs.from_texts(texts, tokenizer, max_length=LENGTH, labels=labels)
    observed = [og.observables.Loss(), og.observables.LabelAccuracy()]
    run = og.Trajectory.from_folder(runs / "causal")
    og.Study(run, inputs, observed, controls=2).run(out).report(out / "report.html")


def _demo(runs: Path, out: Path) -> None:
    run_demo(out, quick=True)


def studies(runs: Path) -> dict[str, list[object]]:
    """Return the arguments of `ontogeny study` for each study that is made by it."""
    base = runs / "causal" / "checkpoint-96"
    model = f"{runs / 'characters' / 'model.py'}:build"
    ids = runs / "characters" / "held-out.npy"
    return {
        "quick": [runs / "causal", "--preset", "quick"],
        "standard": [runs / "causal"],
        "weights": [runs / "causal", "--preset", "weights"],
        "circuits": [runs / "causal", "--preset", "circuits"],
        "everything": [runs / "masked", "--preset", "everything"],
        "masked": [runs / "masked"],
        "tuned": [runs / "tuned", "--base", base],
        "lora": [runs / "lora", "--base", base],
        "one-model": [base, "--tokenizer", runs / "causal"],
        "characters": [
            *(runs / "characters", "--model", model),
            *("--texts", ids, "--tokenizer", "none"),
        ],
        "comparison": [runs / "causal", runs / "causal-1", "--preset", "quick"],
    }


IN_PYTHON: dict[str, Callable[[Path, Path], None]] = {
    "labels": _of_labels,
    "demo": _demo,
}
NAMES = (*studies(Path()), *IN_PYTHON)


def make_studies(runs: Path, out: Path, names: Sequence[str]) -> None:
    """Make the studies that are not there yet."""
    out.mkdir(parents=True, exist_ok=True)
    commands = studies(runs)
    for name in names or NAMES:
        if (out / name).exists():
            continue
        if name in commands:
            _command("study", *commands[name], "--output", out / name, *SHORT)
        else:
            IN_PYTHON[name](runs, out / name)
        print("studied", name, flush=True)


def _results(folder: Path) -> dict[str, xr.DataTree]:
    found = sorted(folder.rglob("result.zarr"))
    return {
        str(path.parent.relative_to(folder)): xr.open_datatree(
            path, engine="zarr", chunks=None
        )
        for path in found
    }


def _difference(left: xr.DataArray, right: xr.DataArray) -> str:
    if left.dims != right.dims or left.shape != right.shape:
        return f"shape {dict(left.sizes)} | {dict(right.sizes)}"
    a = left.values
    b = right.values
    if a.dtype.kind in "fiu" and b.dtype.kind in "fiu":
        if np.array_equal(a, b, equal_nan=a.dtype.kind == "f" and b.dtype.kind == "f"):
            return ""
        nan = int((np.isnan(a.astype(float)) != np.isnan(b.astype(float))).sum())
        most = np.nanmax(np.abs(a.astype(float) - b.astype(float)), initial=0.0)
        return f"differs by {most:.3g}" + (
            f", {nan} of {a.size} are NaN in one" if nan else ""
        )
    if np.array_equal(a, b):
        return ""
    unlike = a.astype(str) != b.astype(str)
    if not unlike.any():
        return ""
    return f"{int(unlike.sum())} of {a.size}: {a[unlike][0]!r} | {b[unlike][0]!r}"


def differences(left: xr.DataTree, right: xr.DataTree) -> Iterator[str]:
    """Yield a line for each variable and attribute in which two results differ."""
    paths = sorted(
        {node.path for node in left.subtree} | {node.path for node in right.subtree}
    )
    for path in paths:
        if path not in [node.path for node in left.subtree]:
            yield f"{path}: only in the second"
            continue
        if path not in [node.path for node in right.subtree]:
            yield f"{path}: only in the first"
            continue
        a = left[path].to_dataset()
        b = right[path].to_dataset()
        for name in sorted(set(a.variables) | set(b.variables)):
            if name not in a.variables or name not in b.variables:
                which = "first" if name in a.variables else "second"
                yield f"{path}/{name}: only in the {which}"
                continue
            unlike = _difference(a[name], b[name])
            if unlike:
                yield f"{path}/{name}: {unlike}"
        for key in sorted((set(a.attrs) | set(b.attrs)) - OF_TIME):
            if json.dumps(a.attrs.get(key), default=str) != json.dumps(
                b.attrs.get(key), default=str
            ):
                yield f"{path}@{key}: {str(a.attrs.get(key))[:300]} | {str(b.attrs.get(key))[:300]}"


def claim_differences(left: xr.DataTree, right: xr.DataTree) -> Iterator[str]:
    """Yield a line for each claim on a row or ability that two results do not share.

    Those of a result without claims of its own are made of its numbers.
    """
    old = _claims(left)
    new = _claims(right)
    for key in sorted(old.keys() | new.keys()):
        if key not in new or key not in old:
            yield f"claim {key}: only in the {'first' if key in old else 'second'}"
        elif old[key] != new[key]:
            yield f"claim {key}: {old[key]} | {new[key]}"


def _claims(tree: xr.DataTree) -> dict[tuple[str, ...], tuple[str, str, str]]:
    """Return the certainty, reason and last value of each claim, by kind and subject."""
    told = [claim for claim in claims_of_result(tree) if claim.kind in COMPARED]
    return {
        (str(claim.kind), claim.subject.run, *claim.subject.key): (
            str(claim.certainty),
            str(claim.reason or ""),
            f"{claim.last:.6g}",
        )
        for claim in told
    }


def compare(first: Path, second: Path, names: Sequence[str]) -> bool:
    """Print what differs between the studies of two folders; return whether nothing does."""
    same = True
    for name in names or NAMES:
        left = _results(first / name)
        right = _results(second / name)
        print(f"== {name}: {len(left)} and {len(right)} results")
        same &= left.keys() == right.keys() and bool(left)
        for place in left.keys() & right.keys():
            for line in differences(left[place], right[place]):
                same = False
                print(f"{place} {line}")
            apart = list(claim_differences(left[place], right[place]))
            count = len(_claims(right[place]))
            print(f"{place} claims: {count - len(apart)} of {count} agree")
            for line in apart:
                print(f"{place} {line}")
    return same


def main() -> None:
    """Run one of the three parts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("part", choices=["runs", "studies", "compare"])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--names", nargs="*", default=[])
    given = parser.parse_args()
    if given.part == "runs":
        make_runs(given.folders[0])
    elif given.part == "studies":
        make_studies(given.folders[0], given.folders[1], given.names)
    else:
        same = compare(given.folders[0], given.folders[1], given.names)
        sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
