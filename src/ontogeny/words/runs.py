"""What several runs show together: their claims joined by subject, and how alike they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..claims import Certainty, Claim, Kind
from ..trees import MergedResult
from .catalogue.page import HEADINGS, MOST_WORDS
from .content import Content, read_content
from .formats import joined, sentence_start
from .phrases import Phrases
from .sentences import OF_ROWS, place_of, said, standing_claims
from .statements import Said
from .subjects import Names
from .voice import Voice

_JOINED = (*OF_ROWS, Kind.BEFORE)


def sentences_of_runs(content: Content, node: str) -> list[Said]:
    """Return what the runs show of one node: in how many of them, and from what to what."""
    claims = [c for c in content.claims if c.subject.node == node and c.subject.run]
    return joined_claims(claims, content.spoken, content.names)


def joined_claims(claims: Sequence[Claim], voice: Voice, names: Names) -> list[Said]:
    """Return claims of runs, those that stand alike in one sentence, what most runs show first."""
    alike: dict[tuple[object, ...], list[Claim]] = {}
    for claim in standing_claims(claims):
        if claim.kind not in _JOINED:
            continue
        subject = claim.subject
        layer = subject.layer if claim.kind is Kind.BEFORE else ""
        key = (claim.kind, claim.certainty, subject.node, subject.quantity, layer)
        alike.setdefault(key, []).append(claim)
    groups = sorted(
        alike.values(), key=lambda group: (-len(_runs(group)), place_of(group))
    )
    told = [
        group
        for group in groups
        if group[0].kind is not Kind.BEFORE or _in_all(group, names)
    ]
    return [said(group, voice, names) for group in told]


def sentences_of_shared(content: Content) -> list[Said]:
    """Return what the runs share beyond control runs, and then what of it is open."""
    claims = [claim for claim in content.claims if claim.kind is Kind.SHARED]
    claims.sort(key=lambda claim: claim.certainty is not Certainty.SURE)
    return [said([claim], content.spoken, content.names) for claim in claims]


def _runs(claims: Sequence[Claim]) -> set[str]:
    return {claim.subject.run for claim in claims}


def _in_all(claims: Sequence[Claim], names: Names) -> bool:
    """Return whether every run has the same layer first and the same one last."""
    last = {claim.beside[0].name for claim in claims}
    return len(_runs(claims)) == names.runs and len(last) == 1


def heading_of_runs(content: Content) -> Said:
    """Return what the runs come to: which is ahead, else what they learned, else what changed."""
    ahead = [
        c
        for c in content.claims
        if c.kind is Kind.AHEAD and c.subject.quantity == "loss"
    ]
    if ahead and ahead[0].certainty is Certainty.SURE:
        one = said(ahead, content.spoken, content.names)
        return replace(one, text=one.text.rstrip("."))
    standing = standing_claims(c for c in content.claims if c.subject.run)
    for kind, key in (
        (Kind.LEARNED, "learned in runs"),
        (Kind.FORGOT, "forgot in runs"),
        (Kind.BEYOND_MOTION, "beyond in runs"),
    ):
        sure = [c for c in standing if c.kind is kind and c.certainty is Certainty.SURE]
        if sure:
            return _most(sure, key, content)
    changed = [c for c in standing if c.kind is Kind.BEYOND_MOTION]
    if changed:
        return _most(changed, "changed in runs", content)
    return Said(HEADINGS["runs"].format(count=content.names.runs))


def _most(claims: Sequence[Claim], key: str, content: Content) -> Said:
    """Return the heading on the quantity that holds in most runs."""
    quantities: dict[tuple[str, str], list[Claim]] = {}
    for claim in claims:
        quantities.setdefault((claim.subject.node, claim.subject.quantity), []).append(
            claim
        )
    most = max(quantities.values(), key=lambda group: len(_runs(group)))
    phrases = Phrases(most, content.spoken, content.names)
    places = (phrases.where, phrases.in_runs)
    told = [phrases.said(HEADINGS[key], where=where) for where in places]
    short = (one for one in told if len(one.text.split()) <= MOST_WORDS)
    one = next(short, told[-1])
    return replace(one, text=sentence_start(one.text))


def control_words(content: Content) -> str:
    """Say which runs have no control, if any could have one."""
    runs = zip(content.runs, content.runs_controlled, strict=True)
    without = [name for name, has_control in runs if not has_control]
    if not without or len(content.steps) < 2:
        return ""
    if len(without) == len(content.runs):
        return "No control was run, so nothing is tested against controls."
    return f"No control was run for {joined(without)}: there nothing is tested against controls."


def summary_lines(tree: MergedResult) -> list[str]:
    """Return what a comparison shows, a line each.

    Runs that are one run are said first, then the heading of its page, then a line for each
    quantity, then what the runs share.

    Parameters
    ----------
    tree
        As `compare` returns it.
    """
    content = read_content(tree)
    ones = [f"audit: {f.message}" for f in content.findings if f.kind == "one-run"]
    lines: list[str] = []
    for node in content.nodes:
        lines += [line.text for line in sentences_of_runs(content, node.path)]
    lines += [line.text for line in sentences_of_shared(content)]
    last = control_words(content)
    heading = heading_of_runs(content).text
    return list(filter(None, [*ones, heading, *lines, last]))
