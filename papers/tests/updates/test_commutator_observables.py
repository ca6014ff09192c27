"""Commutators and projections as observables of a study."""

import copy
import functools
import json

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

import ontogeny as og
from helpers.study_examples import developing, tiny_inputs, tiny_model
from ontogeny import geometry, needs, updates
from ontogeny.capture.gradients import gradients as capture_gradients
from ontogeny.errors import ArgumentError
from ontogeny.observables.matrices import parameter_blocks
from ontogeny_papers.observables.projection import BASES, SETTINGS, block_values

STEPS = (0, 1, 2, 4, 8, 16)
SMALL = {"pairs": 3, "batch_size": 4, "lr": 1e-3}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    models = developing(STEPS)
    observables = [
        og.observables.Commutators(**SMALL),
        og.observables.Projection(k=2, **SMALL),
    ]
    built = og.Study(
        og.Trajectory.from_models(models), tiny_inputs(), observables, device="cpu"
    )
    folder = tmp_path_factory.mktemp("commutators") / "s"
    tree = built.run(folder)
    assert json.loads(tree.attrs["problems"]) == []
    return built, folder, tree, models


def node(study, name):
    data = study[2][name].to_dataset()
    assert "failed" not in data.attrs, data.attrs
    return data


@functools.cache
def pairs_by_hand(model):
    gradients = capture_gradients(model, needs.Gradients(), {"text": tiny_inputs()})
    batches = gradients.draw(6, 4, 0)
    return list(updates.commutators(model, gradients.loss, batches, 1e-3))


def test_every_pair_is_that_of_the_function(study):
    data = node(study, "commutators")
    for step in (0, 8):
        found = pairs_by_hand(study[3][step])
        at = data.sel(step=step)
        np.testing.assert_allclose(at.norm, [f.norm for f in found], rtol=1e-6)
        np.testing.assert_allclose(at.defect, [f.defect for f in found], rtol=1e-6)
        np.testing.assert_allclose(at.cosine, [f.cosine for f in found], rtol=1e-6)
        median = float(at.defect_over_pairs.sel(statistic="median"))
        assert median == pytest.approx(np.median([f.defect for f in found]), rel=1e-6)
        assert at.defect_over_pairs_low.sel(statistic="median") <= median
        assert median <= at.defect_over_pairs_high.sel(statistic="median")


def test_a_projection_reports_the_same_commutators(study):
    first, second = node(study, "commutators"), node(study, "projection")
    for name in ("norm", "defect", "cosine", "gradient_norm"):
        np.testing.assert_array_equal(first[name], second[name])


def flat(vector):
    return torch.cat([t.flatten() for t in vector.values()]).numpy()


@pytest.mark.parametrize(("basis", "last"), [(0, 5), (1, len(STEPS))])
def test_shares_are_those_of_the_explicit_projector(study, basis, last):
    models, data = study[3], node(study, "projection").sel(step=8)
    found = pairs_by_hand(models[8])[0]
    names = [n for n in found.delta if "self_attn" in n]
    inside = within = 0.0
    for name in names:
        path = np.stack(
            [dict(m.named_parameters())[name].detach().numpy() for m in models.values()]
        )
        Q = geometry.principal_basis(path[:last], k=2)
        inside += float(np.sum((found.delta[name].numpy().ravel() @ Q) ** 2))
        within += float(found.delta[name].square().sum())
    rho = data.rho.sel(vector="commutator", pair=0)
    whole = float(np.sum(flat(found.delta) ** 2))
    assert float(rho.sel(setting=SETTINGS[2 * basis])) == pytest.approx(
        np.sqrt(inside / whole)
    )
    attention = float(rho.sel(setting=SETTINGS[2 * basis + 1]))
    assert attention == pytest.approx(np.sqrt(inside / within))


def test_only_coordinates_with_a_gradient_are_counted(study):
    data = node(study, "projection").sel(step=4)
    moves = np.zeros(len(flat(pairs_by_hand(study[3][4])[0].delta)), dtype=bool)
    for found in pairs_by_hand(study[3][4]):
        moves |= (flat(found.gradient_a) != 0) | (flat(found.gradient_b) != 0)
    # Tokens that no batch holds.
    assert int(data.moving.sum()) == moves.sum() < len(moves)
    k = int(data.dimension.sel(basis=BASES[1]).sum())
    expected = np.sqrt(k / moves.sum())
    assert float(data.control.sel(setting=SETTINGS[2])) == pytest.approx(expected)


