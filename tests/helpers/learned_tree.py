"""A node of concepts beyond the token as a study writes it, made up for tests."""

import numpy as np
import xarray as xr

from ontogeny.figures import Section, attach

STEPS = (0, 1, 2, 4, 8, 16, 32, 64)
BANDS = ("top", "middle", "low", "near miss")
WORDS = [" said", " the", ",", " whale", "."]


def learned_concepts(steps=STEPS, lives=True, control=True):
    """Return two layers: of three concepts with the kinds and names below, and of two.

    The second name of the first layer is better than all of the controls, the first one is not.
    """
    L, r, T = 2, 3, len(steps)
    there = np.array([[True] * 3, [True, True, False]])
    names = [["after “said”", "word modal", ""], ["after “the”", "", ""]]
    phi = np.array([[0.3, 0.6, 0.0], [0.5, 0.0, 0.0]])
    dims = ("layer", "concept")
    steps_of = ("step", *dims)
    rise = np.linspace(0, 1, T)[:, None, None] * np.where(there, 1.0, np.nan)
    places = np.arange(-10, 5)
    contexts = (*dims, "band", "example", "place")
    shape = (L, r, len(BANDS), 2, len(places))
    ids = np.tile(np.arange(len(places)) % len(WORDS), (*shape[:-1], 1))
    ids[:, :, 3] = -1  # no near miss
    codes = np.full(shape, 0.25)
    codes[..., 10] = 1.0
    found = {
        "strength": (steps_of, rise),
        "readability": (steps_of, rise),
        "refit_strength": (("refit", *steps_of), np.stack([rise, rise])),
        "name": (dims, np.array(names, dtype=object)),
        "rule": (dims, np.array(names, dtype=object)),
        "words": (dims, np.full((L, r), "said · the", dtype=object)),
        "named_phi": (dims, phi),
        "named_about": (dims, np.where(phi > 0, [[1, 0, 0], [1, 0, 0]], -1.0)),
        "again": (dims, np.where(there, 0.9, np.nan)),
        "in_learned": (dims, np.where(there, 0.5, np.nan)),
        "firing": (dims, np.where(there, 0.03, np.nan)),
        "decoder": ((*steps_of, "feature"), np.zeros((T, L, r, 4))),
        "histogram": ((*dims, "bin"), np.tile([90.0, 7.0, 3.0], (L, r, 1))),
        "context_id": (contexts, ids),
        "context_code": (contexts, codes),
        "context_text": (contexts[:-1], np.zeros(shape[:-1], dtype=int)),
        "context_place": (contexts[:-1], np.zeros(shape[:-1], dtype=int)),
        "piece_text": ("piece", np.array(WORDS, dtype=object)),
        "n_again": ("layer", [3.0, 2.0]),
        "n_named": ("layer", [2.0, 1.0]),
        "n_untrained": ("layer", [1.0, 1.0]),
        **{
            f"name_auc{end}": (dims, np.full((L, r), value))
            for end, value in (("", 0.8), ("_low", 0.7), ("_high", 0.9))
        },
        **{
            f"name_{part}": (dims, np.full((L, r), share))
            for part, share in (("top", 0.9), ("middle", 0.6), ("other", 0.003))
        },
    }
    if lives:
        found |= _lives(steps, there)
    coords = {
        "step": list(steps),
        "layer": [f"layers.{i}" for i in range(L)],
        "concept": np.arange(r),
        "band": list(BANDS),
        "bin": [-1.0, 0.0, 1.0],
        "place": places,
        "piece": np.arange(len(WORDS)),
        "refit": ["half 1", "half 2"],
    }
    if control:
        coords["run"] = ["turned 0", "turned 1"]
        found |= _controls(T, L, r, lives)
    data = xr.Dataset(found, coords)
    return attach(
        data, Section("Concepts that training made", "What tokens leave."), []
    )


def _lives(steps, there):
    dims = ("layer", "concept")
    kinds = np.where(there, "born", "").astype(object)
    kinds[0, 0], kinds[1, 1] = "from the start", "in the learned part alone"
    born = kinds == "born"
    told = {"born": 4.0, "born_after": 2.0, "born_before": 8.0}
    return {
        "concept_kind": (dims, kinds),
        **{
            f"concept_{name}": (dims, np.where(born, step, np.nan))
            for name, step in told.items()
        },
        "concept_gone": (dims, np.full(there.shape, np.nan)),
        "concept_born_share": (dims, np.where(born, 0.9, np.nan)),
        "n_born": ("layer", born.sum(axis=1).astype(float)),
        "least_readability": 0.6,
    }


def _controls(T, L, r, lives):
    read = np.full((2, T, L), np.nan)
    read[:, [0, 4, 7]] = 0.4
    phi = np.zeros((2, L, r))
    phi[:, 0, 0] = 0.4  # of the first layer alone, after a word
    phi[:, 0, 1] = 0.7  # a position
    about = np.full((2, L, r), -1.0)
    about[:, 0, :2] = [1, 3]
    counts = {"again": (1.0, 2.0), "named": (0.0, 1.0), "born": (0.0, 0.0)}
    return {
        "token_share_control": (("run", "step", "layer"), read),
        "named_phi_control": (("run", "layer", "control_concept"), phi),
        "named_about_control": (("run", "layer", "control_concept"), about),
        **{
            f"n_{name}_control": (("layer", "run"), np.tile(values, (L, 1)))
            for name, values in counts.items()
            if lives or name != "born"
        },
    }
