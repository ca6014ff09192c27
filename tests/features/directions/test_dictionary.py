"""Dictionaries of others: codes equal to sae-lens', and features followed back over a run."""

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from huggingface_hub import constants
from safetensors.torch import load_file, save_file

import ontogeny as og
from helpers import write_saes
from ontogeny.capture.layers import match_layers
from ontogeny.errors import ArgumentError
from ontogeny.features.directions.dictionary_files import read_dictionary
from ontogeny.features.directions.dictionary_lives import (
    claims_of_dictionary,
    labels_of,
    with_features,
)
from ontogeny.features.directions.encoding import Encoding
from ontogeny.features.directions.hooks import PLACES, layer_of
from ontogeny.observables import Dictionary

SAES = Path(__file__).parent / "saes"
CASES = sorted(path.name for path in SAES.iterdir())


@pytest.mark.parametrize("case", CASES)
def test_codes_are_those_that_sae_lens_gave(case):
    encoding = read_dictionary(str(SAES / case))
    expected = load_file(SAES / case / "expected.safetensors")
    codes, back = encoding.both(expected["x"])
    exact = (
        {"rtol": 0, "atol": 0} if "bfloat16" in case else {"rtol": 1e-6, "atol": 1e-6}
    )
    torch.testing.assert_close(codes, expected["codes"], **exact)
    torch.testing.assert_close(back, expected["back"], rtol=1e-5, atol=1e-5)
    assert (codes > 0).any() and encoding.hook == "blocks.0.hook_resid_post"
    if case.startswith("topk"):
        assert int((codes > 0).sum(dim=1).max()) <= 3


@pytest.mark.parametrize("case", CASES)
def test_codes_are_those_of_sae_lens_where_it_is_installed(case, tmp_path):
    pytest.importorskip("sae_lens", reason="sae-lens is in an environment of its own")
    sae = write_saes.made(case, 7)
    sae.save_model(str(tmp_path))
    x = torch.randn(50, write_saes.M, generator=torch.Generator().manual_seed(1))
    codes, back = read_dictionary(str(tmp_path)).both(x)
    torch.testing.assert_close(codes, sae.encode(x).float(), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(back, sae.forward(x).float(), rtol=1e-5, atol=1e-5)


def test_gemma_scope_and_plain_arrays_are_read(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {
        "W_enc": rng.normal(size=(4, 6)),
        "W_dec": rng.normal(size=(6, 4)),
        "b_enc": rng.normal(size=6),
        "b_dec": rng.normal(size=4),
        "threshold": rng.random(6),
    }
    folder = tmp_path / "layer_20"
    folder.mkdir()
    np.savez(folder / "params.npz", **arrays)
    x = rng.normal(size=(9, 4))
    before = x @ arrays["W_enc"] + arrays["b_enc"]
    expected = np.where(before > arrays["threshold"], np.maximum(before, 0), 0)
    assert read_dictionary(str(folder)).codes(
        torch.from_numpy(x)
    ).numpy() == pytest.approx(expected, abs=1e-5)
    tensors = {
        name: torch.from_numpy(a) for name, a in arrays.items() if name != "threshold"
    }
    save_file(tensors, tmp_path / "plain.safetensors")
    plain = read_dictionary(str(tmp_path / "plain.safetensors"))
    assert plain.architecture == "standard" and plain.count == 6


def changed(tmp_path, **entries):
    shutil.copytree(SAES / "standard", tmp_path / "sae", dirs_exist_ok=True)
    config = json.loads((tmp_path / "sae" / "cfg.json").read_text())
    (tmp_path / "sae" / "cfg.json").write_text(json.dumps(config | entries))
    return str(tmp_path / "sae")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (
            {"use_secret_scale": 2},
            "has an entry 'use_secret_scale' that is not known here",
        ),
        (
            {"architecture": "matryoshka"},
            "architecture must be one of 'standard', 'topk'",
        ),
        (
            {"normalize_activations": "covariance_whitening"},
            "got 'covariance_whitening'",
        ),
        ({"dtype": "int8"}, "dtype must be one of 'float32'"),
        ({"architecture": "topk"}, "k must be a whole number of at least 1; got 0"),
        (
            {"architecture": "gated"},
            "has W_enc, W_dec, b_dec, b_gate, b_mag, r_mag; b_gate is",
        ),
        ({"activation_fn_str": "tanh-relu"}, "activation_fn must be one of 'relu'"),
        ({"model_from_pretrained_kwargs": {"fold_ln": True}}, "changed by 'fold_ln'"),
    ],
)
def test_what_might_change_codes_is_refused(tmp_path, entries, message):
    folder = changed(tmp_path, **entries)
    with pytest.raises(ArgumentError, match=re.escape(message)) as refused:
        Dictionary(folder)
    assert "\n" not in str(refused.value)


