"""Own models, tokens, tokenizers and observables, from files of the user's."""

import concurrent.futures
import importlib
import pickle
import shutil
import sys
import tomllib
from dataclasses import dataclass, replace
from importlib.machinery import PathFinder
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

import ontogeny as og
from helpers import odd_models, warm_process
from helpers.own_model import STEPS, write_own
from helpers.warm_process import warm_context
from ontogeny import code_files, own_code
from ontogeny.code import modules
from ontogeny.errors import ArgumentError, CheckpointError, StoreError
from ontogeny.inputs import read_tokens
from ontogeny.start import Wishes, look, proposal, propose
from ontogeny.start.written import study_text
from ontogeny.study import make_study
from ontogeny.study.file import make_sources
from ontogeny.study.folder import code
from ontogeny.study.folder.code import code_of_cell


@dataclass
class Sent(own_code.Sendable):
    """What a study sends to its workers, in small."""

    thing: Any


def name_of_built(sent):
    return type(sent.thing()).__name__


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    return write_own(tmp_path_factory.mktemp("own"))


def wishes(own, model="model.py:build"):
    return Wishes(
        str(own / "out"),
        texts=[str(own / "val.bin")],
        model=str(own / model),
        preset="quick",
    )


def test_nanogpt_checkpoints_are_read_under_the_names_of_the_module(own):
    build = own_code.load("model.py:build", own)
    trajectory = og.Trajectory.from_folder(own / "out", build)
    assert tuple(trajectory.steps) == STEPS
    stored = torch.load(own / "out" / "ckpt_20.pt", weights_only=True)["model"]
    for name, tensor in trajectory[20].model().state_dict().items():
        assert torch.equal(tensor, stored[f"_orig_mod.{name}"])
    assert sorted(trajectory[20].digests()) == sorted(build().state_dict())
    assert not len(trajectory.audit())


@pytest.mark.parametrize("wrapped", [True, False])
def test_lightning_checkpoints_give_the_module_inside_or_the_whole(tmp_path, wrapped):
    class Run(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = nn.Linear(3, 2)

    run = Run()
    for epoch, step in enumerate((0, 100)):
        whole = {"state_dict": run.state_dict(), "epoch": epoch, "global_step": step}
        torch.save(whole, tmp_path / f"epoch={epoch}-step={step}.ckpt")
        with torch.no_grad():
            run.model.weight.add_(1.0)
    trajectory = og.Trajectory.from_folder(
        tmp_path, Run if wrapped else nn.Linear(3, 2)
    )
    assert tuple(trajectory.steps) == (0, 100)
    model = trajectory[100].model()
    inner = model.model if wrapped else model
    assert torch.equal(inner.weight + 1, run.model.weight)


def test_what_training_loops_save_beside_weights_is_no_checkpoint(tmp_path):
    torch.save({"a": torch.ones(2)}, tmp_path / "ckpt_5.pt")
    torch.save({"a": torch.ones(2)}, tmp_path / "optimizer_5.pt")
    torch.save({"step": 7, "lr": 0.1}, tmp_path / "ckpt_7.pt")
    trajectory = og.Trajectory.from_folder(tmp_path)
    assert tuple(trajectory.steps) == (5, 7)
    with (
        pytest.raises(CheckpointError, match="it has the keys step, lr"),
        trajectory[7].open(),
    ):
        pass


def test_code_never_runs_from_a_pickled_file(tmp_path):
    class Evil:
        def __reduce__(self):
            return exec, ("raise SystemExit('ran')",)

    torch.save({"model": {"a": torch.ones(2)}, "x": Evil()}, tmp_path / "ckpt_1.pt")
    trajectory = og.Trajectory.from_folder(tmp_path)
    with trajectory[1].open() as reader:
        assert reader.names() == ["a"]


@pytest.mark.slow
def test_own_code_is_named_and_survives_pickling_into_another_process(own):
    build = own_code.load("model.py:build", own)
    assert pickle.loads(pickle.dumps(build)) is build
    assert pickle.loads(pickle.dumps(Sent(build))).thing is build
    context = warm_context()
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        assert pool.submit(name_of_built, Sent(build)).result() == "GPT"


def test_own_code_leaves_the_imports_of_python_alone(own):
    code = (
        "import sys\nbefore = [*sys.meta_path], [*sys.path_hooks], [*sys.path]\n"
        "import ontogeny as og\nfrom ontogeny import own_code\nog.observables\n"
        "own_code.load(sys.argv[1])\n"
        "after = [*sys.meta_path], [*sys.path_hooks], [*sys.path]\n"
        "new = [h for h in after[0] if 'ontogeny' in getattr(h, '__module__', '')]\n"
        "print(new, after[1:] == before[1:])"
    )
    named = f"{own / 'model.py'}:build"
    done = warm_process.run(["-c", code, named])
    assert done.stdout.split("\n")[-2:] == ["[] True", ""], done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model.py:buidl", "Did you mean 'build'"),
        ("modle.py:build", "there is no file"),
        ("model.py", "file.py:name"),
        ("broken.py:build", "SyntaxError in line 2"),
        ("failing.py:build", "ValueError: no data"),
    ],
)
def test_wrong_names_of_code_get_one_line(own, text, message):
    (own / "broken.py").write_text("x = 1\ndef build(:\n")
    (own / "failing.py").write_text("raise ValueError('no data')\n")
    with pytest.raises(ArgumentError, match=message):
        own_code.load(text, own)