def test_the_last_prefix_is_the_whole_run_and_the_first_step_has_none(study):
    data = node(study, "projection")
    last = data.rho.isel(step=-1)
    np.testing.assert_allclose(
        last.sel(setting=SETTINGS[0]), last.sel(setting=SETTINGS[2]), rtol=1e-9
    )
    first = data.rho.isel(step=0)
    assert np.isnan(first.sel(setting=SETTINGS[0])).all()
    assert np.isfinite(first.sel(setting=SETTINGS[2])).all()
    assert np.isfinite(data.rho.isel(step=slice(1, None))).all()


def test_figures_rows_and_sentences_are_there(study):
    for name, figures in (("commutators", 4), ("projection", 7)):
        data = node(study, name)
        assert len(json.loads(data.attrs["figures"])) == figures
        assert data.attrs["role"] == "motion" and data.sizes["row"] == 1
        assert any(
            "median defect of 3 pairs" in s
            for s in json.loads(data.attrs["statements"])
        )
    said = " ".join(json.loads(node(study, "projection").attrs["statements"]))
    assert "2 principal directions per block" in said and "plain gradient" in said


def test_the_study_resumes_and_knows_what_its_state_looked_at(study):
    built, folder, _, models = study
    assert built.plan(folder).to_do == 0
    changed = {step: copy.deepcopy(model) for step, model in models.items()}
    with torch.no_grad():
        changed[2].model.layers[0].self_attn.q_proj.weight.mul_(1.5)
    other = og.Study(
        og.Trajectory.from_models(changed),
        tiny_inputs(),
        built.observables,
        device="cpu",
    )
    entries = [e for e in other.plan(folder).entries if e.to_do]
    assert [e.key for e in entries if e.node == "commutators"] == [2]
    assert len([e for e in entries if e.node == "projection"]) == len(STEPS)


def said_of(observable, steps, tmp_path, texts=24):
    models = developing(STEPS)
    trajectory = og.Trajectory.from_models({step: models[step] for step in steps})
    built = og.Study(trajectory, tiny_inputs(texts), [observable], device="cpu")
    data = built.run(tmp_path / "s")[observable.name].to_dataset()
    assert "failed" not in data.attrs, data.attrs
    return data, " ".join(json.loads(data.attrs["statements"]))


def test_few_pairs_carry_no_verdict(tmp_path):
    single = og.observables.Projection(k=2, pairs=1, batch_size=4)
    data, said = said_of(single, STEPS, tmp_path)
    assert (
        "no 95 % interval" in said and "95 %):" not in said and "of one pair is" in said
    )
    assert not data.distinct.any() and not data.changed.any()


def test_enough_pairs_carry_one_and_say_that_they_share_texts(tmp_path):
    observable = og.observables.Projection(k=2, pairs=6, batch_size=4)
    _, said = said_of(observable, (0, 4, 16), tmp_path)
    assert "(95 %):" in said and "no 95 % interval" not in said
    assert "Pairs share texts (48 drawn of 24)" in said


def test_one_step_has_commutators_but_no_directions(tmp_path):
    data, said = said_of(
        og.observables.Projection(k=2, pairs=6, batch_size=2), (4,), tmp_path
    )
    assert np.isnan(data.rho).all() and np.isfinite(data.defect).all()
    assert (
        "principal directions" not in said
        and "median defect" in said
        and "share" not in said
    )


def test_batches_of_more_than_half_of_the_texts_are_refused(tmp_path):
    observable = og.observables.Commutators(batch_size=13)
    built = og.Study(
        og.Trajectory.from_models(developing((0, 1))),
        tiny_inputs(),
        [observable],
        device="cpu",
    )
    tree = built.run(tmp_path / "s")
    assert "needs 26 texts for a pair" in tree.attrs["problems"]


