"""Folders of adapters open as runs whose logits are peft's own, the base being step 0."""

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)
from typer.testing import CliRunner

import ontogeny as og
from helpers.hub_models import tokenizer_files
from helpers.said import said_of
from ontogeny import Trajectory
from ontogeny.cli.commands import app
from ontogeny.errors import ArgumentError, CheckpointError, MissingExtraError
from ontogeny.start import Wishes, propose
from ontogeny.start.source import open_source
from ontogeny.study.file import _trajectory
from ontogeny.trajectory.adapters import merging
from ontogeny.trajectory.hub.repository import Repository

peft = pytest.importorskip("peft")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:peft")

IDS = torch.arange(12).reshape(2, 6)
GPT2 = (
    GPT2LMHeadModel,
    GPT2Config(n_layer=2, n_embd=16, n_head=2, vocab_size=40, n_positions=8),
)
LLAMA = (
    LlamaForCausalLM,
    LlamaConfig(
        num_hidden_layers=2,
        hidden_size=16,
        intermediate_size=24,
        num_attention_heads=2,
        vocab_size=40,
        max_position_embeddings=8,
    ),
)
BERT = (
    BertForMaskedLM,
    BertConfig(
        num_hidden_layers=2,
        hidden_size=16,
        intermediate_size=24,
        num_attention_heads=2,
        vocab_size=40,
        max_position_embeddings=8,
    ),
)
LORA = {"r": 4, "lora_alpha": 8, "task_type": "CAUSAL_LM"}
CASES = {
    "gpt2": (GPT2, {**LORA, "target_modules": ["c_attn", "c_proj"]}),
    "gpt2 rslora": (GPT2, {**LORA, "target_modules": ["c_fc"], "use_rslora": True}),
    "gpt2 dora": (
        GPT2,
        {**LORA, "target_modules": ["c_attn", "c_proj"], "use_dora": True},
    ),
    "llama embedding": (LLAMA, {**LORA, "target_modules": ["q_proj", "embed_tokens"]}),
    "gpt2 biases": (GPT2, {**LORA, "target_modules": ["c_attn"], "bias": "all"}),
    "llama": (LLAMA, {**LORA, "target_modules": ["q_proj", "v_proj"]}),
    "llama dora": (LLAMA, {**LORA, "target_modules": "all-linear", "use_dora": True}),
    "llama rslora": (
        LLAMA,
        {**LORA, "target_modules": ["q_proj", "v_proj"], "use_rslora": True},
    ),
    "llama saved": (
        LLAMA,
        {
            **LORA,
            "target_modules": ["o_proj"],
            "modules_to_save": ["lm_head", "embed_tokens"],
        },
    ),
    "llama patterns": (
        LLAMA,
        {
            **LORA,
            "target_modules": ["q_proj", "k_proj"],
            "rank_pattern": {"layers.1.self_attn.q_proj": 2},
            "alpha_pattern": {"k_proj": 32},
        },
    ),
    "bert": (BERT, {"r": 4, "lora_alpha": 8, "target_modules": ["query", "value"]}),
    "bert rslora": (
        BERT,
        {"r": 4, "target_modules": ["query", "value"], "use_rslora": True},
    ),
    "bert saved": (
        BERT,
        {"r": 4, "target_modules": ["query"], "modules_to_save": ["pooler", "dense"]},
    ),
    "bert dora": (
        BERT,
        {"r": 4, "target_modules": ["query", "dense"], "use_dora": True},
    ),
}


def write_run(folder, base_class, config, settings, cls=None, **loading):
    """A base, two adapters on it, and the logits that peft itself gives at both."""
    torch.manual_seed(0)
    base_class(config).save_pretrained(folder / "base")
    logits = {}
    model = (cls or base_class).from_pretrained(folder / "base", **loading).eval()
    with torch.no_grad():
        logits[0] = model(IDS).logits
    tuned = peft.get_peft_model(model, peft.LoraConfig(**settings))
    for step in (5, 10):
        with torch.no_grad():
            for parameter in tuned.parameters():
                if parameter.requires_grad:
                    parameter.add_(torch.randn_like(parameter) * 0.1)
        tuned.save_pretrained(folder / "run" / f"checkpoint-{step}")
        tuned.eval()
        with torch.no_grad():
            logits[step] = tuned(IDS).logits
    return logits