def test_own_code_imports_its_neighbours(tmp_path):
    (tmp_path / "neighbour_of_own.py").write_text("WIDTH = 7\n")
    (tmp_path / "m.py").write_text(
        "from neighbour_of_own import WIDTH\ndef build(): return WIDTH\n"
    )
    assert own_code.load("m.py:build", tmp_path)() == 7


def test_a_study_of_an_own_model_with_an_own_observable(own, tmp_path):
    proposal = propose(wishes(own), own)
    shown = proposal.shown
    assert (shown.objective, shown.named, shown.width, shown.longest) == (
        "causal",
        False,
        16,
        24,
    )
    assert shown.layers == ("h.0.mlp", "h.1.mlp", "h.2.mlp") and shown.blocks == (
        "attn",
        "mlp",
    )
    assert not shown.no_maps and not shown.no_prediction  # its kernel shows them
    content = dict(proposal.content)
    assert content["inputs"]["max_length"] == 24
    # What is said of the texts is said of those that the study reads.
    (texts,) = make_sources(content, own)[1].values()
    assert texts.sentence in proposal.texts
    content["controls"] = {"count": 0}
    own_one = {"kind": "mine.py:ActivationNorm", "layers": "h.*.mlp"}
    content["observables"] = [content["observables"][0], own_one]
    content["inputs"] = {**content["inputs"], "max_texts": 12}
    result = make_study(content, own).run(tmp_path / "s")
    assert not len(result.problems())
    assert (
        result["ActivationNorm"].norm.shape == (4, 3)
        and result["loss"].loss.notnull().all()
    )
    context = warm_context()
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        elsewhere = make_study(content, own).run(tmp_path / "elsewhere", executor=pool)
    xr.testing.assert_identical(
        elsewhere["ActivationNorm"].norm, result["ActivationNorm"].norm
    )
    xr.testing.assert_identical(elsewhere["loss"].loss, result["loss"].loss)


def test_attention_that_gives_maps_is_found_and_logits_of_the_last_token_are_explained(
    own,
):
    assert not propose(wishes(own, "model.py:attending"), own).shown.no_maps
    proposal = propose(wishes(own, "model.py:LastOnly"), own)
    assert "returns no logits" in proposal.shown.no_prediction
    assert set(proposal.left_out) == {"loss", "predictions", "minimal-pairs"}
    written = tomllib.loads(study_text(proposal, "ontogeny run"))
    assert written["left_out"] == proposal.content["left_out"]


