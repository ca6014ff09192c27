"""Loading a checkpoint takes the memory of one, and looking at its weights takes none."""

import json
import sys
from pathlib import Path

import pytest
import torch
import transformers
from safetensors.torch import save_file

from ontogeny import Trajectory

linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two random checkpoints in bfloat16, in three shards each; the second shares two of them."""
    folder = tmp_path_factory.mktemp("large")
    config = transformers.GPTNeoXConfig(
        vocab_size=64,
        hidden_size=384,
        intermediate_size=1536,
        num_hidden_layers=16,
        num_attention_heads=8,
        architectures=["GPTNeoXForCausalLM"],
    )
    with torch.device("meta"):
        state = transformers.GPTNeoXForCausalLM(config).state_dict()
    names = list(state)
    for step in (1, 2):
        path = folder / f"step{step}"
        config.save_pretrained(path)
        index = {"weight_map": {n: _file(i) for i in range(3) for n in names[i::3]}}
        (path / "model.safetensors.index.json").write_text(json.dumps(index))
        for i in range(3):
            file = _file(i)
            if step == 2 and i:
                (path / file).symlink_to(folder / "step1" / file)
                continue
            filled = {
                n: torch.full(state[n].shape, 0.01 * step, dtype=torch.bfloat16)
                for n in names[i::3]
            }
            save_file(filled, path / file, metadata={"format": "pt"})
    return folder


def _file(shard):
    return f"model-0000{shard + 1}-of-00003.safetensors"


def bytes_of(folder):
    return sum(path.stat().st_size for path in folder.glob("step1/*.safetensors"))


def peak_growth(function):
    """Return by how many bytes the peak of the resident memory exceeds what it was before."""

    def resident(line):
        status = Path("/proc/self/status").read_text().splitlines()
        return next(
            int(each.split()[1]) * 1024 for each in status if each.startswith(line)
        )

    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    function()
    return resident("VmHWM") - before


@linux
def test_loading_holds_one_checkpoint_and_its_largest_tensor(folder):
    size, trajectory = bytes_of(folder), Trajectory.from_folder(folder)
    assert size > 50e6
    skeleton = trajectory.skeleton()
    first = peak_growth(lambda: skeleton.load(1))
    assert first < 1.3 * size
    assert peak_growth(lambda: [skeleton.load(step) for step in (2, 1, 2)]) < 0.3 * size
    assert {p.dtype for p in skeleton.load(1).parameters()} == {torch.bfloat16}
    assert peak_growth(lambda: trajectory[1].digests()) < 0.3 * size


@linux
def test_a_mapped_model_reads_what_is_used(folder):
    size, checkpoint = bytes_of(folder), Trajectory.from_folder(folder)[2]
    found = []
    assert peak_growth(lambda: found.append(checkpoint.mapped())) < 0.2 * size
    weight = found[0].gpt_neox.layers[0].mlp.dense_h_to_4h.weight
    assert peak_growth(lambda: weight.double().sum()) < 0.3 * size
    own, mapped = checkpoint.model().state_dict(), found[0].state_dict()
    assert all(torch.equal(mapped[name], own[name]) for name in own)


def test_changing_a_mapped_weight_leaves_the_file(folder):
    checkpoint = Trajectory.from_folder(folder)[1]
    before = checkpoint.digests()
    with torch.no_grad():
        checkpoint.mapped().gpt_neox.final_layer_norm.weight.zero_()
    assert checkpoint.digests() == before


@pytest.mark.parametrize("offset", [0, 1, 3])
def test_rows_are_those_of_the_tensor_wherever_it_lies(tmp_path, offset):
    """Headers that are no multiple of the number's size, empty tensors and single numbers."""
    from ontogeny.trajectory.weights.files import WeightFiles

    tensors = {
        "a": torch.randn(5, 3),
        "b": torch.randn(4, 2, 2).bfloat16(),
        "c": torch.tensor(2.5),
        "d": torch.empty(0, 3),
        "e": torch.arange(7),
        "f": torch.tensor([True, False]),
        "g": torch.randn(6).to(torch.float8_e4m3fn),
    }
    path = tmp_path / "model.safetensors"
    save_file(tensors, path)
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = whole[8 : 8 + length].rstrip() + b" " * offset
    path.write_bytes(len(header).to_bytes(8, "little") + header + whole[8 + length :])
    with WeightFiles((path,)).open() as reader:
        assert reader.names() == sorted(tensors)
        for name, tensor in tensors.items():
            bits = reader.get(name)
            assert bits.dtype == reader.dtype(name) == tensor.dtype
            assert reader.shape(name) == tuple(tensor.shape) == tuple(bits.shape)
            assert torch.equal(bits.float(), tensor.float())
            if tensor.ndim:
                for start, stop in ((0, 2), (1, 99), (3, 1), (-2, 4)):
                    rows = reader.rows(name, start, stop)
                    assert torch.equal(rows.float(), tensor[start:stop].float())


@linux
def test_a_streamed_model_holds_its_largest_part(folder):
    size, trajectory = bytes_of(folder), Trajectory.from_folder(folder)
    ids, found = torch.arange(8)[None], {}

    def forward(model):
        with torch.no_grad():
            found[len(found)] = model(input_ids=ids, use_cache=False).logits

    skeleton = trajectory.skeleton()
    forward(trajectory[2].model())
    streamed = skeleton.streamed(trajectory[2])
    assert peak_growth(lambda: forward(streamed)) < 0.3 * size
    forward(streamed)
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