def assert_logits(run, logits):
    assert list(run.steps) == list(logits)
    skeleton = run.skeleton()
    for step, expected in logits.items():
        with torch.no_grad():
            for model in (run[step].model(), skeleton.load(step)):
                torch.testing.assert_close(
                    model(IDS).logits, expected, atol=1e-5, rtol=0
                )


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_logits_are_those_of_peft_at_every_step(tmp_path, case):
    (base, config), settings = case
    logits = write_run(tmp_path, base, config, settings)
    run = Trajectory.from_folder(tmp_path / "run")
    assert_logits(run, logits)
    with run[10].open() as reader:
        for name in reader.names():
            whole = reader.get(name)
            assert (reader.shape(name), reader.dtype(name)) == (
                whole.shape,
                whole.dtype,
            )
            torch.testing.assert_close(reader.rows(name, 0, 3), whole[:3])


@pytest.mark.slow
@pytest.mark.parametrize("case", ["gpt2", "llama dora"])
def test_losses_are_those_of_peft_and_cells_those_of_merged_weights(tmp_path, case):
    (base, config), settings = CASES[case]
    logits = write_run(tmp_path, base, config, settings)
    base.from_pretrained(tmp_path / "base").save_pretrained(
        tmp_path / "merged" / "checkpoint-0"
    )
    for step in (5, 10):
        plain = base.from_pretrained(tmp_path / "base")
        adapted = peft.PeftModel.from_pretrained(
            plain, tmp_path / "run" / f"checkpoint-{step}"
        )
        adapted.merge_and_unload().save_pretrained(
            tmp_path / "merged" / f"checkpoint-{step}"
        )
    inputs = og.Inputs.from_tokens(IDS.numpy(), vocab_size=40)
    observed = [og.observables.WeightChange(), og.observables.Loss()]
    results = [
        og.Study(
            Trajectory.from_folder(tmp_path / name), inputs, observed, noise=0
        ).run(tmp_path / f"study of {name}")
        for name in ("run", "merged")
    ]
    for one in observed:
        ours, theirs = (result[one.name].to_dataset() for result in results)
        measured = [
            n for n, v in theirs.items() if "step" in v.dims and v.dtype.kind == "f"
        ]
        assert measured
        for name in measured:
            np.testing.assert_allclose(
                ours[name], theirs[name], rtol=1e-3, atol=1e-5, err_msg=name
            )
    for step, values in logits.items():
        expected = torch.nn.functional.cross_entropy(values[:, :-1].mT, IDS[:, 1:])
        found = float(results[0]["loss"].to_dataset().loss.sel(step=step))
        assert found == pytest.approx(float(expected), abs=1e-5)


@pytest.mark.parametrize(
    ("base", "cls", "settings"),
    [
        (GPT2, GPT2ForSequenceClassification, {"target_modules": ["c_attn"]}),
        (
            (BertForPreTraining, BERT[1]),
            BertForSequenceClassification,
            {"target_modules": ["query"], "use_rslora": True},
        ),
    ],
    ids=["gpt2", "bert"],
)
def test_a_classifier_on_a_base_without_a_head(tmp_path, base, cls, settings, caplog):
    labelled = {**settings, "r": 4, "task_type": "SEQ_CLS"}
    loading = {"num_labels": 3, "pad_token_id": 0}
    logits = write_run(tmp_path, *base, labelled, cls, **loading)
    del logits[0]  # its head was random then, and training has changed it since
    for step in (5, 10):
        assert (tmp_path / "run" / f"checkpoint-{step}").is_dir()
    config = tmp_path / "base" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "pad_token_id": 0}))
    run = Trajectory.from_folder(tmp_path / "run")
    assert type(run[10].model()) is cls
    for step, expected in logits.items():
        with torch.no_grad():
            got = run[step].model()(IDS).logits
        torch.testing.assert_close(got, expected, atol=1e-5, rtol=0)
    with run[0].open() as first, run[5].open() as other:
        head = (
            "score.weight"
            if cls is GPT2ForSequenceClassification
            else "classifier.weight"
        )
        assert torch.equal(first.get(head), other.get(head))
    assert "are those of checkpoint-5 at step 0" in caplog.text and head in caplog.text


