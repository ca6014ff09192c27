"""What each view of several runs shows, in words; the page puts in the run that was chosen."""

from __future__ import annotations

import json
import re

from .drawable import Drawable
from .formats import plural
from .runs import DIFFERENCE, LINES, SIDE, Runs

CHOSEN, OTHER, VALUE = "{run}", "{other}", "{value}"
"""Where the chosen run, of two runs the other one, and the variable that is drawn are named."""

NO_BAND = "No band is drawn: {} no spread between runs."


def captions(drawable: Drawable, runs: Runs) -> dict[str, str]:
    """Return the caption of a figure in each of its views."""
    words = {SIDE: _side, DIFFERENCE: _difference}
    return {
        name: " ".join(
            filter(None, [_still_true(drawable, name, runs), words.get(name, _first)(drawable, runs)])
        )
        for name in runs.views
    }


def difference_caption(drawable: Drawable, runs: Runs) -> str:
    """Return the caption of the difference of the first run."""
    words = captions(drawable, runs)[DIFFERENCE].replace(CHOSEN, runs.names[0])
    return words.replace(OTHER, runs.names[-1])


def _still_true(drawable: Drawable, view: str, runs: Runs) -> str:
    """Return the caption without what it says of lines, panels and shade that the view lacks."""
    if runs.controls and view not in (SIDE, DIFFERENCE):
        return str(drawable.figure.caption)
    gone = r"One line|One panel|.*\bgrey\b|Line:|Shade:" if view == DIFFERENCE else "One line|One panel"
    sentences = re.split(r"(?<=\.)\s+", drawable.figure.caption)
    return " ".join(each for each in sentences if not re.match(gone, each, re.IGNORECASE))


def band_words(drawable: Drawable, runs: Runs) -> str:
    """Return the name of the band of a difference, as it stands in the figure."""
    if runs.controls:
        return "control runs"
    return "SD of the others" if len(runs.others) > 1 else "noise of the texts"


def _first(drawable: Drawable, runs: Runs) -> str:
    if runs.controls:
        return ""
    many = len(runs.names) > LINES
    grey = "Grey band: range of the other runs." if many else "Thin grey lines: the other runs."
    figure = drawable.figure
    shown = ["nulls"] * bool(figure.bands) + ["shade"] * bool(figure.interval)
    beside = f" {' and '.join(shown).capitalize()} are those of {CHOSEN}." if shown else ""
    return f"Dark line: {CHOSEN}. {grey}{beside}"


def _side(drawable: Drawable, runs: Runs) -> str:
    if runs.controls:
        return f"The run and its control runs on the same axes. {_steps_words(drawable, runs)}"
    return "The runs on the same axes."


def _difference(drawable: Drawable, runs: Runs) -> str:
    count = len(runs.others)
    if runs.controls:
        left = len(runs.names) - 1 - count
        out = f" {plural(left, 'control run')} that {'end' if left > 1 else 'ends'} trained " \
              f"{'are' if left > 1 else 'is'} left out." if left else ""  # fmt: skip
        own = "its control run" if count == 1 else f"the mean of its {count} control runs"
        band = (
            "Grey band: where 95 % of further control runs would lie, at each step by itself."
            if count > 1
            else NO_BAND.format("one control run gives")
        )
        drawn = f"the run minus {own}.{out}"
        mapped = drawable.figure.kind == "heatmap"
        said = f"Colour: {drawn}" if mapped else f"Line: {drawn} {band}"
        return f"{said} {_steps_words(drawable, runs)}"
    if count > 1:
        band = "Grey band: ± SD of the others (n − 1). A step that a run lacks is a gap."
        return f"Line: {CHOSEN} minus the mean of the other {count} runs at the same step. {band}"
    band = (
        "Grey band: the 95 % intervals of both, added as if independent; two runs give no SD "
        "between runs."
        if getattr(drawable.figure, "interval", None)
        else NO_BAND.format("two runs give")
    )
    return f"Line: {CHOSEN} minus {OTHER} at the same step. {band}"


def _steps_words(drawable: Drawable, runs: Runs) -> str:
    total = drawable.selected(drawable.figure.value).sizes["step"]
    return f"Control runs were read at {runs.steps} of {total} steps."


def view_code(drawable: Drawable, runs: Runs) -> dict[str, str]:
    """Return Python for the views that need more than the values, in the form ``{value}``."""
    chosen = f".sel({dict(drawable.figure.select)!r})" if drawable.figure.select else ""
    path = f"tree[{drawable.node.path!r}]"
    lines = [
        "import xarray as xr\n",
        'tree = xr.open_datatree("result.zarr", engine="zarr")',
        f'values = {path}["{VALUE}"]{chosen}',
    ]
    own = "values" if runs.controls else f"values.sel(run={CHOSEN})"
    if runs.controls:
        lines.append(f'controls = {path}["{VALUE}_control"]{chosen}.dropna("step", how="all")')
        kept = [runs.names[i] for i in runs.others]
        others = f"others = controls.sel(run={json.dumps(kept, ensure_ascii=False)})"
    else:
        others = f"others = values.drop_sel(run={CHOSEN})"
    difference = [others, f'difference = {own} - others.mean("run", skipna=False)']
    if len(runs.others) > 1:
        factor = f"{runs.factor:.6g} * " if runs.controls else ""
        difference.append(f'half_band = {factor}others.std("run", ddof=1, skipna=False)')
    side = {SIDE: "\n".join(lines)} if runs.controls else {}
    return {**side, DIFFERENCE: "\n".join([*lines, *difference])}
