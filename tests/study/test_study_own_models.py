"""A study of one's own model gives what a bare loop over its checkpoints gives, or says why not."""

import copy
import json

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers import odd_models
from ontogeny.errors import ArgumentError
from ontogeny.study.folder.settings import Settings
from ontogeny.study.planning import guard as module
from ontogeny.study.planning.guard import Fallback, guard

STEPS = (0, 10, 20)
SCALES = {0: 1.0, 10: 1.0, 20: 3.0}
TEXTS = odd_models.texts_of((12, 5, 9, 12, 7, 12, 11, 12))


def write(folder, kind):
    """Write checkpoints of a class as a training loop does, and return its losses by hand."""
    truth, weights = {}, TEXTS.lengths - 1
    for step in STEPS:
        torch.manual_seed(step)
        scale = SCALES[step] if kind is odd_models.Scaled else 1.0
        settings = {"rope": {"scale": scale}, "learning_rate": 0.1 / (step + 1)}
        arguments = (settings,) if kind is odd_models.Scaled else ()
        model = kind(*arguments)
        state = {"model": model.train().state_dict(), "config": settings, "step": step}
        torch.save(state, folder / f"ckpt_{step}.pt")
        fresh = kind(*arguments)
        fresh.load_state_dict(model.state_dict())
        truth[step] = float(np.average(odd_models.nats(fresh, TEXTS), weights=weights))
    return truth


def study_of(folder, model, **options):
    run = og.Trajectory.from_folder(folder, model=model)
    return og.Study(
        run, TEXTS, [og.observables.Loss(objective="causal")], noise=0, **options
    )


def measured(result):
    loss = result["loss"]
    return dict(zip(loss.step.values.tolist(), loss.loss.values.tolist(), strict=True))


def notes(result):
    findings = json.loads(result.tree.attrs["findings"])
    return [f["message"] for f in findings if f["kind"] == "reading"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Plain", ""),
        ("PadsRight", ""),
        ("Computing", ""),
        ("Scaled", ""),
        ("WeightNorm", ""),
        (
            "Cached",
            "the model is built anew at every checkpoint: with the weights of ckpt_20.pt",
        ),
        ("Fused", "the model is built anew"),
        ("Crowded", "texts are read one by one, without padding"),
    ],
)
def test_a_study_gives_what_a_bare_loop_gives(tmp_path, name, said):
    kind = getattr(odd_models, name)
    truth = write(tmp_path, kind)
    study = study_of(tmp_path, kind)
    plan = study.plan()
    result = study.run(tmp_path / "study", progress=False)
    assert measured(result) == pytest.approx(truth, abs=1e-5)
    assert bool(said) == bool(notes(result)) and len(notes(result)) <= 1
    assert said in "".join(notes(result)) and set(notes(result)) <= set(plan.notes)


def test_which_checkpoint_a_process_reads_first_never_matters(tmp_path):
    truth = write(tmp_path, odd_models.Scaled)
    run = og.Trajectory.from_folder(tmp_path, model=odd_models.Scaled)
    for order in (STEPS, STEPS[::-1], (10, 20, 0)):
        skeleton = run.skeleton()
        for step in order:
            loss = np.average(
                odd_models.nats(skeleton.load(step), TEXTS), weights=TEXTS.lengths - 1
            )
            assert loss == pytest.approx(truth[step], abs=1e-6)


def test_cells_are_computed_anew_where_a_setting_changes_and_no_weight(tmp_path):
    write(tmp_path, odd_models.Scaled)
    before = measured(
        study_of(tmp_path, odd_models.Scaled).run(tmp_path / "study", progress=False)
    )
    state = torch.load(tmp_path / "ckpt_10.pt")
    state["config"]["rope"]["scale"] = 2.0
    torch.save(state, tmp_path / "ckpt_10.pt")
    after = measured(
        study_of(tmp_path, odd_models.Scaled).run(tmp_path / "study", progress=False)
    )
    assert after[10] != before[10] and (after[0], after[20]) == (before[0], before[20])


def test_a_changed_setting_that_nothing_takes_is_refused_with_both_values(tmp_path):
    write(tmp_path, odd_models.Scaled)

    def build():
        return odd_models.Scaled({"rope": {"scale": 1.0}})

    result = study_of(tmp_path, build).run(tmp_path / "study", progress=False)
    (problem,) = result.problems()
    assert problem.steps == (20,)
    assert (
        "ckpt_20.pt has other settings than ckpt_0.pt: rope.scale 1.0 -> 3.0"
        in problem.reason
    )
    assert "learning_rate" not in problem.reason


def test_where_the_last_checkpoint_cannot_be_read_the_one_before_is_tried(tmp_path):
    truth = write(tmp_path, odd_models.Cached)
    whole = (tmp_path / "ckpt_20.pt").read_bytes()
    (tmp_path / "ckpt_20.pt").write_bytes(whole[:-200])
    study = study_of(tmp_path, odd_models.Cached)
    (tmp_path / "ckpt_20.pt").write_bytes(whole[:-200])
    result = study.run(tmp_path / "study", progress=False)
    assert measured(result)[10] == pytest.approx(truth[10], abs=1e-5) and notes(result)


