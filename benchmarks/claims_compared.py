"""Whether two versions of the library claim and say the same of one stored study.

    python benchmarks/claims_compared.py write STUDY OUT.json ...     (with either version)
    python benchmarks/claims_compared.py compare OLD.json NEW.json ...

`write` makes the claims of rows, abilities and the audit anew from the study's numbers, takes those
of observables as they are stored, and gives each with the sentences of the page that tell it. Of a
version that has no claims it gives what its rows and abilities are judged to be.
`compare` lists claims that only one version makes or that differ in certainty, reason or numbers,
and claims that are no longer told in a sentence; it exits with 1 where there is any.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Of a claim what may not differ; numbers to six digits.
TEXTS = ("certainty", "reason", "units")
NUMBERS = ("value", "first", "last", "since", "since_low", "since_high")
# Kinds that are made of the numbers of a study alone.
REMADE = (
    "learned",
    "forgot",
    "changed",
    "beyond motion",
    "before",
    "above chance",
    "gained",
    "lost",
    "changed on these items",
    "damaged",
)


def written(study: Path) -> dict[str, dict[str, Any]]:
    """Return claims by kind and subject, each with how often and in which sentences it is told."""
    import xarray as xr

    from ontogeny.words.content import read_content

    place = study / "result.zarr"
    tree = xr.open_datatree(place, engine="zarr").load()
    if find_spec("ontogeny.claims") is None:
        return verdicts(read_content(tree))
    from ontogeny.words.page_claims import claims_of, claims_of_result
    from ontogeny.words.sections import section_sentences

    claims = claims_of_result(tree)
    if not json.loads(
        tree.attrs.get("runs", "[]")
    ):  # of several runs each made its own
        nodes = {name: child.to_dataset() for name, child in tree.children.items()}
        anew = claims_of(nodes, {}, json.loads(tree.attrs.get("findings", "[]")))
        claims = [claim for claim in claims if claim.kind.value not in REMADE]
        claims += [claim for claim in anew if claim.kind.value in REMADE]
    content = read_content(tree)
    said = [one for node in content.nodes for one in section_sentences(content, node)]
    told: dict[str, list[str]] = {}
    for one in said:
        for claim in one.claims:
            told.setdefault(_key(claim), []).append(one.text)
    found = {}
    for claim in claims:
        fields = asdict(claim)
        texts = {name: str(fields[name] or "") for name in TEXTS}
        numbers = {name: _rounded(fields[name]) for name in NUMBERS}
        found[_key(claim)] = {**texts, **numbers, "told": told.get(_key(claim), [])}
    return found


def verdicts(content: Any) -> dict[str, dict[str, Any]]:
    """Return the same of a version that has no claims, from its verdicts on rows and abilities.

    What is not sure has no reason there, and no certainty but this.
    """
    from ontogeny.words.abilities import abilities_of

    found: dict[str, dict[str, Any]] = {}
    for node in content.nodes:
        if node.role == "motion":
            continue
        parts = Counter((row.variable, row.layer) for row in node.rows)
        for row in node.rows:
            label = row.quantity if parts[row.variable, row.layer] > 1 else ""
            place = [node.path, row.variable, row.layer, label, ""]
            of_runs = [(run.name, run.row) for run in row.runs] or [("", row)]
            for run, one in of_runs:
                for kind, is_sure in _kinds_of(one):
                    found[" | ".join([kind, run, *place])] = _verdict(one, is_sure)
    paths = {node.id: node.path for node in content.nodes}
    for ability in abilities_of(content.nodes):
        place = [paths[ability.node], "accuracy", ""]
        for kind in ("above chance", "gained", "lost"):
            is_sure = getattr(ability, kind.partition(" ")[0])
            if is_sure or kind == "above chance":
                key = " | ".join([kind, "", *place, ability.name, ""])
                found[key] = {"certainty": _SURE[is_sure], "told": []}
                found[key]["last"] = _rounded(ability.accuracy)
    return found


_SURE = {True: "sure", False: "not sure"}


def _kinds_of(row: Any) -> Iterator[tuple[str, bool]]:
    yield "changed", bool(row.changed)
    yield "beyond motion", bool(row.beyond)
    if row.can_learn:
        yield "learned", bool(row.learned)


def _verdict(row: Any, is_sure: bool) -> dict[str, Any]:
    dates = ("half_step", "half_step_low", "half_step_high") if is_sure else ()
    since = {
        name: _rounded(getattr(row, of))
        for name, of in zip(("since", "since_low", "since_high"), dates, strict=False)
    }
    ends = {"first": _rounded(row.first_value), "last": _rounded(row.last_value)}
    return {
        "certainty": _SURE[is_sure],
        "units": row.units,
        "told": [],
        **ends,
        **since,
    }


def _key(claim: Any) -> str:
    return " | ".join([claim.kind.value, claim.subject.run, *claim.subject.key])


def _rounded(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return a line for each claim that differs."""
    lines = [f"no longer claimed: {key}" for key in old if key not in new]
    had_claims = any("reason" in each for each in old.values())
    if had_claims:
        lines += [f"only now claimed: {key}" for key in new if key not in old]
    for key in old.keys() & new.keys():
        lines += [
            f"{key}: {name} {old[key][name]} became {new[key][name]}"
            for name in (*TEXTS, *NUMBERS)
            if name in old[key] and not _agree(old[key][name], new[key][name])
        ]
        if old[key]["told"] and not new[key]["told"]:
            lines.append(f"no longer told: {key}: {old[key]['told'][0]}")
    return sorted(lines)


def _agree(old: Any, new: Any) -> bool:
    return old == new or (old == "not sure" and new != "sure")


def main(arguments: list[str]) -> int:
    """Write the claims of a study, or compare pairs of such files."""
    verb, *paths = arguments
    if verb == "write":
        for study, out in zip(paths[::2], paths[1::2], strict=True):
            claims = written(Path(study))
            Path(out).write_text(json.dumps(claims, indent=1), encoding="utf-8")
            print(f"{study}: {len(claims):,} claims", flush=True)
        return 0
    found = 0
    for before, after in zip(paths[::2], paths[1::2], strict=True):
        old, new = (
            json.loads(Path(p).read_text(encoding="utf-8")) for p in (before, after)
        )
        lines = differences(old, new)
        words = [
            sum(
                len(text.split())
                for text in {t for c in each.values() for t in c["told"]}
            )
            for each in (old, new)
        ]
        print(
            f"{after}: {len(old):,} claims, {len(lines):,} differences; words {words}"
        )
        print(*(f"  {line}" for line in lines), sep="\n")
        found += len(lines)
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
