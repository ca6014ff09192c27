"""Results with joint concepts, names, contexts and answers to gaps, made up for tests."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr

from helpers import compared_runs
from helpers.report_examples import HOSTILE
from ontogeny.claims import to_dataset
from ontogeny.figures import Section, attach
from ontogeny.observables import JointConcepts, Loss
from ontogeny.words.page_claims import claims_of

ENDS = ("", "_low", "_high")
STEPS = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 400, 512)
WORDS = [
    ",",
    "_",
    " the",
    '"',
    "0",
    " of",
    "\n",
    " ",
    "Return",
    " a",
    "(",
    ")",
    " s",
    "é",
    "世",
]
NAMES = [
    "comma",
    "underscore",
    "the, a",
    "double quote",
    "0, 1",
    "of",
    "new line",
    "space",
]


def loss_story(
    losses=None,
    *,
    lines=True,
    learned=True,
    beyond=None,
    changed=True,
    controls=(8.4, 8.7, 8.5),
    below=(32.0, 16.0, 32.0),
    context=True,
    halves=((8.0, 16.0), (32.0, 64.0)),
    steps=STEPS,
):
    """Return the node of a loss with its lines and verdicts, as a study writes them.

    `context` is whether it passed its own word frequencies; None leaves those out, as earlier
    versions did. `halves` are the intervals of half the gain by frequencies and by context.
    """
    steps = np.asarray(steps)
    losses = (
        8.3 - 3.3 * (1 - np.exp(-steps / 40)) if losses is None else np.asarray(losses)
    )
    tree = compared_runs.run(steps=steps, loss=losses, layers=1)
    data = tree["loss"].to_dataset()
    data = data.assign(
        changed=("row", [changed]),
        beyond=("row", [learned if beyond is None else beyond]),
        learned=("row", [learned]),
        can_learn=("row", [True]),
        judgeable=("row", [len(steps) > 5]),
        p_value=("row", [0.0001 if changed else 0.5]),
        noise_known=("row", [True]),
    )
    if lines:
        step, low, high = below
        data = data.assign(
            loss_uniform=8.3178,
            loss_unigram=6.32,
            loss_below_unigram=step,
            loss_below_unigram_low=low,
            loss_below_unigram_high=high,
        )
    if lines and context is not None:
        data = _with_own_lines(data, below if context else (np.nan,) * 3, halves)
    if controls:
        runs = [f"turned {i}" for i in range(len(controls))]
        spread = np.linspace(0, 1, len(steps))
        data = data.assign(
            control_first=(("row", "run"), np.full((1, len(runs)), losses[0])),
            control_last=(("row", "run"), [list(controls)]),
            control_half_step=(("row", "run"), np.full((1, len(runs)), 100.0)),
            p_control=("row", [0.01]),
            loss_control_low=("step", losses[0] + (min(controls) - losses[0]) * spread),
            loss_control_high=(
                "step",
                losses[0] + (max(controls) - losses[0]) * spread,
            ),
        ).assign_coords(run=runs)
    return data


def _with_own_lines(data, below, halves):
    """Return the node with the model's own word frequencies and what the loss gained by."""
    told = {"loss_below_own_unigram": below}
    kinds = ("frequencies", "context")
    for kind, (low, high) in zip(kinds, halves, strict=True):
        told[f"loss_half_{kind}"] = (high, low, high)
    passed = np.isfinite(below[0])
    own = np.minimum(data.loss + (0.7 if passed else 0.0), data.loss_uniform)
    return data.assign(loss_own_unigram=own).assign(
        {
            f"{name}{end}": x
            for name, ends in told.items()
            for end, x in zip(ENDS, ends, strict=True)
        }
    )