@pytest.mark.parametrize("kind", ["module", "memory"])
def test_modules_in_memory_are_tried_too(tmp_path, kind):
    truth = write(tmp_path, odd_models.Cached)
    if kind == "module":
        study = study_of(tmp_path, odd_models.Cached())
    else:
        models = {}
        for step in STEPS:
            models[step] = odd_models.Cached()
            models[step].load_state_dict(
                torch.load(tmp_path / f"ckpt_{step}.pt")["model"]
            )
        run = og.Trajectory.from_models(models)
        study = og.Study(run, TEXTS, [og.observables.Loss(objective="causal")], noise=0)
    result = study.run(tmp_path / "study", progress=False)
    assert measured(result) == pytest.approx(truth, abs=1e-5) and notes(result)


def halved(_module, _args, output):
    return output / 2


@pytest.mark.parametrize("kind", ["attribute", "list", "tensor", "buffer", "hook"])
def test_modules_in_memory_differ_in_more_than_weights(tmp_path, kind):
    models, truth = {}, {}
    for step, scale in zip(STEPS, (1.0, 3.0, 1.0), strict=True):  # both ends are alike
        torch.manual_seed(step)
        models[step] = odd_models.Unsaved(kind)
        models[step].put(scale, halved)
        fresh = copy.deepcopy(models[step])
        losses = odd_models.nats(fresh, TEXTS)
        truth[step] = float(np.average(losses, weights=TEXTS.lengths - 1))
    study = og.Study(
        og.Trajectory.from_models(models),
        TEXTS,
        [og.observables.Loss(objective="causal")],
        noise=0,
    )
    assert measured(study.run(tmp_path / "study", progress=False)) == pytest.approx(
        truth, abs=1e-5
    )


def test_what_is_not_in_the_checkpoint_is_refused_with_both_numbers(tmp_path):
    write(tmp_path, odd_models.Unstored)
    study = study_of(tmp_path, odd_models.Unstored)
    said = r"two models built of ckpt_0.pt give \d\.\d+ and \d\.\d+ nats per token .* not in the"
    with pytest.raises(ArgumentError, match=said):
        study.run(tmp_path / "study", progress=False)


def test_a_study_may_ask_for_a_new_model_at_every_checkpoint(tmp_path):
    truth = write(tmp_path, odd_models.Cached)
    study = study_of(tmp_path, odd_models.Cached, weights="rebuilt")
    result = study.run(tmp_path / "study", progress=False)
    assert measured(result) == pytest.approx(truth, abs=1e-5)


@pytest.mark.parametrize("weights", ["loaded", "streamed"])
@pytest.mark.parametrize("count", [8, 60])
def test_a_sound_model_is_tried_in_few_passes(tmp_path, monkeypatch, weights, count):
    write(tmp_path, odd_models.Plain)
    run = og.Trajectory.from_folder(tmp_path, model=odd_models.Plain)
    texts = odd_models.texts_of((40, 30, 20, 35) * (count // 4))
    needs = og.observables.Loss(objective="causal").needs()
    tokens = []
    forward = odd_models.Plain.forward

    def counted(self, ids):
        tokens.append(ids.numel())
        return forward(self, ids)

    monkeypatch.setattr(module, "look_at", lambda *_: None)
    monkeypatch.setattr(odd_models.Plain, "forward", counted)
    monkeypatch.setattr(module.capture.reading, "look_at", lambda *_: None)
    monkeypatch.setattr("ontogeny.capture.predicted.check_causal", lambda *_: None)
    settings = Settings(20, (), weights=weights, dtype="float32", positions="model")
    assert guard(run, {"text": texts}, needs, settings) == Fallback()
    length = max(tokens) // 3
    assert sum(tokens) <= 12 * length and length <= 32
    assert sum(tokens) <= texts.mask.sum()


def test_models_that_the_library_builds_are_not_tried(tmp_path):
    from helpers.study_examples import tiny_model

    for step in (0, 5):
        tiny_model().save_pretrained(tmp_path / f"checkpoint-{step}")
    run = og.Trajectory.from_folder(tmp_path)
    assert not any(map(module.is_tried, run))
    assert all(map(module.is_tried, og.Trajectory.from_models({0: tiny_model()})))


def test_ways_of_reading_are_joined_and_said_once():
    alone = Fallback(batch_size=1, notes=("alone",))
    anew = Fallback(weights="rebuilt", notes=("anew",))
    both = alone.joined(anew).joined(Fallback(batch_size=1, notes=("alone again",)))
    assert both == Fallback(1, "rebuilt", ("alone", "anew"))
    settings = both.of(Settings(0, (), batch_size=8))
    assert (settings.batch_size, settings.weights) == (1, "rebuilt")
