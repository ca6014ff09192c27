"""Store the findings of recipes beside the documentation, and write the tables of the papers page.

    python papers/docs/evidence/collect.py reproductions [more folders of recipes]

Each folder is an ``--output`` of ``ontogeny reproduce``. The findings of a recipe become
``papers/docs/evidence/NAME.json`` (``NAME-quick.json``). From all of them come the verdicts on
``papers/docs/papers.md`` and, with their numbers and nulls, ``papers/docs/evidence/FAMILY.csv``: of
a recipe that was run at its full size, that run, else the quick one. Without a folder the tables
alone are written.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import ontogeny as og
from ontogeny_papers import reproduce

HERE = Path(__file__).parent
PAGE = HERE.parent / "papers.md"
_TABLE = re.compile(r"(<!-- table of (\S+) -->\n).*?(<!-- end -->)", re.S)
_ANSWERS = {"reproduces": "reproduce", "does not reproduce": "do not", "not shown": "are not shown"}
FAMILIES = ("concepts", "execution", "semantics")
_HEAD = "| recipe | claim | verdict |\n| --- | --- | --- |\n"
_COLUMNS = ("recipe", "claim", "verdict", "measured", "null or control", "seeds")


def found_in(folder: Path) -> dict[str, Any]:
    """Return what a recipe found, from the folder of its page."""
    result = og.open_study(folder).result
    name = folder.name.removesuffix("-quick")
    settings = json.loads(result.attrs["settings"])
    verdict = result["verdict"].to_dataset()
    rows = zip(
        *(verdict[each].values.tolist() for each in ("claim", "answer", "measured", "beside")),
        strict=True,
    )
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
            dict(zip(("claim", "verdict", "measured", "beside"), row, strict=True)) for row in rows
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


def stored() -> dict[str, dict[str, Any]]:
    """Return the best stored finding of every recipe: at full size, else the quick one."""
    found = {path.stem: json.loads(path.read_text("utf-8")) for path in HERE.glob("*-*.json")}
    best = {each["recipe"]: each for each in found.values() if each["setting"] == "quick"}
    return best | {each["recipe"]: each for each in found.values() if each["setting"] == "full"}


def table(family: str, found: dict[str, dict[str, Any]]) -> str:
    """Return the verdicts of a paper, which is the family that its recipes' names begin with."""
    findings = _of_family(family, found)
    rows = [
        _row(one, verdict, first=index == 0)
        for one in findings
        for index, verdict in enumerate(one["verdicts"])
    ]
    answers = [verdict["verdict"] for one in findings for verdict in one["verdicts"]]
    counts = {words: answers.count(answer) for answer, words in _ANSWERS.items()}
    said = ", ".join(f"{count} {words}" for words, count in counts.items())
    checks = f"{sum(counts.values())} checks of the paper's claims"
    return f"**{checks}: {said}.**\n\n{_HEAD}{''.join(rows)}"


def numbers(family: str, found: dict[str, dict[str, Any]]) -> str:
    """Return the verdicts of a paper with their numbers and nulls, as CSV."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(_COLUMNS)
    for one in _of_family(family, found):
        for verdict in one["verdicts"]:
            cells = (verdict[key] for key in ("claim", "verdict", "measured", "beside"))
            lines.writerow((_short_name(one), *cells, _seeds_in_words(one)))
    return text.getvalue()


def _of_family(family: str, found: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the findings of a family in the order in which the recipes are listed."""
    names = [name for name in reproduce.names() if name.startswith(f"{family}-")]
    return [found[name] for name in names if name in found]


def _row(one: dict[str, Any], verdict: dict[str, str], *, first: bool) -> str:
    file = f"{one['recipe']}{'-quick' if one['setting'] == 'quick' else ''}.json"
    seeds = f"{_seeds_in_words(one)} seed{'s' * (one['seeds'] != 1)}"
    cells = [
        f"[{_short_name(one)}](evidence/{file}) ({seeds})" if first else "",
        *(verdict[key].replace("|", "\\|") for key in ("claim", "verdict")),
    ]
    return f"| {' | '.join(cells)} |\n"


def _short_name(one: dict[str, Any]) -> str:
    return str(one["recipe"].partition("-")[2])


def _seeds_in_words(one: dict[str, Any]) -> str:
    return f"{one['seeds']}{' quick' if one['setting'] == 'quick' else ''}"


def with_tables(page: str, found: dict[str, dict[str, Any]]) -> str:
    """Return the page with its tables written anew."""
    return _TABLE.sub(lambda match: match[1] + table(match[2], found) + match[3], page)


def main() -> None:
    """Store the findings of the folders and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, help="outputs of ontogeny reproduce")
    names = set(reproduce.names())
    for output in parser.parse_args().folders:
        for folder in sorted(output.iterdir()):
            if folder.name.removesuffix("-quick") in names and (folder / "report.html").exists():
                text = json.dumps(found_in(folder), indent=1, ensure_ascii=False)
                (HERE / f"{folder.name}.json").write_text(f"{text}\n", encoding="utf-8")
    found = stored()
    PAGE.write_text(with_tables(PAGE.read_text("utf-8"), found), encoding="utf-8")
    for family in FAMILIES:
        (HERE / f"{family}.csv").write_text(numbers(family, found), encoding="utf-8")


if __name__ == "__main__":
    main()
