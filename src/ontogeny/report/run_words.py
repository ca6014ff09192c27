"""What each view of several runs shows, in words; the page puts in the run that was chosen."""

from __future__ import annotations

import json

from ..words.catalogue.captions import CAPTIONS
from ..words.formats import plural
from .figures.drawable import Drawable, Runs
from .figures.runs import DIFFERENCE, LINES, SIDE

CHOSEN = "{run}"
OTHER = "{other}"
VALUE = "{value}"
"""Where the chosen run, of two runs the other one, and the variable that is drawn are named."""


def captions(drawable: Drawable, runs: Runs) -> dict[str, str]:
    """Return the caption of a figure in each of its views."""
    text = drawable.caption
    sentences = {
        SIDE: [text, _side(drawable, runs)],
        DIFFERENCE: [str(drawable.figure.caption), _difference(drawable, runs)],
    }
    # Control runs are shown beside heat maps too, which have nothing that is laid over.
    rest = [text] if runs.controls else [text, _overlay(drawable, runs)]
    return {
        name: " ".join(filter(None, sentences.get(name, rest))) for name in runs.views
    }


def difference_caption(drawable: Drawable, runs: Runs) -> str:
    """Return the caption of the difference of the first run."""
    words = captions(drawable, runs)[DIFFERENCE].replace(CHOSEN, runs.names[0])
    return words.replace(OTHER, runs.names[-1])


def band_words(runs: Runs) -> str:
    """Return the name of the band of a difference, as it stands in the figure."""
    if runs.controls:
        return "control runs"
    return "SD of the others" if len(runs.others) > 1 else "noise of the texts"


def _overlay(drawable: Drawable, runs: Runs) -> str:
    many = len(runs.names) > LINES
    grey = (
        "Grey band: range of the other runs."
        if many
        else "Thin grey lines: the other runs."
    )
    figure = drawable.figure
    own = ["nulls"] if figure.bands else []
    own += ["shade"] if figure.interval else []
    key = ", ".join(filter(None, ["dark", " and ".join(own)]))
    return CAPTIONS[key].format(run=CHOSEN, grey=grey)


def _side(drawable: Drawable, runs: Runs) -> str:
    if runs.controls:
        return CAPTIONS["same axes"].format(steps=_steps_words(drawable, runs))
    return "The runs on the same axes."


def _difference(drawable: Drawable, runs: Runs) -> str:
    if runs.controls:
        return _difference_from_controls(drawable, runs)
    count = len(runs.others)
    step = drawable.voice.checkpoint
    if count > 1:
        return CAPTIONS["minus others"].format(run=CHOSEN, count=count, step=step)
    band = "No band is drawn: two runs give no spread between runs."
    if drawable.figure.interval:
        band = (
            "Grey band: the 95 % intervals of both, added as if independent; two runs give no "
            "spread between runs."
        )
    return CAPTIONS["minus other"].format(run=CHOSEN, other=OTHER, step=step, band=band)


def _difference_from_controls(drawable: Drawable, runs: Runs) -> str:
    count = len(runs.others)
    rest = len(runs.names) - 1 - count
    minus = CAPTIONS["minus control" if count == 1 else "minus controls"]
    is_map = drawable.figure.kind == "heatmap"
    sentences = [minus.format(what="Colour" if is_map else "Line", count=count)]
    if rest:
        left_out = plural(rest, "control run")
        sentences.append(CAPTIONS["left out"].format(count=left_out))
    if not is_map:
        band = CAPTIONS["band"].format(checkpoint=drawable.voice.checkpoint)
        alone = "No band is drawn: one control run gives no spread between runs."
        sentences.append(band if count > 1 else alone)
    return " ".join([*sentences, _steps_words(drawable, runs)])


def _steps_words(drawable: Drawable, runs: Runs) -> str:
    total = drawable.selected(drawable.figure.value).sizes["step"]
    return CAPTIONS["controls read"].format(
        some=len(runs.steps), all=total, checkpoint=drawable.voice.checkpoint
    )


def view_code(drawable: Drawable, runs: Runs) -> dict[str, str]:
    """Return Python for the views that need more than the values, in the form ``{value}``."""
    selection = (
        f".sel({dict(drawable.figure.select)!r})" if drawable.figure.select else ""
    )
    path = f"tree[{drawable.node.path!r}]"
    lines = [
        "import xarray as xr\n",
        'tree = xr.open_datatree("result.zarr", engine="zarr")',
        f'values = {path}["{VALUE}"]{selection}',
    ]
    minuend = f"values.sel(run={CHOSEN})"
    others = f"values.drop_sel(run={CHOSEN})"
    side = {}
    if runs.controls:
        lines.append(
            f'controls = {path}["{VALUE}_control"]{selection}.dropna("step", how="all")'
        )
        side = {SIDE: "\n".join(lines)}
        names = [str(runs.control_names[i - 1]) for i in runs.others]
        minuend = "values"
        others = f"controls.sel(run={json.dumps(names, ensure_ascii=False)})"
    lines += [
        f"others = {others}",
        f'difference = {minuend} - others.mean("run", skipna=False)',
    ]
    if len(runs.others) > 1:
        factor = f"{runs.factor:.6g} * " if runs.controls else ""
        lines.append(f'half_band = {factor}others.std("run", ddof=1, skipna=False)')
    return {**side, DIFFERENCE: "\n".join(lines)}
