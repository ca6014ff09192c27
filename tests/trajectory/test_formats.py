"""Checkpoints of other frameworks are the same weights, and no pickle among them runs."""

import math
import os
import pickle
import shutil
import struct
from types import SimpleNamespace

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.distributed import checkpoint as dcp
from transformers import LlamaConfig, LlamaForCausalLM

import ontogeny as og
from ontogeny import Trajectory
from ontogeny.errors import CheckpointError
from ontogeny.trajectory.weights.folders import find_weights
from ontogeny.trajectory.weights.formats import deepspeed, gguf_header
from ontogeny.trajectory.weights.formats import gguf as gguf_format
from ontogeny.trajectory.weights.formats.gguf_header import is_whole


def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Embedding(5, 3), nn.LayerNorm(3), nn.Linear(3, 7))


STATE = build().state_dict()


def same(weights, state=STATE):
    with weights.open() as reader:
        assert reader.names() == sorted(state)
        for name, value in state.items():
            assert (
                reader.shape(name) == tuple(value.shape)
                and reader.dtype(name) == value.dtype
            )
            assert torch.equal(reader.get(name), value)
            assert torch.equal(reader.rows(name, 1, 3), value[1:3])
    return True


# Distributed checkpoints, by PyTorch's own writer.


class Payload:
    """What a pickle calls when it is loaded."""

    def __init__(self, target):
        self.target = str(target)

    def __reduce__(self):
        return os.mkdir, (self.target,)


def saved(state, folder):
    dcp.save(state, checkpoint_id=folder, no_dist=True)
    return folder


def model_and_optimiser():
    model = build()
    optimiser = torch.optim.AdamW(model.parameters())
    model[0](torch.arange(3)).sum().backward()
    optimiser.step()
    return model.state_dict(), optimiser.state_dict()


@pytest.mark.parametrize("form", ["flat", "model", "app", "compiled"])
@pytest.mark.filterwarnings("ignore")
def test_a_distributed_checkpoint_holds_the_weights_whatever_stands_beside_them(
    tmp_path, form
):
    model, optimiser = model_and_optimiser()
    content = {
        "flat": {**model, "optimizer": optimiser},
        "model": {"model": model, "optim": optimiser, "step": 4},
        "app": {"app": {"model": model, "optim": optimiser}, "lr": 0.1},
        "compiled": {"model": {f"_orig_mod.{n}": v for n, v in model.items()}},
    }[form]
    assert same(find_weights(saved(content, tmp_path / "step_4")), model)


@pytest.mark.filterwarnings("ignore")
def test_runs_of_accelerate_and_the_trainer_with_fsdp_open(tmp_path):
    for step in (2, 4):
        folder = tmp_path / f"checkpoint-{step}"
        state = {name: value + step for name, value in STATE.items()}
        saved({"model": state}, folder / "pytorch_model_fsdp_0")
        saved({"optimizer": {"a": torch.ones(2)}}, folder / "optimizer_0")
    (tmp_path / "checkpoint-6").mkdir()
    torch.save(STATE, tmp_path / "checkpoint-6/pytorch_model_fsdp.bin")
    run = Trajectory.from_folder(tmp_path, build)
    assert list(run.steps) == [2, 4, 6] and not list(run.audit())
    assert torch.equal(run[4].model()[2].bias, state["2.bias"])
    assert len({run[step].fingerprint for step in run.steps}) == 3
    assert same(find_weights(tmp_path / "checkpoint-6"))


@pytest.mark.filterwarnings("ignore")
def test_the_index_of_a_distributed_checkpoint_never_runs(tmp_path):
    folder = saved({"model": STATE}, tmp_path / "a")
    index = pickle.loads((folder / ".metadata").read_bytes())
    index.planner_data["evil"] = Payload(tmp_path / "ran")
    index.storage_meta = Payload(tmp_path / "ran")
    (folder / ".metadata").write_bytes(pickle.dumps(index))
    assert same(find_weights(folder))
    for content in (
        pickle.dumps(Payload(tmp_path / "ran")),
        b"no pickle",
        pickle.dumps({}),
    ):
        (folder / ".metadata").write_bytes(content)
        with pytest.raises(CheckpointError, match="not an index of a distributed"):
            same(find_weights(folder))
    assert not (tmp_path / "ran").exists()