def test_one_adapter_is_a_run_of_base_and_adapter(tmp_path):
    logits = write_run(tmp_path, *GPT2, CASES["gpt2"][1])
    run = Trajectory.from_folder(tmp_path / "run" / "checkpoint-5")
    assert_logits(run, {0: logits[0], 1: logits[5]})
    assert run.lines() == ["2 checkpoints, steps 0 to 1"] and not list(run.audit())


def test_the_adapter_that_a_run_leaves_in_its_folder_is_its_own_model(tmp_path):
    """The Trainer writes it there at the end; it was left out as one without a step."""
    write_run(tmp_path, *GPT2, CASES["gpt2"][1])
    last = tmp_path / "run" / "checkpoint-5"
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        shutil.copy(last / name, tmp_path / "run" / name)
    run = Trajectory.from_folder(tmp_path / "run")
    left = (
        "left out: adapter_model.safetensors (the folder's own model, without a step)"
    )
    assert left in run.lines() and "unnumbered" not in [
        finding.kind for finding in run.audit()
    ]


def test_a_base_is_named_where_the_adapter_names_another(tmp_path):
    logits = write_run(tmp_path, *GPT2, CASES["gpt2"][1])
    (tmp_path / "base").rename(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match=r"--base MODEL \(base= in Python\)"):
        Trajectory.from_folder(tmp_path / "run")[5].model()
    assert_logits(
        Trajectory.from_folder(tmp_path / "run", base=tmp_path / "elsewhere"), logits
    )
    LLAMA[0](LLAMA[1]).save_pretrained(tmp_path / "other")
    wrong = Trajectory.from_folder(tmp_path / "run", base=tmp_path / "other")
    with pytest.raises(CheckpointError, match=r"Is it the right base\?"):
        wrong[5].model()


def test_a_full_fine_tuning_begins_at_its_base(tmp_path):
    torch.manual_seed(0)
    base = GPT2LMHeadModel(GPT2[1])
    base.save_pretrained(tmp_path / "base")
    tuned = GPT2ForSequenceClassification.from_pretrained(
        tmp_path / "base", num_labels=3
    )
    for step in (4, 8):
        with torch.no_grad():
            for parameter in tuned.parameters():
                parameter.add_(0.01)
        tuned.save_pretrained(tmp_path / "run" / f"checkpoint-{step}")
    run = Trajectory.from_folder(tmp_path / "run", base=tmp_path / "base")
    assert list(run.steps) == [0, 4, 8]
    start, first = run[0].model(), run[4].model()
    assert torch.equal(start.transformer.wte.weight, base.transformer.wte.weight)
    assert torch.equal(start.score.weight, first.score.weight)
    assert run[0].label == "base base" and len(set(run.fingerprints().values())) == 3
    one = Trajectory.from_folder(
        tmp_path / "run" / "checkpoint-8", base=tmp_path / "base"
    )
    assert list(one.steps) == [0, 8] and one.has_base
    assert one.tokenizer() is None
    for name, content in tokenizer_files().items():
        (tmp_path / "base" / name).write_bytes(content)
    one = Trajectory.from_folder(
        tmp_path / "run" / "checkpoint-8", base=tmp_path / "base"
    )
    assert one.tokenizer() is not None


