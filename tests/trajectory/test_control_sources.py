"""Controls of folders, models in memory and every kind of architecture: the module gets them."""

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from typing import ClassVar

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from helpers import warm_process
from helpers.control_runs import (
    digest_of,
    largest_gram_error,
    record,
    run_of,
    same,
    tensors,
)
from helpers.tiny_models import Own, bert, eurobert, gpt2, gpt_neox, llama, mixtral
from helpers.warm_process import warm_context
from ontogeny import Trajectory
from ontogeny.study.cells.cache import DigestCache, combine
from ontogeny.trajectory import retain, retained
from ontogeny.trajectory.control.kinds import KINDS
from ontogeny.trajectory.control.weights import first_names
from ontogeny.trajectory.weights.files import WeightFiles


def readout():
    from ontogeny_papers.reproduce.training.readout_model import (
        ReadoutConfig,
        ReadoutTransformer,
    )

    return ReadoutTransformer(ReadoutConfig(num_labels=5))


FAMILIES = [gpt2, gpt_neox, llama, bert, eurobert, mixtral, readout, Own]


def opened(folder, build, models):
    record(folder, models)
    return Trajectory.from_folder(folder, model=Own if build is Own else None)


def saved(folder, module):
    """Return the tensors as they lie in a file of this module."""
    record(folder, {0: module})
    return load_file(folder / "checkpoint-0" / "model.safetensors")


@pytest.mark.slow
@pytest.mark.parametrize("build", FAMILIES)
def test_a_module_of_a_folder_has_the_tensors_of_the_control(tmp_path, build):
    models = run_of(build)
    run = opened(tmp_path / "run", build, models)
    for kind in ("turned", "walk"):
        control = run.control(kind, 1)
        skeleton = control.skeleton()
        for step in (0, 5, 1):
            there = tensors(control[step])
            module = control[step].model()
            assert type(module) is type(models[step])
            assert same(saved(tmp_path / f"{kind}{step}", module), there)
            assert same(skeleton.load(step).state_dict(), module.state_dict())
        assert same(control[0].model().state_dict(), models[0].state_dict())
        assert not same(control[5].model().state_dict(), models[5].state_dict())
        output = skeleton.load(5)(
            torch.tensor([[1, 2, 3]]) if build is not Own else torch.arange(3)
        )
        logits = output if build is Own else output.logits
        assert bool(logits.isfinite().all())
    assert largest_gram_error(run, run.control()) < 1e-6
    assert skeleton.file_names().keys() == run.skeleton().file_names().keys()


@pytest.mark.parametrize("build", FAMILIES)
def test_a_module_of_models_in_memory_has_the_tensors_of_the_control(build):
    models = run_of(build)
    run = Trajectory.from_models(models)
    before = {s: copy.deepcopy(m.state_dict()) for s, m in models.items()}
    control = run.control(random_state=2)
    assert largest_gram_error(run, control) < 1e-6
    for step in (0, 5):
        module = control[step].model()
        assert same(dict(module.state_dict()), tensors(control[step]))
        assert same(control.skeleton().load(step).state_dict(), module.state_dict())
    assert all(same(before[s], m.state_dict()) for s, m in models.items())


@pytest.mark.parametrize("build", [gpt2, bert, Own])
def test_tied_tensors_stay_tied_in_memory_and_are_turned_as_in_a_file(tmp_path, build):
    models = run_of(build)
    in_memory = Trajectory.from_models(models).control("turned", 4)
    on_disk = opened(tmp_path, build, models).control("turned", 4)
    there, stored = tensors(in_memory[5]), tensors(on_disk[5])
    pointers = {}
    for name, tensor in models[5].state_dict(keep_vars=True).items():
        pointers.setdefault(id(tensor), []).append(name)
    tied = [names for names in pointers.values() if len(names) > 1]
    assert tied
    for first, *others in tied:
        assert all(torch.equal(there[first], there[other]) for other in others)
        assert not torch.equal(there[first], models[5].state_dict()[first])
    assert all(
        torch.equal(there[name], value)
        for name, value in stored.items()
        if name in there
    )
    for control in (in_memory, on_disk):
        module = control[5].model()
        state = module.state_dict(keep_vars=True)
        assert all(state[names[0]] is state[name] for names in tied for name in names)


class InOneBuffer:
    """A reader that reads every tensor into the same memory, as happens where it was freed."""

    values: ClassVar = dict(zip("kv", torch.randn(2, 4, 3), strict=True))
    buffer = torch.empty(4, 3)

    def names(self):
        return list(self.values)

    def shape(self, name):
        return tuple(self.values[name].shape)

    def dtype(self, name):
        return self.values[name].dtype

    def get(self, name):
        return self.buffer.copy_(self.values[name])

    def rows(self, name, start, stop):
        return self.values[name][start:stop]


