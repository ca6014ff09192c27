"""Store the findings of recipes beside the documentation, and write the tables of the papers page.

    python papers/docs/evidence/collect.py reproductions [more folders of recipes]

Each folder is an ``--output`` of ``ontogeny reproduce``. The findings of a recipe become
``papers/docs/evidence/NAME.json`` (``NAME-quick.json``), and in ``papers/docs/evidence/numbers``
stands what its judge was given, seed by seed with the draws of every null: only what the verdicts
rest on, with as few digits as give the same sentences. From all of them come the verdicts on
``papers/docs/papers.md`` and, with their numbers and nulls, ``papers/docs/evidence/FAMILY.csv``: of
a recipe that was run at its full size, that run, else the quick one. Findings whose numbers are
stored are judged again from these, so that a judge that changes needs no new run; the changed
verdicts are printed.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import re
import sys
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from packing import sentences, smallest, unpacked

import ontogeny as og
from ontogeny_papers import reproduce

HERE = Path(__file__).parent
NUMBERS = HERE / "numbers"
MOST_WORDS = 25  # in a cell of a table
PAGE = HERE.parent / "papers.md"
_TABLE = re.compile(r"(<!-- table of (\S+) -->\n).*?(<!-- end -->)", re.S)
_ANSWERS = {
    "reproduces": "reproduce",
    "does not reproduce": "do not",
    "not shown": "are not shown",
}
_KEYS = ("claim", "verdict")  # of which a change is printed
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
        *(
            verdict[each].values.tolist()
            for each in ("claim", "answer", "measured", "beside")
        ),
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
            dict(zip(("claim", "verdict", "measured", "beside"), row, strict=True))
            for row in rows
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
    """Return what the judge of a recipe needs for the same sentences; None where that is too much.

    The recipe reads what it has measured in the folder.
    """
    name, quick = folder.name.removesuffix("-quick"), folder.name.endswith("-quick")
    recipe = reproduce.recipe(name)
    settings = json.loads(og.open_study(folder).result.attrs["settings"])
    sources, seeds = settings.get("sources", ()), settings["size"].get("seeds")
    count = len(seeds) if seeds and not sources else None
    size, materials, _ = recipe.prepared(folder.parent, quick, count, sources=sources)
    numbers = recipe.measured(size, materials).numbers
    judge = getattr(recipe, "judge", None)
    return None if judge is None or not numbers else smallest(judge, list(numbers))


def judge_again() -> list[str]:
    """Store what today's judges say of the stored numbers; return the verdicts that changed."""
    changes = []
    for path in sorted(NUMBERS.glob("*.json")):
        finding = json.loads((HERE / path.name).read_text("utf-8"))
        judge = reproduce.recipe(finding["recipe"]).judge
        today = sentences(judge(*unpacked(json.loads(path.read_text("utf-8")))))
        for before, now in zip_longest(finding["verdicts"], today, fillvalue={}):
            if [before.get(key) for key in _KEYS] != [now.get(key) for key in _KEYS]:
                changes.append(f"{path.stem}: {_shown(before)} -> {_shown(now)}")
        _write(path.name, finding | {"verdicts": today})
    return changes


def _shown(verdict: Mapping[str, str]) -> str:
    return ": ".join(verdict.get(key, "none") for key in _KEYS)


def _write(name: str, finding: Mapping[str, Any]) -> None:
    text = json.dumps(finding, indent=1, ensure_ascii=False)
    (HERE / name).write_text(f"{text}\n", encoding="utf-8")


# ---- the tables ---------------------------------------------------------------------------------


def stored() -> dict[str, dict[str, Any]]:
    """Return the best stored finding of every recipe: at full size, else the quick one."""
    found = {
        path.stem: json.loads(path.read_text("utf-8")) for path in HERE.glob("*-*.json")
    }
    best = {
        each["recipe"]: each for each in found.values() if each["setting"] == "quick"
    }
    return best | {
        each["recipe"]: each for each in found.values() if each["setting"] == "full"
    }


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
    """Return the verdicts of a paper with their numbers and nulls, as CSV.

    What is too long for a cell goes on in the next row, in which the other cells are empty.
    """
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(_COLUMNS)
    for one in _of_family(family, found):
        for verdict in one["verdicts"]:
            cells = (verdict[key] for key in ("claim", "verdict", "measured", "beside"))
            row = (_short_name(one), *cells, _seeds_in_words(one))
            lines.writerows(zip_longest(*map(parts, row), fillvalue=""))
    return text.getvalue()


def parts(text: str, most: int = MOST_WORDS) -> list[str]:
    """Return a text in parts of at most so many words, divided where a clause ends if one does.

    Examples
    --------
    >>> parts("one two; three, four five", 3)
    ['one two;', 'three, four five']
    """
    words, lines = text.split(), []
    while len(words) > most:
        ends = [i + 1 for i, word in enumerate(words[:most]) if word[-1] == ";"]
        ends = ends or [
            i + 1 for i, word in enumerate(words[:most]) if word[-1] in ",:"
        ]
        cut = ends[-1] if ends else most
        lines.append(" ".join(words[:cut]))
        words = words[cut:]
    return [*lines, " ".join(words)]


def _of_family(family: str, found: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the findings of a family in the order in which the recipes are listed."""
    names = [name for name in reproduce.names() if name.startswith(f"{family}-")]
    return [found[name] for name in names if name in found]


def _row(one: dict[str, Any], verdict: dict[str, str], *, first: bool) -> str:
    file = f"{one['recipe']}{'-quick' if one['setting'] == 'quick' else ''}.json"
    seeds = f"{_seeds_in_words(one)} seed{'s' * (one['seeds'] != 1)}"
    if (NUMBERS / file).exists():
        seeds += f"; [numbers](evidence/numbers/{file})"
    cells = [
        f"[{_short_name(one)}](evidence/{file}) ({seeds})" if first else "",
        # The words of its verdict tell a row that no paper claims.
        verdict["claim"].removeprefix("(not claimed) ").replace("|", "\\|"),
        verdict["verdict"],
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
    """Store the findings of the folders, judge what is stored again and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "folders", nargs="*", type=Path, help="outputs of ontogeny reproduce"
    )
    names = set(reproduce.names())
    for output in parser.parse_args().folders:
        for folder in sorted(output.iterdir()):
            if (
                folder.name.removesuffix("-quick") in names
                and (folder / "report.html").exists()
            ):
                _write(f"{folder.name}.json", found_in(folder))
                if (judged := numbers_in(folder)) is not None:
                    text = json.dumps(judged, ensure_ascii=False, separators=(",", ":"))
                    (NUMBERS / f"{folder.name}.json").write_text(
                        f"{text}\n", encoding="utf-8"
                    )
    sys.stdout.writelines(f"{change}\n" for change in judge_again())
    found = stored()
    PAGE.write_text(with_tables(PAGE.read_text("utf-8"), found), encoding="utf-8")
    for family in FAMILIES:
        (HERE / f"{family}.csv").write_text(numbers(family, found), encoding="utf-8")


if __name__ == "__main__":
    main()
