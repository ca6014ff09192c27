"""Merged results made up for tests of the report, in the schema that docs/design.md states."""

from __future__ import annotations

import json
import math

import numpy as np
import xarray as xr

from ontogeny.figures import Band, Curves, Heatmap, NullComparison, Section, attach

STEPS = [
    0,
    1,
    2,
    4,
    8,
    16,
    32,
    64,
    100,
    128,
    160,
    200,
    250,
    300,
    350,
    400,
    450,
    500,
    550,
    600,
]
STEPS += [650, 700, 760, 840, 920, 1000]

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "<b>bold</b> &amp; %{x} $a$",
    "\u2028\x00\"'`{{ 7*7 }}",
    "مرحبا 世界 🙂",
]


def variable(dims, values, name="", units="1", symbol=""):
    attributes = {"long_name": name, "units": units, "symbol": symbol}
    return (dims, np.asarray(values), {k: v for k, v in attributes.items() if v})


def saturating(steps, half, sharpness=1.6):
    """From 0 at step 0 to 1 at the last step, half-way near `half`."""
    steps = np.asarray(steps, dtype=float)
    rise = steps**sharpness / (steps**sharpness + half**sharpness)
    span = rise[-1] - rise[0]
    return (rise - rise[0]) / (span or 1.0)


def rows(steps, layers, name, first_half, pause, rng, developed=None, ends=(4.0, 2.0)):
    """Chart variables of rows that develop, later in deeper layers; the others only jitter."""
    developed = (
        np.ones(len(layers), bool) if developed is None else np.asarray(developed)
    )
    halves = np.where(developed, first_half + pause * np.arange(len(layers)), math.nan)
    progress = np.empty((len(layers), len(steps)))
    for i, moved in enumerate(developed):
        noise = rng.normal(0, 0.012, len(steps)) * (np.arange(len(steps)) > 0)
        smooth = (
            saturating(steps, halves[i]) if moved else rng.normal(0.5, 0.4, len(steps))
        )
        progress[i] = smooth + noise
    variables = {
        "progress": (("row", "step"), progress),
        "distinct": (("row", "step"), (progress > 0.06) & developed[:, None]),
        "half_step": ("row", halves),
        "half_step_low": ("row", halves * 0.86),
        "half_step_high": ("row", halves * 1.18),
        "settled_step": ("row", np.where(developed, 840.0, math.nan)),
        "p_value": ("row", np.where(developed, 0.0001, 0.4)),
        "changed": ("row", developed),
        "first_value": ("row", np.full(len(layers), float(ends[0]))),
        "last_value": ("row", np.full(len(layers), float(ends[1]))),
    }
    labels = [f"{layer} · {name}" if layer else name for layer in layers]
    names = ("row", [name] * len(layers))
    return variables, {"row": labels, "row_name": names, "row_layer": ("row", layers)}


def loss_node(steps, rng, developed=True):
    loss = (
        8.3 - 4.1 * saturating(steps, 140) * developed + rng.normal(0, 0.02, len(steps))
    )
    ends = loss[0], loss[-1]
    chart, coords = rows(
        steps, [""], "Loss on held-out text", 140, 0, rng, [developed], ends
    )
    unit = "nats/token"
    name = "Loss on held-out text"
    data = xr.Dataset(
        {
            "loss": variable("step", loss.astype("float32"), name, unit, "L(θ)"),
            "loss_low": variable(
                "step", loss - 0.04, "lower end of the 95% interval", unit
            ),
            "loss_high": variable(
                "step", loss + 0.04, "upper end of the 95% interval", unit
            ),
            **chart,
        },
        coords={"step": steps, **coords},
    )
    figure = Curves(
        "loss",
        "Loss on fixed held-out text",
        value="loss",
        series=None,
        interval=("loss_low", "loss_high"),
        caption="Mean over texts; the band is the 95% interval over texts.",
    )
    section = Section(
        "Loss",
        "Mean loss of every text in nats per predicted token, on texts that training never saw.",
        symbol="L(θ) = −(1/|M|) Σ log p(xᵢ | x∖ᵢ)",
        null="A model that knows only token frequencies has 6.9 nats.",
        care="The masked positions are the same at every checkpoint.",
    )
    sentence = f"Loss went from {loss[0]:.2f} to {loss[-1]:.2f} nats per token."
    return attach(data, section, [figure], [sentence], "track")


