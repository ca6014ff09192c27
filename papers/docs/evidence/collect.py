"""Run recipes, store what they find beside the documentation, and write all claims as one file.

    python papers/docs/evidence/collect.py FOLDER [RECIPE ...] [--quick]

Of the named recipes each is run in ``FOLDER`` where its page is not there yet, and stored at once: a
call that was stopped goes on where it was. Without names all that ``FOLDER`` holds is stored, and
without a folder nothing but what is stored is judged again. The findings of a recipe become
``papers/docs/evidence/NAME.json`` (``NAME-quick.json``), and in ``papers/docs/evidence/numbers``
stands what its judge was given, seed by seed with the draws of every null: draws as whole numbers,
others in single precision. From all of them come the counts in ``papers/docs/papers.md`` and, with
their numbers and nulls, `CLAIMS`, which the command shows and of which the site makes its table
(``claims_table.py``): of a recipe that was run at its full size, that run, else the quick one.
Findings whose numbers are stored are judged again from these, so that a judge that changes needs no
new run; what changed is printed.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

import packing

import ontogeny as og
from ontogeny_papers import reproduce
from ontogeny_papers.reproduce.stored_claims import CLAIMS, COLUMNS

HERE = Path(__file__).parent
NUMBERS = HERE / "numbers"
PAGE = HERE.parent / "papers.md"
_COUNT = re.compile(r"(<!-- count of (\S+) -->\n).*?(<!-- end -->)", re.S)
_KEYS = ("claim", "kind", "certainty", "reason")  # of which a change is printed
FAMILIES = ("concepts", "execution", "semantics")


# ---- run and store ------------------------------------------------------------------------------


def store(folder: Path) -> None:
    """Store what a recipe found, and its numbers where they are not too many."""
    _write(HERE / f"{folder.name}.json", found_in(folder), indent=1)
    if (judged := numbers_in(folder)) is not None:
        _write(NUMBERS / f"{folder.name}.json", judged, separators=(",", ":"))


def found_in(folder: Path) -> dict[str, Any]:
    """Return what a recipe found, from the folder of its page."""
    result = og.open_study(folder).result
    name = folder.name.removesuffix("-quick")
    settings = json.loads(result.attrs["settings"])
    verdict = result["verdict"].to_dataset()
    columns = {str(name): verdict[name].values.tolist() for name in verdict.variables}
    quick, seeds = folder.name.endswith("-quick"), _seeds(settings)
    return {
        "recipe": name,
        "command": command(name, quick, seeds),
        "source": reproduce.recipe(name).source,
        "title": result.attrs["title"],
        "setting": "quick" if quick else "full",
        "seeds": seeds,
        "runs": [Path(run).name for run in settings.get("sources", [])],
        "ontogeny": og.__version__,
        "verdicts": [
            dict(zip(columns, row, strict=True))
            for row in zip(*columns.values(), strict=True)
        ],
    }


def command(name: str, quick: bool, seeds: int) -> str:
    """Return the command that computes these findings again."""
    recipe = reproduce.recipe(name)
    usual = getattr(recipe.quick if quick else recipe.full, "seeds", (0,))
    of_seeds = f" --seeds {seeds}" if len(usual) != seeds else ""
    return f"ontogeny reproduce {name}{' --quick' * quick}{of_seeds}"


def _seeds(settings: dict[str, Any]) -> int:
    """Return how many seeds were trained or recorded; 1 where nothing was trained."""
    return len(settings.get("sources") or settings["size"].get("seeds") or (0,))


def numbers_in(folder: Path) -> list[Any] | None:
    """Return what the judge of a recipe reads; None where that is too much.

    The recipe reads what it has measured in the folder.
    """
    name, quick = folder.name.removesuffix("-quick"), folder.name.endswith("-quick")
    recipe = reproduce.recipe(name)
    settings = json.loads(og.open_study(folder).result.attrs["settings"])
    sources, seeds = settings.get("sources", ()), settings["size"].get("seeds")
    count = len(seeds) if seeds and not sources else None
    size, materials, _ = recipe.prepared(folder.parent, quick, count, sources=sources)
    numbers = recipe.measured(size, materials).numbers
    return (
        None if recipe.judge is None else packing.smallest(recipe.judge, list(numbers))
    )


def judge_again() -> list[str]:
    """Store what today's judges say of the stored numbers; return what changed."""
    changes = []
    for path in sorted(NUMBERS.glob("*.json")):
        finding = json.loads((HERE / path.name).read_text("utf-8"))
        judge = reproduce.recipe(finding["recipe"]).judge
        numbers = packing.unpacked(json.loads(path.read_text("utf-8")))
        today = [verdict.stored() for verdict in judge(*numbers)]
        for before, now in zip_longest(finding["verdicts"], today, fillvalue={}):
            if [before.get(key) for key in _KEYS] != [now.get(key) for key in _KEYS]:
                changes.append(f"{path.stem}: {_shown(before)} -> {_shown(now)}")
        _write(HERE / path.name, finding | {"verdicts": today}, indent=1)
    return changes


