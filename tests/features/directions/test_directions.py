"""Directions of one's own: planted ones are dated, controls are not, numbers are those of loops."""

import copy
import re

import numpy as np
import pytest
import torch
import xarray as xr
from safetensors.numpy import save_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

import ontogeny as og
from helpers import planted_direction as planted
from ontogeny.arrays import to_numpy
from ontogeny.capture import activations
from ontogeny.capture.gradients import gradients
from ontogeny.errors import ArgumentError
from ontogeny.features.directions.brought import brought
from ontogeny.features.directions.effect_claims import claims_of_effects
from ontogeny.features.directions.measured import (
    Rows,
    aucs,
    cosines,
    fitted,
    placements,
    shares,
)
from ontogeny.features.directions.removed import Effects, loss_at
from ontogeny.needs import Gradients
from ontogeny.observables import Directions
from ontogeny.observables.random_directions import p_beyond, random_directions
from ontogeny.study.file import _observable as observable_of
from ontogeny.units import Units

RNG = np.random.default_rng(0)


def studied(folder, trajectory=None, **options):
    arguments = {"layer": "out", "objective": "causal", "n_draws": 4} | options
    observable = Directions({"mark": planted.direction()}, **arguments)
    study = og.Study(
        trajectory or planted.run(),
        planted.texts(),
        [observable],
        device="cpu",
        noise=3,
        control_runs={"nothing": planted.run(born=999)},
    )
    return study.run(folder)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return studied(tmp_path_factory.mktemp("directions") / "s")


def claim_of(result, kind):
    table = result.claims()
    (row,) = [row for row in table.to_dict("records") if row["kind"] == kind]
    return row


def test_a_planted_direction_is_dated_to_its_checkpoint(result):
    assert not len(result.problems()), result.problems()
    read = claim_of(result, "readable")
    assert read["certainty"] == "sure" and read["label"] == "mark"
    assert (read["since_low"], read["since"]) == (30, planted.BORN)
    needed = claim_of(result, "needed")
    assert needed["certainty"] == "sure" and needed["since"] >= planted.BORN


def test_a_run_that_never_writes_it_claims_nothing(tmp_path):
    result = studied(tmp_path / "s", planted.run(born=999), effects=False)
    assert claim_of(result, "readable")["certainty"] == "open"


def test_numbers_are_those_of_a_plain_loop(result):
    data = result["directions"].to_dataset().sel(layer="out", direction="mark")
    inputs = planted.texts()
    unit = planted.direction() / np.linalg.norm(planted.direction())
    for step in (0, 70):
        model = planted.run()[step].model()
        seen = []
        handle = model.out.register_forward_hook(
            lambda *a, seen=seen: seen.append(a[2])
        )
        with torch.no_grad():
            loss = model(torch.tensor(inputs.ids)).log_softmax(-1)
        handle.remove()
        A = seen[0].flatten(0, 1).double().numpy()
        A -= A.mean(axis=0)
        at = data.sel(step=step)
        share = ((A @ unit) ** 2).sum() / (A**2).sum()
        assert float(at.share) == pytest.approx(share, rel=1e-4)
        y = np.repeat(inputs.labels, planted.LENGTH)
        assert float(at.auc) == pytest.approx(roc_auc_score(y, A @ unit), rel=1e-5)
        means = A[y == 1].mean(0) - A[y == 0].mean(0)
        cosine = means @ unit / np.linalg.norm(means)
        assert float(at.cosine.sel(fitted="means")) == pytest.approx(cosine, rel=1e-3)
        hidden = seen[0] - torch.from_numpy((A @ unit)[:, None] * unit).float().reshape(
            seen[0].shape
        )
        target = torch.tensor(inputs.ids[:, 1:])[..., None]
        with torch.no_grad():
            without = model.head(hidden).log_softmax(-1)
        costs = [-v[:, :-1].gather(2, target).mean().item() for v in (loss, without)]
        assert float(at.removed) == pytest.approx(costs[1] - costs[0], rel=1e-3)


def test_a_direction_that_is_drawn_costs_what_that_draw_costs():
    run = planted.run()
    model, inputs = run[run.steps[-1]].model(), planted.texts()
    reading = gradients(model, Gradients("next-token"), {"text": inputs})
    at, rows = loss_at(reading, inputs.sample("all", None, 0), "causal", 0)
    values = activations(model, inputs, "out", max_tokens=None)["out"]
    A = to_numpy(values)[rows].astype(np.float64)
    effects = Effects("out", at, A, 0.5)
    (unit, *_) = random_directions(A - A.mean(axis=0), 3, [7, 9])
    found = effects.of(unit[None], 3, seed=7)
    drawn = found["removed"].nulls["random"][1]
    assert drawn[0, 0] == pytest.approx(found["removed"].value[1][0], rel=1e-5)


