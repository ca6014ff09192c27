"""All claims of a page: those of its rows, of its observables, and of the audit."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import xarray as xr

from ..claims import (
    RULES,
    Beside,
    Certainty,
    Claim,
    Kind,
    Reason,
    Subject,
    from_dataset,
    measurement,
)
from ..claims.table import PREFIX
from ..errors import ArgumentError
from ..figures import Curves, Figure
from ..quantities import Quantity
from ..trees import Nodes
from .abilities import claims_of_abilities
from .catalogue.sentences import DAMAGES
from .one_model import claims_of_one_model, is_one_model
from .order import first_and_last
from .row_claims import claims_of_rows, rows_tested
from .row_reading import bands_of, end_given, read_rows
from .rows import Row
from .sentences import OF_ROWS


def claims_of(
    nodes: Nodes,
    of_nodes: Mapping[str, Iterable[Claim]],
    findings: Iterable[Mapping[str, Any]] = (),
    quantities: Mapping[str, Sequence[Quantity]] | None = None,
) -> list[Claim]:
    """Return what a page says, what matters most first.

    Parameters
    ----------
    nodes
        Judged nodes by name.
    of_nodes
        What else observables claim of their nodes, by name.
    findings
        Of the audit, as records.
    quantities
        What the nodes hold, which a single checkpoint is held against chance by.
    """
    tests = rows_tested(nodes)
    claims = list(chain.from_iterable(map(_damaged, findings)))
    for name, node in nodes.items():
        claims += claims_of_rows(name, node, tests)
        claims += of_nodes.get(name, ())
        of_node = (quantities or {}).get(name, ())
        claims += claims_of_one_model(name, node, of_node)
        claims += _unmeasured(name, node, of_node)
        claims += _of_papers(name, node)
    able = list(claims_of_abilities(nodes))
    # Beside "100 % of 30 right, above chance" stood the same number as not shown to differ from it.
    judged = {claim.subject.key for claim in able if claim.kind is Kind.ABOVE_CHANCE}
    claims = [
        claim
        for claim in claims
        if claim.kind is not Kind.DIFFERS or claim.subject.key not in judged
    ]
    claims += [*able, *_orders(nodes)]
    once = {name for name, node in nodes.items() if is_one_model(node)}
    claims = [_undated(c) if c.subject.node in once else c for c in claims]
    return sorted(claims, key=lambda claim: -claim.weight)


def _undated(claim: Claim) -> Claim:
    """Return a claim on a single checkpoint: since when it holds cannot be seen.

    One that says nothing but since when stays as it is.
    """
    if "since" in RULES[claim.kind].fields:
        return claim
    return replace(claim, since=math.nan, since_low=math.nan, since_high=math.nan)


def _unmeasured(
    name: str, node: xr.Dataset, quantities: Sequence[Quantity]
) -> list[Claim]:
    """Return which quantities are in no cell, though they are not optional."""
    if "failed" in node.attrs:
        return []
    lost = [q for q in quantities if q.name not in node and not q.optional]
    return [
        measurement(Subject(name, q.name, label=q.title), math.nan, evidence=())
        for q in lost
    ]


def _orders(nodes: Nodes) -> Iterator[Claim]:
    """Give which layer was half-way first of each quantity, corrected over all of the page."""
    rows: list[Row] = []
    for name, node in nodes.items():
        if node.attrs.get("role") != "motion":
            rows += read_rows(node, "", name, "", bands_of(_curves(node)))
    for first, last in first_and_last(rows):
        yield Claim(
            Kind.BEFORE,
            Subject(first.section, first.variable, first.layer),
            Certainty.SURE,
            first=first.half_step,
            last=last.half_step,
            low=last.half_step_low,
            high=last.half_step_high,
            since=first.half_step,
            since_low=first.half_step_low,
            since_high=first.half_step_high,
            beside=(Beside("reference", last.layer, last.half_step, first.half_step),),
            evidence=(f"{first.section}/half_step",),
        )


def _curves(node: xr.Dataset) -> Iterator[Curves]:
    """Give the curves that a node declares; what cannot be read is told where it is drawn."""
    for stated in json.loads(node.attrs.get("figures", "[]")):
        try:
            figure = Figure.from_dict(stated)
        except ArgumentError:
            continue
        if isinstance(figure, Curves):
            yield figure


def _of_papers(name: str, node: xr.Dataset) -> Iterator[Claim]:
    """Give whether each claim of a paper is found again; where none is a paper's, each other."""
    if node.attrs.get("role") != "claims":
        return
    if node["of_paper"].any():
        node = node.isel(claim=node["of_paper"].values)
    columns = (node[c].values for c in ("claim", "kind", "certainty", "reason"))
    for label, kind, certainty, reason in zip(*columns, strict=True):
        yield Claim(
            Kind(str(kind)),
            Subject(name, "certainty", label=str(label)),
            Certainty(str(certainty)),
            Reason(str(reason)) if reason else None,
            evidence=(f"{name}/measured", f"{name}/beside"),
            figure=f"{name}/verdicts",
        )


def _damaged(finding: Mapping[str, Any]) -> list[Claim]:
    if finding.get("kind") not in DAMAGES:
        return []
    is_certain = finding.get("certainty") == "certain"
    return [
        Claim(
            Kind.DAMAGED,
            Subject(label=str(finding["kind"]), step=float(step)),
            Certainty.SURE if is_certain else Certainty.OPEN,
            None if is_certain else Reason.PROBABLE,
        )
        for step in finding.get("steps") or [math.nan]
    ]


def claims_of_result(tree: xr.DataTree) -> list[Claim]:
    """Return what a merged result claims; of one by an earlier version what its rows say.

    Examples
    --------
    >>> from ontogeny.claims import to_dataset
    >>> claim = Claim(
    ...     Kind.CHANGED, Subject("loss"), Certainty.SURE, first=6.0, last=4.3
    ... )
    >>> claims_of_result(xr.DataTree(to_dataset([claim]))) == [claim]
    True
    """
    if f"{PREFIX}kind" in tree.variables:
        return list(_counted(from_dataset(tree.to_dataset()), tree))
    nodes = {name: child.to_dataset() for name, child in tree.children.items()}
    return claims_of(nodes, {}, json.loads(tree.attrs.get("findings", "[]")))


def _counted(claims: Iterable[Claim], tree: xr.DataTree) -> Iterator[Claim]:
    """Give stored claims but those on distances to the end, which earlier versions made."""
    given = {
        name: end_given(child.to_dataset()) for name, child in tree.children.items()
    }
    for claim in claims:
        subject = claim.subject
        is_given = subject.quantity in given.get(subject.node, ())
        if not (is_given and claim.kind in OF_ROWS):
            yield claim
