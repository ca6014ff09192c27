"""The code of the guide to directions runs, on a small run with files of the names that it uses."""

import re
import runpy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

import ontogeny as og
from helpers.paths import GUIDES
from ontogeny.tasks import bundled_texts, train_tokenizer

WIDTH, LATENTS = 16, 24


def blocks():
    text = (GUIDES / "directions.md").read_text("utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


def models(tokenizer):
    config = GPT2Config(
        vocab_size=len(tokenizer), n_embd=WIDTH, n_head=2, n_layer=6, n_positions=64
    )
    found = {}
    for step in (0, 500, 1000):
        torch.manual_seed(step)
        found[step] = GPT2LMHeadModel(config).eval()
    return found


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the guide's files, which is worked in."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.save("refusal.npy", rng.normal(size=WIDTH))
    decoder = rng.normal(size=(LATENTS, WIDTH))
    arrays = {"W_enc": decoder.T, "W_dec": decoder, "b_dec": np.zeros(WIDTH)}
    (tmp_path / "gpt2-small-res").mkdir()
    np.savez("gpt2-small-res/params.npz", **arrays, b_enc=np.zeros(LATENTS))
    (tmp_path / "labels.csv").write_text("index,label\n3,names\n")
    words = (
        "1\t{}\t_\tNOUN\t_\t_\t0\troot\t_\t_\n2\tran\t_\tVERB\t_\t_\t1\tdep\t_\t_\n\n"
    )
    sentences = [
        words.format(word) for word in ["dogs", "cats", "boys", "girls", "men", "birds"]
    ]
    (tmp_path / "english.conllu").write_text("".join(sentences))
    pair = '{"right": "the dog ran", "wrong": "the dogs run", "group": "x"}\n'
    (tmp_path / "pairs.jsonl").write_text(pair + pair.replace("dog", "cat"))
    return tmp_path


@pytest.mark.slow
def test_every_study_of_the_guide_runs(place, monkeypatch):
    pytest.importorskip("conllu")
    tokenizer = train_tokenizer(bundled_texts(), 300)
    trajectory = og.Trajectory.from_models(models(tokenizer), tokenizer=tokenizer)
    texts = og.Inputs.from_texts(bundled_texts()[:12], tokenizer, max_length=24)
    made = []
    layer = {"resid_pre": "blocks.5.hook_resid_pre"}
    names = {"og": og, "trajectory": trajectory, "texts": texts}
    for number, block in enumerate(blocks()):
        if "og.Study(" not in block:
            continue
        code = block.replace("controls=3", "noise=0").replace("controls=2", "noise=0")
        code = code.replace("blocks.8.hook_resid_pre", layer["resid_pre"])
        exec(compile(code, f"block {number}", "exec"), names)
        result = names["study"].run(place / f"study-{number}")
        assert not len(result.problems()), result.problems()
        made += list(result)
    assert made == [
        "directions",
        "dictionary",
        "probe",
        "direction-effects",
        "tuned-difference",
    ]
    learned = og.observables.LearnedConcepts(
        "layers[5].resid", n_concepts=5, examples=0
    )
    og.Study(trajectory, texts, [learned], device="cpu").run(
        place / "studies" / "learned"
    )
    (block,) = [b for b in blocks() if "open_study" in b]
    names["activations"] = np.zeros((4, WIDTH))
    exec(compile(block, "concepts", "exec"), names)
    assert names["added"].shape == (4, WIDTH) and names["codes"].shape == (4,)


def test_the_recipe_for_sae_lens_is_that_of_the_tests():
    (block,) = [b for b in blocks() if "sae_lens" in b]
    assert 'SAE.load_from_disk("learned-sae")' in block and "sae.encode" in block


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_recipe_for_transformer_lens_steers():
    lens = pytest.importorskip(
        "transformer_lens", reason="TransformerLens is in an environment of its own"
    )
    (block,) = [b for b in blocks() if "transformer_lens" in b]
    config = lens.HookedTransformerConfig(
        n_layers=6, d_model=WIDTH, n_ctx=16, d_head=8, d_vocab=30, act_fn="gelu"
    )
    torch.manual_seed(0)
    model = lens.HookedTransformer(config)
    code = block.replace('HookedTransformer.from_pretrained("gpt2")', "small")
    one = SimpleNamespace(decoder=np.random.default_rng(0).normal(size=WIDTH))
    tokens = torch.arange(8)[None]
    names = {"small": model, "tokens": tokens, "one": one}
    exec(compile(code, "recipe", "exec"), names)
    with torch.no_grad():
        before = model.run_with_cache(tokens)[1]["blocks.5.hook_resid_post"]
        moved = before + 2.0 * torch.from_numpy(one.decoder).float()
        expected = model.unembed(model.ln_final(moved))
    torch.testing.assert_close(names["logits"].detach(), expected, rtol=1e-4, atol=1e-4)


def test_the_recipe_for_nnsight_steers(tmp_path):
    nnsight = pytest.importorskip(
        "nnsight", reason="nnsight is in an environment of its own"
    )
    (block,) = [b for b in blocks() if "nnsight" in b]
    config = GPT2Config(
        vocab_size=30, n_embd=WIDTH, n_head=2, n_layer=6, n_positions=16
    )
    torch.manual_seed(0)
    model = GPT2LMHeadModel(config).eval()
    one = SimpleNamespace(decoder=np.random.default_rng(0).normal(size=WIDTH))
    names = {
        "small": nnsight.NNsight(model),
        "tokens": torch.arange(8)[None],
        "one": one,
    }
    recipe = tmp_path / "recipe.py"  # nnsight reads the source of what it traces
    recipe.write_text(block.replace('LanguageModel("gpt2")', "small"))
    logits = runpy.run_path(str(recipe), names)["logits"]
    added = 2.0 * torch.from_numpy(one.decoder).float()
    model.transformer.h[5].register_forward_hook(lambda *called: called[-1] + added)
    with torch.no_grad():
        expected = model(names["tokens"]).logits
    torch.testing.assert_close(logits.detach(), expected, rtol=1e-4, atol=1e-4)
