"""One self-contained HTML file: templates, styles, scripts and data put together."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from ...claims.expectations import Expectation, failures
from ...words.abilities import abilities_of, has_abilities
from ...words.basis import basis
from ...words.catalogue.page import PAGE
from ...words.content import Content
from ...words.formats import joined, p_value, plain_text, plural, step_text
from ...words.nodes import Node
from ...words.row_words import (
    control_half_steps,
    control_half_words,
    half_words,
    journey,
    state_words,
)
from ...words.sections import mark, section_sentences, studied
from ...words.statements import Said
from ..chart.canvas import NARROW, WIDE
from ..chart.draw import draw_chart, views_of
from ..concepts.atlas import read_atlas
from ..failures import old_reference, read_failures, section_failures
from ..figures.drawable import Drawable
from ..figures.tables import ROWS_SHOWN
from ..first_screen.runs import build_first
from ..first_screen.screen import first_screen
from ..kinds import kind_of, read_drawables
from ..kinds.base import BUDGET, scripts, thinned
from ..style import STATIC, page_style, static_text
from ..texts.abilities import turning
from ..texts.beyond_bigrams import read_beyond_bigrams
from ..texts.cloze import read_cloze
from ..texts.dated import read_dated
from ..texts.example import read_example
from ..texts.written import read_written
from .life import life_picture
from .live import LEFT_OUT, Live
from .payload import build_payload, figure_of, json_script
from .picture import loss_picture

NAMED = 2  # titles that a fold gives

Parts = tuple[
    tuple[Sequence[Said], Sequence[Said]], Sequence[Drawable], Sequence[Drawable]
]


def render_page(
    content: Content,
    budget: int = BUDGET,
    live: Live | None = None,
    expected: Sequence[Expectation] = (),
) -> str:
    """Return the page as HTML; `live` says that the run was still training."""
    drawables = thinned(read_drawables(content), budget)
    drawings = {layout.name: draw_chart(content, layout) for layout in (WIDE, NARROW)}
    charts = {name: {"plot": list(d.plot)} for name, d in drawings.items()}
    plotly = _plotly()
    script = _own_script()
    first = first_screen(content, running=live is not None)
    atlas = read_atlas(content, first.concepts if first else None)
    cloze = read_cloze(content) if first and not content.runs else None
    written = read_written(content) if first else None
    example = read_example(content, first.concepts if first else None)
    nodes_above = [shown.node for shown in (cloze, written) if shown is not None]

    def drawn_above(node: Node) -> bool:
        of_loss = node.role == "track" and bool(
            first and first.loss and not content.runs
        )
        shown = example is not None and "token_loss" in node.dataset
        return of_loss or shown or any(node is above for above in nodes_above)

    drawn_by_script = None if content.one_model else first
    life = None
    if first and first.is_drawn and not content.one_model:
        layouts = [drawing.layout for drawing in drawings.values()]
        life = life_picture(content, first, layouts, atlas.addresses if atlas else ())
    sure = basis(content)
    html: dict[str, Any] = {
        "first": build_first(content, drawn_by_script) if drawn_by_script else None,
        "atlas": atlas.payload if atlas else None,
        "further": atlas.further if atlas else [],
        "cloze": cloze.payload if cloze else None,
        "written": written.payload if written else None,
        "example": example.payload if example else None,
        "abilities": turning(content),
        "refresh": live.every if live else None,
        "sure": next(iter(sure), ""),
    }
    if live:
        html["start"] = len(content.steps) - 1
    return _template().render(
        content=content,
        studied=studied(content, brief=True),
        live=live,
        unexpected=failures(content.claims, expected),
        is_expected=bool(expected),
        left_out=content.voice.fill(LEFT_OUT),
        first=first,
        drawn=html["first"] or {},
        picture=Markup(loss_picture(content)) if first and content.one_model else "",
        life=life,
        atlas=atlas,
        cloze=cloze,
        dated=read_dated(content, first.concepts) if first else None,
        beyond=read_beyond_bigrams(content) if first else None,
        written=written,
        example=example,
        abilities=abilities_of({node.id: node.dataset for node in content.nodes}),
        basis=sure,
        failures=read_failures(content),
        failed_in={node.id: section_failures(content, node) for node in content.nodes},
        old_reference=old_reference(content),
        facts=_facts(content),
        drawings=[Markup(d.svg) for d in drawings.values()],
        chart_notices=list(map(content.voice.fill, drawings["wide"].notices)),
        views=views_of(content),
        compared=[run.name for run in content.rows[0].runs] if content.rows else [],
        marks={node.id: mark(content, node) for node in content.nodes},
        parts={
            n.id: parts(content, n, drawables, drawn_above(n)) for n in content.nodes
        },
        fold_words=fold_words,
        drawables=drawables,
        kind_of=kind_of,
        code=_snippet,
        definition=_definition,
        rows_shown=ROWS_SHOWN,
        policy=_policy([plotly, script]),
        style=Markup(page_style()),
        data=Markup(json_script(build_payload(content, drawables, charts) | html)),
        plotly=Markup(plotly),
        script=Markup(script),
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("ontogeny.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "step": step_text,
        "p_value": p_value,
        "state": state_words,
        "breakable": breakable,
        "journey": journey,
        "half": half_words,
        "control_half": control_half_words,
        "control_half_steps": control_half_steps,
    }
    environment.globals["say"] = PAGE
    return environment.get_template("page.html.j2")


@cache
def _plotly() -> str:
    """Return the part of plotly.js that draws on plane axes: the page draws nothing else."""
    packed = (STATIC / "plotly-cartesian.min.js.gz").read_bytes()
    return gzip.decompress(packed).decode("utf-8").replace("</script", "<\\/script")


def _own_script() -> str:
    """Return the page's script, with those of further kinds of figures before it begins."""
    names = ", ".join(json.loads(static_text("page.min.json"))["exports"])
    further = [
        f"(function ({{ {names} }}) {{\n{script}\n}})(page);" for script in scripts()
    ]
    body = "\n".join([static_text("page.min.js"), *further, "page.startPage();"])
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


