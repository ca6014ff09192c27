"""Results with what a run writes, made up for tests."""

import numpy as np
import xarray as xr

from helpers import concept_trees as made
from helpers import example_texts as examples
from ontogeny.observables import Writing
from ontogeny.observables.pieces import PIECES, object_array


def written(steps=made.STEPS, words=("<s>", " The", " cat", " sat", " mat", "<b>&")):
    """Return a node in which step number t writes the word t % 4 + 1 three times, then as draw."""
    count = len(steps)
    likeliest = np.repeat(1 + np.arange(count)[:, None] % 4, 3, axis=1)
    ids = np.full((count, 2, 2, 3), -1)
    ids[:, 0, 0] = likeliest
    ids[:, 0, 1, :2] = [5, 1]
    ids[:, 1] = ids[:, 0]
    cells = xr.Dataset(
        {
            "written_id": (("step", "prompt", "choice", "written"), ids),
            "prompt_id": (("prompt", "place"), np.array([[0, 1, 2], [0, 3, -1]])),
            "follows_id": (("prompt", "follow"), np.array([[4, 3], [-1, -1]])),
            "prompt_at": ("prompt", [3, 2]),
            "prompt_count": ("prompt", [3, 3]),
            "prompt_start": ("prompt", [1, 1]),
            PIECES: ("vocabulary", object_array(words)),
        },
        coords={"step": np.asarray(steps), "choice": ["likeliest", "drawn"]},
    )
    return Writing().derive(cells, {})


def tree():
    """Return a result with dated texts and what is written."""
    nodes = {"loss": made.loss_story(), "token-losses": examples.losses()}
    return made.tree(nodes | {"writing": written()})
