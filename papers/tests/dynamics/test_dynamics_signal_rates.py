"""How often regimes and relations are found where there are none, and where there are some.

The tables stand with the benchmarks; here the same simulations are run again, smaller.
"""

from __future__ import annotations

import doctest

import numpy as np
import pytest

from helpers.paths import PAPERS_GUIDES, ROOT
from helpers.series_examples import EARLY, LATE, noises, planted, trends
from ontogeny.dynamics import compare_signals, regimes

GUIDE = PAPERS_GUIDES / "curves.md"
TABLES = ROOT / "benchmarks" / "README.md"
SCHEDULES = {24: EARLY, 50: LATE}
TRENDS = ("exponential", "two exponentials", "power law", "sigmoid", "flat")
TABLE_SERIES = 60  # at least, behind each number of the tables


def false_boundaries(noise: str, count: int, trials: int, seed: int = 0) -> float:
    """Share of single series with one noise level in which a boundary is found."""
    rng = np.random.default_rng(seed)
    steps = SCHEDULES[count]
    found = []
    for i in range(trials):
        values = planted(TRENDS[i % len(TRENDS)], noise, steps, 1, 0.05, rng)[0]
        found.append(regimes(steps, values, random_state=i).boundary is not None)
    return float(np.mean(found))


def found_boundaries(
    ratio: float, layers: int, count: int, trials: int, seed: int = 0
) -> float:
    """Share of exponential decays whose noise grows half-way in which smooth turns noisy."""
    rng = np.random.default_rng(seed)
    steps, half = SCHEDULES[count], count // 2
    found = []
    for i in range(trials):
        values = planted(
            "exponential", "independent", steps, layers, 0.05, rng, half, ratio
        )
        result = regimes(steps, values.T, random_state=i)
        found.append(result.order == "smooth then noisy")
    return float(np.mean(found))


def relations(
    noise: str, shared: float, count: int, trials: int, seed: int = 0
) -> float:
    """Share of pairs of decays called related; `shared` is the correlation of their noise."""
    rng = np.random.default_rng(seed)
    steps = SCHEDULES[count]
    found = []
    for i in range(trials):
        # Without both there is no curve.
        trend = TRENDS[i % 4 if noise == "none" else i % 5]
        x, y = trends(trend, steps, 2, rng)
        own, other = 0.05 * noises(noise, 2, count, rng)
        x, y = x + own, y + shared * own + np.sqrt(1 - shared**2) * other
        result = compare_signals(x, y, steps, n_draws=199, random_state=i)
        found.append(result.pearson_p <= 0.05)
    return float(np.mean(found))


def table(name: str) -> list[tuple[str, list[float]]]:
    """The rows of one of the tables: label and rates at 24 and at 50 checkpoints."""
    text = TABLES.read_text(encoding="utf-8").split(f"<!-- {name} -->")[1]
    lines = text.split("<!-- end -->")[0].splitlines()
    rows = [
        [cell.strip() for cell in line.strip("| ").split("|")]
        for line in lines
        if "|" in line
    ]
    return [(row[0], [float(cell) for cell in row[1:]]) for row in rows[2:]]


def tolerance(rate: float, trials: int) -> float:
    """Five standard errors of the difference of a table's rate and a test's."""
    spread = max(rate, 0.02) * (1 - min(rate, 0.98))
    return float(5 * np.sqrt(spread / trials + spread / TABLE_SERIES))


def test_the_guide_runs_as_printed():
    result = doctest.testfile(str(GUIDE), module_relative=False)
    assert result.attempted > 20
    assert result.failed == 0


def test_boundaries_where_there_are_none_are_as_rare_as_the_table_says():
    rows = table("false boundaries")
    assert len(rows) == 6
    for noise, (rate,) in rows:
        assert rate <= 0.07
        assert abs(false_boundaries(noise, 50, 15, seed=1) - rate) <= tolerance(
            rate, 15
        )


def test_relations_where_there_are_none_are_as_rare_as_the_table_says():
    rows = table("false relations")
    assert len(rows) == 7
    for noise, (rate, later) in rows:
        assert max(rate, later) <= 0.08
        assert abs(relations(noise, 0.0, 24, 40, seed=1) - rate) <= tolerance(rate, 40)


def test_planted_boundaries_are_found_as_often_as_the_table_says():
    for label, (rate, _) in table("found boundaries"):
        ratio, layers = (int(word) for word in label.split(" × in "))
        found = found_boundaries(ratio, layers, 24, 15, seed=1)
        assert found == pytest.approx(rate, abs=tolerance(rate, 15))


def test_planted_relations_are_found_as_often_as_the_table_says():
    for label, (rate, _) in table("found relations"):
        found = relations("independent", float(label), 24, 30, seed=1)
        assert found == pytest.approx(rate, abs=tolerance(rate, 30))
