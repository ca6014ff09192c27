"""All claims of a page: those of its rows, of its observables, and of the audit."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import xarray as xr

from ..claims import Certainty, Claim, Kind, Reason, Subject, from_dataset
from ..claims.table import PREFIX
from .row_claims import claims_of_rows, rows_tested

OfNode = Callable[[str, xr.Dataset], Iterable[Claim]]

# Findings of the audit by which values of a step are not those of that step.
DAMAGE = ("identical", "shared-shard", "exchanged", "mislabelled", "altered", "non-finite")


def claims_of(
    nodes: Mapping[str, xr.Dataset],
    of_nodes: Mapping[str, OfNode],
    findings: Iterable[Mapping[str, Any]] = (),
) -> list[Claim]:
    """Return what a page says, what matters most first.

    Parameters
    ----------
    nodes
        Judged nodes by name.
    of_nodes
        What else an observable claims of its node, by name.
    findings
        Of the audit, as records.
    """
    tests = rows_tested(nodes)
    claims = [claim for finding in findings for claim in _damaged(finding)]
    for name, node in nodes.items():
        claims += claims_of_rows(name, node, tests)
        if name in of_nodes and "failed" not in node.attrs:
            claims += of_nodes[name](name, node)
    return sorted(claims, key=lambda claim: -claim.weight)


def _damaged(finding: Mapping[str, Any]) -> list[Claim]:
    if finding.get("kind") not in DAMAGE:
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
    >>> claim = Claim(Kind.CHANGED, Subject("loss"), Certainty.SURE, first=6.0, last=4.3)
    >>> claims_of_result(xr.DataTree(to_dataset([claim]))) == [claim]
    True
    """
    if f"{PREFIX}kind" in tree.variables:
        return from_dataset(tree.to_dataset())
    nodes = {name: child.to_dataset() for name, child in tree.children.items()}
    return claims_of(nodes, {}, json.loads(tree.attrs.get("findings", "[]")))