@pytest.mark.filterwarnings("ignore")
def test_bytes_and_shards_of_a_distributed_checkpoint_never_run(tmp_path):
    folder = saved({"model": STATE, "extra": SimpleNamespace(a=1)}, tmp_path / "a")
    assert same(find_weights(folder))  # the bytes are not read
    shard = next(folder.glob("*.distcp"))
    payload = pickle.dumps(Payload(tmp_path / "ran"))
    shard.write_bytes(payload + bytes(shard.stat().st_size - len(payload)))
    with pytest.raises(CheckpointError, match="cannot be read; is it damaged"):
        same(find_weights(folder))
    assert not (tmp_path / "ran").exists()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", ["../b.distcp", "/etc/passwd", "gone.distcp"])
def test_a_distributed_checkpoint_reads_only_its_own_files(tmp_path, path):
    folder = saved({"model": STATE}, tmp_path / "a")
    (tmp_path / "b.distcp").write_bytes(next(folder.glob("*.distcp")).read_bytes())
    index = pickle.loads((folder / ".metadata").read_bytes())
    for entry in index.storage_data.values():
        entry.relative_path = path
    (folder / ".metadata").write_bytes(pickle.dumps(index))
    with pytest.raises(CheckpointError, match=r"lacks 1 of its files: "):
        find_weights(folder).check()


# DeepSpeed, by the layout that its zero_to_fp32.py reads; tried on what DeepSpeed 0.19.8 wrote.


class Stage:
    """Stands for an enumeration of DeepSpeed's."""


def write_zero(folder, stage, processes, frozen=(), beside=None):
    folder.mkdir(parents=True)
    names = [name for name in STATE if name not in frozen]
    shapes = [
        {name: STATE[name].shape for name in group} for group in (names[:2], names[2:])
    ]
    states = [{} for _ in range(processes)]
    pieces = [[] for _ in range(processes)]
    if stage == 3:
        flat = [[] for _ in range(processes)]
        for name in names:
            cut(STATE[name], processes, flat)
        pieces = [[torch.cat(each)[:9], torch.cat(each)[9:]] for each in flat]
    else:
        for group in shapes:
            vector = torch.cat([STATE[name].reshape(-1) for name in group])
            cut(vector, processes, pieces)
    fragments = [[] for _ in range(processes)]
    for name in frozen:
        cut(STATE[name], processes, fragments)
    for rank in range(processes):
        states[rank] = {
            "module": {} if stage == 3 else {n: v.bfloat16() for n, v in STATE.items()},
            "buffer_names": [],
            "param_shapes": shapes,
            "frozen_param_shapes": {name: STATE[name].shape for name in frozen},
            "frozen_param_fragments": dict(zip(frozen, fragments[rank], strict=True))
            if stage == 3
            else {name: STATE[name] for name in frozen},
            "shared_params": {},
            "ds_config": beside,
        }
        optimiser = {
            "zero_stage": Stage(),
            "partition_count": processes,
            "loss_scaler": beside,
        }
        key = "fp32_flat_groups" if stage == 3 else "single_partition_of_fp32_groups"
        state = {"optimizer_state_dict": {**optimiser, key: pieces[rank]}}
        torch.save(
            state, folder / f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"
        )
        if stage == 3:
            torch.save(
                states[rank], folder / f"zero_pp_rank_{rank}_mp_rank_00_model_states.pt"
            )
    if stage < 3:
        torch.save(states[0], folder / "mp_rank_00_model_states.pt")
    return folder


def cut(value, processes, pieces):
    length = math.ceil(value.numel() / processes)
    padded = torch.cat(
        [value.reshape(-1), torch.zeros(length * processes - value.numel())]
    )
    for piece, part in zip(pieces, padded.split(length), strict=True):
        piece.append(part)