def test_a_base_is_not_suspected_of_being_no_initialisation(tmp_path):
    model = GPT2LMHeadModel(GPT2[1])
    for name, by in (("base", 1.0), ("tuned", 0.01)):
        for parameter in model.parameters():
            with torch.no_grad():
                parameter.add_(by * torch.rand_like(parameter))
        model.save_pretrained(tmp_path / name)
    run = Trajectory.from_folder(tmp_path / "tuned", base=tmp_path / "base")
    assert not list(run.audit())
    start = Trajectory.from_folder(tmp_path / "base")[0].model()
    as_run = Trajectory.from_models({0: start, 1: model})
    assert [finding.kind for finding in as_run.audit()] == ["initialisation"]


def test_controls_and_audit_of_adapters(tmp_path):
    write_run(tmp_path, *GPT2, CASES["gpt2"][1])
    run = Trajectory.from_folder(tmp_path / "run")
    assert not list(run.audit())
    control = run.control("turned")
    name = "transformer.h.0.attn.c_attn.weight"

    def moved(trajectory):
        with trajectory[0].open() as start, trajectory[10].open() as end:
            assert torch.equal(
                start.get("transformer.wte.weight"), end.get("transformer.wte.weight")
            )
            return torch.linalg.svdvals(end.get(name) - start.get(name)).numpy()

    np.testing.assert_allclose(moved(run), moved(control), atol=1e-5)
    assert np.sum(moved(control) > 1e-4) == 4
    assert len(set(control.fingerprints().values())) == 3
    assert control[10].model() is not None


def test_memory_is_one_base_and_one_layer(tmp_path):
    write_run(tmp_path, *LLAMA, CASES["llama"][1])
    run = Trajectory.from_folder(tmp_path / "run")
    with run[5].open() as one, run[10].open() as other:
        name = "model.layers.0.mlp.up_proj.weight"
        assert one.changed == other.changed and len(one.changed) == 4
        assert torch.equal(one.get(name), other.get(name))
    before, after = run[5].digests(), run[10].digests()
    assert {n for n in after if before[n] != after[n]} == one.changed


@pytest.mark.parametrize(
    "settings",
    [{"target_modules": ["wte"]}, {"target_modules": [], "modules_to_save": ["wte"]}],
)
def test_an_embedding_that_peft_unties_from_the_head_is_refused(tmp_path, settings):
    settings["target_modules"] = [*settings["target_modules"], "c_attn"]
    write_run(tmp_path, *GPT2, {**LORA, **settings})
    run = Trajectory.from_folder(tmp_path / "run")
    with pytest.raises(
        CheckpointError, match=r"adapts transformer\.wte\.weight, which the base"
    ):
        run[5].model()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"peft_type": "PROMPT_TUNING"}, "kind PROMPT_TUNING"),
        ({"peft_type": "XLORA", "adapters": {"a": "somewhere/else"}}, "kind XLORA"),
        ({"peft_type": "SHADOW", "shadow_model": "somewhere/else"}, "kind SHADOW"),
        ({"init_lora_weights": "loftq"}, "a quantised base"),
        ({"init_lora_weights": "corda"}, "statistics of texts"),
        ({"init_lora_weights": "lora_ga"}, "gradients"),
        ({"init_lora_weights": "pissa_niter_4"}, "random numbers"),
        (
            {"megatron_config": {"a": 1}, "megatron_core": "antigravity"},
            "a library to import",
        ),
        ({"base_model_name_or_path": "\x1b[31m../x"}, r"base \\x1b\[31m"),
        ({"a_new_way": 3}, "does not know the settings a_new_way = 3; update peft"),
        ({"r": 5}, "size mismatch"),
        (
            {"target_modules": ["c_attn", "c_proj", "c_fc"]},
            "lacks parts of its adapter",
        ),
        ({"target_modules": ["c_fc"]}, r"Is it the right base\?"),
        ({"target_modules": ["q_proj"]}, r"Is it the right base\?"),
    ],
)
def test_what_is_not_read_as_it_was_trained_is_refused_in_one_line(
    tmp_path, change, message
):
    write_run(tmp_path, *GPT2, CASES["gpt2"][1])
    for step in (5, 10):
        path = tmp_path / "run" / f"checkpoint-{step}" / "adapter_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(CheckpointError, match=message) as caught:
        Trajectory.from_folder(tmp_path / "run")[5].model()
    assert str(caught.value).isprintable()