def concepts_node(steps, layers, extractor, rng, developed=True, missing=True):
    name = extractor.upper()
    x = np.asarray(steps, dtype=float)
    curve = np.stack([1 - saturating(x, 220 + 60 * d) for d in range(len(layers))])
    curve = curve if developed else np.full_like(curve, 0.5)
    norms = 14 + 20 * saturating(x, 300)
    before = x < x[-1]
    value = np.stack([curve * 0.5 + 0.42 * before, curve * 0.8 + 0.05 * before]) * norms
    value *= 1 + rng.normal(0, 0.01, value.shape)
    value[:, :, -1] = 0
    status = np.full((len(x), len(layers)), "done", dtype=object)
    if missing and len(steps) > 9 and len(layers) > 1:
        value[:, 1, 9] = math.nan
        status[9, 1] = f"failed: {name} did not converge in 400 iterations"
    floor = np.array([[0.34], [0.09]]) * np.ones(len(layers)) * norms.mean()
    flags = [developed] * len(layers)
    chart, coords = rows(steps, layers, f"{name} concepts", 220, 60, rng, flags)
    dims = ("distance", "layer", "step")
    words = "distance of the dictionary to that of the last {checkpoint}"
    single, ratio = value.astype("float32"), (value / norms).astype("float32")
    data = xr.Dataset(
        {
            "distance_to_last": variable(
                dims, single, words, "activation", "d(W_t, W_T)"
            ),
            "distance_relative": variable(
                dims, ratio, "distance as a fraction of the norm"
            ),
            "low": variable(dims, value * 0.96, "", "activation"),
            "high": variable(dims, value * 1.04, "", "activation"),
            "floor_low": variable(("distance", "layer"), floor * 0.0, "", "activation"),
            "floor_high": variable(("distance", "layer"), floor, "", "activation"),
            "status": (("step", "layer"), status.astype(str)),
            **chart,
        },
        coords={
            "step": steps,
            "layer": layers,
            "distance": ["frobenius", "procrustes"],
            **coords,
        },
    )
    figure = Curves(
        "distance",
        "Distance to the last {checkpoint}'s concepts",
        value="distance_to_last",
        relative="distance_relative",
        relative_label="fraction of the norm",
        facet="distance",
        interval=("low", "high"),
        bands=[Band("floor_low", "floor_high", "refit on other tokens")],
        caption="Frobenius compares the dictionaries as the solver returned them.",
    )
    section = Section(
        f"{name} concepts",
        f"How far the {name} dictionary of a layer is from that of the reference {{checkpoint}}.",
        symbol="d_P(W, V) = min_Q ‖W − VQ‖_F",
        null="Refitting on other tokens of the same checkpoint moves it by the grey band.",
        care="The raw Frobenius distance measures mostly order, sign and rotation.",
        source="Algorithm 2; Definition 8.5",
    )
    return attach(data, section, [figure])


def entropy_node(steps, layers, heads, rng, developed=True):
    fall = saturating(steps, 90)[:, None, None] * rng.uniform(
        0.2, 2.4, (1, len(layers), heads)
    )
    entropy = (
        4.2 - fall * developed + rng.normal(0, 0.02, (len(steps), len(layers), heads))
    )
    names = [layer.replace("mlp", "self_attn") for layer in layers]
    flags = [developed and i not in (0, 5) for i in range(len(layers))]
    chart, coords = rows(steps, names, "attention entropy", 60, 12, rng, flags)
    dims = ("step", "layer", "head")
    data = xr.Dataset(
        {
            "entropy": variable(dims, entropy, "attention entropy", "nats", "H"),
            "mean": variable(dims[:2], entropy.mean(-1), "mean over heads", "nats"),
            "uniform_low": variable((), 4.15, "", "nats"),
            "uniform_high": variable((), 4.24, "", "nats"),
            **chart,
        },
        coords={"step": steps, "layer": names, "head": np.arange(heads), **coords},
    )
    band = Band("uniform_low", "uniform_high", "uniform attention")
    figures = [
        Curves("mean", "Mean entropy of a layer's heads", value="mean", bands=[band]),
        Heatmap(
            "heads", "Entropy of every head", value="entropy", y="head", facet="layer"
        ),
    ]
    section = Section(
        "Attention entropy",
        "Entropy of the attention of a token, averaged over ordinary tokens.",
        symbol="H = −Σ aᵢ log aᵢ",
        null="Uniform attention over the visible tokens.",
    )
    return attach(data, section, figures)


