"""Whether two versions of the library claim and say the same of one stored study.

    python benchmarks/claims_compared.py write STUDY OUT.json     (with either version)
    python benchmarks/claims_compared.py compare OLD.json NEW.json ...

`write` makes the claims of rows, abilities and the audit anew from the study's numbers, takes those
of observables as they are stored, and gives each with the sentences of the page that tell it.
`compare` lists claims that only one version makes or that differ in certainty, reason or numbers,
and claims that are no longer told in a sentence; it exits with 1 where there is any.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict
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
    from ontogeny.words.page_claims import claims_of, claims_of_result
    from ontogeny.words.sections import section_sentences

    place = study / "result.zarr"
    tree = xr.open_datatree(place, engine="zarr").load()
    nodes = {name: child.to_dataset() for name, child in tree.children.items()}
    anew = claims_of(nodes, {}, json.loads(tree.attrs.get("findings", "[]")))
    claims = [claim for claim in anew if claim.kind.value in REMADE]
    claims += [c for c in claims_of_result(tree) if c.kind.value not in REMADE]
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


def _key(claim: Any) -> str:
    return " | ".join([claim.kind.value, claim.subject.run, *claim.subject.key])


def _rounded(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return a line for each claim that differs."""
    lines = [f"no longer claimed: {key}" for key in old if key not in new]
    lines += [f"only now claimed: {key}" for key in new if key not in old]
    for key in old.keys() & new.keys():
        lines += [
            f"{key}: {name} {old[key][name]} became {new[key][name]}"
            for name in (*TEXTS, *NUMBERS)
            if old[key][name] != new[key][name]
        ]
        if old[key]["told"] and not new[key]["told"]:
            lines.append(f"no longer told: {key}: {old[key]['told'][0]}")
    return sorted(lines)


def main(arguments: list[str]) -> int:
    """Write the claims of a study, or compare pairs of such files."""
    verb, *paths = arguments
    if verb == "write":
        claims = written(Path(paths[0]))
        Path(paths[1]).write_text(json.dumps(claims, indent=1), encoding="utf-8")
        print(f"{paths[0]}: {len(claims):,} claims")
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
