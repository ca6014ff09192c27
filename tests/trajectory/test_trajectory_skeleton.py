"""One module, weights swapped in place: right, complete, and in constant memory."""

import copy
import json
import logging

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from helpers.tiny_models import Own, bert, eurobert, gpt2, gpt_neox, mixtral
from ontogeny import Recorder, Trajectory
from ontogeny.errors import ArgumentError, CheckpointError

FAMILIES = [gpt2, gpt_neox, bert, eurobert, mixtral, Own]


def models_of(build, steps=(0, 1, 2)):
    models = {}
    for step in steps:
        torch.manual_seed(step)
        models[step] = build().eval()
        # So that biases and norms differ from step to step as well.
        with torch.no_grad():
            saved = models[step].state_dict(keep_vars=True)
            for tensor in {id(t): t for t in saved.values()}.values():
                if tensor.is_floating_point():
                    tensor += 0.1 * torch.rand_like(tensor)
    return models


def record(folder, models):
    recorder = Recorder(folder, every=1)
    assert all(recorder(step, model) for step, model in models.items())
    return folder


def same(model, other):
    state, expected = model.state_dict(), other.state_dict()
    return state.keys() == expected.keys() and all(
        torch.equal(state[k], expected[k]) for k in state
    )


@pytest.mark.parametrize("build", FAMILIES)
def test_every_load_gives_exactly_the_saved_weights_in_one_module(tmp_path, build):
    models = models_of(build)
    own = Own if build is Own else None
    trajectory = Trajectory.from_folder(record(tmp_path, models), model=own)
    skeleton = trajectory.skeleton()
    first = skeleton.load(1)
    for step in (1, 0, 2, 1):
        model = skeleton.load(step)
        assert model is first and not model.training
        assert same(model, models[step]) and same(
            trajectory[step].model(), models[step]
        )
        assert all(p.grad is None for p in model.parameters())
        model.train()
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
    tokens = torch.tensor([[1, 2, 3, 0]])
    output = (
        skeleton.load(2)(tokens) if build is not Own else skeleton.load(2)(tokens[0])
    )
    expected = models[2](tokens) if build is not Own else models[2](tokens[0])
    if build is not Own:
        output, expected = output.logits, expected.logits
    assert torch.equal(output, expected)


@pytest.mark.parametrize("build", FAMILIES)
def test_file_names_point_at_the_tensor_that_holds_the_parameter(tmp_path, build):
    models = models_of(build)
    own = Own if build is Own else None
    trajectory = Trajectory.from_folder(record(tmp_path, models), model=own)
    names = trajectory.skeleton().file_names()
    model = models[2]
    with trajectory[2].open() as tensors:
        for name, stored in names.items():
            assert torch.equal(tensors.get(stored), model.state_dict()[name])
    absent = set(model.state_dict()) - set(names)
    # The file holds every expert by itself, the module all in one tensor.
    if build is mixtral:
        assert absent and all("experts" in name for name in absent)
    else:
        assert not absent
    every_name = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    assert every_name <= set(names) | absent


def test_names_in_files_are_those_that_transformers_uses(tmp_path):
    expected = {
        gpt_neox: ("lm_head.weight", "embed_out.weight"),
        gpt2: ("lm_head.weight", "transformer.wte.weight"),
        bert: (
            "cls.predictions.decoder.weight",
            "bert.embeddings.word_embeddings.weight",
        ),
    }
    for build, (name, stored) in expected.items():
        trajectory = Trajectory.from_folder(
            record(tmp_path / build.__name__, models_of(build))
        )
        assert trajectory.skeleton().file_names()[name] == stored


def test_weights_that_transformers_cannot_place_one_to_one_go_through_it(
    tmp_path, monkeypatch
):
    from ontogeny.trajectory.weights import building

    calls = []
    original = building.load_pretrained
    monkeypatch.setattr(
        building,
        "load_pretrained",
        lambda *a, **k: calls.append(a) or original(*a, **k),
    )
    for build, expected in ((mixtral, 3), (gpt_neox, 1)):
        models = models_of(build)
        skeleton = Trajectory.from_folder(
            record(tmp_path / build.__name__, models)
        ).skeleton()
        calls.clear()
        assert all(same(skeleton.load(step), models[step]) for step in models)
        assert len(calls) == expected


