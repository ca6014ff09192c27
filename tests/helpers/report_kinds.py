"""Results with tables, scatters, clouds, matrices over steps, regimes and theory, for tests."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from helpers.report_examples import (
    HOSTILE,
    STEPS,
    layer_names,
    loss_node,
    saturating,
    tree_of,
    variable,
)
from ontogeny.figures import (
    Boundary,
    Column,
    Curves,
    Footer,
    Heatmap,
    Pair,
    Scatter,
    Section,
    Table,
    Words,
    attach,
)

SCRIPTS = {
    "+": ["the", "of", "and", "▁house", "Ġcat", "über", "naïve", "ﬁn"],
    "-": ["مرحبا", "كتاب", "שלום", "سلام", "world", "\u202eevil"],
    "++": ["世界", "漢字", "ことば", "한국어", "monday", "tuesday"],
    "+-": ["🙂", "a\nb", "don't", "x<y", "&amp;", "{{ 7*7 }}"],
    "--": [],
}


def scores_node(layers=4, seed=0):
    """A table as in the report's Table 2: two concepts, two windows, means and deviations."""
    rng = np.random.default_rng(seed)
    data = {}
    for concept, shift in (("semantic", -0.12), ("syntactic", 0.14)):
        early = rng.uniform(0.4, 0.6, layers)
        data |= {
            f"{concept}_early": variable("layer", early, "20k to 100k"),
            f"{concept}_early_sd": variable("layer", rng.uniform(0.01, 0.05, layers)),
            f"{concept}_late": variable("layer", early + shift, "380k to 460k"),
            f"{concept}_late_sd": variable("layer", rng.uniform(0.01, 0.05, layers)),
            f"{concept}_sum": variable((), shift * layers),
            f"{concept}_aware": variable((), shift * layers / 3),
        }
    data["semantic_late"][1][1] = math.nan
    node = xr.Dataset(data, coords={"layer": layer_names(layers)})
    names = [f"{c}_{w}" for c in ("semantic", "syntactic") for w in ("early", "late")]
    columns = [Column(n, sd=f"{n}_sd", over=n.split("_")[0]) for n in names]
    totals = [
        Footer(
            label,
            {f"{c}_late": f"{c}_{total}" for c in ("semantic", "syntactic")},
            True,
        )
        for label, total in (
            ("sum of differences", "sum"),
            ("sigma-aware sum", "aware"),
        )
    ]
    table = Table(
        "windows",
        "TCAV scores in two windows",
        columns=columns,
        pairs=[Pair(names[0], names[1]), Pair(names[2], names[3])],
        footer=totals,
        caption="Mean and standard deviation over the steps of a window.",
    )
    return attach(node, Section("TCAV", "Scores of two concepts."), [table])


def sizes_node():
    """A table in groups, with numbers, counts, truth values, intervals and words."""
    value = np.array([[12.3456, 0.5], [1234.5, math.nan]])
    data = xr.Dataset(
        {
            "dimension": variable(("extractor", "step"), value, "dimension", "nats"),
            "low": (("extractor", "step"), value - 0.25),
            "high": (("extractor", "step"), value + 0.25),
            "points": (("extractor", "step"), np.array([[1200, 3], [10_000, 0]])),
            "defined": (("extractor", "step"), np.array([[True, False], [True, True]])),
            "verdict": (
                ("extractor", "step"),
                np.array([["a_b", "50% & $x$"], ["#1 {z}", ""]]),
            ),
        },
        coords={"extractor": ["ica", "pca"], "step": [0, 1000]},
    )
    columns = [
        Column("dimension", "dimension", interval=("low", "high")),
        Column("points", "points"),
        Column("defined", "defined"),
        Column("verdict", "why"),
    ]
    table = Table(
        "sizes", "Dimensions", columns=columns, rows="step", group="extractor"
    )
    return attach(data, Section("Dimension", "TwoNN."), [table])


