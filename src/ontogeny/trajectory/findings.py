"""What an audit found, as values that go into results and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..characters import escaped
from ..markup import html_table

_MOST_STEPS = 12
_SHOWN = 5  # names in one sentence


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong or odd with some checkpoints.

    Attributes
    ----------
    kind
        Of weights: ``"unreadable"``, ``"identical"``, ``"shared-shard"``, ``"copied"``,
        ``"branch"``, ``"exchanged"``, ``"mislabelled"``, ``"altered"``, ``"non-finite"``,
        ``"frozen"``, ``"far"``, ``"order"``, ``"initialisation"``, ``"restart"``, ``"loss"``,
        ``"one-run"``. Of the rest: ``"configuration"``, ``"tokenizer"``, ``"missing"``,
        ``"ambiguous"``, ``"mixed"``, ``"unnumbered"``, ``"duplicate-dropped"``,
        ``"incomplete"``, ``"temporary"``. Of a study's result also ``"reading"``: its model is
        read in another way than was asked for.
    certainty
        ``"certain"`` where bytes, names or a written schedule prove it, else ``"suspected"``.
    steps
        The steps concerned, increasing.
    message
        One plain sentence.
    """

    kind: str
    certainty: str
    steps: tuple[int, ...]
    message: str

    def __str__(self) -> str:
        return f"{self.kind} ({self.certainty}): {self.message}"


class Findings(tuple[Finding, ...]):
    """The findings of one audit, in order; printed one per line.

    Examples
    --------
    >>> print(Findings([]))
    no findings
    """

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no findings"

    def __repr__(self) -> str:
        return f"<Findings: {len(self)}>\n{self}" if self else "<Findings: none>"

    def _repr_html_(self) -> str:
        if not self:
            return "<p>no findings</p>"
        lines = [
            (f.kind, f.certainty, some([f"{s:,}" for s in f.steps]), f.message)
            for f in self
        ]
        return html_table(("kind", "certainty", "steps", "finding"), lines)

    def to_records(self) -> list[dict[str, Any]]:
        """Return the findings as JSON-ready ``{kind, certainty, steps, message}``."""
        return [{**asdict(finding), "steps": list(finding.steps)} for finding in self]


def join_steps(steps: Sequence[int]) -> str:
    """Return steps as words with marks, of many steps how many there are between which.

    Examples
    --------
    >>> join_steps([300]), join_steps([100, 200, 300]), join_steps(range(1, 300))
    ('{step} 300', '{step}s 100, 200 and 300', '299 {checkpoint}s between 1 and 299')
    """
    if len(steps) > _MOST_STEPS:
        return f"{len(steps)} {{checkpoint}}s between {steps[0]} and {steps[-1]}"
    *head, last = map(str, steps)
    return f"{{step}}s {', '.join(head)} and {last}" if head else f"{{step}} {last}"


def counted(text: str, unit: str = "step") -> str:
    """Return a text whose marks name what the steps of a run count.

    Examples
    --------
    >>> counted("{step}s 1 and 2 are those of the last {checkpoint}", "epoch")
    'epochs 1 and 2 are those of the last checkpoint'
    """
    checkpoint = "step" if unit == "step" else "checkpoint"
    return text.replace("{step}", unit).replace("{checkpoint}", checkpoint)


def some(names: Sequence[str], separator: str = ", ") -> str:
    """Return the first few names and how many more there are.

    Examples
    --------
    >>> some(["a", "b", "c", "d", "e", "f"])
    'a, b, c, d, e and 1 more'
    """
    more = len(names) - _SHOWN
    texts = separator.join(names[:_SHOWN])
    return "".join(map(escaped, texts)) + (f" and {more} more" if more > 0 else "")