def test_missing_weights_raise_instead_of_being_initialised(tmp_path):
    record(tmp_path, models_of(eurobert))
    for step in (0, 2):
        file = tmp_path / f"checkpoint-{step}" / "model.safetensors"
        state = load_file(file)
        del state["model.layers.1.mlp.up_proj.weight"]
        save_file(state, file, metadata={"format": "pt"})
    trajectory = Trajectory.from_folder(tmp_path)
    message = r"newly initialised: model\.layers\.1\.mlp\.up_proj\.weight"
    with pytest.raises(CheckpointError, match=message):
        trajectory[0].model()
    with pytest.raises(CheckpointError, match=message):
        trajectory.skeleton().load(0)
    skeleton = trajectory.skeleton()
    skeleton.load(1)
    with pytest.raises(CheckpointError, match=message):
        skeleton.load(2)


def test_a_base_model_is_not_taken_for_the_model_with_a_head(tmp_path):
    models_of(bert)[0].bert.save_pretrained(tmp_path / "checkpoint-0")
    path = tmp_path / "checkpoint-0" / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "architectures": ["BertForMaskedLM"]}))
    with pytest.raises(CheckpointError, match=r"cls\.predictions\.bias.* \(5 of 6\)"):
        Trajectory.from_folder(tmp_path)[0].model()


def test_a_changed_configuration_or_shape_raises(tmp_path):
    record(tmp_path, models_of(eurobert))
    path = tmp_path / "checkpoint-2" / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "rms_norm_eps": 0.1}))
    skeleton = Trajectory.from_folder(tmp_path).skeleton()
    skeleton.load(0)
    with pytest.raises(
        CheckpointError, match=r"checkpoint-2 is another.*rms_norm_eps 1e-05 -> 0\.1"
    ):
        skeleton.load(2)
    path.write_text(
        json.dumps({**config, "transformers_version": "4.0", "use_cache": False})
    )
    skeleton.load(2)
    file = tmp_path / "checkpoint-1" / "model.safetensors"
    state = load_file(file)
    state["model.norm.weight"] = torch.ones(3)
    save_file(state, file, metadata={"format": "pt"})
    with pytest.raises(
        CheckpointError, match=r"model\.norm\.weight has shape \(3,\), .* \(16,\)"
    ):
        skeleton.load(1)
    with pytest.raises(
        CheckpointError, match=r"of another shape: .*model\.norm\.weight"
    ):
        Trajectory.from_folder(tmp_path)[1].model()


def test_tensors_that_the_model_does_not_use_are_said_in_the_log(tmp_path, caplog):
    record(tmp_path, models_of(gpt2))
    file = tmp_path / "checkpoint-0" / "model.safetensors"
    save_file(
        {**load_file(file), "value_head": torch.ones(2)},
        file,
        metadata={"format": "pt"},
    )
    model = Trajectory.from_folder(tmp_path)[0].model()
    assert same(model, models_of(gpt2)[0]) and "value_head" in caplog.text


def test_tied_tensors_that_differ_in_the_file_are_refused(tmp_path):
    record(tmp_path, models_of(Own))
    file = tmp_path / "checkpoint-1" / "model.safetensors"
    state = load_file(file)
    assert "head.weight" not in state
    save_file({**state, "head.weight": state["embed.weight"] + 1}, file)
    trajectory = Trajectory.from_folder(tmp_path, model=Own())
    with pytest.raises(
        CheckpointError, match=r"ties embed\.weight and head\.weight, but they differ"
    ):
        trajectory[1].model()
    save_file({**state, "head.weight": state["embed.weight"].clone()}, file)
    assert same(
        Trajectory.from_folder(tmp_path, model=Own())[1].model(), models_of(Own)[1]
    )
    damaged = state["embed.weight"].clone()
    damaged[0, 0] = torch.nan  # in both it is tied all the same, in one alone it is not
    save_file({**state, "embed.weight": damaged, "head.weight": damaged.clone()}, file)
    assert (
        Trajectory.from_folder(tmp_path, model=Own())[1]
        .model()
        .embed.weight[0, 0]
        .isnan()
    )
    save_file({**state, "head.weight": damaged}, file)
    with pytest.raises(CheckpointError, match=r"ties embed\.weight and head\.weight"):
        Trajectory.from_folder(tmp_path, model=Own())[1].model()


def test_not_a_number_in_weights_loads_and_stays(tmp_path):
    models = models_of(gpt_neox)
    with torch.no_grad():
        models[1].lm_head.weight[0, 0] = torch.nan
    skeleton = Trajectory.from_folder(record(tmp_path, models)).skeleton()
    assert skeleton.load(1).lm_head.weight[0, 0].isnan()
    assert "lm_head.weight" in skeleton.file_names()
    assert same(skeleton.load(2), models[2])