def test_older_configurations_are_read(tmp_path):
    old = {
        "hook_point": "blocks.0.hook_mlp_out",
        "activation_fn_str": "relu",
        "model_from_pretrained_kwargs": {"center_writing_weights": True},
        "normalize_activations": None,
        "context_size": 128,
    }
    folder = changed(tmp_path, metadata={}, **old)
    encoding = read_dictionary(folder)
    assert encoding.centred and encoding.hook == "blocks.0.hook_mlp_out"
    expected = load_file(SAES / "standard" / "expected.safetensors")
    shifted = expected["x"] - expected["x"].mean(dim=1, keepdim=True)
    direct = read_dictionary(str(SAES / "standard")).codes(shifted)
    torch.testing.assert_close(encoding.codes(expected["x"] + 3.0), direct)


def test_every_hook_has_a_layer_and_others_are_refused():
    for place in PLACES:
        assert layer_of(f"blocks.3.{place}").startswith("layers[3].")
    with pytest.raises(ArgumentError, match="hook must be one of"):
        layer_of("blocks.3.hook_nothing")


def test_hooks_are_places_of_known_families():
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(vocab_size=9, n_embd=4, n_head=2, n_layer=2))
    found = {
        place: match_layers(model, layer_of(f"blocks.1.{place}")) for place in PLACES
    }
    assert found == {
        "hook_resid_pre": ["transformer.h.1#in"],
        "hook_resid_mid": ["transformer.h.1.ln_2#in"],
        "hook_resid_post": ["transformer.h.1"],
        "hook_mlp_out": ["transformer.h.1.mlp"],
        "hook_attn_out": ["transformer.h.1.attn"],
        "attn.hook_z": ["transformer.h.1.attn.c_proj#in"],
        "attn.hook_q": ["transformer.h.1.attn.c_attn#q"],
        "attn.hook_k": ["transformer.h.1.attn.c_attn#k"],
        "attn.hook_v": ["transformer.h.1.attn.c_attn#v"],
    }


def test_what_is_no_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    for source, message in (
        (str(tmp_path), "has no cfg.json and no sae_weights.safetensors"),
        ("nowhere", "there is no folder or file 'nowhere'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            Dictionary(source)
    with pytest.raises(ArgumentError, match="and the repository owner/name is not in"):
        Dictionary("owner/name/folder")
    (tmp_path / "cfg.json").write_text("{")
    (tmp_path / "sae_weights.safetensors").write_bytes(b"none")
    with pytest.raises(ArgumentError, match="is no JSON"):
        Dictionary(str(tmp_path))
    np.savez(tmp_path / "plain.npz", W_enc=np.eye(3))
    with pytest.raises(ArgumentError, match="W_dec is missing"):
        Dictionary(str(tmp_path / "plain.npz"))


def test_a_repository_is_asked_for_once(tmp_path, monkeypatch):
    shutil.copytree(SAES / "topk", tmp_path / "folder")
    asked = []
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download",
        lambda repo, **_: asked.append(repo) or str(tmp_path),
    )
    for _ in range(3):
        assert read_dictionary("asked/once/folder").architecture == "topk"
    assert asked == ["asked/once"]


def test_labels_that_change_are_read_anew(tmp_path):
    file = tmp_path / "labels.csv"
    for stamp, label in ((1, "nouns"), (2, "verbs")):
        file.write_text(f"index,label\n0,{label}\n")
        os.utime(file, ns=(stamp, stamp))
        assert labels_of(str(file), 3) == {0: label}


# ---- followed back -------------------------------------------------------------------------------

WIDTH, LATENTS, WORDS = 16, 8, 32
STEPS = (0, 10, 20, 30, 40, 50)
BORN = {0: 0, 1: 0, 2: 0, 3: 20, 4: 20, 5: 30, 6: 40, 7: 40}
"""From which step on the model writes each of the dictionary's features."""


def planted():
    rng = np.random.default_rng(0)
    decoder = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0][:LATENTS]
    codes = (rng.random((WORDS, LATENTS)) < 0.25) * (1 + rng.random((WORDS, LATENTS)))
    return decoder, codes