def weights_node(layers, rng):
    kinds = ("self_attn.q_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight")
    blocks = [f"{layer.rsplit('.', 1)[0]}.{kind}" for layer in layers for kind in kinds]
    rank = rng.integers(2, 6, len(blocks)).astype(float)
    words = "principal components that hold 90% of the variance"
    data = xr.Dataset(
        {
            "variance_rank": variable("block", rank, words, "1", "r₉₀"),
            "walk_low": variable("block", np.full(len(blocks), 5.0)),
            "walk_high": variable("block", np.full(len(blocks), 6.0)),
            "shuffled_low": variable("block", rank - 0.5),
            "shuffled_high": variable("block", rank + 1.5),
        },
        coords={"block": blocks},
    )
    figure = NullComparison(
        "rank",
        "Variance rank of every weight matrix",
        value="variance_rank",
        bands=[
            Band("walk_low", "walk_high", "random walk"),
            Band("shuffled_low", "shuffled_high", "directions in random order"),
        ],
    )
    section = Section(
        "Variance rank of weight trajectories",
        "Number of principal components that hold 90% of a weight matrix's motion.",
        symbol="r₉₀",
        null="A random walk with the same step lengths has 5 to 6.",
        care="A low rank alone says nothing: a random walk has a low rank too.",
    )
    return attach(data, section, [figure], role="motion")


def moving_node(steps, layers, rng):
    names = [layer.replace("mlp", "mlp.up_proj") for layer in layers]
    chart, coords = rows(steps, names, "distance from start", 120, 10, rng)
    path = 8 * np.stack([saturating(steps, 120 + 10 * i) for i in range(len(layers))])
    words = "distance from the first {checkpoint}"
    data = xr.Dataset(
        {"moved": variable(("layer", "step"), path, words, "weight"), **chart},
        coords={"step": steps, "layer": layers, **coords},
    )
    figure = Curves("moved", "Distance of the weights from their start", value="moved")
    section = Section("Weight displacement", "Norm of the displacement from {step} 0.")
    return attach(data, section, [figure], role="motion")


def matrix_node(steps):
    """What a third party might bring: a figure with a dimension left for the reader to choose."""
    x = np.log1p(np.asarray(steps, dtype=float))
    between = np.abs(x[:, None, None] - x[None, :, None]) * np.array([1.0, 2.0])
    dims = ("step", "step_", "extractor")
    data = xr.Dataset(
        {"between": variable(dims, between, "distance between {checkpoint}s")},
        coords={"step": steps, "step_": steps, "extractor": ["svd", "ica"]},
    )
    figure = Heatmap(
        "between",
        "Distance of every {checkpoint} to every other",
        value="between",
        y="step_",
    )
    section = Section(
        "A third party's matrix", "An observable that this library does not know."
    )
    return attach(data, section, [figure])


def root_attributes(steps, title, **more):
    settings = {
        "observables": {"concepts": {"extractor": "ica", "n_concepts": 24}, "loss": {}}
    }
    sizes = {"name": "held-out", "texts": 250, "tokens": 31204, "fingerprint": "5f1c0d"}
    attributes = {
        "title": title,
        "created": "2026-03-05T14:02:11+00:00",
        "version": "0.1.0",
        "settings": settings,
        "provenance": {
            "python": "3.11.9",
            "torch": "2.13.0",
            "threads": 1,
            "device": "cpu",
        },
        "steps": [int(s) for s in steps],
        "reference_step": int(steps[-1]),
        "findings": [],
        "levels": {"change": 0.01, "control": 0.05, "least_steps": 6},
        "inputs": [sizes],
        "model": {"class": "EuroBertForMaskedLM", "parameters": 1812224},
        **more,
    }
    return {
        k: v if isinstance(v, str | int) else json.dumps(v)
        for k, v in attributes.items()
    }


def layer_names(count):
    return [f"model.layers.{i}.mlp" for i in range(count)]


def finding(steps, message, certainty="certain"):
    return {
        "kind": "identical",
        "certainty": certainty,
        "steps": steps,
        "message": message,
    }


def tree_of(nodes, steps, title, **more):
    tree = xr.DataTree.from_dict(nodes)
    tree.attrs = root_attributes(steps, title, **more)
    return tree


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
        "matrix": matrix_node(steps),
    }
    findings = [finding([550, 600], "{Step}s 550 and 600 hold identical weights.")]
    title = "Tiny EuroBERT on Python's documentation"
    return tree_of(nodes, steps, title, findings=findings)


CONTROLS = ["turned 0", "turned 1", "turned 2"]


