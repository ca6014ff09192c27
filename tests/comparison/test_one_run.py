"""Two runs of a comparison that are one: said on the page and on the terminal."""

from __future__ import annotations

import json

import pytest
import torch

import ontogeny as og
from helpers.compared_runs import run
from ontogeny.comparison import summary_lines
from ontogeny.trajectory.audit.kept_samples import kept_samples, updates_alike

STEPS = (0, 10, 20, 40, 80)


def trained(seed, noise=0.0, start=0, layers=3):
    """Return weights of a run; `noise` is what another machine adds to each update, relatively."""
    first = torch.Generator().manual_seed(start)
    course, other = (
        torch.Generator().manual_seed(seed),
        torch.Generator().manual_seed(seed + 99),
    )
    names = [f"h.{i}.weight" for i in range(layers)]
    state = {name: torch.randn(24, 24, generator=first) for name in names}
    models = {}
    for step in STEPS:
        models[step] = {name: weight.clone() for name, weight in state.items()}
        for name in names:
            update = 0.1 * torch.randn(24, 24, generator=course)
            state[name] = state[name] + update
            state[name] += noise * 0.1 * torch.randn(24, 24, generator=other)
    return og.Trajectory.from_models(models)


def result(trajectory, seed=0):
    digests = {str(step): digest for step, digest in trajectory.fingerprints().items()}
    attributes = {
        "trajectory": json.dumps({"digests": digests}),
        "samples": json.dumps(kept_samples(trajectory.checkpoints)),
        "findings": "[]",
    }
    return run(20, seed, steps=STEPS, **attributes)


def found(**runs):
    tree = og.compare({name: result(*of) for name, of in runs.items()})
    findings = json.loads(tree.attrs["findings"])
    return tree, [f["message"] for f in findings if f["kind"] == "one-run"]


def test_one_seed_on_two_machines_is_said_on_page_and_terminal():
    tree, messages = found(
        a=(trained(1), 0), b=(trained(1, noise=0.002), 1), c=(trained(2), 2)
    )
    (message,) = messages
    assert message.startswith(
        "'a' and 'b' are hardly two runs: their updates from step 0 to 80 "
    )
    assert summary_lines(tree)[0] == f"audit: {message}"
    assert any(message in text for text in json.loads(tree.attrs["notes"]))


@pytest.mark.parametrize("noise", [0.5, 1.0])
def test_runs_of_one_initialisation_that_go_alike_are_two(noise):
    """Other texts, or the same in another order, leave a correlation well below one."""
    assert found(a=(trained(1), 0), b=(trained(1, noise), 1))[1] == []
    assert found(a=(trained(1), 0), b=(trained(2), 1))[1] == []


def test_runs_that_part_later_are_one_until_there():
    one, two = trained(1), trained(2)
    models = {
        c.step: (one if c.step <= 20 else two)[c.step].weights.source for c in one
    }
    other = og.Trajectory.from_models(models)
    (message,) = found(a=(one, 0), b=(other, 1))[1]
    assert message.startswith(
        "'a' and 'b' hold the same weights at steps 10 and 20, byte for byte"
    )


def test_other_sizes_and_steps_are_not_compared():
    one, larger = (
        kept_samples(t.checkpoints) for t in (trained(1), trained(1, layers=4))
    )
    assert updates_alike(one, larger) is None and updates_alike(one, {}) is None
    late = {**one, "values": {"80": one["values"]["80"]}}
    assert updates_alike(one, late) is None
    broken = kept_samples(
        og.Trajectory.from_models(
            {0: {"w": torch.zeros(24, 24)}, 1: {"w": torch.full((24, 24), torch.nan)}}
        ).checkpoints
    )
    assert updates_alike(broken, broken) is None
    still = {0: {"w": torch.ones(24, 24)}, 1: {"w": torch.ones(24, 24)}}
    same = kept_samples(og.Trajectory.from_models(still).checkpoints)
    assert updates_alike(same, same) is None


def test_a_result_keeps_at_most_eight_samples_of_little_size():
    models = {s: {"w": torch.randn(300, 300)} for s in range(40)}
    kept = kept_samples(og.Trajectory.from_models(models).checkpoints)
    assert list(kept["values"])[:1] == ["0"] and "39" in kept["values"]
    assert len(kept["values"]) == 8 and len(json.dumps(kept)) < 40_000
