"""What each view of several runs shows, in words; the page puts in the run that was chosen."""

from __future__ import annotations

import json

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
    if figure.bands:
        sentence = (
            f" Nulls{' and shade' if figure.interval else ''} are those of {CHOSEN}."
        )
    else:
        sentence = f" The shade is that of {CHOSEN}." if figure.interval else ""
    return f"Dark line: {CHOSEN}. {grey}{sentence}"


def _side(drawable: Drawable, runs: Runs) -> str:
    if runs.controls:
        return f"The run and its control runs on the same axes. {_steps_words(drawable, runs)}"
    return "The runs on the same axes."


def _difference(drawable: Drawable, runs: Runs) -> str:
    if runs.controls:
        return _difference_from_controls(drawable, runs)
    count = len(runs.others)
    step = drawable.voice.checkpoint
    if count > 1:
        band = f"Grey band: ± SD of the others (n − 1). A {step} that a run lacks is a gap."
        return f"Line: {CHOSEN} minus the mean of the other {count} runs at the same {step}. {band}"
    band = "No band is drawn: two runs give no spread between runs."
    if drawable.figure.interval:
        band = (
            "Grey band: the 95 % intervals of both, added as if independent; two runs give no "
            "spread between runs."
        )
    return f"Line: {CHOSEN} minus {OTHER} at the same {step}. {band}"


def _difference_from_controls(drawable: Drawable, runs: Runs) -> str:
    count = len(runs.others)
    rest = len(runs.names) - 1 - count
    words = "its control run" if count == 1 else f"the mean of its {count} control runs"
    sentences = [f"the run minus {words}."]
    if rest:
        sentences.append(
            f"{plural(rest, 'control run')} of a kind that ends trained is left out."
        )
    if drawable.figure.kind == "heatmap":
        sentences[0] = f"Colour: {sentences[0]}"
    else:
        sentences[0] = f"Line: {sentences[0]}"
        sentences.append(
            "Grey band: where 95 % of further control runs would lie, at each "
            f"{drawable.voice.checkpoint} by itself."
            if count > 1
            else "No band is drawn: one control run gives no spread between runs."
        )
    return " ".join([*sentences, _steps_words(drawable, runs)])


def _steps_words(drawable: Drawable, runs: Runs) -> str:
    total = drawable.selected(drawable.figure.value).sizes["step"]
    return f"Control runs were read at {len(runs.steps)} of {total} {drawable.voice.checkpoint}s."


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