def test_lines_of_further_texts_name_their_input_set(own):
    asked = replace(wishes(own), train_texts=[str(own / "val.bin")])
    studied, further = propose(asked, own).texts[:2]
    assert (
        studied.split(", ")[:2]
        == further.removeprefix("input set 'training': ").split(", ")[:2]
    )
    assert further.startswith("input set 'training': ")


def test_labels_are_those_of_the_texts_and_then_of_the_training_texts(own):
    ids = np.arange(120).reshape(30, 4) % 7
    for name in ("held", "training"):
        np.save(own / f"{name}.npy", ids)
        labels = np.where(np.arange(4) == 3, ids, -100)
        np.save(own / f"{name}_labels.npy", labels)
    first = np.where(np.arange(4) == 0, ids, -100)
    np.save(own / "first_labels.npy", first)
    given = {
        "texts": [str(own / "held.npy")],
        "train_texts": [str(own / "training.npy")],
    }
    labels = [str(own / f"{name}_labels.npy") for name in ("held", "training")]
    asked = replace(wishes(own), **given, token_labels=labels)
    lines = [line for line in propose(asked, own).texts if "scored: " in line]
    assert len(lines) == 2
    assert all("scored: tokens with a label (30)" in line for line in lines)
    with pytest.raises(ArgumentError, match="each of 1 --texts and 1 --train-texts"):
        propose(replace(asked, token_labels=labels[:1]), own)
    unpredicted = replace(wishes(own), texts=given["texts"])
    with pytest.raises(ArgumentError, match="only the first token of texts"):
        propose(replace(unpredicted, token_labels=[str(own / "first_labels.npy")]), own)


def test_a_model_that_never_reads_the_answer_is_told_what_to_return():
    torch.manual_seed(0)
    model = odd_models.FixedLength()
    with pytest.raises(ArgumentError, match=r"It runs on 4 tokens\. .* ids\[:, :-1\]"):
        look(og.Trajectory.from_models({0: model})[0], odd_models.texts_of((5, 5)))
    facts = look(
        og.Trajectory.from_models({0: odd_models.UnreadAnswer()})[0],
        odd_models.texts_of((5, 5)),
    )
    assert (facts.objective, facts.no_prediction) == ("causal", "")


def test_a_bidirectional_model_is_told_from_a_causal_one():
    torch.manual_seed(0)

    class Mixing(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(20, 8), nn.Linear(8, 20)

        def forward(self, ids):
            x = self.embed(ids)
            return self.head(x + x.mean(1, keepdim=True))

    inputs = og.Inputs.from_tokens([[5, 6, 7, 8], [9, 10, 11, 12]], mask_token_id=1)
    checkpoint = og.Trajectory.from_models({0: Mixing()})[0]
    assert look(checkpoint, inputs).objective == "masked"


def test_the_code_of_an_own_observable_counts_and_its_words_do_not(tmp_path):
    text = (
        "from ontogeny.observables import Loss\n"
        "from helper_of_mine import twice\n"
        "class Mine(Loss):\n"
        "    kind = 'mine'\n"
        "    def observe(self, reading, state):\n"
        "        return twice(super().observe(reading, state))\n"
    )
    found = []
    for factor, words in ((2, "Do it."), (2, "Do it twice."), (3, "Do it twice.")):
        helper = f"def twice(x):\n    '''{words}'''\n    return {factor} * x\n"
        (tmp_path / "helper_of_mine.py").write_text(helper)
        (tmp_path / "a.py").write_text(f"{text}    # {words}\n")
        mine = og.observables.make_own(
            "a.py:Mine", own_code.load("a.py:Mine", tmp_path)
        )
        found.append(code_of_cell("StepCell", mine, mine.needs()))
    assert found[0] == found[1] and found[1]["libraries"] == found[2]["libraries"]
    before, after = (one["code"] for one in found[1:])
    changed = {room for room in before if before[room] != after[room]}
    assert changed == {"helper_of_mine"}
    with pytest.raises(ArgumentError, match="must be a class that inherits"):
        og.observables.make_own("x.py:f", print)


def test_a_file_is_run_again_when_it_or_a_neighbour_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "width_of_own.py").write_text("WIDTH = 7\n")
    (tmp_path / "m.py").write_text(
        "from width_of_own import WIDTH\ndef build(): return WIDTH\n"
    )
    first = own_code.load("m.py:build", tmp_path)
    assert own_code.load("m.py:build", tmp_path) is first
    (tmp_path / "width_of_own.py").write_text("WIDTH = 8\n")
    second = own_code.load("m.py:build", tmp_path)
    assert (first(), second()) == (7, 8)
    assert own_code.content_of(first) != own_code.content_of(second)
    # What is in use stays what it was.
    assert pickle.loads(pickle.dumps(first)) is first


