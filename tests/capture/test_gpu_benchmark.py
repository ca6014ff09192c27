"""The benchmark of a GPU runs without one, and fails where numbers or bits are off."""

import itertools
import math
import runpy
from pathlib import Path

import pytest
import torch

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "gpu.py"
SMALL = ["--device", "cpu", "--width", "64", "--blocks", "1", "--texts", "2"]


@pytest.fixture
def script():
    before = torch.are_deterministic_algorithms_enabled()
    yield runpy.run_path(str(BENCHMARK))["main"].__globals__
    torch.use_deterministic_algorithms(before)


def test_every_part_runs_and_agrees_with_itself(script, capsys):
    script["ROWS"] = 200
    script["VOCABULARY"] = 300
    assert script["main"](SMALL) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert len(lines) == 11
    assert all(line.endswith("0.0e+00 | yes") for line in lines)


def _parts(script, *values):
    """One part that gives these values one after the other: the CPU's, then the device's."""
    given = itertools.chain(values)
    part = script["Part"]("one", lambda device: torch.tensor(next(given)), 0.1)
    script["parts"] = lambda *_: iter([part])


@pytest.mark.parametrize(
    ("values", "code", "says"),
    [
        ([1.0, 1.05, 1.05, 1.05], 0, "yes"),
        ([1.0, 1.5, 1.5, 1.5], 1, "yes"),
        ([1.0, 1.0, 1.0, 1.0001], 1, "NO"),
        ([1.0, *[math.nan] * 3], 1, "inf | NO"),
    ],
)
def test_the_exit_code_says_whether_numbers_and_bits_agree(
    script, values, code, says, capsys
):
    _parts(script, *values)
    assert script["main"](SMALL) == code
    assert capsys.readouterr().out.splitlines()[-1].endswith(says)


def test_what_would_begin_too_late_is_left_out_and_said(script, capsys):
    _parts(script)
    assert script["main"]([*SMALL, "--minutes", "-1"]) == 0
    assert "left out" in capsys.readouterr().out


def test_a_part_that_fails_costs_no_other_its_line(script, capsys):
    def broken(device):
        raise torch.OutOfMemoryError("no room\nfor this")

    made = script["Part"]
    one = torch.ones(1)
    several = [made("broken", broken, 0.1), made("whole", lambda device: one, 0.1)]
    script["parts"] = lambda *_: iter(several)
    assert script["main"](SMALL) == 1
    first, second = capsys.readouterr().out.splitlines()[-2:]
    assert first == "broken | failed: OutOfMemoryError: no room"
    assert second.startswith("whole") and second.endswith("yes")
