"""What differs between runs besides their training, and so forbids a comparison unless allowed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ArgumentError, check_choice
from .sources import Run, levels_of

KINDS = ("inputs", "tokenizers", "arguments", "settings", "checkpoints")
"""What may be allowed to differ."""


@dataclass(frozen=True)
class Difference:
    """One thing in which runs differ: its kind, and a sentence that names it."""

    kind: str
    words: str


def check_differences(runs: Sequence[Run], allow: Sequence[str]) -> list[str]:
    """Return in words what differs and is allowed to; refuse what is not.

    Raises
    ------
    ArgumentError
        If runs differ in something that is not allowed, or `allow` names no kind of difference.
    """
    kinds = [allow] if isinstance(allow, str) else list(allow)
    for kind in kinds:
        check_choice("allow", kind, KINDS)
    differences = list(_differences(runs))
    refused = [one for one in differences if one.kind not in kinds]
    if refused:
        names = list(dict.fromkeys(one.kind for one in refused))
        raise ArgumentError(
            " ".join(one.words for one in refused)
            + f" Their curves would differ for that reason too. allow={json.dumps(names)} (--allow "
            f"{','.join(names)}) compares them all the same and says so on the page."
        )
    return [one.words for one in differences]


def _differences(runs: Sequence[Run]) -> Iterator[Difference]:
    yield from _of_inputs(runs)
    yield from _of_arguments(runs)
    yield from _of_settings(runs)
    yield from _of_checkpoints(runs)


def _of_inputs(runs: Sequence[Run]) -> Iterator[Difference]:
    """Tell other texts from the same texts cut up by another tokenizer, where that is known."""
    sets = [{str(i.get("name")): i for i in run.attribute("inputs", [])} for run in runs]
    shared = [name for name in sets[0] if all(name in own for own in sets)]
    if not shared and any(sets):
        words = _listed(runs, lambda i: ", ".join(sets[i]) or "none")
        yield Difference("inputs", f"The runs share no set of texts: {words}.")
    for name in shared:
        own = [each[name] for each in sets]
        if _alike(own, "fingerprint"):
            continue
        sizes = [each.get("vocabulary") for each in own]
        known = None not in sizes
        if _alike(own, "texts_digest") and own[0].get("texts_digest"):
            if _alike(own, "tokens") and _alike(own, "vocabulary"):
                other = "labels, documents or ids"
                words = f"The runs read the same texts {name!r} with other {other}."
                yield Difference("inputs", words)
                continue
            what = _listed(runs, lambda i, own=own: f"{own[i].get('tokens', 0):,} tokens")
            words = f"The runs were studied with different tokenizers: {name!r} is {what}."
            yield Difference("tokenizers", words)
            continue
        what = _listed(runs, lambda i, own=own: _texts(own[i]))
        yield Difference(
            "inputs", f"The runs were studied on different texts: {name!r} holds {what}."
        )
        if known and len(set(sizes)) > 1:
            what = _listed(runs, lambda i, sizes=sizes: f"{sizes[i]:,} ids")
            yield Difference("tokenizers", f"The runs have different tokenizers: {what}.")


def _texts(entry: dict[str, Any]) -> str:
    print_ = str(entry.get("fingerprint", "unknown"))[:8]
    return f"{entry.get('texts', '?')} texts, {entry.get('tokens', '?')} tokens ({print_})"


def _of_arguments(runs: Sequence[Run]) -> Iterator[Difference]:
    """Compare the arguments of the observables that all runs have."""
    found = [run.attribute("settings", {}).get("observables", {}) for run in runs]
    for name in found[0]:
        own = [each[name] for each in found if name in each]
        if len(own) < len(runs):
            continue
        for key in dict.fromkeys(key for arguments in own for key in arguments):
            if not _alike(own, key):
                what = _listed(runs, lambda i, own=own, key=key: json.dumps(own[i].get(key)))
                words = f"{name!r} was measured with a different {key}: {what}."
                yield Difference("arguments", words)


def _of_settings(runs: Sequence[Run]) -> Iterator[Difference]:
    """Compare how models were run, and what distances are measured to."""
    own = [run.attribute("settings", {}) for run in runs]
    for key, words in (("dtype", "in different dtypes"), ("reference", "to different references")):
        if not _alike(own, key):
            what = _listed(runs, lambda i, key=key: json.dumps(own[i].get(key)))
            yield Difference("settings", f"The runs were measured {words}: {what}.")
    if len(levels_of(runs)) > 1:
        what = _listed(runs, lambda i: f"α = {runs[i].levels.change:g}")
        yield Difference("settings", f"The runs were judged at different levels: {what}.")


def _of_checkpoints(runs: Sequence[Run]) -> Iterator[Difference]:
    """Find runs that are the same run: that they agree says nothing."""
    own = [run.attribute("trajectory", {}).get("digests", {}) for run in runs]
    for i, j in itertools.combinations(range(len(runs)), 2):
        if own[i] and own[i] == own[j]:
            yield Difference(
                "checkpoints",
                f"{runs[i].name!r} and {runs[j].name!r} are the same checkpoints, so that their "
                "agreement says nothing.",
            )


def _alike(entries: Sequence[dict[str, Any]], key: str) -> bool:
    return all(entry.get(key) == entries[0].get(key) for entry in entries)


def _listed(runs: Sequence[Run], words: Callable[..., str]) -> str:
    return "; ".join(f"{words(i)} in {run.name!r}" for i, run in enumerate(runs))