@pytest.mark.parametrize("place", ["path", "editable", "package", "below"])
def test_a_file_changes_with_what_it_imports_from_elsewhere(
    tmp_path, monkeypatch, place
):
    code = {
        "path": "import wide_a\ndef build(): return wide_a.WIDTH",
        "editable": "from wide_b.width import WIDTH\ndef build(): return WIDTH",
        "package": "from package_c import WIDTH\ndef build(): return WIDTH",
        "below": "def build():\n    from wide_d import WIDTH\n    return WIDTH",
    }[place]
    (tmp_path / "own").mkdir()
    elsewhere = tmp_path / "elsewhere"
    names = {"editable": "wide_b/width.py", "package": "package_c/inner/width.py"}
    file = elsewhere / names.get(place, "wide_a.py" if place == "path" else "wide_d.py")
    file.parent.mkdir(parents=True)
    if place == "package":
        (elsewhere / "package_c" / "__init__.py").write_text("from .inner import WIDTH")
        (file.parent / "__init__.py").write_text("from .width import WIDTH")
    if place == "editable":
        (file.parent / "__init__.py").write_text("")
        monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Editable(elsewhere)])
    else:
        monkeypatch.syspath_prepend(elsewhere)
    file.write_text("WIDTH = 7\n")
    (tmp_path / "own" / "m.py").write_text(code)
    first = own_code.load("own/m.py:build", tmp_path)
    contents = own_code.content_of(first)
    assert first() == 7 and own_code.digest(tmp_path / "own" / "m.py") == contents
    file.write_text("WIDTH = 8\n")
    second = own_code.load("own/m.py:build", tmp_path)
    assert second() == 8 and own_code.content_of(second) != contents


class Editable:
    """Finds packages of one folder, as the hooks of editable installations do."""

    def __init__(self, folder):
        self.folder = str(folder)

    def find_spec(self, name, path, target=None):
        return PathFinder.find_spec(name, [self.folder]) if path is None else None


def test_what_installed_packages_hold_is_not_read_at_each_start(tmp_path):
    (tmp_path / "m.py").write_text("import torch, transformers, json, ontogeny\n")
    assert code_files.neighbours(tmp_path / "m.py") == []


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_packages_of_another_environment_on_the_path_are_installed_too(
    tmp_path, monkeypatch, folder
):
    packages = tmp_path / "module" / "lib" / "python3" / folder
    packages.mkdir(parents=True)
    (packages / "wide_f.py").write_text("WIDTH = 7\n")
    monkeypatch.syspath_prepend(packages)
    (tmp_path / "m.py").write_text("import wide_f\n")
    assert code_files.neighbours(tmp_path / "m.py") == []


def test_a_model_of_an_imported_module_changes_with_its_file(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "model_e.py").write_text(
        "from torch import nn\nclass Net(nn.Linear): ...\n"
    )
    net = importlib.import_module("model_e").Net
    before = own_code.content_of(net), own_code.content_of(net(1, 1))
    (tmp_path / "model_e.py").write_text(
        "from torch import nn\nclass Net(nn.Linear): WIDE = 1\n"
    )
    assert before[0] == before[1] != own_code.content_of(net)
    assert (
        own_code.content_of(torch.nn.Linear)
        is None
        is own_code.content_of(torch.nn.ReLU())
    )


