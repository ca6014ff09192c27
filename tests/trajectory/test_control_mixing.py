"""Matrices with two large sides: mixed in blocks, as dense orthogonal maps would mix them."""

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from ontogeny import Trajectory
from ontogeny.trajectory.control import kinds, orthogonal, weights
from ontogeny.trajectory.control.hadamard import mixed_columns, mixed_rows
from ontogeny.trajectory.control.orthogonal import HAAR_LIMIT, ROWS_MIXED, rotation

WIDE = HAAR_LIMIT + 76


def moved(motion, kind="turned", seed=0):
    """The motion of a control in double precision: the run moves from zero by `motion`."""
    run = Trajectory.from_models({0: {"w": torch.zeros_like(motion)}, 1: {"w": motion}})
    with run.control(kind, random_state=seed)[1].open() as reader:
        return reader.get("w").double()


def densely(motion, seed=0):
    """The same motion turned by dense maps of both sides."""
    left, right = (
        rotation(size, seed, "w", side)
        for size, side in zip(motion.shape, ("left", "right"), strict=True)
    )
    return right.right(left.left(motion))


@pytest.mark.parametrize("size", [1, 2, 31, 32, 77, 96, 1000, 1024, 2049])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_mixing_keeps_norms_and_inner_products_at_every_size(size, dtype):
    torch.manual_seed(size)
    values = torch.randn(7, size, dtype=dtype)
    by_columns = mixed_columns(values, 1024)
    by_rows = mixed_rows(values.T.contiguous(), 32)
    assert by_columns.dtype == by_rows.dtype == dtype
    gram = values.double() @ values.double().T
    for made in (by_columns.double(), by_rows.double().T):
        assert (made @ made.T - gram).abs().max() < 1e-6 * gram.max()


def test_a_block_is_mixed_evenly_and_the_rest_in_smaller_blocks():
    eye = torch.eye(77, dtype=torch.float64)
    matrix = mixed_rows(eye, 32)
    assert torch.equal(matrix.T, mixed_columns(eye, 32))
    start = 0
    for width in (32, 32, 8, 4, 1):  # 77 in blocks of at most 32
        block = matrix[start : start + width, start : start + width]
        even = torch.full_like(block, width**-0.5)
        torch.testing.assert_close(block.abs(), even, rtol=1e-12, atol=0)
        matrix[start : start + width, start : start + width] = 0
        start += width
    assert not matrix.any()


@pytest.mark.parametrize("shape", [(WIDE, 2 * WIDE), (2 * WIDE + 1, WIDE + 1)])
@pytest.mark.parametrize("kind", ["turned", "mirrored"])
def test_a_wide_motion_keeps_its_length_and_singular_values(shape, kind):
    torch.manual_seed(0)
    motion = torch.randn(shape[0], 3) @ torch.randn(
        3, shape[1]
    )  # so these are found quickly
    values = [
        torch.svd_lowrank(matrix, 6, niter=4)[1]
        for matrix in (motion, moved(motion, kind))
    ]
    torch.testing.assert_close(values[1][:3], values[0][:3].double(), rtol=1e-5, atol=0)
    assert float(values[1][3:].max() / values[1][0]) < 1e-5


@pytest.fixture
def small_limit(monkeypatch):
    """Sides of more than 128 are too large, so that dense maps can stand beside."""
    for module in (kinds, orthogonal):
        monkeypatch.setattr(module, "HAAR_LIMIT", 128)


def kurtosis(values):
    return float(((values - values.mean()) / values.std()).pow(4).mean())


def participation(values, axis):
    """How many rows or columns hold the motion: the participation ratio of their squares."""
    power = values.pow(2).sum(axis)
    return float(power.sum() ** 2 / power.pow(2).sum())


STATISTICS = {
    "kurtosis": kurtosis,
    "share of entries beyond two deviations": lambda v: float(
        (v.abs() > 2 * v.std()).double().mean()
    ),
    "rows": lambda v: participation(v, 1),
    "columns": lambda v: participation(v, 0),
}


def planted(columns=(), rows=()):
    """A motion of eight directions in noise, with channels that stick out ten times as far."""
    rng = torch.Generator().manual_seed(0)
    motion = torch.randn(384, 8, generator=rng) @ torch.randn(8, 512, generator=rng)
    motion += torch.randn(384, 512, generator=rng)
    motion[:, list(columns)] *= 10
    motion[list(rows)] *= 10
    return motion.double()


@pytest.mark.parametrize("columns", [(), (3,), (5, 77, 400)])
def test_its_numbers_are_spread_as_dense_maps_spread_them(small_limit, columns):
    """Of channels that stick out, blocks make columns a little more equal than dense maps do."""
    share = 0.07 if columns else 0.01
    motion = planted(columns)
    for name, statistic in STATISTICS.items():
        dense = torch.tensor([statistic(densely(motion, s)) for s in range(12)])
        made = torch.tensor([statistic(moved(motion, seed=s)) for s in range(12)])
        noise = dense.std() + made.std() + share * dense.mean()
        assert abs(float(made.mean() - dense.mean())) < noise, name


def test_permutations_alone_would_leave_channels_sticking_out(small_limit, monkeypatch):
    motion = planted(columns=(3,))
    few = participation(motion, 0)
    assert few < 40
    assert participation(moved(motion), 0) > 400
    monkeypatch.setattr(kinds, "is_mixed", lambda shape: False)
    assert participation(moved(motion), 0) == pytest.approx(few, rel=1e-9)


def test_a_single_row_is_spread_over_a_block_of_rows_and_no_more(small_limit):
    motion = torch.zeros(384, 512, dtype=torch.float64)
    motion[7] = 1.0
    assert participation(moved(motion), 1) == pytest.approx(ROWS_MIXED)
    assert participation(densely(motion), 1) > 100


def test_a_seed_gives_the_same_mixing_and_another_seed_another():
    torch.manual_seed(0)
    motion = torch.randn(WIDE, WIDE)
    made = [moved(motion, seed=seed) for seed in (2, 2, 3)]
    assert torch.equal(made[0], made[1]) and not torch.equal(made[0], made[2])
    pair = [moved(motion, "mirrored", seed) for seed in (6, 7)]
    assert torch.equal(pair[0], -pair[1])


def digests(width, monkeypatch, version):
    config = GPT2Config(
        vocab_size=9, n_positions=4, n_embd=width, n_layer=1, n_head=1, n_inner=8
    )
    torch.manual_seed(0)
    run = Trajectory.from_models({s: GPT2LMHeadModel(config) for s in (0, 1)})
    monkeypatch.setattr(weights, "_MIXED", version)
    return {
        kind: run.control(kind)[1].digests() for kind in ("turned", "mirrored", "line")
    }


def test_only_results_of_wide_models_depend_on_how_they_are_mixed(monkeypatch):
    """Studies of models that are turned by dense maps stay as they are."""
    for width in (8, HAAR_LIMIT, HAAR_LIMIT + 4):
        one, other = (digests(width, monkeypatch, version) for version in "12")
        differ = {kind for kind in one if one[kind] != other[kind]}
        assert differ == (set() if width <= HAAR_LIMIT else {"turned", "mirrored"})
