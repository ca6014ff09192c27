"""What the numbers support, in words that carry their uncertainty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..problems.problem import standing_of
from .abilities import has_abilities
from .content import LAYER_DIMENSIONS, Content, Node
from .formats import count, its, joined, plain_text, plural
from .labels import with_short_layers
from .one_model import is_one_model
from .reasons import UNJUDGED
from .row_words import apart_from_controls
from .rows import Row, counted_rows

# Answers to what a paper claims; other rows of such a table are not counted.
CLAIMED = ("reproduces", "does not reproduce", "not shown")

CLAIMED_LEAD = "Each claim stands below with what was measured, and what chance or a control gives."


def claims_sentence(node: Node) -> str:
    """Say how many of a paper's claims a node of role ``claims`` finds again."""
    every = [str(answer) for answer in node.dataset["answer"].values]
    answers = [answer for answer in every if answer in CLAIMED]
    noun, verb = ("claim", "reproduce") if answers else ("statement", "hold")
    hits = every.count(f"{verb}s")
    setting = plain_text(node.dataset.attrs.get("setting") or "")
    verb += "s" * (hits == 1)
    return f"{hits} of {plural(len(answers or every), noun)} {verb}{f' {setting}' * bool(setting)}"


def mark(node: Node) -> tuple[str, str]:
    """Say how a node stands in the verdict: a mark for the list of sections and its meaning."""
    if stated := node.dataset.attrs.get("mark"):
        runs = {row.state.kind for row in node.rows}
        shown = {0: "none", 1: "some"}.get(node.dataset.attrs.get("mark_shown", -1), "untested")
        some = "some" if runs & {"every", "some"} else "none" if "no" in runs else shown
        return "all" if runs == {"every"} else some, plain_text(stated)
    if standing_of(node.dataset).lost:
        return "untested", "failed"
    rows = counted_rows(node.rows)
    if node.role == "motion":
        return "motion", "weight change"
    if node.role == "claims":
        return "untested", claims_sentence(node)
    if not rows:
        once = is_one_model(node.dataset)
        return "untested", "one checkpoint, no course" if once else "not tested against chance"
    fair = [row for row in rows if row.judgeable]
    if not fair:
        whys = {UNJUDGED[row.state.kind] for row in rows}
        return "untested", f"{plural(len(rows), 'row')} not judged: {joined(sorted(whys), ' or ')}"
    good = [row for row in fair if (row.beyond or row.learned if row.controlled else row.changed)]
    shape = "all" if len(good) == len(rows) else "some" if good else "none"
    listed = "; births are listed, not tested" * ("concept_born" in node.dataset)
    return shape, _standing(fair) + listed


def _standing(rows: Sequence[Row]) -> str:
    """Say how many rows were learned, changed beyond their motion, or changed."""
    of = f"of {plural(len(rows), 'row')}"
    learned, beyond, changed = (
        sum(getattr(row, name) for row in rows) for name in ("learned", "beyond", "changed")
    )
    if not any(row.controlled for row in rows):
        why = "its control runs cannot judge it" if rows[0].controls else "no control was run"
        return f"{changed:,} {of} changed{f'; {why}' if changed else ''}"
    if learned:
        return f"{learned:,} {of} learned"
    if beyond:
        return f"{beyond:,} {of} changed beyond {its(len(rows))} motion"
    if apart := apart_from_controls(rows):
        return f"{changed:,} {of} changed, none shown beyond motion; {apart}"
    return f"{changed:,} {of} changed, no more than controls" if changed else f"0 {of} changed"


def section_sentences(node: Node) -> list[str]:
    """Return the statements of a node, with layers named in short."""
    coords = [node.dataset[d] for d in LAYER_DIMENSIONS if d in node.dataset.coords]
    paths = {plain_text(value) for labels in coords for value in labels.values.ravel()}
    paths.update(row.layer for row in node.rows if row.layer)
    texts = [with_short_layers(text, sorted(paths)) for text in node.statements]
    judged = any(row.judgeable for row in node.rows)
    # Where nothing was judged the mark says so of all.
    return [text for text in texts if judged or "too few checkpoints to judge" not in text]


def best_sentences(content: Content) -> dict[str, str]:
    """Return one sentence of each section on a single model: names and heads that stand out first.

    By the section's title. The loss has a sentence of its own.
    """
    # Abilities have a section.
    nodes = [n for n in content.nodes if n.role == "development" and not has_abilities(n.dataset)]
    best = {
        node.title: min(texts, key=_place) for node in nodes if (texts := section_sentences(node))
    }
    return dict(sorted(best.items(), key=lambda item: _place(item[1])))


def _place(text: str) -> int:
    first = ("got a name", " heads surely ", "No head of")
    return next((i for i, words in enumerate(first) if words in text), len(first))


def studied(content: Content, brief: bool = False) -> str:
    """Return in one line what was studied: model, steps, inputs, date, version.

    A `brief` line counts warnings of the texts, which the page has under it.
    """
    model = plain_text(content.model.get("class") or content.model.get("name") or "")
    parameters = content.model.get("parameters")
    if isinstance(parameters, int | float):
        model = ", ".join(filter(None, [model, f"{count(parameters)} parameters"]))
    first, last, unit = content.steps[0], content.steps[-1], content.voice.unit
    reach = f"{unit} {first:,}" if first == last else f"{unit}s {first:,} to {last:,}"
    steps = f"{plural(len(content.steps), 'checkpoint')}, {reach}"
    if content.one_model:
        steps = f"one checkpoint, of {unit} {first:,}" if first else "one model"
    version = f"ontogeny {content.version}" if content.version else ""
    day = content.created.split("T")[0]
    parts = [model, steps, *[_input_line(data, brief) for data in content.inputs], day, version]
    return " · ".join(part for part in parts if part)


def _input_line(data: Mapping[str, Any], brief: bool) -> str:
    sizes = [
        plural(data[key], noun)
        for key, noun in (("texts", "text"), ("tokens", "token"))
        if isinstance(data.get(key), int)
    ]
    if isinstance(form := data.get("form"), str):
        sizes.insert(1, form)
    if isinstance(warnings := data.get("warnings"), list):
        full = [f"warning: {warning}" for warning in warnings]
        sizes += [plural(len(full), "warning")] if brief and full else full
    name = str(data.get("source") or data.get("name", ""))
    return plain_text(": ".join(filter(None, [name, ", ".join(sizes)])))