def test_files_that_code_of_a_model_reads_are_said_before_a_study(
    own, tmp_path, capsys
):
    code = (own / "model.py").read_text()
    (own / "model.py").write_text(
        code + "\ndef read():\n    return open('width.json')\n"
    )
    build = own_code.load("model.py:build", own)
    line = code.count("\n") + 3
    said = f"not noticed if it changes: what the model's code reads by model.py, line {line}: open"
    assert og.Trajectory.from_folder(own / "out", build).lines()[-1] == said
    assert not any(
        "noticed" in text for text in og.Trajectory.from_folder(own / "out").lines()
    )


def test_a_process_that_starts_later_refuses_a_file_that_was_changed(tmp_path):
    (tmp_path / "m.py").write_text("def build(): return 1\n")
    sent = pickle.dumps(Sent(own_code.load("m.py:build", tmp_path)))
    (tmp_path / "m.py").write_text("def build(): return 2\n")
    context = warm_context()
    with (
        concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool,
        pytest.raises(
            ImportError, match=r"m\.py was changed or removed while it was in use"
        ),
    ):
        pool.submit(pickle.loads, sent).result()


def losses(own, folder):
    """Return the loss at each step of a study of an own model in `folder`."""
    trajectory = og.Trajectory.from_folder(
        own / "out", own_code.load("model.py:build", own)
    )
    inputs = og.Inputs.from_tokens(read_tokens(own / "val.bin", 16, 8))
    study = og.Study(
        trajectory, inputs, [og.observables.Loss(objective="causal")], noise=0
    )
    return study.run(folder)["loss"].loss.values


@pytest.mark.slow
def test_a_study_follows_changes_of_own_code_and_of_own_weights(tmp_path):
    own = write_own(tmp_path)
    first = losses(own, tmp_path / "s")
    path = own / "out" / "ckpt_20.pt"
    kept = torch.load(path, weights_only=True)
    for tensor in kept["model"].values():
        tensor.mul_(2)
    torch.save(kept, path)
    second = losses(own, tmp_path / "s")
    assert (first != second).tolist() == [False, False, True, False]
    code = (own / "model.py").read_text()
    (own / "model.py").write_text(
        code.replace("self.lm_head(x)", "self.lm_head(2 * x)")
    )
    assert (losses(own, tmp_path / "s") != second).all()


# ---- one file ----


def test_a_file_that_holds_its_step_is_a_trajectory_and_so_is_a_folder_of_such(
    own, tmp_path
):
    build = own_code.load("model.py:build", own)
    for name, step in (("best.pt", 20), ("ckpt.pt", 40)):
        (tmp_path / name).write_bytes((own / "out" / f"ckpt_{step}.pt").read_bytes())
    both = og.Trajectory.from_folder(tmp_path, build)
    assert both.steps.tolist() == [20, 40]
    one = og.Trajectory.from_folder(tmp_path / "best.pt", build)
    assert one.steps.tolist() == [20] and one.title == f"{tmp_path.name}/best.pt"
    assert one.fingerprints() == {20: both.fingerprints()[20]} and not len(one.audit())
    (tmp_path / "best.pt").write_bytes((tmp_path / "ckpt.pt").read_bytes())
    with pytest.raises(CheckpointError, match=r"both hold step 40; .*--exclude"):
        og.Trajectory.from_folder(tmp_path, build)


def test_a_file_without_a_step_is_one_model_and_one_without_weights_is_refused(
    tmp_path,
):
    torch.save({"w": torch.ones(2)}, tmp_path / "model.pt")
    assert og.Trajectory.from_folder(tmp_path / "model.pt").lines() == [
        "1 checkpoint, step 0"
    ]
    (tmp_path / "model.pt").rename(tmp_path / "ckpt_500.pt")
    assert og.Trajectory.from_folder(tmp_path / "ckpt_500.pt").steps.tolist() == [500]
    (tmp_path / "notes.txt").write_text("no weights")
    with pytest.raises(CheckpointError, match="is no weight file"):
        og.Trajectory.from_folder(tmp_path / "notes.txt")