def judged_rows(node, of, change, learned, beyond, seed=0, controls=CONTROLS):
    """A node with verdicts on its rows of the variable `of`, `change` from first to last.

    With `controls` the values of control runs stand beside them: as much as the run where nothing
    is `beyond`, else a tenth.
    """
    rng = np.random.default_rng(seed)
    data, changed = node, node["changed"].values
    count = data.sizes["row"]
    beyond = np.full(count, beyond and bool(controls)) & changed
    learned = np.full(count, learned and bool(controls)) & changed
    first, last = change
    found = {
        "first_value": np.full(count, float(first)),
        "last_value": np.full(count, float(last)),
        "p_uncorrected": data["p_value"].values / 10,
        "row_quantity": np.full(count, of),
        "noise_known": np.ones(count, bool),
        "judgeable": np.ones(count, bool),
        "changed": changed,
        "can_learn": np.full(count, node.attrs["role"] == "track"),
        "own_value": np.ones(count, bool),
        "not_improved": np.full(count, node.attrs["role"] == "track" and last > first),
        "beyond": beyond | learned,
        "learned": learned,
    }
    if controls:
        found["p_control"] = np.where(found["beyond"], 0.01, 0.8)
        found["p_learned"] = np.where(learned, 0.01, 0.8)
    data = data.assign({name: ("row", values) for name, values in found.items()})
    if not controls:
        return data
    shape = (count, len(controls))
    share = np.where(found["beyond"], 0.1, 1.0)[:, None] * (
        1 + rng.normal(0, 0.05, shape)
    )
    half = np.nan_to_num(node["half_step"].values, nan=200.0)[:, None]
    half = half * (1 + rng.normal(0, 0.2, shape))
    return data.assign(
        control_first=(("row", "run"), np.full(shape, float(first))),
        control_last=(("row", "run"), first + (last - first) * share),
        control_half_step=(("row", "run"), half),
    ).assign_coords(run=list(controls))


def with_control_band(node, name, low, high):
    """A node whose first figure has the band of its control runs."""
    shape = node[name].dims, np.broadcast_to(low, node[name].shape)
    top = node[name].dims, np.broadcast_to(high, node[name].shape)
    data = node.assign({f"{name}_control_low": shape, f"{name}_control_high": top})
    figures = json.loads(data.attrs["figures"])
    band = Band(f"{name}_control_low", f"{name}_control_high", "control runs (turned)")
    figures[0]["bands"] = [*figures[0].get("bands", []), vars(band)]
    return data.assign_attrs(figures=json.dumps(figures))


def controlled_tree(layers=6, steps=STEPS, seed=0, learned=True, controls=CONTROLS):
    """A run with control runs: one that learned its loss, or one that moved as far for nothing."""
    rng = np.random.default_rng(seed)
    names = layer_names(layers)
    loss = loss_node(steps, rng)
    if not learned:
        risen = 8.34 + 0.05 * (8.3 - loss["loss"])
        loss = loss.assign(
            {name: loss[name] * 0 + risen for name in ("loss_low", "loss_high")}
        )
        loss["loss"] = loss["loss"] * 0 + risen
        loss.attrs["statements"] = json.dumps(["The loss rose."])
    verdicts = {
        "learned": learned,
        "beyond": learned,
        "seed": seed,
        "controls": controls,
    }
    loss = judged_rows(loss, "loss", (8.34, 5.02 if learned else 8.53), **verdicts)
    verdicts |= {"learned": False}
    concepts = concepts_node(steps, names, "ica", rng)
    concepts = judged_rows(concepts, "distance_to_last", (21.0, 3.0), **verdicts)
    concepts = concepts.assign(own_value=("row", np.zeros(layers, bool)))
    entropy = entropy_node(steps, names, 4, rng)
    entropy = judged_rows(entropy, "mean", (4.2, 2.9), **verdicts)
    if controls:
        loss = with_control_band(loss, "loss", 8.2, 8.7)
        entropy_mean = entropy["mean"].values
        entropy = with_control_band(
            entropy, "mean", entropy_mean + 0.2, entropy_mean + 0.5
        )
    nodes = {
        "loss": loss,
        "concepts-ica": concepts,
        "attention-entropy": entropy,
        "displacement": moving_node(steps, names, rng),
    }
    listed = [
        {
            "name": n,
            "kind": "turned",
            "random_state": i,
            "steps": [int(s) for s in steps],
        }
        for i, n in enumerate(controls)
    ]
    return tree_of(nodes, steps, "A run with controls", controls=listed)


