"""Merged results made up for tests of the report, in the schema that docs/design.md states."""

from __future__ import annotations

import json
import math

import numpy as np
import xarray as xr

from ontogeny.figures import Band, Curves, Heatmap, NullComparison, Section, attach

STEPS = [0, 1, 2, 4, 8, 16, 32, 64, 100, 128, 160, 200, 250, 300, 350, 400, 450, 500, 550, 600,
         650, 700, 760, 840, 920, 1000]  # fmt: skip


def saturating(steps: np.ndarray, half: float, sharpness: float = 1.6) -> np.ndarray:
    """From 0 at step 0 to 1 at the last step, half-way near `half`."""
    rise = steps**sharpness / (steps**sharpness + half**sharpness)
    return (rise - rise[0]) / (rise[-1] - rise[0])


def row_variables(labels, layers, progress, distinct, developed, halves):
    """The chart's variables of a node."""
    halves = np.asarray(halves, dtype=float)
    return {
        "progress": (("row", "step"), np.asarray(progress)),
        "distinct": (("row", "step"), np.asarray(distinct)),
        "half_step": ("row", halves),
        "half_step_low": ("row", halves * 0.86),
        "half_step_high": ("row", halves * 1.18),
        "settled_step": ("row", np.where(np.isfinite(halves), 840.0, math.nan)),
        "p_value": ("row", np.where(developed, 0.0001, 0.4)),
        "developed": ("row", np.asarray(developed)),
    }, {"row": labels, "row_layer": ("row", layers)}


def developing_rows(steps, layers, name, first_half, pause, rng, developed=None):
    """Rows that go from 0 to 1, later in deeper layers; those not `developed` only jitter."""
    developed = [True] * len(layers) if developed is None else developed
    progress, halves = [], []
    for i, moved in enumerate(developed):
        half = first_half + pause * i
        smooth = saturating(np.asarray(steps, dtype=float), half)
        noise = rng.normal(0, 0.012, len(steps)) * (np.arange(len(steps)) > 0)
        progress.append(smooth + noise if moved else rng.normal(0.5, 0.4, len(steps)))
        halves.append(half if moved else math.nan)
    progress = np.asarray(progress)
    distinct = (progress > 0.06) & np.asarray(developed)[:, None]
    labels = [f"{layer} · {name}" if layer else name for layer in layers]
    return row_variables(labels, layers, progress, distinct, developed, halves)


def loss_node(steps, rng, developed=True):
    x = np.asarray(steps, dtype=float)
    loss = (8.3 - 4.1 * saturating(x, 140)) if developed else np.full(len(x), 8.3)
    loss = loss + rng.normal(0, 0.02, len(x))
    rows, coords = developing_rows(steps, [""], "Loss on held-out text", 140, 0, rng, [developed])
    data = xr.Dataset(
        {
            "loss": ("step", loss.astype("float32"), {"long_name": "Loss on held-out text", "units": "nats/token", "symbol": "L(θ)"}),
            "loss_low": ("step", loss - 0.04, {"long_name": "lower end of the 95% interval", "units": "nats/token"}),
            "loss_high": ("step", loss + 0.04, {"long_name": "upper end of the 95% interval", "units": "nats/token"}),
            **rows,
        },
        coords={"step": steps, **coords},
    )  # fmt: skip
    figure = Curves(
        "loss", "Loss on fixed held-out text", value="loss", series=None,
        interval=("loss_low", "loss_high"), caption="Mean over texts; the band is the 95% interval over texts.",
    )  # fmt: skip
    section = Section(
        "Loss", "Mean loss of every text in nats per predicted token, on texts that training never saw.",
        symbol="L(θ) = −(1/|M|) Σ log p(xᵢ | x∖ᵢ)", null="A model that knows only token frequencies has 6.9 nats.",
        care="The masked positions are the same at every checkpoint.",
    )  # fmt: skip
    return attach(data, section, [figure], [f"Loss went from {loss[0]:.2f} to {loss[-1]:.2f} nats per token."], "track")


