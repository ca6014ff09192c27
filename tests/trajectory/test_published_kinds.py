"""What people publish beside whole folders of transformers: each is right, or said in one line."""

import json
import shutil
import subprocess

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

from ontogeny import Trajectory
from ontogeny.errors import ArgumentError, CheckpointError
from ontogeny.start import Wishes, propose
from ontogeny.trajectory.weights.pickled import held_numbers, unpickle

STEPS = (0, 10, 20)
SIZES = {
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_attention_heads": 2,
    "vocab_size": 16,
}


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**SIZES, num_hidden_layers=1)).eval()


@pytest.fixture(scope="module")
def settings(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("config")
    model.config.architectures = ["LlamaForCausalLM"]
    model.config.save_pretrained(folder)
    return json.loads((folder / "config.json").read_text())


def state_at(model, step):
    return {name: value + step for name, value in model.state_dict().items()}


def written(
    model, folder, names="checkpoint-{}/model.safetensors", change=lambda state: state
):
    for step in STEPS:
        path = folder / names.format(step)
        path.parent.mkdir(parents=True, exist_ok=True)
        state = change(state_at(model, step))
        save_file(state, path) if path.suffix == ".safetensors" else torch.save(
            state, path
        )
    return folder


def is_right(run, model):
    """Whether every step gives the logits that the model itself has with these weights."""
    ids = torch.arange(6)[None]
    for step in STEPS:
        there = LlamaForCausalLM(model.config).eval()
        there.load_state_dict(state_at(model, step))
        with torch.no_grad():
            assert torch.allclose(
                run[step].model()(ids).logits, there(ids).logits, atol=1e-5
            )
    return True


@pytest.mark.parametrize(
    "prefix",
    ["module.", "_orig_mod.", "base_model.model.", "model.", "module._orig_mod."],
)
def test_wrappers_of_a_transformers_model_are_taken_from_names(
    tmp_path, model, settings, prefix
):
    (tmp_path / "config.json").write_text(json.dumps(settings))
    run = written(
        model, tmp_path, change=lambda s: {prefix + n: v for n, v in s.items()}
    )
    trajectory = Trajectory.from_folder(run)
    assert is_right(trajectory, model)
    skeleton = trajectory.skeleton()
    assert torch.equal(skeleton.load(10).lm_head.weight, model.lm_head.weight + 10)
    assert torch.equal(skeleton.load(20).lm_head.weight, model.lm_head.weight + 20)


def test_wrapped_layers_are_those_of_the_model(tmp_path, model, settings):
    (tmp_path / "config.json").write_text(json.dumps(settings))
    wrapped = "layers.0.", "layers.0._checkpoint_wrapped_module."
    run = written(
        model, tmp_path, change=lambda s: {n.replace(*wrapped): v for n, v in s.items()}
    )
    assert is_right(Trajectory.from_folder(run), model)


def test_a_module_with_a_part_called_module_is_itself(tmp_path):
    class Wrapped(nn.Module):
        def __init__(self):
            super().__init__()
            self.module = nn.Linear(2, 3)

    module = Wrapped()
    written(module, tmp_path, "step_{}.safetensors")
    run = Trajectory.from_folder(tmp_path, Wrapped)
    assert torch.equal(run[10].model().module.bias, module.module.bias + 10)


@pytest.mark.parametrize(
    "place", ["step_{}/hf/model.safetensors", "step_{}/pytorch_model.bin"]
)
def test_weights_and_configuration_may_lie_apart(tmp_path, model, settings, place):
    run = written(model, tmp_path / "run" / "checkpoints", place)
    (tmp_path / "run" / "config.json").write_text(json.dumps(settings))
    assert is_right(Trajectory.from_folder(run), model)


def test_a_configuration_beside_the_weights_counts_before_those_above(
    tmp_path, model, settings
):
    run = written(model, tmp_path / "run", "epoch_{}/hf/model.safetensors")
    (tmp_path / "run" / "config.json").write_text(
        json.dumps({**settings, "vocab_size": 99})
    )
    for step in STEPS:
        (run / f"epoch_{step}" / "hf" / "config.json").write_text(json.dumps(settings))
    assert is_right(Trajectory.from_folder(run), model)


def test_shards_without_an_index_are_one_model_if_all_are_there(
    tmp_path, model, settings
):
    (tmp_path / "config.json").write_text(json.dumps(settings))
    for step in STEPS:
        folder = tmp_path / f"epoch_{step}"
        folder.mkdir()
        items = sorted(state_at(model, step).items())
        for n, part in enumerate((items[:4], items[4:]), 1):
            save_file(dict(part), folder / f"ft-model-0000{n}-of-00002.safetensors")
    assert is_right(Trajectory.from_folder(tmp_path), model)
    (tmp_path / "epoch_10" / "ft-model-00001-of-00002.safetensors").unlink()
    run = Trajectory.from_folder(tmp_path)
    assert run.steps.tolist() == [0, 20] and run.catalogue.incomplete[0][0] == 10


@pytest.mark.parametrize(
    ("kind", "name"), [("llama", "LlamaForCausalLM"), ("bert", "BertForMaskedLM")]
)
def test_a_configuration_without_architectures_is_of_the_usual_class(
    tmp_path, kind, name
):
    import transformers

    cls = getattr(transformers, name)
    module = cls(cls.config_class(**SIZES, num_hidden_layers=1))
    module.save_pretrained(tmp_path / "checkpoint-5")
    path = tmp_path / "checkpoint-5" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "architectures": None}))
    assert type(Trajectory.from_folder(tmp_path)[5].model()) is cls