def test_dtype_is_kept_or_as_asked_and_never_loses_precision_silently(tmp_path):
    models = models_of(eurobert)
    exact = copy.deepcopy(models)
    models[0].bfloat16()
    models[
        1
    ].model.norm.double()  # config.json names the dtype of the first parameter only
    trajectory = Trajectory.from_folder(record(tmp_path, models))
    assert trajectory[0].model().dtype == torch.bfloat16
    assert trajectory[1].model().model.norm.weight.dtype == torch.float64
    assert trajectory[2].model(dtype=torch.float64).dtype == torch.float64
    skeleton = trajectory.skeleton()
    skeleton.load(0)
    with pytest.raises(
        CheckpointError, match=r"would lose precision; pass dtype=torch\.float32"
    ):
        skeleton.load(2)
    skeleton = trajectory.skeleton(dtype=torch.float32)
    assert skeleton.load(0).dtype == torch.float32
    assert same(skeleton.load(2), exact[2])
    with pytest.raises(ArgumentError, match="dtype must be a floating-point"):
        trajectory.skeleton(dtype="float32")


def test_a_given_model_takes_the_place_of_the_class_in_the_configuration(tmp_path):
    class Mine(transformers.MixtralForCausalLM):
        pass

    models = models_of(mixtral)
    record(tmp_path, models)
    trajectory = Trajectory.from_folder(tmp_path, model=lambda: Mine(mixtral().config))
    skeleton = trajectory.skeleton()
    assert type(skeleton.load(0)) is Mine and same(skeleton.load(2), models[2])
    body = Trajectory.from_folder(
        record(tmp_path / "neox", models_of(gpt_neox)), model=gpt_neox()
    )
    assert same(body.skeleton().load(1), models_of(gpt_neox)[1])


def test_fresh_models_share_nothing(tmp_path):
    given = Own()
    trajectory = Trajectory.from_folder(record(tmp_path, models_of(Own)), model=given)
    before = copy.deepcopy(given.state_dict())
    one, other = trajectory[1].model(), trajectory[1].model()
    with torch.no_grad():
        one.embed.weight.zero_()
    assert one.head.weight is one.embed.weight
    assert same(other, models_of(Own)[1])
    assert all(torch.equal(before[k], v) for k, v in given.state_dict().items())


def test_building_a_model_moves_nobodys_seed(tmp_path):
    trajectory = Trajectory.from_folder(record(tmp_path, models_of(Own)), model=Own)
    torch.manual_seed(0)
    expected = torch.rand(2)
    torch.manual_seed(0)
    trajectory[1].model()
    trajectory.skeleton().load(0)
    assert torch.equal(torch.rand(2), expected)


def test_transformers_stays_silent_and_keeps_its_switches(tmp_path, capfd):
    from transformers.utils import logging as switches

    bars, level = switches.is_progress_bar_enabled(), switches.get_verbosity()
    trajectory = Trajectory.from_folder(record(tmp_path, models_of(gpt2)))
    skeleton = trajectory.skeleton()
    for checkpoint in trajectory:
        skeleton.load(checkpoint)
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""
    assert (switches.is_progress_bar_enabled(), switches.get_verbosity()) == (
        bars,
        level,
    )
    assert logging.getLogger("ontogeny.trajectory").level == logging.NOTSET


def test_what_texts_are_generated_with_makes_no_other_model(tmp_path):
    models = models_of(eurobert)
    record(tmp_path, models)
    path = tmp_path / "checkpoint-0" / "config.json"
    config = json.loads(path.read_text())
    # The Trainer sets these when training begins: a model saved before has others.
    before = {"bos_token_id": 7, "eos_token_id": 8, "pad_token_id": None}
    path.write_text(json.dumps({**config, **before}))
    trajectory = Trajectory.from_folder(tmp_path)
    skeleton = trajectory.skeleton()
    assert same(skeleton.load(2), models[2]) and same(skeleton.load(0), models[0])
    assert any("eos_token_id" in finding.message for finding in trajectory.audit())
    path.write_text(json.dumps({**config, "pad_token_id": 5}))
    skeleton = Trajectory.from_folder(tmp_path).skeleton()
    skeleton.load(2)
    with pytest.raises(CheckpointError, match="pad_token_id"):
        skeleton.load(0)