def test_a_study_file_names_the_base(tmp_path):
    logits = write_run(tmp_path, *GPT2, CASES["gpt2"][1])
    (tmp_path / "base").rename(tmp_path / "elsewhere")
    table = _trajectory({"folder": "run", "base": "elsewhere"}, tmp_path)
    assert_logits(table, logits)
    with pytest.raises(ArgumentError, match="base goes with folder"):
        _trajectory({"hub": "ada/tiny", "base": "elsewhere"}, tmp_path)
    with pytest.raises(ArgumentError, match="base is for folders"):
        open_source("ada/tiny", choice={"base": "elsewhere"})


def test_the_command_writes_the_base_into_the_study_file(tmp_path):
    write_run(tmp_path, *GPT2, CASES["gpt2"][1])
    np.save(tmp_path / "ids.npy", np.arange(2000, dtype=np.uint16) % 40)
    (tmp_path / "base").rename(tmp_path / "elsewhere")
    wishes = Wishes(
        str(tmp_path / "run"),
        "weights",
        [str(tmp_path / "ids.npy")],
        base=str(tmp_path / "elsewhere"),
    )
    table = propose(wishes, tmp_path).content["trajectory"]
    assert table["base"] == str(tmp_path / "elsewhere") and "--base" in wishes.options()


def test_the_change_of_weights_takes_in_what_an_adapter_saved_whole(tmp_path):
    write_run(tmp_path, *LLAMA, CASES["llama saved"][1])
    np.save(tmp_path / "ids.npy", np.arange(2000, dtype=np.uint16) % 40)
    wishes = Wishes(str(tmp_path / "run"), "fine-tuning", [str(tmp_path / "ids.npy")])
    content = propose(wishes, tmp_path).content
    (table,) = (t for t in content["observables"] if t["kind"] == "weight-change")
    saved = ["lm_head.weight", "model.embed_tokens.weight"]
    assert table["blocks"] == ["attn", "mlp", *saved]
    observables = [og.observables.WeightChange(saved)]
    run = Trajectory.from_folder(tmp_path / "run")
    study = og.Study(run, og.Inputs.from_tokens([[1, 2]]), observables, device="cpu")
    data = study.run(tmp_path / "s", progress=False)["weight-change"].to_dataset()
    for name in saved:
        with run[0].open() as first, run[10].open() as last:
            before, after = first.get(name).double(), last.get(name).double()
        expected = float((after - before).norm() / before.norm())
        kind = name.split(".")[-2]
        assert float(data.relative_change.sel(kind=kind)[-1]) == pytest.approx(
            expected, rel=1e-6
        )
    sentence = " ".join(said_of(observables[0], data))
    assert "The weights of embed_tokens moved farthest" in sentence
    assert "(lm_head " in sentence


@pytest.mark.parametrize("preset", ["standard", "quick"])
def test_a_run_with_a_base_gets_the_preset_of_fine_tuning_unless_another_is_asked_for(
    tmp_path, preset
):
    write_run(tmp_path, *GPT2, CASES["gpt2"][1])
    np.save(tmp_path / "ids.npy", np.arange(2000, dtype=np.uint16) % 40)
    wishes = Wishes(str(tmp_path / "run"), preset, [str(tmp_path / "ids.npy")])
    proposal = propose(wishes, tmp_path)
    tuned = {"standard": "fine-tuning", "quick": "quick"}[preset]
    assert proposal.preset.name == tuned
    kinds = [table["kind"] for table in proposal.content["observables"]]
    assert ("weight-change" in kinds) == (tuned == "fine-tuning")