def test_what_is_read_into_the_memory_of_another_tensor_is_not_the_same(tmp_path):
    # k_proj and v_proj of safetensors moved alike, or not, as memory happened to lie.
    assert first_names(WeightFiles((tmp_path,)), InOneBuffer()) == {"k": "k", "v": "v"}


@pytest.mark.parametrize("build", [llama, eurobert, gpt_neox])
def test_tensors_of_one_shape_in_a_file_move_as_in_memory(tmp_path, build):
    models = run_of(build)
    in_memory = Trajectory.from_models(models).control("turned", 4)
    there, stored = (
        tensors(in_memory[5]),
        tensors(opened(tmp_path, build, models).control("turned", 4)[5]),
    )
    assert all(
        torch.equal(there[name], value)
        for name, value in stored.items()
        if name in there
    )


@pytest.mark.parametrize("pickled", [False, True])
def test_tensors_stored_under_two_names_stay_equal(tmp_path, pickled):
    models = run_of(Own)
    record(tmp_path, models)
    for step, model in models.items():
        folder = tmp_path / f"checkpoint-{step}"
        if pickled:
            (folder / "model.safetensors").unlink()
            torch.save(model.state_dict(), folder / "pytorch_model.bin")
        else:
            state = {
                name: tensor.clone() for name, tensor in model.state_dict().items()
            }
            save_file(state, folder / "model.safetensors")
    run = Trajectory.from_folder(tmp_path, model=Own)
    for kind in KINDS:
        module = run.control(kind)[5].model()  # refuses tied tensors that differ
        assert module.head.weight is module.embed.weight


def test_shards_and_pickles_are_read_like_one_file(tmp_path):
    models = run_of(gpt_neox)
    expected = record(tmp_path / "whole", models).control()
    for step, model in models.items():
        sharded = tmp_path / "sharded" / f"checkpoint-{step}"
        model.save_pretrained(sharded, max_shard_size="20KB")
        assert len(list(sharded.glob("*.safetensors"))) > 1
        folder = tmp_path / "pickled" / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        model.config.save_pretrained(folder)
        (folder / "config.json").write_text((sharded / "config.json").read_text())
        torch.save(
            load_file(tmp_path / "whole" / f"checkpoint-{step}" / "model.safetensors"),
            folder / "pytorch_model.bin",
        )
    for name in ("sharded", "pickled"):
        control = Trajectory.from_folder(tmp_path / name).control()
        assert same(tensors(control[5]), tensors(expected[5]))
        assert same(control[5].model().state_dict(), expected[5].model().state_dict())


def test_bfloat16_runs_have_controls_in_bfloat16(tmp_path):
    models = run_of(lambda: llama().to(torch.bfloat16))
    control = record(tmp_path, models).control()
    module = control[5].model()
    assert module.dtype == torch.bfloat16
    assert control[5].model(dtype=torch.float32).dtype == torch.float32
    assert same(saved(tmp_path / "saved", module), tensors(control[5]))
    assert largest_gram_error(Trajectory.from_folder(tmp_path), control) < 0.02


def test_state_dicts_need_a_module_and_have_its_buffers(tmp_path):
    states = {s: m.state_dict() for s, m in run_of(Own).items()}
    control = Trajectory.from_models(states, model=Own).control()
    assert torch.equal(
        tensors(control[5])["norm.running_mean"], states[5]["norm.running_mean"]
    )
    assert control[5].model().head.weight.shape == (7, 4)


def test_the_same_bits_whatever_is_read_first_and_in_another_process(tmp_path):
    models = run_of(gpt_neox)
    record(tmp_path, models)
    expected = {}
    for kind in KINDS:
        control = Trajectory.from_folder(tmp_path).control(kind, 3)
        expected[kind] = digest_of(control)
        single = digest_of(
            Trajectory.from_folder(tmp_path).control(kind, 3).select(steps=[5])
        )[0]
        assert single == {key: d for key, d in expected[kind][0].items() if key[0] == 5}
        in_memory = Trajectory.from_models(models).control(kind, 3)
        for made in (control, in_memory):
            assert digest_of(pickle.loads(pickle.dumps(made))) == digest_of(made)
    code = (
        "from helpers.control_runs import digest_of; from ontogeny import Trajectory; "
        f"run = Trajectory.from_folder({str(tmp_path)!r}); "
        f"print({{kind: digest_of(run.control(kind, 3)) for kind in {tuple(KINDS)}}})"
    )
    done = warm_process.run(["-c", code])
    assert done.stdout.strip() == str(expected), done.stderr


def test_workers_compute_the_same(tmp_path):
    run = record(tmp_path, run_of(gpt2))
    control = run.control()
    spawned = warm_context()
    with ProcessPoolExecutor(1, spawned) as pool:
        assert pool.submit(digest_of, control).result() == digest_of(control)


