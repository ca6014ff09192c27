"""The style sheets: the files beside this module, with the colours put in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

from .colours import LEVELS, palettes

__all__ = ["chart_rules", "chart_style", "page_style", "static_text"]


def static_text(name: str) -> str:
    """Return a file of the folder ``static``."""
    return resources.files(__package__).joinpath("static", name).read_text(encoding="utf-8")


def page_style() -> str:
    """Return the whole page's style sheet, with the colours of both modes as variables."""
    colours = palettes(1)
    modes = [
        f"{query}{{:root{{{_variables(colours[mode]['base'])}}}}}"
        for query, mode in (
            ("@media all", "light"),
            ("@media screen and (prefers-color-scheme: dark)", "dark"),
        )
    ]
    return "\n".join([*modes, chart_style(), static_text("page.css")])


def _variables(base: Any) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in base.items())


def chart_style() -> str:
    """Return the chart's style sheet: plain colours, for light and dark, also outside the page."""
    colours = palettes(1)
    light, dark = (_chart_rules(colours[mode]) for mode in ("light", "dark"))
    query = "@media screen and (prefers-color-scheme: dark)"
    return f"{static_text('chart.css')}\n{light}\n{query}{{{dark}}}"


def chart_rules() -> dict[str, dict[str, str]]:
    """Return the chart's style sheet on paper: properties by class, or by two nested classes."""
    sheet = static_text("chart.css") + _chart_rules(palettes(1)["light"])
    rules: dict[str, dict[str, str]] = {}
    for selector, body in re.findall(r"([^{}]+)\{([^{}]*)\}", sheet):
        pairs = (part.split(":", 1) for part in body.split(";") if ":" in part)
        rule = {name.strip(): value.strip() for name, value in pairs}
        for one in selector.split(","):
            name = one.strip().removeprefix(".chart ").replace(".", "")
            rules.setdefault(name, {}).update(rule)
    return rules


def _chart_rules(colours: Mapping[str, Any]) -> str:
    base = colours["base"]
    rules = {
        ".chart .paper": f"fill:{base['paper']}",
        ".chart text": f"fill:{base['ink']}",
        ".chart .note,.chart .tick,.chart .value": f"fill:{base['ink-2']}",
        ".chart .undeveloped .name,.chart .undeveloped .layer": f"fill:{base['ink-3']}",
        ".chart .group": f"fill:{base['ink-2']}",
        ".chart .warn,.chart .finding": f"fill:{base['warning']}",
        ".chart .hatch-line": f"stroke:{base['null']}",
        ".chart .hatched,.chart .frame": f"stroke:{base['line']}",
        ".chart .axis,.chart .boundary,.chart .boundary-interval": f"stroke:{base['ink-3']}",
        ".chart .break": f"fill:{base['paper']}",
        ".chart .curve,.chart .whisker": f"stroke:{base['ink']}",
        ".chart .dot": f"fill:{base['ink']}",
        ".chart .halo": f"stroke:{base['paper']}",
        ".chart .halo-dot": f"fill:{base['paper']}",
        ".chart .now": f"stroke:{base['accent']}",
    }
    rules |= {f".chart .q{i}": f"fill:{colours['values'][i]}" for i in range(LEVELS)}
    return "".join(f"{selector}{{{rule}}}" for selector, rule in rules.items())