def joint_concepts(
    layers=2,
    latents=12,
    steps=STEPS,
    *,
    names=True,
    named=None,
    contexts="steps",
    control=(1, 2),
    hostile=False,
    tokenizer=True,
    words=None,
    seed=0,
):
    """Return a node of joint concepts as it is described: a life, a name and contexts of each.

    `named` of the concepts of every layer get a name, by default all but the last three;
    `contexts` are of every step, ``"shared"``, or missing (empty).
    """
    rng = np.random.default_rng(seed)
    steps = np.asarray(steps)
    T, L, r = len(steps), layers, latents
    paths = [f"model.layers.{i}.mlp" for i in range(L)]
    words = words or ([*HOSTILE, *WORDS] if hostile else WORDS)
    born = np.minimum(rng.integers(2, max(T - 2, 3), (L, r)), T - 1)
    kind = np.full((L, r), "born", dtype=object)
    kind[:, 0], kind[:, 1], kind[:, -1] = "from the start", "grows", "no concept"
    rise = 1 / (1 + np.exp(-(np.arange(T)[:, None, None] - born) * 1.5))
    rise[:, kind == "from the start"] = 1.0
    strength = rise * rng.uniform(0.05, 0.4, (L, r)) * rng.uniform(0.9, 1.0, (T, L, r))
    told = kind == "born"
    dims = ("layer", "concept")
    found = {
        "strength": (("step", *dims), strength),
        "readability": (
            ("step", *dims),
            np.clip(rise + rng.normal(0, 0.05, rise.shape), 0, 1),
        ),
        "concept_kind": (dims, kind),
        "concept_born": (dims, np.where(told, steps[born], np.nan)),
        "concept_born_after": (dims, np.where(told, steps[born - 1], np.nan)),
        "concept_born_before": (
            dims,
            np.where(told, steps[np.minimum(born + 1, T - 1)], np.nan),
        ),
        "concept_settled": (
            dims,
            np.where(told, steps[np.minimum(born + 2, T - 1)], np.nan),
        ),
        "concept_gone": (dims, np.full((L, r), np.nan)),
    }
    if names:
        count = max(r - 3, 0) if named is None else named
        found |= _described(rng, paths, kind, count, words, control, steps)
    if contexts:
        found |= _contexts(rng, (T, L, r), len(words), contexts == "shared")
    shown = words if tokenizer else [str(100 + i) for i in range(len(words))]
    found["piece_text"] = ("piece", np.array(shown, dtype=object))
    coords = {"step": steps, "layer": paths, "piece": 100 + np.arange(len(words))}
    if names and control:
        coords["run"] = [f"turned {i}" for i in range(len(control))]
    if names:
        coords["position"] = ["token", "token before", "token after", "place"]
    data = xr.Dataset(found, coords=coords)
    return attach(
        data,
        Section("Concepts and their lives", "One dictionary for all {checkpoint}s."),
        [],
    )


