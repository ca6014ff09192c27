"""Train the cases of the guide "What is known to develop" and draw their pictures.

    python examples/known_developments.py FOLDER docs/images/known --quick --seeds 5

One PNG file for each case. A case that FOLDER holds is not trained again. Thick lines are means
over seeds, thin ones single seeds, grey ones the turned control runs.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import ontogeny as og
from ontogeny_papers import reproduce

BLUE, RED, GREEN, GREY = "#2464a4", "#b3452c", "#3a7d44", "#9a9a9a"
Series = Callable[[xr.Dataset], xr.DataArray]


def induction(folder: Path, figure: Figure) -> None:
    """The strongest induction head and the in-context-learning score."""
    left, right = figure.subplots(1, 2)
    heads = _nodes(folder, "two-layers", "attention-heads")
    strongest = {"score": "induction", "layer": "layers.1.self_attn"}
    _draw(left, heads, lambda node: node.strongest_score.sel(strongest), BLUE)
    _draw(left, heads, lambda node: node.strongest_score_control.sel(strongest), GREY)
    left.set_title("Induction score, second layer")
    scores = _nodes(folder, "two-layers", "in-context-learning")
    _draw(right, scores, lambda node: node.score, RED)
    _draw(right, scores, lambda node: node.score_control, GREY)
    right.set_title("In-context-learning score (nats)")


def grokking(folder: Path, figure: Figure) -> None:
    """Accuracy on training and held-out pairs, and the frequencies of the embedding."""
    left, right = figure.subplots(1, 2)
    accuracy = _nodes(folder, "weight-decay", "readout-accuracy")
    _draw(left, accuracy, lambda node: node.accuracy.sel(set="trained"), BLUE)
    _draw(left, accuracy, lambda node: node.accuracy.sel(set="held out"), RED)
    _draw(left, accuracy, lambda node: node.accuracy_control.sel(set="held out"), GREY)
    left.set_title("Accuracy: training pairs (blue), held out (red)")
    nodes = _nodes(folder, "weight-decay", "embedding-frequencies")
    _draw(right, nodes, lambda node: node.frequencies.isel(layer=0), GREEN)
    _draw(right, nodes, lambda node: node.frequencies_control.isel(layer=0), GREY)
    right.set_ylim(bottom=0)
    right.set_title("Frequencies of the embedding")


def ngrams(folder: Path, figure: Figure) -> None:
    """Distance to n-grams, and the in-context-learning score; steps on a logarithmic axis."""
    left, right = figure.subplots(1, 2)
    nodes = _nodes(folder, "language-model", "ngram-agreement")
    for name, colour in (("unigrams", BLUE), ("bigrams", RED), ("trigrams", GREEN)):
        _draw(left, nodes, lambda node, at=name: node.divergence.sel(ngram=at), colour)
        _draw(
            left,
            nodes,
            lambda node, at=name: node.divergence_control.sel(ngram=at),
            GREY,
        )
    left.set_ylim(bottom=0)
    left.set_title("Nats to unigrams (blue), bigrams (red), trigrams")
    scores = _nodes(folder, "language-model", "in-context-learning")
    _draw(right, scores, lambda node: node.score, RED)
    _draw(right, scores, lambda node: node.score_control, GREY)
    right.set_title("In-context-learning score (nats)")
    for axes in (left, right):
        axes.set_xscale("symlog", linthresh=1)
        axes.set_xlim(left=0)


def superposition(folder: Path, figure: Figure) -> None:
    """Features represented, and their dimensions, at three sparsities."""
    left, right = figure.subplots(1, 2)
    nodes = _nodes(folder, "five-features--two-dimensions", "feature-geometry")
    for layer, colour in zip(nodes[0].layer.values, (BLUE, RED, GREEN), strict=True):
        _draw(
            left, nodes, lambda node, at=layer: node.represented.sel(layer=at), colour
        )
        _draw(
            right,
            nodes,
            lambda node, at=layer: node.dimensionality.sel(layer=at),
            colour,
        )
    left.set_title("Features: 0 (blue), 80 (red), 90 % zeros")
    for published in (1.0, 0.5, 0.4):
        right.axhline(published, color=GREY, lw=0.8, ls=":")
    right.set_ylim(0, 1.05)
    right.set_title("Dimensions of each (dotted: published)")


def curriculum(folder: Path, figure: Figure) -> None:
    """Accuracy on both tasks over a switch, and mixed."""
    for axes, label in zip(figure.subplots(1, 2), ("switch", "mixed"), strict=True):
        nodes = _nodes(folder, label, "readout-accuracy")
        _draw(axes, nodes, lambda node: node.accuracy.sel(set="m=1"), BLUE)
        _draw(axes, nodes, lambda node: node.accuracy.sel(set="m=2"), RED)
        _draw(axes, nodes, lambda node: node.accuracy_control.sel(set="m=1"), GREY)
        axes.set_ylim(0, 1.05)
        axes.set_title(f"Accuracy, {label}: m = 1 (blue), m = 2 (red)")


CASES = {
    "known-induction-heads": induction,
    "known-grokking": grokking,
    "known-ngrams": ngrams,
    "known-superposition": superposition,
    "known-curriculum-switch": curriculum,
}


def _nodes(folder: Path, label: str, name: str) -> list[xr.Dataset]:
    """Return a node of the study of each seed."""
    places = sorted((folder / "studies").glob(f"{label}-seed-*"))
    return [og.open_study(place).result[name].to_dataset().load() for place in places]


def _draw(axes: Axes, nodes: Sequence[xr.Dataset], series: Series, colour: str) -> None:
    """Draw a series of each seed, and the mean where it is not of control runs."""
    found = [series(node) for node in nodes]
    for one in found:
        runs = one.dropna("step", how="all").transpose("step", ...)
        axes.plot(runs.step.values, runs.values, color=colour, lw=0.6, alpha=0.6)
    if "run" not in found[0].dims:
        mean = np.mean([one.values for one in found], axis=0)
        axes.plot(found[0].step.values, mean, color=colour, lw=1.8)
    axes.set_xlabel("training step")


def main() -> None:
    """Train what is missing, and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("pictures", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, help="by default those of the setting")
    given = parser.parse_args()
    matplotlib.use("agg")
    matplotlib.rcParams.update(
        {
            "font.size": 8,
            "axes.titlesize": 8.5,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )
    given.pictures.mkdir(parents=True, exist_ok=True)
    for name, draw in CASES.items():
        page = reproduce.recipe(name).run(
            given.folder, quick=given.quick, seeds=given.seeds
        )
        figure = Figure(figsize=(6.8, 2.3), layout="constrained")
        draw(page.parent, figure)
        figure.savefig(given.pictures / f"{name.removeprefix('known-')}.png", dpi=110)


if __name__ == "__main__":
    main()
