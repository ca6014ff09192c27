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
from .formats import interval_text, p_value, plain_text, plural, step_text
from .payload import build_payload, json_script
from .readers import read_specs
from .rows import Row, judged
from .sentences import claims_sentence, section_sentences, studied, verdict
from .specs import FigureSpec
from .style import page_style, static_text
from .tabular import ROWS_SHOWN
from .thinning import BUDGET

__all__ = ["render_page"]

SCRIPTS = (
    "core", "format", "state", "theme", "tooltip", "panels", "annotations", "view", "picture",
    "regimes", "curves", "heatmap", "nulls", "turning", "scatter", "figure", "words", "download",
    "slider", "layers", "chart", "links", "tables", "page",
)  # fmt: skip


def render_page(content: Content, budget: int = BUDGET) -> str:
    """Return the page as HTML."""
    specs = [spec for node in content.nodes for spec in read_specs(node)]
    drawings = {layout.name: draw_chart(content, layout) for layout in (WIDE, NARROW)}
    charts = {name: {"plot": list(d.plot)} for name, d in drawings.items()}
    payload = build_payload(content, specs, charts, budget)
    notices = {figure["id"]: figure["notice"] for figure in payload["figures"]}
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
            sections=[_section(node, content, specs, notices) for node in content.nodes],
            rows_shown=ROWS_SHOWN,
            policy=_policy(scripts),
            style=Markup(page_style()),
            data=Markup(json_script(payload)),
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
        "state": _row_state(row),
        "half": step_text(row.half_step) if row.developed else "",
        "half_sort": row.half_step if row.developed else "",
        "interval": interval_text(row.half_step_low, row.half_step_high) if row.developed else "",
        "settled": step_text(row.settled_step) if row.developed else "",
        "settled_sort": row.settled_step if row.developed else "",
        "p": p_value(row.p_value),
        "p_sort": row.p_value,
    }


def _row_state(row: Row) -> str:
    if row.role == "motion":
        return "motion"
    return "developed" if row.developed else "not told apart"


def _section(
    node: Node, content: Content, specs: Sequence[FigureSpec], notices: Mapping[str, str]
) -> dict[str, Any]:
    mark, mark_words = _mark(node)
    return {
        "node": node,
        "mark": mark,
        "mark_words": mark_words,
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
                "spec": spec,
                "notice": notices.get(spec.id, spec.notice),
                "code": "" if spec.problem else _snippet(spec),
                "definition": [] if spec.problem else _definition(spec),
                "table": spec.options.get("table"),
            }
            for spec in specs
            if spec.node is node
        ],
    }


def _mark(node: Node) -> tuple[str, str]:
    """How a node stands in the verdict: a mark for the rail and its meaning in words."""
    rows = judged(node.rows)
    if node.role == "motion":
        return "motion", "motion of the weights"
    if node.role == "claims":
        return "untested", claims_sentence(node)
    if not rows:
        return "untested", "not tested for development"
    developed = sum(row.developed for row in rows)
    words = f"{developed:,} of {plural(len(rows), 'row')} developed"
    if developed == 0:
        return "none", words
    return ("all" if developed == len(rows) else "some"), words


def _snippet(spec: FigureSpec) -> str:
    """Python that gives the figure's data from the merged result."""
    chosen = f".sel({dict(spec.select)!r})" if spec.select else ""
    names = repr(spec.value) if spec.value else repr(spec.stored)
    whole = ".to_dataset()" if not spec.value else ""
    return plain_text(
        "import xarray as xr\n\n"
        'tree = xr.open_datatree("result.zarr", engine="zarr")\n'
        f"{_name(spec.value)} = tree[{spec.node.path!r}]{whole}[{names}]{chosen}"
    )


def _name(variable: str) -> str:
    return variable if variable.isidentifier() else "values"


def _definition(spec: FigureSpec) -> list[tuple[str, str]]:
    """Return what each drawn variable is, with its symbol and unit."""
    lines = []
    for name in spec.stored:
        attrs = spec.node.dataset[name].attrs
        words = plain_text(attrs.get("long_name", name))
        extra = [str(attrs[key]) for key in ("symbol", "units") if attrs.get(key)]
        lines.append((plain_text(name), plain_text(", ".join([words, *extra]))))
    return lines