def stored(state, dtype):
    return {n: v.to(dtype if v.ndim == 2 else torch.bfloat16) for n, v in state.items()}


def nan_head(state):
    return {"lm_head.weight": torch.full_like(state["lm_head.weight"], torch.nan)}


def test_weights_of_eight_bits_are_widened_and_whole_numbers_refused(
    tmp_path, model, settings
):
    for kind in ("fp8", "int8"):
        (tmp_path / kind).mkdir()
        (tmp_path / kind / "config.json").write_text(json.dumps(settings))
    run = written(
        model, tmp_path / "fp8", change=lambda s: stored(s, torch.float8_e4m3fn)
    )
    weight = Trajectory.from_folder(run)[10].model().lm_head.weight
    expected = (model.lm_head.weight + 10).to(torch.float8_e4m3fn).to(torch.bfloat16)
    assert weight.dtype == torch.bfloat16 and torch.equal(weight, expected)
    assert not Trajectory.from_folder(
        run
    ).audit()  # PyTorch does not ask such tensors itself
    written(
        model, run, change=lambda s: stored({**s, **nan_head(s)}, torch.float8_e4m3fn)
    )
    messages = [
        f.message for f in Trajectory.from_folder(run).audit() if f.kind == "non-finite"
    ]
    assert messages == ["steps 0, 10 and 20 hold NaN or infinity in lm_head.weight"]
    run = written(model, tmp_path / "int8", change=lambda s: stored(s, torch.int8))
    with pytest.raises(
        CheckpointError, match=r"9 of 9 matrices as whole numbers of eight bits"
    ):
        Trajectory.from_folder(run)


def test_a_tokenizer_in_a_folder_of_its_own_or_above_is_that_of_the_run(
    tmp_path, model
):
    vocabulary = json.dumps({chr(97 + i): i for i in range(16)})
    for place in ("one/tokenizer", "two", "three"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "vocab.json").write_text(vocabulary)
    for run in ("one", "two/checkpoints", "three/out/checkpoints"):
        written(model, tmp_path / run)
    runs = [Trajectory.from_folder(tmp_path / p) for p in ("one", "two/checkpoints")]
    assert [len(run.tokenizer()) for run in runs] == [16, 16]
    assert (
        Trajectory.from_folder(tmp_path / "three/out/checkpoints").tokenizer() is None
    )


def test_weights_in_a_tuple_are_read_and_several_models_in_a_file_named(tmp_path):
    module = nn.Linear(2, 3)
    adam = torch.optim.AdamW(module.parameters())
    module(torch.ones(2)).sum().backward()
    adam.step()
    written(
        module, tmp_path / "tuple", "ckpt_{}.pt", lambda s: (s, adam.state_dict(), 7)
    )
    run = Trajectory.from_folder(tmp_path / "tuple", nn.Linear(2, 3))
    assert torch.equal(run[10].model().weight, module.weight + 10)
    (tmp_path / "several").mkdir()
    states = {step: state_at(module, step) for step in STEPS}
    torch.save(states, tmp_path / "several" / "all.pt")
    run = Trajectory.from_folder(tmp_path / "several" / "all.pt", nn.Linear(2, 3))
    with pytest.raises(
        CheckpointError, match="holds 3 models, under 0, 10, 20; save each"
    ) as no:
        run[0].model()
    code = (
        str(no.value)
        .partition("apart: ")[2]
        .replace("'all.pt'", repr(str(tmp_path / "several/all.pt")))
    )
    exec(code.replace("f'step_", f"f'{tmp_path}/step_"), {})
    assert Trajectory.from_folder(tmp_path, nn.Linear(2, 3)).steps.tolist() == [*STEPS]