def concepts_node(steps, layers, extractor, rng, developed=True, missing=True):
    x = np.asarray(steps, dtype=float)
    distances = ["frobenius", "procrustes"]
    depth = np.arange(len(layers))
    curve = np.stack(
        [1 - saturating(x, 220 + 60 * d) if developed else np.full(len(x), 0.5) for d in depth]
    )
    norms = 14 + 20 * saturating(x, 300)
    value = (
        np.stack([curve * 0.5 + 0.42 * (x < x[-1]), curve * 0.8 + 0.05 * (x < x[-1])])[:, :, :]
        * norms
    )
    value = value * (1 + rng.normal(0, 0.01, value.shape))
    value[:, :, -1] = 0
    status = np.full((len(x), len(layers)), "done", dtype=object)
    if missing:
        value[:, 1, 9] = math.nan
        status[9, 1] = "failed: ICA did not converge in 400 iterations"
    floor = np.stack([np.full(len(layers), 0.34), np.full(len(layers), 0.09)]) * norms.mean()
    rows, coords = developing_rows(
        steps, layers, f"{extractor.upper()} concepts", 220, 60, rng, [developed] * len(layers)
    )
    units = {"units": "activation"}
    data = xr.Dataset(
        {
            "distance_to_last": (("distance", "layer", "step"), value.astype("float32"), {"long_name": "distance of the dictionary to that of the last step", "symbol": "d(W_t, W_T)", **units}),
            "distance_relative": (("distance", "layer", "step"), (value / norms).astype("float32"), {"long_name": "distance as a fraction of the norm", "units": "1"}),
            "low": (("distance", "layer", "step"), value * 0.96, units),
            "high": (("distance", "layer", "step"), value * 1.04, units),
            "floor_low": (("distance", "layer"), floor * 0.0, units),
            "floor_high": (("distance", "layer"), floor, units),
            "status": (("step", "layer"), status.astype(str)),
            **rows,
        },
        coords={"step": steps, "layer": layers, "distance": distances, **coords},
    )  # fmt: skip
    figure = Curves(
        "distance", "Distance to the last step's concepts", value="distance_to_last", relative="distance_relative",
        relative_label="fraction of the norm", facet="distance", series="layer", interval=("low", "high"),
        bands=[Band("floor_low", "floor_high", "refit on other tokens")],
        caption="Frobenius compares the dictionaries as the solver returned them, Procrustes after the best rotation.",
    )  # fmt: skip
    section = Section(
        f"{extractor.upper()} concepts", f"How far the {extractor.upper()} dictionary of a layer is from that of the reference step.",
        symbol="d_P(W, V) = min_Q ‖W − VQ‖_F", null="Refitting on other tokens of the same checkpoint moves the dictionary by the grey band.",
        care="The raw Frobenius distance measures mostly order, sign and rotation of the solution.", source="Algorithm 2; Definition 8.5",
    )  # fmt: skip
    return attach(data, section, [figure], role="development")


def entropy_node(steps, layers, heads, rng, developed=True):
    x = np.asarray(steps, dtype=float)
    fall = saturating(x, 90)[:, None, None] * rng.uniform(0.2, 2.4, (1, len(layers), heads))
    entropy = 4.2 - (fall if developed else 0) + rng.normal(0, 0.02, (len(x), len(layers), heads))
    flags = [developed and i not in (0, 5) for i in range(len(layers))]
    names = [layer.replace("mlp", "self_attn") for layer in layers]
    rows, coords = developing_rows(steps, names, "attention entropy", 60, 12, rng, flags)
    data = xr.Dataset(
        {
            "entropy": (("step", "layer", "head"), entropy, {"long_name": "attention entropy", "units": "nats", "symbol": "H"}),
            "mean": (("step", "layer"), entropy.mean("head") if isinstance(entropy, xr.DataArray) else entropy.mean(-1), {"long_name": "mean over heads", "units": "nats"}),
            "uniform_low": ((), 4.15, {"units": "nats"}),
            "uniform_high": ((), 4.24, {"units": "nats"}),
            **rows,
        },
        coords={"step": steps, "layer": names, "head": np.arange(heads), **coords},
    )  # fmt: skip
    figures = [
        Curves("mean", "Mean entropy of a layer's heads", value="mean", bands=[Band("uniform_low", "uniform_high", "uniform attention")]),
        Heatmap("heads", "Entropy of every head", value="entropy", x="step", y="head", facet="layer", caption="Low entropy: the head looks at few tokens."),
    ]  # fmt: skip
    section = Section("Attention entropy", "Entropy of the attention of a token, averaged over ordinary tokens.", symbol="H = −Σ aᵢ log aᵢ", null="Uniform attention over the visible tokens.")  # fmt: skip
    return attach(data, section, figures, role="development")