@pytest.mark.parametrize("stage", [1, 3])
@pytest.mark.parametrize("processes", [1, 2, 12])
@pytest.mark.parametrize("frozen", [(), ("1.weight", "2.weight")])
def test_zero_checkpoints_hold_the_whole_float32_weights(
    tmp_path, stage, processes, frozen
):
    for step in (2, 4):
        write_zero(tmp_path / f"global_step{step}", stage, processes, frozen)
    (tmp_path / "latest").write_text("global_step4")
    run = Trajectory.from_folder(tmp_path, build)
    assert list(run.steps) == [2, 4] and same(run[4].weights)
    assert torch.equal(run[2].model()[2].weight, STATE["2.weight"])
    # A checkpoint of the Trainer, with the folder inside.
    assert same(find_weights(tmp_path))


def test_zero_without_the_optimiser_gives_the_weights_of_the_model_or_says_what_is_missing(
    tmp_path,
):
    for stage in (2, 3):
        folder = write_zero(tmp_path / str(stage), stage, 2)
        for path in folder.glob("*optim_states.pt"):
            path.unlink()
    assert same(
        find_weights(tmp_path / "2"), {n: v.bfloat16() for n, v in STATE.items()}
    )
    with pytest.raises(CheckpointError, match=r"lacks the files \*_optim_states.pt"):
        find_weights(tmp_path / "3").check()


def test_zero_with_files_of_some_processes_or_other_content_is_refused(tmp_path):
    folder = write_zero(tmp_path / "a", 3, 3)
    (folder / "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt").unlink()
    with pytest.raises(CheckpointError, match="files of 2 of 3 processes"):
        find_weights(folder).check()
    folder = write_zero(tmp_path / "b", 1, 1)
    torch.save({"module": {}}, folder / "mp_rank_01_model_states.pt")
    with pytest.raises(CheckpointError, match="tensor parallelism"):
        find_weights(folder).check()
    folder = write_zero(tmp_path / "c", 1, 1)
    torch.save({"module": {}}, folder / "mp_rank_00_model_states.pt")
    with pytest.raises(
        CheckpointError, match=r"not laid out as ZeRO.*zero_to_fp32\.py"
    ):
        find_weights(folder).check()


@pytest.mark.parametrize("stage", [2, 3])
def test_pickles_of_deepspeed_never_run(tmp_path, stage):
    folder = write_zero(tmp_path / "a", stage, 2, beside=Payload(tmp_path / "ran"))
    assert same(find_weights(folder)) and not (tmp_path / "ran").exists()


def test_the_latest_tag_leads_to_no_other_folder(tmp_path):
    write_zero(tmp_path / "b", 1, 1)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "latest").write_text("../b")
    assert deepspeed.find(tmp_path / "a") is None


# GGUF, by its own writer.

NAMES = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
NAMES |= {f"self_attn.{c}_proj": f"attn_{c}" for c in "qkv"} | {
    "self_attn.o_proj": "attn_output"
}
NAMES |= {f"mlp.{part}_proj": f"ffn_{part}" for part in ("gate", "up", "down")}


@pytest.fixture
def llama(tmp_path):
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=32,
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=16,
    )
    model = LlamaForCausalLM(config)
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "llama")
    for key, value in {
        "context_length": 16,
        "embedding_length": 8,
        "block_count": 2,
        "feed_forward_length": 16,
        "head_count": 2,
        "head_count_kv": 2,
        "vocab_size": 32,
        "rope_dimension_count": 4,
    }.items():
        getattr(writer, f"add_{key}")(value)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    for name, value in model.state_dict().items():
        writer.add_tensor(*in_gguf(name, value))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return model, tmp_path / "model.gguf"


def in_gguf(name, value):
    if name == "model.embed_tokens.weight":
        return "token_embd.weight", value.numpy()
    if name == "model.norm.weight":
        return "output_norm.weight", value.numpy()
    if name == "lm_head.weight":
        return "output.weight", value.numpy()
    _, _, layer, inner = name.removesuffix(".weight").split(".", 3)
    # Llama.cpp pairs other coordinates.
    if inner in ("self_attn.q_proj", "self_attn.k_proj"):
        value = value.reshape(2, 2, 2, 8).swapaxes(1, 2).reshape(8, 8)
    return f"blk.{layer}.{NAMES[inner]}.weight", np.ascontiguousarray(value.numpy())


