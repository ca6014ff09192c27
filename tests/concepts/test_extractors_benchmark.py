"""The benchmark of extractors on a device fails where their errors are off."""

import runpy
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "extractors_gpu.py"
SMALL = ["--device", "cpu", "--samples", "60", "--features", "8", "--concepts", "3"]


@pytest.mark.parametrize(("tolerance", "code"), [(0.005, 0), (-1.0, 1)])
def test_the_exit_code_says_whether_errors_agree_with_float64(tolerance, code, capsys):
    main = runpy.run_path(str(BENCHMARK))["main"]
    main.__globals__["TOLERANCE"] = tolerance
    assert main([*SMALL, "--repeats", "2", "--extractors", "svd", "ica"]) == code
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines[1:]] == ["off" if code else "ok"] * 2