def still_tree(layers=4, steps=STEPS, seed=0):
    """A run in which nothing but the weights moves."""
    rng = np.random.default_rng(seed)
    names = layer_names(layers)
    nodes = {
        "loss": loss_node(steps, rng, developed=False),
        "concepts-ica": concepts_node(steps, names, "ica", rng, developed=False),
        "displacement": moving_node(steps, names, rng),
    }
    return tree_of(nodes, steps, "A run that only jitters")


def formula_tree():
    """A tree whose layers are formulas, as tokens and titles of strangers can be."""
    tree = developing_tree()
    data = tree["concepts-ica"].to_dataset(inherit=False)
    names = [
        f"={name}" if i else f"@{name}" for i, name in enumerate(data.layer.values)
    ]
    tree["concepts-ica"] = xr.DataTree(data.assign_coords(layer=names))
    return tree


def hostile_tree():
    """Names and texts that try to become markup."""
    rng = np.random.default_rng(0)
    bad = HOSTILE[0]
    concepts = concepts_node(STEPS, HOSTILE, "ica", rng).assign_coords(
        distance=HOSTILE[1:3]
    )
    concepts["distance_to_last"].attrs |= {
        "long_name": bad,
        "units": bad,
        "symbol": bad,
    }
    band = Band("floor_low", "floor_high", bad)
    shared = {"value": "distance_to_last", "facet": "distance", "caption": bad}
    figures = [
        Curves(bad, bad, bands=[band], **shared),
        Heatmap("heat", HOSTILE[2], **shared),
    ]
    section = Section(bad, HOSTILE[1], symbol=bad, care=HOSTILE[2])
    ranks = xr.Dataset(
        {"rank": ("block", np.arange(5.0)), "low": ((), 1.0), "high": ((), 2.0)},
        coords={"block": HOSTILE},
    )
    dots = NullComparison(
        bad, bad, value="rank", bands=[Band("low", "high", HOSTILE[2])]
    )
    nodes = {
        "a<b>": attach(concepts, section, figures, [bad, HOSTILE[3]]),
        "rank": attach(ranks, Section("Rank", bad), [dots]),
        "loss": loss_node(STEPS, rng),
    }
    more = {
        "version": bad,
        "created": bad,
        "findings": [finding([100], bad, bad)],
        "settings": {bad: {HOSTILE[1]: HOSTILE[3]}},
        "model": {"class": bad},
        "inputs": [{"name": bad, "texts": 1}],
    }
    return tree_of(nodes, STEPS, bad, **more)


def huge_tree(steps=154, layers=32, heads=32, seed=0):
    """As many steps and layers as the largest public suites have."""
    rng = np.random.default_rng(seed)
    inner = np.unique(np.geomspace(1, 142_000, steps * 4).astype(int))
    where = [0, *sorted(rng.choice(inner, steps - 2, replace=False).tolist()), 143_000]
    names = layer_names(layers)
    nodes = {
        "loss": loss_node(where, rng),
        "attention-entropy": entropy_node(where, names, heads, rng),
        **{
            f"concepts-{e}": concepts_node(where, names, e, rng)
            for e in ("svd", "pca", "ica")
        },
        "variance-rank": weights_node(names, rng),
    }
    return tree_of(nodes, where, "A large run")


def plain_tree(steps=STEPS, layers=3, fill=None, **attributes):
    """One figure of each kind over steps and layers, and no rows, track or root attributes."""
    steps = list(steps)
    values = np.add.outer(np.arange(len(steps)), np.arange(layers)) / 7
    values = values if fill is None else np.full_like(values, fill)
    data = xr.Dataset(
        {"value": (("step", "layer"), values), "low": ((), 0.0), "high": ((), 1.0)},
        coords={"step": steps, "layer": layer_names(layers)},
    )
    bands = [Band("low", "high", "chance")]
    figures = [
        Curves("curves", "Curves", value="value", bands=bands),
        Heatmap("heatmap", "Heatmap", value="value"),
        NullComparison("null", "Null", value="value", rows="layer", bands=bands),
    ]
    section = Section("Plain", "Plain values.")
    tree = xr.DataTree.from_dict({"plain": attach(data, section, figures)})
    tree.attrs = attributes
    return tree


def odd_tree():
    """Nodes with one layer, with one value throughout, and with no value at all."""
    odd = {
        "one": {"layers": 1},
        "constant": {"fill": 2.0},
        "missing": {"fill": math.nan},
    }
    return xr.DataTree.from_dict(
        {name: plain_tree(**how)["plain"].to_dataset() for name, how in odd.items()}
    )