def test_an_adapter_with_a_name_is_found_and_one_of_several_is_chosen(tmp_path, caplog):
    logits = write_run(tmp_path, *GPT2, CASES["gpt2"][1])
    for step in (5, 10):
        place = tmp_path / "run" / f"checkpoint-{step}"
        for name in ("adapter_config.json", "adapter_model.safetensors"):
            (place / "style").mkdir(exist_ok=True)
            (place / name).rename(place / "style" / name)
    run = Trajectory.from_folder(tmp_path / "run")
    assert_logits(run, logits)
    assert [checkpoint.label for checkpoint in run][1:] == [
        "checkpoint-5",
        "checkpoint-10",
    ]
    assert_logits(Trajectory.from_folder(place), {0: logits[0], 1: logits[10]})
    shutil.copytree(place / "style", place / "tone")
    with pytest.raises(
        CheckpointError, match="several adapters: style, tone; say which with --key"
    ):
        Trajectory.from_folder(tmp_path / "run")
    assert_logits(Trajectory.from_folder(tmp_path / "run", key="style"), logits)
    shutil.copytree(place / "style", place, dirs_exist_ok=True)
    assert_logits(Trajectory.from_folder(place), {0: logits[0], 1: logits[10]})
    assert "holds others, which --key names: style, tone" in caplog.text


def test_what_is_left_out_of_a_run_of_adapters_is_said(tmp_path):
    logits = write_run(tmp_path, *GPT2, CASES["gpt2"][1])
    run = tmp_path / "run"
    GPT2LMHeadModel(GPT2[1]).save_pretrained(run / "checkpoint-15")
    shutil.copytree(run / "checkpoint-5", run / "checkpoint-0")
    shutil.copytree(run / "checkpoint-5", run / "checkpoint-20")
    (run / "checkpoint-20" / "adapter_model.safetensors").write_bytes(b"")
    opened = Trajectory.from_folder(run)
    assert_logits(opened, logits)
    lines = "\n".join(opened.lines())
    assert "left out: checkpoint-15/ (no adapter, as the others are)" in lines
    assert "left out: checkpoint-0/ (an adapter at step 0, which is the base)" in lines
    assert "left out: step 20 (checkpoint-20/adapter_model.safetensors" in lines
    assert [finding.kind for finding in opened.audit()] == ["unnumbered", "incomplete"]


def test_order_and_audit_of_adapters_need_no_base_and_no_peft(tmp_path, monkeypatch):
    settings = {**CASES["gpt2"][1], "r": 8}
    write_run(tmp_path, *GPT2, settings)
    shutil.rmtree(tmp_path / "base")
    found = merging.find_spec
    monkeypatch.setattr(
        merging, "find_spec", lambda name: None if name == "peft" else found(name)
    )
    place = tmp_path / "run" / "checkpoint-10"
    run = Trajectory.from_folder(tmp_path / "run")
    assert list(run.steps) == [0, 5, 10] and not list(run.audit())
    assert run.lines()[-1].startswith("no model can be read: the base ")
    shutil.copytree(place, place.with_name("checkpoint-15"))
    shutil.copytree(place, place.with_name("checkpoint-20"))
    shutil.copytree(place, place.with_name("checkpoint-30"))
    path = place.with_name("checkpoint-20") / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "lora_alpha": 64}))
    path = place.with_name("checkpoint-30") / "adapter_model.safetensors"
    tensors = {name: tensor * float("nan") for name, tensor in load_file(path).items()}
    save_file(tensors, path)
    torch.manual_seed(7)
    tensors = {name: torch.randn_like(tensor) for name, tensor in tensors.items()}
    place.with_name("checkpoint-25").mkdir()
    shutil.copy(place / "adapter_config.json", place.with_name("checkpoint-25"))
    save_file(tensors, place.with_name("checkpoint-25") / path.name)
    messages = [
        finding.message for finding in Trajectory.from_folder(tmp_path / "run").audit()
    ]
    assert any(m.startswith("steps 10 and 15 hold the same weights") for m in messages)
    assert any(
        m.startswith("the configuration changes at step 20: lora_alpha")
        for m in messages
    )
    assert any(
        m.startswith("step 30 holds NaN or infinity in base_model.") for m in messages
    )
    assert any(
        "step 25 have nothing in common with those of step" in m for m in messages
    )
    with pytest.raises(CheckpointError, match=r"--base MODEL \(base= in Python\)"):
        run[0].model()
    GPT2LMHeadModel(GPT2[1]).save_pretrained(tmp_path / "base")
    whole = Trajectory.from_folder(tmp_path / "run")
    for read in (whole[10].model, whole[0].model, whole.fingerprints):
        with pytest.raises(
            MissingExtraError, match=r"pip install 'ontogeny\[adapters\]'"
        ):
            read()


