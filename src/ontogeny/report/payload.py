"""The page's data as one block of JSON: every array once, and exact."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from .colours import palettes
from .content import Content, RegimeMark
from .latex import latex_table
from .scales import StepScale
from .specs import FigureSpec
from .table import NodeTable, encode, rounded
from .thinning import BUDGET, thinning

__all__ = ["build_payload", "json_script"]


def json_script(data: Any) -> str:
    r"""Return JSON that can stand inside a ``<script>`` element whatever the strings hold.

    Examples
    --------
    >>> json_script({"layer": "</script>"})
    '{"layer":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def build_payload(
    content: Content,
    specs: Sequence[FigureSpec],
    charts: Mapping[str, Any],
    budget: int = BUDGET,
) -> dict[str, Any]:
    """Return everything that the page's scripts read."""
    scales = {kind: StepScale(content.steps, kind) for kind in ("log", "linear")}
    nodes, figures = {}, []
    keep = thinning(specs, budget)
    for node in content.nodes:
        own = [s for s in specs if s.node is node and not s.problem and s.kind != "table"]
        if not own:
            continue
        table = NodeTable(node, content, scales, keep[node.id])
        figures += [table.figure(spec) for spec in own]
        nodes[node.id] = table.result()
    return {
        "title": content.title,
        "steps": list(content.steps),
        "scales": {kind: _scale(scale, content.steps) for kind, scale in scales.items()},
        "layers": list(content.groups.labels),
        "palettes": palettes(len(content.groups.labels)),
        "track": _track(content),
        "findings": [{"steps": list(f.steps), "message": f.message} for f in content.findings],
        "boundaries": [
            {kind: _places(scale, mark) for kind, scale in scales.items()}
            for mark in content.boundaries
        ],
        "rows": [
            {"id": name} | _row(row, content)
            for name, row in zip(content.row_ids, content.rows, strict=True)
        ],
        "charts": dict(charts),
        "nodes": nodes,
        "figures": figures,
        "tables": {spec.id: _files(spec) for spec in specs if "table" in spec.options},
    }


def _files(spec: FigureSpec) -> dict[str, str]:
    """Return a table as files: it is drawn as HTML, so the scripts need nothing else."""
    table = spec.options["table"]
    return {"file": spec.file_stem, "csv": table.csv, "tex": latex_table(table)}


def _scale(scale: StepScale, steps: Sequence[int]) -> dict[str, Any]:
    return {
        "at": rounded(scale.positions(steps)),
        "ticks": [[round(t.position, 5), t.label, t.rank] for t in scale.ticks()],
        "broken": scale.breaks_at_zero,
    }


def _places(scale: StepScale, mark: RegimeMark) -> list[float | None]:
    """Return where a boundary and the ends of its interval lie on an axis."""
    return [_finite(p) for p in scale.positions([mark.step, mark.low, mark.high])]


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _track(content: Content) -> dict[str, Any] | None:
    track = content.track
    if track is None:
        return None
    return {
        "title": track.title,
        "units": track.units,
        "steps": track.steps.tolist(),
        "values": [_finite(v) for v in track.values],
    }


def _row(row: Any, content: Content) -> dict[str, Any]:
    return {
        "label": row.label or row.quantity,
        "group": content.groups.of(row.layer),
        "steps": row.steps.tolist(),
        "progress": {"dims": ["step"], "shape": [len(row.steps)]} | encode(row.progress),
        "distinct": "".join("1" if d else "0" for d in row.distinct),
        "developed": row.developed,
        "half": [_finite(v) for v in (row.half_step, row.half_step_low, row.half_step_high)],
        "settled": _finite(row.settled_step),
        "p": _finite(row.p_value),
    }
