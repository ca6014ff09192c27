"""One self-contained HTML file: templates, styles, scripts and data put together."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from .canvas import NARROW, WIDE
from .chart import draw_chart
from .content import Content, Node
from .drawable import Drawable
from .formats import interval_text, p_value, plain_text, step_text
from .payload import build_payload, json_script
from .readers import read_drawables
from .rows import Row
from .sentences import mark, row_state, section_sentences, studied, verdict
from .style import page_style, static_text
from .tabular import ROWS_SHOWN
from .thinning import BUDGET, thinned

__all__ = ["render_page"]

SCRIPTS = (
    "core", "format", "state", "theme", "tooltip", "panels", "annotations", "view", "picture",
    "regimes", "curves", "heatmap", "nulls", "turning", "scatter", "figure", "words", "download",
    "slider", "layers", "chart", "links", "tables", "page",
)  # fmt: skip


def render_page(content: Content, budget: int = BUDGET) -> str:
    """Return the page as HTML."""
    drawables = thinned(read_drawables(content), budget)
    drawings = {layout.name: draw_chart(content, layout) for layout in (WIDE, NARROW)}
    charts = {name: {"plot": list(d.plot)} for name, d in drawings.items()}
    scripts = [_plotly(), _own_script()]
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            content=content,
            studied=studied(content),
            verdict=verdict(content),
            facts=_facts(content),
            drawings=[Markup(d.svg) for d in drawings.values()],
            chart_notices=drawings["wide"].notices,
            table=[
                {"id": name} | _table_row(row)
                for name, row in zip(content.row_ids, content.rows, strict=True)
            ],
            sections=[_section(node, content, drawables) for node in content.nodes],
            rows_shown=ROWS_SHOWN,
            policy=_policy(scripts),
            style=Markup(page_style()),
            data=Markup(json_script(build_payload(content, drawables, charts))),
            scripts=[Markup(script) for script in scripts],
        )
    )


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("ontogeny.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _plotly() -> str:
    # Imported here so that the room opens without it; only the page needs the script.
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs()).replace("</script", "<\\/script")


def _own_script() -> str:
    body = "\n".join(static_text(f"{name}.js") for name in SCRIPTS)
    return f'(function () {{\n"use strict";\n{body}\n}})();'


def _policy(scripts: Sequence[str]) -> str:
    """Return a content security policy: only these scripts run, and nothing is fetched."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'"
        for s in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _facts(content: Content) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the fold-out: settings and provenance as groups of names and values."""
    inputs = [
        (f"Input set {item.get('name', number)}", _pairs(item))
        for number, item in enumerate(content.inputs, start=1)
    ]
    groups = [
        ("Model", _pairs(content.model)),
        *inputs,
        ("Steps", [("checkpoints", ", ".join(f"{s:,}" for s in content.steps))]),
        ("Settings", _pairs(content.settings)),
        ("Provenance", _pairs(content.provenance)),
    ]
    return [(plain_text(name), pairs) for name, pairs in groups if pairs]


def _pairs(data: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Nested settings as dotted names with their values as text."""
    if not isinstance(data, Mapping):
        return [(prefix or "value", _plain_value(data))] if data else []
    pairs: list[tuple[str, str]] = []
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            pairs += _pairs(value, f"{name}.")
        else:
            pairs.append((plain_text(name), _plain_value(value)))
    return pairs


def _plain_value(value: Any) -> str:
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return plain_text(json.dumps(value, ensure_ascii=False, default=str))


def _table_row(row: Row) -> dict[str, Any]:
    return {
        "label": row.label or row.quantity,
        "section": row.section,
        "state": row_state(row),
        "half": step_text(row.half_step) if row.developed else "",
        "half_sort": row.half_step if row.developed else "",
        "interval": interval_text(row.half_step_low, row.half_step_high) if row.developed else "",
        "settled": step_text(row.settled_step) if row.developed else "",
        "settled_sort": row.settled_step if row.developed else "",
        "p": p_value(row.p_value),
        "p_sort": row.p_value,
    }


def _section(node: Node, content: Content, drawables: Sequence[Drawable]) -> dict[str, Any]:
    shape, words = mark(node)
    return {
        "node": node,
        "mark": shape,
        "mark_words": words,
        "sentences": section_sentences(node, content),
        "notes": [
            (heading, node.section.get(key, ""))
            for key, heading in (
                ("definition", "Definition"),
                ("symbol", "Symbol"),
                ("null", "Null"),
                ("care", "Take care"),
                ("source", "Source"),
            )
            if node.section.get(key)
        ],
        "figures": [
            {
                "drawable": each,
                "code": "" if each.problem else _snippet(each),
                "definition": [] if each.problem else _definition(each),
            }
            for each in drawables
            if each.node is node
        ],
    }


def _snippet(drawable: Drawable) -> str:
    """Python that gives the figure's data from the merged result."""
    figure = drawable.figure
    chosen = f".sel({dict(figure.select)!r})" if figure.select else ""
    names = repr(figure.value) if figure.value else f"{drawable.stored!r}"
    whole = "" if figure.value else ".to_dataset()"
    variable = figure.value if figure.value.isidentifier() else "values"
    return plain_text(
        "import xarray as xr\n\n"
        'tree = xr.open_datatree("result.zarr", engine="zarr")\n'
        f"{variable} = tree[{drawable.node.path!r}]{whole}[{names}]{chosen}"
    )


def _definition(drawable: Drawable) -> list[tuple[str, str]]:
    """Return what each drawn variable is, with its symbol and unit."""
    lines = []
    for name in drawable.stored:
        attrs = drawable.node.dataset[name].attrs
        extra = [plain_text(attrs[key]) for key in ("symbol", "units") if attrs.get(key)]
        lines.append((plain_text(name), ", ".join([drawable.label(name), *extra])))
    return lines
