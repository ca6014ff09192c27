"""In which node the concepts of several runs are known again, token by token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..sources import Run

KIND = "learned-concepts"  # of observables
# Which tokens the codes are of.
TOKENS = ("on", "tokens", "max_tokens", "random_state")


def comparable(runs: Sequence[Run]) -> str | None:
    """Return the node whose concepts are known again in all runs; None where there is none.

    Codes are compared token by token: so all runs must have read the same tokens of the same texts.
    """
    for name in runs[0].nodes:
        if not all(_has_sketches(run, name) for run in runs):
            continue
        if all(_reads(run, name) == _reads(runs[0], name) for run in runs):
            return name
    return None


def _has_sketches(run: Run, name: str) -> bool:
    node = run.nodes.get(name)
    arguments = _arguments(run).get(name, {})
    return node is not None and arguments.get("kind") == KIND and "code_sketch" in node


def _arguments(run: Run) -> dict[str, Any]:
    return dict(run.attribute("settings", {}).get("observables", {}))


def _reads(run: Run, name: str) -> tuple[Any, ...]:
    """Return what says which tokens the codes of a node are of, and how many sums tell of each.

    Results of earlier versions have fewer sums.
    """
    arguments = _arguments(run)[name]
    prints = {
        str(texts.get("name")): texts.get("fingerprint")
        for texts in run.attribute("inputs", [])
    }
    sums = run.nodes[name].sizes["sketch"]
    return (sums, prints, *(arguments.get(key) for key in TOKENS))