def points_node(steps, concepts=12, seed=0):
    """Concepts of all steps in one plane and in space, coloured by step; and words by kind."""
    rng = np.random.default_rng(seed)
    start, end = rng.normal(size=(2, 3, 1, concepts))
    share = saturating(steps, 120)[:, None]
    places = (
        (1 - share) * start
        + share * end
        + rng.normal(0, 0.02, (3, len(steps), concepts))
    )
    dims = ("step", "concept")
    data = {
        name: variable(dims, places[k], f"component {k + 1}")
        for k, name in enumerate("abc")
    }
    data["size"] = variable("concept", np.linspace(1, 900, concepts), "singular value")
    data["kind"] = (
        "concept",
        np.array([["noun", "verb", "digit"][i % 3] for i in range(concepts)]),
    )
    data["word"] = ("concept", np.array([f"Ġword{i}" for i in range(concepts)]))
    data["late"] = variable(
        "concept", np.linspace(3, 800, concepts)[::-1], "learned", "step"
    )
    shared = {"points": ("step", "concept"), "colour": "step"}
    figures = [
        Scatter("plane", "Concepts of all steps", x="a", y="b", **shared),
        Scatter(
            "space", "The same in space", x="a", y="b", z="c", label="word", **shared
        ),
        Scatter(
            "order",
            "Order of learning",
            x="size",
            y="late",
            points="concept",
            colour="kind",
            label="word",
            x_scale="log",
            y_scale="log",
        ),
        Scatter(
            "last", "Words at one step", x="a", y="c", points="concept", colour="size"
        ),
    ]
    coords = {"step": steps, "concept": np.arange(concepts)}
    return attach(xr.Dataset(data, coords), Section("Plane", "Components."), figures)


def words_node(scripts=None, nested=True):
    """Clouds in many scripts, one of them empty, as a tree."""
    scripts = SCRIPTS if scripts is None else scripts
    most = max(map(len, scripts.values()))
    texts = [words + [""] * (most - len(words)) for words in scripts.values()]
    weights = np.linspace(0.1, 1, most) * np.ones((len(scripts), 1))
    weights = np.where(np.array(texts, dtype=object) == "", math.nan, weights)
    parents = {"++": "+", "+-": "+", "--": "-"}
    data = xr.Dataset(
        {
            "token": (("orthant", "rank"), np.array(texts, dtype=object)),
            "typicality": variable(("orthant", "rank"), weights, "typicality"),
            "above": ("orthant", np.array([parents.get(name, "") for name in scripts])),
            "where": (("orthant", "rank"), np.array(texts, dtype=object)),
        },
        coords={"orthant": list(scripts)},
    )
    shared = {
        "value": "typicality",
        "words": "token",
        "groups": "orthant",
        "context": "where",
    }
    figures = [Words("clouds", "Words by orthant", **shared)]
    if nested:
        figures.append(Words("tree", "Refinement", parent="above", **shared))
    return attach(data, Section("Orthants", "Signs."), figures)


def matrices_node(steps, kinds=5):
    """A confusion matrix for each step."""
    share = saturating(steps, 100)[:, None, None]
    value = share * np.eye(kinds) + (1 - share) / kinds
    value[2:3, 1, 3] = math.nan
    names = [f"digit {k}" for k in range(kinds)]
    data = xr.Dataset(
        {
            "confusion": variable(
                ("step", "true", "predicted"), value, "share of the true class"
            )
        },
        coords={"step": steps, "true": names, "predicted": names},
    )
    figure = Heatmap(
        "confusion",
        "Confusion",
        value="confusion",
        x="predicted",
        y="true",
        facet="step",
        square=True,
    )
    return attach(data, Section("Confusion", "Shares."), [figure])


def regimes_node(steps, layers=3, seed=0):
    """Curves with one boundary for all, one for each layer, and a theory beside them."""
    rng = np.random.default_rng(seed)
    names = layer_names(layers)
    curve = np.stack([1 - saturating(steps, 60 + 40 * d) for d in range(layers)])
    noise = rng.normal(0, 0.04, curve.shape) * (np.asarray(steps) > 200)
    own = np.array([180.0, 240.0, math.nan][:layers] + [300.0] * max(layers - 3, 0))
    data = xr.Dataset(
        {
            "distance": variable(("layer", "step"), curve + noise, "distance"),
            "closed_form": variable(("layer", "step"), curve, "closed form"),
            "boundary": ((), 200.0),
            "boundary_low": ((), 150.0),
            "boundary_high": ((), 320.0),
            "ratio": ((), 6.0),
            "own": ("layer", own),
            "own_low": ("layer", own * 0.8),
            "own_high": ("layer", own * 1.3),
        },
        coords={"step": steps, "layer": names},
    )
    shared = Boundary(
        "boundary", "boundary_low", "boundary_high", "ratio", "smooth to noisy"
    )
    each = Boundary("own", "own_low", "own_high")
    figures = [
        Curves("joint", "Joint boundary", value="distance", boundaries=[shared]),
        Curves(
            "each",
            "Measured and closed form",
            value="distance",
            boundaries=[each],
            reference="closed_form",
            reference_label="closed form",
        ),
    ]
    return attach(
        data, Section("Regimes", "Smooth and noisy."), figures, role="regimes"
    )


