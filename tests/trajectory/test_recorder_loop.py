"""Recording from a plain loop: the training stays the same, the files are right and whole."""

import json
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
import transformers
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from helpers import warm_process
from ontogeny import Recorder, Trajectory
from ontogeny.errors import ArgumentError
from ontogeny.machine import writer
from ontogeny.trajectory.weights import announced, saving
from ontogeny.whole_files import temporary


def gpt2():
    config = transformers.GPT2Config(
        n_embd=16,
        n_layer=2,
        n_head=2,
        vocab_size=40,
        n_positions=16,
        bos_token_id=1,
        eos_token_id=2,
    )
    return transformers.GPT2LMHeadModel(config)


def same(state, expected):
    return state.keys() == expected.keys() and all(
        torch.equal(state[k], expected[k]) for k in state
    )


def train(folder=None, steps=12, dtype=None):
    """Train with dropout, shuffling and momentum; return everything that could have changed."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002  (the global state itself is what is watched)
    model = gpt2().train()
    assert model.config.resid_pdrop > 0
    data = torch.utils.data.TensorDataset(torch.randint(0, 40, (24, 8)))
    loader = torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    record = Recorder(folder, every=1, total=steps, dtype=dtype) if folder else None
    losses, step = [], 0
    if record:
        record(0, model)
    while step < steps:
        for (ids,) in loader:
            loss = model(ids, labels=ids).loss
            loss.backward()  # gradients accumulate over two batches, so they must survive a call
            if len(losses) % 2 == 1:
                optimizer.step()
                optimizer.zero_grad()
                step += 1
            losses.append(loss.item())
            if record:
                record(step, model)
                assert model.training
    if record:
        record.finish(step, model)
    others = (torch.rand(1), random.random(), np.random.rand())  # noqa: NPY002
    return model, losses, others


def test_training_is_bit_identical_with_and_without_the_recorder(tmp_path):
    plain, losses, others = train()
    recorded, recorded_losses, recorded_others = train(tmp_path / "run")
    stored, _, _ = train(tmp_path / "half", dtype=torch.bfloat16)
    assert same(recorded.state_dict(), plain.state_dict())
    assert same(stored.state_dict(), plain.state_dict())
    assert recorded_losses == losses and recorded_others == others
    assert recorded.config.to_dict() == plain.config.to_dict()
    trajectory = Trajectory.from_folder(tmp_path / "run")
    assert list(trajectory.steps) == list(range(13))
    assert same(trajectory[12].model().state_dict(), plain.state_dict())
    assert list(trajectory.audit()) == []
    half = Trajectory.from_folder(tmp_path / "half")[12].model()
    assert half.dtype == torch.bfloat16 and half.config.dtype == torch.bfloat16
    assert same(half.state_dict(), plain.bfloat16().state_dict())


def test_wrapped_modules_are_recorded_as_what_is_inside(tmp_path):
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 2))
    torch.distributed.init_process_group(
        "gloo", store=torch.distributed.HashStore(), rank=0, world_size=1
    )
    try:
        wrapped = {
            "compiled": torch.compile(inner),
            "parallel": nn.parallel.DistributedDataParallel(inner),
            "both": torch.compile(nn.parallel.DistributedDataParallel(inner)),
            "part": nn.Sequential(inner[0], torch.compile(inner[1])),
        }
        for name, model in wrapped.items():
            assert Recorder(tmp_path / name)(0, model)
            file = tmp_path / name / "checkpoint-0" / "model.safetensors"
            assert same(load_file(file), dict(sorted(inner.state_dict().items()))), name
    finally:
        torch.distributed.destroy_process_group()


def test_only_the_first_process_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    record = Recorder(tmp_path / "run")
    assert not record(0, nn.Linear(2, 2)) and not record.finish(9, nn.Linear(2, 2))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("ranks", [{"RANK": "1"}, {}])
def test_of_processes_of_a_launcher_the_first_writes_also_without_a_process_group(
    tmp_path, monkeypatch, caplog, ranks
):
    """Three ranks of torchrun in one folder: each wrote its weights, and one training ended.

    Some launchers give the rank on the machine alone.
    """
    monkeypatch.setattr(announced, "topics", set())
    for name, value in {**ranks, "LOCAL_RANK": "1", "WORLD_SIZE": "3"}.items():
        monkeypatch.setenv(name, value)
    record, model = Recorder(tmp_path / "run"), nn.Linear(2, 2)
    assert not record(0, model) and not record.finish(9, model)
    assert not (tmp_path / "run").exists()
    assert caplog.messages == [
        "rank 1 records nothing: of what a launcher started rank 0 does."
    ]
    monkeypatch.setenv("RANK", "0")
    assert record(0, model)


@pytest.mark.parametrize(
    "alone", [{"WORLD_SIZE": "1", "LOCAL_RANK": "0"}, {"RANK": "1"}]
)
def test_a_process_that_is_alone_writes_whatever_its_rank(tmp_path, monkeypatch, alone):
    """Tasks of a job array are trainings of their own."""
    for name, value in alone.items():
        monkeypatch.setenv(name, value)
    assert Recorder(tmp_path / "run")(0, nn.Linear(2, 2))


def test_weights_that_are_not_here_are_refused(tmp_path):
    with pytest.raises(
        ArgumentError, match="weight is sharded or has no data in this process"
    ):
        Recorder(tmp_path)(0, nn.Linear(2, 2, device="meta"))


class Odd(nn.Module):
    """Tied, transposed and viewed tensors, an empty one, an integer buffer, a scalar."""

    def __init__(self):
        super().__init__()
        base = torch.arange(12.0)
        self.first = nn.Parameter(base.view(3, 4))
        self.tied = self.first
        self.turned = nn.Parameter(torch.arange(6.0).view(2, 3).T)
        self.part = nn.Parameter(base[2:5])
        self.again = nn.Parameter(base)  # all of the memory of `first` in another shape
        self.register_buffer("count", torch.tensor(7))
        self.register_buffer("empty", torch.zeros(0, 3))


@pytest.mark.parametrize("dtype", [None, torch.float64])
def test_tensors_that_share_memory_are_written_right(tmp_path, dtype):
    model = Odd()
    assert Recorder(tmp_path, dtype=dtype)(0, model)
    stored = load_file(tmp_path / "checkpoint-0" / "model.safetensors")
    assert stored.keys() == model.state_dict().keys() - {"tied"}
    for name, tensor in stored.items():
        assert torch.equal(tensor, model.state_dict()[name].to(tensor.dtype)), name
    assert stored["count"].dtype == torch.int64
    assert stored["first"].dtype == (dtype or torch.float32)
    loaded = Trajectory.from_folder(tmp_path, model=Odd)[0].model(dtype=dtype)
    assert loaded.tied is loaded.first


def test_the_note_says_what_was_planned_and_with_what(tmp_path):
    Recorder(tmp_path, total=3)(0, nn.Linear(1, 1))
    note = json.loads((tmp_path / "recorder.json").read_text())
    assert note["class"] == "Linear" and note["planned"] == [0, 1, 2, 3]
    assert note["schedules"] == [{"from": 0, "every": "log", "total": 3}]
    assert note["versions"]["torch"] == str(torch.__version__)


def test_the_tokenizer_is_saved_once_and_found(tmp_path):
    from tokenizers import Tokenizer, models

    words = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="[UNK]"
    )
    record = Recorder(tmp_path, every=1, tokenizer=tokenizer)
    assert record(0, gpt2()) and record(1, gpt2())
    assert len(list(tmp_path.rglob("tokenizer.json"))) == 1
    found = Trajectory.from_folder(tmp_path).tokenizer()
    assert found.get_vocab() == tokenizer.get_vocab()
    words = Tokenizer(models.WordLevel({"[UNK]": 0, "b": 1}, unk_token="[UNK]"))
    other = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="[UNK]"
    )
    with pytest.raises(ArgumentError, match="another tokenizer"):
        Recorder(tmp_path, every=1, tokenizer=other)(2, gpt2())
    assert Recorder(tmp_path, every=1, tokenizer=tokenizer)(2, gpt2())


KILLED = """
import os, sys, torch
from torch import nn
from ontogeny import Recorder
from ontogeny.trajectory.weights import saving

