"""What a list and the help say of each observable, extractor, distance and preset."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Iterator, Mapping
from typing import Any


def described(packages: Mapping[str, str]) -> dict[str, dict[str, tuple[str, str]]]:
    """Return a line and the help of all that packages hold, from classes and functions."""
    from ..observables.registry import kinds
    from ..start.presets import PRESETS

    modules = {n: importlib.import_module(f"..{m}", __package__) for n, m in packages.items()}
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