def test_the_report_draws_them(study, tmp_path):
    page = (
        og.report.write(study[2], tmp_path / "r.html")
        if hasattr(og.report, "write")
        else None
    )
    og.open_study(study[1]).report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "cannot be drawn" not in text and "Normalised defect" in text
    assert page is None or page


@pytest.mark.parametrize(
    "arguments",
    [{"lr": 0}, {"pairs": 0}, {"batch_size": 1.5}, {"method": "x"}, {"dtype": "half"}],
)
def test_bad_arguments_are_refused(arguments):
    with pytest.raises(ArgumentError):
        og.observables.Commutators(**arguments)
    with pytest.raises(ArgumentError):
        og.observables.Projection(k=0)


def test_parts_of_a_fused_matrix_are_blocks_of_parameters_and_of_gradients():
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=11, n_embd=8, n_head=2, n_layer=1, bos_token_id=1, eos_token_id=1
    )
    model = GPT2LMHeadModel(config).eval()
    blocks = parameter_blocks(model, ("q", "k", "v", "o"))
    parameters = dict(model.named_parameters())
    fused = parameters["transformer.h.0.attn.c_attn.weight"].detach()
    for part, name in enumerate("qkv"):
        block = blocks[f"transformer.h.0.attn.c_attn.weight#{name}"]
        values = block_values(block, parameters)
        assert torch.equal(values, fused[:, 8 * part : 8 * part + 8].reshape(-1))


def test_a_frozen_block_holds_nothing_of_an_update(tmp_path):
    models = {step: tiny_model(step) for step in (0, 1, 2)}
    for model in models.values():
        model.model.layers[0].self_attn.requires_grad_(False)
    observable = og.observables.Projection(k=1, **SMALL)
    gradients = capture_gradients(
        models[0], observable.needs()[0], {"text": tiny_inputs()}
    )

    class Given:
        step = 0

        def __getitem__(self, need):
            return gradients

        steps = np.array([0])

        def reading(self, step):
            return self

    found = observable.observe(Given(), two_snapshots(observable, models))
    frozen = [
        p for p in found.part.values if str(p).startswith("model.layers.0.self_attn")
    ]
    assert len(frozen) == 4
    assert float(found.energy.sel(part=frozen).sum()) == 0
    assert int(found.moving.sel(part=frozen).sum()) == 0


def test_more_snapshots_than_can_be_kept_are_refused(monkeypatch):
    monkeypatch.setattr("ontogeny_papers.observables.projection._LARGEST", 1000)
    models = {step: tiny_model(step) for step in (0, 1)}
    with pytest.raises(ArgumentError, match="choose fewer blocks= or steps"):
        two_snapshots(og.observables.Projection(k=1, **SMALL), models)


def two_snapshots(observable, models):
    class Run:
        steps = np.array(list(models))

        def reading(self, step):
            gradients = capture_gradients(
                models[step], observable.needs()[0], {"text": tiny_inputs()}
            )
            return {observable.needs()[0]: gradients}

    return observable.prepare(Run())


def test_a_named_loss_reaches_models_that_classify(tmp_path):
    class Classifier(nn.Module):
        def __init__(self, seed):
            super().__init__()
            torch.manual_seed(seed)
            self.table, self.head = nn.Embedding(9, 6), nn.Linear(6, 3)

        def forward(self, input_ids):
            return self.head(torch.tanh(self.table(input_ids).mean(1)))

    rng = np.random.default_rng(0)
    inputs = og.Inputs.from_tokens(
        rng.integers(0, 9, (24, 5)), labels=rng.integers(0, 3, 24)
    )
    trajectory = og.Trajectory.from_models({s: Classifier(s) for s in (0, 10, 20)})
    observable = og.observables.Projection(
        "classification", blocks="head.weight", k=1, pairs=2, batch_size=6
    )
    tree = og.Study(trajectory, inputs, [observable], device="cpu").run(tmp_path / "s")
    data = tree["projection"].to_dataset()
    assert set(data.status.values) == {"done"} and np.isfinite(data.defect).all()
    xr.testing.assert_allclose(
        data.rho.sel(setting=SETTINGS[0], step=20, drop=True),
        data.rho.sel(setting=SETTINGS[2], step=20, drop=True),
    )