class Written(torch.nn.Module):
    """A layer whose rows are sums of those features that are born, and noise."""

    def __init__(self, step, shift=0.0):
        super().__init__()
        decoder, codes = planted()
        there = np.array([born <= step for born in BORN.values()])
        noise = 0.05 * np.random.default_rng(step).normal(size=(WORDS, WIDTH))
        table = torch.from_numpy(codes * there @ decoder + noise + shift).float()
        self.layers = torch.nn.ModuleList([torch.nn.Embedding.from_pretrained(table)])

    def forward(self, input_ids, attention_mask=None):
        return self.layers[0](input_ids)


@pytest.fixture
def folder(tmp_path):
    decoder, _ = planted()
    arrays = {"W_enc": decoder.T, "W_dec": decoder, "b_dec": np.zeros(WIDTH)}
    np.savez(tmp_path / "d.npz", **arrays, b_enc=np.full(LATENTS, -0.3))
    (tmp_path / "labels.csv").write_text("index,label\n3,plural nouns\n5,names\n")
    return tmp_path


def studied(folder, **options):
    trajectory = og.Trajectory.from_models({step: Written(step) for step in STEPS})
    rng = np.random.default_rng(1)
    inputs = og.Inputs.from_tokens(rng.integers(0, WORDS, (60, 20)))
    arguments = {"hook": "layers.0", "labels": str(folder / "labels.csv")} | options
    observable = Dictionary(str(folder / "d.npz"), **arguments)
    control = og.Trajectory.from_models({step: Written(60) for step in STEPS})
    return og.Study(
        trajectory, inputs, [observable], device="cpu", control_runs={"still": control}
    ).run(folder / "s")


def test_features_are_born_where_they_were_planted(folder):
    result = studied(folder)
    assert not len(result.problems()), result.problems()
    data = result["dictionary"].to_dataset().sel(layer="layers.0")
    assert float(data.n_born) == 5 and float(data.n_born_control.max()) == 0
    numbers = data.shown_number.values.astype(int)
    for place, number in enumerate(numbers):
        born = float(data.shown_born[place])
        assert born == BORN[number] if BORN[number] else np.isnan(born)
    assert "3 plural nouns" in data.shown_label.values.tolist()
    claims = result.claims()
    (whole,) = claims[claims["kind"] == "readable"].to_dict("records")
    # The control run holds every feature from the start, and explains about as much.
    last = data.explained_control.isel(run=0, step=-1) >= data.explained.isel(step=-1)
    assert whole["certainty"] == ("as controls" if last else "sure")
    assert whole["last"] > 0.7
    born = claims[(claims["kind"] == "born") & (claims["quantity"] == "n_born")]
    assert born["value"].tolist() == [5.0] and born["certainty"].tolist() == ["sure"]


def test_numbers_are_those_of_a_plain_loop(folder):
    result = studied(folder, features=[5, 0])
    data = result["dictionary"].to_dataset().sel(layer="layers.0")
    encoding = read_dictionary(str(folder / "d.npz"))
    rng = np.random.default_rng(1)
    ids = torch.from_numpy(rng.integers(0, WORDS, (60, 20)))[:, 1:].flatten()
    rows = {step: Written(step)(ids) for step in (20, 50)}
    codes, back = encoding.both(rows[20])
    lost = ((rows[20] - back) ** 2).sum() / ((rows[20] - rows[20].mean(0)) ** 2).sum()
    at = data.sel(step=20)
    assert float(at.explained) == pytest.approx(1 - float(lost), rel=1e-5)
    assert float(at.dead) == pytest.approx(float((~(codes > 0).any(0)).double().mean()))
    assert float(at.active) == pytest.approx(float((codes > 0).sum(1).double().mean()))
    last = encoding.codes(rows[50])
    pair = np.corrcoef(codes[:, 0].numpy(), last[:, 0].numpy())[0, 1]
    assert data.shown_number.values.tolist() == [5, 0]
    assert float(at.shown_agreement.isel(shown=1)) == pytest.approx(pair, rel=1e-4)
    assert result["dictionary"].firing.sel(
        step=50, layer="layers.0"
    ).values == pytest.approx((last > 0).double().mean(0).numpy(), rel=1e-5)