def test_old_archives_of_torch_are_weights_and_optimisers_are_none(tmp_path):
    module = nn.Linear(2, 3)
    written(module, tmp_path, "checkpoint_{}.pth.tar")
    written(module, tmp_path, "opt{}.pt", lambda _: {"state": {}})
    run = Trajectory.from_folder(tmp_path, nn.Linear(2, 3))
    assert run.steps.tolist() == [*STEPS] and not run.catalogue.order.left_out
    assert torch.equal(run[20].model().bias, module.bias + 20)


def test_what_olmo_and_mistral_write_beside_and_around_weights_is_passed_over(tmp_path):
    module = nn.Linear(2, 3)
    run = written(module, tmp_path / "olmo", "step{}-unsharded/model.pt")
    for step in STEPS:
        for name in ("train.pt", "optim.pt"):
            torch.save({"global_step": 7}, run / f"step{step}-unsharded" / name)
    place = "checkpoint_{:06d}/consolidated/consolidated.safetensors"
    for folder in (run, written(module, tmp_path / "mistral", place)):
        trajectory = Trajectory.from_folder(folder, nn.Linear(2, 3))
        assert trajectory.steps.tolist() == [*STEPS]
        assert torch.equal(trajectory[20].model().bias, module.bias + 20)


def test_halves_of_a_named_adapter_are_no_model(tmp_path):
    for step in STEPS:
        place = tmp_path / f"checkpoint-{step}" / "style"
        place.mkdir(parents=True)
        (place / "adapter_config.json").write_text("{}")
        save_file(nn.Linear(2, 3).state_dict(), place / "adapter_model.safetensors")
    with pytest.raises(CheckpointError, match="an adapter of the kind None"):
        Trajectory.from_folder(tmp_path, nn.Linear(2, 3))


def test_adapters_of_mlx_are_no_model(tmp_path):
    halves = nn.Linear(2, 3).state_dict()
    names = {"weight": "layers.0.q_proj.lora_a", "bias": "layers.0.q_proj.lora_b"}
    for step in STEPS:
        state = {names[n]: v.clone() for n, v in halves.items()}
        save_file(state, tmp_path / f"{step:07d}_adapters.safetensors")
    with pytest.raises(
        CheckpointError, match=r"holds adapters of MLX or torchtune, .*; merge them"
    ):
        Trajectory.from_folder(tmp_path, nn.Linear(2, 3))


def test_models_of_opt_are_no_files_of_an_optimiser(tmp_path):
    module = nn.Linear(2, 3)
    written(module, tmp_path, "opt-125m-step{}.pt", lambda state: state)
    assert Trajectory.from_folder(tmp_path, nn.Linear(2, 3)).steps.tolist() == [*STEPS]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            ["checkpoint-5/flax_model.msgpack"],
            r"weights of Flax, .*from_pretrained\('.*checkpoint-5', from_flax=True\)",
        ),
        (
            ["checkpoint-5/tf_model.h5"],
            r"of TensorFlow, .*from_pretrained\('.*checkpoint-5', from_tf=True\)",
        ),
        (["step_5.msgpack"], r"of Flax; .*msgpack_restore.*step_5\.pt'\)\"\.$"),
        (
            ["step_5.keras"],
            r"archives of Keras; .*unzip .*step_5\.keras model\.weights",
        ),
        (["step_5.npz"], "holds arrays or pickles"),
        (
            ["10/checkpoint_metadata.json", "latest.txt"],
            "holds files of nanotron; convert",
        ),
        (["step-5/manifest.ocdbt"], "holds arrays of JAX"),
        (["5/_CHECKPOINT_METADATA"], "holds arrays of JAX"),
        (["a-step=5.nemo"], "holds archives of NeMo"),
        (
            ["consolidated.00.pth", "consolidated.01.pth"],
            "pieces of Meta's Llama; join",
        ),
        (
            ["model-a1:v0/model.safetensors", "x-a1:v1/model.safetensors"],
            "whose steps cannot be",
        ),
        (["params_5.pkl"], "holds arrays or pickles"),
        (["weights.01-2.35.hdf5"], r"weights of Keras; .*h5py.*weights\.01-2\.35\.pt"),
        (["model_00000500.bin"], r"holds weights of llm\.c; convert each"),
        (["meta.pkl", "train.bin"], "holds no checkpoints; looked for"),
        (
            ["checkpoint-5/optimizer.pt", "checkpoint-5/scheduler.pt"],
            "the state of an optimiser",
        ),
        (
            ["checkpoint-5/optimizer.bin", "checkpoint-5/random_states_0.pkl"],
            "of an optimiser",
        ),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, files, words):
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(CheckpointError, match=words):
        Trajectory.from_folder(tmp_path)


