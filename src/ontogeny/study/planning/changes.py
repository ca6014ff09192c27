"""What made cells stale, in words: fingerprints name it by components and digests."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, starmap
from pathlib import Path
from typing import Any, TypeAlias

from ...errors import StoreError
from ...store import difference, plain, read_header
from ...words.formats import plural
from ..cells.graph import SummaryCell

# The differences of a cell, and the components of its fingerprint.
Stale: TypeAlias = tuple[Sequence[str], Mapping[str, Any]]

_CODE = re.compile(r"code\.(.+): \S+ -> ")
_STEP = re.compile(r"weights\.(\d+): (absent -> )?")
_INPUTS = re.compile(r"inputs\.(.+): \w+ -> ")
_CONTENT = re.compile(r"arguments\.content: ")
_READ = re.compile(r"(?:state|series|cells)\b.*: .* -> ")


def counted_changes(stale: Iterable[Stale], what: str) -> list[str]:
    """Return one line for each kind of difference, with how many cells it concerns.

    That what a cell reads is computed anew is said only of those that nothing else made stale.

    Parameters
    ----------
    stale
        The differences of each cell, with the components of its fingerprint.
    what
        What the cells are called.

    Examples
    --------
    >>> why = ["code.capture: 1f -> 2e"]
    >>> counted_changes([(why, {}), (why, {})], "cell")
    ['the code of capture (2 cells)']
    """
    reasons = Counter(chain.from_iterable(starmap(_in_words, stale)))
    return [f"{line} ({plural(n, what)})" for line, n in reasons.most_common()]


def changed_summaries(summaries: Iterable[tuple[Path, SummaryCell]]) -> list[str]:
    """Return which code and libraries make summaries stale that lie in their folders."""
    stale: list[Stale] = []
    for folder, cell in summaries:
        try:
            stored = read_header(folder / cell.place)["fingerprint"]
        except StoreError:  # there is none, or it is damaged
            continue
        names = ("code", "libraries")
        now = plain({name: cell.components[name] for name in names})
        why = difference({name: stored.get(name) for name in names}, now)
        stale.append((why, cell.components))
    return counted_changes(stale, "summary")


def _in_words(why: Sequence[str], components: Mapping[str, Any]) -> list[str]:
    """Return the differences of a cell; all steps of a kind are in one line, and all of the code.

    Examples
    --------
    >>> _in_words(["weights.8: absent -> 11b0979f", "weights.16: absent -> e140"], {})
    ['new steps: 8, 16']
    >>> _in_words(["code.capture: 1f -> 2e", "code.needs: 3c -> 8a"], {})
    ['the code of capture, needs']
    >>> _in_words(
    ...     ["arguments.content: 1f -> 2e"], {"arguments": {"examples": ["a.csv"]}}
    ... )
    ['what a.csv holds']
    """
    rooms: list[str] = []
    steps: dict[bool, list[str]] = {True: [], False: []}
    lines: list[str] = []
    read = False
    for line in why:
        if match := _CODE.match(line):
            rooms.append(match[1])
        elif match := _STEP.match(line):
            steps[bool(match[2])].append(match[1])
        elif match := _INPUTS.match(line):
            lines.append(f"the texts of input set {match[1]!r}")
        elif _CONTENT.match(line):
            files = components.get("arguments", {}).get("examples") or ("its files",)
            lines.append(f"what {', '.join(files)} holds")
        elif _READ.match(line):
            read = True
        else:
            lines.append(line)
    if rooms:
        more = f" and {len(rooms) - 3} more parts" if len(rooms) > 3 else ""
        lines.insert(0, f"the code of {', '.join(rooms[:3])}{more}")
    for new, words in ((True, "new steps: "), (False, "the weights of steps ")):
        if steps[new]:
            lines.append(words + ", ".join(sorted(steps[new], key=int)))
    return lines or (["what they read is computed anew"] if read else [])