def _shown(verdict: Mapping[str, str]) -> str:
    return ": ".join(filter(None, (verdict.get(key, "none") for key in _KEYS)))


def _write(path: Path, content: Any, **options: Any) -> None:
    text = json.dumps(content, ensure_ascii=False, **options)
    path.write_text(f"{text}\n", encoding="utf-8")


# ---- all claims ---------------------------------------------------------------------------------


def stored() -> dict[str, dict[str, Any]]:
    """Return the best stored finding of every recipe: at full size, else the quick one."""
    found = [json.loads(path.read_text("utf-8")) for path in HERE.glob("*-*.json")]
    best = {each["recipe"]: each for each in found if each["setting"] == "quick"}
    best |= {each["recipe"]: each for each in found if each["setting"] == "full"}
    names = [name for name in reproduce.names() if name in best]
    return {name: best[name] for name in names}


def rows(found: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    """Give every claim with its numbers, nulls and files, as texts by column."""
    for one in found.values():
        file = f"{one['recipe']}{'-quick' * (one['setting'] == 'quick')}.json"
        numbers = f"numbers/{file}" if (NUMBERS / file).exists() else ""
        of_recipe = {
            "recipe": one["recipe"],
            "source": one["source"],
            "seeds": f"{one['seeds']}{' quick' * (one['setting'] == 'quick')}",
            "findings": file,
            "numbers": numbers,
            "command": one["command"],
        }
        for verdict in one["verdicts"]:
            of_paper = "yes" if verdict["of_paper"] else "no"
            row = of_recipe | verdict | {"of_paper": of_paper}
            yield {column: row[column] for column in COLUMNS}


def claims_csv(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return every claim as a line of CSV."""
    text = io.StringIO()
    lines = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    lines.writeheader()
    lines.writerows(rows(found))
    return text.getvalue()


def count(family: str, found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return how sure the claims of a paper are, which is the family of its recipes' names."""
    of_family = [
        (row["kind"], row["certainty"])
        for row in rows(found)
        if row["recipe"].startswith(f"{family}-") and row["of_paper"] == "yes"
    ]
    some = {
        "reproduce": of_family.count(("reproduces", "sure")),
        "are contradicted": of_family.count(("contradicts", "sure")),
        "are as controls": sum(word == "as controls" for _, word in of_family),
        "are open": sum(word == "open" for _, word in of_family),
        "are not tested": sum(word == "not tested" for _, word in of_family),
    }
    said = ", ".join(f"{number} {words}" for words, number in some.items())
    return f"**{len(of_family)} checks of the paper's claims: {said}.**\n"


def with_counts(page: str, found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page with its counts written anew."""
    return _COUNT.sub(lambda part: part[1] + count(part[2], found) + part[3], page)


def main() -> None:
    """Run what is asked for, judge what is stored again and write all claims."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, help="output of the recipes")
    parser.add_argument("recipes", nargs="*", help="recipes to run, in this order")
    parser.add_argument("--quick", action="store_true", help="at their small size")
    asked = parser.parse_args()
    for name in asked.recipes:
        place = asked.folder / f"{name}{'-quick' * asked.quick}"
        if not (place / "report.html").exists():
            reproduce.recipe(name).run(asked.folder, quick=asked.quick)
        store(place)
    if asked.folder and not asked.recipes:
        for place in sorted(asked.folder.iterdir()):
            known = place.name.removesuffix("-quick") in reproduce.names()
            if known and (place / "report.html").exists():
                store(place)
    sys.stdout.writelines(f"{change}\n" for change in judge_again())
    found = stored()
    PAGE.write_text(with_counts(PAGE.read_text("utf-8"), found), encoding="utf-8")
    CLAIMS.write_text(claims_csv(found), encoding="utf-8")


if __name__ == "__main__":
    main()
