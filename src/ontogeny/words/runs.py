"""What several runs show together: their claims joined by subject, and how alike they are."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from scipy.stats import spearmanr

from ..claims import Certainty, Claim, Kind
from ..trees import MergedResult
from .catalogue import HEADINGS, MOST_WORDS
from .content import Content, read_content
from .formats import joined, sentence_start, value_range
from .phrases import Names, Phrases
from .sentences import OF_ROWS, Said, place_of, said, standing_claims
from .voice import Voice

MIN_ROWS = 4  # fewer rows have no rank correlation worth a number
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
    groups = sorted(alike.values(), key=lambda group: (-len(_runs(group)), place_of(group)))
    told = [group for group in groups if group[0].kind is not Kind.BEFORE or _in_all(group, names)]
    return [said(group, voice, names) for group in told]


def _runs(claims: Sequence[Claim]) -> set[str]:
    return {claim.subject.run for claim in claims}


def _in_all(claims: Sequence[Claim], names: Names) -> bool:
    """Return whether every run has the same layer first and the same one last."""
    last = {claim.beside[0].name for claim in claims}
    return len(_runs(claims)) == names.runs and len(last) == 1


def heading_of_runs(content: Content) -> str:
    """Return what the runs come to: which is ahead, else what they learned, else what changed."""
    ahead = [c for c in content.claims if c.kind is Kind.AHEAD and c.subject.quantity == "loss"]
    if ahead and ahead[0].certainty is Certainty.SURE:
        return said(ahead, content.spoken, content.names).text.rstrip(".")
    standing = standing_claims(c for c in content.claims if c.subject.run)
    for kind, key in ((Kind.LEARNED, "learned in runs"), (Kind.FORGOT, "forgot in runs"),
                      (Kind.BEYOND_MOTION, "beyond in runs")):  # fmt: skip
        sure = [c for c in standing if c.kind is kind and c.certainty is Certainty.SURE]
        if sure:
            return _most(sure, key, content)
    changed = [c for c in standing if c.kind is Kind.BEYOND_MOTION]
    if changed:
        return _most(changed, "changed in runs", content)
    return HEADINGS["runs"].format(count=content.names.runs)


def _most(claims: Sequence[Claim], key: str, content: Content) -> str:
    """Return the heading on the quantity that holds in most runs."""
    quantities: dict[tuple[str, str], list[Claim]] = {}
    for claim in claims:
        quantities.setdefault((claim.subject.node, claim.subject.quantity), []).append(claim)
    most = max(quantities.values(), key=lambda group: len(_runs(group)))
    phrases = Phrases(most, content.spoken, content.names)
    short = HEADINGS[key].replace("{where}", "{in_runs}")
    texts = [phrases.filled(template) for template in (HEADINGS[key], short)]
    return sentence_start(next((t for t in texts if len(t.split()) <= MOST_WORDS), texts[-1]))


def correlations(rows: xr.Dataset) -> list[tuple[int, float]]:
    """Return for each pair of runs its rows, and Spearman's correlation of half-change steps.

    Rows count that changed in both runs; a pair with fewer than `MIN_ROWS` of them has none.

    Examples
    --------
    >>> half = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 40.0], [4.0, 30.0]])
    >>> rows = xr.Dataset({"half_step": (("row", "run"), half)})
    >>> [(n, round(r, 2)) for n, r in correlations(rows.assign(changed=rows.half_step > 0))]
    [(4, 0.8)]
    """
    half = rows["half_step"].where(rows["changed"]).transpose("row", "run").values
    pairs = []
    for a, b in itertools.combinations(half.T, 2):
        both = np.isfinite(a) & np.isfinite(b)
        if both.sum() >= MIN_ROWS and np.ptp(a[both]) and np.ptp(b[both]):
            pairs.append((int(both.sum()), float(spearmanr(a[both], b[both]).statistic)))
    return pairs


def agreement_sentence(rows: xr.Dataset, what: str) -> list[str]:
    """Say how alike the order of rows is between runs, where that can be told, and of how many."""
    pairs = correlations(rows)
    if not pairs:
        return []
    counts = [count for count, _ in pairs]
    values = [value for _, value in pairs]
    mean = f"{np.mean(values):.2f}"
    if len(pairs) > 1:
        mean += f" ({min(values):.2f} to {max(values):.2f})"
    of = f"{value_range(counts)} of {rows.sizes['row']} {what}"
    words = "Between runs the order in which rows changed correlates by"
    return [f"{words} {mean.replace('-', '−')}, over {of}."]


def control_words(controlled: Mapping[str, bool]) -> str:
    """Say which runs have no control, if any."""
    without = [name for name, has_control in controlled.items() if not has_control]
    if not without:
        return ""
    if len(without) == len(controlled):
        return "No control was run, so that motion is not tested."
    return f"No control was run for {joined(without)}: there motion is not tested."


def summary_lines(tree: MergedResult) -> list[str]:
    """Return what a comparison shows, a line each.

    Runs that are one run are said first, then the heading of its page, then a line for each
    quantity.

    Parameters
    ----------
    tree
        As `compare` returns it.
    """
    content = read_content(tree)
    ones = [f"audit: {f.message}" for f in content.findings if f.kind == "one-run"]
    lines = [line.text for node in content.nodes for line in sentences_of_runs(content, node.path)]
    runs = dict(zip(content.runs, content.runs_controlled, strict=True))
    last = control_words(runs) if len(content.steps) > 1 else ""
    return list(filter(None, [*ones, heading_of_runs(content), *lines, last]))