def test_features_that_fire_by_noise_are_not_born_at_the_reference(folder):
    rng = np.random.default_rng(3)
    D = rng.normal(size=(30, WIDTH))
    noise = {"W_enc": D.T, "W_dec": D, "b_enc": np.zeros(30), "b_dec": np.zeros(WIDTH)}
    np.savez(folder / "d.npz", **noise)

    class Noise(torch.nn.Module):
        def __init__(self, step):
            super().__init__()
            table = np.random.default_rng(step).normal(size=(WORDS, WIDTH))
            rows = torch.from_numpy(table).float()
            self.layers = torch.nn.ModuleList(
                [torch.nn.Embedding.from_pretrained(rows)]
            )

        def forward(self, input_ids, attention_mask=None):
            return self.layers[0](input_ids)

    trajectory = og.Trajectory.from_models({step: Noise(step) for step in STEPS})
    inputs = og.Inputs.from_tokens(rng.integers(0, WORDS, (60, 20)))
    observable = Dictionary(str(folder / "d.npz"), hook="layers.0")
    result = og.Study(trajectory, inputs, [observable], device="cpu").run(folder / "n")
    assert not len(result.problems()), result.problems()
    # One in dozens agrees by chance at the step before.
    assert result["dictionary"].n_born.item() <= 2


def of_one_feature(agreement, reference):
    parts = np.tile(agreement, (3, 1)).T[:, None, :, None]
    data = xr.Dataset(
        {
            "agreement": (("step", "layer", "part", "feature"), parts),
            "firing": (("step", "layer", "feature"), np.full((5, 1, 1), 0.1)),
            "written": (("step", "layer", "feature"), np.ones((5, 1, 1))),
        },
        {"step": [0, 10, 20, 30, 40], "layer": ["h"]},
        {"reference_step": reference},
    )
    return with_features(data, {}, (0,), 1).shown_born.item()


def test_a_single_text_is_refused_before_the_start(folder):
    trajectory = og.Trajectory.from_models({step: Written(step) for step in STEPS})
    inputs = og.Inputs.from_tokens(np.arange(20)[None] % WORDS)
    observable = Dictionary(str(folder / "d.npz"), hook="layers.0")
    with pytest.raises(ArgumentError, match="dictionary needs at least two texts"):
        og.Study(trajectory, inputs, [observable], device="cpu").plan()


def test_births_stand_beside_the_control_runs_that_judge():
    runs = ["line", "walk 0", "walk 1"]
    values = {
        "explained": (("step", "layer"), [[np.nan]]),
        "n_born": ("layer", [12.0]),
        "n_alive": ("layer", [40.0]),
        "n_born_control": (("layer", "run"), [[40.0, 0.0, np.nan]]),
        "shown_born": (("layer", "shown"), np.zeros((1, 0))),
    }
    data = xr.Dataset(values, {"step": [0], "layer": ["h"], "run": runs})
    (claim,) = claims_of_dictionary("dictionary", data, "chance")
    assert claim.certainty == "sure"
    assert [(b.name, b.value) for b in claim.beside] == [("walk 0", 0.0)]


def test_births_leave_out_the_step_of_the_reference_and_no_other():
    # Codes that are those of the reference but for rounding also where they are not it.
    assert of_one_feature([0.0, 0.1, 0.2, 1.0, 1.0], reference=40) == 30
    assert of_one_feature([0.0, 0.1, 0.2, 1.0, 0.9], reference=30) == 40
    # A reference that was not measured leaves out none.
    assert of_one_feature([0.0, 0.1, 0.2, 0.3, 0.9], reference=35) == 40


def test_another_width_wrong_labels_and_numbers_are_refused_before_the_start(folder):
    np.savez(
        folder / "w.npz",
        W_enc=np.eye(3),
        W_dec=np.eye(3),
        b_enc=np.zeros(3),
        b_dec=np.zeros(3),
    )
    shutil.copy(folder / "w.npz", folder / "d.npz")
    with pytest.raises(ArgumentError, match=r"has 3 features, and 'layers.0' gives 16"):
        studied(folder, labels=None)
    with pytest.raises(
        ArgumentError, match=r"labels must hold index .* 2 do not: line"
    ):
        studied(folder)
    with pytest.raises(
        ArgumentError, match="features must be numbers from 0 to 2; got 9"
    ):
        studied(folder, labels=None, features=[9])
    with pytest.raises(og.errors.LayerMatchError, match=r"layers.7"):
        studied(folder, labels=None, hook="layers.7")
    with pytest.raises(ArgumentError, match="hook must be named"):
        Dictionary(str(folder / "w.npz"))


def test_equal_dictionaries_have_equal_digests():
    one, same = (read_dictionary(str(SAES / "topk")) for _ in range(2))
    other = Encoding(one.weights, "topk", k=2)
    assert one.digest == same.digest != other.digest