def weights_node(layers, rng):
    kinds = ("self_attn.q_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight")
    blocks = [f"{layer.rsplit('.', 1)[0]}.{kind}" for layer in layers for kind in kinds]
    rank = rng.integers(2, 6, len(blocks)).astype(float)
    data = xr.Dataset(
        {
            "variance_rank": ("block", rank, {"long_name": "principal components that hold 90% of the variance", "units": "1", "symbol": "r₉₀"}),
            "walk_low": ("block", np.full(len(blocks), 5.0)),
            "walk_high": ("block", np.full(len(blocks), 6.0)),
            "shuffled_low": ("block", rank - 0.5),
            "shuffled_high": ("block", rank + 1.5),
        },
        coords={"block": blocks},
    )  # fmt: skip
    figure = NullComparison(
        "rank", "Variance rank of every weight matrix", value="variance_rank", rows="block",
        bands=[Band("walk_low", "walk_high", "random walk"), Band("shuffled_low", "shuffled_high", "shuffled increments")],
    )  # fmt: skip
    section = Section("Variance rank of weight trajectories", "Number of principal components that hold 90% of a weight matrix's motion.", symbol="r₉₀", null="A random walk with the same step lengths has 5 to 6.", care="A low rank alone says nothing: a random walk has a low rank too.")  # fmt: skip
    return attach(data, section, [figure], role="motion")


def moving_node(steps, layers, rng):
    rows, coords = developing_rows(
        steps,
        [layer.replace("mlp", "mlp.up_proj") for layer in layers],
        "distance from start",
        120,
        10,
        rng,
    )
    path = np.stack(
        [saturating(np.asarray(steps, float), 120 + 10 * i) for i in range(len(layers))]
    )
    data = xr.Dataset(
        {"moved": (("layer", "step"), path * 8, {"long_name": "distance from the first step", "units": "weight"}), **rows},
        coords={"step": steps, "layer": layers, **coords},
    )  # fmt: skip
    figure = Curves("moved", "Distance of the weights from their start", value="moved")
    return attach(
        data,
        Section("Weight displacement", "Norm of the displacement from step 0."),
        [figure],
        role="motion",
    )


def matrix_node(steps, rng):
    x = np.log1p(np.asarray(steps, dtype=float))
    data = xr.Dataset(
        {"between": (("step", "step_", "extractor"), np.stack([np.abs(x[:, None] - x[None]) * s for s in (1, 2)], -1), {"long_name": "distance between steps", "units": "1"})},
        coords={"step": steps, "step_": steps, "extractor": ["svd", "ica"]},
    )  # fmt: skip
    figure = Heatmap(
        "between", "Distance of every step to every other", value="between", x="step", y="step_"
    )
    return attach(
        data,
        Section("A third party's matrix", "An observable that this library does not know."),
        [figure],
    )


def root_attributes(steps, title="Tiny EuroBERT on Python's documentation", **more):
    attributes = {
        "title": title,
        "created": "2026-03-05T14:02:11+00:00",
        "version": "0.1.0",
        "settings": json.dumps({"observables": {"concepts": {"extractor": "ica", "n_concepts": 24}, "loss": {}}, "reference": "last"}),
        "provenance": json.dumps({"python": "3.11.9", "torch": "2.13.0", "threads": 1, "device": "cpu"}),
        "steps": json.dumps([int(s) for s in steps]),
        "reference_step": int(steps[-1]),
        "findings": json.dumps([]),
        "inputs": json.dumps([{"name": "held-out", "texts": 250, "tokens": 31204, "fingerprint": "5f1c0d"}]),
        "model": json.dumps({"class": "EuroBertForMaskedLM", "parameters": 1812224}),
    }  # fmt: skip
    return attributes | more


def layer_names(count):
    return [f"model.layers.{i}.mlp" for i in range(count)]


