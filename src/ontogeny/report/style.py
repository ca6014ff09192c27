"""The style sheets: the files beside this module, with the colours put in."""

from __future__ import annotations

import re
from importlib import resources
from typing import Any

from .colours import BASE, PROGRESS, contrast, palettes, ramp

SHADES = 12  # of dated tokens
STRENGTHS = 12  # shades of life lines beyond none
# The folder of scripts and style sheets.
STATIC = resources.files(__package__) / "static"


def static_text(name: str) -> str:
    """Return a file of the folder ``static``."""
    return (STATIC / name).read_text(encoding="utf-8")


def page_style() -> str:
    """Return the whole page's style sheet, with the colours of both modes as variables."""
    colours = palettes(1)
    modes = [
        f"{query}{{:root{{{_variables(colours[mode])}{_shades(mode)}}}}}"
        for query, mode in (
            ("@media all", "light"),
            ("@media screen and (prefers-color-scheme: dark)", "dark"),
        )
    ]
    names = (
        "page",
        "first",
        "cloze",
        "dated-text",
        "written",
        "example-text",
        "failures",
        "print",
    )
    dated = "".join(f".d{i}{{--d:var(--d{i});--e:var(--e{i})}}" for i in range(SHADES))
    dated += "".join(f".s{i}{{--s:{i}}}" for i in range(STRENGTHS + 1))
    return "\n".join(
        [*modes, dated, chart_style(), *[static_text(f"{name}.css") for name in names]]
    )


def _shades(mode: str) -> str:
    """Return the shades of dated tokens as variables, each with the ink that is read on it."""
    inks = [BASE[mode]["ink"], BASE[mode]["paper"]]
    parts = []
    for i, shade in enumerate(ramp(PROGRESS[mode], SHADES)):
        ink = max(inks, key=lambda each: contrast(shade, each))
        parts.append(f"--d{i}:{shade};--e{i}:{ink};")
    return "".join(parts)


def _variables(palette: Any) -> str:
    plain = "".join(f"--{name}:{colour};" for name, colour in palette["base"].items())
    return f"{plain}--tint:{_channels(palette['values'][len(palette['values']) // 2])};"


def _channels(colour: str) -> str:
    """Return a colour as CSS takes it beside an opacity: ``47 143 176``."""
    return " ".join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))


def chart_style() -> str:
    """Return the chart's style sheet: plain colours, for light and dark, also outside the page."""
    light = _chart_colours("light")
    dark = _chart_colours("dark")
    query = "@media screen and (prefers-color-scheme: dark)"
    return f"{static_text('chart.css')}\n{light}\n{query}{{{dark}}}"


def chart_rules() -> dict[str, dict[str, str]]:
    """Return the chart's style sheet on paper: properties by class, or by two nested classes."""
    sheet = static_text("chart.css") + _chart_colours("light")
    rules: dict[str, dict[str, str]] = {}
    for selector, body in re.findall(r"([^{}]+)\{([^{}]*)\}", sheet):
        pairs = (part.split(":", 1) for part in body.split(";") if ":" in part)
        rule = {name.strip(): value.strip() for name, value in pairs}
        for one in selector.split(","):
            name = one.strip().removeprefix(".chart ").replace(".", "")
            rules.setdefault(name, {}).update(rule)
    return rules


def _chart_colours(mode: str) -> str:
    """Return the colours of the chart's parts, and of every shade of progress."""
    colours = palettes(1)[mode]
    base: Any = colours["base"]
    rules = re.sub(
        r"@([\w-]+)", lambda name: base[name[1]], static_text("chart-colours.css")
    )
    shades: Any = colours["values"]
    return rules + "".join(
        f".chart .q{i}{{fill:{shade}}}" for i, shade in enumerate(shades)
    )