def kinds_tree(steps=STEPS):
    """Every kind of figure that is no plain panel."""
    steps = list(steps)
    nodes = {
        "loss": loss_node(steps, np.random.default_rng(0)),
        "regimes": regimes_node(steps),
        "scores": scores_node(),
        "sizes": sizes_node(),
        "points": points_node(steps),
        "words": words_node(),
        "matrices": matrices_node(steps),
    }
    return tree_of(nodes, steps, "Tables, points and words")


def hostile_kinds_tree():
    """Texts that try to become markup, in every place that shows texts of a result."""
    bad = HOSTILE
    count = len(bad)
    numbers = np.arange(float(count))
    attrs = {"long_name": bad[1], "units": bad[0]}
    table = xr.Dataset(
        {
            "v": ("item", numbers, attrs),
            "t": ("item", np.array(bad)),
            "s": ((), 1.0, attrs),
        },
        coords={"item": bad},
    )
    columns = [Column("v", bad[1], over=bad[1]), Column("t", bad[2])]
    figures = [
        Table(
            bad[1],
            bad[1],
            columns=columns,
            rows="item",
            footer=[Footer(bad[1], {"v": "s"})],
        )
    ]
    points = xr.Dataset(
        {
            **dict.fromkeys("xyz", ("item", numbers, attrs)),
            "t": ("item", np.array(bad)),
            "k": ("item", np.array(bad), attrs),
        },
        coords={"item": bad},
    )
    shared = {"points": "item", "colour": "k", "label": "t"}
    clouds = xr.Dataset(
        {
            "w": (("g", "rank"), np.ones((count, count)), attrs),
            "t": (("g", "rank"), np.array([bad] * count)),
            "p": ("g", np.array(["", *bad[:-1]])),
        },
        coords={"g": bad},
    )
    curves = xr.Dataset(
        {"v": ("step", np.arange(26.0)), "b": ((), 100.0)}, {"step": STEPS}
    )
    dashed = Curves(
        "c",
        bad[1],
        value="v",
        series=None,
        reference="v",
        reference_label=bad[1],
        boundaries=[Boundary("b", label=bad[1])],
    )
    section = Section(bad[1], bad[1])
    nodes = {
        "table": attach(table, section, figures),
        "points": attach(
            points,
            section,
            [
                Scatter("two", bad[1], x="x", y="y", **shared),
                Scatter("three", bad[1], x="x", y="y", z="z", **shared),
            ],
        ),
        "words": attach(
            clouds,
            section,
            [
                Words(
                    "w",
                    bad[1],
                    value="w",
                    words="t",
                    groups="g",
                    heading="p",
                    context="t",
                ),
                Words("n", bad[1], value="w", words="t", groups="g", parent="p"),
            ],
        ),
        "curves": attach(curves, section, [dashed], role="regimes"),
    }
    return tree_of(nodes, STEPS, bad[1])


def sparse_kinds_tree():
    """One step, one row, one point, one word, nothing at all, and ten thousand points."""
    rng = np.random.default_rng(0)
    many = xr.Dataset(
        {
            "x": ("token", rng.normal(size=10_000)),
            "y": ("token", rng.normal(size=10_000)),
        }
    )
    none = xr.Dataset(
        {"x": ("token", [math.nan, 1.0]), "y": ("token", [1.0, math.nan])}
    )
    empty = xr.Dataset({"v": ("item", [math.nan])}, coords={"item": ["only"]})
    section = Section("Odd", "Odd results.")
    plane = {"x": "x", "y": "y", "points": "token"}
    nodes = {
        "many": attach(many, section, [Scatter("many", "Many points", **plane)]),
        "none": attach(none, section, [Scatter("none", "No point", **plane)]),
        "single": attach(
            none.isel(token=[0]).fillna(2.0), section, [Scatter("one", "One", **plane)]
        ),
        "nothing": attach(
            empty,
            section,
            [Table("nothing", "Nothing", columns=[Column("v")], rows="item")],
        ),
        "word": words_node({"+": ["alone"]}, nested=False),
        "silent": words_node({"+": [""]}, nested=False),
        "matrix": matrices_node([0]),
        "regimes": regimes_node([0], layers=1),
        "points": points_node([0], concepts=1),
    }
    return tree_of(nodes, [0], "Odd results")