record, calls = Recorder(sys.argv[1], every=1), []
real = saving.sync
def sync(path):
    calls.append(path)
    if "checkpoint-1" in str(path):
        os._exit(9)
    real(path)
saving.sync = sync
for step in range(3):
    torch.manual_seed(step)
    record(step, nn.Linear(2, 2))
"""


def test_a_kill_in_the_middle_of_a_write_leaves_only_whole_checkpoints(tmp_path):
    assert warm_process.run(["-c", KILLED, tmp_path]).returncode == 9
    trajectory = Trajectory.from_folder(tmp_path, model=nn.Linear(2, 2))
    assert list(trajectory.steps) == [0]
    assert [f.kind for f in trajectory.audit()] == ["temporary"]
    record = Recorder(tmp_path, every=1)
    torch.manual_seed(1)
    assert record(1, nn.Linear(2, 2)) and record.steps == [0, 1]
    assert list(Trajectory.from_folder(tmp_path).audit()) == []


def trained(seed, steps):
    torch.manual_seed(seed)
    model = nn.Linear(2, 2)
    for step in range(steps + 1):
        yield step, model
        with torch.no_grad():
            model.weight += torch.randn(2, 2)


def test_a_resumed_run_keeps_what_is_there_and_goes_on(tmp_path):
    record = Recorder(tmp_path, every=2, total=10)
    for step, model in trained(0, 5):
        record(step, model)
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("model.safetensors")}
    again = Recorder(tmp_path, every=2, total=10)
    written = [
        step for step, model in trained(0, 10) if step >= 2 and again(step, model)
    ]
    assert written == [6, 8, 10] and again.steps == [0, 2, 4, 6, 8, 10]
    assert all(path.stat().st_mtime_ns == time for path, time in before.items())
    assert list(Trajectory.from_folder(tmp_path).audit()) == []


def test_a_longer_second_leg_is_not_blamed_for_steps_of_its_own_schedule(tmp_path):
    first = Recorder(tmp_path, total=40)
    for step, model in trained(0, 40):
        first(step, model)
    second = Recorder(tmp_path, total=400)
    for step, model in trained(0, 400):
        if step >= 40:
            second(step, model)
    assert list(Trajectory.from_folder(tmp_path).audit()) == []
    for last in (300, 440):  # a third leg goes back to step 100, and is resumed once
        third = Recorder(tmp_path, every=7)
        for step, model in trained(0, last):
            if step >= 100:
                third(step, model)
        assert list(Trajectory.from_folder(tmp_path).audit()) == []
    planned = [1, 8, 30, 60, 375, 413]  # two steps of each schedule
    for step in planned:
        shutil.rmtree(tmp_path / f"checkpoint-{step}")
    found = [f for f in Trajectory.from_folder(tmp_path).audit() if f.kind == "missing"]
    assert [(f.certainty, f.steps) for f in found] == [("certain", tuple(planned))]


def test_another_run_is_refused_and_overwritten_only_when_asked(tmp_path):
    record = Recorder(tmp_path, every=2)
    for step, model in trained(0, 4):
        record(step, model)
    torch.manual_seed(1)
    with pytest.raises(
        ArgumentError, match=r"another run: its step 0 .* overwrite=True"
    ):
        Recorder(tmp_path, every=2)(0, nn.Linear(2, 2))
    with pytest.raises(
        ArgumentError, match="holds a recording of Linear, this model is Bilinear"
    ):
        Recorder(tmp_path, every=2)(5, nn.Bilinear(2, 2, 2))
    assert list(Trajectory.from_folder(tmp_path).steps) == [0, 2, 4]
    record = Recorder(tmp_path, every=3, overwrite=True)
    # Until the first call.
    assert list(Trajectory.from_folder(tmp_path).steps) == [0, 2, 4]
    for step, model in trained(1, 4):
        record(step, model)
    trajectory = Trajectory.from_folder(tmp_path)
    assert list(trajectory.steps) == [0, 3] and list(trajectory.audit()) == []


def test_a_resumed_transformers_run_is_recognised_although_its_file_differs(tmp_path):
    sizes = {
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_hidden_layers": 1,
        "vocab_size": 9,
    }
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "num_local_experts": 2}
    tokens = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    model = transformers.MixtralForCausalLM(
        transformers.MixtralConfig(**sizes, **heads, **tokens)
    )
    assert Recorder(tmp_path, every=1)(0, model)
    assert not Recorder(tmp_path, every=1)(0, model)
    with torch.no_grad():
        model.lm_head.weight[0, 0] += 1
    with pytest.raises(ArgumentError, match="another run"):
        Recorder(tmp_path, every=1)(0, model)


def test_a_resumed_run_that_has_gone_elsewhere_says_so_in_the_log(tmp_path, caplog):
    for step, model in trained(0, 4):
        Recorder(tmp_path, every=2)(step, model)
    again = Recorder(tmp_path, every=2)
    for step, model in trained(9, 4):
        if step >= 3:  # a step that is not on disk cannot be compared
            again(step, model)
    assert "keeps its earlier checkpoint at step 4, which differs" in caplog.text


def test_checkpoints_that_no_recorder_wrote_are_never_touched(tmp_path):
    (tmp_path / "checkpoint-5").mkdir()
    for overwrite in (False, True):
        with pytest.raises(ArgumentError, match="no Recorder wrote"):
            Recorder(tmp_path, overwrite=overwrite)
    assert (tmp_path / "checkpoint-5").is_dir()


def test_a_recording_that_begins_late_says_so_in_the_log(tmp_path, caplog):
    assert Recorder(tmp_path, every=5)(10, nn.Linear(1, 1))
    assert "begins at step 10" in caplog.text
    assert caplog.records[0].name == "ontogeny.trajectory"


def test_a_second_recorder_is_refused_and_leaves_what_the_first_is_writing(tmp_path):
    first, model = Recorder(tmp_path), nn.Linear(2, 2)
    first(0, model)
    writing = temporary(tmp_path / "checkpoint-8")
    writing.mkdir()
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"],
        capture_output=True,
        text=True,
        check=True,
    )
    machine = writer().partition("-")[0]
    gone = tmp_path / f".checkpoint-4.{machine}-{ended.stdout.strip()}.01234567.tmp"
    gone.mkdir()
    with pytest.raises(ArgumentError, match="holds another run"):
        Recorder(tmp_path)(0, nn.Linear(2, 2))
    assert writing.exists() and gone.exists()
    Recorder(tmp_path)(0, model)
    assert writing.exists() and not gone.exists()


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), SafetensorError("full")]
)
def test_a_full_disk_ends_no_training_and_is_said_when_and_at_the_end(
    tmp_path, monkeypatch, caplog, error
):
    record, model = Recorder(tmp_path, every=1), nn.Linear(2, 2)
    record(0, model)
    write = saving.save_file

    def full(*_, **__):
        raise error

    monkeypatch.setattr(saving, "save_file", full)
    assert not record(1, model)
    monkeypatch.setattr(saving, "save_file", write)
    assert record(2, model) and not record.finish(2, model)
    assert (
        record.steps == [0, 2] == sorted(Trajectory.from_folder(tmp_path, model).steps)
    )
    assert "step 1 was not recorded, the training goes on" in caplog.text
    assert "lacks steps that could not be written: 1." in caplog.text
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_disk_that_is_full_from_the_start_is_said_before_training(
    tmp_path, monkeypatch
):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saving, "save_file", full)
    with pytest.raises(OSError, match="No space left"):
        Recorder(tmp_path)(0, nn.Linear(2, 2))