def test_one_checkpoint_is_studied_with_what_one_checkpoint_can_show(own, tmp_path):
    given = Wishes(
        str(own / "out" / "ckpt_20.pt"),
        texts=[str(own / "val.bin")],
        model=str(own / "model.py:build"),
        preset="everything",
    )
    proposal = propose(given, own)
    assert proposal.content["controls"] == {"count": 0}
    assert "at least 3 checkpoints" in proposal.left_out["weight-rank"]
    content = propose(replace(given, preset="quick"), own).content
    assert not len(make_study(content, own).run(tmp_path / "s").problems())


def test_no_tokenizer_may_be_wished_for(own):
    trajectory = og.Trajectory.from_folder(own / "out", tokenizer=False)
    assert trajectory.tokenizer() is None
    content = {
        "trajectory": {"folder": "out", "tokenizer": "none"},
        "inputs": {"tokens": "val.bin", "max_length": 16},
        "observables": [{"kind": "loss"}],
    }
    found, inputs = make_sources(content, own)
    assert found.tokenizer() is None and inputs["text"].texts is None
    with pytest.raises(ArgumentError, match="no tokenizer to read texts with"):
        propose(Wishes(str(own / "out"), tokenizer="none"), own)


def test_a_folder_below_with_checkpoints_is_named_where_a_tokenizer_is_wanting(
    own, tmp_path
):
    """Composer writes a folder `huggingface` beside its own files."""
    run = shutil.copytree(own / "out", tmp_path / "run")
    shutil.copytree(own / "out", run / "huggingface")
    with pytest.raises(
        ArgumentError, match=r"Or name .*huggingface, which holds checkpoints too"
    ):
        propose(Wishes(str(run)), own)


def test_a_missing_builder_and_a_missing_tokenizer_are_said_at_once(own):
    """Of timm's files the tokenizer was asked for first, and the builder when it was given."""
    with pytest.raises(
        ArgumentError, match=r"no config.* and no tokenizer.*--model.*and give"
    ):
        propose(Wishes(str(own / "out")), own)
    with pytest.raises(
        ArgumentError, match=r"not known: [^;]*--model model\.py:build\.$"
    ):
        propose(Wishes(str(own / "out"), texts=[str(own / "val.bin")]), own)


def test_a_proposal_is_made_with_one_thread(own, monkeypatch):
    """With two on busy cores, that of SmolLM2-135M took 11 to 16 s of processor time, not 4."""
    numbers = []
    looked = proposal.look
    monkeypatch.setattr(
        proposal,
        "look",
        lambda *a: numbers.append(torch.get_num_threads()) or looked(*a),
    )
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        propose(
            Wishes(
                str(own / "out"),
                model=f"{own}/model.py:build",
                texts=[str(own / "val.bin")],
            ),
            own,
        )
        assert numbers == [1] and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_what_a_selection_leaves_out_is_said(own):
    given = {"model": f"{own}/model.py:build", "texts": [str(own / "val.bin")]}
    few = propose(Wishes(str(own / "out"), steps="3", preset="quick", **given), own)
    assert few.lines[:2] == [
        "3 of 4 checkpoints, steps 0 to 40, by iter_num in the files",
        "left out: step 20 (not selected)",
    ]
    assert (
        og.Trajectory.from_folder(own / "out").select(count=3).lines() == few.lines[:2]
    )
    memory = og.Trajectory.from_models({s: torch.nn.Linear(1, 1) for s in range(9)})
    assert memory.select(count=2).lines() == [
        "2 of 9 checkpoints, steps 0 to 8",
        "left out: steps 1, 2, 3, 4, 5 and 2 more (not selected)",
    ]


def test_what_is_named_as_a_tokenizer_and_makes_none_is_said(own):
    (own / "tok.py").write_text("V = 40\n\ndef make():\n    return missing\n")
    wishes = Wishes(str(own / "out"), model=f"{own}/model.py:build")
    for name, why in (
        ("V", "not callable"),
        ("make", r"NameError: .*\(tok.py, line 4\)"),
    ):
        with pytest.raises(
            ArgumentError, match=f"tok.py:{name} makes no tokenizer .*{why}"
        ):
            propose(replace(wishes, tokenizer=f"{own}/tok.py:{name}"), own)