def test_a_gguf_file_is_read_by_transformers_and_needs_no_configuration(llama):
    model, path = llama
    path = path.rename(path.with_name("ckpt_5.gguf"))
    run = Trajectory.from_folder(path)
    assert same(run[5].weights, model.state_dict())
    ids = torch.arange(10)[None]
    assert torch.allclose(
        run[5].model()(ids).logits, model.eval()(ids).logits, atol=1e-6
    )
    assert run.skeleton().load(5).lm_head.weight.shape == (32, 8)


@pytest.mark.filterwarnings("ignore::UserWarning:peft")
def test_an_adapter_on_a_gguf_file_has_the_logits_of_peft(llama, tmp_path):
    peft = pytest.importorskip("peft")
    model, path = llama
    torch.manual_seed(1)
    settings = peft.LoraConfig(
        r=2,
        target_modules=["q_proj", "down_proj"],
        init_lora_weights=False,
        task_type="CAUSAL_LM",
    )
    tuned = peft.get_peft_model(model.eval(), settings)
    tuned.save_pretrained(tmp_path / "run" / "checkpoint-5")
    run = Trajectory.from_folder(tmp_path / "run", base=path)
    ids = torch.arange(10)[None]
    assert torch.allclose(run[5].model()(ids).logits, tuned(ids).logits, atol=1e-5)
    with tuned.disable_adapter():
        assert torch.allclose(run[0].model()(ids).logits, tuned(ids).logits, atol=1e-5)
        assert not torch.allclose(
            run[5].model()(ids).logits, tuned(ids).logits, atol=1e-2
        )


def test_a_gguf_file_is_not_called_pickled(llama, caplog, capsys, monkeypatch):
    monkeypatch.setattr("ontogeny.trajectory.weights.announced.topics", set())
    with Trajectory.from_folder(llama[1])[0].open():
        pass
    assert "pickled" not in caplog.text and "quantised" in caplog.text
    assert "GGUF tensors" not in capsys.readouterr().err  # no bar of transformers'


@pytest.mark.parametrize(("memory", "read"), [(10**9, 2), (0, 4)])
def test_files_of_a_run_are_converted_once_as_far_as_memory_goes(
    llama, monkeypatch, memory, read
):
    model, path = llama
    for step in (0, 1):
        shutil.copyfile(path, path.with_name(f"tiny-step-{step}.gguf"))
    path.unlink()
    names = []

    def converted(path, kind, weights):
        names.append(path.name)
        return model

    monkeypatch.setattr(gguf_format, "_converted", {})
    monkeypatch.setattr(gguf_format, "_transformers", converted)
    monkeypatch.setattr(gguf_format, "free_memory", lambda: memory)
    run = Trajectory.from_folder(path.parent)
    monkeypatch.setattr(gguf_format, "_converted", {})
    names.clear()
    for step in (0, 1, 1, 0, 1):  # as a control is made of two checkpoints, in turn
        with run[step].open() as reader:
            assert len(reader.names()) == len(model.state_dict())
    assert len(names) == read
    assert run.tokenizer() is run.tokenizer() and len(names) == read + 1


def test_a_gguf_file_is_opened_by_its_header_and_converted_when_it_is_read(
    llama, monkeypatch
):
    """Finding that there is nothing to do took the conversion of all weights."""
    _, path = llama
    converted = []
    monkeypatch.setattr(
        gguf_format, "_tensors", lambda *file: converted.append(file) or {}
    )
    checkpoint = Trajectory.from_folder(path.rename(path.with_name("ckpt_5.gguf")))[5]
    assert checkpoint.weights.on_disk() is not None and not converted
    with checkpoint.open():
        assert len(converted) == 1


def test_a_gguf_file_without_a_tokenizer_says_how_to_name_one(llama):
    run = Trajectory.from_folder(llama[1].rename(llama[1].with_name("ckpt_5.gguf")))
    with pytest.raises(CheckpointError, match="name another one with --tokenizer"):
        run.tokenizer()


