"""What is found at a checkpoint, written as plain data and read again."""

import dataclasses

import ontogeny as og
from helpers.study_examples import LAYERS, developing, tiny_inputs
from ontogeny import observables as of
from ontogeny.study.folder.settings import Settings
from ontogeny.study.planning.examination import decoded, encoded
from ontogeny.study.planning.probe import needs_of_steps, probe


def test_a_probe_is_read_as_it_was_written():
    trajectory = og.Trajectory.from_models(developing((0, 1))).select(steps=[0])
    inputs = {"text": tiny_inputs()}
    observables = [
        of.Loss(),
        of.ActivationDecay(LAYERS),
        of.WeightRank(n_draws=4),
        of.Concepts("svd", n_concepts=2, layers=LAYERS),
    ]
    found = probe(trajectory, inputs, observables, Settings(1, ()))
    needs = needs_of_steps(observables)
    read = decoded(encoded(found, needs), needs)
    blocks = {
        name: dataclasses.asdict(block) for name, block in found.weight_blocks.items()
    }
    assert {n: dataclasses.asdict(b) for n, b in read.weight_blocks.items()} == blocks
    assert blocks and found.passes and found.layers
    assert dataclasses.replace(read, weight_blocks=found.weight_blocks) == found
