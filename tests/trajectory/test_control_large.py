"""Controls of large matrices: rows a few at a time, and the numbers of the whole at once."""

import numpy as np
import pytest
import torch

from ontogeny import Trajectory
from ontogeny.trajectory.control import reader as module
from ontogeny.trajectory.control.kinds import HAAR_LIMIT, signed_permutation
from ontogeny.trajectory.control.sources import Sources

ROWS, COLUMNS = HAAR_LIMIT + 77, HAAR_LIMIT + 201


def matrices(dtype):
    torch.manual_seed(0)
    first = torch.randn(ROWS, COLUMNS)
    last = first + 0.1 * torch.randn(ROWS, COLUMNS)
    first[3, 5] = -0.0
    first[::7] = last[::7] = -0.0  # rests, also where its sign is
    return first.to(dtype), last.to(dtype)


def control_of(first, last, seed=4, kind="turned"):
    run = Trajectory.from_models({0: {"w": first}, 9: {"w": last}})
    return run.control(kind, random_state=seed)[9]


def expected(first, last, seed=4):
    """The definition, of the whole matrix in one precision."""
    wide = torch.float64 if first.dtype == torch.float64 else torch.float32
    left = signed_permutation(ROWS, seed, "w", "left")
    right = signed_permutation(COLUMNS, seed, "w", "right")
    motion = last.to(wide) - first.to(wide)
    moved = (motion[left.order] * left.signs[:, None])[:, right.order] * right.signs
    value = first.to(wide)
    return torch.where(moved == 0, value, value + moved).to(first.dtype)


def bits(tensor):
    return tensor.contiguous().view(torch.uint8).numpy()


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64]
)
def test_rows_at_a_time_give_the_bits_of_the_whole(dtype):
    first, last = matrices(dtype)
    before = first.clone(), last.clone()
    with control_of(first, last).open() as reader:
        whole = reader.get("w")
        some = [reader.rows("w", 5, 9), reader.rows("w", ROWS - 2, ROWS + 9)]
    with control_of(first, last).open() as reader:
        apart = reader.rows("w", 1000, 1077)
    truth = expected(first, last)
    np.testing.assert_array_equal(bits(whole), bits(truth))
    rows = slice(5, 9), slice(-2, None), slice(1000, 1077)
    for part, where in zip([*some, apart], rows, strict=True):
        np.testing.assert_array_equal(bits(part), bits(truth[where]))
    # What a control is made of is left alone, also where nothing has to be converted.
    assert torch.equal(first, before[0]) and torch.equal(last, before[1])


@pytest.mark.parametrize("columns", [COLUMNS, 768])
@pytest.mark.parametrize("kind", ["turned", "mirrored"])
def test_single_precision_errs_by_its_rounding(kind, columns):
    """Motions far above and far below the weights, beside the same in double precision."""
    torch.manual_seed(1)
    first = torch.randn(ROWS, columns)
    for size in (1e-4, 1.0, 1e3):
        last = first + size * torch.randn(ROWS, columns)
        made = []
        for dtype in (torch.float32, torch.float64):
            ends = first.to(dtype), last.to(dtype)
            with control_of(*ends, kind=kind).open() as reader:
                made.append(reader.get("w").double())
        single, double = made
        motion = last.double() - first.double()
        # Rows change places with their motions; of 768 columns a product turns them.
        bound = 2.0**-24 * (motion.norm(dim=1).max() + double.norm(dim=1))
        error = (single - double).norm(dim=1)
        assert error.max() > 0 and (error <= bound).all()


def test_some_rows_of_a_tall_matrix_have_the_bits_of_all():
    """Its columns are turned by a product, which rounds by how many rows it has."""
    first, last = (matrix[:, :768] for matrix in matrices(torch.float64))
    with control_of(first, last).open() as reader:
        whole = reader.get("w")
    with control_of(first, last).open() as reader:
        for start, stop in ((1000, 1001), (3, 900), (7, 7), (ROWS - 9, ROWS)):
            part = reader.rows("w", start, stop)
            np.testing.assert_array_equal(bits(part), bits(whole[start:stop]))


@pytest.mark.parametrize("kind", ["turned", "mirrored", "line"])
def test_few_numbers_are_held_in_a_wider_dtype(kind, monkeypatch):
    largest = []
    values = Sources.values

    def counted(self, *args):
        tensor = values(self, *args)
        largest.append(tensor.numel())
        return tensor

    monkeypatch.setattr(Sources, "values", counted)
    if kind == "line":  # lengths of increments are taken of the whole, once
        monkeypatch.setattr(Sources, "lengths", lambda *_: np.ones(1))
    first, last = matrices(torch.bfloat16)
    with control_of(first, last, kind=kind).open() as reader:
        reader.get("w")
    assert max(largest) <= module._AT_ONCE


def test_a_tensor_of_a_file_is_mapped_once_for_a_reading(tmp_path, monkeypatch):
    from safetensors.torch import save_file

    from ontogeny.trajectory.weights.files import ShardsReader

    for step, tensor in zip((0, 9), matrices(torch.bfloat16), strict=True):
        (tmp_path / f"checkpoint-{step}").mkdir()
        save_file({"w": tensor}, tmp_path / f"checkpoint-{step}/model.safetensors")
    mapped = []
    get = ShardsReader.get
    monkeypatch.setattr(
        ShardsReader, "get", lambda self, name: mapped.append(name) or get(self, name)
    )
    build = lambda: torch.nn.Linear(2, 2)  # noqa: E731  # only tensors are read
    run = Trajectory.from_folder(tmp_path, model=build)
    with run.control("turned", random_state=4)[9].open() as reader:
        value = reader.get("w")
    np.testing.assert_array_equal(
        bits(value), bits(expected(*matrices(torch.bfloat16)))
    )
    assert len(mapped) <= 4  # names of tied tensors are found by values, too
