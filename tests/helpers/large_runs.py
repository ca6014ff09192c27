"""Results as large, as small and as incomplete as pages must bear, made up for tests."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr

from helpers import concept_trees, example_texts, report_examples, report_kinds
from helpers.report_examples import CONTROLS, STEPS, layer_names, variable
from ontogeny.figures import Curves, Section, attach

PYTHIA = (0, *(2**i for i in range(10)), *range(1000, 143_001, 1000))
"""The checkpoints of the Pythia suite: 154 of them, to step 143,000."""

CLOUDS = ("the, of, and", "Arabic and Hebrew", "weekdays", "signs", "nothing")


def large_tree(
    layers=24,
    steps=PYTHIA,
    latents=20,
    *,
    controls=CONTROLS,
    learned=True,
    tokenizer=True,
    **concepts,
):
    """Return a run with every kind of section; `concepts` are options of the joint concepts."""
    steps = list(steps)
    names = layer_names(layers)
    rng = np.random.default_rng(0)
    tree = report_examples.controlled_tree(
        layers, steps, learned=learned, controls=controls
    )
    nodes = {path: node.to_dataset() for path, node in tree.children.items()}
    nodes["loss"] = _loss_with_lines(nodes["loss"], steps, learned, controls)
    counts = (1, 2, 1)[: len(controls)]
    nodes |= {
        "joint-concepts": concept_trees.joint_concepts(
            layers,
            latents,
            steps,
            control=counts,
            contexts="shared" if layers > 30 else "steps",
            tokenizer=tokenizer,
            **concepts,
        ),
        "predictions": concept_trees.predictions(steps),
        "token-losses": example_texts.losses(steps, tokenizer=tokenizer),
        "variance-rank": report_examples.weights_node(names, rng),
        "spectra": spectra_node(steps, names),
        "plane": report_kinds.points_node(steps),
        "words": report_kinds.words_node(
            dict(zip(CLOUDS, report_kinds.SCRIPTS.values(), strict=True))
        ),
    }
    settings = {
        "observables": {"joint-concepts": {"kind": "joint-concepts", "readable": 0.6}}
    }
    result = xr.DataTree.from_dict(nodes)
    result.attrs = {
        **tree.attrs,
        "settings": json.dumps(settings),
        "title": "A large run",
    }
    return result


def _loss_with_lines(node, steps, learned, controls):
    """Return the loss with what guesses cost, and where it passed them if it did."""
    lines = {"loss_uniform": 8.32, "loss_unigram": 6.32}
    if learned and len(steps) > 5:
        passed = steps[int(np.argmax(node["loss"].values < lines["loss_unigram"]))]
        lines |= {
            "loss_below_unigram": float(passed),
            "loss_below_unigram_low": float(passed),
        }
        lines["loss_below_unigram_high"] = float(steps[steps.index(passed) + 1])
    return node.assign(lines)


def spectra_node(steps, layers, directions=40):
    """The variance in each direction of a layer, with a menu of layers."""
    kept = [steps[i] for i in np.unique(np.linspace(0, len(steps) - 1, 6).astype(int))]
    flat = np.arange(1, directions + 1.0)
    slope = (
        0.2
        + np.linspace(0, 1, len(kept))[:, None, None]
        + 0.02 * np.arange(len(layers))[:, None]
    )
    data = xr.Dataset(
        {
            "variance_share": variable(
                ("kept_step", "layer", "direction"),
                flat**-slope,
                "share of the variance",
            )
        },
        coords={"kept_step": kept, "layer": layers, "direction": flat.astype(int)},
    )
    figure = Curves(
        "spectrum",
        "Spectrum of the activations",
        value="variance_share",
        x="direction",
        series="kept_step",
        y_scale="log",
    )
    return attach(
        data, Section("Spectra", "Share of the variance in each direction."), [figure]
    )


def walking_tree():
    """Return a random walk of the weights, studied as a run beside controls of its own."""
    return large_tree(3, STEPS, learned=False, named=1)


def short_tree(steps, layers=3, controls=()):
    """Return a run of too few checkpoints to judge anything, and to say when concepts are born."""
    tree = large_tree(layers, steps, controls=controls, learned=False)
    for path, node in tree.children.items():
        data = node.to_dataset()
        lives = [name for name in data if str(name).startswith("concept_")]
        unjudged = {
            name: data[name] & False
            for name in ("judgeable", "changed")
            if name in data
        }
        tree[path] = xr.DataTree(data.drop_vars(lives).assign(unjudged))
    return tree


def failing_tree():
    """Return a run of which one observable failed whole and others at some steps."""
    tree = large_tree(3, STEPS)
    entropy = tree["attention-entropy"].to_dataset()
    gaps = xr.where(entropy["step"] > 500, np.nan, 1.0)
    entropy = entropy.assign(
        mean=entropy["mean"] * gaps, entropy=entropy["entropy"] * gaps
    )
    status = np.where(
        entropy["step"] > 500, "failed: NonFiniteError: entropy is not finite", "done"
    )
    tree["attention-entropy"] = xr.DataTree(entropy.assign(status=("step", status)))
    lost = xr.Dataset(attrs={"failed": "no cell of this observable could be computed"})
    why = np.full(len(STEPS), "failed: LayerMatchError: no layer is called 'layers.9'")
    lost = lost.assign(status=("step", why)).assign_coords(step=STEPS)
    tree["similarity"] = xr.DataTree(
        attach(lost, Section("Similarity", "Between layers."), [])
    )
    return tree


PAGES = {
    "large": large_tree,
    "tall": lambda: large_tree(96, PYTHIA[:11] + PYTHIA[15::16]),
    "one layer": lambda: large_tree(1, STEPS),
    "one checkpoint": lambda: short_tree([1000]),
    "two checkpoints": lambda: short_tree([0, 1000]),
    "without controls": lambda: large_tree(3, STEPS, controls=()),
    "without a tokenizer": lambda: large_tree(3, STEPS, tokenizer=False),
    "failed": failing_tree,
    "walk": walking_tree,
}
"""Pages of every size and in every state, by name."""
