"""Draw the figures of the guide "What a checkpoint study is" from a demo's study.

    ontogeny demo --quick --output DEMO
    python examples/concept_figures.py DEMO docs/images/study

Three SVG files. Every number in them is read from DEMO/study.
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import ontogeny as og

INK, BLUE, GREY, BAND = "#1b1b1b", "#2464a4", "#8a8a8a", "#d9d9d9"
STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans", "sans-serif"],
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "svg.fonttype": "none",  # text stays text: small files, and readers can select it
    "svg.hashsalt": "ontogeny",
}


def controls(tree: xr.DataTree, folder: Path) -> None:
    """The loss and the way of the activations, of the run and of its control runs."""
    loss, way = (
        tree["loss"].to_dataset(),
        tree["activation-decay"].to_dataset().isel(layer=0),
    )
    figure, (left, right) = _panels()
    _level(left, loss.loss_uniform, "uniform guess")
    _level(left, loss.loss_unigram, "word frequencies")
    _curves(left, loss.loss, loss.loss_control)
    left.set_title("Loss on held-out texts (nats per token)")
    _curves(right, way.relative, way.relative_control)
    right.set_title("Distance of activations to the last step")
    right.set_ylim(bottom=0)
    right.legend(frameon=False, loc="lower left")
    _save(figure, folder / "controls.svg")


def half_change(tree: xr.DataTree, folder: Path) -> None:
    """Where the loss has made half of its way, and how well that is known."""
    loss = tree["loss"].to_dataset()
    row = loss.isel(row=0)
    figure, axes = _panels(1)
    axes.fill_between(_places(loss), loss.loss_low, loss.loss_high, color=BAND, lw=0)
    axes.plot(_places(loss), loss.loss, color=BLUE, lw=1.4)
    half = (float(row.first_value) + float(row.last_value)) / 2
    _level(axes, row.first_value, "first value")
    _level(axes, half, "half of the change")
    _level(axes, row.last_value, "last value")
    step, low, high = (float(row[f"half_step{end}"]) for end in ("", "_low", "_high"))
    axes.plot(_place([low, high]), [half, half], color=INK, lw=2, solid_capstyle="butt")
    axes.plot(_place([step]), [half], "o", color=INK, ms=6)
    words = f"half-change step {step:.0f}\n(95 % interval {low:.0f} to {high:.0f})"
    axes.annotate(
        words, (float(_place([high])[0]), half), (6, 6), textcoords="offset points"
    )
    axes.set_title("Loss on held-out texts (nats per token)")
    _ticks(axes, int(loss.step[-1]))
    _save(figure, folder / "half-change.svg")


def dictionaries(tree: xr.DataTree, folder: Path) -> None:
    """Two distances of the same ICA dictionaries, beside refits and chance."""
    node = tree["concepts-ica"].to_dataset().isel(layer=-1, step=slice(None, -1))
    figure, (left, right) = _panels()
    for axes, distance, alignment, title in (
        (left, "frobenius", "as returned", "Dictionaries as the solver returned them"),
        (
            right,
            "procrustes",
            "rotation removed",
            "The same, up to order, signs and rotation",
        ),
    ):
        each = node.sel(distance=distance, alignment=alignment)
        for null, colour, words in (
            ("chance", BAND, "chance"),
            ("refit", "#f0c48a", "refits"),
        ):
            low, high = (
                each[f"relative_distance_{null}_{end}"] for end in ("low", "high")
            )
            axes.fill_between(_places(each), low, high, color=colour, lw=0, label=words)
        axes.plot(
            _places(each), each.relative_distance, color=BLUE, lw=1.4, label="the run"
        )
        axes.set_title(title)
        axes.set_ylim(0, 1.6)
        _ticks(axes, int(each.step[-1]))
    left.set_ylabel("distance to the last step")
    right.legend(frameon=False, loc="upper right", ncols=3)
    _save(figure, folder / "dictionaries.svg")


def _panels(count: int = 2) -> tuple[Figure, Axes | np.ndarray]:
    figure = Figure(
        figsize=(4.2 * count if count > 1 else 5.4, 2.9), layout="constrained"
    )
    return figure, figure.subplots(1, count)


def _place(steps: object) -> np.ndarray:
    """Return the place of steps on a logarithmic axis that has a place for step 0."""
    return np.log2(1 + np.asarray(steps, float))


def _places(data: xr.Dataset | xr.DataArray) -> np.ndarray:
    return _place(data.step)


def _level(axes: Axes, value: xr.DataArray | float, words: str) -> None:
    """Draw a dotted line across, with words below its left end."""
    axes.axhline(float(value), color=GREY, lw=0.9, ls=":")
    place = (0, float(value))
    axes.annotate(
        words, place, (0, -2), textcoords="offset points", va="top", color=GREY
    )


def _curves(axes: Axes, run: xr.DataArray, others: xr.DataArray) -> None:
    for number, other in enumerate(others):
        known = other[np.isfinite(other.values)]
        axes.plot(
            _places(known), known, "o-", color=GREY, mfc="white", ms=4, lw=0.9,
            label="control runs" if number == 0 else None,
        )  # fmt: skip
    axes.plot(_places(run), run, color=BLUE, lw=1.6, label="the run")
    _ticks(axes, int(run.step[-1]))


def _ticks(axes: Axes, last: int) -> None:
    steps = [step for step in (0, 1, 4, 16, 64, 256) if step < last / 2] + [last]
    axes.set_xticks(_place(steps), [str(step) for step in steps])
    axes.set_xlabel("training step")


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})
    print(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("demo", type=Path, help="folder of `ontogeny demo`")
    parser.add_argument("pictures", type=Path, help="folder to write to")
    options = parser.parse_args()
    options.pictures.mkdir(parents=True, exist_ok=True)
    tree = og.open_study(options.demo / "study").tree
    with matplotlib.rc_context(STYLE):
        for draw in (controls, half_change, dictionaries):
            draw(tree, options.pictures)


if __name__ == "__main__":
    main()