def test_a_finished_study_opens_no_gguf_file_again(llama, tmp_path, monkeypatch):
    """Its shapes, and a trial of its observables, took 17 s each time."""
    _, path = llama
    path = path.rename(path.with_name("ckpt_5.gguf"))
    inputs = og.Inputs.from_tokens([[1, 2, 3, 4], [5, 6, 7, 8]])

    def study():
        observables = [og.observables.Loss(), og.observables.WeightNorms()]
        run = Trajectory.from_folder(path, tokenizer=False)
        return og.Study(run, inputs, observables, noise=0)

    first = study().run(tmp_path / "study", progress=False)
    assert not list(first.problems())

    def opened(*_, **__):
        raise AssertionError("a GGUF file was opened")

    monkeypatch.setattr(gguf_format, "_tensors", opened)
    monkeypatch.setattr(gguf_format, "_transformers", opened)
    again = study().run(tmp_path / "study", progress=False)
    assert again.tree["loss"].equals(first.tree["loss"])


def test_blocks_of_gguf_files_have_the_sizes_of_its_own_package():
    sizes = {int(kind): size for kind, size in gguf.GGML_QUANT_SIZES.items()}
    assert {kind: sizes[kind] for kind in gguf_header._BLOCKS} == gguf_header._BLOCKS


@pytest.mark.parametrize("missing", [1, 4, 100])
def test_a_gguf_file_that_was_cut_off_is_not_whole(llama, missing):
    _, path = llama
    whole = path.read_bytes()
    assert is_whole(path)
    path.write_bytes(whole[:-missing])
    assert not is_whole(path)
    path.write_bytes(whole[:missing])
    assert not is_whole(path)


def test_a_header_of_arrays_in_arrays_without_end_is_not_whole(tmp_path):
    path = tmp_path / "model.gguf"
    counts = struct.pack("<4sIQQ", b"GGUF", 3, 1, 1)
    array = struct.pack("<IQ", 9, 1)
    path.write_bytes(counts + struct.pack("<QcI", 1, b"a", 9) + array * 10_000)
    assert not is_whole(path)


def test_a_damaged_gguf_file_is_refused_in_one_line(tmp_path):
    (tmp_path / "ckpt_5.gguf").write_bytes(b"GGUF" + bytes(40))
    with pytest.raises(
        CheckpointError, match="cannot be read by transformers"
    ) as error:
        Trajectory.from_folder(tmp_path / "ckpt_5.gguf")
    assert "\n" not in str(error.value)


# What is recognised and cannot be read.

PACKED = {
    "a.weight.quant_state.bitsandbytes__nf4": "bitsandbytes",
    "a.SCB": "bitsandbytes",
    "a.g_idx": "GPTQ",
    "a.qweight": "AWQ or GPTQ",
    "a.weight_packed": "quantised",
}


@pytest.mark.parametrize("suffix", [".safetensors", ".pt"])
@pytest.mark.parametrize("name", PACKED)
def test_packed_weights_are_named_with_what_helps(tmp_path, name, suffix):
    path = tmp_path / f"ckpt_5{suffix}"
    state = {name: torch.ones(3), "b": torch.ones(2)}
    save_file(state, path) if suffix == ".safetensors" else torch.save(state, path)
    with pytest.raises(CheckpointError, match=rf"{PACKED[name]}.*before quantisation"):
        same(find_weights(path))


def test_empty_tensors_of_zero_3_are_named_with_what_helps(tmp_path):
    save_file({"a": torch.ones(0), "b": torch.ones(2)}, tmp_path / "model.safetensors")
    find_weights(tmp_path).check()
    save_file({"a": torch.ones(0)}, tmp_path / "model.safetensors")
    with pytest.raises(
        CheckpointError, match=r"1 empty tensors of 1, .*zero_to_fp32\.py"
    ):
        Trajectory.from_folder(tmp_path, build)