def _described(rng, paths, kind, count, words, control, steps):
    L, r = kind.shape
    dims = ("layer", "concept")
    name = np.full((L, r), "", dtype=object)
    name[:, :count] = [
        [NAMES[(j + i) % len(NAMES)] for j in range(count)] for i in range(L)
    ]
    name[kind == "no concept"] = ""
    sharp = np.where(
        name != "", rng.uniform(0.4, 0.9, (L, r)), rng.uniform(0.05, 0.2, (L, r))
    )
    share = np.sort(rng.dirichlet(np.ones(5), (L, r)), axis=-1)[..., ::-1]
    ids = 100 + rng.integers(0, len(words), (L, r, 5))
    wide = (len(steps), L, r)
    found = {
        "name": (dims, name),
        "concentration": (dims, sharp),
        "concentration_untrained": (
            ("layer", "untrained"),
            rng.uniform(0.05, 0.3, (L, 20)),
        ),
        "concentration_limit": ("layer", np.full(L, 0.28)),
        "name_p": (dims, np.where(name != "", 0.01, 0.6)),
        "named": ("layer", (name != "").sum(axis=1)),
        "token_id": ((*dims, "rank"), ids),
        "token_share": ((*dims, "rank"), share),
        "firing": (dims, rng.uniform(0.01, 0.1, (L, r))),
        "enrichment": ((*dims, "position"), rng.uniform(-0.1, 0.8, (L, r, 4))),
        "written_up_id": (
            ("step", *dims, "rank"),
            100 + rng.integers(0, len(words), (*wide, 5)),
        ),
        "written_up": (("step", *dims, "rank"), rng.uniform(0.2, 1, (*wide, 5))),
        "written_random": (("step", *dims), np.full(wide, 0.31)),
        "near": (("step", *dims, "neighbour"), rng.integers(0, r, (*wide, 3))),
        "near_cosine": (
            ("step", *dims, "neighbour"),
            rng.uniform(-0.6, 0.6, (*wide, 3)),
        ),
    }
    if control:
        counts = np.tile(np.array(control), (L, 1))
        found["named_control"] = (("layer", "run"), counts)
        found["n_concepts_control"] = (("layer", "run"), np.full_like(counts, 11))
        found["n_born_control"] = (("layer", "run"), counts // 2)
        read = np.full((L, counts.shape[1], wide[0]), np.nan)
        read[..., ::3] = 0.5
        found["explained_control"] = (("layer", "run", "step"), read)
        found["mean_life_control"] = (
            ("layer", "run", "step"),
            read + rng.uniform(0, 0.4, read.shape),
        )
    return found


def _contexts(rng, shape, words, shared):
    T, L, r = shape
    wide = (L, r, 4, 13) if shared else (T, L, r, 4, 13)
    dims = ("layer", "concept", "example", "place")
    dims, start = (dims, "shared_") if shared else (("step", *dims), "")
    ids = 100 + rng.integers(0, words, wide)
    ids[..., 0, 10:] = -1
    codes = rng.uniform(0, 0.5, wide).astype("float32")
    codes[..., 6] = 1.0
    return {f"{start}context_id": (dims, ids), f"{start}context_code": (dims, codes)}


def concepts_of_steps(layers=2, latents=6, steps=STEPS, seed=0):
    """Return nodes of concepts that were fitted to every step alone, and of their tracks."""
    rng = np.random.default_rng(seed)
    T, L, r = len(steps), layers, latents
    paths = [f"model.layers.{i}.mlp" for i in range(L)]
    wide = ("step", "layer", "concept")
    name = np.full((T, L, r), "", dtype=object)
    name[..., : r // 2] = rng.choice(NAMES, (T, L, r // 2))
    found = {
        "name": (wide, name),
        "concentration": (wide, rng.uniform(0.1, 0.9, (T, L, r))),
        "concentration_limit": (("step", "layer"), np.full((T, L), 0.28)),
        "token_id": ((*wide, "rank"), 100 + rng.integers(0, len(WORDS), (T, L, r, 5))),
        "token_share": ((*wide, "rank"), rng.uniform(0, 0.3, (T, L, r, 5))),
        "firing": (wide, rng.uniform(0.01, 0.1, (T, L, r))),
        "named": (("step", "layer"), (name != "").sum(axis=-1)),
        **_contexts(rng, (T, L, r), len(WORDS), False),
        "piece_text": ("piece", np.array(WORDS, dtype=object)),
    }
    coords = {
        "step": np.asarray(steps),
        "layer": paths,
        "piece": 100 + np.arange(len(WORDS)),
    }
    data = attach(xr.Dataset(found, coords=coords), Section("ICA concepts", ""), [])
    track = np.tile(np.arange(r), (L, T, 1))
    track[:, T // 2 :, 0] = r  # one concept is lost half-way, and another is born
    tracks = xr.Dataset(
        {"track": (("layer", "step", "concept"), track)},
        {"step": coords["step"], "layer": paths},
    )
    return {"concepts-ica": data, "concepts-ica-tracks": tracks}


def predictions(steps=STEPS, gaps=6, seed=0):
    """Return a node of answers to gaps: one answer to all at first, then the right ones."""
    rng = np.random.default_rng(seed)
    steps = np.asarray(steps)
    T = len(steps)
    right = 100 + np.arange(gaps) % len(WORDS)
    ids = 100 + rng.integers(0, len(WORDS), (T, gaps, 3))
    ids[: T // 2, :, 0] = 101
    ids[T // 2 :, :, 0] = right
    share = np.sort(rng.dirichlet(np.ones(4), (T, gaps))[..., :3], axis=-1)[..., ::-1]
    share[: T // 3] *= 0.01
    return xr.Dataset(
        {
            "answer_id": (("step", "gap", "rank"), ids),
            "answer_probability": (("step", "gap", "rank"), share),
            "right_id": ("gap", right),
            "right_probability": (("step", "gap"), share[..., 0]),
            "right_leads_from": ("gap", np.full(gaps, float(steps[T // 2]))),
            "gap_before": ("gap", [f"Return the number {i} of" for i in range(gaps)]),
            "gap_after": ("gap", ["in the list."] * gaps),
            "piece_text": ("piece", np.array(WORDS, dtype=object)),
        },
        coords={"step": steps, "piece": 100 + np.arange(len(WORDS))},
    )


def tree(
    nodes,
    *,
    controls=("turned 0", "turned 1", "turned 2"),
    steps=STEPS,
    observables=None,
    **attributes,
):
    """Return a merged result of these nodes; `observables` are further ones of the settings.

    It holds what the nodes claim, as the observables of their names say it.
    """
    joint = {"kind": "joint-concepts", "readable": 0.6}
    settings = {"observables": {"joint-concepts": joint, **(observables or {})}}
    made = {
        o.kind: o.claims(o.kind, nodes[o.kind])
        for o in (Loss(), JointConcepts())
        if o.kind in nodes and "failed" not in nodes[o.kind].attrs
    }
    findings = json.loads(attributes.get("findings", "[]"))
    told = to_dataset(claims_of(nodes, made, findings, {"loss": Loss().quantities}))
    result = xr.DataTree.from_dict({"/": told, **nodes})
    result.attrs = {
        "title": "A made-up run",
        "steps": json.dumps([int(step) for step in steps]),
        "findings": "[]",
        "controls": json.dumps([{"name": name} for name in controls]),
        "settings": json.dumps(settings),
        **attributes,
    }
    return result


def learned(**options):
    """Return the result of a run that learned, with named concepts, controls and gaps."""
    return tree(
        {
            "loss": loss_story(),
            "joint-concepts": joint_concepts(**options),
            "predictions": predictions(),
        }
    )