def developing_tree(layers=6, steps=STEPS, seed=0):
    """A run that develops, with a failed cell and one finding of the audit."""
    rng = np.random.default_rng(seed)
    names = layer_names(layers)
    nodes = {
        "loss": loss_node(steps, rng),
        "concepts-ica": concepts_node(steps, names, "ica", rng),
        "concepts-pca": concepts_node(steps, names, "pca", rng, missing=False),
        "attention-entropy": entropy_node(steps, names, 4, rng),
        "variance-rank": weights_node(names, rng),
        "displacement": moving_node(steps, names, rng),
        "matrix": matrix_node(steps, rng),
    }
    findings = [{"kind": "identical", "certainty": "certain", "steps": [550, 600], "message": "Steps 550 and 600 hold identical weights."}]  # fmt: skip
    tree = xr.DataTree.from_dict(nodes)
    tree.attrs = root_attributes(steps, findings=json.dumps(findings))
    return tree


def still_tree(layers=4, steps=STEPS, seed=0):
    """A run in which nothing but the weights moves."""
    rng = np.random.default_rng(seed)
    names = layer_names(layers)
    tree = xr.DataTree.from_dict(
        {
            "loss": loss_node(steps, rng, developed=False),
            "concepts-ica": concepts_node(steps, names, "ica", rng, developed=False),
            "displacement": moving_node(steps, names, rng),
        }
    )
    tree.attrs = root_attributes(steps, "A run that only jitters")
    return tree


HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "<b>bold</b> &amp; %{x} $a$",
    "\u2028\x00\"'`{{ 7*7 }}",
    "مرحبا 世界 🙂",
]


def hostile_tree():
    """Names and texts that try to become markup."""
    rng = np.random.default_rng(0)
    bad = HOSTILE[0]
    concepts = concepts_node(STEPS, HOSTILE, "ica", rng)
    concepts = concepts.assign_coords(distance=[HOSTILE[1], HOSTILE[2]])
    concepts["distance_to_last"].attrs |= {"long_name": bad, "units": bad, "symbol": bad}
    figure = Curves(bad, bad, value="distance_to_last", facet="distance", caption=bad, bands=[Band("floor_low", "floor_high", bad)])  # fmt: skip
    heat = Heatmap("heat", HOSTILE[2], value="distance_to_last", facet="distance", y="layer")
    concepts = attach(concepts, Section(bad, HOSTILE[1], symbol=bad, care=HOSTILE[2]), [figure, heat], [bad, HOSTILE[3]])  # fmt: skip
    rows = xr.Dataset(
        {"rank": ("block", np.arange(5.0)), "low": ((), 1.0), "high": ((), 2.0)},
        coords={"block": HOSTILE},
    )
    dots = NullComparison(bad, bad, value="rank", bands=[Band("low", "high", HOSTILE[2])])
    tree = xr.DataTree.from_dict(
        {
            "a<b>": concepts,
            "rank": attach(rows, Section("Rank", bad), [dots]),
            "loss": loss_node(STEPS, rng),
        }
    )
    findings = [{"kind": bad, "certainty": bad, "steps": [100], "message": bad}]
    tree.attrs = root_attributes(
        STEPS, bad, version=bad, created=bad, findings=json.dumps(findings),
        settings=json.dumps({bad: {HOSTILE[1]: HOSTILE[3]}}), model=json.dumps({"class": bad}),
        inputs=json.dumps([{"name": bad, "texts": 1}]),
    )  # fmt: skip
    return tree


def huge_tree(steps=154, layers=32, heads=32, seed=0):
    """As many steps and layers as the largest public suites have."""
    rng = np.random.default_rng(seed)
    where = sorted({0, *np.unique(np.geomspace(1, 143000, steps * 2).astype(int)).tolist()})
    where = [0, *sorted(rng.choice(where[1:-1], steps - 2, replace=False).tolist()), 143000]
    names = layer_names(layers)
    nodes = {
        "loss": loss_node(where, rng),
        "attention-entropy": entropy_node(where, names, heads, rng),
    }
    for extractor in ("svd", "pca", "ica"):
        nodes[f"concepts-{extractor}"] = concepts_node(where, names, extractor, rng)
    nodes["variance-rank"] = weights_node(names, rng)
    tree = xr.DataTree.from_dict(nodes)
    tree.attrs = root_attributes(where, "A large run")
    return tree
