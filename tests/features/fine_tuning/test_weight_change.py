"""What a further training changed in weights: closed forms, planted changes, and the sentences."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

import ontogeny as og
from helpers.control_runs import record
from helpers.counted_opens import counted_opens
from helpers.said import said_of
from ontogeny.errors import ArgumentError, NonFiniteError
from ontogeny.features.fine_tuning import weight_change
from ontogeny.geometry import effective_rank, intruder_dimensions, share_in_leading
from ontogeny.study.cells import block_cells
from ontogeny.study.cells.environment import environment
from ontogeny.study.running import run

RNG = np.random.default_rng(0)


def orthogonal(size, rng=RNG):
    return np.linalg.qr(rng.normal(size=(size, size)))[0]


def base_of(rows, columns, rng=RNG):
    """A matrix whose singular values fall, so that its directions are well defined."""
    short = min(rows, columns)
    left, right = orthogonal(rows, rng)[:, :short], orthogonal(columns, rng)[:, :short]
    return left @ np.diag(np.geomspace(10, 1, short)) @ right.T, left, right


@pytest.mark.parametrize("shape", [(12, 20), (20, 12), (12, 12)])
def test_a_change_along_one_direction_of_the_base_lies_where_that_direction_is(shape):
    matrix, left, right = base_of(*shape)
    other = RNG.normal(size=shape)
    first, last = np.outer(left[:, 0], right[:, 0]), np.outer(left[:, -1], right[:, -1])
    share, k = share_in_leading(matrix, first)
    assert share == pytest.approx(1) and 1 <= k < 12
    # Directions are known to eps times the norm over their gaps, some 1e-14; shares are squares.
    assert share_in_leading(matrix, last)[0] == pytest.approx(0, abs=1e-9)
    assert share_in_leading(matrix, other, held=1.0)[0] == pytest.approx(1)
    assert np.isnan(share_in_leading(matrix, np.zeros(shape))[0])


def test_a_random_change_holds_the_share_of_the_directions_on_average():
    matrix, *_ = base_of(30, 40)
    shares = [share_in_leading(matrix, RNG.normal(size=(30, 40))) for _ in range(200)]
    k = shares[0][1]
    assert np.mean([share for share, _ in shares]) == pytest.approx(k / 30, abs=0.005)


@pytest.mark.parametrize("shape", [(40, 60), (60, 40)])
def test_planted_directions_are_intruders_and_the_base_has_none(shape):
    matrix, *_ = base_of(*shape)
    assert intruder_dimensions(matrix, matrix) == 0
    assert intruder_dimensions(matrix, 1.7 * matrix) == 0
    planted = sum(
        50 * np.outer(u / np.linalg.norm(u), v / np.linalg.norm(v))
        for u, v in (
            (RNG.normal(size=shape[0]), RNG.normal(size=shape[1])) for _ in range(3)
        )
    )
    assert intruder_dimensions(matrix, matrix + planted, 3, 0.7) == 3


def test_intruders_are_those_of_a_plain_singular_value_decomposition():
    matrix, *_ = base_of(15, 25)
    tuned = matrix + RNG.normal(size=(15, 25))
    before, after = np.linalg.svd(matrix)[0], np.linalg.svd(tuned)[0]
    for n_leading, threshold in ((3, 0.9), (10, 0.7), (15, 0.5)):
        cosines = np.abs(before.T @ after[:, :n_leading]).max(axis=0)
        expected = int((cosines < threshold).sum())
        assert intruder_dimensions(matrix, tuned, n_leading, threshold) == expected


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: share_in_leading(np.eye(3), np.eye(4)), ArgumentError, "one shape"),
        (lambda: share_in_leading(np.eye(3), np.eye(3), 0), ArgumentError, "held"),
        (
            lambda: intruder_dimensions(np.eye(3), np.eye(3), 0),
            ArgumentError,
            "n_leading",
        ),
        (
            lambda: intruder_dimensions(np.eye(3), np.nan * np.eye(3)),
            NonFiniteError,
            "NaN",
        ),
    ],
)
def test_what_is_no_pair_of_matrices_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


class Tuned(nn.Module):
    """Two layers of three matrices: one frozen, one scaled, one with a change of rank 2."""

    def __init__(self, matrices, step):
        super().__init__()
        self.layers = nn.ModuleList()
        for frozen, scaled, adapted, change in matrices:
            layer = nn.Module()
            weights = {
                "frozen": frozen,
                "scaled": frozen * 0 + scaled * (1 + 0.1 * step),
                "adapted": adapted + 0.5 * step * change,
            }
            for name, weight in weights.items():
                linear = nn.Linear(*weight.shape[::-1], bias=False)
                linear.weight = nn.Parameter(torch.tensor(weight, dtype=torch.float32))
                setattr(layer, name, linear)
            self.layers.append(layer)

    def forward(self, input_ids):
        one_hot = torch.nn.functional.one_hot(input_ids % 16, 16).float()
        return self.layers[0].frozen(one_hot)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    rng = np.random.default_rng(1)
    matrices = []
    for _ in range(2):
        change = rng.normal(size=(16, 2)) @ rng.normal(size=(2, 16))
        matrices.append([base_of(16, 16, rng)[0] for _ in range(3)] + [change])
    models = {step: Tuned(matrices, step) for step in range(4)}
    study = og.Study(
        og.Trajectory.from_models(models),
        og.Inputs.from_tokens([[1, 2, 3]]),
        [og.observables.WeightChange()],
        device="cpu",
    )
    result = study.run(tmp_path_factory.mktemp("change") / "s")
    assert not len(result.problems())
    return result["weight-change"].to_dataset(), matrices, result


def test_planted_changes_have_their_size_rank_and_place(tree):
    data, matrices, _ = tree
    frozen = data.sel(block=["layers.0.frozen.weight", "layers.1.frozen.weight"])
    assert (frozen.distance_moved == 0).all() and (frozen.intruders == 0).all()
    np.testing.assert_allclose(
        data.relative_change.sel(kind="scaled"), [0, 0.1, 0.2, 0.3], rtol=1e-5
    )
    adapted = data.sel(block="layers.0.adapted.weight")
    change = matrices[0][3]
    np.testing.assert_allclose(
        adapted.distance_moved, 0.5 * np.arange(4) * np.linalg.norm(change), 1e-5
    )
    sigma = np.linalg.svd(change, compute_uv=False)[:2]
    share = sigma / sigma.sum()
    expected = np.exp(-(share * np.log(share)).sum())
    np.testing.assert_allclose(adapted.effective_rank[1:], expected, rtol=1e-3)
    scaled = data.sel(block="layers.1.scaled.weight", step=3)
    assert float(scaled.leading_share) == pytest.approx(0.5, abs=0.2) and not int(
        scaled.intruders
    )
    np.testing.assert_allclose(
        float(adapted.leading_share[3]),
        share_in_leading(matrices[0][2], change)[0],
        rtol=1e-4,
    )


def test_a_high_matrix_is_read_some_rows_at_a_time(monkeypatch):
    monkeypatch.setattr(weight_change, "_CHUNK", 30)
    table = {0: RNG.normal(size=(50, 6)), 4: RNG.normal(size=(50, 6))}
    read = []

    def rows(step, rows):
        read.append(len(rows))
        return table[step][rows].astype(np.float32)

    reading = SimpleNamespace(shape=(50, 6), steps=np.array([0, 4]), rows=rows)
    data = og.observables.WeightChange().observe(reading, None)
    assert set(read) == {5}
    change = table[4] - table[0]
    assert float(data.distance_moved[1]) == pytest.approx(
        np.linalg.norm(change), rel=1e-6
    )
    assert float(data["size"]) == pytest.approx(np.linalg.norm(table[0]), rel=1e-6)
    assert float(data.effective_rank[1]) == pytest.approx(
        effective_rank(change), rel=1e-6
    )
    share, k = share_in_leading(table[0], change)
    assert float(data.leading_share[1]) == pytest.approx(share, rel=1e-5)
    assert float(data.leading_chance) == k / 6
    monkeypatch.undo()
    read.clear()
    og.observables.WeightChange().observe(reading, None)
    assert read == [50, 50], "what is one piece is read once at each step"


def test_the_pieces_of_a_high_matrix_open_no_checkpoint_again(monkeypatch, tmp_path):
    def build():
        return nn.Sequential(nn.Linear(6, 50))

    record(tmp_path / "run", {step: build() for step in (0, 4, 9)})
    run = og.Trajectory.from_folder(tmp_path / "run", model=build)
    texts = og.Inputs.from_tokens([[1, 2]])
    study = og.Study(run, texts, [og.observables.WeightChange()], controls=0)
    opens, counts = counted_opens(monkeypatch), []
    # Headers are read in the first study.
    for i, size in enumerate((4_000_000, 4_000_000, 30)):
        monkeypatch.setattr(weight_change, "_CHUNK", size)
        opens.clear()
        result = study.run(tmp_path / f"study {i}")
        assert not result.problems()
        of_run = list((tmp_path / "run").glob("*/model.safetensors"))
        counts.append({path.parent.name: opens[path] for path in of_run})
    assert len(counts[1]) == 3 and counts[1] == counts[2]


def test_the_sentences_say_what_is_frozen_and_what_moved_farthest(tree):
    words = " ".join(said_of(og.observables.WeightChange(), tree[0]))
    assert "2 of 6 weight matrices never moved." in words
    assert "adapted moved farthest, by " in words and "(scaled 30 %)." in words
    still = tree[0].isel(step=[0, 0])
    assert said_of(og.observables.WeightChange(), still) == [
        "6 of 6 weight matrices never moved."
    ]


def test_weights_that_are_not_finite_fail_their_matrix_alone(tmp_path):
    models = {
        step: nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)) for step in range(2)
    }
    with torch.no_grad():
        models[1][0].weight[0, 0] = torch.nan
    study = og.Study(
        og.Trajectory.from_models(models),
        og.Inputs.from_tokens([[1, 2]]),
        [og.observables.WeightChange()],
    )
    problems = study.run(tmp_path / "s", keep_going=True).problems()
    assert [problem.layers for problem in problems] == [
        ("0.weight",)
    ] and "NaN" in problems[0].why


def _of_steps(matrices, steps, device="cpu"):
    models = {step: Tuned(matrices, step) for step in steps}
    return og.Study(
        og.Trajectory.from_models(models),
        og.Inputs.from_tokens([[1, 2, 3]]),
        [og.observables.WeightChange()],
        device=device,
    )


def _outcomes(study, folder):
    return {entry.outcome for entry in study.plan(folder).entries}


def test_two_checkpoints_later_only_their_matrices_are_read(
    tree, tmp_path, monkeypatch
):
    """All else stays, and every number is the same as in a study of all at once."""
    matrices = tree[1]
    observe, read = og.observables.WeightChange.observe, []

    def counting(self, reading, state):
        read.append([int(step) for step in reading.steps])
        return observe(self, reading, state)

    monkeypatch.setattr(og.observables.WeightChange, "observe", counting)
    _of_steps(matrices, (0, 2, 3, 5)).run(tmp_path / "grown")
    assert read == [[0, 2, 3, 5]] * 6
    read.clear()
    later = _of_steps(matrices, (0, 2, 3, 4, 5, 9))
    plan = later.plan(tmp_path / "grown")
    assert (len(plan.entries), plan.to_do) == (6, 6)
    assert "6 extended" in str(plan) and "new steps: 4, 9 (6 cells)" in str(plan)
    whole = _of_steps(matrices, (0, 2, 3, 4, 5, 9)).plan(tmp_path / "whole")
    assert plan.weight_bytes * 6 == whole.weight_bytes * 3
    grown = later.run(tmp_path / "grown")
    assert read == [[0, 4, 9]] * 6
    assert _outcomes(later, tmp_path / "grown") == {"done"}
    at_once = later.run(tmp_path / "whole")
    node = "weight-change"
    xr.testing.assert_equal(*(result[node].to_dataset() for result in (grown, at_once)))
    read.clear()
    fewer = _of_steps(matrices, (0, 3, 9))
    assert _outcomes(fewer, tmp_path / "grown") == {"extended"}
    fewer.run(tmp_path / "grown")
    assert read == []


@pytest.mark.parametrize("steps", [(1, 2, 3), (0, 2)])
def test_another_first_checkpoint_or_other_weights_are_read_whole(
    tree, tmp_path, steps
):
    matrices = tree[1]
    _of_steps(matrices, (0, 2, 3)).run(tmp_path / "s")
    if steps[0] == 0:  # the same steps, the first of which was written over
        matrices = [(*group[:2], group[2] + 1.0, group[3]) for group in matrices]
    outcomes = _outcomes(_of_steps(matrices, steps), tmp_path / "s")
    assert "stale" in outcomes


def test_a_new_checkpoint_that_diverged_costs_no_other_its_row(tree, tmp_path):
    matrices = tree[1]
    _of_steps(matrices, (0, 2, 5)).run(tmp_path / "s")
    models = {step: Tuned(matrices, step) for step in (0, 2, 4, 5)}
    models[4].layers[0].adapted.weight.data[0, 0] = float("nan")
    study = og.Study(
        og.Trajectory.from_models(models),
        og.Inputs.from_tokens([[1, 2, 3]]),
        [og.observables.WeightChange()],
        device="cpu",
    )
    data = study.run(tmp_path / "s")["weight-change"].to_dataset()
    moved = data.distance_moved.sel(block="layers.0.adapted.weight")
    assert np.isnan(moved.values).tolist() == [False, False, True, False]
    assert _outcomes(study, tmp_path / "s") <= {"done", "retry"}


def test_a_plan_extends_what_its_own_device_has_computed(tree, tmp_path, monkeypatch):
    """What the plan leaves out is not fetched, so that both have to ask for the same device."""

    def of_device(device="cpu"):
        return {**environment(), "GPU": device}

    for module in (run, block_cells):
        monkeypatch.setattr(module, "environment", of_device)
    folder = tmp_path / "s"
    _of_steps(tree[1], (0, 2), "meta").run(folder)
    longer = (0, 2, 5)
    here = _of_steps(tree[1], longer, "meta").plan(folder)
    elsewhere = _of_steps(tree[1], longer).plan(folder)
    assert {entry.outcome for entry in here.entries} == {"extended"}
    assert {entry.outcome for entry in elsewhere.entries} == {"stale"}
    assert here.weight_bytes * 3 == elsewhere.weight_bytes * 2
