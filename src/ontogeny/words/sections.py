"""What is said of each section of a page: how its rows stand, and its sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..claims import Certainty, Claim, Kind
from ..problems.problem import standing_of
from .catalogue.page import HEADINGS
from .content import Content
from .formats import count, plain_text, plural
from .nodes import Node
from .one_model import is_one_model
from .runs import control_words, sentences_of_runs
from .selection import counted
from .sentences import OF_ROWS, reproduced, sentences, standing_claims
from .statements import Said


def claims_of_node(content: Content, node: Node) -> list[Claim]:
    """Return the claims on a node: of a run, of one model, or of several runs together."""
    return [
        c for c in content.claims if c.subject.node == node.path and not c.subject.run
    ]


def mark(content: Content, node: Node) -> tuple[str, str]:
    """Say how a node stands: a mark for the list of sections, and its meaning."""
    if stated := node.dataset.attrs.get("mark"):
        return _mark_of_runs(content, node), plain_text(stated)
    if content.runs:
        words = HEADINGS["runs"].format(count=len(content.runs))
        return _mark_of_runs(content, node), words
    if standing_of(node.dataset).lost:
        return "untested", "failed"
    if node.role == "motion":
        return "motion", "weight change"
    claims = claims_of_node(content, node)
    if node.rows and all(row.to_last for row in node.rows):
        return "motion", HEADINGS["distances"]
    if node.role == "claims":
        found = reproduced(claims)
        return "untested", found.text if found else "not tested"
    rows = [claim for claim in standing_claims(claims) if claim.kind in OF_ROWS]
    if not rows:
        once = is_one_model(node.dataset)
        return "untested", "one checkpoint, no course" if once else "not tested"
    some = counted(rows)
    if some is None:
        return "none", HEADINGS["nothing"]
    if some.claims[0].certainty not in (Certainty.SURE, Certainty.NOT_TESTED):
        return "none", some.text
    return "all" if len(some.claims) == len(rows) else "some", some.text


def _mark_of_runs(content: Content, node: Node) -> str:
    """Return the mark of a section of several runs: in how many of them its rows are sure."""
    of_runs = [
        c for c in content.claims if c.subject.node == node.path and c.subject.run
    ]
    rows = [claim for claim in standing_claims(of_runs) if claim.kind in OF_ROWS]
    if not rows:
        return "untested"
    strong = [
        c for c in rows if c.certainty is Certainty.SURE or c.kind is Kind.BEYOND_MOTION
    ]
    if len(strong) == len(rows):
        return "all"
    return "some" if strong else "none"


def section_sentences(content: Content, node: Node) -> list[Said]:
    """Return what is said of a node: of its claims, and what is special about it."""
    of_claims = sentences(claims_of_node(content, node), content.spoken, content.names)
    if content.runs:
        of_claims = [*sentences_of_runs(content, node.path), *of_claims]
    if node.path == "runs" and (words := control_words(content)):
        of_claims.append(Said(words))
    return [*of_claims, *map(Said, node.statements)]


def studied(content: Content, brief: bool = False) -> str:
    """Return in one line what was studied: model, steps, inputs, date, version.

    A `brief` line counts warnings of the texts, which the page has under it.
    """
    model = plain_text(content.model.get("class") or content.model.get("name") or "")
    parameters = content.model.get("parameters")
    if isinstance(parameters, int | float):
        model = ", ".join(filter(None, [model, f"{count(parameters)} parameters"]))
    first = content.steps[0]
    last = content.steps[-1]
    unit = content.unit
    reach = f"{unit} {first:,}" if first == last else f"{unit}s {first:,} to {last:,}"
    steps = f"{plural(len(content.steps), 'checkpoint')}, {reach}"
    if content.one_model:
        steps = f"one checkpoint, of {unit} {first:,}" if first else "one model"
    version = f"ontogeny {content.version}" if content.version else ""
    day = content.created.split("T")[0]
    parts = [
        model,
        steps,
        *[_input_line(data, brief) for data in content.inputs],
        day,
        version,
    ]
    return " · ".join(part for part in parts if part)


def _input_line(data: Mapping[str, Any], brief: bool) -> str:
    sizes = [
        plural(data[key], noun)
        for key, noun in (("texts", "text"), ("tokens", "token"))
        if isinstance(data.get(key), int)
    ]
    if isinstance(form := data.get("form"), str):
        sizes.insert(1, form)
    if isinstance(scored := data.get("scored"), int) and data.get("score"):
        sizes.append(f"scored: {data['score']} ({scored:,})")
    if isinstance(warnings := data.get("warnings"), list):
        full = [f"warning: {warning}" for warning in warnings]
        sizes += [plural(len(full), "warning")] if brief and full else full
    name = str(data.get("source") or data.get("name", ""))
    return plain_text(": ".join(filter(None, [name, ", ".join(sizes)])))
