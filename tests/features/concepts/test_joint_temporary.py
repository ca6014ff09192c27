"""The checkpoints that wait for a joint fit lie in files without a name: none is left behind."""

import tempfile
from contextlib import ExitStack

import numpy as np

import ontogeny.features.concepts.joint_gathered as joint_gathered
from ontogeny.needs import Activations

NEED = Activations("mlp")


class Twice:
    """A run whose checkpoints hold the same activations of two layers."""

    def reading(self, step):
        rng = np.random.default_rng(step)
        return {NEED: {path: rng.normal(size=(40, 6)) for path in ("a", "b")}}


def test_a_fit_that_is_killed_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with ExitStack() as files:
        kept, _ = joint_gathered.read_together(
            Twice(), [0, 1], NEED, files, with_steps=False
        )
        # What has no name while it is used needs nobody to delete it.
        assert list(tmp_path.iterdir()) == []
        assert (
            sorted(kept) == ["a", "b"] and kept["a"].gathered(stacked=True) is not None
        )
