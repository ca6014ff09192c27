"""What there is to name on the command line, kept in a file: without it, torch would be loaded.

A shell asks for it at every press of the tab key. The file is made anew where a file of this
library, or of a package that adds observables to it, has changed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import importlib.util
import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from .._version import __version__
from ..machine import cache_folder
from ..markup import text_table


def described(packages: Mapping[str, str]) -> dict[str, dict[str, tuple[str, str]]]:
    """Return a line and the help of all that packages hold, from classes and functions."""
    from ..observables.registry import kinds
    from ..start.presets import PRESETS

    modules = {
        n: importlib.import_module(f"..{m}", __package__) for n, m in packages.items()
    }
    others = {
        what: {
            name: ("", "\n".join(_function_help(name)))
            for name in modules[what].names()
        }
        for what in ("extractors", "distances")
    }
    return {
        "observables": {
            kind: (_line(kind, cls), "\n".join(_observable_help(kind, cls)))
            for kind, cls in kinds().items()
        },
        **others,
        "presets": {name: (name, preset.title) for name, preset in PRESETS.items()},
    }


def _line(kind: str, cls: Any) -> str:
    question = cls.question or _first_line(cls)
    costs = f"; costs {cls.price}" if cls.price else ""
    return (
        f"  {kind}: {question} Needs {cls.requires or 'see its documentation'}{costs}."
    )


def _observable_help(kind: str, cls: Any) -> Iterator[str]:
    yield f"{kind}: {_first_line(cls)}"
    if cls.question:
        yield from ("", f"answers  {cls.question}", f"needs    {cls.requires}")
        yield f"costs    {cls.price}"
    yield from ("", "[[observables]]", f'kind = "{kind}"')
    yield from map(_argument, (f for f in dataclasses.fields(cls) if f.name != "label"))
    yield 'label = "..."  # optional: its name, where a study has this kind twice'
    yield from _parameters(cls)


def _argument(field: dataclasses.Field[Any]) -> str:
    """Return the line of a study file that gives an argument its default."""
    from ..start.toml import value

    if field.default is dataclasses.MISSING:
        empty = field.default_factory is not dataclasses.MISSING
        return (
            f"{field.name} = {{}}" if empty else f"{field.name} = ...  # must be given"
        )
    if field.default is None:
        return f"# {field.name} is not set by default"
    return f"{field.name} = {value(field.default)}"


def _function_help(name: str) -> Iterator[str]:
    from ..concepts.registry import extractor_class

    cls = extractor_class(name)
    if cls is None:
        from ..distances.registry import MEASURES

        yield f"{name}: a distance between two dictionaries. {_first_line(MEASURES[name])}"
        yield f'distances = ["{name}"]  # in an observable such as concepts'
        return
    yield f"{name}: {_first_line(cls)}"
    yield from ("", "[[observables]]", 'kind = "concepts"', f'extractor = "{name}"')
    yield from _parameters(cls)


def _first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").split("\n")[0]


def _parameters(cls: Any) -> Iterator[str]:
    """Return the section on parameters of a class's documentation."""
    lines = (inspect.getdoc(cls) or "").split("\n")
    if "Parameters" not in lines:
        return
    begin = lines.index("Parameters")
    rest = lines[begin + 2 :]
    ends = [i - 1 for i, line in enumerate(rest) if line and set(line) == {"-"}]
    yield ""
    yield from (
        "\n".join(rest[: ends[0] if ends else None])
        .rstrip()
        .replace("``", "")
        .split("\n")
    )


Catalogue = Mapping[str, Mapping[str, tuple[str, str]]]
"""``{what: {name: (line, help)}}``: the line of a list, and what help says."""
PACKAGES = {
    "observables": "observables",
    "extractors": "concepts",
    "distances": "distances",
}


@cache
def catalogue() -> Catalogue:
    """Return observables, extractors, distances and presets."""
    path = place()
    stamp = _stamp()
    # Whatever stands in the file, which somebody else may have written, costs time and no more.
    with contextlib.suppress(Exception):
        groups = json.loads(path.read_text(encoding="utf-8"))
        content = groups["content"]
        things = chain(*(content[what].values() for what in (*PACKAGES, "presets")))
        if groups["stamp"] == stamp and all(line + text for line, text in things):
            return content
    from ..observables.registry import left_out
    from ..whole_files import write_whole

    content = described(PACKAGES)
    if left_out():  # what another package lacks changes no stamp
        return content
    # A machine without a place to write is slow, no more.
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({"stamp": stamp, "content": content}).encode())
    return content


def place() -> Path:
    """Return the file."""
    return cache_folder() / "catalogue.json"


def _stamp() -> str:
    """Return what changes with whatever the catalogue is made of."""
    entries = entry_points(group="ontogeny.observables")
    packages = {
        __package__.partition(".")[0],
        *(e.module.partition(".")[0] for e in entries),
    }
    files = sorted(chain.from_iterable(map(_files, packages)))
    digest = hashlib.sha256(repr(files).encode()).hexdigest()
    return json.dumps([__version__, sorted((e.name, e.value) for e in entries), digest])


def _files(package: str) -> Iterator[tuple[str, int, int]]:
    """Yield path, size and time of the modules of a package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        return
    roots = spec.submodule_search_locations or ()
    files = list(chain.from_iterable(Path(root).rglob("*.py") for root in roots))
    if not files and spec.has_location and spec.origin:  # a module of one file
        files = [Path(spec.origin)]
    for file in files:
        stat = file.stat()
        yield str(file), stat.st_size, stat.st_mtime_ns


def _kinds(incomplete: str) -> list[str]:
    return [name for name in _all_names() if name.startswith(incomplete)]


def list_(
    what: Annotated[
        str,
        typer.Argument(help="observables, extractors or distances; all by default."),
    ] = "all",
) -> None:
    """List observables, extractors and distances."""
    from ..errors import check_choice

    check_choice("what", what, ["all", *PACKAGES])
    for name in PACKAGES if what == "all" else [what]:
        things = catalogue()[name]
        if name == "observables":
            typer.echo("observables (ontogeny help KIND says more):")
            typer.echo("\n".join(line for line, _ in things.values()))
        else:
            typer.echo(f"{name}: {', '.join(things)}")


def help_(
    kind: Annotated[
        str | None,
        typer.Argument(
            help="An observable, extractor or distance; without it all commands.",
            autocompletion=_kinds,
        ),
    ] = None,
) -> None:
    """Explain an observable, extractor or distance."""
    if kind is None:
        typer.echo(
            "ontogeny --help lists the commands, ontogeny COMMAND --help their options, and"
        )
        typer.echo(
            "ontogeny list the observables; ontogeny help KIND explains one of these."
        )
        return
    from ..errors import check_choice

    check_choice("kind", kind, _all_names())
    entries = catalogue()
    typer.echo(
        next(entries[name][kind][1] for name in PACKAGES if kind in entries[name])
    )


def table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print rows below each other, the columns as wide as they must be."""
    typer.echo("\n".join(text_table(heads, *rows)))


def _all_names() -> list[str]:
    return list(chain.from_iterable(catalogue()[package] for package in PACKAGES))