def test_an_addition_that_helps_moves_the_loss_as_one_that_hurts():
    texts, steps = np.arange(60) % 3 / 30, np.array([0, 10])
    draws = 0.1 * RNG.normal(size=(2, 1, 1, 4))
    for sign in (1, -1):
        units = Units(np.arange(60))
        others = draws[0, 0, 0][:, None] + texts
        p = p_beyond(sign * 5 + texts, others, np.ones(60), units)
        dims = ("step", "layer", "direction")
        values = {
            "added": (dims, np.full((2, 1, 1), sign * 5.0)),
            "added_random": ((*dims, "draw"), draws),
            "added_p_single": (dims, np.full((2, 1, 1), p)),
        }
        labels = {"step": steps, "layer": ["h"], "direction": ["mark"]}
        (claim,) = claims_of_effects("d", xr.Dataset(values, labels))
        assert claim.certainty == "sure" and claim.last == 5 * sign
        nearest = max(sign * draws[-1].ravel()) * sign
        assert claim.beside[0].value == pytest.approx(nearest)


def test_of_one_text_all_but_what_halves_say_is_measured(tmp_path):
    study = og.Study(
        planted.run(),
        og.Inputs.from_tokens(planted.texts().ids[:1]),
        [Directions({"mark": planted.direction()}, layer="out", effects=False)],
        device="cpu",
    )
    result = study.run(tmp_path / "s")
    assert not len(result.problems()), result.problems()
    data = result["directions"].to_dataset()
    assert np.isfinite(data.cosine).all() and "cosine_halves" not in data


def test_without_labels_the_share_is_claimed_and_the_read_out_compared(tmp_path):
    inputs = planted.texts()
    bare = og.Inputs.from_tokens(inputs.ids, vocab_size=planted.VOCABULARY)
    file = tmp_path / "mark.npy"
    np.save(file, planted.direction())
    observable = Directions(str(file), layer="out", effects=False)
    trajectory = planted.run(strength=12.0)
    result = og.Study(trajectory, bare, [observable], device="cpu").run(tmp_path / "s")
    data = result["directions"].to_dataset().sel(layer="out", direction="mark")
    assert "auc" not in data and float(data.agreement[-1]) == pytest.approx(1.0)
    assert (data.agreement[:4] < 0.3).all() and (data.agreement[4:] > 0.8).all()
    read = claim_of(result, "readable")
    assert read["certainty"] == "sure" and read["since"] == planted.BORN


def test_weighted_placements_give_the_auc_and_delongs_error():
    labels = RNG.random(400) < 0.3
    scores = RNG.normal(size=400) + labels
    auc, of_row, weights = placements(scores, labels)
    assert auc == pytest.approx(roc_auc_score(labels, scores))
    rows = Rows.of(np.stack([scores, RNG.normal(size=400)], axis=1), np.arange(400))
    value = aucs(rows, np.eye(2)[:1], np.ones((1, 2)), labels[None])
    assert value.value[1] == pytest.approx(auc)
    other = roc_auc_score(labels, rows.A[:, 1])
    assert value.nulls["random"][1] == pytest.approx(other)  # without the direction
    drawn = []
    for _ in range(400):
        y = RNG.random(400) < 0.3
        drawn.append(roc_auc_score(y, RNG.normal(size=400) + y))
    error = np.sqrt((((of_row - auc) * weights) ** 2).sum())
    assert error == pytest.approx(np.std(drawn), rel=0.15)


def test_shares_of_an_orthonormal_basis_add_up():
    rows = Rows.of(RNG.normal(size=(50, 6)), np.arange(50) // 5)
    value = shares(rows, np.eye(6), np.eye(6))
    assert value.value[1].sum() == pytest.approx(1.0)
    weighted = (value.of_text[1] * value.weights[1]).sum(1) / value.weights[1].sum()
    assert weighted == pytest.approx(value.value[1])


def test_the_regression_of_a_reference_code_is_the_direction():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(500, 5)) @ (np.eye(5) + 0.2 * rng.normal(size=(5, 5)))
    direction = np.array([[1.0, 0, 0, 0, 0]])
    means, regression = fitted(A, (A @ direction.T).T)
    assert regression[0] @ direction[0] == pytest.approx(1.0, abs=0.01)
    assert means[0] @ direction[0] < 0.999