def test_the_audit_says_what_does_not_belong_to_the_base(tmp_path):
    write_run(tmp_path, *GPT2, CASES["gpt2"][1])
    LLAMA[0](LLAMA[1]).save_pretrained(tmp_path / "other")
    run = Trajectory.from_folder(tmp_path / "run", base=tmp_path / "other")
    findings = list(run.audit())
    assert [(f.kind, f.steps) for f in findings] == [
        ("unreadable", (5,)),
        ("unreadable", (10,)),
    ]
    assert "Is it the right base?" in findings[0].message


def test_a_base_that_moved_along_with_its_run_is_found_and_this_is_said(
    tmp_path, caplog
):
    logits = write_run(tmp_path / "there", *GPT2, CASES["gpt2"][1])
    (tmp_path / "there").rename(tmp_path / "here")
    assert_logits(Trajectory.from_folder(tmp_path / "here" / "run"), logits)
    assert f"{tmp_path / 'here' / 'base'} is taken for it" in caplog.text


def test_the_command_shows_and_audits_adapters_without_their_base(tmp_path):
    write_run(tmp_path, *GPT2, CASES["gpt2"][1])
    (tmp_path / "base").rename(tmp_path / "elsewhere")
    for verb in ("steps", "audit"):
        result = CliRunner().invoke(app, [verb, str(tmp_path / "run")])
        assert result.exit_code == 0, result.output
        assert "no model can be read: the base " in result.output
        named = ["--base", str(tmp_path / "elsewhere")]
        result = CliRunner().invoke(app, [verb, str(tmp_path / "run"), *named])
        assert result.exit_code == 0 and "no model can be read" not in result.output


@pytest.mark.parametrize("revision", ["v2", "a" * 40])
def test_the_base_is_of_the_revision_that_was_tuned(tmp_path, monkeypatch, revision):
    write_run(tmp_path, *GPT2, CASES["gpt2"][1])
    for step in (5, 10):
        path = tmp_path / "run" / f"checkpoint-{step}" / "adapter_config.json"
        table = {**json.loads(path.read_text()), "base_model_name_or_path": "ada/tiny"}
        path.write_text(json.dumps({**table, "revision": revision}))
    monkeypatch.setattr(
        Repository, "commits", lambda self: {"main": "b" * 40, "v2": "a" * 40}
    )
    monkeypatch.setattr(
        "ontogeny.trajectory.adapters.opening.template_of", lambda *_: None
    )
    base = Trajectory.from_folder(tmp_path / "run")[5].sources[0]
    assert (base.revision, base.commit) == (revision, "a" * 40)
    monkeypatch.setattr(Repository, "commits", lambda self: {"main": "b" * 40})
    lines = Trajectory.from_folder(tmp_path / "run").lines()
    assert ("it has no revision v2" in lines[-1]) == (revision == "v2")


def test_an_adapter_that_is_deleted_meanwhile_is_a_finding(tmp_path):
    write_run(tmp_path, *GPT2, CASES["gpt2"][1])
    run = Trajectory.from_folder(tmp_path / "run")
    (tmp_path / "run" / "checkpoint-5" / "adapter_model.safetensors").unlink()
    assert [(finding.kind, finding.steps) for finding in run.audit()] == [
        ("unreadable", (5,))
    ]