def test_what_verl_saves_is_named_with_the_command_that_joins_it(tmp_path):
    for step in STEPS:
        actor = tmp_path / f"global_step_{step}" / "actor"
        actor.mkdir(parents=True)
        for name in ("model", "optim", "extra_state"):
            torch.save({"w": torch.ones(2)}, actor / f"{name}_world_size_1_rank_0.pt")
        # Where the texts were.
        torch.save({"x": torch.ones(2)}, actor.parent / "data.pt")
    with pytest.raises(
        CheckpointError, match=r"verl holds; join it with python -m verl\.model_me"
    ):
        Trajectory.from_folder(tmp_path)


def test_the_hubs_cache_is_named_with_the_repository_that_it_holds(tmp_path):
    (tmp_path / "models--me--tiny-lm" / "snapshots" / "0a1b").mkdir(parents=True)
    with pytest.raises(
        CheckpointError, match=f"me/tiny-lm, .* export HF_HUB_CACHE={tmp_path}"
    ):
        Trajectory.from_folder(tmp_path / "models--me--tiny-lm")


def nested(state):
    """Return the tensors as mappings in mappings, by the parts of their names."""
    tree: dict = {}
    for name, value in state.items():
        *places, last = name.split(".")
        inner = tree
        for place in places:
            inner = inner.setdefault(place, {})
        inner[last] = value
    return tree


@pytest.mark.parametrize("key", ["params", "model"])
def test_weights_in_mappings_within_mappings_are_read(tmp_path, model, settings, key):
    (tmp_path / "config.json").write_text(json.dumps(settings))
    adam = {"state": {0: {"exp_avg": torch.ones(2)}}}
    run = written(
        model,
        tmp_path,
        "step_{}.pt",
        lambda s: {key: nested(s), "optimizer": adam, "args": {}},
    )
    assert is_right(Trajectory.from_folder(run), model)
    assert is_right(Trajectory.from_folder(run, key=key), model)


@pytest.mark.parametrize(
    "state",
    [
        lambda w: {
            "trainer": {"model": w, "optimizer": {"state": {0: {"exp_avg": w}}}}
        },
        lambda w: {
            "model": {"net": w, "opt": {"state": {0: {"exp_avg": w["enc"]["w"]}}}}
        },
        lambda w: {"state": {"params": w, "momentum": w}},
    ],
    ids=["trainer", "optimiser", "momentum"],
)
def test_moments_of_an_optimiser_are_never_read_as_weights(tmp_path, state):
    """A loop's "trainer" gave optimizer.state.0.exp_avg as a weight, without a word."""
    path = tmp_path / "step_1.pt"
    torch.save(state({"enc": {"w": torch.ones(2)}, "dec": {"w": torch.ones(2)}}), path)
    with pytest.raises(CheckpointError, match="holds no tensors by name"):
        unpickle(path)


@pytest.mark.parametrize("history", [["Adam"], [3], [None], []])
def test_another_history_than_that_of_fairseq_is_left_alone(tmp_path, history):
    path = tmp_path / "step_1.pt"
    torch.save(
        {"model": {"w": torch.ones(2)}, "optimizer_history": history, "step": 7}, path
    )
    assert held_numbers(path) == {"step": 7}


def test_a_single_number_that_became_infinite_is_a_finding(tmp_path, model, settings):
    (tmp_path / "config.json").write_text(json.dumps(settings))
    scale = {"scale": torch.tensor(float("inf"))}
    run = Trajectory.from_folder(
        written(model, tmp_path, change=lambda s: {**s, **scale})
    )
    assert [finding for finding in run.audit() if finding.kind == "non-finite"]


def test_the_mask_of_gpt_neox_in_half_precision_is_no_finding(
    tmp_path, model, settings
):
    (tmp_path / "config.json").write_text(json.dumps(settings))
    masked = {"attention.masked_bias": torch.tensor(-1e9).half()}
    run = Trajectory.from_folder(
        written(model, tmp_path, change=lambda s: {**s, **masked})
    )
    assert not [finding for finding in run.audit() if finding.kind == "non-finite"]


