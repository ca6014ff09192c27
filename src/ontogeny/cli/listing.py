"""The commands that say what there is: extractors, distances, observables, and one of them."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from ..markup import text_table
from .catalogue import Catalogue, catalogue

_PACKAGES = {"observables": "observables", "extractors": "concepts", "distances": "distances"}


def _kinds(incomplete: str) -> list[str]:
    return [name for name in _all_names() if name.startswith(incomplete)]


def list_(
    what: Annotated[
        str, typer.Argument(help="observables, extractors or distances; all by default.")
    ] = "all",
) -> None:
    """List observables, extractors and distances."""
    from ..errors import check_choice

    check_choice("what", what, ["all", *_PACKAGES])
    for name in _PACKAGES if what == "all" else [what]:
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
        typer.echo("ontogeny --help lists the commands, ontogeny COMMAND --help their options, and")
        typer.echo("ontogeny list the observables; ontogeny help KIND explains one of these.")
        return
    from .._papers import kinds_of_papers, require_papers
    from ..errors import check_choice

    names = _all_names()
    if kind in kinds_of_papers() and kind not in names:
        require_papers(f"the observable {kind!r}")
    check_choice("kind", kind, names)
    entries = catalogue()
    typer.echo(next(entries[name][kind][1] for name in _PACKAGES if kind in entries[name]))


def table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print rows below each other, the columns as wide as they must be."""
    typer.echo("\n".join(text_table(heads, *rows)))


def _all_names() -> list[str]:
    return [name for package in _PACKAGES for name in catalogue()[package]]


def described() -> Catalogue:
    """Return the catalogue from the classes and functions themselves."""
    from ..observables.registry import kinds
    from ..start.presets import PRESETS

    modules = {n: importlib.import_module(f"..{m}", __package__) for n, m in _PACKAGES.items()}
    others = {
        what: {name: ("", "\n".join(_function_help(name))) for name in modules[what].names()}
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
    return f"  {kind}: {question} Needs {cls.requires or 'see its documentation'}{costs}."


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
        return f"{field.name} = {{}}" if empty else f"{field.name} = ...  # must be given"
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
    yield from "\n".join(rest[: ends[0] if ends else None]).rstrip().replace("``", "").split("\n")