def breakable(heading: str) -> Markup:
    """Return words whose paths of matrices break after their dots, and no percent sign alone.

    Examples
    --------
    >>> str(breakable("half at 1.5; h.1.mlp is < 5 %"))
    'half at 1.5; h.1.<wbr>mlp is &lt; 5&nbsp;%'
    """
    whole = escape(heading).replace(" %", Markup("&nbsp;%"))
    return Markup(re.sub(r"(?<=\w)\.(?=[a-z])", ".<wbr>", whole))


def _facts(content: Content) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the fold-out: settings and provenance as groups of names and values."""
    steps = ", ".join(f"{step:,}" for step in content.steps)
    lines = [str(line) for line in content.chosen]
    groups = [
        ("Model", content.model),
        *(
            (f"Input set {i.get('name', n)}", i)
            for n, i in enumerate(content.inputs, start=1)
        ),
        (
            f"{content.voice.unit.capitalize()}s",
            {"checkpoints": steps, **({"chosen": "; ".join(lines)} if lines else {})},
        ),
        ("Settings", content.settings),
        ("Provenance", content.provenance),
    ]
    return [(plain_text(name), _pairs(data)) for name, data in groups if data]


def _pairs(data: Any, name: str = "") -> list[tuple[str, str]]:
    """Nested settings as dotted names with their values as text."""
    if not isinstance(data, Mapping) or not data:
        return [(name or "value", _plain_value(data))]
    start = f"{name}." if name else ""
    inner = (_pairs(value, f"{start}{key}") for key, value in data.items())
    return list(chain.from_iterable(inner))


def _plain_value(value: Any) -> str:
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return plain_text(json.dumps(value, ensure_ascii=False, default=str))


def _snippet(drawable: Drawable) -> str:
    """Python that gives the figure's data from the merged result."""
    figure = drawable.figure
    selection = f".sel({dict(figure.select)!r})" if figure.select else ""
    beside = [
        name
        for name in getattr(figure, "interval", None) or ()
        if name in drawable.stored
    ]
    one = figure.value and not beside
    several = [figure.value, *beside] if beside else drawable.stored
    names = repr(figure.value if one else several)
    whole = "" if one else ".to_dataset()"
    variable = figure.value if one and figure.value.isidentifier() else "values"
    return plain_text(
        "import xarray as xr\n\n"
        'tree = xr.open_datatree("result.zarr", engine="zarr")\n'
        f"{variable} = tree[{drawable.node.path!r}]{whole}[{names}]{selection}"
    )


def _definition(drawable: Drawable) -> list[tuple[str, str]]:
    """Return what each drawn variable is, with its symbol and unit."""
    lines = []
    for name in drawable.stored:
        attrs = drawable.node.dataset[name].attrs
        extra = [
            plain_text(attrs[key]) for key in ("symbol", "units") if attrs.get(key)
        ]
        lines.append((plain_text(name), ", ".join([drawable.label(name), *extra])))
    return lines


def parts(
    content: Content, node: Node, drawables: Sequence[Drawable], drawn_above: bool
) -> Parts:
    """Return the sentences that stand open and those that are folded, and both of the figures.

    Of what was tested and not found, the first sentence says so, and the rest is folded. So are
    figures of what stands above already (`drawn_above`), and beside others those of weight change
    and of distances to a reference step: these are 0 there by definition, and their rows of the
    chart say the rest.
    """
    candidates = [d for d in drawables if d.node is node]
    sentences = section_sentences(content, node)
    if (
        candidates
        and mark(content, node)[0] == "none"
        and sentences
        and not has_abilities(node.dataset)
    ):
        return (sentences[:1], sentences[1:]), [], candidates
    others = [d for d in drawables if d.node is not node]
    weights = node.role == "motion" and any(d.node.role != "motion" for d in others)
    distances = _is_distance(node) and any(not _is_distance(d.node) for d in others)
    second = drawn_above or weights or distances
    lead = [] if second else _bearing(node, candidates)
    # The first screen says what the loss tells.
    shown = 1 if drawn_above and node.role == "track" else len(sentences)
    said = (sentences[:shown], sentences[shown:])
    return said, lead, [d for d in candidates if d not in lead]


def _is_distance(node: Node) -> bool:
    """Return whether all rows of a node are distances to a reference step."""
    return bool(node.rows) and not any(row.own_value for row in node.rows)


def _bearing(node: Node, items: list[Drawable]) -> list[Drawable]:
    """Return the figure that bears the sentences: that of the strongest row, else the first."""
    rows = sorted(node.rows, key=lambda row: -(row.learned + row.beyond + row.changed))
    best = [
        d for d in items if [d.id] == [figure_of(row, items) for row in rows[:1]]
    ] or items[:1]
    names = {"groups", *(f"{d.figure.id}-map" for d in best)}  # too many for curves
    return [d for d in items if d.figure.id in names][:1] or best


def fold_words(sentences: Sequence[Any], folded: Sequence[Drawable]) -> str:
    """Say what is folded: further sentences, and figures by their first titles.

    Examples
    --------
    >>> fold_words(["One.", "Two."], [])
    '2 more sentences'
    """
    titles = "; ".join(str(d.figure.title) for d in folded[:NAMED])
    titles += "; …" if len(folded) > NAMED else ""
    counts = [plural(len(sentences), "more sentence")] if sentences else []
    counts += [f"{plural(len(folded), 'figure')}: {titles}"] if folded else []
    return joined(counts)