def test_a_single_archive_of_nemo_is_named(tmp_path):
    (tmp_path / "model.nemo").write_bytes(b"x")
    with pytest.raises(CheckpointError, match=r"archives of NeMo; unpack with tar -xf"):
        Trajectory.from_folder(tmp_path / "model.nemo")


def test_an_archive_is_to_be_unpacked(tmp_path):
    np.savez(tmp_path / "run.zip.npz", a=1)
    path = shutil.move(tmp_path / "run.zip.npz", tmp_path / "run.zip")
    with pytest.raises(CheckpointError, match=r"run\.zip is an archive; unpack it"):
        Trajectory.from_folder(path)


def test_a_folder_says_which_folder_below_holds_its_checkpoints(
    tmp_path, model, settings
):
    below = written(model, tmp_path / "run" / "seed1" / "checkpoints")
    with pytest.raises(
        CheckpointError, match=f"no checkpoints itself; name the folder: {below}"
    ):
        Trajectory.from_folder(tmp_path / "run")
    top = tmp_path / "run"
    (top / "config.json").write_text(json.dumps(settings))
    save_file(model.state_dict(), top / "model.safetensors")
    lines = Trajectory.from_folder(top).lines()
    assert lines == [
        "1 checkpoint, step 0",
        "left out: seed1/checkpoints/ (name this folder)",
    ]


def test_revisions_of_a_clone_are_named_with_the_line_that_gives_them(
    tmp_path, model, settings
):
    clone = tmp_path / "clone"

    def git(*words):
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(
            ["git", "-C", clone, *who, *words], check=True, capture_output=True
        )

    clone.mkdir()
    git("init", "-b", "main")
    (clone / "config.json").write_text(json.dumps(settings))
    for step in STEPS:
        save_file(state_at(model, step), clone / "model.safetensors")
        git("add", "-A")
        git("commit", "-m", f"step {step}")
        git("tag", f"step{step}")
    git("pack-refs", "--all")
    line = Trajectory.from_folder(clone).lines()[1]
    assert line.startswith("left out: revisions step0, step10, step20 (for r in ")
    command, _, rest = line.partition(" (")[2].partition("; then name ")
    subprocess.run(["bash", "-c", command], check=True, capture_output=True)
    assert is_right(Trajectory.from_folder(rest.rstrip(")")), model)


def test_code_that_comes_with_a_checkpoint_is_named_with_what_runs_it(
    tmp_path, model, settings
):
    run = written(model, tmp_path)
    ours = {
        "auto_map": {"AutoConfig": "c.C", "AutoModelForCausalLM": "m.M"},
        "architectures": ["M"],
    }
    (run / "config.json").write_text(
        json.dumps({**settings, "model_type": "mine", **ours})
    )
    for name in ("c.py", "m.py"):
        (run / name).write_text("raise SystemExit")
    with pytest.raises(
        CheckpointError, match="needs code that comes with it, which is not run"
    ) as no:
        Trajectory.from_folder(run)[0].model()
    assert (
        f"AutoModelForCausalLM.from_pretrained({str(run)!r}, trust_remote_code=True)"
        in str(no.value)
    )


def test_models_whose_layers_give_tokens_first_are_refused_by_it(tmp_path):
    from transformers import XLNetConfig, XLNetLMHeadModel

    config = XLNetConfig(vocab_size=16, d_model=8, n_layer=1, n_head=2, d_inner=8)
    for step in STEPS:
        XLNetLMHeadModel(config).save_pretrained(tmp_path / f"checkpoint-{step}")
    np.save(tmp_path / "ids.npy", np.arange(200) % 16)
    wishes = Wishes(str(tmp_path), texts=(str(tmp_path / "ids.npy"),), tokenizer="none")
    with pytest.raises(
        ArgumentError, match=r"XLNetLMHeadModel gives .tokens, texts, features"
    ):
        propose(wishes, tmp_path)


@pytest.mark.parametrize(
    "name", ["ViTForImageClassification", "WhisperForConditionalGeneration"]
)
def test_models_of_images_and_sound_are_refused_by_what_they_read(
    tmp_path, model, settings, name
):
    run = written(model, tmp_path / "run")
    (run / "config.json").write_text(json.dumps({**settings, "architectures": [name]}))
    (tmp_path / "texts.txt").write_text("a b\n" * 30)
    wishes = Wishes(str(run), texts=(str(tmp_path / "texts.txt"),))
    with pytest.raises(
        ArgumentError, match=r"reads (pixel_values|input_features); only models"
    ):
        propose(wishes, tmp_path)