def test_halves_of_texts_whose_labels_take_turns_both_hold_both():
    unit = np.eye(5)[:1]
    label = np.arange(80) % 2 == 0
    A = RNG.normal(size=(80, 5)) + 4 * label[:, None] * unit
    found = cosines(Rows.of(A, np.arange(80)), unit, label[None].astype(float))
    assert (found["cosine_halves"][1] > 0.8).all()


def test_every_form_gives_the_same_directions(tmp_path):
    table = RNG.normal(size=(2, 5))
    np.savez(tmp_path / "a.npz", one=table[0], two=table[1])
    save_file({"one": table[0], "two": table[1]}, tmp_path / "a.safetensors")
    np.save(tmp_path / "a.npy", table)
    named = {"one": table[0], "two": torch.from_numpy(table[1])}
    for value in (str(tmp_path / "a.npz"), tmp_path / "a.safetensors", named):
        assert brought(value).names == ("one", "two")
        assert brought(value).vectors == pytest.approx(table, rel=1e-6)
    assert brought([str(tmp_path / "a.npy")]).names == ("a 0", "a 1")
    assert brought(table).vectors == pytest.approx(table)
    assert brought(named).digest == brought(str(tmp_path / "a.npz")).digest


def test_a_classifier_gives_its_coefficients():
    X, y = RNG.normal(size=(60, 4)), np.arange(60) % 3
    two = LogisticRegression().fit(X, np.where(y == 1, "yes", "no"))
    assert brought(two).names == ("yes",)
    assert brought(two).vectors == pytest.approx(two.coef_)
    three = LogisticRegression().fit(X, y)
    assert brought(three).names == ("0", "1", "2")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros(4), "must not be 0 everywhere; 'direction' is"),
        ([1.0, float("nan")], "must be finite; 'direction' holds NaN"),
        (np.ones((2, 2, 2)), "must have shape (m,) or (r, m)"),
        ({"a": np.ones(3), "b": np.ones(4)}, "3 of 'a', 4 of 'b'"),
        ({}, "must name at least one array"),
        ("nowhere.npy", "there is no file 'nowhere.npy'"),
        ("probe.pkl", "must end in .npy, .npz, .safetensors; got 'probe.pkl'"),
        (object(), "directions must be text or Path or a table"),
    ],
)
def test_what_is_no_direction_is_refused_in_one_line(value, message):
    with pytest.raises(ArgumentError, match=re.escape(message)) as refused:
        Directions(value, layer="out")
    assert "\n" not in str(refused.value)


def test_a_damaged_file_and_another_width_are_refused_before_the_start(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"PK not a file")
    with pytest.raises(ArgumentError, match="holds no arrays"):
        Directions(str(tmp_path / "a.npz"), layer="out")
    observable = Directions(np.ones(7), layer="out", effects=False)
    study = og.Study(planted.run(), planted.texts(), [observable], device="cpu")
    with pytest.raises(ArgumentError, match="has 7 features, and 'out' gives 48"):
        study.run(tmp_path / "s")


def test_labels_of_three_kinds_must_be_names_of_directions():
    inputs = og.Inputs.from_tokens([[1, 2]] * 3, labels=["a", "b", "c"])
    with pytest.raises(ArgumentError, match="labels must be of two kinds"):
        Directions(np.ones(4), layer="out").check_inputs({"text": inputs})
    named = {name: np.ones(4) for name in "ab"}
    Directions(named, layer="out").check_inputs({"text": inputs})


def test_a_file_that_moves_leaves_cells_and_one_that_changes_makes_them_anew(tmp_path):
    paths = [tmp_path / "a" / "d.npy", tmp_path / "b" / "d.npy"]
    for path in paths:
        path.parent.mkdir()
        np.save(path, planted.direction())
    one, other = (Directions(str(path), layer="out").arguments() for path in paths)
    assert one == other
    np.save(paths[0], 2 * copy.copy(planted.direction()))
    assert Directions(str(paths[0]), layer="out").arguments() != other


def test_a_study_file_names_files_that_lie_beside_it(tmp_path):
    np.save(tmp_path / "mark.npy", planted.direction())
    entry = {"kind": "directions", "directions": "mark.npy", "layer": "out"}
    made = observable_of(entry, tmp_path)
    assert made.names_brought == ("mark",) and made.stem == "mark"
