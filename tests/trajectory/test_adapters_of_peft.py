"""What peft writes opens as peft's own merged model, bit for bit, or is refused in one line."""

import gc
import json
import os
import pickle
import shutil
import weakref
from dataclasses import dataclass

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
)

from ontogeny import Trajectory
from ontogeny.errors import CheckpointError
from ontogeny.trajectory.adapters import base as bases
from ontogeny.trajectory.adapters import weights

peft = pytest.importorskip("peft")

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:peft"),
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
]

IDS = torch.tensor([[5, 6, 7, 8, 9, 10, 11], [1, 2, 3, 39, 38, 37, 36]])
SIZES = {
    "vocab_size": 40,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 16,
}


def llama(**settings):
    return LlamaForCausalLM(LlamaConfig(**SIZES, **settings))


def tied():
    return llama(tie_word_embeddings=True)


def biased():
    return llama(attention_bias=True)


def bfloat16():
    return llama().to(torch.bfloat16)


def float16():
    return llama().to(torch.float16)


def gpt2():
    return GPT2LMHeadModel(
        GPT2Config(n_layer=2, n_embd=32, n_head=4, vocab_size=40, n_positions=16)
    )


def experts():
    return MixtralForCausalLM(
        MixtralConfig(**SIZES, num_local_experts=3, num_experts_per_tok=2)
    )


CAUSAL = {"task_type": "CAUSAL_LM"}


def lora(targets=("q_proj", "v_proj"), **settings):
    targets = list(targets)
    return lambda: peft.LoraConfig(
        **{"r": 4, "lora_alpha": 8, "target_modules": targets, **CAUSAL, **settings}
    )


def of(name, targets=("q_proj", "v_proj"), **settings):
    targets = {} if targets is None else {"target_modules": list(targets)}
    return lambda: getattr(peft, name)(**{**targets, **CAUSAL, **settings})


