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
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import ontogeny as og
from ontogeny_papers import reproduce
from ontogeny_papers.reproduce.verdicts import typeset

HERE = Path(__file__).parent
NUMBERS = HERE / "numbers"
MOST_WORDS = 25  # in a cell of a table
PAGE = HERE.parent / "papers.md"
_DIGITS = (2, 3, 4, 5, 6, 8, 12, 17)  # of each argument of a judge the fewest
_LONGEST = 60  # characters of an attribute
_LARGEST = 200_000  # bytes of a file of numbers
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


# ---- the numbers that verdicts rest on ----------------------------------------------------------


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


def sentences(verdicts: Sequence[Any]) -> list[dict[str, str]]:
    """Return verdicts as they are stored."""
    return [
        {
            "claim": v.claim,
            "verdict": v.answer,
            "measured": typeset(v.measured),
            "beside": typeset(v.beside),
        }
        for v in verdicts
    ]


def smallest(
    judge: Callable[..., Sequence[Any]], numbers: list[Any]
) -> list[Any] | None:
    """Return the numbers, packed, without variables and digits that change no sentence."""
    wanted = sentences(judge(*numbers))

    def same(trial: list[Any]) -> bool:
        try:
            return sentences(judge(*trial)) == wanted
        except Exception:  # a judge fails in its own way where what it reads is missing
            return False

    names = sorted({name for value in numbers for name in _names(value)})
    numbers = _without(numbers, [*names, "attrs"], same)
    texts = [json.dumps(packed(value, _DIGITS[-1])) for value in numbers]
    for i, value in enumerate(numbers):
        for digits in _DIGITS:
            trial = [*texts[:i], json.dumps(packed(value, digits)), *texts[i + 1 :]]
            if same([unpacked(json.loads(text)) for text in trial]):
                texts = trial
                break
    found = [json.loads(text) for text in texts]
    is_small = sum(map(len, texts)) <= _LARGEST
    return found if is_small and same([unpacked(value) for value in found]) else None


def _without(
    numbers: list[Any], names: list[str], same: Callable[[list[Any]], bool]
) -> list[Any]:
    """Return numbers without those variables and nodes of some names that change no sentence."""
    trial = [_only(value, lambda name: name not in names) for value in numbers]
    if same(trial):
        return trial
    if len(names) == 1:
        return numbers
    middle = len(names) // 2
    return _without(_without(numbers, names[:middle], same), names[middle:], same)


def _names(value: Any, place: str = "") -> Iterator[str]:
    """Return the names of what can be left out: variables, labels and nodes, by their place."""
    if isinstance(value, xr.Dataset):
        yield from (f"{place} {name}" for name in value.variables)
        for dim, labels in _labels(value).items():
            yield from (f"{place} {dim} {label}" for label in labels)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield f"{place}/{key}"
            yield from _names(inner, f"{place}/{key}")
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _names(inner, place)


def _labels(data: xr.Dataset) -> dict[str, list[str]]:
    """Return the labels of dimensions that words name, such as distances and alignments."""
    return {str(d): i.values.tolist() for d, i in data.coords.items()
            if i.dims == (d,) and i.dtype.kind in "UO" and len({*i.values}) == i.size}  # fmt: skip


def _only(value: Any, keep: Callable[[str], bool], place: str = "") -> Any:
    if isinstance(value, xr.Dataset):
        kept = {d: [x for x in labels if keep(f"{place} {d} {x}")]
                for d, labels in _labels(value).items()}  # fmt: skip
        fewer = {
            d: labels for d, labels in kept.items() if len(labels) < value.sizes[d]
        }
        unread = [name for name in value.variables if not keep(f"{place} {name}")]
        data = value.drop_vars(unread).sel(
            {d: x for d, x in fewer.items() if d not in unread}
        )
        return data if keep("attrs") else data.drop_attrs()
    if isinstance(value, Mapping):
        places = {key: f"{place}/{key}" for key in value}
        return {
            key: _only(value[key], keep, at) for key, at in places.items() if keep(at)
        }
    return (
        [_only(x, keep, place) for x in value]
        if isinstance(value, list | tuple)
        else value
    )


def packed(value: Any, digits: int) -> Any:
    """Return numbers as JSON takes them, with so many significant digits."""
    if isinstance(value, xr.Dataset):
        variables = {
            str(name): [list(one.dims), one.dtype.str, _values(one.values, digits),
                        _short(one.attrs)]
            for name, one in value.variables.items()
        }  # fmt: skip
        attrs = _short(value.attrs)
        return {
            "variables": variables,
            "coords": list(map(str, value.coords)),
            "attrs": attrs,
        }
    if isinstance(value, Mapping):
        return {str(key): packed(inner, digits) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [packed(inner, digits) for inner in value]
    if isinstance(value, np.ndarray):
        return {"array": _rounded(value.tolist(), digits), "dtype": value.dtype.str}
    return _rounded(value.item() if isinstance(value, np.generic) else value, digits)


def _short(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """Return attributes without long ones, which describe figures and sections."""
    plain = {str(k): v for k, v in attrs.items() if isinstance(v, str | int | float)}
    return {key: value for key, value in plain.items() if len(str(value)) <= _LONGEST}


def _values(values: np.ndarray, digits: int) -> Any:
    """Return rounded values; of what is mostly NaN the others alone, with their places."""
    if values.dtype.kind != "f" or np.isnan(values).sum() <= values.size / 2:
        return _rounded(values.tolist(), digits)
    at = np.flatnonzero(~np.isnan(values))
    gaps = np.diff(at, prepend=0).tolist()
    return {
        "shape": values.shape,
        "gaps": gaps,
        "values": _rounded(values.flat[at].tolist(), digits),
    }


def _whole(values: Any, dtype: str) -> np.ndarray:
    if not isinstance(values, dict):
        return np.array(values, dtype=dtype)
    whole = np.full(values["shape"], np.nan, dtype=dtype)
    whole.flat[np.cumsum(values["gaps"], dtype=int)] = values["values"]
    return whole


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, list):
        return [_rounded(inner, digits) for inner in value]
    if not isinstance(value, float):
        return value
    return float(f"{value:.{digits}g}") if np.isfinite(value) else str(value)


def unpacked(value: Any) -> Any:
    """Return datasets, lists and dicts of what `packed` made."""
    if isinstance(value, dict) and "variables" in value:
        arrays = {
            name: xr.Variable(dims, _whole(values, dtype), attrs)
            for name, (dims, dtype, values, attrs) in value["variables"].items()
        }
        data = xr.Dataset(
            {name: one for name, one in arrays.items() if name not in value["coords"]},
            {name: arrays[name] for name in value["coords"]},
        )
        return data.assign_attrs(value["attrs"])
    if isinstance(value, dict) and "array" in value:
        return np.array(value["array"], dtype=value["dtype"])
    if isinstance(value, dict):
        return {key: unpacked(inner) for key, inner in value.items()}
    return [unpacked(inner) for inner in value] if isinstance(value, list) else value


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
