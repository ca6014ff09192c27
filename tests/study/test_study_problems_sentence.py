"""The one sentence on what failed: observables and control runs are counted each by themselves."""

import json

import pytest
import xarray as xr

from ontogeny.problems.problem import Problem
from ontogeny.problems.table import problems_of


def result_of(failed, controls):
    """Return a result of five observables, some of which failed, and what failed in controls."""
    nodes = {}
    for i in range(5):
        status = ["failed: ValueError: no" if i < failed else "done", "done"]
        nodes[f"o{i}"] = xr.Dataset({"status": ("step", status)}, {"step": [0, 8]})
    tree = xr.DataTree.from_dict(nodes)
    rows = [
        Problem(f"o{i}", "failed: E: no", (0,), run=name).to_dict()
        for name, i in controls
    ]
    tree.attrs["controls"] = json.dumps([{"problems": rows}])
    return tree


@pytest.mark.parametrize(
    ("failed", "controls", "ends"),
    [
        (1, [], "1 of 10 cells failed: o0 (1): ValueError: no"),
        (4, [], "o2 (1): ValueError: no; and 1 more observable"),
        (
            1,
            [("a", 0), ("a", 1), ("b", 0)],
            "ValueError: no; 2 control runs failed in part",
        ),
        (5, [("a", 0)], "and 2 more observables; 1 control run failed in part"),
        (0, [("a", 0)], "1 control run failed in part: a: o0: E: no"),
        (0, [("a", i) for i in range(5)], "a: o2: E: no; and 2 more of control runs"),
    ],
)
def test_the_sentence_counts_observables_and_control_runs_apart(failed, controls, ends):
    assert problems_of(result_of(failed, controls)).sentence.endswith(ends)