OPENED = {
    "LoRA": (llama, lora()),
    "LoRA of all": (llama, lora(target_modules="all-linear")),
    "LoRA with patterns": (
        llama,
        lora(
            rank_pattern={"layers.1.self_attn.q_proj": 2}, alpha_pattern={"v_proj": 32}
        ),
    ),
    "rsLoRA": (llama, lora(use_rslora=True)),
    "DoRA": (llama, lora(use_dora=True)),
    "DoRA of an embedding": (llama, lora(["embed_tokens", "q_proj"], use_dora=True)),
    "token rows": (llama, lora(trainable_token_indices={"embed_tokens": [5, 6, 7]})),
    "tied token rows": (tied, lora(trainable_token_indices=[5, 6, 7])),
    "saved modules": (llama, lora(modules_to_save=["lm_head", "embed_tokens"])),
    "saved tied modules": (
        tied,
        lora(modules_to_save=["embed_tokens"], ensure_weight_tying=True),
    ),
    "a layer": (llama, lora(layers_to_transform=[1])),
    "excluded": (llama, lora(exclude_modules=["model.layers.0.self_attn.q_proj"])),
    "bias of LoRA": (biased, lora(lora_bias=True)),
    "biases": (biased, lora(bias="all")),
    "biases of targets": (biased, lora(bias="lora_only")),
    "embedding": (llama, lora(["embed_tokens", "q_proj"])),
    "head": (llama, lora(["lm_head", "q_proj"])),
    "gaussian": (llama, lora(init_lora_weights="gaussian")),
    "PiSSA": (llama, lora(init_lora_weights="pissa")),
    "OLoRA": (llama, lora(init_lora_weights="olora")),
    "orthogonal": (llama, lora(init_lora_weights="orthogonal")),
    "EVA": (llama, lora(init_lora_weights="eva")),
    "bfloat16": (bfloat16, lora()),
    "float16": (float16, lora(use_rslora=True)),
    "bfloat16 DoRA": (bfloat16, lora(use_dora=True)),
    "Conv1D": (gpt2, lora(["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True)),
    "Conv1D DoRA": (
        gpt2,
        lora(["c_attn", "c_proj"], fan_in_fan_out=True, use_dora=True),
    ),
    "Conv1D biases": (gpt2, lora(["c_attn"], fan_in_fan_out=True, bias="all")),
    "Conv1D IA3": (
        gpt2,
        of(
            "IA3Config",
            ["c_attn", "c_proj"],
            feedforward_modules=["c_proj"],
            fan_in_fan_out=True,
        ),
    ),
    "experts": (
        experts,
        lora(
            ["q_proj"],
            target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"],
        ),
    ),
    "beside experts": (experts, lora(["q_proj"])),
    "OFT": (llama, of("OFTConfig", oft_block_size=8)),
    "BOFT": (llama, of("BOFTConfig", boft_block_size=8)),
    "HRA": (llama, of("HRAConfig", r=4)),
    "IA3": (
        llama,
        of("IA3Config", ["k_proj", "down_proj"], feedforward_modules=["down_proj"]),
    ),
    "VeRA": (llama, of("VeraConfig", ["o_proj"], r=4)),
    "VeRA by its seed": (
        llama,
        of("VeraConfig", ["o_proj"], r=4, save_projection=False),
    ),
    "LoHa": (llama, of("LoHaConfig", r=4)),
    "LoKr": (llama, of("LoKrConfig", r=4)),
    "AdaLoRA": (llama, of("AdaLoraConfig", init_r=4, target_r=2, total_step=9)),
    "FourierFT": (llama, of("FourierFTConfig", n_frequency=20)),
    "norms": (llama, of("LNTuningConfig", ["input_layernorm", "norm"])),
    "token rows alone": (
        llama,
        of("TrainableTokensConfig", ["embed_tokens"], token_indices=[5]),
    ),
    "VB-LoRA": (
        llama,
        of("VBLoRAConfig", ["q_proj"], r=4, num_vectors=16, vector_length=8),
    ),
    "RandLoRA": (llama, of("RandLoraConfig", ["o_proj"], r=4)),
    "C3A": (llama, of("C3AConfig", ["o_proj"], block_size=8)),
    "SHiRA": (llama, of("ShiraConfig", ["o_proj"], r=4)),
    "MiSS": (llama, of("MissConfig", ["o_proj"], r=4)),
    "DeLoRA": (llama, of("DeloraConfig", ["o_proj"], r=4)),
    "RoAd": (llama, of("RoadConfig", ["o_proj"], group_size=8)),
    "WaveFT": (llama, of("WaveFTConfig", ["o_proj"], n_frequency=20)),
    "GraLoRA": (llama, of("GraloraConfig", ["o_proj"], r=4)),
}
TOKENS = {"num_virtual_tokens": 3}
REFUSED = {
    "activated LoRA": (llama, lora(alora_invocation_tokens=[9, 10]), "activated LoRA"),
    "bias without one": (llama, lora(lora_bias=True), "base layer has no bias"),
    "PiSSA by chance": (
        llama,
        lora(init_lora_weights="pissa_niter_4"),
        "random numbers",
    ),
    "repeated layers": (
        llama,
        lora(layer_replication=[[0, 2], [1, 2]]),
        "repeats layers",
    ),
    "embedding of a tied model": (
        tied,
        lora(["embed_tokens"]),
        "ties to lm_head.weight",
    ),
    "head of a tied model": (
        tied,
        lora(["lm_head"]),
        "ties to model.embed_tokens.weight",
    ),
    "saved embedding of a tied model": (
        tied,
        lora(modules_to_save=["lm_head"]),
        "ties to",
    ),
    "prompt": (llama, of("PromptTuningConfig", None, **TOKENS), "PROMPT_TUNING"),
    "prefix": (llama, of("PrefixTuningConfig", None, **TOKENS), "PREFIX_TUNING"),
    "P-tuning": (llama, of("PromptEncoderConfig", None, **TOKENS), "P_TUNING"),
    "adaption prompt": (
        llama,
        of("AdaptionPromptConfig", None, adapter_len=4, adapter_layers=2),
        "ADAPTION_PROMPT",
    ),
}


def write(folder, build, configuration, name="default"):
    """A base and one adapter on it, moved far enough to be seen; peft's module of both."""
    torch.manual_seed(0)
    build().save_pretrained(folder / "base")
    base = read(folder)
    tuned = peft.get_peft_model(base, configuration, name).eval()
    with torch.no_grad():
        for parameter in tuned.parameters():
            if parameter.requires_grad:
                parameter.add_(0.3 * torch.randn_like(parameter))
    tuned.save_pretrained(folder / "run" / "checkpoint-10")
    return tuned


def read(folder):
    build = {
        "gpt2": GPT2LMHeadModel,
        "llama": LlamaForCausalLM,
        "mixtral": MixtralForCausalLM,
    }
    kind = LlamaConfig.get_config_dict(folder / "base")[0]["model_type"]
    return build[kind].from_pretrained(folder / "base").eval()


def merged(folder):
    model = peft.PeftModel.from_pretrained(
        read(folder), folder / "run" / "checkpoint-10"
    )
    return model.merge_and_unload()


def logits(model):
    with torch.no_grad():
        return model(IDS).logits.float()


def assert_equal(model, expected):
    state, theirs = model.state_dict(), expected.state_dict()
    assert state.keys() == theirs.keys()
    for key, value in theirs.items():
        assert state[key].dtype == value.dtype and torch.equal(state[key], value), key


@pytest.mark.slow
@pytest.mark.parametrize("case", OPENED.values(), ids=OPENED)
def test_what_peft_writes_opens_as_its_merged_model(tmp_path, case):
    build, configuration = case
    tuned = write(tmp_path, build, configuration())
    run = Trajectory.from_folder(tmp_path / "run")
    expected = merged(tmp_path)
    model = run[10].model()
    assert_equal(model, expected)
    far = (logits(tuned) - logits(read(tmp_path))).abs().max()
    exact = model.dtype == torch.float32
    assert far > 1e-3
    assert (logits(model) - logits(tuned)).abs().max() < (
        1e-5 if exact else 0.1 * far + 0.02
    )
    skeleton = run.skeleton()
    assert_equal(skeleton.load(0), read(tmp_path))
    assert_equal(skeleton.load(10), expected)
    assert not list(run.audit())


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_is_no_model_of_its_own_is_refused_in_one_line(tmp_path, case):
    build, configuration, message = case
    write(tmp_path, build, configuration())
    with pytest.raises(CheckpointError, match=message) as error:
        Trajectory.from_folder(tmp_path / "run")[10].model()
    assert str(error.value).isprintable()


def test_a_tied_embedding_is_merged_once(tmp_path):
    """Peft's own merge adds it to both names of the one tensor, so that it counts twice."""
    configuration = lora(["embed_tokens", "q_proj"], ensure_weight_tying=True)()
    tuned = write(tmp_path, tied, configuration)
    model = Trajectory.from_folder(tmp_path / "run")[10].model()
    assert (logits(model) - logits(tuned)).abs().max() < 1e-4


ENLARGED = {
    "saved": (llama, lora(), {"save_embedding_layers": True}),
    "tied": (tied, lora(), {"save_embedding_layers": True}),
    "GPT-2": (
        gpt2,
        lora(["c_attn"], fan_in_fan_out=True),
        {"save_embedding_layers": True},
    ),
    "modules": (llama, lora(modules_to_save=["embed_tokens", "lm_head"]), {}),
    "targets": (llama, lora(["embed_tokens", "lm_head"]), {}),
    "token rows": (
        llama,
        lora(
            trainable_token_indices={"embed_tokens": [5, 42]},
            modules_to_save=["lm_head"],
        ),
        {"save_embedding_layers": True},
    ),
}


def write_enlarged(folder, build, configuration, **saving):
    torch.manual_seed(0)
    build().save_pretrained(folder / "base")
    base = read(folder)
    base.resize_token_embeddings(44)
    tuned = peft.get_peft_model(base, configuration).eval()
    for parameter in tuned.parameters():
        if parameter.requires_grad:
            parameter.data.add_(0.3 * torch.randn_like(parameter))
    tuned.save_pretrained(folder / "run" / "checkpoint-10", **saving)
    return tuned


def test_rows_that_neither_base_nor_adapter_hold_are_asked_for(tmp_path):
    tuned = write_enlarged(tmp_path, llama, lora(["lm_head"])())
    message = "enlarged to 44 before the tuning, .* save the enlarged base"
    with pytest.raises(CheckpointError, match=message):
        Trajectory.from_folder(tmp_path / "run")[10].model()
    base = read(tmp_path)
    base.resize_token_embeddings(44)
    head = tuned.get_base_model().lm_head.base_layer
    base.load_state_dict(
        {
            "model.embed_tokens.weight": tuned.get_base_model().model.embed_tokens.weight,
            "lm_head.weight": head.weight,
        },
        strict=False,
    )
    base.save_pretrained(tmp_path / "enlarged")
    run = Trajectory.from_folder(tmp_path / "run", base=tmp_path / "enlarged")
    assert (logits(run[10].model()) - logits(tuned)).abs().max() < 1e-5


@pytest.mark.parametrize("case", ENLARGED.values(), ids=ENLARGED)
def test_rows_that_were_added_to_the_vocabulary_come_with_the_adapter(
    tmp_path, case, caplog
):
    build, configuration, saving = case
    bases._say_new.cache_clear()
    tuned = write_enlarged(tmp_path, build, configuration(), **saving)
    run = Trajectory.from_folder(tmp_path / "run")
    model = run[10].model()
    assert model.get_input_embeddings().weight.shape[0] == 44
    assert (logits(model) - logits(tuned)).abs().max() < 1e-5
    first, before = run[0].model(), read(tmp_path)
    assert torch.equal(
        first.get_input_embeddings().weight[:40], before.get_input_embeddings().weight
    )
    assert torch.equal(
        first.get_input_embeddings().weight[40:],
        model.get_input_embeddings().weight[40:],
    )
    assert torch.equal(logits(first)[..., :40], logits(before))
    assert "from row 40 on" in caplog.text
    skeleton = run.skeleton()
    assert torch.equal(logits(skeleton.load(0)), logits(first))
    assert torch.equal(logits(skeleton.load(10)), logits(model))


@pytest.mark.parametrize("name", ["default", "style"])
def test_pickled_tensors_and_old_settings_are_read(tmp_path, name):
    """Without lora_alpha the whole adapter was off; peft takes its default."""
    write(tmp_path, llama, lora(lora_alpha=8, r=4)(), name)
    place = next((tmp_path / "run").rglob("adapter_config.json")).parent
    tensors = load_file(place / "adapter_model.safetensors")
    (place / "adapter_model.safetensors").unlink()
    torch.save(tensors, place / "adapter_model.bin")
    table = json.loads((place / "adapter_config.json").read_text())
    kept = {"base_model_name_or_path", "peft_type", "r", "target_modules", "task_type"}
    old = {key: value for key, value in table.items() if key in kept}
    (place / "adapter_config.json").write_text(json.dumps({**old, "enable_lora": None}))
    run = Trajectory.from_folder(tmp_path / "run")
    expected = peft.PeftModel.from_pretrained(read(tmp_path), place).merge_and_unload()
    assert_equal(run[10].model(), expected)
    assert not torch.equal(logits(expected), logits(read(tmp_path)))


def test_no_code_of_a_pickle_runs(tmp_path):
    write(tmp_path, llama, lora()())
    place = tmp_path / "run" / "checkpoint-10"
    (place / "adapter_model.safetensors").unlink()
    torch.save(
        {"a.lora_A.weight": Payload(tmp_path / "ran")}, place / "adapter_model.bin"
    )
    with pytest.raises(CheckpointError):
        Trajectory.from_folder(tmp_path / "run")[10].model()
    assert not (tmp_path / "ran").exists()


class Payload:
    """What a pickle calls when it is loaded."""

    def __init__(self, target):
        self.target = str(target)

    def __reduce__(self):
        return os.mkdir, (self.target,)


def test_an_adapter_is_opened_once_and_its_base_once_for_all(tmp_path, monkeypatch):
    write(tmp_path, llama, lora()())
    for step in (20, 30):
        place = tmp_path / "run" / f"checkpoint-{step}"
        shutil.copytree(tmp_path / "run" / "checkpoint-10", place)
        tensors = load_file(place / "adapter_model.safetensors")
        save_file(
            {n: t * step for n, t in tensors.items()},
            place / "adapter_model.safetensors",
        )
    opened, read_bases = [], []
    load, build = peft.PeftModel.from_pretrained, weights.base_module
    monkeypatch.setattr(
        peft.PeftModel,
        "from_pretrained",
        lambda *a, **k: opened.append(a[1]) or load(*a, **k),
    )
    monkeypatch.setattr(
        weights, "base_module", lambda *a: read_bases.append(a) or build(*a)
    )
    run = Trajectory.from_folder(tmp_path / "run")
    run.fingerprints()
    control = run.control("walk")
    for _ in range(2):
        for step in run.steps:
            run[step].model()
            control[step].model()
    assert len(opened) == 3 and len(read_bases) == 1


@dataclass(frozen=True)
class Builds:
    """Builds the base, as what opens a GGUF file does; equal to every other one."""

    def __call__(self):
        return llama()


@pytest.mark.parametrize(("model", "built"), [(Builds(), 1), (llama(), 4)])
def test_a_base_is_built_once_for_all_tasks_that_a_process_is_sent(
    tmp_path, monkeypatch, model, built
):
    """A module of the user is another one in each task: it goes, and its adapters with it."""
    write(tmp_path, llama, lora()())
    bases_built = []
    build = weights.base_module

    def noted(*arguments):
        module = build(*arguments)
        bases_built.append(weakref.ref(next(module.parameters())))
        return module

    monkeypatch.setattr(weights, "base_module", noted)
    run = Trajectory.from_folder(tmp_path / "run", model=model)
    for _ in range(4):
        sent = pickle.loads(pickle.dumps(run))
        with sent[10].open() as reader:
            reader.get("model.layers.0.self_attn.q_proj.weight")
        del sent, reader
    gc.collect()
    assert len(bases_built) == built
    assert sum(weight() is not None for weight in bases_built) <= 2


def test_weights_beside_an_adapter_are_named_as_not_read(tmp_path, caplog):
    write(tmp_path, llama, lora()())
    plain = Trajectory.from_folder(tmp_path / "run")
    assert "holds other weights" not in caplog.text
    before = logits(plain[10].model())
    llama().save_pretrained(tmp_path / "run" / "checkpoint-10")
    run = Trajectory.from_folder(tmp_path / "run", base=tmp_path / "base")
    assert (
        "holds other weights (model.safetensors): the adapter on its base is read"
        in caplog.text
    )
    assert torch.equal(logits(run[10].model()), before)
    (
        tmp_path / "run" / "checkpoint-10" / "adapter_config.json"
    ).unlink()  # as it advises
    whole = Trajectory.from_folder(tmp_path / "run")
    assert not torch.equal(logits(whole[10].model()), before)