def test_fingerprints_follow_from_the_source_kind_and_seed(tmp_path, monkeypatch):
    from ontogeny.trajectory.control import reader

    def refused(*_):
        raise AssertionError("a control was computed")

    monkeypatch.setattr(reader.ControlReader, "_compute", refused)
    models = run_of(Own)
    run = Trajectory.from_folder(record(tmp_path, models).path, model=Own)
    seen = {run.fingerprint}
    for kind, seed in (
        ("turned", 0),
        ("turned", 1),
        ("walk", 0),
        ("line", 0),
        ("shuffled", 0),
    ):
        control = run.control(kind, seed)
        assert control[0].fingerprint == run[0].fingerprint
        seen.add(control.fingerprint)
        assert control.fingerprint == run.control(kind, seed).fingerprint
        assert control[5].digests().keys() == run[5].digests().keys()
    assert len(seen) == 6
    before = run.control()[5].digests()
    with torch.no_grad():
        models[5].norm.weight += 1
    record_again = tmp_path / "checkpoint-5" / "model.safetensors"
    save_file(
        {n: t for n, t in models[5].state_dict().items() if n != "head.weight"},
        record_again,
    )
    after = Trajectory.from_folder(tmp_path, model=Own).control()[5].digests()
    assert {n for n in before if before[n] != after[n]} == {"norm.weight"}


def test_the_cache_of_a_study_knows_a_control_from_its_source(tmp_path):
    run = record(tmp_path / "run", run_of(gpt2))
    control = run.control()
    names = ["transformer.wte.weight"]
    for order in ((run, control), (control, run)):
        cache = DigestCache(None)
        found = [(cache(t[5]), cache(t[5], names)) for t in order]
        assert set(found) == {
            (combine(t[5].digests()), combine(t[5].digests(), names))
            for t in (run, control)
        }
        assert len(set(found)) == 2
    stored = tmp_path / "digests.json"
    cache = DigestCache(stored)
    expected = cache(control[5])
    cache.save()
    assert DigestCache(stored)(control[5]) == expected
    # The digests of the sources suffice.
    assert "turned" not in stored.read_text(encoding="utf-8")


def test_configuration_tokenizer_title_and_provenance_are_those_of_the_run(tmp_path):
    from ontogeny.tasks import train_tokenizer

    run = record(
        tmp_path / "demo", run_of(gpt2), tokenizer=train_tokenizer(["a text"], 261)
    )
    control = run.control("walk", 7)
    assert repr(control) == "Trajectory('demo (walk 7)': 4 checkpoints, steps 0 to 5)"
    assert (
        repr(control[5])
        == "Checkpoint(step=5, label='checkpoint-5 (walk 7)', path=None)"
    )
    assert control[5].configuration() == run[5].configuration()
    assert control.tokenizer().get_vocab() == run.tokenizer().get_vocab()
    assert control.provenance() == {
        "source": "control",
        "name": "demo (walk 7)",
        "kind": "walk",
        "random_state": 7,
        "of": run.provenance(),
    }
    assert control.select(count=2).title == control.title
    assert control.select(count=2).provenance() == control.provenance()
    given = Trajectory.from_models(run_of(Own), tokenizer="mine").control()
    assert given.tokenizer() == "mine"


def test_an_audit_looks_at_the_control(tmp_path):
    models = run_of(gpt2, range(6))
    control = record(tmp_path, models).control()
    assert {f.kind for f in control.audit()} <= {"initialisation"}
    with torch.no_grad():
        models[3].transformer.wpe.weight[0, 0] = torch.nan
    found = Trajectory.from_models(models).control().audit()
    assert ("non-finite", (3,)) in [(f.kind, f.steps) for f in found]


def test_retained_tensors_of_a_control_lie_beside_those_of_the_run(tmp_path):
    run = record(tmp_path / "run", run_of(gpt2))
    control = run.control()
    name = "transformer.h.0.attn.c_attn.weight"
    kept = {t.title: retain(t[5], [name], tmp_path / "kept") for t in (run, control)}
    for trajectory in (run, control):
        assert torch.equal(
            tensors(kept[trajectory.title])[name], tensors(trajectory[5])[name]
        )
        again = retained(trajectory, tmp_path / "kept")
        assert tensors(again[5]).keys() == {name}
        assert torch.equal(tensors(again[5])[name], tensors(trajectory[5])[name])
    assert kept[control.title].fingerprint == control[5].fingerprint


def test_a_folder_of_the_trainer_has_controls(tmp_path):
    ids = torch.randint(0, 40, (8, 4), generator=torch.Generator().manual_seed(1))
    arguments = transformers.TrainingArguments(
        tmp_path,
        max_steps=4,
        save_steps=2,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        learning_rate=0.05,
        lr_scheduler_type="constant",
        logging_strategy="no",
    )
    transformers.Trainer(
        gpt2(),
        arguments,
        train_dataset=[{"input_ids": row, "labels": row} for row in ids],
    ).train()
    run = Trajectory.from_folder(tmp_path)
    control = run.control()
    assert same(control[2].model().state_dict(), run[2].model().state_dict())
    assert not same(control[4].model().state_dict(), run[4].model().state_dict())
    assert largest_gram_error(run, control) < 1e-6
