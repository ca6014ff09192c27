"""What each kind of control keeps of the motion of a run, and what not."""

import itertools

import pytest
import torch
from torch import nn

from helpers.control_runs import (
    largest_gram_error,
    motions,
    record,
    run_of,
    same,
    tensors,
)
from ontogeny import Trajectory
from ontogeny.errors import ArgumentError, CheckpointError
from ontogeny.trajectory.control.kinds import KINDS, rotation, signed_permutation

STEPS = (0, 1, 2, 5, 9)


class Net(nn.Module):
    """Small and large sides, vectors, a scalar, four dimensions, statistics that move."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(2500, 6)
        self.wide = nn.Linear(6, 200)
        self.turn = nn.Linear(200, 5, bias=False)
        self.filter = nn.Conv2d(4, 3, 2)
        self.norm = nn.BatchNorm1d(6)
        self.scale = nn.Parameter(torch.randn(()))
        self.register_buffer("average", torch.rand(3))
        self.register_buffer("count", torch.arange(4))


@pytest.fixture(scope="module")
def models():
    return run_of(Net, STEPS)


@pytest.fixture(scope="module")
def run(models):
    return Trajectory.from_models(models)


def lengths(motion):
    return torch.diff(motion, dim=0, prepend=torch.zeros_like(motion[:1])).norm(dim=1)


LEARNED = {
    "embed.weight",
    "wide.weight",
    "wide.bias",
    "turn.weight",
    "filter.weight",
    "filter.bias",
    "norm.weight",
    "norm.bias",
    "scale",
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_begins_where_the_run_begins_and_only_parameters_move_otherwise(run, kind):
    control = run.control(kind, random_state=3)
    assert control.steps.tolist() == list(STEPS)
    assert same(tensors(run[0]), tensors(control[0]))
    there, made = tensors(run[9]), tensors(control[9])
    changed = {name for name in there if not torch.equal(there[name], made[name])}
    assert changed == (set() if kind == "line" else LEARNED - {"scale"}) | (
        changed & {"scale"}
    )
    assert {n: (t.shape, t.dtype) for n, t in made.items()} == {
        n: (t.shape, t.dtype) for n, t in there.items()
    }


def test_turned_keeps_gram_matrices_singular_values_and_lengths(run):
    control = run.control()
    assert largest_gram_error(run, control) < 1e-6
    first, last, made = tensors(run[0]), tensors(run[9]), tensors(control[9])
    for name in ("embed.weight", "wide.weight", "turn.weight", "filter.weight"):
        before, after = (
            (last[name] - first[name]).flatten(1),
            (made[name] - first[name]).flatten(1),
        )
        values = torch.linalg.svdvals(before.double())
        assert torch.allclose(values, torch.linalg.svdvals(after.double()), rtol=1e-5)
        cosine = torch.cosine_similarity(before.flatten(), after.flatten(), dim=0)
        assert abs(cosine) < 0.5
    moved = (made["wide.bias"] - first["wide.bias"]).abs().sort().values
    assert torch.allclose(
        moved, (last["wide.bias"] - first["wide.bias"]).abs().sort().values, atol=1e-6
    )


@pytest.mark.parametrize("size", [1, 2, 3, 64, 129, 300])
def test_maps_are_orthogonal_and_differ_by_seed_name_and_side(size):
    keys = [(0, "a", "left"), (1, "a", "left"), (0, "b", "left"), (0, "a", "right")]
    found = [rotation(size, *key).matrix for key in keys]
    for Q in found:
        assert torch.allclose(Q @ Q.T, torch.eye(size, dtype=torch.float64), atol=1e-10)
    if size > 2:
        assert all(not torch.equal(a, b) for a, b in itertools.combinations(found, 2))
    values = torch.randn(size, 2, dtype=torch.float64)
    permuted = signed_permutation(size, 0, "a", "left").left(values)
    assert torch.equal(permuted.abs().sort(0).values, values.abs().sort(0).values)


@pytest.mark.parametrize("size", [8, 200])
def test_a_map_is_uniform_over_orthogonal_matrices(size):
    draws = torch.stack([rotation(size, s, "a", "left").matrix for s in range(400)])
    entries = draws[:, 0, 1]
    assert abs(float(entries.mean())) < 4 / (400 * size) ** 0.5
    assert float((entries**2).mean() * size) == pytest.approx(1, abs=0.3)
    assert 0.4 < float((torch.linalg.det(draws[:, :8, :8]) > 0).double().mean()) < 0.6


def test_walk_keeps_lengths_of_increments_and_loses_drift(run):
    before, after = motions(run), motions(run.control("walk"))
    for name in LEARNED:
        assert torch.allclose(lengths(before[name]), lengths(after[name]), rtol=1e-4), (
            name
        )
    steps = torch.diff(after["embed.weight"], dim=0, prepend=torch.zeros(1, 15000))
    cosines = torch.corrcoef(steps) - torch.eye(4)
    assert cosines.abs().max() < 0.05
    own = torch.corrcoef(torch.diff(before["embed.weight"], dim=0)) - torch.eye(3)
    assert own.min() < -0.5 or own.max() > 0.3


def test_line_has_both_ends_and_the_share_of_the_way_between(run):
    before, after = motions(run), motions(run.control("line"))
    for name in LEARNED:
        assert torch.allclose(before[name][-1], after[name][-1], atol=1e-6)
        way = lengths(before[name]).cumsum(0)
        expected = (way / way[-1])[:, None] * before[name][-1]
        assert torch.allclose(after[name], expected, atol=1e-6)


def test_shuffled_has_each_direction_at_another_place_and_each_length_at_its_own(run):
    before, after = motions(run), motions(run.control("shuffled", random_state=2))
    orders = set()
    for name in LEARNED - {"scale"}:
        assert torch.allclose(lengths(before[name]), lengths(after[name]), rtol=1e-4)
        one, other = (
            nn.functional.normalize(
                torch.diff(m, dim=0, prepend=torch.zeros_like(m[:1]))
            )
            for m in (before[name], after[name])
        )
        cosines = other @ one.T
        assert torch.allclose(
            cosines.max(1).values, torch.ones(4, dtype=torch.float64), atol=1e-4
        )
        orders.add(tuple(cosines.argmax(1).tolist()))
    assert len(orders) == 1 and sorted(next(iter(orders))) == [0, 1, 2, 3] != list(
        *orders
    )


def test_what_does_not_move_stays_to_the_bit(models):
    still = Trajectory.from_models(
        {
            s: {**m.state_dict(), "wide.weight": torch.full((200, 6), -0.0)}
            for s, m in models.items()
        }
    )
    for kind in KINDS:
        value = tensors(still.control(kind)[9])["wide.weight"]
        assert torch.equal(value, torch.zeros(200, 6)) and bool(value.signbit().all())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float16, torch.float64, torch.complex64]
)
def test_every_dtype_is_returned_as_it_is_stored(kind, dtype):
    torch.manual_seed(0)
    drawn = torch.complex128 if dtype.is_complex else torch.float64
    states = {s: {"w": torch.randn(6, 4, dtype=drawn).to(dtype)} for s in (0, 1, 2)}
    control = Trajectory.from_models(states).control(kind)
    made = tensors(control[2])["w"]
    assert made.dtype == dtype and made.shape == (6, 4)
    if kind in ("turned", "line"):
        first, last = states[0]["w"].to(drawn), states[2]["w"].to(drawn)
        moved = float((made.to(drawn) - first).norm())
        assert moved == pytest.approx(float((last - first).norm()), rel=5e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_those_of_the_tensor_bit_for_bit(run, kind, tmp_path, models):
    recorded = record(tmp_path, models, dtype=torch.bfloat16)
    for trajectory in (run, recorded):
        checkpoint = trajectory.control(kind)[5]
        whole = tensors(checkpoint)
        for name, bounds in itertools.product(
            ("embed.weight", "wide.weight", "wide.bias", "count"),
            [(0, 1), (1020, 1030), (3, 3), (2400, 9000), (0, 2500)],
        ):
            with checkpoint.open() as reader:  # opened anew: nothing is computed yet
                assert torch.equal(
                    reader.rows(name, *bounds), whole[name][slice(*bounds)]
                )


def test_seeds_give_other_controls_and_the_same_seed_the_same(run):
    for kind in ("turned", "walk", "shuffled"):
        found = [tensors(run.control(kind, random_state=s)[9]) for s in (0, 0, 1)]
        assert same(found[0], found[1])
        assert not torch.equal(found[0]["turn.weight"], found[2]["turn.weight"])


def test_a_selection_is_made_before_or_after(run):
    for kind in ("turned", "walk"):
        control = run.control(kind)
        assert same(tensors(control.select(steps=[0, 9])[9]), tensors(control[9]))
    walk = motions(run.select(steps=[0, 9]).control("walk"))["embed.weight"]
    ends = motions(run)["embed.weight"][-1].norm()
    # One step as long as the whole motion.
    assert torch.allclose(walk.norm(), ends, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"kind": "turn"},
            "kind must be one of 'turned', 'mirrored', 'walk', 'line', 'shuffled'; got 'turn'",
        ),
        (
            {"random_state": -1},
            "random_state must be a whole number of at least 0; got -1",
        ),
        ({"random_state": 0.5}, "random_state must be a whole number"),
    ],
)
def test_bad_arguments_are_refused(run, arguments, message):
    with pytest.raises(ArgumentError, match=message):
        run.control(**arguments)


def test_what_has_no_motion_is_refused(run):
    with pytest.raises(ArgumentError, match=r"needs at least 2 checkpoints .* has 1"):
        run.select(steps=[5]).control()
    with pytest.raises(ArgumentError, match="'shuffled' needs at least 3 checkpoints"):
        run.select(steps=[5, 9]).control("shuffled")
    with pytest.raises(ArgumentError, match="is a control already"):
        run.control().control("walk")


def test_weights_of_another_shape_or_name_are_refused_where_they_are_read():
    states = {
        0: {"w": torch.zeros(2, 3)},
        1: {"w": torch.ones(2, 4), "v": torch.ones(2)},
    }
    with Trajectory.from_models(states).control()[1].open() as reader:
        with pytest.raises(
            CheckpointError, match=r"w has shape \(2, 3\) in step 0 and \(2, 4\)"
        ):
            reader.get("w")
        with pytest.raises(
            CheckpointError, match="step 0, where the control begins, has no"
        ):
            reader.get("v")


def test_a_way_that_is_not_finite_is_refused():
    states = {s: {"w": torch.full((2, 3), float(s))} for s in (0, 1, 2)}
    states[1]["w"][0, 0] = torch.nan
    with (
        Trajectory.from_models(states).control("walk")[2].open() as reader,
        pytest.raises(CheckpointError, match="the way of w to step 1 is nan"),
    ):
        reader.get("w")