# ---- tokens ----


def test_a_stream_of_tokens_is_cut_all_over_the_file_and_a_table_by_rows(tmp_path):
    np.save(tmp_path / "stream.npy", np.arange(100, dtype=np.int32))
    found = read_tokens(tmp_path / "stream.npy", max_length=10, max_texts=4)
    assert (
        found[:, 0].tolist() == [0, 30, 60, 90] and (np.diff(found, axis=1) == 1).all()
    )
    assert read_tokens(tmp_path / "stream.npy", max_length=10).size == 100
    np.save(tmp_path / "rows.npy", np.arange(12).reshape(3, 4))
    assert read_tokens(tmp_path / "rows.npy", 3, 2).tolist() == [[0, 1, 2], [4, 5, 6]]


def test_ids_of_torch_are_read_and_no_other_file_of_it(tmp_path):
    """Such a file was called "a zip, no text: unpack it"."""
    ids = torch.arange(12)
    torch.save(ids, tmp_path / "ids.pt")
    torch.save({"input_ids": ids.view(3, 4), "labels": ids}, tmp_path / "rows.pt")
    assert read_tokens(tmp_path / "ids.pt", 4).tolist() == ids.view(3, 4).tolist()
    assert read_tokens(tmp_path / "rows.pt", 3, 2).tolist() == [[0, 1, 2], [4, 5, 6]]
    torch.save({"model": {"w": torch.ones(3)}}, tmp_path / "model.pt")
    torch.save(torch.ones(3, dtype=torch.bfloat16), tmp_path / "half.pt")
    (tmp_path / "text.pt").write_text("A cat sat.")
    for name in ("model.pt", "half.pt", "text.pt"):
        with pytest.raises(ArgumentError, match=f"{name} holds no tensor of token ids"):
            read_tokens(tmp_path / name, 3)


@pytest.mark.parametrize(
    ("array", "name", "message"),
    [
        (np.zeros(5), "x.npy", "whole numbers"),
        (np.zeros(5, int), "x.npy", "fewer than max_length"),
        (np.zeros((2, 2, 2), int), "x.npy", "one or two dimensions"),
        (np.array([object()]), "x.npy", "not a readable"),
        (None, "x.bin", "there is no file"),
        (None, "x.txt", "there is no file"),
    ],
)
def test_files_that_hold_no_tokens_are_refused(tmp_path, array, name, message):
    if array is not None:
        np.save(tmp_path / name, array, allow_pickle=True)
    with pytest.raises(ArgumentError, match=message):
        read_tokens(tmp_path / name, 8)


def test_an_archive_under_the_name_of_an_array_is_said_to_be_one(tmp_path):
    np.savez(tmp_path / "val.npz", train=np.arange(9), val=np.arange(9))
    (tmp_path / "val.npz").rename(tmp_path / "val.npy")
    with pytest.raises(
        ArgumentError, match=r"val\.npy is an \.npz archive of train, val"
    ):
        read_tokens(tmp_path / "val.npy", 4)


@pytest.mark.parametrize("option", ["texts", "abilities"])
def test_a_missing_file_is_refused_by_its_option_before_anything_is_opened(
    tmp_path, option
):
    missing = str(tmp_path / "missing.txt")
    with pytest.raises(
        ArgumentError, match=rf"--{option} .*missing\.txt: there is no such file"
    ):
        propose(Wishes(str(tmp_path), **{option: [missing]}), tmp_path)


def test_code_that_was_edited_after_it_was_imported_is_refused(monkeypatch):
    loss = og.observables.Loss(label="edited")
    monkeypatch.setattr(code, "_made", {})
    monkeypatch.setattr(modules, "STARTED", 0.0)
    code._is_edited.cache_clear()
    with pytest.raises(StoreError, match=r"\.py was edited after this .* Start Python"):
        code_of_cell("StepCell", loss, loss.needs())
    code._is_edited.cache_clear()