LAYOUTS = {
    "global_step5/layer_00-model_00-model_states.pt": "GPT-NeoX.*convert_neox_to_hf",
    "iter_0000005/mp_rank_00/model_optim_rng.pt": "Megatron.*export_ckpt",
    "checkpoint-5/pytorch_model_fsdp_rank1.bin": "SHARDED_STATE_DICT",
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("whole", [True, False], ids=["run", "one"])
def test_layouts_of_others_are_named_with_the_converter(tmp_path, name, whole):
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    torch.save({"module": None}, path)
    if name.startswith("global"):
        torch.save({"module": None}, path.with_name("mp_rank_00_model_states.pt"))
    with pytest.raises(CheckpointError, match=LAYOUTS[name]) as error:
        Trajectory.from_folder(
            tmp_path if whole else tmp_path / name.split("/")[0], build
        )
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin", "ckpt.pt"])
def test_pointers_of_git_lfs_are_named_with_the_command_that_fetches(tmp_path, name):
    folder = tmp_path / "checkpoint-5"
    folder.mkdir()
    (folder / name).write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"
    )
    with pytest.raises(CheckpointError, match=r"pointer of Git LFS.* lfs pull"):
        same(Trajectory.from_folder(tmp_path, build)[5].weights)


# Several weights in one file, and one model in a larger one.


@pytest.mark.parametrize("form", ["pt", "nested", "names", "safetensors", "distcp"])
@pytest.mark.filterwarnings("ignore")
def test_a_key_names_the_running_average_beside_the_weights(tmp_path, form):
    average = {name: value + 1 for name, value in STATE.items()}
    key, path = "ema", tmp_path / "ckpt_5.pt"
    flat = {
        f"{part}.{n}": v
        for part, s in (("ema", average), ("net", STATE))
        for n, v in s.items()
    }
    if form == "safetensors":
        path = path.with_suffix(".safetensors")
        save_file(flat, path)
    elif form == "distcp":
        path = saved({"net": STATE, "ema": average}, tmp_path / "step_5")
    elif form == "names":
        torch.save({"state_dict": flat}, path)
    elif form == "nested":
        key = "callbacks.EMA.ema"
        torch.save({"model": STATE, "callbacks": {"EMA": {"ema": average}}}, path)
    else:
        torch.save({"model": STATE, "ema": average, "step": 5}, path)
    run = Trajectory.from_folder(tmp_path, build, key=key)
    assert same(run[5].weights, average)
    with pytest.raises(
        CheckpointError, match="no weights under --key emaa; it has them under"
    ):
        Trajectory.from_folder(tmp_path, build, key="emaa")[5].model()
    if form in ("names", "safetensors", "distcp"):
        with pytest.raises(
            CheckpointError, match="several times, under ema, net; choose with --key"
        ):
            Trajectory.from_folder(tmp_path, build)[5].model()
    else:
        assert same(Trajectory.from_folder(tmp_path, build)[5].weights)


def test_weights_under_the_only_key_are_read_and_several_are_listed(tmp_path):
    optimiser = torch.optim.AdamW(build().parameters()).state_dict()
    path = tmp_path / "ckpt_5.pt"
    torch.save({"net": STATE, "optimizer": optimiser, "epoch": 2}, path)
    assert same(find_weights(path))
    torch.save({"actor\x1b[1m": STATE, "critic": STATE}, path)
    with pytest.raises(
        CheckpointError, match=r"--key actor\\x1b\[1m.* critic"
    ) as error:
        same(find_weights(path))
    assert "\x1b" not in str(error.value)


def test_a_model_in_a_module_of_lightning_is_that_part_of_it(tmp_path):
    state = {f"model.{name}": value for name, value in STATE.items()}
    save = {
        "state_dict": {**state, "criterion.weight": torch.ones(7)},
        "global_step": 5,
    }
    torch.save(save, tmp_path / "a.ckpt")
    model = Trajectory.from_folder(tmp_path, build)[5].model()
    assert torch.equal(model[2].weight, STATE["2.weight"])
    torch.save(
        {"state_dict": {"a.b.weight": torch.ones(2)}, "step": 5}, tmp_path / "a.ckpt"
    )
    with pytest.raises(
        CheckpointError, match=r"lacks 0\.weight, .* and also holds a\.b\.weight"
    ):
        Trajectory.from_folder(tmp_path, build)[5].model()
